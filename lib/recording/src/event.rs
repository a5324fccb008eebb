//! Events: one thread's entry into a call, its return, and the beginnings and ends of threads and processes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Status;

use crate::chunk::{Filling, word};
use crate::effects::{self, Named};
use crate::known::{self, Contents, Known};
use crate::packed;

/// Maximum blocks of one event: those that return in one message.
pub const MAX_BLOCKS: usize = 255;

/// In the place of a function's number: a replay says which it is. Of calls that are counted only.
pub const ANY_FUNCTION: u8 = 255;
/// In the place of a function's number, in a file: no call, but those that are counted before it.
const NO_CALL: u8 = 254;
const _: () = assert!(abi::FUNCTIONS.len() <= NO_CALL as usize && Status::Ok as u64 == 0);

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
    /// The bytes with this digest, which are elsewhere in the recording. Only while it is read.
    Again(u64),
}

/// Contents of a block, padded with zeros. Blocks with the same contents may share them.
pub type Words = Arc<[u64]>;

/// Memory that a process gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// What is in it, in whole words.
    pub content: Content<Words>,
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
    /// Its number, counted from 0 over all processes. As it is written, calls are not counted: a call has the number of the
    /// next event that is none, and comes before it.
    pub number: u64,
    /// Id of its process.
    pub process: u64,
    /// Handle of its thread; 0 for [`EventKind::Ended`].
    pub thread: u64,
    /// Its kind.
    pub kind: EventKind,
    /// Number of the function called; of an end, the kind of the epitaph.
    pub function: u8,
    /// Status of a return.
    pub status: u64,
    /// Words: the arguments, the three words of an opened device (handle, kind, first I/O port or 0), the exit status, or the value returned.
    pub words: Vec<u64>,
    /// First words of the message buffer, read by a call or written by it; of starts and ends, text in words.
    pub buffer: Vec<u64>,
    /// Of a call, in the place of its arguments and of what it read, which a replay makes again: [`Digest::check`].
    pub check: Option<u8>,
    /// Memory with a return. Blocks of a message are those that its words name.
    pub blocks: Vec<Block>,
}

/// A digest of all calls that a thread has made so far, in order: functions, arguments and words read. It finds a
/// program that goes another way; it is no signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    /// Adds a call.
    #[must_use]
    #[inline(always)]
    pub fn with(self, function: usize, arguments: &[u64], read: &[u64]) -> Digest {
        const TIMES: u64 = 0x9e37_79b9_7f4a_7c15;
        let words = arguments.iter().chain(read);
        let sum = words.fold(self.0 ^ function as u64, |sum, word| sum.rotate_left(5) ^ word);
        Digest((sum ^ sum >> 32).wrapping_mul(TIMES))
    }

    /// The byte of it that is recorded with each call.
    #[inline(always)]
    pub fn check(self) -> u8 {
        (self.0 >> 56) as u8
    }
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

/// Words of which those of the last call of the same function are left out, bit by bit: most handles and addresses are
/// like those before.
const LAST_WORDS: usize = 16;

/// The first words of the last whole call of each function in a chunk.
#[derive(Debug, Default)]
pub struct Last(Vec<[u64; LAST_WORDS]>);

impl Last {
    /// Before any call, without memory.
    pub const NONE: Last = Last(Vec::new());

    /// Forgets all, before the first event of a chunk.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
        self.0.resize(abi::FUNCTIONS.len(), [0; LAST_WORDS]);
    }

    #[inline]
    fn of(&mut self, function: u8) -> Option<&mut [u64; LAST_WORDS]> {
        self.0.get_mut(usize::from(function))
    }
}

/// What is known while a chunk is read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    before: Before,
    last: Last,
    last_block: u64,
    /// Contents by digest, of all chunks.
    named: BTreeMap<u64, Words>,
}

impl Reading {
    /// At the beginning of a chunk.
    pub(crate) fn begin(&mut self) {
        self.last.clear();
        (self.before, self.last_block) = (Before::NONE, 0);
    }

    /// Gives the blocks of an event the contents that were only named. Chunks of several processors may name those of
    /// each other, so all are read before. `None` if there are none of that name and size.
    pub(crate) fn find_contents(&self, event: &mut Event) -> Option<()> {
        for block in &mut event.blocks {
            if let Content::Again(digest) = block.content {
                let words = self.named.get(&digest).filter(|words| words.len() as u64 == block.bytes.div_ceil(8))?;
                block.content = Content::Bytes(Arc::clone(words));
            }
        }
        Some(())
    }
}

/// An event as it is read, with the number of plain calls before it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub event: Event,
    pub plain: u8,
}

impl Entry {
    /// Whether it is an event, and not the plain calls before it alone.
    pub fn is_event(&self) -> bool {
        !(self.event.kind == EventKind::Called && self.event.check.is_some() && self.event.function == NO_CALL)
    }
}

/// A call with its return. Its arguments and the words that it read are not in it.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    /// Number of the return.
    pub number: u64,
    /// Returns and other events since the call: those with the numbers before.
    pub since_call: u64,
    /// Id of its process.
    pub process: u64,
    /// Handle of its thread.
    pub thread: u64,
    /// Number of the function called.
    pub function: u8,
    /// [`Digest::check`] of the thread's calls.
    pub check: u8,
    /// Calls of the thread since its last entry that returned at once, without value or words.
    pub plain: u8,
    /// Status of the return.
    pub status: u64,
}

/// A call that did not return, or what is to be said of a thread that is in none.
#[derive(Clone, Copy, Debug)]
pub struct Unreturned {
    /// Number of the event that came next when it began.
    pub number: u64,
    /// Id of its process.
    pub process: u64,
    /// Handle of its thread.
    pub thread: u64,
    /// Number of the function called, if it was, with [`Digest::check`].
    pub call: Option<(u8, u8)>,
    /// As [`Whole::plain`].
    pub plain: u8,
}

/// Set in an event's first byte, beside the kind, if its thread is that of the event before.
const SAME_THREAD: u8 = 0x80;
/// If its number is not the next one.
const OTHER_NUMBER: u8 = 0x40;
/// If its status is not `Ok`.
const HAS_STATUS: u8 = 0x20;
/// If it has blocks, whose number follows the head then.
const HAS_BLOCKS: u8 = 0x10;
/// Of a whole call, if other events came between a call and its return, or plain calls before it.
const WAS_LONG: u8 = 0x08;
/// Of a call alone, if it has a check in the place of its words.
const HAS_CHECK: u8 = WAS_LONG;
const FLAGS: u8 = SAME_THREAD | OTHER_NUMBER | HAS_STATUS | HAS_BLOCKS;
/// Bits of the kind.
const KIND: u8 = 0x07;
/// Bits of the kind of a block, below its size.
const KIND_BITS: u32 = 3;
/// A block with bytes.
const PLAIN: u64 = 0;
const ZERO: u64 = 1;
const LEFT: u64 = 2;
/// One with a digest and the bytes.
const NAMED: u64 = 3;
/// One with the digest of bytes that another has.
const AGAIN: u64 = 4;
const DIGEST_BYTES: usize = 8;
/// In the place of the kind: a call and its return in one.
const WHOLE: u8 = 7;
/// Bytes before the words of an event: kind and flags, function, and numbers of words and of words of the buffer; of a
/// whole call, its check and the number of words written.
const HEAD_BYTES: usize = 4;
/// Maximum words besides those counted: number, status, process, thread, and how long a call was.
const FURTHER_WORDS: usize = 5;

/// Puts the words that are not as usual into `further`; returns their flags and number.
#[inline(always)]
fn unusual(
    before: &Before,
    [number, process, thread, status]: [u64; 4],
    further: &mut [u64; FURTHER_WORDS],
) -> (u8, usize) {
    let (mut flags, mut count) = (0, 0);
    let since = number.wrapping_sub(before.number);
    if since != 1 {
        flags |= OTHER_NUMBER;
        further[count] = since;
        count += 1;
    }
    if status != 0 {
        flags |= HAS_STATUS;
        further[count] = status;
        count += 1;
    }
    if (process, thread) == (before.process, before.thread) {
        flags |= SAME_THREAD;
    } else {
        // Handles of threads are much alike.
        further[count] = process;
        further[count + 1] = thread ^ before.thread;
        count += 2;
    }
    (flags, count)
}

/// Writes the fixed bytes of an event to the start of `room`; returns their number.
#[inline(always)]
fn put_head(room: &mut [u8], [kind, function, words, buffer]: [u8; HEAD_BYTES], blocks: usize) -> usize {
    let kind = kind | if blocks > 0 { HAS_BLOCKS } else { 0 };
    room[..HEAD_BYTES].copy_from_slice(&u32::from_le_bytes([kind, function, words, buffer]).to_le_bytes());
    if blocks > 0 {
        room[HEAD_BYTES] = blocks.min(MAX_BLOCKS) as u8;
    }
    HEAD_BYTES + usize::from(blocks > 0)
}

impl Event {
    /// Appends all but its blocks to a chunk. The number of a call is that of the next event which is none.
    pub fn write_head(
        into: &mut Filling,
        (kind, function): (EventKind, u8),
        [number, process, thread, status]: [u64; 4],
        (words, buffer, blocks): (&[u64], &[u64], usize),
    ) {
        into.begin();
        let (words, buffer) = (&words[..words.len().min(255)], &buffer[..buffer.len().min(255)]);
        let mut further = [0; FURTHER_WORDS];
        let (flags, count) = unusual(&into.before, [number, process, thread, status], &mut further);
        into.before = Before { number: last_number(kind, number), process, thread };
        let room = into.room(HEAD_BYTES + 1 + packed::bytes_at_most(FURTHER_WORDS + words.len() + buffer.len()));
        let start = put_head(room, [kind as u8 | flags, function, words.len() as u8, buffer.len() as u8], blocks);
        let length = packed::put(&mut room[start..], &[&further[..count], words, buffer]);
        into.filled(1, start + length);
    }

    /// Appends a call that did not return, with a check in the place of its words.
    pub fn write_unreturned(into: &mut Filling, call: &Unreturned) {
        into.begin();
        let Unreturned { number, process, thread, call, plain } = *call;
        let (function, check) = call.unwrap_or((NO_CALL, 0));
        let mut further = [0; FURTHER_WORDS];
        let (flags, count) = unusual(&into.before, [number, process, thread, 0], &mut further);
        into.before = Before { number: last_number(EventKind::Called, number), process, thread };
        let room = into.room(HEAD_BYTES + packed::bytes_at_most(FURTHER_WORDS));
        let start = put_head(room, [EventKind::Called as u8 | flags | HAS_CHECK, function, check, plain], 0);
        let length = packed::put(&mut room[start..], &[&further[..count]]);
        into.filled(u64::from(call.is_some()) + 2 * u64::from(plain), start + length);
    }

    /// Appends a call and its return in one, with the value and the words written, but without the blocks.
    #[inline]
    pub fn write_whole(into: &mut Filling, call: &Whole, (value, written): (u64, &[u64]), blocks: usize) {
        into.begin();
        let Whole { number, since_call, process, thread, function, check, plain, status } = *call;
        let mut further = [0; FURTHER_WORDS];
        let (flags, mut unusual) = unusual(&into.before, [number, process, thread, status], &mut further);
        into.before = Before { number, process, thread };
        let mut kind = WHOLE | flags;
        let before = since_call << 8 | u64::from(plain);
        if before != 0 {
            kind |= WAS_LONG;
            further[unusual] = before;
            unusual += 1;
        }
        let count = unusual + 1 + written.len();
        let (room, last) = into.room_and_last(HEAD_BYTES + 1 + packed::bytes_at_most(count));
        let Some(last) = last.of(function) else { return };
        let start = put_head(room, [kind, function, check, written.len() as u8], blocks);
        let mut packing = packed::Packing::new(&mut room[start..], count);
        for &word in &further[..unusual] {
            packing.add(word);
        }
        let [last_value, last_written @ ..] = last;
        packing.add(value ^ core::mem::replace(last_value, value));
        let (first, rest) = written.split_at(written.len().min(last_written.len()));
        for (&word, last) in first.iter().zip(last_written) {
            packing.add(word ^ core::mem::replace(last, word));
        }
        for &word in rest {
            packing.add(word);
        }
        let length = packing.length();
        into.filled(2 + 2 * u64::from(plain), start + length);
    }

    /// Appends a block of an event, with its contents if these are to be recorded and not `known`.
    pub fn write_block(
        into: &mut Filling,
        (address, bytes, content): (u64, u64, Content<()>),
        known: &Known,
        contents: &impl Contents,
    ) {
        let length = if content == Content::Bytes(()) { (bytes as usize).next_multiple_of(8) } else { 0 };
        // One block is near the other.
        let near = address ^ core::mem::replace(&mut into.last_block, address);
        let room = into.room(packed::bytes_at_most(2) + DIGEST_BYTES + length);
        if length == 0 {
            let kind = if content == Content::Left { LEFT } else { ZERO };
            let start = packed::put(room, &[&[near, bytes << KIND_BITS | kind]]);
            return into.filled(0, start);
        }
        let size = bytes as usize;
        let has_name = bytes >= known::MIN_BYTES;
        if has_name {
            let digest = known.digest(contents, size);
            if known.has(digest) {
                let start = packed::put(room, &[&[near, bytes << KIND_BITS | AGAIN]]);
                room[start..start + DIGEST_BYTES].copy_from_slice(&digest.to_le_bytes());
                return into.filled(0, start + DIGEST_BYTES);
            }
        }
        let kind = if has_name { NAMED } else { PLAIN };
        let start = packed::put(room, &[&[near, bytes << KIND_BITS | kind]]);
        let first = start + if has_name { DIGEST_BYTES } else { 0 };
        let (own, padding) = room[first..first + length].split_at_mut(size);
        contents.copy(0, own);
        padding.fill(0);
        if has_name {
            // Of what was copied, which may be other than what was there before.
            let digest = known.digest(&&*own, size);
            known.add(digest);
            room[start..first].copy_from_slice(&digest.to_le_bytes());
        }
        into.filled(0, first + length);
    }

    /// Appends it to a chunk. Contents that are `known` are only named.
    pub fn write(&self, into: &mut Filling, known: &Known) {
        if let Some(check) = self.check {
            let Event { number, process, thread, function, .. } = *self;
            let call = Unreturned { number, process, thread, call: Some((function, check)), plain: 0 };
            return Event::write_unreturned(into, &call);
        }
        let fixed = [self.number, self.process, self.thread, self.status];
        let counted = (self.words.as_slice(), self.buffer.as_slice(), self.blocks.len());
        Event::write_head(into, (self.kind, self.function), fixed, counted);
        for block in self.blocks.iter().take(MAX_BLOCKS) {
            let (content, words) = match &block.content {
                Content::Zero => (Content::Zero, [].as_slice()),
                // Whoever reads has them by then.
                Content::Left | Content::Again(_) => (Content::Left, [].as_slice()),
                Content::Bytes(words) => (Content::Bytes(()), &**words),
            };
            let contents: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            Event::write_block(into, (block.address, block.bytes, content), known, &contents.as_slice());
        }
    }

    /// Takes an event, or a whole call, from the start of `bytes`; `None` if they are none.
    pub(crate) fn read(bytes: &mut &[u8], state: &mut Reading, into: &mut Vec<Entry>) -> Option<()> {
        let Reading { before, last, last_block, named } = state;
        let (&[first, function, words_count, buffer_count], mut rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let is_whole = first & KIND == WHOLE;
        let has = |flag: u8| first & flag != 0;
        let has_check = first & KIND == EventKind::Called as u8 && has(HAS_CHECK);
        let was_long = is_whole && has(WAS_LONG);
        let block_count = if has(HAS_BLOCKS) {
            let (&count, after) = rest.split_first()?;
            rest = after;
            count
        } else {
            0
        };
        let head = usize::from(has(OTHER_NUMBER)) + usize::from(has(HAS_STATUS)) + if has(SAME_THREAD) { 0 } else { 2 };
        let first_words = match (is_whole, has_check) {
            (true, _) => 1,
            (_, true) => 0,
            (false, false) => words_count.into(),
        };
        let head = head + usize::from(was_long);
        let buffer_words = if has_check { 0 } else { buffer_count.into() };
        let mut all = packed::take(&mut rest, head + first_words + buffer_words)?;
        let mut words = all.split_off(head);
        let mut further = all.into_iter();
        let since = if has(OTHER_NUMBER) { further.next()? } else { 1 };
        let status = if has(HAS_STATUS) { further.next()? } else { 0 };
        let (process, thread) = if has(SAME_THREAD) {
            (before.process, before.thread)
        } else {
            (further.next()?, further.next()? ^ before.thread)
        };
        let number = before.number.wrapping_add(since);
        let kind = if is_whole {
            EventKind::Returned
        } else {
            let known = FLAGS | if has_check { HAS_CHECK } else { 0 };
            EventKind::from_number(first & KIND).filter(|kind| first & !known == *kind as u8)?
        };
        *before = Before { number: last_number(kind, number), process, thread };
        if is_whole {
            words.iter_mut().zip(last.of(function)?).for_each(|(word, last)| {
                *word ^= *last;
                *last = *word;
            });
            let counted = if was_long { further.next()? } else { 0 };
            let (since_call, plain) = (counted >> 8, counted as u8);
            let number = number.wrapping_sub(since_call);
            let event = Event { number, process, thread, function, check: Some(words_count), ..Event::NONE };
            into.push(Entry { event, plain });
        }
        let check = has_check.then_some(words_count);
        let plain = if has_check { buffer_count } else { 0 };
        let buffer = words.split_off(first_words);
        let blocks = (0..block_count).map(|_| read_block(&mut rest, last_block, named)).collect::<Option<_>>()?;
        let mut event = Event { number, process, thread, kind, function, status, words, buffer, check, blocks };
        if kind == EventKind::Returned {
            event.add_named_blocks();
        }
        into.push(Entry { event, plain });
        *bytes = rest;
        Some(())
    }

    const NONE: Event = Event {
        number: 0,
        process: 0,
        thread: 0,
        kind: EventKind::Called,
        function: 0,
        status: 0,
        words: Vec::new(),
        buffer: Vec::new(),
        check: None,
        blocks: Vec::new(),
    };

    /// A plain call and its return, after the event with this number. Which function it is, and with which status it
    /// returned, is known when it is replayed: [`effects::counted`].
    pub(crate) fn plain(number: u64, process: u64, thread: u64) -> [Event; 2] {
        let call = Event { number, process, thread, function: ANY_FUNCTION, check: Some(0), ..Event::NONE };
        let returned = Event { kind: EventKind::Returned, check: None, words: alloc::vec![0], ..call.clone() };
        [call, returned]
    }

    /// Adds the blocks that are not written, since the words of the return name them and their content is as usual.
    fn add_named_blocks(&mut self) {
        let (function, value) = (self.function.into(), self.words.first().copied().unwrap_or(0));
        let Some(content) = effects::usual_content(function, self.status) else { return };
        let names = effects::named(function, [0; 2], (self.status, value), &self.buffer);
        let mut written = core::mem::take(&mut self.blocks).into_iter().peekable();
        for Named { address, bytes, .. } in names {
            let own = written.next_if(|block| block.address == address);
            self.blocks.push(own.unwrap_or(Block { address, bytes, content: content.clone() }));
        }
        self.blocks.extend(written);
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

/// The number of the last event that has one of its own, after this one.
fn last_number(kind: EventKind, number: u64) -> u64 {
    if kind == EventKind::Called { number.wrapping_sub(1) } else { number }
}

fn read_block(rest: &mut &[u8], last: &mut u64, named: &mut BTreeMap<u64, Words>) -> Option<Block> {
    let [near, size] = packed::take(rest, 2)?.try_into().ok()?;
    let address = near ^ *last;
    *last = address;
    let bytes = size >> KIND_BITS;
    let mut take = |count: usize| -> Option<&[u8]> {
        let (own, left) = rest.split_at_checked(count)?;
        *rest = left;
        Some(own)
    };
    let kind = size & ((1 << KIND_BITS) - 1);
    let content = match kind {
        ZERO => Content::Zero,
        LEFT => Content::Left,
        AGAIN => Content::Again(word(take(DIGEST_BYTES)?)),
        PLAIN | NAMED => {
            let digest = if kind == NAMED { Some(word(take(DIGEST_BYTES)?)) } else { None };
            let length = usize::try_from(bytes).ok()?.checked_next_multiple_of(8)?;
            let words: Words = take(length)?.chunks_exact(8).map(word).collect();
            if let Some(digest) = digest {
                named.insert(digest, Arc::clone(&words));
            }
            Content::Bytes(words)
        }
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
