//! Measures the cost of basic operations, in ticks of the cycle counter: the papers' micro-benchmarks and other
//! operations that every program uses. Each line is `bench NAME TICKS`, the median of many rounds. In pairs mode,
//! measures the throughput of pairs of SIPs running concurrently instead.
//!
//! Deliberately not here: Linux's side of the comparison, which the host tool measures in the same run.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod crowd;
mod measures;
mod median;
mod pairs;

use alloc::format;
use core::fmt::Write;
use stdio::Output;

use crate::measures::{Failure, Other};
use crate::median::Rounds;

sip::startup!();

/// Sizes of the blocks of a message in bytes, with their labels: the papers', and larger ones.
const SIZES: [(&str, usize); 6] =
    [("1", 1), ("32", 32), ("1k", 1 << 10), ("32k", 32 << 10), ("64k", 64 << 10), ("1m", 1 << 20)];

/// Runs all measurements and prints a line for each.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let rounds = Rounds::new(startup.rounds);
    let mut namespace = client::namespace::Namespace::new(startup.namespace);
    let result = match u64::try_from(startup.pairs) {
        Ok(pairs @ 1..) => pairs::measure(pairs, |name, figure| report(&mut output, name, figure)),
        _ => measure(&mut output, rounds, &mut namespace, startup.crowd),
    };
    match result {
        Ok(()) => output.finish_with(0),
        Err(failure) => {
            // The line is the error report; failing to print it changes nothing.
            let _ = writeln!(output, "bench failed: {failure}");
            output.finish_with(1)
        }
    }
}

fn report(output: &mut Output, name: &str, figure: u64) -> Result<(), Failure> {
    writeln!(output, "bench {name} {figure}").map_err(|_| Failure("the output is closed"))
}

fn measure(
    output: &mut Output,
    rounds: Rounds,
    namespace: &mut client::namespace::Namespace,
    crowd: i64,
) -> Result<(), Failure> {
    let mut report = |name: &str, cycles: u64| report(output, name, cycles);
    report("abi_call", measures::abi_call(rounds))?;
    report("thread_yield", measures::thread_yield(rounds)?)?;
    for (name, bytes) in SIZES {
        report(&format!("message_{name}"), measures::message(rounds, Other::Sip, bytes)?)?;
        report(&format!("within_{name}"), measures::message(rounds, Other::Thread, bytes)?)?;
    }
    report("message_number", measures::number(rounds)?)?;
    report("select_extra", measures::select_extra(rounds)?)?;
    report("threads_select", measures::threads_select(rounds)?)?;
    report("page_alloc", measures::page_alloc(rounds)?)?;
    report("compute", measures::compute(rounds)?)?;
    report("channel_create", measures::channel_create(rounds)?)?;
    report("name_bind", measures::name_bind(rounds, namespace)?)?;
    report("access_cached", measures::access_cached(rounds)?)?;
    report("access_decided", measures::access_decided(rounds)?)?;
    report("thread_create", measures::thread_create(rounds)?)?;
    report("process_create", measures::process_create(rounds)?)?;
    if crowd <= 0 {
        return Ok(());
    }
    let crowd = crowd::Crowd::gather(crowd)?;
    report("crowd_sips", crowd.sips())?;
    report("crowd_channels", crowd.channels())?;
    report("crowd_bytes_per_sip", crowd.bytes_per_sip())?;
    report("message_1_crowded", measures::message(rounds, Other::Sip, 1)?)?;
    report("thread_yield_crowded", measures::thread_yield(rounds)?)?;
    report("channel_create_crowded", measures::channel_create(rounds)?)?;
    report("name_bind_crowded", measures::name_bind(rounds, namespace)?)?;
    report("thread_create_crowded", measures::thread_create(rounds)?)?;
    report("process_create_crowded", measures::process_create(rounds)?)?;
    crowd.dismiss()
}
