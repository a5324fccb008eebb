//! Perfetto's trace file: `TracePacket`s with `TrackDescriptor`s and `TrackEvent`s.
//!
//! Numbers of fields are those of `protos/perfetto/trace/` of the Perfetto repository. Packets need not be in the order
//! of their times.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::protobuf::{bytes, fixed, number};
use crate::story::mixed;
use crate::{File, Flow, Track};

/// `Trace.packet`.
const PACKET: u64 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u64 = 8;
    pub const SEQUENCE: u64 = 10;
    pub const TRACK_EVENT: u64 = 11;
    pub const TRACK_DESCRIPTOR: u64 = 60;
}

/// Fields of `TrackDescriptor`, `ProcessDescriptor` and `ThreadDescriptor`.
mod descriptor {
    pub const UUID: u64 = 1;
    pub const NAME: u64 = 2;
    pub const PROCESS: u64 = 3;
    pub const THREAD: u64 = 4;
    pub const PARENT: u64 = 5;
    pub const PROCESS_PID: u64 = 1;
    pub const PROCESS_NAME: u64 = 6;
    pub const THREAD_PID: u64 = 1;
    pub const THREAD_TID: u64 = 2;
    pub const THREAD_NAME: u64 = 5;
}

/// Fields of `TrackEvent`.
mod event {
    pub const TYPE: u64 = 9;
    pub const TRACK: u64 = 11;
    pub const CATEGORY: u64 = 22;
    pub const NAME: u64 = 23;
    pub const FLOW: u64 = 47;
    pub const TERMINATING_FLOW: u64 = 48;
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
}

/// Number of the one sequence of packets; 0 is refused.
const SEQUENCE: u64 = 1;
/// The first thread id. Perfetto takes a thread whose id is that of its process for the main one.
const FIRST_THREAD: u64 = 1 << 24;

/// What has been declared.
#[derive(Default)]
pub(crate) struct Perfetto {
    processes: BTreeMap<u64, ()>,
    threads: u64,
}

/// A track's number in the file.
fn uuid(track: Track) -> u64 {
    let [kind, a, b] = match track {
        Track::Processor(number) => [1, number, 0],
        Track::Thread(process, thread) => [2, process, thread],
        Track::Requests(process, lane) => [3, process, lane],
        Track::Trace => [4, 0, 0],
    };
    mixed(mixed(mixed(kind) ^ a) ^ b)
}

/// The number of the track that holds those of a process, or all processors.
fn uuid_above(track: Track) -> Option<u64> {
    match track {
        Track::Thread(process, _) | Track::Requests(process, _) => Some(mixed(mixed(5) ^ process)),
        Track::Processor(_) => Some(mixed(6)),
        Track::Trace => None,
    }
}

fn put(out: &mut Vec<u8>, field: u64, content: &[u8], at_ns: Option<u64>) {
    let mut packet = Vec::new();
    if let Some(at_ns) = at_ns {
        number(&mut packet, packet::TIMESTAMP, at_ns);
    }
    number(&mut packet, packet::SEQUENCE, SEQUENCE);
    bytes(&mut packet, field, content);
    bytes(out, PACKET, &packet);
}

fn put_event(out: &mut Vec<u8>, track: Track, kind: u64, name: Option<&str>, at_ns: u64, flow: Option<Flow>) {
    let mut content = Vec::new();
    number(&mut content, event::TYPE, kind);
    number(&mut content, event::TRACK, uuid(track));
    if let Some(name) = name {
        bytes(&mut content, event::CATEGORY, category(track, flow).as_bytes());
        bytes(&mut content, event::NAME, name.as_bytes());
    }
    match flow {
        Some(Flow::From(id)) => fixed(&mut content, event::FLOW, id),
        Some(Flow::To(id)) => fixed(&mut content, event::TERMINATING_FLOW, id),
        None => {}
    }
    put(out, packet::TRACK_EVENT, &content, Some(at_ns));
}

/// The category of an event, by which Perfetto filters.
pub(crate) fn category(track: Track, flow: Option<Flow>) -> &'static str {
    match (track, flow) {
        (_, Some(_)) => "message",
        (Track::Processor(_), _) => "processor",
        (Track::Thread(..), _) => "thread",
        (Track::Requests(..), _) => "request",
        (Track::Trace, _) => "trace",
    }
}

impl Perfetto {
    /// Declares what is above a track.
    fn above(&mut self, out: &mut Vec<u8>, track: Track, process_name: &str) {
        let Some(above) = uuid_above(track) else { return };
        if self.processes.insert(above, ()).is_some() {
            return;
        }
        let mut content = Vec::new();
        number(&mut content, descriptor::UUID, above);
        if let Track::Thread(process, _) | Track::Requests(process, _) = track {
            let mut inner = Vec::new();
            number(&mut inner, descriptor::PROCESS_PID, process);
            bytes(&mut inner, descriptor::PROCESS_NAME, process_name.as_bytes());
            bytes(&mut content, descriptor::PROCESS, &inner);
        } else {
            bytes(&mut content, descriptor::NAME, process_name.as_bytes());
        }
        put(out, packet::TRACK_DESCRIPTOR, &content, None);
    }
}

impl File for Perfetto {
    fn track(&mut self, out: &mut Vec<u8>, track: Track, name: &str, process_name: &str) {
        self.above(out, track, process_name);
        let mut content = Vec::new();
        number(&mut content, descriptor::UUID, uuid(track));
        if let Some(above) = uuid_above(track) {
            number(&mut content, descriptor::PARENT, above);
        }
        if let Track::Thread(process, _) = track {
            let mut inner = Vec::new();
            number(&mut inner, descriptor::THREAD_PID, process);
            number(&mut inner, descriptor::THREAD_TID, FIRST_THREAD + self.threads);
            bytes(&mut inner, descriptor::THREAD_NAME, name.as_bytes());
            bytes(&mut content, descriptor::THREAD, &inner);
            self.threads += 1;
        } else {
            bytes(&mut content, descriptor::NAME, name.as_bytes());
        }
        put(out, packet::TRACK_DESCRIPTOR, &content, None);
    }

    fn slice(&mut self, out: &mut Vec<u8>, track: Track, name: &str, (from_ns, to_ns): (u64, u64)) {
        put_event(out, track, event::SLICE_BEGIN, Some(name), from_ns, None);
        put_event(out, track, event::SLICE_END, None, to_ns, None);
    }

    fn instant(&mut self, out: &mut Vec<u8>, track: Track, name: &str, at_ns: u64, flow: Option<Flow>) {
        put_event(out, track, event::INSTANT, Some(name), at_ns, flow);
    }

    fn finish(&mut self, _out: &mut Vec<u8>) {}
}
