//! Real functions, allocated on the other side of bytes: the same code; and answers that are none, which never panic.

use std::cell::RefCell;

use regalloc2::seam::{self, Allocator};
use regalloc2::{Function, MachineEnv, Output, RegallocOptions};
use register_allocation::{Malformed, Request, answer, encode};
use wasm_record::Imports;
use wasm_translate::{Bounds, Translated, translate};

/// A module with loops, calls, values of both classes that live long, and a vector.
const MODULE: &str = "(module
    (type $t (func (param i32) (result i32)))
    (memory 1 2) (table 4 funcref) (global $g (mut v128) (v128.const i64x2 1 2))
    (func $f (export \"f\") (type $t) (local i64 f64 v128 i32)
        (local.set 3 (v128.load (local.get 0)))
        (loop $again
            (local.set 1 (i64.add (local.get 1) (i64.div_u (i64.load (local.get 0)) (i64.const 7))))
            (local.set 2 (f64.sqrt (f64.add (local.get 2) (f64.convert_i64_s (local.get 1)))))
            (local.set 4 (i32.add (local.get 4) (call $f (i32.shl (local.get 0) (local.get 4)))))
            (br_if $again (i32.lt_u (local.get 4) (i32.const 100))))
        (block (block (block (br_table 0 1 2 (local.get 0)))))
        (global.set $g (i8x16.add (global.get $g) (local.get 3)))
        (if (result i32) (local.get 0)
            (then (call_indirect (type $t) (i32.load (local.get 0)) (i32.const 1)))
            (else (i32.trunc_sat_f64_u (f64.mul (local.get 2) (f64.convert_i64_u (local.get 1))))))))";

/// A change of an answer.
type Change = Box<dyn FnMut(&mut Vec<u8>)>;

/// What this thread has the seam do.
#[derive(Default)]
struct Plan {
    /// Whether functions pass as bytes.
    is_on: bool,
    /// Changes an answer.
    change: Option<Change>,
    /// What passed.
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
    refused: Vec<Malformed>,
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
}

struct Seam;

impl Allocator for Seam {
    fn allocate(&self, function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Option<Output> {
        PLAN.with_borrow_mut(|plan| {
            if !plan.is_on {
                return None;
            }
            let bytes = encode(function, env, options).expect("it can be written");
            let request = Request::decode(&bytes).expect("it is a function");
            let output = request.allocate().expect("it is allocated");
            request.prove(&output).expect("it is right");
            let mut answered = answer::encode(&output);
            plan.requests.push(bytes);
            if let Some(change) = &mut plan.change {
                change(&mut answered);
            }
            plan.answers.push(answered.clone());
            answer::decode(&answered, function, env).map_err(|malformed| plan.refused.push(malformed)).ok()
        })
    }
}

fn compiled() -> Translated {
    let bytes = wat::parse_str(MODULE).expect("a module");
    translate(&bytes, &Imports::default(), Bounds::Checked, &mut |_, _| ()).expect("it compiles")
}

/// Compiles with a plan; returns what came of it.
fn with(change: Option<Change>) -> (Translated, Plan) {
    seam::set(Box::new(Seam));
    PLAN.set(Plan { is_on: true, change, ..Plan::default() });
    let translated = compiled();
    (translated, PLAN.take())
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn the_code_is_the_same() {
    let alone = compiled();
    let (apart, plan) = with(None);
    assert_eq!(alone, apart);
    assert!(plan.requests.len() >= 2 && plan.refused.is_empty(), "{:?}", plan.refused);
}

/// Whatever word is changed to whatever: refused, or code comes out.
#[test]
fn a_changed_answer_is_refused_or_makes_code() {
    let mut refused = 0;
    for seed in 1..400u64 {
        let change = move |bytes: &mut Vec<u8>| {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let place = random(&mut state) as usize % bytes.len();
            match seed % 4 {
                0 => bytes[place] ^= 1 << (random(&mut state) % 8),
                1 => bytes[place / 4 * 4..][..4].copy_from_slice(&(random(&mut state) as u32).to_le_bytes()),
                2 => bytes.truncate(place),
                _ => bytes[place / 4 * 4] = random(&mut state) as u8 % 32,
            }
        };
        refused += usize::from(!with(Some(Box::new(change))).1.refused.is_empty());
    }
    assert!(refused > 200, "{refused}");
}

/// Changes the first word that this takes.
fn first(mut rule: impl FnMut(u32) -> Option<u32> + 'static) -> Option<Change> {
    Some(Box::new(move |bytes| {
        for word in bytes.as_chunks_mut().0.iter_mut().skip(3) {
            if let Some(new) = rule(u32::from_le_bytes(*word)) {
                *word = new.to_le_bytes();
                return;
            }
        }
    }))
}

#[test]
fn each_rule_refuses() {
    let register = |word: u32| word >> 29 == 1;
    let cases: [(&str, Option<Change>); 6] = [
        ("it names a register that there is not", first(move |word| register(word).then_some(1 << 29 | 255))),
        ("it names a place that there is not", first(move |word| register(word).then_some(2 << 29 | 0xffff))),
        ("it names a place that there is not", first(move |word| register(word).then_some(0))),
        ("it has more stack slots than the function has values", Some(Box::new(|bytes| bytes[4..8].fill(0xff)))),
        ("it claims more than it holds", Some(Box::new(|bytes| bytes[8..12].fill(0xff)))),
        ("something stands behind its end", Some(Box::new(|bytes| bytes.extend([0; 4])))),
    ];
    for (expected, change) in cases {
        let (_, plan) = with(change);
        assert!(plan.refused.contains(&Malformed(expected)), "{expected}: {:?}", plan.refused);
    }
}

#[test]
fn a_changed_function_is_refused_or_read() {
    let (_, plan) = with(None);
    for request in &plan.requests {
        for seed in 1..2000u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut bytes = request.clone();
            let place = random(&mut state) as usize % bytes.len();
            bytes[place] = random(&mut state) as u8;
            bytes.truncate(bytes.len() - usize::from(seed % 5 == 0) * place.min(7));
            let _ = Request::decode(&bytes);
        }
    }
}

/// Two operands that are swapped fit, and are wrong: the checker says so.
#[test]
fn the_checker_finds_a_wrong_allocation_that_fits() {
    let (_, plan) = with(None);
    let mut wrong = 0;
    for (request, answer) in plan.requests.iter().zip(&plan.answers) {
        let request = Request::decode(request).expect("a function");
        let output = request.answer(answer).expect("an allocation");
        for place in 1..output.allocs.len() {
            let mut changed = output.clone();
            changed.allocs.swap(place - 1, place);
            if changed.allocs == output.allocs || request.answer(&answer::encode(&changed)).is_err() {
                continue;
            }
            wrong += usize::from(request.prove(&changed).is_err());
        }
    }
    assert!(wrong > 10, "{wrong}");
}
