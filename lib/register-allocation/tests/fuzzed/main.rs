//! The fuzz target `allocations` without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p register-allocation --test fuzzed` rewrites the module and the seed inputs, in two runs.

mod answers;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

/// A module with a loop, a call, values of both classes, and a jump table.
const MODULE: &str = "(module
    (type $t (func (param i32) (result i32)))
    (memory 1 2) (table 4 funcref)
    (func $f (export \"f\") (type $t) (local i64 f64 i32)
        (loop $again
            (local.set 1 (i64.add (local.get 1) (i64.div_u (i64.load (local.get 0)) (i64.const 7))))
            (local.set 2 (f64.sqrt (f64.add (local.get 2) (f64.convert_i64_s (local.get 1)))))
            (local.set 3 (i32.add (local.get 3) (call $f (i32.shl (local.get 0) (local.get 3)))))
            (br_if $again (i32.lt_u (local.get 3) (i32.const 100))))
        (block (block (br_table 0 1 (local.get 0))))
        (i32.trunc_sat_f64_u (f64.mul (local.get 2) (f64.convert_i64_u (local.get 1))))))";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed")
}

#[test]
fn the_module_is_that_of_its_text_and_seeds_are_of_it() {
    replay::hold_seeds(&folder(), &[("module.wasm", wat::parse_str(MODULE).expect("a module"))]);
    let mut seeds = Vec::new();
    for (at, (function, answer)) in answers::functions().into_iter().enumerate() {
        let first = at as u8 + 1;
        seeds.push((format!("function-{first}"), [&[answers::AS_FUNCTION], function.as_slice()].concat()));
        seeds.push((format!("answer-{first}"), [&[first], answer.as_slice()].concat()));
    }
    assert!(seeds.len() >= 4, "{} seeds", seeds.len());
    let seeds: Vec<(&str, Vec<u8>)> = seeds.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    replay::hold_seeds(&folder().join("inputs"), &seeds);
}

#[test]
fn damaged_functions_and_answers_are_refused_or_make_code() {
    replay::replay(&folder().join("inputs"), 300, answers::run);
}
