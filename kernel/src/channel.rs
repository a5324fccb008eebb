//! Channels: two endpoints, a bounded queue for each, and the contract's monitor on every message.
//!
//! Who owns what: an endpoint belongs to a SIP (and is in its list), or to a message, or is closed. A
//! queued message owns its blocks and endpoints. The channel's slot is free when both ends are closed.
//! What if it dies here: a SIP's end closes its endpoints one by one; closing drops what waits for
//! that end (blocks are freed or go home, endpoints are closed in turn) and leaves what waits for the
//! peer, which sees `Closed` after that, and after every block it lent over the channel is home.
//!
//! One lock for each channel. Endpoints that travel are taken out of their own channel first, so that
//! no two channels are ever locked at once.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::limits::{BLOCK_WORDS, MESSAGE_WORDS};
use abi::{BlockShape, EndpointShape, NO_TRANSITION, Status, TraceKind};

use crate::claims::{self, Kind};
use crate::contract::{Contract, Monitored};
use crate::exheap::{self, BLOCKS, BlockRef};
use crate::lock::{SpinGuard, SpinLock};
use crate::process::ProcessRef;
use crate::program::Program;
use crate::slab::{Links, Listed, Slab, Slot};
use crate::sync::SyncRef;
use crate::thread::MessageBuffer;
use crate::wait::{self, Ticket, Woken};

/// All channels.
pub static CHANNELS: Slab<Channel> = Slab::new();

const NO_BLOCK: u32 = u32::MAX;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SideIndex {
    /// The importing end.
    Importer = 0,
    /// The exporting end.
    Exporter = 1,
}

impl SideIndex {
    /// The other end.
    #[inline(always)]
    pub fn peer(self) -> SideIndex {
        match self {
            SideIndex::Importer => SideIndex::Exporter,
            SideIndex::Exporter => SideIndex::Importer,
        }
    }
}

/// Where an endpoint is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it is closed.
    #[default]
    Closed,
    /// A SIP has it.
    Owned,
    /// In a message that waits for the endpoint with this handle; 0 while it passes from a SIP to its child.
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
    /// Whether nobody waits here any more: a wait that timed out or was for several objects leaves its
    /// ticket behind, and a set that is closed its name.
    fn is_over(self) -> bool {
        match self {
            Waiter::Nobody => true,
            Waiter::Thread(ticket) => ticket.thread.state.load(Ordering::Acquire) != ticket.state,
            Waiter::Set { set, .. } => set.slot.generation() != set.generation,
        }
    }
}

/// What one end knows and has.
#[derive(Default)]
pub struct Side {
    /// Where it is.
    pub place: Place,
    /// The SIP that owns it.
    pub owner: Option<ProcessRef>,
    /// The program that speaks through it: its owner's, or the last owner's.
    pub speaker: Option<&'static Program>,
    /// The contract's state as this end sees it.
    pub state: u16,
    /// Messages that wait for it.
    pub waiting: usize,
    head: usize,
    waiter: Waiter,
    loans_out: u32,
    home: u32,
}

/// What the lock guards.
#[derive(Default)]
pub struct Inner {
    /// The contract.
    pub contract: Option<&'static Contract>,
    /// The two ends.
    pub sides: [Side; 2],
    /// Who created it, with its process id: its quota is charged until both ends are closed.
    creator: Option<(ProcessRef, u64)>,
    storage: Vec<u64>,
}

/// One channel.
#[derive(Default)]
pub struct Channel {
    inner: SpinLock<Inner>,
    links: [Links; 2],
}

impl Channel {
    /// Locks it.
    pub fn lock(&self) -> SpinGuard<'_, Inner> {
        self.inner.lock()
    }
}

/// Endpoints in their SIP's list, numbered as in handles.
pub enum OfProcess {}

impl Listed for OfProcess {
    fn links(index: u32) -> Option<&'static Links> {
        CHANNELS.slot(index >> 1).map(|slot| &slot.links[(index & 1) as usize])
    }
}

/// An end of a channel, as a handle names it.
#[derive(Clone, Copy)]
pub struct EndpointRef {
    /// The channel.
    pub channel: &'static Slot<Channel>,
    /// Which end.
    pub side: SideIndex,
    /// Generation of the channel that the handle carried.
    pub generation: u32,
}

/// Why a message was not taken.
pub enum SendError {
    /// The endpoint is not the caller's.
    Status(Status),
    /// The message breaks the contract: how.
    Violation(String),
}

impl From<Status> for SendError {
    fn from(status: Status) -> SendError {
        SendError::Status(status)
    }
}

/// What a receive found.
pub enum Received {
    /// A message, with this word.
    Message(u64),
    /// The peer is gone; lent blocks that came home are in the buffer.
    Closed,
    /// Nothing yet.
    Nothing,
}

impl EndpointRef {
    /// Its number, as handles and lists carry it.
    #[inline(always)]
    pub fn index(self) -> u32 {
        self.channel.index() << 1 | self.side as u32
    }

    /// Its handle.
    #[inline(always)]
    pub fn handle(self) -> u64 {
        claims::handle(Kind::Endpoint, self.index(), self.generation)
    }

    fn peer(self) -> EndpointRef {
        EndpointRef { side: self.side.peer(), ..self }
    }

    /// Locks the channel if this end is the caller's.
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

impl Inner {
    #[inline(always)]
    fn slot(&mut self, side: SideIndex, position: usize) -> Option<&mut [u64]> {
        let contract = self.contract?;
        let before = if side == SideIndex::Importer { 0 } else { contract.bounds[0] };
        let start = (before + position) * contract.slot_words;
        self.storage.get_mut(start..start + contract.slot_words)
    }

    /// The free slot for the next message to `side`.
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

    /// Tells whoever waits at this end.
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

/// Creates a channel whose ends both belong to the caller.
pub fn create(caller: ProcessRef, contract: &'static Contract) -> Result<(EndpointRef, EndpointRef), Status> {
    caller.charge_channel()?;
    let id = caller.id.load(Ordering::Relaxed);
    let Some(channel) = CHANNELS.allocate() else {
        caller.refund_channel(id);
        return Err(Status::Exhausted);
    };
    let generation = channel.generation();
    let importer = EndpointRef { channel, side: SideIndex::Importer, generation };
    let exporter = importer.peer();
    let mut inner = channel.inner.lock();
    inner.contract = Some(contract);
    inner.creator = Some((caller, id));
    inner.storage.clear();
    inner.storage.resize((contract.bounds[0] + contract.bounds[1]) * contract.slot_words, 0);
    for side in &mut inner.sides {
        *side = Side {
            place: Place::Owned,
            owner: Some(caller),
            speaker: caller.program.get(),
            home: NO_BLOCK,
            ..Side::default()
        };
    }
    drop(inner);
    let mut endpoints = caller.endpoints.lock();
    endpoints.insert(importer.index());
    endpoints.insert(exporter.index());
    Ok((importer, exporter))
}

/// Sends the message in `buffer`.
#[inline(always)]
pub fn send(caller: ProcessRef, endpoint: EndpointRef, word: u64, buffer: MessageBuffer) -> Result<(), SendError> {
    let mut inner = endpoint.lock_owned(caller)?;
    let tag = (word & 0xffff) as usize;
    let state = inner.sides[endpoint.side as usize].state;
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let (Some(message), Some(next)) = (contract.message(tag), contract.next(state, tag)) else {
        drop(inner);
        return Err(out_of_state(contract, state, tag));
    };
    if message.word != word || message.sender != endpoint.side {
        drop(inner);
        return Err(wrong_shape(contract, message, endpoint.side, state));
    }
    if message.plain {
        return place(inner, endpoint, message, next, buffer);
    }
    check_ranges(contract, message, state, buffer)?;
    if message.shape.endpoints.is_empty() {
        take_blocks(caller, endpoint, &mut inner, message, buffer)
            .map_err(|how| violation(contract, message, state, how))?;
        return place(inner, endpoint, message, next, buffer);
    }
    drop(inner);
    send_with_endpoints(caller, endpoint, message, (state, next), buffer)
}

#[cold]
fn out_of_state(contract: &Contract, state: u16, tag: usize) -> SendError {
    let name = contract.message(tag).map_or_else(|| format!("message {tag}"), |message| message.shape.name.clone());
    SendError::Violation(format!(
        "sent {name} in state {} of contract {}, which does not allow it",
        contract.state_name(state),
        contract.automaton.name
    ))
}

#[cold]
fn wrong_shape(contract: &Contract, message: &Monitored, side: SideIndex, state: u16) -> SendError {
    let how = if message.sender == side { "with the wrong number of arguments" } else { "in the wrong direction" };
    violation(contract, message, state, how)
}

#[cold]
fn violation(contract: &Contract, message: &Monitored, state: u16, how: &str) -> SendError {
    SendError::Violation(format!(
        "sent {} in state {} of contract {} {how}",
        message.shape.name,
        contract.state_name(state),
        contract.automaton.name
    ))
}

fn check_ranges(contract: &Contract, message: &Monitored, state: u16, buffer: MessageBuffer) -> Result<(), SendError> {
    for range in message.ranges() {
        if buffer.get(range.word as usize) > range.max {
            return Err(violation(contract, message, state, "with a value that its type does not have"));
        }
    }
    Ok(())
}

/// Takes the message's blocks from the caller; all or none.
fn take_blocks(
    caller: ProcessRef,
    endpoint: EndpointRef,
    inner: &mut Inner,
    message: &Monitored,
    buffer: MessageBuffer,
) -> Result<(), &'static str> {
    let first = message.shape.scalar_words as usize;
    for (number, shape) in message.shape.blocks.iter().enumerate() {
        let handle = buffer.get(first + number * BLOCK_WORDS);
        if let Err(how) = take_block(caller, endpoint, inner, shape, handle) {
            for taken in 0..number {
                if let Ok(block) = claims::block(buffer.get(first + taken * BLOCK_WORDS)) {
                    untake_block(caller, endpoint, inner, &message.shape.blocks[taken], block);
                }
            }
            return Err(how);
        }
    }
    Ok(())
}

#[inline(always)]
fn take_block(
    caller: ProcessRef,
    endpoint: EndpointRef,
    inner: &mut Inner,
    shape: &BlockShape,
    handle: u64,
) -> Result<(), &'static str> {
    const NOT_OWN: &str = "with a block that the sender does not own";
    let block = claims::block(handle).map_err(|_| NOT_OWN)?;
    exheap::take_from(caller, block, handle).map_err(|_| NOT_OWN)?;
    let refused = if block.type_tag.load(Ordering::Relaxed) != shape.type_tag {
        Some("with a block of another type")
    } else if shape.returned {
        if block.lender() == Some(endpoint.peer().handle()) {
            block.pop_loan();
            inner.sides[endpoint.side.peer() as usize].loans_out -= 1;
            None
        } else {
            Some("to return a block that was not lent over this channel")
        }
    } else if shape.lent {
        if block.push_loan(endpoint.handle()) {
            inner.sides[endpoint.side as usize].loans_out += 1;
            None
        } else {
            Some("with a block that is lent on too often")
        }
    } else if block.is_lent() {
        Some("with a lent block as if it were its own")
    } else {
        None
    };
    match refused {
        None => Ok(()),
        Some(how) => {
            exheap::give_to(caller, block);
            Err(how)
        }
    }
}

fn untake_block(caller: ProcessRef, endpoint: EndpointRef, inner: &mut Inner, shape: &BlockShape, block: BlockRef) {
    if shape.returned {
        block.push_loan(endpoint.peer().handle());
        inner.sides[endpoint.side.peer() as usize].loans_out += 1;
    } else if shape.lent {
        block.pop_loan();
        inner.sides[endpoint.side as usize].loans_out -= 1;
    }
    exheap::give_to(caller, block);
}

/// Puts a checked message, whose blocks and endpoints are taken, into the peer's queue.
#[inline(always)]
fn place(
    mut inner: SpinGuard<'static, Inner>,
    endpoint: EndpointRef,
    message: &Monitored,
    next: u16,
    buffer: MessageBuffer,
) -> Result<(), SendError> {
    inner.sides[endpoint.side as usize].state = next;
    let peer = endpoint.peer();
    if inner.sides[peer.side as usize].place == Place::Closed {
        drop(inner);
        let mut words = [0; MESSAGE_WORDS + 1];
        words[0] = message.word;
        buffer.read_words(&mut words[1..=message.words]);
        let mut endpoints = Vec::new();
        drop_message(message, &words[1..], &mut endpoints);
        close_all(endpoints);
        return Ok(());
    }
    let Some(slot) = inner.next_slot(peer.side) else {
        // The contract's bound was computed by its compiler and is part of the fingerprint; one that
        // is too small shows here.
        return Err(SendError::Violation(format!("sent {} into a full queue", message.shape.name)));
    };
    slot[0] = message.word;
    buffer.read_words(&mut slot[1..=message.words]);
    inner.sides[peer.side as usize].waiting += 1;
    inner.notify(peer);
    Ok(())
}

fn send_with_endpoints(
    caller: ProcessRef,
    endpoint: EndpointRef,
    message: &'static Monitored,
    (state, next): (u16, u16),
    buffer: MessageBuffer,
) -> Result<(), SendError> {
    let contract = endpoint.channel.inner.lock().contract.ok_or(Status::BadHandle)?;
    let first = message.shape.scalar_words as usize + message.shape.blocks.len() * BLOCK_WORDS;
    let put_back = |count: usize| {
        for number in 0..count {
            if let Ok(moved) = claims::endpoint(buffer.get(first + number)) {
                adopt_endpoint(caller, moved);
            }
        }
    };
    for (number, shape) in message.shape.endpoints.iter().enumerate() {
        if let Err(how) = take_endpoint(caller, endpoint, shape, buffer.get(first + number)) {
            put_back(number);
            return Err(violation(contract, message, state, how));
        }
    }
    let count = message.shape.endpoints.len();
    let mut inner = match endpoint.lock_owned(caller) {
        Ok(inner) if inner.sides[endpoint.side as usize].state == state => inner,
        _ => {
            put_back(count);
            return Err(violation(contract, message, state, "while another thread used the endpoint"));
        }
    };
    if let Err(how) = take_blocks(caller, endpoint, &mut inner, message, buffer) {
        drop(inner);
        put_back(count);
        return Err(violation(contract, message, state, how));
    }
    place(inner, endpoint, message, next, buffer)
}

/// Takes an endpoint from the caller for a message that goes out through `carrier`.
fn take_endpoint(
    caller: ProcessRef,
    carrier: EndpointRef,
    shape: &EndpointShape,
    handle: u64,
) -> Result<(), &'static str> {
    const NOT_OWN: &str = "with an endpoint that the sender does not own";
    let moved = claims::endpoint(handle).map_err(|_| NOT_OWN)?;
    if core::ptr::eq(moved.channel, carrier.channel) {
        return Err("with an endpoint of the very channel it goes through");
    }
    if leads_to(carrier.peer(), moved) {
        return Err("with an endpoint that the receiving end is itself on the way to");
    }
    let mut inner = moved.lock_owned(caller).map_err(|_| NOT_OWN)?;
    check_movable(&inner, moved, shape)?;
    let side = &mut inner.sides[moved.side as usize];
    side.place = Place::InMessage(carrier.peer().handle());
    side.owner = None;
    drop(inner);
    caller.endpoints.lock().remove(moved.index());
    Ok(())
}

/// Whether an endpoint may be moved, and is what `shape` wants.
pub fn check_movable(inner: &Inner, endpoint: EndpointRef, shape: &EndpointShape) -> Result<(), &'static str> {
    let contract = inner.contract.ok_or("with an endpoint without a contract")?;
    let side = &inner.sides[endpoint.side as usize];
    if shape.contract != 0
        && (shape.contract != contract.tag || shape.importer != (endpoint.side == SideIndex::Importer))
    {
        return Err("with an endpoint of another contract or side");
    }
    if shape.contract == 0 && shape.importer != (endpoint.side == SideIndex::Importer) {
        return Err("with the wrong end of a channel");
    }
    if shape.state != NO_TRANSITION && shape.state != side.state {
        return Err("with an endpoint in another state");
    }
    if contract.sender(side.state) != Some(endpoint.side) || side.waiting > 0 {
        return Err("with an endpoint whose turn it is not to send");
    }
    if side.loans_out > 0 || side.home != NO_BLOCK {
        return Err("with an endpoint that still has lent blocks out");
    }
    if !side.waiter.is_over() {
        return Err("with an endpoint that is waited at");
    }
    Ok(())
}

/// Takes an endpoint from a parent for a child's start-up slot that wants `shape`. Nothing is said through
/// a slot, so it may be either end's turn.
pub fn take_givable(parent: ProcessRef, endpoint: EndpointRef, shape: &EndpointShape) -> Result<(), Status> {
    let mut inner = endpoint.lock_owned(parent)?;
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let side = &mut inner.sides[endpoint.side as usize];
    let importer = endpoint.side == SideIndex::Importer;
    if contract.tag != shape.contract || importer != shape.importer || side.state != shape.state {
        return Err(Status::ContractMismatch);
    }
    if side.loans_out > 0 || side.home != NO_BLOCK || !side.waiter.is_over() {
        return Err(Status::Busy);
    }
    side.waiter = Waiter::Nobody;
    side.place = Place::InMessage(0);
    side.owner = None;
    parent.endpoints.lock().remove(endpoint.index());
    Ok(())
}

/// The endpoint with this number of a channel that is alive.
pub fn endpoint_at(channel: &'static Slot<Channel>, index: u32) -> EndpointRef {
    let side = if index & 1 == 0 { SideIndex::Importer } else { SideIndex::Exporter };
    EndpointRef { channel, side, generation: channel.generation() }
}

/// Whether `from` is in a message, on its way (perhaps over others) to `target`.
fn leads_to(from: EndpointRef, target: EndpointRef) -> bool {
    let mut at = from;
    loop {
        if at.handle() == target.handle() {
            return true;
        }
        let place = at.channel.inner.lock().sides[at.side as usize].place;
        match place {
            Place::InMessage(towards) => match claims::endpoint(towards) {
                Ok(next) => at = next,
                Err(_) => return false,
            },
            _ => return false,
        }
    }
}

/// Gives an endpoint that is in nobody's list to a SIP.
pub fn adopt_endpoint(process: ProcessRef, endpoint: EndpointRef) {
    let mut inner = endpoint.channel.inner.lock();
    let side = &mut inner.sides[endpoint.side as usize];
    side.place = Place::Owned;
    side.owner = Some(process);
    side.speaker = process.program.get();
    process.endpoints.lock().insert(endpoint.index());
}

/// Takes the next message off the queue into the buffer.
#[inline(always)]
pub fn try_receive(caller: ProcessRef, endpoint: EndpointRef, buffer: MessageBuffer) -> Result<Received, Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    if inner.sides[endpoint.side as usize].waiting == 0 {
        if inner.is_ready(endpoint.side) {
            hand_home(caller, endpoint, inner, buffer);
            return Ok(Received::Closed);
        }
        return Ok(Received::Nothing);
    }
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let side = &mut inner.sides[endpoint.side as usize];
    let head = side.head;
    side.head = if head + 1 == contract.bounds[endpoint.side as usize] { 0 } else { head + 1 };
    side.waiting -= 1;
    let state = side.state;
    let slot = inner.slot(endpoint.side, head).ok_or(Status::BadHandle)?;
    let word = slot[0];
    let tag = (word & 0xffff) as usize;
    let message = contract.message(tag).ok_or(Status::BadHandle)?;
    buffer.write_words(&slot[1..=message.words]);
    // The sender's state allowed it, and we follow the same path, so there is a next state.
    inner.sides[endpoint.side as usize].state = contract.next(state, tag).unwrap_or(state);
    drop(inner);
    if !message.plain {
        adopt(caller, message, buffer);
    }
    Ok(Received::Message(word))
}

/// Makes the receiver the owner of what a message carries.
#[inline(always)]
fn adopt(caller: ProcessRef, message: &Monitored, buffer: MessageBuffer) {
    let mut at = message.shape.scalar_words as usize;
    for _ in &message.shape.blocks {
        if let Ok(block) = claims::block(buffer.get(at)) {
            exheap::give_to(caller, block);
            buffer.set(at + 1, block.address.load(Ordering::Relaxed) as u64);
            buffer.set(at + 2, block.size() as u64);
        }
        at += BLOCK_WORDS;
    }
    for _ in &message.shape.endpoints {
        if let Ok(moved) = claims::endpoint(buffer.get(at)) {
            adopt_endpoint(caller, moved);
        }
        at += 1;
    }
}

/// Gives the lent blocks that came home to their lender: as many as the buffer holds.
fn hand_home(caller: ProcessRef, endpoint: EndpointRef, mut inner: SpinGuard<'static, Inner>, buffer: MessageBuffer) {
    let mut count = 0;
    while (count + 1) * BLOCK_WORDS < MESSAGE_WORDS {
        let side = &mut inner.sides[endpoint.side as usize];
        let Some(block) = BLOCKS.slot(side.home) else { break };
        side.home = block.next.load(Ordering::Relaxed);
        block.next.store(NO_BLOCK, Ordering::Relaxed);
        exheap::give_to(caller, block);
        let at = 1 + count * BLOCK_WORDS;
        buffer.set(at, block.handle());
        buffer.set(at + 1, block.address.load(Ordering::Relaxed) as u64);
        buffer.set(at + 2, block.size() as u64);
        caller.trace.add(TraceKind::CameHome, block.handle(), 0);
        count += 1;
    }
    buffer.set(0, count as u64);
}

/// Waits for the next message.
#[inline(always)]
pub fn receive(
    caller: ProcessRef,
    endpoint: EndpointRef,
    deadline: u64,
    buffer: MessageBuffer,
) -> Result<Received, Status> {
    loop {
        match try_receive(caller, endpoint, buffer)? {
            Received::Nothing => {}
            found => return Ok(found),
        }
        let ticket = wait::begin();
        let registered = register(caller, endpoint, Waiter::Thread(ticket));
        match registered {
            Ok(true) => match wait::block(ticket, deadline) {
                Woken::Signalled => {}
                Woken::TimedOut => {
                    unregister(endpoint, ticket);
                    return Err(Status::TimedOut);
                }
                Woken::Killed => return Err(Status::Closed),
            },
            Ok(false) => drop_wait(ticket),
            Err(status) => {
                drop_wait(ticket);
                return Err(status);
            }
        }
    }
}

/// Ends a wait that was begun but not needed.
pub fn drop_wait(ticket: Ticket) {
    if !wait::cancel(ticket) {
        wait::block(ticket, abi::limits::NEVER);
    }
}

/// Leaves a waiter at an endpoint; false if there is something to receive already.
#[inline(always)]
fn register(caller: ProcessRef, endpoint: EndpointRef, waiter: Waiter) -> Result<bool, Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    if inner.is_ready(endpoint.side) {
        return Ok(false);
    }
    let side = &mut inner.sides[endpoint.side as usize];
    match side.waiter {
        Waiter::Nobody => {}
        old if old.is_over() => {}
        _ => return Err(Status::Busy),
    }
    side.waiter = waiter;
    Ok(true)
}

fn unregister(endpoint: EndpointRef, ticket: Ticket) {
    let mut inner = endpoint.channel.inner.lock();
    let side = &mut inner.sides[endpoint.side as usize];
    if let Waiter::Thread(waiting) = side.waiter
        && core::ptr::eq(waiting.thread, ticket.thread)
    {
        side.waiter = Waiter::Nobody;
    }
}

/// Leaves a thread's ticket at an endpoint, for a wait for several objects; true if it is ready.
pub fn wait_at(caller: ProcessRef, endpoint: EndpointRef, ticket: Ticket) -> Result<bool, Status> {
    register(caller, endpoint, Waiter::Thread(ticket)).map(|registered| !registered)
}

/// Takes a thread's ticket back.
pub fn stop_waiting_at(endpoint: EndpointRef, ticket: Ticket) {
    unregister(endpoint, ticket);
}

/// Whether there is something to receive.
pub fn is_ready(caller: ProcessRef, endpoint: EndpointRef) -> Result<bool, Status> {
    Ok(endpoint.lock_owned(caller)?.is_ready(endpoint.side))
}

/// Puts an endpoint into a wait set.
pub fn join_set(caller: ProcessRef, endpoint: EndpointRef, set: SyncRef, key: u64) -> Result<(), Status> {
    crate::sync::reserve(set, caller)?;
    match register(caller, endpoint, Waiter::Set { set, key }) {
        Ok(true) => Ok(()),
        Ok(false) => {
            crate::sync::announce(set, key, endpoint.handle());
            Ok(())
        }
        Err(status) => {
            crate::sync::leave(set, endpoint.handle());
            Err(status)
        }
    }
}

/// Takes an endpoint out of a wait set.
pub fn leave_set(caller: ProcessRef, endpoint: EndpointRef, set: SyncRef) -> Result<(), Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    let side = &mut inner.sides[endpoint.side as usize];
    if let Waiter::Set { set: joined, .. } = side.waiter
        && core::ptr::eq(joined.slot, set.slot)
    {
        side.waiter = Waiter::Nobody;
    }
    drop(inner);
    crate::sync::leave(set, endpoint.handle());
    Ok(())
}

/// Closes an endpoint of the caller's.
pub fn close(caller: ProcessRef, endpoint: EndpointRef) -> Result<(), Status> {
    let inner = endpoint.lock_owned(caller)?;
    caller.endpoints.lock().remove(endpoint.index());
    let mut more = Vec::new();
    close_locked(endpoint, inner, &mut more);
    close_all(more);
    Ok(())
}

/// Closes endpoints that are in nobody's list, and those in messages that wait for them. A work list
/// rather than recursion: a SIP may nest endpoints in messages deeper than a stack.
pub fn close_all(mut endpoints: Vec<EndpointRef>) {
    while let Some(endpoint) = endpoints.pop() {
        let inner = endpoint.channel.inner.lock();
        if endpoint.channel.generation() == endpoint.generation
            && inner.sides[endpoint.side as usize].place != Place::Closed
        {
            close_locked(endpoint, inner, &mut endpoints);
        }
    }
}

fn close_locked(endpoint: EndpointRef, mut inner: SpinGuard<'static, Inner>, more: &mut Vec<EndpointRef>) {
    let Some(contract) = inner.contract else { return };
    let mut waiting: Vec<Vec<u64>> = Vec::new();
    let bound = contract.bounds[endpoint.side as usize];
    for number in 0..inner.sides[endpoint.side as usize].waiting {
        let position = (inner.sides[endpoint.side as usize].head + number) % bound.max(1);
        if let Some(slot) = inner.slot(endpoint.side, position) {
            waiting.push(slot.to_vec());
        }
    }
    let side = &mut inner.sides[endpoint.side as usize];
    let home = side.home;
    let speaker = side.speaker;
    let set = match side.waiter {
        Waiter::Set { set, .. } => Some(set),
        _ => None,
    };
    *side = Side { speaker, home: NO_BLOCK, ..Side::default() };
    let both_closed = inner.sides[endpoint.side.peer() as usize].place == Place::Closed;
    let creator = inner.creator;
    if !both_closed {
        inner.notify(endpoint.peer());
    }
    drop(inner);
    if let Some(set) = set {
        crate::sync::leave(set, endpoint.handle());
    }
    for words in &waiting {
        if let Some(message) = contract.message((words[0] & 0xffff) as usize) {
            drop_message(message, &words[1..], more);
        }
    }
    let mut next = BLOCKS.slot(home);
    while let Some(block) = next {
        next = BLOCKS.slot(block.next.load(Ordering::Relaxed));
        exheap::dispose(block);
    }
    if both_closed {
        CHANNELS.release(endpoint.channel);
        if let Some((creator, id)) = creator {
            creator.refund_channel(id);
        }
    }
}

/// Ends the blocks of a message that nobody will receive, and collects its endpoints to be closed.
fn drop_message(message: &Monitored, words: &[u64], endpoints: &mut Vec<EndpointRef>) {
    let mut at = message.shape.scalar_words as usize;
    for _ in &message.shape.blocks {
        if let Ok(block) = claims::block(words[at]) {
            exheap::dispose(block);
        }
        at += BLOCK_WORDS;
    }
    for _ in &message.shape.endpoints {
        if let Ok(moved) = claims::endpoint(words[at]) {
            endpoints.push(moved);
        }
        at += 1;
    }
}

/// Leaves a lent block at the endpoint that lent it; false if that is closed.
pub fn bring_home(lender: u64, block: BlockRef) -> bool {
    let Ok(endpoint) = claims::endpoint(lender) else { return false };
    let mut inner = endpoint.channel.inner.lock();
    let open = endpoint.channel.generation() == endpoint.generation
        && inner.sides[endpoint.side as usize].place != Place::Closed;
    if !open {
        return false;
    }
    let side = &mut inner.sides[endpoint.side as usize];
    block.next.store(side.home, Ordering::Relaxed);
    side.home = block.index();
    side.loans_out = side.loans_out.saturating_sub(1);
    if inner.is_ready(endpoint.side) {
        inner.notify(endpoint);
    }
    true
}
