//! Events: one thread's entry into a call, its return, and the beginnings and ends of threads and processes.

use alloc::string::String;
use alloc::vec::Vec;

/// Maximum blocks of one event: those that return in one message.
pub const MAX_BLOCKS: usize = 255;

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A thread's code runs for the first time.
    Started = 1,
    /// A thread calls a function.
    Called = 2,
    /// The call returns.
    Returned = 3,
    /// A device that a process has opened.
    Opened = 4,
    /// A process has ended.
    Ended = 5,
    /// A process has installed a program, whose package is the event's one block.
    Installed = 6,
}

impl EventKind {
    fn from_number(number: u8) -> Option<EventKind> {
        Some(match number {
            1 => EventKind::Started,
            2 => EventKind::Called,
            3 => EventKind::Returned,
            4 => EventKind::Opened,
            5 => EventKind::Ended,
            6 => EventKind::Installed,
            _ => return None,
        })
    }
}

/// Contents that a block has when a process gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<T> {
    /// All zero.
    Zero,
    /// What the process that had it before has left there; a replay of that process makes it.
    Left,
    /// These bytes, padded to whole words.
    Bytes(T),
}

/// Memory that a process gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// What is in it, in whole words.
    pub content: Content<Vec<u64>>,
}

/// How a thread starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its first instruction.
    pub entry: u64,
    /// Its argument.
    pub argument: u64,
    /// Address of its thread block.
    pub thread_block: u64,
    /// Address of its process's image.
    pub image: u64,
    /// Whether its process writes debug text to the machine rather than to a sink.
    pub writes_to_machine: bool,
    /// Whether its process is in a hardware domain.
    pub in_domain: bool,
    /// Digest of its process's package.
    pub identity: [u8; 32],
    /// Name of the program.
    pub program: String,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, counted from 0 over all processes.
    pub number: u64,
    /// Id of its process.
    pub process: u64,
    /// Handle of its thread; 0 for [`EventKind::Ended`].
    pub thread: u64,
    /// Its kind.
    pub kind: EventKind,
    /// Number of the function called; of an end, the kind of the epitaph.
    pub function: u16,
    /// Status of a return.
    pub status: u64,
    /// Words: the arguments, the two words of an opened device (handle and kind), the exit status, or the value returned.
    pub words: Vec<u64>,
    /// First words of the message buffer, read by a call or written by it; of starts and ends, text in words.
    pub buffer: Vec<u64>,
    /// Memory with a return.
    pub blocks: Vec<Block>,
}

fn put(into: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
}

/// Words before all others of an event.
const FIXED_WORDS: usize = 5;

impl Event {
    /// Appends all but its blocks to a chunk.
    pub fn write_head(
        into: &mut Vec<u8>,
        (kind, function): (EventKind, u16),
        [number, process, thread, status]: [u64; 4],
        (words, buffer, blocks): (&[u64], &[u64], usize),
    ) {
        let counts = [words.len(), buffer.len(), blocks].map(|count| count.min(255) as u64);
        let first = kind as u64 | u64::from(function) << 8 | counts[0] << 24 | counts[1] << 32 | counts[2] << 40;
        put(into, &[first, number, process, thread, status]);
        put(into, &words[..counts[0] as usize]);
        put(into, &buffer[..counts[1] as usize]);
    }

    /// Appends what comes before a block's bytes, which are padded to whole words. There are none but with [`Content::Bytes`].
    pub fn write_block_head(into: &mut Vec<u8>, address: u64, bytes: u64, content: Content<()>) {
        let kind = match content {
            Content::Bytes(()) => 0,
            Content::Zero => 1,
            Content::Left => 2,
        };
        put(into, &[address, bytes << 2 | kind]);
    }

    /// Appends it to a chunk.
    pub fn write(&self, into: &mut Vec<u8>) {
        let fixed = [self.number, self.process, self.thread, self.status];
        Event::write_head(into, (self.kind, self.function), fixed, (&self.words, &self.buffer, self.blocks.len()));
        for block in self.blocks.iter().take(MAX_BLOCKS) {
            match &block.content {
                Content::Zero => Event::write_block_head(into, block.address, block.bytes, Content::Zero),
                Content::Left => Event::write_block_head(into, block.address, block.bytes, Content::Left),
                Content::Bytes(words) => {
                    Event::write_block_head(into, block.address, block.bytes, Content::Bytes(()));
                    put(into, words);
                }
            }
        }
    }

    /// Takes an event from the start of `words`; `None` if they are none.
    pub(crate) fn read(words: &mut &[u64]) -> Option<Event> {
        let (&[first, number, process, thread, status], mut rest) = words.split_first_chunk::<FIXED_WORDS>()?;
        let kind = EventKind::from_number(first as u8)?;
        let mut take = |count: usize| {
            let (taken, left) = rest.split_at_checked(count)?;
            rest = left;
            Some(taken.to_vec())
        };
        let [words_count, buffer_count, block_count] = [first >> 24, first >> 32, first >> 40].map(|count| count as u8);
        let (own, buffer) = (take(words_count.into())?, take(buffer_count.into())?);
        let mut blocks = Vec::new();
        for _ in 0..block_count {
            let [address, size] = take(2)?.try_into().ok()?;
            let bytes = size >> 2;
            let content = match size & 3 {
                1 => Content::Zero,
                2 => Content::Left,
                3 => return None,
                _ => Content::Bytes(take(usize::try_from(bytes.div_ceil(8)).ok()?)?),
            };
            blocks.push(Block { address, bytes, content });
        }
        *words = rest;
        let function = (first >> 8) as u16;
        Some(Event { number, process, thread, kind, function, status, words: own, buffer, blocks })
    }

    /// The bytes of its first block.
    pub fn bytes(&self) -> Vec<u8> {
        let Some(Block { bytes, content: Content::Bytes(words), .. }) = self.blocks.first() else { return Vec::new() };
        let mut all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        all.truncate(usize::try_from(*bytes).unwrap_or(0));
        all
    }

    /// The text in its buffer, for starts and ends.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// How its thread starts, if it is a start.
    pub fn started(&self) -> Option<Started> {
        let &[entry, argument, thread_block, image, flags, a, b, c, d] = self.words.as_slice() else { return None };
        let mut identity = [0; 32];
        identity.chunks_exact_mut(8).zip([a, b, c, d]).for_each(|(at, word)| at.copy_from_slice(&word.to_le_bytes()));
        (self.kind == EventKind::Started).then(|| Started {
            entry,
            argument,
            thread_block,
            image,
            writes_to_machine: flags & 1 != 0,
            in_domain: flags & 2 != 0,
            identity,
            program: self.text(),
        })
    }
}

impl Started {
    /// Its words, for [`Event::words`].
    pub fn words(&self) -> [u64; 9] {
        let flags = u64::from(self.writes_to_machine) | u64::from(self.in_domain) << 1;
        let mut words = [self.entry, self.argument, self.thread_block, self.image, flags, 0, 0, 0, 0];
        for (word, bytes) in words[5..].iter_mut().zip(self.identity.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        words
    }
}
