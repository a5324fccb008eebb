//! Modules of tests that are written as text are what their text says. With `UPDATE_GOLDEN` set, they are written.

use std::path::Path;

/// Modules, without their ending.
const MODULES: [&str; 2] = ["benches/idle-wasm/idle", "tests/end-to-end/tests/people/wasm_contracts/hostile"];

#[test]
fn modules_are_those_of_their_text() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in MODULES {
        let path = |kind: &str| repository.join(format!("{name}.{kind}"));
        let text = std::fs::read_to_string(path("wat")).expect("the text");
        let module = wat::parse_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path("wasm"), &module).expect("the module");
        }
        let kept = std::fs::read(path("wasm")).expect("the module");
        assert!(kept == module, "{name}.wasm is not that of {name}.wat: run this test with UPDATE_GOLDEN=1");
    }
}
