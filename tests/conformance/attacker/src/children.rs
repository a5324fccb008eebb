//! Acts on children that do not run yet: giving too much, and giving while their handles change.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use sip::abi::limits::{PARAMETER_BYTES, TEXT_BYTES};
use sip::process::EpitaphKind;
use sip::{Status, thread};

use crate::Act;
use crate::raw::{abi, must, put_text, refused};

pub(crate) const ACTS: &[(&str, Act)] =
    &[("fill-parameters", |_| fill_parameters()), ("give-to-what-is-given-up", |_| give_to_what_is_given_up())];

/// The parameter `act` of this program, and a nonexistent one.
const ACT: u64 = 0;
const BEYOND: u64 = 3;
/// End marker for the writer.
const OVER: u64 = u64::MAX;
/// Children released while the writer uses them.
const ROUNDS: usize = 4_000;
/// Attempts of the writer before it yields.
const ATTEMPTS: usize = 50;

fn child() -> u64 {
    must("process_create", &[put_text("conformance-attacker")])
}

/// Fills a parameter to its limit, and beyond.
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

/// While a thread writes to the children announced to it, they are released and replaced by others: each child finds
/// exactly what it was given itself.
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
            // On a single processor the others would run only by preemption.
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
