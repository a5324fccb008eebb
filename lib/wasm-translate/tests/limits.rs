//! Modules that would take much more time or memory than their size lets expect.

use std::fmt::Write;

use wasm_record::Imports;
use wasm_record::layout::Bounds;
use wasm_translate::{Error, translate};

/// Compiles a module; returns what is refused.
fn refusal(text: &str) -> String {
    let bytes = wat::parse_str(text).expect("a module");
    match translate(&bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ()) {
        Err(error @ (Error::Function { .. } | Error::Limit { .. })) => error.to_string(),
        other => panic!("{:?}", other.map(|translated| translated.text.len())),
    }
}

fn types(count: usize) -> String {
    "i32 ".repeat(count)
}

#[test]
fn blocks_that_pass_many_values_are_too_many() {
    let thousand = types(1000);
    let text = format!(
        "(module (type $t (func (param {thousand}) (result {thousand}))) (func $f {} {} {}))",
        "i32.const 1 ".repeat(1000),
        "block (type $t) end ".repeat(3000),
        "drop ".repeat(1000)
    );
    assert!(refusal(&text).contains("values passed by blocks, branches and calls"), "{}", refusal(&text));
}

#[test]
fn jump_tables_that_pass_many_values_are_too_many() {
    let text = format!(
        "(module (func (result {}) (block $b (result {}) {} (br_table {} (i32.const 0)))))",
        types(1000),
        types(1000),
        "i32.const 1 ".repeat(1000),
        "$b ".repeat(5000)
    );
    assert!(refusal(&text).contains("values passed by blocks, branches and calls"), "{}", refusal(&text));
}

#[test]
fn nested_loops_of_many_locals_are_too_many() {
    let text = format!("(module (func (local {}) {} {}))", types(5000), "loop ".repeat(100), "end ".repeat(100));
    assert!(refusal(&text).contains("locals times nested loops"), "{}", refusal(&text));
}

#[test]
fn a_block_that_many_locals_come_into_is_too_large() {
    let mut sets = String::new();
    for local in 0..12_000 {
        let _ = write!(sets, "(local.set {local} (i32.const {local}))");
    }
    let uses: String = (0..12_000).map(|local| format!("(drop (i32.eqz (local.get {local})))")).collect();
    let text = format!("(module (func (local {}) (if (i32.const 1) (then {sets})) {uses}))", types(12_000));
    assert!(refusal(&text).contains("values that come into blocks"), "{}", refusal(&text));
}

#[test]
fn locals_and_values_and_signatures_have_limits() {
    assert!(refusal(&format!("(module (func (local {})))", types(20_001))).contains("too many locals"));
    let text = format!("(module (func {} {}))", "i32.const 1 ".repeat(20_002), "drop ".repeat(20_002));
    assert!(refusal(&text).contains("values on the stack"));
    let mut text = String::from("(module ");
    for number in 0u32..10_001 {
        let kinds = (0..14).map(|bit| if number >> bit & 1 == 1 { "i64 " } else { "i32 " }).collect::<String>();
        let _ = write!(text, "(type (func (param {kinds})))");
    }
    text.push(')');
    assert!(refusal(&text).contains("too many signatures"));
}

#[test]
fn deep_nesting_is_no_recursion() {
    let text = format!("(module (func {} {}))", "block ".repeat(5_000), "end ".repeat(5_000));
    let bytes = wat::parse_str(&text).expect("a module");
    assert!(translate(&bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ()).is_ok());
}
