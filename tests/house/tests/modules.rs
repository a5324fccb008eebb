//! Rules on modules inside a crate.

use house::Workspace;
use house::modules::Graph;

/// Modules of the kernel that may be in one import cycle: a thread is a SIP's, waits, and is scheduled. Make it smaller where
/// the code allows, never larger.
const LARGEST_KERNEL_CYCLE: usize = 6;

#[test]
fn the_kernels_modules_are_in_no_larger_import_cycle() {
    const SOURCES: &str = "kernel/src/";
    let workspace = Workspace::read();
    let paths: Vec<String> =
        workspace.files("rs").into_iter().filter_map(|path| Some(path.strip_prefix(SOURCES)?.to_string())).collect();
    let texts: Vec<String> = paths.iter().map(|path| workspace.text(&format!("{SOURCES}{path}"))).collect();
    let graph = Graph::read(paths.iter().map(String::as_str).zip(texts.iter().map(String::as_str)));
    let cycle = graph.largest_cycle();
    assert!(
        cycle.len() <= LARGEST_KERNEL_CYCLE,
        "these {} modules of the kernel use each other; {LARGEST_KERNEL_CYCLE} may: {cycle:?}",
        cycle.len()
    );
    assert!(
        cycle.len() == LARGEST_KERNEL_CYCLE,
        "the largest cycle is down to {} modules; lower LARGEST_KERNEL_CYCLE to keep it so",
        cycle.len()
    );
}
