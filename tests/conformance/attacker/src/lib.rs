//! Attacks the system as a program that bypassed every source check could: raw ABI calls with arbitrary arguments, raw
//! memory, raw machine instructions.
//!
//! One act per process: the parameter `act` names it. Acts that check something panic on a violation; acts that must
//! not survive end by exiting, which the runner does not expect. Deliberately not here: attacks on memory that the
//! process can reach anyway; only the check of a program's code prevents those.
#![no_std]

extern crate alloc;

mod abuse;
mod accounts;
mod blocks;
mod children;
mod claims;
mod contention;
mod domains;
mod faults;
mod hardware;
mod host_calls;
mod killed;
mod left;
mod messages;
mod objects;
mod raw;
mod refusals;
mod stacks;

use sip::Deadline;

pub(crate) type Act = fn(u64) -> i32;

const ACTS: &[&[(&str, Act)]] = &[
    &[("exit", |number| number as i32), ("sleep", |_| sleep_forever())],
    faults::ACTS,
    stacks::ACTS,
    messages::ACTS,
    blocks::ACTS,
    refusals::ACTS,
    claims::ACTS,
    contention::ACTS,
    children::ACTS,
    abuse::ACTS,
    killed::ACTS,
    accounts::ACTS,
    hardware::ACTS,
    host_calls::ACTS,
    domains::ACTS,
    left::ACTS,
];

/// Performs the requested act. Given endpoints are taken as raw handles.
pub fn main(_: ()) -> i32 {
    let act = sip::config::required::<alloc::string::String>(0, "act").expect("an act");
    let number = sip::config::with_default::<i64>(1, "number", "0").expect("a number");
    // So that the image declares the contracts it uses, as every image does.
    drop(conformance_contract::errand::new_channel());
    drop(conformance_contract::welcome::new_channel());
    let Some((_, act)) = ACTS.iter().copied().flatten().find(|(name, _)| *name == act) else {
        panic!("there is no act `{act}`");
    };
    act(number as u64)
}

fn sleep_forever() -> ! {
    loop {
        sip::thread::sleep(Deadline::NEVER);
    }
}
