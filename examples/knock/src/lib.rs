//! A client of a contract of its own: sends knocks and measures the response time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::{Namespace, block};
use knock_answer_contract::knock_answer::{self, ImpReadyAfterKnock, ImpStart};
use stdio::{Output, report};
use text::{count, duration};

sip::startup!();

/// Binds to the service, sends the knocks and prints one line.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let rounds = u32::try_from(startup.rounds).unwrap_or(1).max(1);
    match play(&mut Namespace::new(startup.namespace), &startup.service, rounds) {
        Ok(text) => output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0)),
        Err(error) => report::path_error(&startup.service, &error),
    }
}

fn play(namespace: &mut Namespace, path: &str, rounds: u32) -> Result<String, AccessError> {
    let mut service = namespace.open(path, knock_answer::new_channel, |importer| match importer.receive() {
        ImpStart::Success { next } => Ok(next),
        ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })?;
    // The same block is passed back and forth: nothing is copied.
    let mut text = block("knock")?;
    let (start_ns, start_cycles) = (sip::time::monotonic(), sip::debug::cycles());
    for number in 0..rounds {
        match service.knock(number, text).receive() {
            ImpReadyAfterKnock::Answer { text: same, next, .. } => {
                text = same;
                service = next;
            }
            ImpReadyAfterKnock::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
    }
    let cycles = sip::debug::cycles().saturating_sub(start_cycles) / u64::from(rounds);
    let each_ns = sip::time::monotonic().saturating_sub(start_ns) / u64::from(rounds);
    Ok(format!("{} knocks, {} each ({} cycles)\n", count(rounds.into()), duration(each_ns), count(cycles)))
}
