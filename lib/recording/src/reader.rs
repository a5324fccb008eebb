//! Reading a file: every chunk is checked before any event of it is used.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use crate::chunk::{checksum, word};
use crate::event::{Entry, Reading};
use crate::{Chunk, Event, EventKind, FORMAT, HEADER_BYTES, Header};

/// Why a file is no recording that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingError {
    /// It does not begin as a recording does.
    Foreign,
    /// It has another format.
    Version {
        /// The file's.
        found: u32,
    },
    /// It was recorded by a kernel with other ABI functions.
    Functions,
    /// It ends before its end.
    Cut {
        /// Bytes that are there.
        bytes: usize,
    },
    /// Its bytes are not those that were written.
    Damaged {
        /// Position of the chunk, in bytes.
        at: usize,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Foreign => formatter.write_str("is no recording; `cargo sing run --record FILE` makes one"),
            RecordingError::Version { found } => write!(
                formatter,
                "has format {found} of recordings, and this build reads format {FORMAT}; replay it with the build that recorded it"
            ),
            RecordingError::Functions => formatter.write_str(
                "was recorded by a kernel with other ABI functions; replay it with the build that recorded it",
            ),
            RecordingError::Cut { bytes } => write!(
                formatter,
                "is cut after {bytes} bytes: the machine was killed, or its host's disk was full; record it again"
            ),
            RecordingError::Damaged { at } => {
                write!(formatter, "is damaged: the chunk at byte {at} is not as it was written; copy it again")
            }
        }
    }
}

impl core::error::Error for RecordingError {}

/// A file that has been checked.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The header.
    pub header: Header,
    system: Vec<u64>,
    /// In order.
    events: Vec<Event>,
}

impl Reader {
    /// Reads a file's bytes, all of it.
    ///
    /// # Errors
    /// They are no complete, undamaged recording of this format.
    pub fn new(file: &[u8]) -> Result<Reader, RecordingError> {
        let mut chunks = Chunks { file, at: 0 };
        let cut = RecordingError::Cut { bytes: file.len() };
        let damaged = RecordingError::Damaged { at: 0 };
        let (kind, payload) = chunks.next()?.ok_or(RecordingError::Foreign)?;
        let header = Some(kind)
            .filter(|kind| *kind == Chunk::Header)
            .and_then(|_| Header::read(&words_of(payload)))
            .ok_or(damaged)?;
        if header.functions != abi::TABLE_ID {
            return Err(RecordingError::Functions);
        }
        let mut reader = Reader { header, system: Vec::new(), events: Vec::new() };
        let (mut reading, mut entries) = (Reading::default(), Vec::new());
        loop {
            let at = chunks.at;
            let damaged = RecordingError::Damaged { at };
            match chunks.next()?.ok_or(cut)? {
                (Chunk::System, payload) if reader.system.is_empty() => reader.system = words_of(payload),
                (Chunk::Events, mut rest) => {
                    reading.begin();
                    while !is_filling(rest) {
                        Event::read(&mut rest, &mut reading, &mut entries).ok_or(damaged)?;
                    }
                }
                (Chunk::End, payload) => {
                    let found = entries.iter_mut().map(|entry| reading.find_contents(&mut entry.event));
                    found.collect::<Option<()>>().ok_or(damaged)?;
                    reader.events = in_order(entries);
                    if words_of(payload) != [reader.events.len() as u64] {
                        return Err(damaged);
                    }
                    break;
                }
                _ => return Err(damaged),
            }
        }
        if reader.system.len() as u64 != header.system_bytes.div_ceil(8) {
            return Err(damaged);
        }
        Ok(reader)
    }

    /// The system image.
    pub fn system(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.system.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.header.system_bytes as usize);
        bytes
    }

    /// The events, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The same, without the file.
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }
}

/// Puts events in order, numbers them, and adds the plain calls, each as early as it may have been: right after the
/// last return of its thread.
fn in_order(mut entries: Vec<Entry>) -> Vec<Event> {
    // A call comes before the event whose number it has.
    entries.sort_by_key(|Entry { event, .. }| (event.number, event.kind != EventKind::Called));
    // By index of the event after which they come.
    let mut plain: BTreeMap<usize, u8> = BTreeMap::new();
    let mut returns = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let thread = (entry.event.process, entry.event.thread);
        if entry.plain > 0 {
            plain.insert(returns.get(&thread).copied().unwrap_or(index), entry.plain);
        }
        if matches!(entry.event.kind, EventKind::Started | EventKind::Returned) {
            returns.insert(thread, index);
        }
    }
    let mut events =
        Vec::with_capacity(entries.len() + 2 * plain.values().map(|count| usize::from(*count)).sum::<usize>());
    for (index, entry) in entries.into_iter().enumerate() {
        let Event { number, process, thread, .. } = entry.event;
        if entry.is_event() {
            events.push(entry.event);
        }
        for _ in 0..plain.get(&index).copied().unwrap_or(0) {
            events.extend(Event::plain(number, process, thread));
        }
    }
    events.iter_mut().zip(0..).for_each(|(event, number)| event.number = number);
    events
}

fn words_of(payload: &[u8]) -> Vec<u64> {
    payload.chunks_exact(8).map(word).collect()
}

/// Whether these are no more than the zero bytes after the last event of a chunk.
fn is_filling(rest: &[u8]) -> bool {
    rest.len() < 8 && rest.iter().all(|&byte| byte == 0)
}

struct Chunks<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// The next chunk; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<(Chunk, &'a [u8])>, RecordingError> {
        let rest = self.file.get(self.at..).unwrap_or_default();
        let cut = RecordingError::Cut { bytes: self.file.len() };
        let damaged = RecordingError::Damaged { at: self.at };
        if rest.is_empty() {
            return Ok(None);
        }
        let is_first = self.at == 0;
        let Some((head, rest)) = rest.split_at_checked(HEADER_BYTES) else {
            return Err(if is_first { RecordingError::Foreign } else { cut });
        };
        let [first, count, sum] = [0, 1, 2].map(|index| word(&head[index * 8..]));
        let kind = Chunk::from_number(first as u32).ok_or(if is_first { RecordingError::Foreign } else { damaged })?;
        let version = (first >> 32) as u32;
        if is_first && kind == Chunk::Header && version != FORMAT {
            return Err(RecordingError::Version { found: version });
        }
        if version != FORMAT {
            return Err(damaged);
        }
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(8)).ok_or(damaged)?;
        let payload = rest.get(..bytes).ok_or(cut)?;
        if checksum(payload) != sum {
            return Err(damaged);
        }
        self.at += head.len() + bytes;
        Ok(Some((kind, payload)))
    }
}
