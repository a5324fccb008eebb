//! Events: one thread's entry into a call, its return, and the beginnings and ends of threads and processes.

use alloc::string::String;
use alloc::vec::Vec;

use crate::chunk::word;
use crate::packed;

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
    /// Whether its process has memory that no call gives, as only unsafe code has.
    pub has_own_data: bool,
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
    /// Words: the arguments, the three words of an opened device (handle, kind, first I/O port or 0), the exit status, or the value returned.
    pub words: Vec<u64>,
    /// First words of the message buffer, read by a call or written by it; of starts and ends, text in words.
    pub buffer: Vec<u64>,
    /// Memory with a return.
    pub blocks: Vec<Block>,
}

/// What the event before in the same chunk had, which is left out where it is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    number: u64,
    process: u64,
    thread: u64,
}

impl Before {
    /// Before the first event of a chunk.
    pub const NONE: Before = Before { number: 0, process: 0, thread: 0 };
}

/// Set in an event's first byte if its thread is that of the event before.
const SAME_THREAD: u8 = 0x80;
/// Bytes before the words of an event: kind, and numbers of words, words of the buffer, and blocks.
const FIXED_BYTES: usize = 4;
/// Maximum words besides those counted: function, number, process, thread, status.
const FIXED_WORDS: usize = 5;

impl Event {
    /// Appends all but its blocks to a chunk.
    #[inline]
    pub fn write_head(
        (into, before): (&mut Vec<u8>, &mut Before),
        (kind, function): (EventKind, u16),
        [number, process, thread, status]: [u64; 4],
        (words, buffer, blocks): (&[u64], &[u64], usize),
    ) {
        let (words, buffer) = (&words[..words.len().min(255)], &buffer[..buffer.len().min(255)]);
        let is_same = (process, thread) == (before.process, before.thread);
        let flag = if is_same { SAME_THREAD } else { 0 };
        let fixed = [kind as u8 | flag, words.len() as u8, buffer.len() as u8, blocks.min(MAX_BLOCKS) as u8];
        let since = number.wrapping_sub(before.number);
        *before = Before { number, process, thread };
        into.extend_from_slice(&fixed);
        if is_same {
            packed::put(into, &[&[u64::from(function), since, status], words, buffer]);
        } else {
            packed::put(into, &[&[u64::from(function), since, status, process, thread], words, buffer]);
        }
    }

    /// Appends what comes before a block's bytes, which are padded to whole words. There are none but with [`Content::Bytes`].
    pub fn write_block_head(into: &mut Vec<u8>, address: u64, bytes: u64, content: Content<()>) {
        let kind = match content {
            Content::Bytes(()) => 0,
            Content::Zero => 1,
            Content::Left => 2,
        };
        packed::put(into, &[&[address, bytes << 2 | kind]]);
    }

    /// Appends it to a chunk.
    pub fn write(&self, into: &mut Vec<u8>, before: &mut Before) {
        let fixed = [self.number, self.process, self.thread, self.status];
        let counted = (self.words.as_slice(), self.buffer.as_slice(), self.blocks.len());
        Event::write_head((into, before), (self.kind, self.function), fixed, counted);
        for block in self.blocks.iter().take(MAX_BLOCKS) {
            match &block.content {
                Content::Zero => Event::write_block_head(into, block.address, block.bytes, Content::Zero),
                Content::Left => Event::write_block_head(into, block.address, block.bytes, Content::Left),
                Content::Bytes(words) => {
                    Event::write_block_head(into, block.address, block.bytes, Content::Bytes(()));
                    words.iter().for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
                }
            }
        }
    }

    /// Takes an event from the start of `bytes`; `None` if they are none.
    pub(crate) fn read(bytes: &mut &[u8], before: &mut Before) -> Option<Event> {
        let (&[first, words_count, buffer_count, block_count], mut rest) = bytes.split_first_chunk::<FIXED_BYTES>()?;
        let kind = EventKind::from_number(first & !SAME_THREAD)?;
        let is_same = first & SAME_THREAD != 0;
        let fixed = if is_same { FIXED_WORDS - 2 } else { FIXED_WORDS };
        let mut all = packed::take(&mut rest, fixed + usize::from(words_count) + usize::from(buffer_count))?;
        let buffer = all.split_off(fixed + usize::from(words_count));
        let words = all.split_off(fixed);
        let (process, thread) = if is_same { (before.process, before.thread) } else { (all[3], all[4]) };
        let number = before.number.wrapping_add(all[1]);
        *before = Before { number, process, thread };
        let blocks = (0..block_count).map(|_| read_block(&mut rest)).collect::<Option<_>>()?;
        *bytes = rest;
        let function = u16::try_from(all[0]).ok()?;
        Some(Event { number, process, thread, kind, function, status: all[2], words, buffer, blocks })
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
            has_own_data: flags & 4 != 0,
            identity,
            program: self.text(),
        })
    }
}

fn read_block(rest: &mut &[u8]) -> Option<Block> {
    let [address, size] = packed::take(rest, 2)?.try_into().ok()?;
    let bytes = size >> 2;
    let content = match size & 3 {
        0 => {
            let length = usize::try_from(bytes).ok()?.checked_next_multiple_of(8)?;
            let (own, left) = rest.split_at_checked(length)?;
            *rest = left;
            Content::Bytes(own.chunks_exact(8).map(word).collect())
        }
        1 => Content::Zero,
        2 => Content::Left,
        _ => return None,
    };
    Some(Block { address, bytes, content })
}

impl Started {
    /// Its words, for [`Event::words`].
    pub fn words(&self) -> [u64; 9] {
        let flags = [self.writes_to_machine, self.in_domain, self.has_own_data];
        let flags = flags.into_iter().rev().fold(0, |flags, flag| flags << 1 | u64::from(flag));
        let mut words = [self.entry, self.argument, self.thread_block, self.image, flags, 0, 0, 0, 0];
        for (word, bytes) in words[5..].iter_mut().zip(self.identity.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        words
    }
}
