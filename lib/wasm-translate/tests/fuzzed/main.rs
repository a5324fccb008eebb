//! The fuzz target `wasm_module` without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p wasm-translate --test fuzzed` rewrites its seed inputs.

#[path = "../common/mod.rs"]
mod common;
mod module;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use wasm_record::Imports;
use wasm_record::layout::Bounds;
use wasm_translate::translate;

/// Seed inputs, findings among them.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs")
}

/// A module with something of everything.
const MODULE: &str = "(module
    (type $t (func (param i32) (result i32)))
    (memory 1 2) (table 4 funcref) (global $g (mut v128) (v128.const i64x2 1 2))
    (func $f (export \"f\") (type $t)
        (block (block (block (br_table 0 1 2 (local.get 0)))))
        (memory.fill (i32.const 0) (local.get 0) (i32.const 9))
        (global.set $g (i8x16.add (global.get $g) (i8x16.splat (local.get 0))))
        (if (result i32) (local.get 0) (then (call_indirect (type $t) (i32.load (local.get 0)) (i32.const 1)))
            (else (return_call $f (i32.trunc_sat_f64_u (f64.const 2.5))))))
    (elem (i32.const 0) $f $f) (data (i32.const 8) \"data\"))";

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let module = wat::parse_str(MODULE).expect("a module");
    let choices = |first| [&[module::AS_CHOICES], choices(first).as_slice()].concat();
    vec![
        ("module", [&[module::AS_MODULE], module.as_slice()].concat()),
        ("choices-1", choices(1)),
        ("choices-2", choices(2)),
        ("choices-3", choices(3)),
    ]
}

/// Choices of a generator of modules: a linear congruential generator's upper bytes, as long as a target's input may be.
fn choices(first: u32) -> Vec<u8> {
    let mut state = first;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(4000).collect()
}

#[test]
fn damaged_modules_are_refused_or_make_images() {
    replay::replay(&inputs(), 40, module::run);
}

/// Otherwise the fuzzer would reach little.
#[test]
fn the_seed_is_a_module_whose_image_is_accepted() {
    replay::hold_seeds(&inputs(), &seeds());
    let bytes = wat::parse_str(MODULE).expect("a module");
    let translated = translate(&bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ()).expect("it compiles");
    let template = common::template("");
    let template = compose::Template::parse(&template).expect("a template");
    common::check(&template, &translated).expect("a good image");
    for (name, seed) in seeds().iter().skip(1) {
        let made = module::generated(&seed[1..]).expect("a module");
        let translated = translate(&made, &Imports::default(), Bounds::Checked, &mut |_, _| ()).expect("it compiles");
        assert!(translated.text.len() > 500, "{name}: {} bytes of code", translated.text.len());
    }
}
