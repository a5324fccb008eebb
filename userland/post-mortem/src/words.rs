//! Trace events as text.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::diagnostics::{TraceKind, TraceRecord};
use sip::process::EpitaphKind;
use text::count;

use crate::conversations::Message;

/// Program names by process id.
pub struct Names(BTreeMap<u64, String>);

impl Names {
    /// Creates the map.
    pub fn new(known: impl Iterator<Item = (u64, String)>) -> Names {
        Names(known.collect())
    }

    /// Returns program and process id, for people.
    pub fn title(&self, id: u64) -> String {
        match self.0.get(&id) {
            Some(name) => format!("{name} (process {id})"),
            None if id == 0 => String::from("the kernel"),
            None => format!("process {id}"),
        }
    }
}

/// Endpoints by handle. A handle means nothing to users, so each gets a number in order of appearance.
#[derive(Default)]
pub struct Endpoints(Vec<u64>);

impl Endpoints {
    /// Returns the number of a handle.
    pub fn number(&mut self, handle: u64) -> usize {
        match self.0.iter().position(|known| *known == handle) {
            Some(index) => index + 1,
            None => {
                self.0.push(handle);
                self.0.len()
            }
        }
    }
}

/// Formats the time since the machine started.
pub fn seconds(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    format!("{}.{:03} s", milliseconds / 1_000, milliseconds % 1_000)
}

/// Formats a line for each event. Consecutive events with the same text are one line.
pub fn tell(events: &[TraceRecord], names: &Names) -> String {
    tell_with(events, &[], names, &mut Endpoints::default())
}

/// The same with what is known of the events that are messages, by their index.
pub fn tell_with(
    events: &[TraceRecord],
    messages: &[Option<Message>],
    names: &Names,
    endpoints: &mut Endpoints,
) -> String {
    let mut out = String::new();
    if let Some(first) = events.first().filter(|first| first.sequence > 0) {
        out += &format!("  ({} earlier events are not kept)\n", count(first.sequence));
    }
    let mut latest_ns = 0;
    let message = |index: usize| messages.get(index).and_then(Option::as_ref);
    let texts: Vec<String> =
        events.iter().enumerate().map(|(index, event)| words(event, message(index), names, endpoints)).collect();
    let mut index = 0;
    while let (Some(event), Some(text)) = (events.get(index), texts.get(index)) {
        let repeats = texts[index..].iter().take_while(|other| *other == text).count();
        // Some events carry the time of the processor's last tick, which may be earlier than the event before.
        latest_ns = event.time_ns.max(latest_ns);
        let times = if repeats > 1 { format!(", {repeats} times") } else { String::new() };
        out += &format!("{:>12}  {text}{times}\n", seconds(latest_ns));
        index += repeats.max(1);
    }
    out
}

fn words(event: &TraceRecord, message: Option<&Message>, names: &Names, endpoints: &mut Endpoints) -> String {
    let TraceRecord { a, b, .. } = *event;
    let Some(kind) = TraceKind::from_number(event.kind) else {
        return format!("unknown event ({})", event.kind);
    };
    match kind {
        TraceKind::Created => format!("was created by {}", names.title(a)),
        TraceKind::Started => String::from("started"),
        TraceKind::Sent => format!("sent {}", message_text(b, message, endpoints.number(a))),
        TraceKind::Received => format!("received {}", message_text(b, message, endpoints.number(a))),
        TraceKind::ChannelCreated => {
            format!("created a channel, endpoints {} and {}", endpoints.number(a), endpoints.number(b))
        }
        TraceKind::EndpointClosed => format!("closed endpoint {}", endpoints.number(a)),
        TraceKind::ThreadCreated => String::from("created a thread"),
        TraceKind::ThreadEnded => String::from("ended a thread"),
        TraceKind::ChildCreated => format!("created {}", names.title(a)),
        TraceKind::ChildStopped => format!("stopped {}", names.title(a)),
        TraceKind::MemoryAllocated => format!("allocated {b} pages of memory"),
        TraceKind::MemoryFreed => format!("freed {b} pages of memory"),
        TraceKind::QuotaExceeded => format!("exceeded its quota of {}", quota(a)),
        TraceKind::Note => format!("noted {a}, {b}"),
        TraceKind::Ended => match EpitaphKind::from_number(a) {
            Some(EpitaphKind::Exited) => format!("exited with status {}", b as i64),
            Some(kind) => String::from(end(kind)),
            None => format!("ended for an unknown reason ({a})"),
        },
        TraceKind::CameHome => String::from("got a lent block back"),
        TraceKind::Blocked
        | TraceKind::GaveWay
        | TraceKind::Resumed
        | TraceKind::RequestBegun
        | TraceKind::RequestDone
        | TraceKind::CoreBegins
        | TraceKind::FaultedAt
        | TraceKind::CalledFrom
        | TraceKind::HeldEndpoint
        | TraceKind::HeldPeer
        | TraceKind::HeldBlock
        | TraceKind::HeldLoan
        | TraceKind::CoreEnds => format!("{}: {a:#x}, {b:#x}", kind.text()),
    }
}

fn message_text(tag: u64, message: Option<&Message>, endpoint: usize) -> String {
    match message {
        None => format!("message {tag} on endpoint {endpoint}"),
        Some(Message { contract, name, state: None }) => format!("{name} on endpoint {endpoint} ({contract})"),
        Some(Message { contract, name, state: Some(state) }) => {
            format!("{name} on endpoint {endpoint} ({contract}, {state})")
        }
    }
}

fn end(kind: EpitaphKind) -> &'static str {
    match kind {
        EpitaphKind::Exited => "exited",
        EpitaphKind::Panicked => "panicked",
        EpitaphKind::Faulted => "faulted",
        EpitaphKind::StackOverflow => "overflowed a stack",
        EpitaphKind::Stopped => "was stopped",
        EpitaphKind::ContractViolation => "violated a contract",
        EpitaphKind::Orphaned => "ended with its parent",
        EpitaphKind::NotStarted => "could not be started",
        EpitaphKind::MemoryRanOut => "was ended because memory ran out",
    }
}

/// Quotas in the order of the manifest.
fn quota(which: u64) -> &'static str {
    const QUOTAS: [&str; 7] =
        ["memory", "blocks", "threads", "handles", "channels", "children", "what the kernel keeps for it"];
    usize::try_from(which).ok().and_then(|index| QUOTAS.get(index)).copied().unwrap_or("something")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: u64, time_ns: u64, kind: TraceKind, a: u64, b: u64) -> TraceRecord {
        TraceRecord { sequence, kind: kind as u64, a, b, time_ns }
    }

    #[test]
    fn events_are_told_in_words_with_times_that_never_go_back() {
        let names = Names::new([(7, String::from("shell")), (9, String::from("cat"))].into_iter());
        let events = [
            event(3, 1_500_000_000, TraceKind::Created, 7, 0),
            event(4, 1_501_000_000, TraceKind::Sent, 0x2a, 5),
            event(5, 1_490_000_000, TraceKind::Sent, 0x2a, 5),
            event(6, 1_501_500_000, TraceKind::Received, 0x2b, 1),
            event(6, 1_501_500_000, TraceKind::EndpointClosed, 0x2a, 0),
            event(6, 1_502_000_000, TraceKind::ChildStopped, 9, 0),
            event(7, 1_499_000_000, TraceKind::QuotaExceeded, 2, 0),
            event(8, 62_000_000_000, TraceKind::Ended, EpitaphKind::Exited as u64, 3),
        ];
        let expected = "  (3 earlier events are not kept)\n\
                        \x20    1.500 s  was created by shell (process 7)\n\
                        \x20    1.501 s  sent message 5 on endpoint 1, 2 times\n\
                        \x20    1.501 s  received message 1 on endpoint 2\n\
                        \x20    1.501 s  closed endpoint 1\n\
                        \x20    1.502 s  stopped cat (process 9)\n\
                        \x20    1.502 s  exceeded its quota of threads\n\
                        \x20   62.000 s  exited with status 3\n";
        assert_eq!(tell(&events, &names), expected);
    }

    #[test]
    fn what_is_not_known_is_told_as_that() {
        let names = Names::new(core::iter::empty());
        let strange = TraceRecord { sequence: 0, kind: 999, a: 0, b: 0, time_ns: 0 };
        assert!(tell(&[strange], &names).contains("unknown event (999)"));
        let text = tell(&[event(0, 0, TraceKind::Created, 0, 0), event(1, 0, TraceKind::Ended, 999, 0)], &names);
        assert!(text.contains("was created by the kernel") && text.contains("(999)"), "{text}");
        assert_eq!(tell(&[], &names), "");
    }
}
