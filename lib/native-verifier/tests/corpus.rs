//! Larger modules, where there are any: all that are built for the WASI test suite.
mod common;

use std::path::{Path, PathBuf};
use std::time::Instant;

fn modules(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            modules(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "wasm") {
            found.push(path);
        }
    }
}

#[test]
fn corpus() {
    let mut found = Vec::new();
    modules(Path::new(&std::env::var("CORPUS").unwrap()), &mut found);
    found.sort();
    let (mut functions, mut failed, mut text, mut work, mut steps, mut time, mut compile_time) =
        (0, 0, 0, 0, 0, 0.0, 0.0);
    for path in found {
        let bytes = std::fs::read(&path).unwrap();
        let imports = std::fs::read_to_string("/tmp/hF.imports").unwrap();
        let imports = wasm_record::Imports::parse(&imports).unwrap();
        let t = Instant::now();
        let linked = match common::compile(&bytes, &imports) {
            Ok(linked) => linked,
            Err(e) => {
                println!("{}: {e}", path.display());
                continue;
            }
        };
        compile_time += t.elapsed().as_secs_f64();
        let t = Instant::now();
        let (report, violations) = native_verifier::verify_all(&common::module(&linked)).unwrap();
        time += t.elapsed().as_secs_f64();
        text += linked.text.len();
        functions += report.functions + report.entries + violations.len();
        failed += violations.len();
        work += report.work;
        steps += report.instructions;
        for v in violations.iter().take(3) {
            println!("{}: {v}\n{}", path.display(), common::around(&linked, v.address));
        }
    }
    println!(
        "{functions} functions, {failed} failed, {text} bytes, {time:.3} s = {:.3} s/MB; compile {compile_time:.2}; work {:.1}/step",
        time / text as f64 * 1e6,
        work as f64 / steps as f64
    );
}
