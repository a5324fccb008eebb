//! The machine code of the whole suite is proven safe.

use wasm_record::Imports;
use wasm_spec::{Suite, sources};
use wasm_translate::Bounds;

const HOST: u64 = 0x1000;
const BUILTIN: u64 = 0x2000;
const BASE: u64 = 0x10_0000;

#[test]
fn the_code_of_every_module_is_proven() {
    [Bounds::Checked, Bounds::Guarded].into_iter().for_each(prove);
}

fn prove(bounds: Bounds) {
    let spectest = include_str!("../../../templates/wasm-spec/src/spectest.rs");
    let list = spectest.split('"').nth(1).expect("the template's list of imports");
    let suite = Suite::of(&sources(), &Imports::parse(list).expect("a list of imports"), bounds);
    assert!(suite.modules.len() > 1000, "{} modules", suite.modules.len());
    let bundle = wasm_translate::bundle(&suite.modules, &[]).expect("records");
    let linked = compose::link(&bundle, BASE, 0, [HOST, BUILTIN]).expect("lays out");
    let module = native_verifier::Module {
        data_address: linked.data_address,
        data: &linked.data,
        text_address: linked.text_address,
        text: &linked.text,
        relocations: linked.relocations.clone(),
        host: HOST,
        builtin: BUILTIN,
    };
    let (report, violations) = native_verifier::verify_all(&module).expect("a sound layout");
    let shown: Vec<String> = violations.iter().take(20).map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{} of {} functions\n{}", violations.len(), report.functions, shown.join("\n"));
    assert_eq!(report.functions, bundle.functions.len());
}
