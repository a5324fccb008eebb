//! Debug sinks: buffers of debug text that a SIP's parent reads, instead of the machine's debug output.
//!
//! A sink is a synchronization object of its owner ([`sync`](crate::sync)). A SIP that writes to it holds its slot and
//! a number unique to that sink ([`SinkRef`]). So writers own no part of it and detect a closed sink. Text is kept with
//! its writer's process id and name, assigned by the kernel, so no text passes for another's.
//! Deliberately not here: waiting for space. Text that does not fit is dropped and counted, and the reader gets the
//! count.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::Status;
use abi::limits::{DEBUG_SINK_BYTES, DEBUG_SINK_PIECES, DEBUG_SINK_TEXT_WORD, TEXT_BYTES};

use crate::process::{Process, ProcessRef, SinkRef};
use crate::slab::Slot;
use crate::sync::{self, Make, SyncRef};

/// Bytes charged to its owner while it is open.
pub const CHARGED_BYTES: usize = size_of::<Ring>() + DEBUG_SINK_BYTES + DEBUG_SINK_PIECES * size_of::<Piece>();

/// Maximum bytes of text per read.
pub const READ_BYTES: usize = TEXT_BYTES - 8 * DEBUG_SINK_TEXT_WORD;

/// The text of a sink.
pub struct Ring {
    number: u64,
    text: VecDeque<u8>,
    pieces: VecDeque<Piece>,
    /// Bytes dropped after the end of `text`.
    lost: u64,
}

/// Text of one writer, in the order of `Ring::text`.
struct Piece {
    process_id: u64,
    name: &'static str,
    bytes: usize,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Text of the SIP with this id and name.
    Text {
        /// Process id of the writer.
        process_id: u64,
        /// Name of its program.
        name: &'static str,
        /// Length of the text, in bytes.
        bytes: usize,
    },
    /// Number of bytes dropped at this point.
    Lost(u64),
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The writer has no open sink.
    NoSink,
    /// The sink has space for more.
    Taken,
    /// Its reader should run before the next write.
    NearlyFull,
}

impl Ring {
    fn new() -> Option<Box<Ring>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let (mut text, mut pieces) = (VecDeque::new(), VecDeque::new());
        text.try_reserve_exact(DEBUG_SINK_BYTES).ok()?;
        pieces.try_reserve_exact(DEBUG_SINK_PIECES).ok()?;
        Some(Box::new(Ring { number: NUMBERS.fetch_add(1, Ordering::Relaxed), text, pieces, lost: 0 }))
    }

    /// Returns its unique number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.lost == 0
    }

    /// Appends the text, or counts it as lost. After a loss all further text is lost until the reader has got the
    /// count.
    fn put(&mut self, process_id: u64, name: &'static str, text: &[u8]) {
        let is_same = self.pieces.back().is_some_and(|last| last.process_id == process_id);
        let has_room = DEBUG_SINK_BYTES - self.text.len() >= text.len();
        let has_piece = is_same || self.pieces.len() < DEBUG_SINK_PIECES;
        if self.lost > 0 || !has_room || !has_piece {
            self.lost = self.lost.saturating_add(text.len() as u64);
            return;
        }
        match self.pieces.back_mut() {
            Some(last) if is_same => last.bytes += text.len(),
            _ if text.is_empty() => {}
            _ => self.pieces.push_back(Piece { process_id, name, bytes: text.len() }),
        }
        self.text.extend(text);
    }

    /// Moves the oldest text into `room`.
    fn take(&mut self, room: &mut [u8; READ_BYTES]) -> Option<Found> {
        let Some(first) = self.pieces.front_mut() else {
            let lost = core::mem::take(&mut self.lost);
            return (lost > 0).then_some(Found::Lost(lost));
        };
        let bytes = first.bytes.min(READ_BYTES);
        let found = Found::Text { process_id: first.process_id, name: first.name, bytes };
        first.bytes -= bytes;
        if first.bytes == 0 {
            self.pieces.pop_front();
        }
        for (place, byte) in room.iter_mut().zip(self.text.drain(..bytes)) {
            *place = byte;
        }
        Some(found)
    }
}

/// Creates a sink of the caller.
pub fn create(caller: ProcessRef) -> Result<u64, Status> {
    // Checked before it is charged, because a further handle may be refused.
    caller.may_have_another_handle()?;
    caller.charge_kernel(CHARGED_BYTES)?;
    let ring = Ring::new().ok_or(Status::Exhausted);
    let made = ring.and_then(|ring| sync::create(caller, Make::DebugSink(ring)));
    made.inspect_err(|_| caller.refund_kernel(CHARGED_BYTES))
}

/// Resolves a sink of the caller.
pub fn reference(sink: SyncRef) -> Result<SinkRef, Status> {
    let number = sync::with_debug_sink(sink, |ring| ring.number())?;
    Ok(SinkRef { index: sink.slot.index(), number })
}

/// Writes text of a SIP to its sink, if it has one.
pub fn write(process: &Slot<Process>, text: &[u8]) -> Written {
    let Some(sink) = process.debug_text.get() else { return Written::NoSink };
    let (process_id, name) = (process.id.load(Ordering::Relaxed), process.name());
    let put = sync::add_to_debug_sink(sink, |ring| {
        ring.put(process_id, name, text);
        ring.text.len() > DEBUG_SINK_BYTES / 2 || ring.lost > 0
    });
    match put {
        None => Written::NoSink,
        Some(false) => Written::Taken,
        Some(true) => Written::NearlyFull,
    }
}

/// Takes the oldest text out of a sink.
pub fn read(sink: SyncRef, room: &mut [u8; READ_BYTES]) -> Result<Found, Status> {
    sync::with_debug_sink(sink, |ring| ring.take(room))?.ok_or(Status::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;
    use crate::lifecycle::create as create_process;
    use crate::sync::{SYNCS, SyncKind};
    use crate::test_machine::{alone, parent, with_quota};
    use alloc::string::String;
    use alloc::vec::Vec;

    fn ring() -> Box<Ring> {
        Ring::new().expect("memory")
    }

    fn taken(ring: &mut Ring) -> Option<(u64, String)> {
        let mut room = [0; READ_BYTES];
        match ring.take(&mut room)? {
            Found::Text { process_id, bytes, .. } => {
                Some((process_id, String::from_utf8_lossy(&room[..bytes]).into_owned()))
            }
            Found::Lost(bytes) => Some((0, alloc::format!("{bytes} lost"))),
        }
    }

    #[test]
    fn text_comes_out_as_it_went_in_and_with_its_writer() {
        let mut ring = ring();
        assert!(ring.is_empty());
        for (process, text) in [(1, "one "), (1, ""), (1, "two\n"), (2, ""), (2, "three\n"), (1, "four\n")] {
            ring.put(process, "p", text.as_bytes());
        }
        assert!(!ring.is_empty());
        assert_eq!(taken(&mut ring), Some((1, "one two\n".into())));
        assert_eq!(taken(&mut ring), Some((2, "three\n".into())));
        assert_eq!(taken(&mut ring), Some((1, "four\n".into())));
        assert_eq!(taken(&mut ring), None);
        assert!(ring.is_empty());
    }

    #[test]
    fn what_is_longer_than_a_read_comes_in_pieces() {
        let mut ring = ring();
        ring.put(1, "p", &[b'x'; READ_BYTES + 3]);
        assert_eq!(taken(&mut ring).map(|(_, text)| text.len()), Some(READ_BYTES));
        assert_eq!(taken(&mut ring), Some((1, "xxx".into())));
        assert_eq!(taken(&mut ring), None);
    }

    #[test]
    fn what_does_not_fit_is_counted_behind_what_did_until_that_is_known() {
        let mut ring = ring();
        let full: Vec<u8> = alloc::vec![b'x'; DEBUG_SINK_BYTES - 1];
        ring.put(1, "p", &full);
        ring.put(1, "p", b"two");
        // This would fit, but would take the place of the lost text.
        ring.put(2, "q", b"1");
        let mut left = full.len();
        while left > 0 {
            left -= taken(&mut ring).map_or(0, |(_, text)| text.len());
        }
        assert!(!ring.is_empty());
        assert_eq!(taken(&mut ring), Some((0, "4 lost".into())));
        assert!(ring.is_empty());
        ring.put(2, "q", b"again");
        assert_eq!(taken(&mut ring), Some((2, "again".into())));
    }

    #[test]
    fn writers_that_take_turns_need_no_more_than_was_charged() {
        let mut ring = ring();
        let room = (ring.text.capacity(), ring.pieces.capacity());
        for turn in 0..10 * DEBUG_SINK_PIECES as u64 {
            ring.put(turn % 2, "p", b"x");
        }
        assert_eq!(ring.pieces.len(), DEBUG_SINK_PIECES);
        assert_eq!(ring.lost, 9 * DEBUG_SINK_PIECES as u64);
        for _ in 0..100 {
            ring.put(1, "p", &[b'y'; 512]);
        }
        assert_eq!((ring.text.capacity(), ring.pieces.capacity()), room);
        assert_eq!(room, (DEBUG_SINK_BYTES, DEBUG_SINK_PIECES));
    }

    #[test]
    fn a_sink_is_charged_whole_and_refunded_when_it_is_closed() {
        let _alone = alone();
        let owner = with_quota(|quota| (quota.handles, quota.channels, quota.children) = (100, 0, 0));
        let before = owner.kept_for();
        let handle = create(owner).expect("a sink");
        assert_eq!(owner.kept_for() - before, CHARGED_BYTES + size_of::<Slot<sync::Sync>>());
        let mut more = Vec::new();
        let refused = loop {
            match create(owner) {
                Ok(handle) => more.push(handle),
                Err(status) => break status,
            }
        };
        assert_eq!(refused, Status::QuotaExceeded);
        assert!((5..20).contains(&more.len()), "{} sinks in the quota", more.len());
        for handle in more.into_iter().chain([handle]) {
            let sink = claims::sync(handle, owner).expect("its own");
            assert_eq!(sync::close(owner, sink, SyncKind::Event), Err(Status::BadHandle));
            assert_eq!(sync::close(owner, sink, SyncKind::DebugSink), Ok(()));
        }
        assert_eq!(owner.kept_for(), before);
    }

    #[test]
    fn children_inherit_and_a_sink_that_is_gone_is_not_taken_for_the_next_one() {
        let _alone = alone();
        let owner = parent(8);
        let sink = claims::sync(create(owner).expect("a sink"), owner).expect("its own");
        let child = parent(8);
        assert_eq!(write(child, b"to the machine"), Written::NoSink);
        child.debug_text.set(Some(reference(sink).expect("a sink")));
        let program = child.program.get().expect("its program");
        let Ok(grandchild) = create_process(program, Some(child)) else { panic!("no child can be made") };
        assert_eq!(write(child, b"a"), Written::Taken);
        assert_eq!(write(grandchild.process(), b"b"), Written::Taken);
        let mut room = [0; READ_BYTES];
        for (writer, byte) in [(child, b'a'), (grandchild.process(), b'b')] {
            let process_id = writer.id.load(Ordering::Relaxed);
            assert_eq!(read(sink, &mut room), Ok(Found::Text { process_id, name: "parent", bytes: 1 }));
            assert_eq!(room[0], byte);
        }
        assert_eq!(read(sink, &mut room), Err(Status::WouldBlock));
        assert_eq!(sync::close(owner, sink, SyncKind::DebugSink), Ok(()));
        let next = claims::sync(create(owner).expect("a sink"), owner).expect("its own");
        assert!(core::ptr::eq(next.slot, sink.slot), "the slot was not used again");
        assert_eq!(write(grandchild.process(), b"c"), Written::NoSink);
        assert_eq!(read(next, &mut room), Err(Status::WouldBlock));
        assert_eq!(sync::close(owner, next, SyncKind::DebugSink), Ok(()));
        assert_eq!(grandchild.release(child), Ok(()));
        assert!(SYNCS.slot(next.slot.index()).is_some_and(|slot| !slot.is_live()));
    }
}
