//! Interprets events: threads that run and wait, messages between them, requests to devices.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::{DMA, DeviceOperation, StreamRecord, TraceKind};

use crate::{File, Flow, Names, Track};

/// State of a thread according to its events.
#[derive(Clone, Copy, Default)]
enum Doing {
    /// No switch seen yet.
    #[default]
    Unknown,
    Running {
        since_ns: u64,
    },
    Blocked {
        since_ns: u64,
    },
    Ready {
        since_ns: u64,
    },
    /// Back on a processor; its next event names the wait.
    Back {
        since_ns: u64,
        at_ns: u64,
    },
}

/// A request in flight.
struct Request {
    lane: u64,
    name: String,
    since_ns: u64,
}

/// State between events.
#[derive(Default)]
pub(crate) struct Story {
    declared: BTreeMap<Track, ()>,
    doing: BTreeMap<Track, Doing>,
    /// Name of the process that each processor runs, and since when.
    processors: BTreeMap<u64, (String, u64)>,
    /// By process and block.
    requests: BTreeMap<(u64, u64), Request>,
    latest_ns: u64,
}

impl Story {
    pub(crate) fn add(&mut self, event: &StreamRecord, names: &Names, file: &mut dyn File, out: &mut Vec<u8>) {
        let Some(kind) = event.event() else { return };
        self.latest_ns = self.latest_ns.max(event.time_ns);
        let thread = Track::Thread(event.runner, event.thread);
        self.declare(thread, names, file, out);
        if !matches!(kind, TraceKind::Resumed) {
            self.end_wait(thread, kind, event, names, file, out);
        }
        match kind {
            TraceKind::Blocked | TraceKind::GaveWay => self.left(thread, kind, event, names, file, out),
            TraceKind::Resumed => self.back(thread, event, names),
            TraceKind::RequestBegun => self.begun(event),
            TraceKind::RequestDone => self.done(event, names, file, out),
            TraceKind::ThreadEnded => {
                self.left(thread, kind, event, names, file, out);
                file.instant(out, thread, kind.text(), event.time_ns, None);
            }
            TraceKind::Sent => {
                let name = format!("send {}", names.message(event));
                file.instant(out, thread, &name, event.time_ns, Some(Flow::From(flow(event))));
            }
            TraceKind::Received => {
                let name = format!("receive {}", names.message(event));
                file.instant(out, thread, &name, event.time_ns, Some(Flow::To(flow(event))));
            }
            _ => file.instant(out, thread, &about(kind, event, names), event.time_ns, None),
        }
    }

    pub(crate) fn lost(&mut self, count: u64, at_ns: u64, file: &mut dyn File, out: &mut Vec<u8>) {
        self.declare(Track::Trace, &Names::default(), file, out);
        file.instant(out, Track::Trace, &format!("{count} events lost"), at_ns, None);
        // The lost events may include the end of any slice.
        self.doing.clear();
        self.processors.clear();
    }

    pub(crate) fn finish(&mut self, file: &mut dyn File, out: &mut Vec<u8>) {
        let end_ns = self.latest_ns;
        for (track, doing) in core::mem::take(&mut self.doing) {
            match doing {
                Doing::Unknown => {}
                Doing::Running { since_ns } => file.slice(out, track, "run", (since_ns, end_ns)),
                Doing::Blocked { since_ns } => file.slice(out, track, "wait", (since_ns, end_ns)),
                Doing::Ready { since_ns } => file.slice(out, track, "ready", (since_ns, end_ns)),
                Doing::Back { since_ns, at_ns } => {
                    file.slice(out, track, "wait", (since_ns, at_ns));
                    file.slice(out, track, "run", (at_ns, end_ns));
                }
            }
        }
        for ((process, _), request) in core::mem::take(&mut self.requests) {
            let track = Track::Requests(process, request.lane);
            self.declare(track, &Names::default(), file, out);
            file.slice(out, track, &format!("{}, not done", request.name), (request.since_ns, end_ns));
        }
    }

    fn declare(&mut self, track: Track, names: &Names, file: &mut dyn File, out: &mut Vec<u8>) {
        if self.declared.insert(track, ()).is_some() {
            return;
        }
        match track {
            Track::Processor(number) => file.track(out, track, &format!("processor {number}"), "processors"),
            Track::Thread(process, _) => {
                let name = names.process(process);
                let is_of_it = |other: &&Track| matches!(other, Track::Thread(id, _) if *id == process);
                let number = self.declared.keys().filter(is_of_it).count();
                file.track(out, track, &format!("{name} thread {number}"), &name);
            }
            Track::Requests(process, lane) => {
                file.track(out, track, &format!("requests {}", lane + 1), &names.process(process));
            }
            Track::Trace => file.track(out, track, "trace", "trace"),
        }
    }

    /// A thread is on a processor again.
    fn back(&mut self, thread: Track, event: &StreamRecord, names: &Names) {
        let doing = self.doing.entry(thread).or_default();
        *doing = match *doing {
            Doing::Blocked { since_ns } => Doing::Back { since_ns, at_ns: event.time_ns },
            // Ready, or new, or already running: events of switches may be lost.
            _ => Doing::Running { since_ns: event.time_ns },
        };
        let running = format!("{} ({})", names.process(event.runner), event.runner);
        self.processors.insert(event.processor(), (running, event.time_ns));
    }

    /// Writes the wait of a thread that is back, named after its first event.
    fn end_wait(
        &mut self,
        thread: Track,
        kind: TraceKind,
        event: &StreamRecord,
        names: &Names,
        file: &mut dyn File,
        out: &mut Vec<u8>,
    ) {
        let Some(doing) = self.doing.get_mut(&thread) else { return };
        let Doing::Back { since_ns, at_ns } = *doing else { return };
        *doing = Doing::Running { since_ns: at_ns };
        let name = match kind {
            TraceKind::Received => format!("wait for {}", names.message(event)),
            TraceKind::RequestDone => String::from("wait for a device"),
            _ => String::from("wait"),
        };
        file.slice(out, thread, &name, (since_ns, at_ns));
    }

    /// A thread leaves its processor.
    fn left(
        &mut self,
        thread: Track,
        kind: TraceKind,
        event: &StreamRecord,
        names: &Names,
        file: &mut dyn File,
        out: &mut Vec<u8>,
    ) {
        let at_ns = event.time_ns;
        let doing = self.doing.entry(thread).or_default();
        let before = *doing;
        *doing = match kind {
            TraceKind::Blocked => Doing::Blocked { since_ns: at_ns },
            TraceKind::GaveWay => Doing::Ready { since_ns: at_ns },
            _ => Doing::Unknown,
        };
        if let Doing::Running { since_ns } = before {
            file.slice(out, thread, "run", (since_ns, at_ns));
        }
        if let Some((running, since_ns)) = self.processors.remove(&event.processor()) {
            let track = Track::Processor(event.processor());
            self.declare(track, names, file, out);
            file.slice(out, track, &running, (since_ns, at_ns));
        }
    }

    fn begun(&mut self, event: &StreamRecord) {
        let taken: Vec<u64> = self
            .requests
            .iter()
            .filter(|((process, _), _)| *process == event.process)
            .map(|(_, request)| request.lane)
            .collect();
        let lane = (0..).find(|lane| !taken.contains(lane)).unwrap_or(0);
        let what = match event.b {
            DMA => "DMA",
            number => DeviceOperation::from_number(number).map_or("request", DeviceOperation::text),
        };
        let request = Request { lane, name: format!("{what} {} bytes", event.c), since_ns: event.time_ns };
        self.requests.insert((event.process, event.a), request);
    }

    fn done(&mut self, event: &StreamRecord, names: &Names, file: &mut dyn File, out: &mut Vec<u8>) {
        // Unknown if it began before the stream.
        let Some(request) = self.requests.remove(&(event.process, event.a)) else { return };
        let track = Track::Requests(event.process, request.lane);
        self.declare(track, names, file, out);
        file.slice(out, track, &request.name, (request.since_ns, event.time_ns));
    }
}

/// Flow id of a message: the same for send and receive.
pub(crate) fn flow(event: &StreamRecord) -> u64 {
    mixed(event.a ^ mixed(event.b)).max(1)
}

/// A bijection without pattern: that of SplitMix64.
pub(crate) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// An event that is neither a switch, a message nor a request.
pub(crate) fn about(kind: TraceKind, event: &StreamRecord, names: &Names) -> String {
    let text = match kind {
        TraceKind::Created => format!("created by {}", names.process(event.a)),
        TraceKind::ChildCreated | TraceKind::ChildStopped => format!("{}: {}", kind.text(), names.process(event.a)),
        TraceKind::MemoryAllocated | TraceKind::MemoryFreed => format!("{}: {} pages", kind.text(), event.b),
        TraceKind::Note => format!("note {}, {}", event.a, event.b),
        _ => kind.text().to_string(),
    };
    // A parent creates its child, and the kernel ends a process, on a thread that need not be its own.
    if event.process == event.runner { text } else { format!("{}: {text}", names.process(event.process)) }
}
