//! Exhausts a resource, for tests of a machine that runs out.
//!
//! Refused requests are retried forever, so that only the system can end it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use knock_answer_contract::knock_answer::{Exp, Imp, new_channel, states};
use sip::Deadline;
use sip::exheap::ExVec;
use sip::process::{self, Child};
use stdio::report;

sip::startup!();

/// Allocation unit in bytes.
const PIECE: usize = 256 * 1024;
/// Delay after a refusal.
const PAUSE_MS: u64 = 1;

/// Allocates until it is killed.
pub fn main(startup: Startup) -> i32 {
    match startup.what.as_str() {
        "memory" => take(memory),
        "blocks" => take(|| ExVec::<u8>::new(PIECE).ok()),
        "children" => take(child),
        "channels" => take(channel),
        "nothing" => take(|| None::<()>),
        other => {
            report::error(format_args!("nobody can take all {other}: say memory, blocks, children or channels"));
            1
        }
    }
}

/// Keeps everything it gets.
fn take<T>(mut one: impl FnMut() -> Option<T>) -> i32 {
    let mut all: Vec<T> = Vec::new();
    loop {
        match one() {
            // If the list itself cannot grow, the resource is leaked instead.
            Some(given) if all.try_reserve(1).is_ok() => all.push(given),
            Some(given) => core::mem::forget(given),
            None => sip::thread::sleep(Deadline::after_ms(PAUSE_MS)),
        }
    }
}

fn memory() -> Option<Vec<u8>> {
    let mut piece = Vec::new();
    piece.try_reserve_exact(PIECE).ok()?;
    piece.resize(PIECE, 1);
    Some(piece)
}

fn child() -> Option<Child> {
    let child = process::create("hog").ok()?;
    child.parameter(0, "nothing").and_then(Child::start).ok()
}

/// A channel with full queues.
fn channel() -> Option<(Imp<states::Start>, Exp<states::Ready>)> {
    let (importer, exporter) = new_channel().ok()?;
    Some((importer, exporter.success()))
}
