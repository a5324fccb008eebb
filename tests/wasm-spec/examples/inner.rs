use wasm_spec::{Suite, refusals, sources};
#[allow(clippy::unwrap_used)]
fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let text = std::fs::read_to_string("templates/wasm-spec/src/spectest.rs").unwrap();
    let list = text.split('"').nth(1).unwrap();
    let imports = wasm_record::Imports::parse(list).unwrap();
    let mut sources = sources();
    sources.retain(|s| s.name.contains(&only));
    let t = std::time::Instant::now();
    let suite = Suite::of(&sources, &imports);
    println!("{:?}", t.elapsed());
    for f in &suite.failures {
        println!("FAIL {}:{} {}", f.file, f.line, &f.why.chars().take(200).collect::<String>());
    }
    for f in &suite.left_out {
        println!("OUT {}:{} {}", f.file, f.line, f.why);
    }
    let script = wasm_spec_script::write(&suite.files);
    let bundle = wasm_translate::bundle(&suite.modules, &script).unwrap();
    println!(
        "{} modules {} files {} steps; text {} constants {} script {} record {} functions {}",
        suite.modules.len(),
        suite.files.len(),
        suite.files.iter().map(|f| f.steps.len()).sum::<usize>(),
        bundle.text.len(),
        bundle.constants.len(),
        script.len(),
        bundle.record.len(),
        bundle.functions.len()
    );
    for r in refusals(&sources) {
        match wasm_translate::translate(&r.bytes, &imports, &[], &mut |_, _| ()) {
            Ok(_) => println!("ACCEPTED {}:{} {}", r.file, r.line, r.message),
            Err(wasm_translate::Error::Invalid { .. }) => {}
            Err(e) => println!("OTHER {}:{} {} -- {e}", r.file, r.line, r.message),
        }
    }
    println!("{:?}", t.elapsed());
}
