//! Channels: two endpoints, a bounded queue for each, and the contract's monitor on every message.
//!
//! Ownership: an endpoint belongs to a SIP (and is in its list), or to a message, or is closed. A queued message owns
//! its blocks and endpoints. The channel's slot is free when both ends are closed.
//! Death: when a SIP ends, its endpoints are closed one by one. Closing an end drops the messages queued for it (blocks
//! are freed or return to their lenders, endpoints are closed in turn) and keeps those queued for the peer, which sees
//! `Closed` after them, and after the return of every block it lent over the channel.
//!
//! Accounting: a channel is charged to its creator until both ends are closed. If the creator ends before, it is
//! charged to the holder of an end, and from then on to each new holder ([`disinherit`]).
//!
//! One lock for each channel. Endpoints that travel are taken out of their own channel first, so that
//! no two channels are ever locked at once.

mod close;
mod loans;
mod observed;
mod payment;
mod receive;
mod send;
#[cfg(test)]
pub mod test_contract;

pub use close::{close, close_all, trim};
pub use loans::{begin_disposal, disinherit_blocks, dispose};
pub use payment::disinherit;
pub use receive::{join_set, leave_set, receive, receive_or_join, stop_waiting_at, try_receive, wait_at};
pub use send::{send, take_givable};

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::{HeldEndpoint, Status};

use observed::Observed;
use payment::{charge_receivers, owner_of};

use crate::contract::{Contract, SideIndex};
use crate::handle::{self, Kind};
use crate::lock::{SpinGuard, SpinLock};
use crate::principal::{Principal, TooLong};
use crate::process::{Endpoints, ProcessRef};
use crate::shortage::{Scarce, no_slot};
use crate::slab::{Links, Listed, Slab, Slot};
use crate::sync::SyncRef;
use crate::wait::{Ticket, Woken};

/// All channels.
pub static CHANNELS: Slab<Channel> = Slab::new();

const NO_BLOCK: u32 = u32::MAX;
/// Maximum words of a queue that a free slot keeps for its next channel.
const KEPT_WORDS: usize = 64;

/// Location of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Closed.
    #[default]
    Closed,
    /// Owned by a SIP.
    Owned,
    /// In a message queued for the endpoint with this handle; 0 while it passes from a SIP to its child.
    InMessage(u64),
}

#[derive(Clone, Copy, Default)]
enum Waiter {
    #[default]
    Nobody,
    Thread(Ticket),
    Set {
        set: SyncRef,
        key: u64,
    },
}

impl Waiter {
    /// Whether the waiter is stale: a wait that timed out or was for several objects leaves its ticket behind, and a
    /// closed set its name.
    fn is_over(self) -> bool {
        match self {
            Waiter::Nobody => true,
            Waiter::Thread(ticket) => ticket.thread.state.load(Ordering::Acquire) != ticket.state,
            Waiter::Set { set, .. } => set.slot.generation() != set.generation,
        }
    }
}

/// State of one end.
#[derive(Default)]
pub struct Side {
    /// Its location.
    pub place: Place,
    /// The SIP that owns it.
    pub owner: Option<ProcessRef>,
    /// The principal it speaks for: its owner's, or its last owner's.
    pub speaker: Option<Principal>,
    /// Process id of its delegator, or 0. The next owner then speaks for the speaker, too.
    delegated_by: u64,
    /// Bytes of the speaker's text made on delegation.
    speaker_bytes: u32,
    /// The contract's state as this end sees it.
    pub state: u16,
    /// Number of messages queued for it.
    pub waiting: u32,
    head: u32,
    /// Queued messages, bounded by the contract.
    queue: Vec<u64>,
    waiter: Waiter,
    pub(crate) loans_out: u32,
    home: u32,
    observed: Observed,
}

/// The part guarded by the lock.
#[derive(Default)]
pub struct Inner {
    /// The contract.
    pub contract: Option<&'static Contract>,
    /// The two ends.
    pub sides: [Side; 2],
    /// The SIP charged for it, with its process id.
    payer: Option<(ProcessRef, u64)>,
    /// Whether its creator has ended.
    is_inherited: bool,
    /// Bytes charged.
    bytes: u32,
}

/// One channel.
#[derive(Default)]
pub struct Channel {
    inner: SpinLock<Inner>,
    links: [Links; 2],
}

impl Inner {
    /// Contract and state of an end.
    fn held(&self, contract: &Contract, side: SideIndex) -> HeldEndpoint {
        let state = self.sides[side as usize].state;
        HeldEndpoint { contract: contract.index, state, is_importer: side == SideIndex::Importer }
    }

    /// Returns contract and state of an end, the process id of the other end's owner, or 0, and the number of messages
    /// queued for it. `None` of a free channel.
    pub fn described(&self, side: SideIndex) -> Option<(HeldEndpoint, u64, u32)> {
        let held = self.held(self.contract?, side);
        Some((held, self.sides[side.peer() as usize].owner_id(), self.sides[side as usize].waiting))
    }
}

impl Channel {
    /// Locks it.
    pub fn lock(&self) -> SpinGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Listed for Endpoints {
    fn links(index: u32) -> Option<&'static Links> {
        CHANNELS.slot(index >> 1).map(|slot| &slot.links[(index & 1) as usize])
    }
}

/// An end of a channel, as named by a handle.
#[derive(Clone, Copy)]
pub struct EndpointRef {
    /// The channel.
    pub channel: &'static Slot<Channel>,
    /// The end.
    pub side: SideIndex,
    /// Generation of the channel that the handle carried.
    pub generation: u32,
}

/// Reason why a message was not sent.
pub enum SendError {
    /// The endpoint does not belong to the caller.
    Status(Status),
    /// The message violates the contract; a description.
    Violation(String),
}

impl From<Status> for SendError {
    fn from(status: Status) -> SendError {
        SendError::Status(status)
    }
}

/// Result of a receive. If the receiver now [has no room](Process::has_no_room) for some block, it has all that came, must
/// not be told, and ends.
pub enum Received {
    /// A message, with this word.
    Message(u64),
    /// The peer is gone; returned loans are in the buffer.
    Closed,
    /// Nothing yet.
    Nothing,
}

impl EndpointRef {
    /// Its number, as carried by handles and lists.
    #[inline(always)]
    pub fn index(self) -> u32 {
        self.channel.index() << 1 | self.side as u32
    }

    /// Its handle.
    #[inline(always)]
    pub fn handle(self) -> u64 {
        handle::encode(Kind::Endpoint, self.index(), self.generation)
    }

    fn peer(self) -> EndpointRef {
        EndpointRef { side: self.side.peer(), ..self }
    }

    /// Locks the channel if the caller owns this end.
    #[inline(always)]
    pub fn lock_owned(self, caller: ProcessRef) -> Result<SpinGuard<'static, Inner>, Status> {
        let inner = self.channel.inner.lock();
        let side = &inner.sides[self.side as usize];
        let own = side.owner.is_some_and(|owner| core::ptr::eq(owner, caller));
        if own && side.place == Place::Owned && self.channel.generation() == self.generation {
            Ok(inner)
        } else {
            Err(Status::BadHandle)
        }
    }
}

/// Resolves a handle to an endpoint. Its ownership is checked with the channel locked.
#[inline(always)]
pub fn endpoint(handle: u64) -> Result<EndpointRef, Status> {
    let (index, generation) = handle::decode(handle, Kind::Endpoint)?;
    let channel = CHANNELS.get(index >> 1, generation).ok_or(Status::BadHandle)?;
    let side = if index & 1 == 0 { SideIndex::Importer } else { SideIndex::Exporter };
    Ok(EndpointRef { channel, side, generation })
}

impl Side {
    /// Process id of the SIP that owns it; 0 if it is closed or in a message.
    pub fn owner_id(&self) -> u64 {
        match (self.place, self.owner) {
            (Place::Owned, Some(owner)) => owner.id.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Opens an end, left by [`close`](Side::close), for this owner and principal.
    fn open(&mut self, owner: ProcessRef, speaker: Option<Principal>) {
        self.place = Place::Owned;
        self.owner = Some(owner);
        self.speaker = speaker;
        self.home = NO_BLOCK;
        // Blocks lent before it was closed may have been returned since.
        self.loans_out = 0;
    }

    /// Allocates a queue of this many words; false if memory is short.
    #[inline(always)]
    fn fit_queue(&mut self, words: usize) -> bool {
        // Stale words of the slot's last channel are never read: a message is read only as far as it was written.
        self.queue.len() == words || self.make_queue(words)
    }

    fn make_queue(&mut self, words: usize) -> bool {
        self.queue = Vec::new();
        if self.queue.try_reserve_exact(words).is_err() {
            return false;
        }
        self.queue.resize(words, 0);
        true
    }

    /// Closes it: resets all but the speaker and the queue. Returns the first of the returned loans.
    fn close(&mut self) -> u32 {
        let home = core::mem::replace(&mut self.home, NO_BLOCK);
        self.place = Place::Closed;
        self.owner = None;
        self.delegated_by = 0;
        self.state = 0;
        self.waiting = 0;
        self.head = 0;
        self.waiter = Waiter::Nobody;
        self.loans_out = 0;
        self.observed = Observed::default();
        home
    }
}

impl Inner {
    #[inline(always)]
    fn slot(&mut self, side: SideIndex, position: u32) -> Option<&mut [u64]> {
        let (position, words) = (position as usize, self.contract?.slot_words);
        self.sides[side as usize].queue.get_mut(position * words..(position + 1) * words)
    }

    /// Returns the free slot for the next message to `side`.
    #[inline(always)]
    fn next_slot(&mut self, side: SideIndex) -> Option<&mut [u64]> {
        let bound = self.contract?.bounds[side as usize];
        let to = &self.sides[side as usize];
        if to.waiting >= bound {
            return None;
        }
        let mut position = to.head + to.waiting;
        if position >= bound {
            position -= bound;
        }
        self.slot(side, position)
    }

    #[inline(always)]
    fn is_ready(&self, side: SideIndex) -> bool {
        let own = &self.sides[side as usize];
        own.waiting > 0 || (self.sides[side.peer() as usize].place == Place::Closed && own.loans_out == 0)
    }

    /// Wakes the waiter at this end.
    #[inline(always)]
    fn notify(&mut self, endpoint: EndpointRef) {
        let side = &mut self.sides[endpoint.side as usize];
        match side.waiter {
            Waiter::Nobody => {}
            Waiter::Thread(ticket) => {
                side.waiter = Waiter::Nobody;
                ticket.wake(Woken::Signalled);
            }
            Waiter::Set { set, key } => {
                side.waiter = Waiter::Nobody;
                crate::sync::announce(set, key, endpoint.handle());
            }
        }
    }
}

/// Creates a channel with both ends owned by the caller.
pub fn create(caller: ProcessRef, contract: &'static Contract) -> Result<(EndpointRef, EndpointRef), Status> {
    let words = contract.bounds.map(|bound| bound as usize * contract.slot_words);
    let bytes = size_of::<Slot<Channel>>() + (words[0] + words[1]) * size_of::<u64>();
    caller.charge_channel(bytes)?;
    let id = caller.id.load(Ordering::Relaxed);
    let channel = CHANNELS.allocate().map_err(|full| {
        caller.refund_channel(id, bytes);
        no_slot(full, Scarce::Channels)
    })?;
    let generation = channel.generation();
    let importer = EndpointRef { channel, side: SideIndex::Importer, generation };
    let exporter = importer.peer();
    let speaker = caller.principal();
    let mut inner = channel.inner.lock();
    let [importing, exporting] = &mut inner.sides;
    if !importing.fit_queue(words[0]) || !exporting.fit_queue(words[1]) {
        drop(inner);
        CHANNELS.release(channel);
        caller.refund_channel(id, bytes);
        return Err(Status::Exhausted);
    }
    importing.open(caller, speaker.clone());
    exporting.open(caller, speaker);
    inner.contract = Some(contract);
    inner.payer = Some((caller, id));
    inner.is_inherited = false;
    inner.bytes = bytes as u32;
    drop(inner);
    caller.endpoints.lock().insert_pair(importer.index(), exporter.index());
    Ok((importer, exporter))
}

/// Returns the endpoint with this number of a live channel.
pub fn endpoint_at(channel: &'static Slot<Channel>, index: u32) -> EndpointRef {
    let side = if index & 1 == 0 { SideIndex::Importer } else { SideIndex::Exporter };
    EndpointRef { channel, side, generation: channel.generation() }
}

/// Gives an endpoint that is in no list to a SIP.
pub fn adopt_endpoint(process: ProcessRef, endpoint: EndpointRef) {
    let mut speaker = process.principal();
    let mut speaker_bytes = 0;
    let mut inner = endpoint.channel.inner.lock();
    let side = &mut inner.sides[endpoint.side as usize];
    let delegator = core::mem::take(&mut side.delegated_by);
    if delegator != 0 {
        // No other holder of the endpoint exists, so the speaker does not change.
        let before = side.speaker.clone();
        drop(inner);
        speaker = delegated(process, delegator, before, speaker);
        speaker_bytes = speaker.as_ref().map_or(0, Principal::bytes) as u32;
        inner = endpoint.channel.inner.lock();
    }
    let side = &mut inner.sides[endpoint.side as usize];
    side.place = Place::Owned;
    side.owner = Some(process);
    // Freed, if it was the last, after the lock is released.
    let _before = core::mem::replace(&mut side.speaker, speaker);
    let speaker_before = core::mem::replace(&mut side.speaker_bytes, speaker_bytes);
    if inner.is_inherited || speaker_before != speaker_bytes {
        payment::adopted(&mut inner, process, speaker_before, speaker_bytes);
    }
    process.endpoints.lock().insert(endpoint.index());
    drop(inner);
}

/// Returns the speaker of an endpoint that was delegated before `process` received it.
#[cold]
fn delegated(
    process: ProcessRef,
    delegator: u64,
    before: Option<Principal>,
    own: Option<Principal>,
) -> Option<Principal> {
    let came_back = process.id.load(Ordering::Relaxed) == delegator;
    let (before, own) = (before?, own?);
    if came_back {
        return Some(own);
    }
    Some(before.delegating(&own).unwrap_or_else(|TooLong| {
        process.audit_refusal("delegation", "an endpoint", "its principal would be too long");
        own
    }))
}

/// Marks an endpoint of the caller so that its next owner speaks for its speaker, too.
pub fn delegate(caller: ProcessRef, endpoint: EndpointRef) -> Result<(), Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    inner.sides[endpoint.side as usize].delegated_by = caller.id.load(Ordering::Relaxed);
    Ok(())
}
