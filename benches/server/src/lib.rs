//! Answers the benchmark's requests until the channel closes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use bench_contract::measured::ExpReady;

sip::startup!();

/// Serves its only client.
pub fn main(startup: Startup) -> i32 {
    let mut client = startup.client;
    loop {
        client = match client.receive() {
            ExpReady::Number { value, next } => next.number_back(value),
            ExpReady::Block { data, next } => next.block_back(data),
            ExpReady::ChannelClosed(_) => return 0,
        };
    }
}
