//! Pairs of SIPs that communicate concurrently, each pair on its own: the throughput of a machine with several
//! processors.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bench_contract::measured::{self, ImpReadyAfterNumber, states::ReadyAfterNumber};
use sip::{Deadline, debug, diagnostics, process, thread, time};

use crate::measures::Failure;

/// Warm-up in nanoseconds after the start, in which all pairs communicate and the load spreads over all processors.
const LEAD_NS: u64 = 100_000_000;
/// Measurement window in milliseconds.
const WINDOW_MS: u64 = 200;
/// Prefix of the per-processor counters of thread switches; the processor's number follows.
const SWITCHES: &str = "switches of processor ";
/// Indices of slots in the manifest of `bench-pair`.
const CALLER: usize = 0;
const OTHER: usize = 1;

/// Measures one pair, then two concurrently, and so on, and reports figures for each number of pairs: round trips,
/// elapsed ticks of the cycle counter and nanoseconds, and switches of each processor.
pub fn measure(pairs: u64, mut report: impl FnMut(&str, u64) -> Result<(), Failure>) -> Result<(), Failure> {
    report("processors", thread::processor_count() as u64)?;
    for count in 1..=pairs.min(64) {
        for (name, figure) in measure_at_once(count)? {
            report(&format!("pairs_{count}_{name}"), figure)?;
        }
    }
    Ok(())
}

/// Two SIPs that communicate with each other, and the endpoint at which one of them reports its count.
struct Pair {
    caller: process::Child,
    asked: process::Child,
    answer: measured::Imp<ReadyAfterNumber>,
}

impl Pair {
    fn start(begin: Deadline) -> Result<Pair, Failure> {
        let (question, caller_end) = measured::new_channel().map_err(|_| Failure("no channel for a pair"))?;
        let (other, asked_end) = measured::new_channel().map_err(|_| Failure("no channel for a pair"))?;
        let asked = process::create("bench-server")
            .map_err(|_| Failure("bench-server could not be created"))?
            .endpoint(0, asked_end)
            .and_then(process::Child::start)
            .map_err(|_| Failure("bench-server could not be started"))?;
        let caller = process::create("bench-pair")
            .map_err(|_| Failure("bench-pair could not be created"))?
            .endpoint(CALLER, caller_end)
            .and_then(|child| child.endpoint(OTHER, other))
            .and_then(|child| child.parameter(0, &format!("{WINDOW_MS}")))
            .and_then(process::Child::start)
            .map_err(|_| Failure("bench-pair could not be started"))?;
        Ok(Pair { caller, asked, answer: question.number(begin.as_ns()) })
    }

    /// Waits for its end; returns its number of round trips.
    fn end(self) -> Result<u64, Failure> {
        let ImpReadyAfterNumber::NumberBack { value, next } = self.answer.receive() else {
            return Err(Failure("one of a pair hung up"));
        };
        drop(next);
        for child in [self.caller, self.asked] {
            child.wait().map_err(|_| Failure("one of a pair did not end"))?;
        }
        Ok(value)
    }
}

/// Figures visible from outside the pairs at one moment.
struct Look {
    nanoseconds: u64,
    ticks: u64,
    switches: Vec<u64>,
}

impl Look {
    fn at(moment: Deadline) -> Result<Look, Failure> {
        time::sleep_until(moment);
        let counters = diagnostics::counters().map_err(|_| Failure("the counters cannot be read"))?;
        let is_switches = |name: &str| name.starts_with(SWITCHES);
        let switches = counters.iter().filter(|counter| is_switches(&diagnostics::name(&counter.name)));
        Ok(Look {
            nanoseconds: time::monotonic(),
            ticks: debug::cycles(),
            switches: switches.map(|counter| counter.value).collect(),
        })
    }
}

/// Measures this many pairs; returns figures by name.
fn measure_at_once(count: u64) -> Result<Vec<(String, u64)>, Failure> {
    let begin = Deadline::after_ns(LEAD_NS);
    let pairs: Vec<Pair> = (0..count).map(|_| Pair::start(begin)).collect::<Result<_, _>>()?;
    let before = Look::at(begin)?;
    let window_ns = WINDOW_MS * 1_000_000;
    let after = Look::at(Deadline::at(begin.as_ns() + window_ns))?;
    let mut round_trips = 0;
    for pair in pairs {
        round_trips += pair.end()?;
    }
    // The two readings are taken slightly late, because other threads run; the pairs themselves keep to the window.
    let looked_ns = u128::from(after.nanoseconds - before.nanoseconds).max(1);
    let ticks = u128::from(after.ticks - before.ticks) * u128::from(window_ns) / looked_ns;
    let mut figures = Vec::from([
        (String::from("round_trips"), round_trips),
        (String::from("ticks"), ticks as u64),
        (String::from("nanoseconds"), window_ns),
    ]);
    let switches = before.switches.iter().zip(&after.switches).map(|(before, after)| after - before);
    figures.extend(switches.enumerate().map(|(number, switches)| (format!("switches_{number}"), switches)));
    Ok(figures)
}
