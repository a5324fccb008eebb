//! The body of the fuzz target `allocations`: the input as a function for the allocator, or as its answer for one function of
//! a module that is compiled.

use std::cell::RefCell;

use regalloc2::seam::{self, Allocator};
use regalloc2::{Function, MachineEnv, Output, RegallocOptions};
use register_allocation::{Request, answer, encode};
use wasm_record::Imports;
use wasm_translate::{Bounds, translate};

/// First byte of an input that is a function. Others count functions of the module, from 1.
pub const AS_FUNCTION: u8 = 0;
/// The module, which the test beside this holds to its text.
const MODULE: &[u8] = include_bytes!("module.wasm");

/// What this thread has the seam do.
#[derive(Default)]
enum Plan {
    #[default]
    Nothing,
    /// Keeps functions and their right answers.
    Keep(Vec<(Vec<u8>, Vec<u8>)>),
    /// Gives an answer for the function after so many.
    Answer(usize, Vec<u8>),
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
}

struct Seam;

impl Allocator for Seam {
    fn allocate(&self, function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Option<Output> {
        PLAN.with_borrow_mut(|plan| match plan {
            Plan::Nothing => None,
            Plan::Keep(kept) => {
                let request = encode(function, env, options).ok()?;
                let output = Request::decode(&request).ok()?.allocate().ok()?;
                kept.push((request, answer::encode(&output)));
                Some(output)
            }
            Plan::Answer(after @ 1.., _) => {
                *after -= 1;
                None
            }
            Plan::Answer(0, bytes) => {
                let bytes = core::mem::take(bytes);
                *plan = Plan::Nothing;
                // What is refused is allocated here; the compiler ends there.
                answer::decode(&bytes, function, env).ok()
            }
        })
    }
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    match bytes.split_first() {
        None => {}
        Some((&AS_FUNCTION, function)) => drop(Request::decode(function)),
        Some((&first, answer)) => {
            let plan = Plan::Answer(usize::from(first) - 1, answer.into());
            // Code comes out, right or wrong: what it may do, the verifier judges.
            assert!(compile(plan).0.is_ok());
        }
    }
}

/// The functions of the module, each with its right answer.
#[allow(dead_code, reason = "a fuzzer begins with what was kept of it")]
pub fn functions() -> Vec<(Vec<u8>, Vec<u8>)> {
    match compile(Plan::Keep(Vec::new())).1 {
        Plan::Keep(kept) => kept,
        _ => Vec::new(),
    }
}

fn compile(plan: Plan) -> (Result<(), wasm_translate::Error>, Plan) {
    seam::set(Box::new(Seam));
    PLAN.set(plan);
    let translated = translate(MODULE, &Imports::default(), Bounds::Checked, &mut |_, _| ());
    (translated.map(drop), PLAN.take())
}
