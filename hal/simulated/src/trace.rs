//! The trace of a run: a hash over everything that happens, in order, and the text of it on request.
//!
//! Two runs with the same hash ended the same calls with the same answers at the same virtual times, wrote the same
//! bytes, and made the same decisions. Deliberately not here: what is worth an entry.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::choices::mixed;

/// Kinds of entries.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Entry {
    /// A call ended: process, function, status, value.
    Call,
    /// Another processor goes on: from, to.
    Switch,
    /// Nothing could run, and time moved: to when.
    Time,
    /// A fault: kind, opportunity, detail.
    Fault,
    /// A request to a device: device, operation, offset, bytes.
    Request,
    /// A request is complete: token, bytes or failure.
    Complete,
    /// The instruction at which code was interrupted: whether a program's, and where.
    Interrupted,
    /// Bytes were written: device, count, hash.
    Bytes,
    /// The end: kind, status.
    End,
}

/// An odd number of 64 bits, as many of them set as not.
const FOLD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    entries: u64,
    text: Option<BufWriter<File>>,
}

impl Trace {
    /// Begins a trace; its text goes to a file, if there is one.
    pub fn new(text: Option<File>) -> Trace {
        Trace { hash: 0, entries: 0, text: text.map(BufWriter::new) }
    }

    /// Adds an entry, at a virtual time in nanoseconds on a processor.
    pub fn add(&mut self, now_ns: u64, processor: usize, entry: Entry, words: &[u64]) {
        self.entries += 1;
        self.mix(now_ns);
        self.mix((entry as u64) << 32 | processor as u64);
        words.iter().for_each(|&word| self.mix(word));
        if let Some(text) = &mut self.text {
            // A trace that cannot be written is short; the hash is not affected.
            let _ = write!(text, "{now_ns:>14} {processor} {entry:?}");
            let _ = words.iter().try_for_each(|word| write!(text, " {word:#x}"));
            let _ = writeln!(text);
        }
    }

    /// Returns the hash of bytes, for an entry.
    pub fn of(bytes: &[u8]) -> u64 {
        // One multiplication of 128 bits for each word, as in wyhash: disks are written by the megabyte.
        let folded = |hash: u64, chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let product = u128::from(hash ^ u64::from_le_bytes(word)) * u128::from(FOLD);
            product as u64 ^ (product >> 64) as u64
        };
        let hash = bytes.chunks(8).fold(mixed(bytes.len() as u64, 0, 0), folded);
        mixed(hash, 0, bytes.len() as u64)
    }

    /// Returns the hash so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Writes out the text.
    pub fn finish(&mut self) {
        if let Some(text) = &mut self.text {
            // As in `add`.
            let _ = text.flush();
        }
    }

    fn mix(&mut self, word: u64) {
        self.hash = mixed(self.hash, 1, word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_entry_counts() {
        let hash = |now, processor, entry, words: &[u64]| {
            let mut trace = Trace::new(None);
            trace.add(now, processor, entry, words);
            trace.hash()
        };
        let one = hash(1, 0, Entry::Call, &[1, 2]);
        assert_eq!(one, hash(1, 0, Entry::Call, &[1, 2]));
        for other in [
            hash(2, 0, Entry::Call, &[1, 2]),
            hash(1, 1, Entry::Call, &[1, 2]),
            hash(1, 0, Entry::Switch, &[1, 2]),
            hash(1, 0, Entry::Call, &[2, 1]),
            hash(1, 0, Entry::Call, &[1]),
        ] {
            assert_ne!(one, other);
        }
        assert_ne!(Trace::of(b"a"), Trace::of(b"a\0"));
    }
}
