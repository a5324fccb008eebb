//! A client of a contract of its own: sends pings and says how long an answer took.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use contracts::access::AccessError;
use contracts::namespace::{Namespace, block};
use contracts::pipe_io::Output;
use contracts::report;
use contracts::text::{count, duration};
use ping_pong_contract::ping_pong::{self, ImpReadyAfterPing, ImpStart};

sip::startup!();

const PATH: &str = "/service/pong";

/// Binds to pong, sends the pings and prints one line.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let rounds = u32::try_from(startup.rounds).unwrap_or(1).max(1);
    match play(&mut Namespace::new(startup.namespace), rounds) {
        Ok(text) => output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0)),
        Err(error) => report::path_error(PATH, &error),
    }
}

fn play(namespace: &mut Namespace, rounds: u32) -> Result<String, AccessError> {
    let mut pong = namespace.open(PATH, ping_pong::new_channel, |importer| match importer.receive() {
        ImpStart::Success { next } => Ok(next),
        ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })?;
    // The same block goes there and back all the time: nothing is copied.
    let mut text = block("ping")?;
    let (start_ns, start_cycles) = (sip::time::monotonic(), sip::debug::cycles());
    for number in 0..rounds {
        match pong.ping(number, text).receive() {
            ImpReadyAfterPing::Pong { text: same, next, .. } => {
                text = same;
                pong = next;
            }
            ImpReadyAfterPing::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
    }
    let cycles = sip::debug::cycles().saturating_sub(start_cycles) / u64::from(rounds);
    let each_ns = sip::time::monotonic().saturating_sub(start_ns) / u64::from(rounds);
    Ok(format!("{} pings, {} each ({} cycles)\n", count(rounds.into()), duration(each_ns), count(cycles)))
}
