//! Code that was damaged: what is accepted never escapes when it is run; and a check that is left out is found.
mod common;

use common::machine::{Program, Random};
use compose::Linked;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use wasm_record::Imports;

/// Modules whose functions are small, and have all that can go wrong.
const MODULES: [&str; 3] = [
    "(module (memory 1) (global (mut i64) (i64.const 0)) (global $v (mut v128) (v128.const i64x2 0 0))
      (func (param i32) (result i32) (i32.load offset=4 (local.get 0)))
      (func (param i32 i32) (i32.store8 offset=65535 (local.get 0) (local.get 1)))
      (func (param i32 i64) (result i64) (i64.store (local.get 0) (i64.add (i64.load (local.get 0)) (local.get 1)))
        (global.set 0 (local.get 1)) (i64.load16_s offset=6 (local.get 0)))
      (func (param i32 i32) (result i32) (local i32)
        (loop $l (i32.store8 (local.get 2) (i32.load8_u (local.get 0)))
          (local.set 2 (i32.add (local.get 2) (i32.const 1)))
          (br_if $l (i32.lt_u (local.get 2) (local.get 1)))) (i32.load (i32.const 100)))
      (func (param i32) (global.set $v (v128.load offset=16 (local.get 0)))))",
    "(module (memory 1) (type $a (func (param i32) (result i32))) (type $b (func (param i64) (result f64)))
      (table $t 10 funcref) (table $u 10 funcref)
      (func $f (type $a) (call_indirect $t (type $a) (local.get 0) (i32.load (local.get 0))))
      (func $g (type $a) (return_call_indirect $u (type $a) (local.get 0) (local.get 0)))
      (func $h (type $b) (drop (call $f (i32.wrap_i64 (local.get 0)))) (f64.load (i32.wrap_i64 (local.get 0))))
      (func (param i32) (result i32)
        (block (block (block (br_table 0 1 2 (local.get 0))) (return (call $f (i32.const 1))))
         (drop (memory.grow (i32.const 1)))) (return_call $g (i32.load8_u (local.get 0))))
      (func (param i32) (result funcref) (table.set $u (local.get 0) (table.get $t (local.get 0))) (table.get $t (i32.const 3))))",
    "(module (memory 1)
      (func $many (param i32 i32 i32 i32 i32 i32 i32 i64 f64) (result i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
        (i64.load (local.get 6)) (local.get 7) (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5)
        (i64.const 6) (i64.const 7) (i64.const 8))
      (func (param i32 i64) (result i64)
        (call $many (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0)
          (local.get 1) (f64.const 0))
        (drop) (drop) (drop) (drop) (drop) (drop) (drop) (drop) (drop) (i64.store (i32.const 8) (i64.load (local.get 0)))
        )
      (func (param i32) (result i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
        (return_call $many (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0)
          (local.get 0) (i64.const 7) (f64.const 0))))",
];

fn compiled() -> Vec<Linked> {
    let compile =
        |text: &&str, bounds| common::compile(text.as_bytes(), &Imports::default(), bounds).expect("compiles");
    common::BOUNDS.iter().flat_map(|&bounds| MODULES.iter().map(move |text| compile(text, bounds))).collect()
}

/// Runs all functions; tells the first escape.
fn escape(linked: &Linked, functions: std::ops::Range<usize>, random: &mut Random, runs: usize) -> Option<String> {
    let program = Program::new(linked);
    let mut outcomes = functions.flat_map(|function| (0..runs).map(move |_| function));
    outcomes.find_map(|function| program.run(function, random).err().map(|why| format!("function {function} {why}")))
}

fn function_count(linked: &Linked) -> usize {
    u64::from_le_bytes(linked.data[32..40].try_into().expect("eight bytes")) as usize
}

#[test]
fn good_code_does_not_escape() {
    for linked in compiled() {
        assert_eq!(common::verify(&linked).map(|_| ()), Ok(()));
        assert_eq!(escape(&linked, 0..function_count(&linked), &mut Random(7), 200), None);
    }
}

/// The branches to traps that guard accesses and calls: all but those that guard arithmetic, of which there are none here.
fn checks(linked: &Linked) -> Vec<Instruction> {
    let all: Vec<Instruction> =
        Decoder::with_ip(64, &linked.text, linked.text_address, DecoderOptions::NONE).iter().collect();
    let is_trap = |target: u64| {
        all.binary_search_by_key(&target, Instruction::ip).is_ok_and(|at| all[at].mnemonic() == Mnemonic::Ud2)
    };
    all.iter().filter(|one| one.is_jcc_short_or_near() && is_trap(one.near_branch64())).copied().collect()
}

/// A compiler that leaves out one check is always found; many of them would escape.
#[test]
fn a_check_that_is_left_out_is_found() {
    let mut random = Random(11);
    let (mut all, mut escaped) = (0, 0);
    for linked in compiled() {
        for check in checks(&linked) {
            let mut broken = linked.clone();
            let at = (check.ip() - linked.text_address) as usize;
            broken.text[at..at + check.len()].fill(0x90);
            let outcome = common::verify(&broken);
            assert!(outcome.is_err(), "without the check\n{}", common::around(&linked, check.ip()));
            all += 1;
            let function = Program::new(&linked).function_at(check.ip()).expect("a function");
            escaped += usize::from(escape(&broken, function..function + 1, &mut random, 60).is_some());
        }
    }
    assert!(all > 20 && escaped * 2 > all, "{escaped} of {all} escaped");
}

/// Damage of every kind: a bit, a byte, an instruction's place taken by another's.
fn damage(text: &mut [u8], random: &mut Random) {
    let at = random.below(text.len());
    match random.below(4) {
        0 => text[at] ^= 1 << random.below(8),
        1 => text[at] = random.next() as u8,
        2 => text[at] = text[at].wrapping_add(if random.below(2) == 0 { 1 } else { 0xff }),
        _ => {
            let from = random.below(text.len());
            let bytes = (1 + random.below(7)).min(text.len() - at.max(from));
            text.copy_within(from..from + bytes, at);
        }
    }
}

#[test]
fn what_is_accepted_does_not_escape() {
    let mutants: usize = std::env::var("MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(3000);
    let mut random = Random(std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1));
    let mut accepted = 0;
    for linked in compiled() {
        for _ in 0..mutants {
            let mut mutant = linked.clone();
            damage(&mut mutant.text, &mut random);
            if mutant.text == linked.text || common::verify(&mutant).is_err() {
                continue;
            }
            accepted += 1;
            let at = mutant.text.iter().zip(&linked.text).position(|(new, old)| new != old).unwrap_or(0);
            let address = linked.text_address + at as u64;
            let Some(function) = Program::new(&linked).function_at(address) else { continue };
            if let Some(why) = escape(&mutant, function..function + 1, &mut random, 8) {
                panic!("{why}\nof\n{}is\n{}", common::around(&linked, address), common::around(&mutant, address));
            }
        }
    }
    println!("{accepted} of {} accepted", mutants * common::BOUNDS.len() * MODULES.len());
    assert!(accepted > mutants / 50, "{accepted} accepted");
}
