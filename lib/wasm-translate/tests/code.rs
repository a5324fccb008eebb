//! What the text of compiled modules consists of.

use std::collections::BTreeSet;
use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use wasm_record::layout::Bounds;
use wasm_record::{Imports, Record};
use wasm_translate::{Error, Target, Translated, bundle, translate};

fn compiled(text: &str) -> Result<Translated, Error> {
    let bytes = wat::parse_str(text).expect("a module");
    translate(&bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ())
}

/// All instructions, after the references are pointed at the text's end: each must be one, and branches lead to others.
fn instructions(translated: &Translated) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, &translated.text, 0, DecoderOptions::NONE);
    let all: Vec<Instruction> = decoder.iter().collect();
    let starts: BTreeSet<u64> = all.iter().map(Instruction::ip).collect();
    for instruction in &all {
        assert!(!instruction.is_invalid(), "no instruction at {:#x}", instruction.ip());
        if instruction.op0_kind() == OpKind::NearBranch64 {
            let field = instruction.next_ip() as u32 - 4;
            let is_open = translated.relocations.iter().any(|relocation| relocation.offset == field);
            assert!(is_open || starts.contains(&instruction.near_branch64()), "a branch at {:#x}", instruction.ip());
        }
    }
    for entry in &translated.table_entries {
        assert!(starts.contains(&u64::from(entry.target)), "an entry of a jump table leads to {:#x}", entry.target);
    }
    all
}

/// A module with a function that keeps this many values at once.
fn many_values(count: usize) -> String {
    let mut text = String::from("(module (memory 1) (func (export \"f\") (param i32) (result i64)\n");
    for number in 0..count {
        let _ = writeln!(text, "(i64.load offset={} (local.get 0))", number * 8);
    }
    // What is between keeps all of them on the stack.
    text.push_str("(drop (memory.grow (i32.const 0)))\n");
    for _ in 1..count {
        text.push_str("i64.xor\n");
    }
    text.push_str("))");
    text
}

#[test]
fn large_frames_are_entered_in_steps_of_a_page() {
    for count in [100, 513, 600, 1100, 2000] {
        let translated = compiled(&many_values(count)).expect("it compiles");
        let down = instructions(&translated).into_iter().filter(|one| {
            one.mnemonic() == Mnemonic::Sub && one.op0_kind() == OpKind::Register && one.op0_register() == Register::RSP
        });
        let largest = down.map(|one| one.immediate(1)).max().unwrap_or(0);
        assert!(largest <= 4096, "{count} values: a step of {largest} bytes");
    }
}

#[test]
fn a_function_has_several_jump_tables_and_constants() {
    let table = "(block (block (block (block (br_table 0 1 2 3 (local.get 0))) (return (v128.const i64x2 1 2)))
        (return (v128.const i64x2 3 4))) (return (v128.const i64x2 1 2)))";
    let text = format!("(module (func (param i32) (result v128) {table} {table} {table} (v128.const i64x2 5 6)))");
    let translated = compiled(&text).expect("it compiles");
    instructions(&translated);
    let tables: BTreeSet<u32> = translated.table_entries.iter().map(|entry| entry.table).collect();
    assert_eq!(tables.len(), 3);
    assert_eq!(translated.table_entries.len(), 12);
    let constant = |bits: [u64; 2]| {
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        translated.constants.chunks_exact(16).any(|chunk| chunk == bytes)
    };
    assert!(constant([1, 2]) && constant([3, 4]) && constant([5, 6]));
    for relocation in translated.relocations.iter().filter(|one| one.target == Target::Constants) {
        let start = relocation.addend + 4;
        assert!((0..translated.constants.len() as i64).contains(&start), "a constant at {start}");
    }
}

#[test]
fn a_jump_table_of_ten_thousand_entries_is_moved_out() {
    let depths = "0 1 ".repeat(5000);
    let text = format!("(module (func (param i32) (block (block (br_table {depths} 1 (local.get 0))) (nop))))");
    let translated = compiled(&text).expect("it compiles");
    instructions(&translated);
    assert_eq!(translated.table_entries.len(), 10_001);
}

#[test]
fn a_function_has_more_results_than_there_are_registers() {
    let results = "i64 f32 ".repeat(40);
    let text = format!(
        "(module (type $t (func (result {results}))) (func $f (type $t) {})
         (func (type $t) (call $f)) (func (type $t) (return_call $f)))",
        "(i64.const 1) (f32.const 2) ".repeat(40)
    );
    let translated = compiled(&text).expect("it compiles");
    instructions(&translated);
    assert_eq!(translated.functions.len(), 3);
}

#[test]
fn the_same_module_gives_the_same_bytes() {
    let text = many_values(600);
    assert_eq!(compiled(&text), compiled(&text));
}

#[test]
fn the_modules_of_a_bundle_keep_their_parts() {
    let first = compiled("(module (func (export \"a\") (result f64) (f64.const 1.5)))").expect("it compiles");
    let second = compiled(
        "(module (type $t (func (param i64))) (table 1 funcref) (func $b (export \"b\") (param i64))
         (func (call_indirect (type $t) (i64.const 1) (i32.const 0))) (func $c))",
    )
    .expect("it compiles");
    let both = bundle(&[first.clone(), second.clone()], b"attached").expect("a bundle");
    let record = Record::parse(&both.record).expect("a record");
    assert_eq!(record.attachment, b"attached");
    let names: Vec<&str> = record.functions.iter().map(|function| function.name).collect();
    assert_eq!(names, ["a", "b", "", "c"]);
    let parts: Vec<(u32, u32)> = record.parts.iter().map(|part| (part.functions, part.entries)).collect();
    assert_eq!(parts, [(0, 0), (first.functions.len() as u32, first.entries.len() as u32)]);
    assert_eq!(record.parts[1].record, second.record);
    // Its signatures follow those of the first.
    let signatures = record.functions.iter().map(|function| function.signature);
    assert_eq!(signatures.collect::<Vec<_>>(), [0, 1, 2, 2]);
    let addend = |translated: &Translated, target: Target| {
        translated.relocations.iter().find(|relocation| relocation.target == target).map(|one| one.addend)
    };
    for (target, bytes) in [(Target::FunctionTable, 8), (Target::SignatureTable, 4)] {
        assert_eq!(addend(&both, target), addend(&second, target).map(|addend| addend + bytes), "{target:?}");
    }
    instructions(&both);
}
