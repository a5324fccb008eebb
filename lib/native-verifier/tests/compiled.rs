//! Everything that the compiler makes is proven: modules that cover each kind of access, call and frame.
mod common;

use std::fmt::Write;

use wasm_record::Imports;
use wasm_record::layout::Bounds;

fn imports() -> Imports {
    let many = "i32 ".repeat(20);
    let list = format!("func host f i32 -> i32\nfunc host many {many}-> i64 i64 i64 i64 i64 i64 i64 i64 i64 i64\n");
    Imports::parse(&list).expect("a list of imports")
}

/// Compiles a module with either bounds, and wants all of it proven; returns that with checked ones.
fn proven(module: &str) -> compose::Linked {
    let [checked, _] = common::BOUNDS.map(|bounds| proven_with(module, bounds));
    checked
}

fn proven_with(module: &str, bounds: Bounds) -> compose::Linked {
    let linked = common::compile(module.as_bytes(), &imports(), bounds).expect("compiles");
    let (_, violations) = native_verifier::verify_all(&common::module(&linked)).expect("a sound layout");
    let shown: Vec<String> =
        violations.iter().map(|one| format!("{one}\n{}", common::around(&linked, one.address))).collect();
    assert!(violations.is_empty(), "{module}\n{}", shown.join("\n"));
    linked
}

#[test]
fn accesses_of_memory() {
    let mut body = String::new();
    for (kind, name) in [
        ("i32", "load"),
        ("i32", "load8_s"),
        ("i32", "load16_u"),
        ("i64", "load"),
        ("i64", "load8_u"),
        ("i64", "load16_s"),
        ("i64", "load32_u"),
        ("i64", "load32_s"),
        ("f32", "load"),
        ("f64", "load"),
        ("v128", "load"),
    ] {
        for offset in ["0", "1", "65535", "65536", "2147483647", "2147483648", "4294967295"] {
            let _ = write!(
                body,
                "(func (param i32) (result {kind}) ({kind}.{name} offset={offset} (local.get 0)))
                 (func (param i64) (result {kind}) ({kind}.{name} offset={offset} (i32.wrap_i64 (local.get 0))))
                 (func (param i32) (result {kind}) ({kind}.{name} offset={offset} (i32.const 100)))
                 (func (param i32) (result {kind}) ({kind}.{name} offset={offset} (i32.const -1)))
                 (func (param i32 i32) (result {kind})
                   ({kind}.{name} offset={offset} (i32.add (local.get 1) (i32.shl (local.get 0) (i32.const 2)))))"
            );
        }
    }
    for (kind, name) in [
        ("i32", "store"),
        ("i32", "store8"),
        ("i32", "store16"),
        ("i64", "store"),
        ("i64", "store8"),
        ("i64", "store16"),
        ("i64", "store32"),
        ("f32", "store"),
        ("f64", "store"),
        ("v128", "store"),
    ] {
        for offset in ["0", "8", "4294967295"] {
            let _ = write!(
                body,
                "(func (param i32 {kind}) ({kind}.{name} offset={offset} (local.get 0) (local.get 1)))
                 (func (param i32 i32 {kind}) (if (local.get 1) (then (local.set 0 (i32.const 7))))
                   ({kind}.{name} offset={offset} (local.get 0) (local.get 2)))"
            );
        }
    }
    // Loads and stores that the code generator joins with arithmetic.
    for operator in ["add", "sub", "and", "or", "xor", "mul", "rotl", "shr_u"] {
        let _ = write!(
            body,
            "(func (param i32 i32) (i32.store offset=4 (local.get 0)
               (i32.{operator} (i32.load offset=4 (local.get 0)) (local.get 1))))
             (func (param i32 i64) (result i64) (i64.{operator} (local.get 1) (i64.load (local.get 0))))"
        );
    }
    proven(&format!("(module (memory 1) {body})"));
}

#[test]
fn memory_that_grows() {
    proven(
        "(module (memory 1 10) (data $d \"hello\") (table $t 3 funcref) (table $u 4 externref) (elem $e funcref (ref.null func))
          (func $f (param i32) (result i32) (local i32)
            (loop $more
              (local.set 1 (i32.add (local.get 1) (i32.load (local.get 0))))
              (if (i32.eqz (i32.and (local.get 1) (i32.const 7))) (then (drop (memory.grow (i32.const 1)))))
              (local.set 0 (i32.load offset=8 (local.get 0)))
              (i32.store (local.get 0) (memory.size))
              (br_if $more (i32.lt_u (local.get 0) (i32.const 1000))))
            (memory.copy (local.get 0) (local.get 1) (i32.const 5))
            (memory.fill (local.get 0) (local.get 1) (i32.const 5))
            (memory.init $d (local.get 0) (i32.const 1) (i32.const 2)) (data.drop $d)
            (i32.load (local.get 0)))
          (func (param i32) (result funcref)
            (table.set $t (local.get 0) (table.get $t (i32.add (local.get 0) (i32.const 1))))
            (drop (table.get $u (local.get 0)))
            (drop (table.grow $t (ref.null func) (local.get 0)))
            (table.fill $t (local.get 0) (ref.func $f) (i32.const 2))
            (table.copy $t $t (local.get 0) (i32.const 0) (i32.const 1))
            (table.init $t $e (local.get 0) (i32.const 0) (i32.const 1)) (elem.drop $e)
            (drop (table.size $u))
            (table.get $t (local.get 0)))
          (elem declare func $f))",
    );
}

#[test]
fn calls_through_tables() {
    for functions in [1, 2, 3, 300] {
        let mut body = String::new();
        for index in 0..functions {
            let _ = write!(body, "(func $f{index} (type $a) (i32.add (local.get 0) (i32.const {index})))");
        }
        proven(&format!(
            "(module (type $a (func (param i32) (result i32))) (type $b (func (param i64 f64) (result f64))) (type $c (func))
              (table $t 10 funcref) (table $u 10 funcref) {body}
              (func (param i32 i32) (result i32) (local i32)
                (loop $more
                  (local.set 2 (call_indirect $t (type $a) (local.get 2) (local.get 0)))
                  (local.set 2 (call_indirect $t (type $a) (local.get 2) (local.get 0)))
                  (drop (call_indirect $u (type $b) (i64.const 1) (f64.const 2) (local.get 0)))
                  (call_indirect $u (type $c) (i32.const 3))
                  (br_if $more (local.get 2)))
                (return_call_indirect $t (type $a) (local.get 2) (local.get 1)))
              (func (param i32) (result i32) (return_call $f0 (local.get 0))))"
        ));
    }
}

/// Functions with many parameters and results, which call each other in all ways.
#[test]
fn many_arguments_and_results() {
    let mut body = String::new();
    let shapes = [(0, 0), (1, 9), (5, 1), (6, 8), (7, 12), (20, 20), (40, 3), (3, 40), (60, 60)];
    for (number, (parameters, results)) in shapes.iter().enumerate() {
        let kinds = |count: &usize| -> Vec<&str> {
            (0..*count).map(|index| ["i32", "i64", "f64", "v128", "i32", "f32"][index % 6]).collect()
        };
        let zero = |kind: &str| match kind {
            "v128" => "(v128.const i64x2 0 0) ".to_string(),
            kind => format!("({kind}.const 0) "),
        };
        let (parameters, results) = (kinds(parameters), kinds(results));
        let _ = write!(
            body,
            "(type $t{number} (func (param {}) (result {})))
             (func $f{number} (type $t{number}) {})
             (func (type $t{number}) {} (call $f{number}))
             (func (type $t{number}) {} (return_call $f{number}))
             (func (param i32 f64) (result {}) {} (return_call_indirect (type $t{number}) (local.get 0)))
             (func (result {}) {} (call_indirect (type $t{number}) (i32.const 1)))",
            parameters.join(" "),
            results.join(" "),
            results.iter().map(|kind| zero(kind)).collect::<String>(),
            (0..parameters.len()).map(|index| format!("(local.get {index})")).collect::<String>(),
            (0..parameters.len()).map(|index| format!("(local.get {index})")).collect::<String>(),
            results.join(" "),
            parameters.iter().map(|kind| zero(kind)).collect::<String>(),
            results.join(" "),
            parameters.iter().map(|kind| zero(kind)).collect::<String>(),
        );
    }
    proven(&format!(
        "(module (import \"host\" \"many\" (func (param {}) (result {}))) (table 4 funcref) {body})",
        "i32 ".repeat(20),
        "i64 ".repeat(10)
    ));
}

/// A function with this many live values, across a loop with calls.
fn with_frame(values: usize) -> String {
    let locals = "i64 ".repeat(values);
    let set: String = (1..=values)
        .map(|index| format!("(local.set {index} (i64.load offset={} (local.get 0)))", index * 8))
        .collect();
    let sum: String = (1..=values)
        .map(|index| format!("(i64.store offset={} (local.get 0) (local.get {index}))", index * 8))
        .collect();
    format!(
        "(func $big{values} (param i32) (local {locals}) {set}
           (loop $more (local.set 0 (call $f (local.get 0))) (br_if $more (i32.load (local.get 0)))) {sum})"
    )
}

#[test]
fn frames_of_many_pages() {
    let bodies: String = [10, 520, 1100, 2700].map(with_frame).concat();
    proven(&format!("(module (import \"host\" \"f\" (func $f (param i32) (result i32))) (memory 1) {bodies})"));
}

#[test]
fn an_index_that_is_a_multiple() {
    proven(
        "(module (memory 1)
           (func (param i32) (result i64)
             (i64.load offset=8
               (i32.add (i32.const 1000) (i32.shl (i32.and (local.get 0) (i32.const 31)) (i32.const 3)))))
           (func (param i32 i64)
             (i64.store
               (i32.add (i32.const 288) (i32.shl (i32.and (local.get 0) (i32.const 31)) (i32.const 3)))
               (local.get 1))))",
    );
}

#[test]
fn exceptions() {
    let mut tags = String::new();
    for number in 0..30 {
        let _ = write!(tags, "(tag (param i32 i64 f64 {}))", "i64 ".repeat(number));
    }
    proven(&format!(
        "(module (memory 1) (tag $e) (tag $f (param i32 f64)) {tags}
           (func $throws (param i32) (result i64 i64 i64 i64)
             (if (local.get 0) (then (throw $f (local.get 0) (f64.const 1))))
             (throw $e))
           (func (export \"f\") (param i32) (result i32) (local i64)
             try $outer (result i32)
               loop $again
                 try
                   (call $throws (local.get 0)) i64.xor i64.xor i64.xor (local.set 1)
                   (i64.store (i32.const 8) (local.get 1))
                 catch $e
                   (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))
                 catch_all
                   (rethrow 0)
                 end
               end
               try (result i32)
                 (call $throws (i32.const 1)) i64.xor i64.xor i64.xor i32.wrap_i64
               delegate $outer
             catch $f drop i32.load
             catch_all (i32.const 1)
             end))"
    ));
}

#[test]
fn branches() {
    let targets: String = (0..200).map(|index| format!("{} ", index % 5)).collect();
    proven(&format!(
        "(module (memory 1)
          (func (param i32) (result i32) (local i32)
            (loop $l (block (block (block (block
              (br_table 0 1 2 3 4 (local.get 0))) (local.set 0 (i32.const 1)))
              (local.set 0 (i32.load (local.get 0)))) (br_if $l (local.get 0)))
              (local.set 1 (i32.load (i32.and (local.get 1) (i32.const 255))))) (local.get 1))
          (func (param i32) (result i32)
            (block (block (block (block (block (br_table {targets} (local.get 0))) (return (i32.const 1)))
             (return (i32.const 2))) (return (i32.load8_u (local.get 0)))) (return (i32.const 4))) (i32.const 5))
          (func (param i32 i32 i32) (result i32)
            (loop $a (result i32)
              (loop $b (loop $c
                (i32.store (local.get 0) (i32.load (local.get 1)))
                (local.set 0 (select (local.get 1) (local.get 2) (local.get 0)))
                (local.set 1 (i32.add (local.get 1) (i32.const 1)))
                (br_if $c (i32.lt_s (local.get 1) (i32.const 77))))
                (br_if $b (i32.load (local.get 0))))
              (br_if $a (local.get 2)) (i32.div_s (local.get 0) (local.get 1)))))"
    ));
}
