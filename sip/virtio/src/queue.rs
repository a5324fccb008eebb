//! Requests in flight on one queue of a device.
//!
//! A request has up to three pieces: a header that the device reads, data that it reads or writes, and a
//! short reply that it writes. The data is a block of its own, which the queue owns until the device has
//! completed the request; header and reply lie in memory of the queue. Everything the device reports is validated
//! against the requests in flight before it is used. Deliberately not here: waiting (see the drivers).

use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::sync::atomic::{Ordering, fence};

use virtio_drivers::Error;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;

use crate::calls::{Area, Call, Calls};
use crate::device::silence;
use crate::error::DeviceError;
use crate::link::Link;
use crate::memory;
use crate::platform::{DeviceMemory, Platform};
use crate::{HEADER_BYTES, REPLY_BYTES};

/// Bytes of a request's slot in the memory for headers and replies.
const SLOT_BYTES: usize = HEADER_BYTES + REPLY_BYTES;

/// Contents of a reply before the device writes it.
const UNWRITTEN: u8 = 0xff;

/// Direction of a request's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The device reads it.
    ToDevice,
    /// The device writes it.
    FromDevice,
}

/// Part of a block that the device reads or writes.
#[derive(Debug)]
pub struct Data<M> {
    /// The block.
    pub memory: M,
    /// Offset of the part, in bytes.
    pub offset: usize,
    /// Its length in bytes, not 0.
    pub bytes: usize,
    /// Whether the device reads or writes it.
    pub direction: Direction,
}

/// The device's answer besides the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    None,
    /// This many bytes, which it writes before the data.
    BeforeData(usize),
    /// This many bytes, which it writes after the data.
    AfterData(usize),
    /// This many bytes, which it writes into the data's block, after the data that it reads there: for large replies,
    /// which are not copied.
    InBlock(usize),
}

impl Reply {
    fn bytes(self) -> usize {
        match self {
            // None in the queue's own memory.
            Reply::None | Reply::InBlock(_) => 0,
            Reply::BeforeData(bytes) | Reply::AfterData(bytes) => bytes,
        }
    }
}

/// A request to the device.
#[derive(Debug)]
pub struct Request<'a, M> {
    /// Bytes that the device reads first; at most [`HEADER_BYTES`].
    pub header: &'a [u8],
    /// Data that it reads or writes.
    pub data: Option<Data<M>>,
    /// Reply that it writes; at most [`REPLY_BYTES`] unless it is in the block.
    pub reply: Reply,
}

/// A request that was not accepted.
#[derive(Debug)]
pub struct Refused<M, T> {
    /// Its data.
    pub data: Option<Data<M>>,
    /// The driver's tag for it.
    pub tag: T,
    /// The device's error; `None` if the queue is merely full.
    pub error: Option<DeviceError>,
}

/// A request that the device has completed.
#[derive(Debug)]
pub struct Completion<M, T> {
    /// The driver's tag for it.
    pub tag: T,
    /// Its data, which the device no longer accesses.
    pub data: Option<Data<M>>,
    /// Bytes the device claims to have written, reply and data together; never more than there was room for.
    pub written: u32,
    /// The reply.
    pub reply: [u8; REPLY_BYTES],
}

struct Pending<M, T> {
    slot: usize,
    header_bytes: usize,
    data: Option<Data<M>>,
    reply: Reply,
    since_ns: u64,
    tag: T,
}

impl<M, T> Pending<M, T> {
    /// Returns the maximum bytes that the device may write.
    fn room(&self) -> usize {
        let data = self.data.as_ref().filter(|data| data.direction == Direction::FromDevice);
        let in_block = if let Reply::InBlock(bytes) = self.reply { bytes } else { 0 };
        self.reply.bytes() + in_block + data.map_or(0, |data| data.bytes)
    }
}

/// A queue of a device, with up to `SIZE` descriptors in flight. `M` is the memory of data, `T` the
/// driver's tag for a request.
///
/// Dropping it resets the device. If the device does not confirm that, the memory is leaked.
pub struct Queue<P: Platform, const SIZE: usize, M: DeviceMemory, T> {
    platform: P,
    link: Link<P::Registers>,
    index: u16,
    ring: ManuallyDrop<VirtQueue<Calls<P>, SIZE>>,
    rings_memory: ManuallyDrop<Vec<P::Memory>>,
    /// One slot per request for header and reply.
    slots: ManuallyDrop<P::Memory>,
    free_slots: Vec<usize>,
    /// Indexed by the ring's token for a request: its first descriptor.
    pending: ManuallyDrop<Vec<Option<Pending<M, T>>>>,
    in_flight: usize,
    /// Lower bound of the submission times of the requests in flight.
    oldest_ns: u64,
    /// Whether requests were added since the device was last notified.
    is_untold: bool,
    broken: Option<DeviceError>,
}

impl<P: Platform, const SIZE: usize, M: DeviceMemory, T> Queue<P, SIZE, M, T> {
    pub(crate) fn new(
        platform: &P,
        link: &Link<P::Registers>,
        index: u16,
    ) -> Result<Queue<P, SIZE, M, T>, DeviceError> {
        let mut link = link.clone();
        let found = link.max_queue_size(index);
        link.error()?;
        if found < SIZE as u32 {
            return Err(DeviceError::QueueTooShort { queue: index, needed: SIZE as u32, found });
        }
        let slots = platform.allocate(SIZE * SLOT_BYTES).map_err(DeviceError::Memory)?;
        let mut call = Call::new(platform, &[]);
        let ring = call.run(|| VirtQueue::<Calls<P>, SIZE>::new(&mut link, index, false, false));
        let (rings_memory, failed) = call.into_allocated();
        let ring = match (ring, failed) {
            (Ok(ring), _) => ring,
            (Err(_), Some(status)) => return Err(DeviceError::Memory(status)),
            (Err(Error::AlreadyUsed), _) => return Err(DeviceError::QueueInUse(index)),
            // The size was read before; now the device reports another.
            (Err(_), _) => return Err(DeviceError::QueueTooShort { queue: index, needed: SIZE as u32, found: 0 }),
        };
        let queue = Queue {
            platform: platform.clone(),
            link,
            index,
            ring: ManuallyDrop::new(ring),
            rings_memory: ManuallyDrop::new(rings_memory),
            slots: ManuallyDrop::new(slots),
            free_slots: (0..SIZE).rev().collect(),
            pending: ManuallyDrop::new((0..SIZE).map(|_| None).collect()),
            in_flight: 0,
            oldest_ns: 0,
            is_untold: false,
            broken: None,
        };
        queue.link.error()?;
        Ok(queue)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds a request and notifies the device.
    ///
    /// # Errors
    /// The queue is full, or the device has failed; the data is returned.
    ///
    /// # Panics
    /// If the request is malformed: header or reply too long, no piece at all, or data outside its block.
    pub fn submit(&mut self, request: Request<'_, M>, tag: T) -> Result<(), Refused<M, T>> {
        self.add(request, tag)?;
        self.notify();
        Ok(())
    }

    /// Adds a request without notifying the device; [`Queue::notify`] then does so once for many.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    ///
    /// # Panics
    /// As [`Queue::submit`].
    pub fn add(&mut self, request: Request<'_, M>, tag: T) -> Result<(), Refused<M, T>> {
        let Request { header, data, reply } = request;
        assert!(header.len() <= HEADER_BYTES && reply.bytes() <= REPLY_BYTES, "a header or reply is too long");
        let replies = usize::from(reply.bytes() != 0) + usize::from(matches!(reply, Reply::InBlock(_)));
        let pieces = usize::from(!header.is_empty()) + usize::from(data.is_some()) + replies;
        assert!(data.is_some() || !matches!(reply, Reply::InBlock(_)), "a reply behind data that is not there");
        assert!(pieces != 0, "a request without a piece");
        if self.broken.is_some() || self.ring.available_desc() < pieces {
            return Err(Refused { data, tag, error: self.broken });
        }
        let Some(slot) = self.free_slots.pop() else {
            return Err(Refused { data, tag, error: None });
        };
        memory::write(&*self.slots, slot * SLOT_BYTES, header);
        // A reply that the device does not write must not show an earlier one.
        memory::write(&*self.slots, slot * SLOT_BYTES + HEADER_BYTES, &[UNWRITTEN; REPLY_BYTES][..reply.bytes()]);
        let since_ns = self.platform.now_ns();
        let pending = Pending { slot, header_bytes: header.len(), data, reply, since_ns, tag };
        let chain = Chain::of(&*self.slots, &pending);
        let areas =
            [Area::of(&*self.slots), pending.data.as_ref().map_or(Area::of(&*self.slots), |d| Area::of(&d.memory))];
        let mut call = Call::new(&self.platform, &areas);
        let ring = &mut self.ring;
        // SAFETY: the pieces lie in `slots` and in the data's block. Nothing accesses them before `complete` has
        // taken the request off the ring: the slot is not free, and the block is in `pending`. Both live until
        // then, or until the device has been reset (`drop`).
        let added = call.run(|| unsafe { chain.with_slices(|readable, writable| ring.add(readable, writable)) });
        match added {
            Ok(token) => {
                self.pending[usize::from(token)] = Some(pending);
                self.in_flight += 1;
            }
            Err(_) => {
                self.free_slots.push(slot);
                return Err(Refused { data: pending.data, tag: pending.tag, error: None });
            }
        }
        self.is_untold = true;
        Ok(())
    }

    /// Notifies the device of the requests added, unless it has suppressed notifications.
    pub fn notify(&mut self) {
        if !core::mem::take(&mut self.is_untold) {
            return;
        }
        // Either this sees that the device wants a notification, or the device, which announces that before it polls once
        // more, sees the requests: the fence keeps both from reading stale values (virtio 1.2, section 2.7.13).
        fence(Ordering::SeqCst);
        if self.ring.should_notify() {
            self.link.notify(self.index);
            // An error here surfaces in `complete`; the device owns the requests already.
            self.broken = self.broken.or(self.link.error().err());
        }
    }

    /// Enables or suppresses the interrupt on completion; spurious ones are possible. After enabling, the caller has to
    /// poll once more for completions that came before.
    pub fn set_interrupts(&mut self, are_wanted: bool) {
        self.ring.set_dev_notify(are_wanted);
        // Like the fence in `notify`, in the other direction.
        fence(Ordering::SeqCst);
    }

    /// Returns whether there is a completion or an error to take.
    pub fn has_answer(&self) -> bool {
        self.broken.is_some() || self.ring.can_pop()
    }

    /// Takes a completion, if there is one.
    ///
    /// # Errors
    /// The device has failed, now or earlier: it has to be reset, by dropping the queue.
    pub fn complete(&mut self) -> Result<Option<Completion<M, T>>, DeviceError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let completed = self.take_answer();
        if let Err(error) = completed {
            self.broken = Some(error);
        }
        completed
    }

    fn take_answer(&mut self) -> Result<Option<Completion<M, T>>, DeviceError> {
        let Some(token) = self.ring.peek_used() else { return Ok(None) };
        let unknown = DeviceError::UnknownRequest { queue: self.index, request: token };
        let place = self.pending.get_mut(usize::from(token)).ok_or(unknown)?;
        let pending = place.take().ok_or(unknown)?;
        let chain = Chain::of(&*self.slots, &pending);
        let ring = &mut self.ring;
        // SAFETY: the pieces are those that were added under this token: `Chain::of` makes them from the same values
        // of the request and from memory that does not move.
        let popped = unsafe { chain.with_slices(|readable, writable| ring.pop_used(token, readable, writable)) };
        let Ok(written) = popped else {
            // TOCTOU: the device has changed its used entry between two reads. The request is still on the ring.
            *place = Some(pending);
            return Err(unknown);
        };
        let room = pending.room();
        if written as usize > room {
            // A device that reports this may go on writing: the data stays here until the device has been reset.
            *place = Some(pending);
            return Err(DeviceError::TooMuchWritten { room: u32::try_from(room).unwrap_or(u32::MAX), written });
        }
        self.in_flight -= 1;
        let mut reply = [0; REPLY_BYTES];
        let reply_at = pending.slot * SLOT_BYTES + HEADER_BYTES;
        memory::read(&*self.slots, reply_at, &mut reply[..pending.reply.bytes()]);
        self.free_slots.push(pending.slot);
        Ok(Some(Completion { tag: pending.tag, data: pending.data, written, reply }))
    }

    /// Checks the requests in flight against a timeout.
    ///
    /// # Errors
    /// [`DeviceError::NoAnswer`] if one has been in flight for that long.
    pub fn check_time(&mut self, limit_ms: u64) -> Result<(), DeviceError> {
        let now_ns = self.platform.now_ns();
        let waited_ms = |since_ns: u64| now_ns.saturating_sub(since_ns) / 1_000_000;
        // No scan is needed while none can be that old.
        if waited_ms(self.oldest_ns) < limit_ms {
            return Ok(());
        }
        self.oldest_ns = self.pending.iter().flatten().map(|pending| pending.since_ns).min().unwrap_or(now_ns);
        let waited_ms = waited_ms(self.oldest_ns);
        if waited_ms >= limit_ms { Err(DeviceError::NoAnswer { waited_ms }) } else { Ok(()) }
    }
}

impl<P: Platform, const SIZE: usize, M: DeviceMemory, T> Drop for Queue<P, SIZE, M, T> {
    fn drop(&mut self) {
        if !silence(&mut self.link, &self.platform) {
            // The device may still write: leak the memory rather than let it corrupt the next owner's.
            return;
        }
        // SAFETY: each is dropped once, here, and not used afterwards; the rings are dropped before their memory.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            ManuallyDrop::drop(&mut self.rings_memory);
            ManuallyDrop::drop(&mut self.slots);
            ManuallyDrop::drop(&mut self.pending);
        }
    }
}

/// The pieces of a request in ring order.
struct Chain {
    readable: [Piece; 2],
    readable_count: usize,
    writable: [Piece; 2],
    writable_count: usize,
}

#[derive(Clone, Copy)]
struct Piece {
    address: *mut u8,
    bytes: usize,
}

impl Chain {
    fn of<M: DeviceMemory, T>(slots: &impl DeviceMemory, pending: &Pending<M, T>) -> Chain {
        let none = Piece { address: core::ptr::dangling_mut(), bytes: 0 };
        let mut chain = Chain { readable: [none; 2], readable_count: 0, writable: [none; 2], writable_count: 0 };
        let slot = pending.slot * SLOT_BYTES;
        let (reply, bytes) = (slot + HEADER_BYTES, pending.reply.bytes());
        let reply = Piece { address: memory::part(slots, reply, bytes), bytes };
        let header = Piece { address: memory::part(slots, slot, pending.header_bytes), bytes: pending.header_bytes };
        chain.add(header, Direction::ToDevice);
        if matches!(pending.reply, Reply::BeforeData(_)) {
            chain.add(reply, Direction::FromDevice);
        }
        if let Some(data) = &pending.data {
            assert!(data.bytes != 0 && u32::try_from(data.bytes).is_ok(), "data of {} bytes", data.bytes);
            let address = memory::part(&data.memory, data.offset, data.bytes);
            chain.add(Piece { address, bytes: data.bytes }, data.direction);
            if let Reply::InBlock(bytes) = pending.reply {
                assert!(
                    data.direction == Direction::ToDevice && u32::try_from(bytes).is_ok(),
                    "a reply of {bytes} bytes"
                );
                let address = memory::part(&data.memory, data.offset + data.bytes, bytes);
                chain.add(Piece { address, bytes }, Direction::FromDevice);
            }
        }
        if matches!(pending.reply, Reply::AfterData(_)) {
            chain.add(reply, Direction::FromDevice);
        }
        chain
    }

    fn add(&mut self, piece: Piece, direction: Direction) {
        let (pieces, count) = match direction {
            Direction::ToDevice => (&mut self.readable, &mut self.readable_count),
            Direction::FromDevice => (&mut self.writable, &mut self.writable_count),
        };
        // The ring accepts no empty piece. There are at most two of each direction: header, data, reply.
        if piece.bytes != 0 {
            pieces[*count] = piece;
            *count += 1;
        }
    }

    /// Calls `call` with the pieces as slices.
    ///
    /// # Safety
    ///
    /// The memory that the chain was made of is alive, and no reference to these parts of it is in use.
    unsafe fn with_slices<R>(&self, call: impl for<'a> FnOnce(&'a [&'a [u8]], &'a mut [&'a mut [u8]]) -> R) -> R {
        // SAFETY: passed on: the parts lie in memory that is valid for reads and writes.
        let readable = self.readable.map(|piece| unsafe { core::slice::from_raw_parts(piece.address, piece.bytes) });
        let mut writable =
            // SAFETY: as above; the pieces do not overlap, as each request has a slot and a block of its own, and a
            // reply in the block begins where the data ends.
            self.writable.map(|piece| unsafe { core::slice::from_raw_parts_mut(piece.address, piece.bytes) });
        call(&readable[..self.readable_count], &mut writable[..self.writable_count])
    }
}
