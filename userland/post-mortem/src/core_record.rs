//! The core of a dead process: where it was, and what it held.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::diagnostics::{HeldEndpoint, TraceKind, TraceRecord};

use crate::End;
use crate::conversations::{self, Contracts};
use crate::words::{self, Endpoints, Names, seconds};

/// The records of a core, in the order of the kernel.
#[derive(Clone, Debug)]
pub struct Core {
    /// Beginning of the identity of the program's package, as hexadecimal digits.
    pub identity: String,
    records: Vec<TraceRecord>,
}

impl Core {
    /// Splits a trace into its events and the core that follows them, if there is one.
    pub fn split(trace: &[TraceRecord]) -> (&[TraceRecord], Option<Core>) {
        let begins = |record: &TraceRecord| record.kind == TraceKind::CoreBegins as u64;
        let Some(at) = trace.iter().position(begins) else { return (trace, None) };
        let (events, records) = trace.split_at(at);
        let bytes = records[0].a.to_le_bytes().into_iter().chain(records[0].b.to_le_bytes());
        let identity = bytes.map(|byte| format!("{byte:02x}")).collect();
        (events, Some(Core { identity, records: records[1..].to_vec() }))
    }

    /// Describes it: a line for each code address, endpoint and block.
    pub fn text(&self, names: &Names, contracts: &Contracts, endpoints: &mut Endpoints) -> String {
        let mut out = String::new();
        let (mut endpoints_told, mut blocks_told) = (0, 0);
        for (index, record) in self.records.iter().enumerate() {
            let TraceRecord { a, b, .. } = *record;
            match TraceKind::from_number(record.kind) {
                Some(TraceKind::FaultedAt) => out += &format!("  code {a:#x} fault\n"),
                Some(TraceKind::CalledFrom) => out += &format!("  code {a:#x} +{b:#x}\n"),
                Some(TraceKind::HeldEndpoint) => {
                    endpoints_told += 1;
                    let held = held(HeldEndpoint::from_word(b), contracts);
                    let peer = self.records.get(index + 1).map_or(String::new(), |peer| peer_text(peer, names));
                    out += &format!("  endpoint {}: {held}{peer}\n", endpoints.number(a));
                }
                Some(TraceKind::HeldBlock) => {
                    blocks_told += 1;
                    out += &format!("  block of {b} bytes\n");
                }
                Some(TraceKind::HeldLoan) => {
                    blocks_told += 1;
                    out += &format!("  block of {b} bytes, lent to it\n");
                }
                Some(TraceKind::CoreEnds) => {
                    for (more, what) in
                        [(a.saturating_sub(endpoints_told), "endpoint"), (b.saturating_sub(blocks_told), "block")]
                    {
                        if more > 0 {
                            out += &format!("  {more} more {what}{}\n", if more == 1 { "" } else { "s" });
                        }
                    }
                }
                _ => {}
            }
        }
        out
    }
}

fn held(held: HeldEndpoint, contracts: &Contracts) -> String {
    let side = if held.is_importer { "importer" } else { "exporter" };
    match contracts.get(&held.contract) {
        Some(automaton) => {
            let state = automaton.states.get(usize::from(held.state)).map_or("?", |row| row.name.as_str());
            format!("{}, {side}, in state {state}", automaton.name)
        }
        None => format!("{side} of an unknown contract"),
    }
}

fn peer_text(peer: &TraceRecord, names: &Names) -> String {
    let to = match peer.a {
        0 => String::from("; its peer was closed, or in a message"),
        id => format!("; its peer had {}", names.title(id)),
    };
    match peer.b {
        0 => to,
        waiting => format!("{to}; {waiting} unread message{}", if waiting == 1 { "" } else { "s" }),
    }
}

/// Writes a death in the form that `cargo sing autopsy` reads; `None` if no core of it is kept.
pub fn core_text(end: &End<'_>, trace: &[TraceRecord], names: &Names, contracts: &Contracts) -> Option<String> {
    let (events, core) = Core::split(trace);
    let core = core?;
    let mut endpoints = Endpoints::default();
    let told = words::tell_with(events, &conversations::messages(trace, contracts), names, &mut endpoints);
    let mut out = format!("core of process {}: {} {}\n", end.id, end.program, core.identity);
    out += &format!("  ended at {}: {}\n", seconds(end.time_ns), end.text);
    out += &core.text(names, contracts, &mut endpoints);
    out += "  last events:\n";
    out += &told;
    out += &format!("end of core of process {}\n", end.id);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: TraceKind, a: u64, b: u64) -> TraceRecord {
        TraceRecord { sequence: 0, kind: kind as u64, a, b, time_ns: 1_500_000_000 }
    }

    #[test]
    fn a_core_is_told_between_two_lines_that_name_its_process() {
        let names = Names::new([(4, String::from("shell"))].into_iter());
        let trace = [
            record(TraceKind::Started, 0, 0),
            record(TraceKind::CoreBegins, u64::from_le_bytes(*b"\x01\x23\x45\x67\x89\xab\xcd\xef"), 0),
            record(TraceKind::FaultedAt, 0x1a2b, 0),
            record(TraceKind::CalledFrom, 0x3000, 0x48),
            record(TraceKind::HeldEndpoint, 77, HeldEndpoint { contract: 5, state: 1, is_importer: true }.word()),
            record(TraceKind::HeldPeer, 4, 2),
            record(TraceKind::HeldBlock, 1, 4096),
            record(TraceKind::HeldLoan, 1, 5),
            record(TraceKind::CoreEnds, 3, 2),
        ];
        let end = End { id: 9, time_ns: 1_502_000_000, program: "cat", text: "panicked" };
        let text = core_text(&end, &trace, &names, &Contracts::new()).expect("a core");
        assert_eq!(
            text,
            "core of process 9: cat 0123456789abcdef0000000000000000\n\
             \x20 ended at 1.502 s: panicked\n\
             \x20 code 0x1a2b fault\n\
             \x20 code 0x3000 +0x48\n\
             \x20 endpoint 1: importer of an unknown contract; its peer had shell (process 4); 2 unread messages\n\
             \x20 block of 4096 bytes\n\
             \x20 block of 5 bytes, lent to it\n\
             \x20 2 more endpoints\n\
             \x20 last events:\n\
             \x20    1.500 s  started\n\
             end of core of process 9\n"
        );
        assert_eq!(core_text(&end, &trace[..1], &names, &Contracts::new()), None);
    }

    #[test]
    fn lines_of_epitaphs_are_read() {
        let end = End::parse("17 1500 cat panicked at a b").expect("a line");
        assert_eq!((end.id, end.time_ns, end.program, end.text), (17, 1500, "cat", "panicked at a b"));
        assert_eq!(End::parse("x 1500 cat"), None);
    }
}
