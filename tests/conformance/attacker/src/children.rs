//! Acts on children that do not run yet: more than they may be given, and what they are given while their handles change.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use sip::abi::limits::{PARAMETER_BYTES, TEXT_BYTES};
use sip::process::EpitaphKind;
use sip::{Status, thread};

use crate::Act;
use crate::raw::{abi, must, put_text, refused};

pub(crate) const ACTS: &[(&str, Act)] =
    &[("fill-parameters", |_| fill_parameters()), ("give-to-what-is-given-up", |_| give_to_what_is_given_up())];

/// The parameter `act` of this program, and one that it has not got.
const ACT: u64 = 0;
const BEYOND: u64 = 3;
/// What says that no more is to be given.
const OVER: u64 = u64::MAX;
/// Children that are given up under the writer's hands.
const ROUNDS: usize = 4_000;
/// How often the writer tries before it lets others run.
const ATTEMPTS: usize = 50;

fn child() -> u64 {
    must("process_create", &[put_text("conformance-attacker")])
}

/// As much as goes into a parameter, and more.
fn fill_parameters() -> i32 {
    let child = child();
    for index in [BEYOND, 64, u64::from(u32::MAX) + 1, u64::MAX] {
        refused("process_give_parameter", &[child, index, 8], &[Status::NotFound]);
    }
    let piece = TEXT_BYTES as u64;
    for _ in 0..PARAMETER_BYTES as u64 / piece {
        must("process_give_parameter", &[child, ACT, piece]);
    }
    refused("process_give_parameter", &[child, ACT, 1], &[Status::TooLarge]);
    must("process_give_parameter", &[child, ACT, 0]);
    refused("process_give_parameter", &[child, ACT, piece + 1], &[Status::TooLarge]);
    must("process_release", &[child]);
    refused("process_give_parameter", &[child, ACT, 1], &[Status::BadHandle]);
    0
}

/// While a thread writes to whatever child it was told of, that is given up, and its place taken by another: which finds
/// what it was given itself, and nothing else.
fn give_to_what_is_given_up() -> i32 {
    let told = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&told);
    let writer = thread::spawn(move || {
        let mut given = 0u64;
        loop {
            for _ in 0..ATTEMPTS {
                match shared.load(Ordering::Acquire) {
                    OVER => return given,
                    handle => {
                        given += u64::from(abi("process_give_parameter", &[handle, ACT, put_text("-not")]).is_ok())
                    }
                }
            }
            // With one processor the others would get theirs only when it is taken away.
            thread::yield_now();
        }
    });
    let writer = writer.expect("a thread");
    for _ in 0..ROUNDS {
        let old = child();
        told.store(old, Ordering::Release);
        thread::yield_now();
        must("process_release", &[old]);
        let next = child();
        must("process_give_parameter", &[next, ACT, put_text("exit")]);
        must("process_start", &[next]);
        let kind = must("process_wait", &[next, u64::MAX]);
        assert_eq!(kind, EpitaphKind::Exited as u64, "a child was given what was meant for another");
        must("process_release", &[next]);
    }
    told.store(OVER, Ordering::Release);
    writer.join().expect("the thread ends");
    0
}
