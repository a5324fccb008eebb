//! Rules on modules inside a crate.

use house::Workspace;
use house::modules::Graph;

/// Modules of the kernel that may be in one import cycle: a thread is a SIP's, waits, and is scheduled. Shrink it
/// where the code allows, never extend it.
const LARGEST_KERNEL_CYCLE: usize = 6;

/// Modules of `lib/ext2` that form the mounted file system, lowest first. Each uses only earlier ones and those of its
/// own line.
const EXT2_LAYERS: &[&[&str]] = &[
    &["format"],
    &["cache", "source"],
    &["error"],
    &["store", "allocator", "journal"],
    &["admission"],
    &["inode"],
    &["block_map"],
    &["orphans"],
    &["extended_attributes"],
    &["directory"],
    &["file_data"],
    &["namespace"],
    &["file_system"],
    &["eviction"],
    &["open_file"],
    &["volume"],
    &["path"],
];

/// Modules of `lib/ext2` that use the format alone, and that the file system does not use.
const EXT2_TOOLS: &[&str] = &["check", "make"];

#[test]
fn the_kernels_modules_are_in_no_larger_import_cycle() {
    let graph = graph_of("kernel/src/");
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

#[test]
fn the_modules_of_ext2_use_only_lower_ones() {
    let layer = |name: &str| EXT2_LAYERS.iter().position(|layer| layer.contains(&name));
    for (name, used) in graph_of("lib/ext2/src/").uses() {
        let own = layer(name);
        assert!(own.is_some() || EXT2_TOOLS.contains(&name), "module {name} of lib/ext2 is in no layer; put it in one");
        for other in used {
            let is_legal = match own {
                None => other == "format",
                Some(own) => layer(other).is_some_and(|layer| layer <= own),
            };
            assert!(is_legal, "module {name} of lib/ext2 uses {other}, which is not below it");
        }
    }
}

fn graph_of(sources: &str) -> Graph {
    let workspace = Workspace::read();
    let paths: Vec<String> =
        workspace.files("rs").into_iter().filter_map(|path| Some(path.strip_prefix(sources)?.to_string())).collect();
    let texts: Vec<String> = paths.iter().map(|path| workspace.text(&format!("{sources}{path}"))).collect();
    Graph::read(paths.iter().map(String::as_str).zip(texts.iter().map(String::as_str)))
}
