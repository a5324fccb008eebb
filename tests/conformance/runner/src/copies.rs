//! Kills while messages with blocks cross between two processes: the sender's, the receiver's, or both.
//!
//! The two (the citizen's module `copies`) exchange a block and check it whole at each step; whoever is left has to
//! find the other's end, and his lent block back, and exits. Kills inside ABI functions are in `kills`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::process::{Child, EpitaphKind, StopReason};
use sip::time;

use crate::job::{channel, citizen, end_of};
use crate::kills::Numbers;
use crate::{Body, Outcome, Settings, Test, check};

/// Bytes of the block.
const SIZES: [u64; 5] = [1, 200, 4096, 1 << 16, 1 << 20];
/// Exchanges of the run that shows how long they take.
const EXCHANGES: u64 = 4;
/// Bits of the number of the citizen's act.
const LENT: u64 = 1 << 32;
pub(crate) const EXCHANGES_BIT: u32 = 40;

/// The two processes, and the moments of the test.
struct Copies {
    number: u64,
    numbers: Numbers,
}

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    let ways = [("given", 0), ("lent", LENT)];
    let all = ways.into_iter().flat_map(|way| SIZES.map(|bytes| (way, bytes)));
    all.map(|((word, flag), bytes)| Test {
        name: format!("killed in a copy: {bytes} bytes, {word}"),
        body: Body::Copies(copies, bytes | flag),
    })
    .collect()
}

fn copies(settings: &Settings, number: u64) -> Outcome {
    let mut copies = Copies { number, numbers: Numbers::new(number) };
    let begun = time::monotonic();
    for child in copies.start(EXCHANGES)? {
        succeeded(&child)?;
    }
    let run_ns = time::monotonic() - begun;
    for round in 0..settings.kills {
        copies.kill(round, run_ns).map_err(|why| format!("round {round}: {why}"))?;
    }
    Ok(())
}

impl Copies {
    /// Starts the sender and the receiver.
    fn start(&self, exchanges: u64) -> Result<[Child; 2], String> {
        let (importer, exporter) = channel()?;
        let number = self.number | exchanges << EXCHANGES_BIT;
        let receiver = citizen("copy-back").number(number).server(exporter).start()?;
        let sender = citizen("copy-there").number(number).client(importer).start()?;
        Ok([sender, receiver])
    }

    fn kill(&mut self, round: u64, run_ns: u64) -> Outcome {
        let [sender, receiver] = self.start(0)?;
        self.numbers.pause(run_ns);
        match round % 4 {
            0 => one(&sender, &receiver),
            1 => one(&receiver, &sender),
            2 => both(&sender, &receiver),
            _ => both(&receiver, &sender),
        }
    }
}

/// Stops one; the other exits by itself.
fn one(stopped: &Child, other: &Child) -> Outcome {
    stop(stopped)?;
    was_stopped(stopped)?;
    succeeded(other)
}

/// Stops both, without waiting in between.
fn both(first: &Child, second: &Child) -> Outcome {
    stop(first)?;
    stop(second)?;
    was_stopped(first)?;
    let epitaph = end_of(second)?;
    // It may have exited because the first one had ended.
    check!(epitaph.kind == EpitaphKind::Stopped || epitaph.is_success(), "the second of two ended: {epitaph}");
    Ok(())
}

fn stop(child: &Child) -> Outcome {
    child.stop(StopReason::Requested).map_err(|status| format!("it cannot be stopped: {}", status.text()))
}

fn was_stopped(child: &Child) -> Outcome {
    let epitaph = end_of(child)?;
    check!(epitaph.kind == EpitaphKind::Stopped, "it ended otherwise: {epitaph}");
    Ok(())
}

fn succeeded(child: &Child) -> Outcome {
    let epitaph = end_of(child)?;
    check!(epitaph.is_success(), "whoever was left ended: {epitaph}");
    Ok(())
}
