//! Chrome's trace event format: an object with a list of events, times in microseconds.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Write};

use crate::perfetto::category;
use crate::{File, Flow, Track};

/// Process ids of what is no process.
const PROCESSORS: u64 = 1 << 30;
const TRACE: u64 = PROCESSORS + 1;
/// Thread ids of the lanes of requests follow this.
const REQUESTS: u64 = 1 << 24;

/// What has been declared.
pub(crate) struct Json {
    processes: BTreeMap<u64, ()>,
    threads: BTreeMap<Track, u64>,
}

/// Microseconds with the nanoseconds as fraction.
struct Micro(u64);

impl Display for Micro {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A string in quotes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> core::fmt::Result {
        formatter.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(formatter, "\\{letter}")?,
                control if control < ' ' => write!(formatter, "\\u{:04x}", control as u32)?,
                other => formatter.write_char(other)?,
            }
        }
        formatter.write_char('"')
    }
}

impl Json {
    /// Begins a file.
    pub(crate) fn new(out: &mut Vec<u8>) -> Json {
        // Every later event begins with a comma.
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        out.extend_from_slice(b"{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"kernel\"}}");
        Json { processes: BTreeMap::from([(0, ())]), threads: BTreeMap::new() }
    }

    /// Process and thread of a track.
    fn place(&self, track: Track) -> (u64, u64) {
        match track {
            Track::Processor(number) => (PROCESSORS, number + 1),
            Track::Thread(process, _) => (process, self.threads.get(&track).copied().unwrap_or(0)),
            Track::Requests(process, lane) => (process, REQUESTS + lane),
            Track::Trace => (TRACE, 1),
        }
    }

    fn put(&self, out: &mut Vec<u8>, track: Track, rest: &str) {
        let (process, thread) = self.place(track);
        out.extend_from_slice(format!(",\n{{\"pid\":{process},\"tid\":{thread},{rest}}}").as_bytes());
    }
}

fn named(what: &str, name: &str) -> String {
    format!("\"ph\":\"M\",\"name\":\"{what}\",\"args\":{{\"name\":{}}}", Quoted(name))
}

impl File for Json {
    fn track(&mut self, out: &mut Vec<u8>, track: Track, name: &str, process_name: &str) {
        let number = self.threads.len() as u64 + 1;
        self.threads.insert(track, number);
        if self.processes.insert(self.place(track).0, ()).is_none() {
            self.put(out, track, &named("process_name", process_name));
        }
        self.put(out, track, &named("thread_name", name));
    }

    fn slice(&mut self, out: &mut Vec<u8>, track: Track, name: &str, (from_ns, to_ns): (u64, u64)) {
        let (from, lasted) = (Micro(from_ns), Micro(to_ns.saturating_sub(from_ns)));
        let (name, category) = (Quoted(name), category(track, None));
        let rest = format!("\"ph\":\"X\",\"ts\":{from},\"dur\":{lasted},\"name\":{name},\"cat\":\"{category}\"");
        self.put(out, track, &rest);
    }

    fn instant(&mut self, out: &mut Vec<u8>, track: Track, name: &str, at_ns: u64, flow: Option<Flow>) {
        let (at, name, category) = (Micro(at_ns), Quoted(name), category(track, flow));
        let Some(flow) = flow else {
            self.put(
                out,
                track,
                &format!("\"ph\":\"i\",\"s\":\"t\",\"ts\":{at},\"name\":{name},\"cat\":\"{category}\""),
            );
            return;
        };
        // An arrow begins and ends at a slice, which may be as short as nothing.
        self.put(out, track, &format!("\"ph\":\"X\",\"ts\":{at},\"dur\":0,\"name\":{name},\"cat\":\"{category}\""));
        let (phase, id) = match flow {
            Flow::From(id) => ("\"s\"", id),
            Flow::To(id) => ("\"f\",\"bp\":\"e\"", id),
        };
        // As text, because a number of JSON may have 53 bits only.
        self.put(
            out,
            track,
            &format!("\"ph\":{phase},\"ts\":{at},\"id\":\"{id:x}\",\"name\":\"message\",\"cat\":\"message\""),
        );
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }
}
