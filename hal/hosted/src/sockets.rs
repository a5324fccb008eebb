//! The host's own sockets as one device; see [`abi::sockets`].
//!
//! Key type: [`Sockets`]. All calls are non-blocking, so all complete at once, under one lock; only one request for events
//! can be pending, and its thread waits for the epoll instance to become readable without taking events from it: so the
//! next owner of the device loses no events to its predecessor. Neighbours: `socket_calls` (system calls),
//! `socket_watch` (when that wait begins), `commands` (control records). Deliberately not here: channels, protocols.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use abi::sockets::{
    CONTROL, ENDING, EVENT_BYTES, EVENTS, FAILURE, Failure, MAX_KEPT_BYTES, MORE, READABLE, SENDER, SENDER_BYTES,
    WRITABLE,
};
use hal_api::{DeviceFailure, DeviceOperation, Submitted};

use crate::faults::Faults;
use crate::socket_calls::{self as calls, Name, number};
use crate::socket_watch::Watch;
use crate::transfer::Memory;
use crate::{commands, entries};

/// Position of the generation in a token.
const GENERATION_SHIFT: u32 = 32;
/// Number of generations before they wrap.
const GENERATIONS: u32 = 1 << 24;

const THREAD_STACK_BYTES: usize = 256 * 1024;

/// Kinds of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A connection, established or being established.
    Connection,
    /// A listener.
    Listener,
    /// Datagrams, or echo requests.
    Datagrams,
}

/// Events registered for a socket. Writability is registered only after a send would have blocked, which is rare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Watched {
    /// None yet.
    No,
    /// Readability.
    ToRead,
    /// Also writability.
    ToWrite,
}

/// One socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) file: OwnedFd,
    pub(crate) purpose: Purpose,
    /// Whether it is an IPv6 socket.
    pub(crate) version_6: bool,
    /// Registered events.
    watched: Watched,
    /// Whether its sending direction was shut down.
    pub(crate) finished: bool,
    /// Local name of all connections of a listener, unless it differs among them.
    pub(crate) local: Option<Name>,
    /// Destination of datagrams.
    pub(crate) remote: Name,
    /// Whether its datagrams are echo requests and replies.
    pub(crate) is_echo: bool,
    /// Bytes buffered because more was to follow; sent before the next ones.
    kept: Vec<u8>,
}

impl Socket {
    /// Makes the entry of a new socket.
    pub(crate) fn new(file: OwnedFd, purpose: Purpose, version_6: bool) -> Self {
        let remote = Name::default();
        let (watched, finished, is_echo) = (Watched::No, false, false);
        Self { file, purpose, version_6, watched, finished, local: None, remote, is_echo, kept: Vec::new() }
    }

    /// Returns its retransmissions, or its drops.
    pub(crate) fn lost(&self) -> u64 {
        u64::from(match self.purpose {
            Purpose::Connection => calls::retransmitted(self.descriptor()),
            Purpose::Listener | Purpose::Datagrams => calls::dropped(self.descriptor()),
        })
    }

    /// Returns its file descriptor.
    pub(crate) fn descriptor(&self) -> RawFd {
        number(&self.file)
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    socket: Option<Socket>,
}

/// All sockets of the device's owner.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The epoll instance; created on first use.
    watcher: Option<Arc<OwnedFd>>,
}

/// A pending request for events.
#[derive(Clone, Copy, Debug)]
struct Request {
    token: u64,
    memory: Memory,
}

#[derive(Debug, Default)]
struct State {
    table: Table,
    request: Option<Request>,
    /// Interrupts the host thread's wait; created with the thread.
    alarm: Option<Arc<OwnedFd>>,
}

/// The device.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    state: Mutex<State>,
    watch: Watch,
    /// Fault injection.
    faults: Option<Faults>,
}

/// Result of a request: a number below [`FAILURE`], or an error.
pub(crate) type Answer = Result<usize, Failure>;

impl Table {
    /// Inserts a socket and returns its token.
    pub(crate) fn insert(&mut self, socket: Socket) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        token(index, slot.generation)
    }

    /// Returns the socket of a token.
    pub(crate) fn get(&mut self, wanted: u64) -> Result<&mut Socket, Failure> {
        let slot = self.slots.get_mut(wanted as u32 as usize).ok_or(Failure::BadToken)?;
        if u64::from(slot.generation) != wanted >> GENERATION_SHIFT {
            return Err(Failure::BadToken);
        }
        slot.socket.as_mut().ok_or(Failure::BadToken)
    }

    /// Like `get`, for a socket of this purpose.
    pub(crate) fn get_for(&mut self, wanted: u64, purpose: Purpose) -> Result<&mut Socket, Failure> {
        self.get(wanted).and_then(|socket| if socket.purpose == purpose { Ok(socket) } else { Err(Failure::BadToken) })
    }

    /// Removes a socket. Dropping it closes it.
    pub(crate) fn remove(&mut self, wanted: u64) -> Result<Socket, Failure> {
        self.get(wanted)?;
        let index = wanted as u32;
        let slot = &mut self.slots[index as usize];
        slot.generation = (slot.generation + 1) % GENERATIONS;
        self.free.push(index);
        slot.socket.take().ok_or(Failure::BadToken)
    }

    /// Registers a socket for events.
    pub(crate) fn watch(&mut self, wanted: u64, what: Watched) -> Result<(), Failure> {
        let watcher = self.watcher()?;
        let socket = self.get(wanted)?;
        if socket.watched < what {
            let (for_room, again) = (what == Watched::ToWrite, socket.watched != Watched::No);
            calls::watch(number(&watcher), socket.descriptor(), wanted, for_room, again)
                .map_err(|error| failure(&error))?;
            socket.watched = what;
        }
        Ok(())
    }

    fn watcher(&mut self) -> Result<Arc<OwnedFd>, Failure> {
        if self.watcher.is_none() {
            self.watcher = Some(Arc::new(calls::watcher().map_err(|error| failure(&error))?));
        }
        self.watcher.clone().ok_or(Failure::Other)
    }

    /// Registers a socket for events if a call on it would have blocked.
    pub(crate) fn watch_if_blocked(&mut self, wanted: u64, what: Watched, answer: Answer) -> Answer {
        if answer == Err(Failure::WouldBlock) {
            self.watch(wanted, what)?;
        }
        answer
    }

    fn read(&mut self, offset: u64, memory: Memory) -> Answer {
        let wanted = offset & !SENDER;
        let socket = self.get(wanted)?;
        let answer = match (socket.purpose, offset != wanted) {
            (Purpose::Connection, false) => calls::receive(socket.descriptor(), memory),
            (Purpose::Datagrams, true) => receive_datagram(socket, memory),
            _ => return Err(Failure::BadToken),
        };
        self.watch_if_blocked(wanted, Watched::ToRead, answer.map_err(|error| failure(&error)))
    }

    fn write(&mut self, wanted: u64, memory: Memory, more: bool) -> Answer {
        let socket = self.get(wanted)?;
        let descriptor = socket.descriptor();
        let answer = match socket.purpose {
            Purpose::Connection if more && socket.kept.len() + memory.bytes() <= MAX_KEPT_BYTES => {
                let before = socket.kept.len();
                socket.kept.resize(before + memory.bytes(), 0);
                return Ok(memory.copy_out(0, &mut socket.kept[before..]));
            }
            Purpose::Connection => calls::send(descriptor, &socket.kept, memory, more).and_then(|sent| {
                let gone = sent.min(socket.kept.len());
                socket.kept.drain(..gone);
                let is_done = memory.bytes() == 0 && socket.kept.is_empty();
                if sent > gone || is_done { Ok(sent - gone) } else { Err(io::ErrorKind::WouldBlock.into()) }
            }),
            Purpose::Datagrams => calls::send_to(descriptor, memory, socket.remote, socket.version_6),
            Purpose::Listener => return Err(Failure::BadToken),
        };
        self.watch_if_blocked(wanted, Watched::ToWrite, answer.map_err(|error| failure(&error)))
    }

    /// Copies available events to the memory and returns the length in bytes.
    fn events(&self, memory: Memory) -> usize {
        let Some(watcher) = &self.watcher else { return 0 };
        let mut filled = 0;
        let taken = calls::events(number(watcher), memory.bytes() / EVENT_BYTES, |event| {
            let mut record = [0; EVENT_BYTES];
            record[..8].copy_from_slice(&event.token.to_le_bytes());
            record[8..].copy_from_slice(&readiness(event.bits).to_le_bytes());
            filled += memory.after(filled).fill(&record);
        });
        // The only possible error is EINTR, which counts as no event.
        taken.map_or(0, |_| filled)
    }

    /// Closes all sockets. Connections that were not finished are reset: the data sent so far is incomplete.
    fn close_all(&mut self) {
        self.watcher = None;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(socket) = slot.socket.take() else { continue };
            slot.generation = (slot.generation + 1) % GENERATIONS;
            self.free.push(index as u32);
            if socket.purpose == Purpose::Connection && !socket.finished {
                // On error it is closed without a reset.
                let _ = calls::reset_on_close(socket.descriptor());
            }
        }
    }
}

impl Sockets {
    /// Creates the device, with fault injection on request.
    pub(crate) fn new(fault_every: Option<u32>) -> Arc<Self> {
        Arc::new(Self { faults: fault_every.map(Faults::every), ..Self::default() })
    }

    /// Returns the result of a request that is made to fail. Close and Flush are exempt.
    fn fault(&self, operation: DeviceOperation, offset: u64, memory: Memory) -> Option<Submitted> {
        let faults = self.faults.as_ref()?;
        let is_close = (operation, offset) == (DeviceOperation::Write, CONTROL) && commands::is_close(memory);
        if is_close || operation == DeviceOperation::Flush {
            return None;
        }
        faults
            .next()
            .map(|fault| fault.map_or_else(|failure| Submitted::Complete(Err(failure)), |kind| complete(Err(kind))))
    }

    /// Starts a request.
    pub(crate) fn submit(
        self: &Arc<Self>,
        token: u64,
        operation: DeviceOperation,
        offset: u64,
        memory: Memory,
    ) -> Submitted {
        if let Some(failed) = self.fault(operation, offset, memory) {
            return failed;
        }
        match (operation, offset) {
            (DeviceOperation::Read, EVENTS) => self.wait_for_events(Request { token, memory }),
            (DeviceOperation::Read, offset) => complete(lock(&self.state).table.read(offset, memory)),
            (DeviceOperation::Write, CONTROL) => commands::perform(&mut lock(&self.state).table, token, memory),
            (DeviceOperation::Write, wanted) => {
                let more = wanted & MORE != 0;
                complete(lock(&self.state).table.write(wanted & !MORE, memory, more))
            }
            (DeviceOperation::Flush, _) => {
                self.look();
                Submitted::Complete(Ok(0))
            }
        }
    }

    fn wait_for_events(self: &Arc<Self>, request: Request) -> Submitted {
        if request.memory.bytes() < EVENT_BYTES {
            return complete(Err(Failure::BadCommand));
        }
        let mut state = lock(&self.state);
        let replaced = state.request.take();
        let bytes = state.table.events(request.memory);
        let submitted = if bytes > 0 {
            Submitted::Complete(Ok(bytes))
        } else {
            match self.prepare(&mut state) {
                Ok(()) => {
                    state.request = Some(request);
                    self.watch.ask();
                    Submitted::Queued
                }
                Err(failure) => complete(Err(failure)),
            }
        };
        drop(state);
        if let Some(replaced) = replaced {
            announce(replaced, Err(DeviceFailure));
        }
        submitted
    }

    /// Creates the epoll instance and the host thread that a pending request needs.
    fn prepare(self: &Arc<Self>, state: &mut State) -> Result<(), Failure> {
        state.table.watcher()?;
        if state.alarm.is_none() {
            let alarm = calls::alarm().map_err(|error| failure(&error))?;
            let device = Arc::clone(self);
            let thread = thread::Builder::new().name("sockets".into()).stack_size(THREAD_STACK_BYTES);
            thread.spawn(move || device.wait()).map_err(|_| Failure::Exhausted)?;
            state.alarm = Some(Arc::new(alarm));
        }
        Ok(())
    }

    /// Runs the host thread: waits until the epoll instance has an event, and completes the pending request.
    fn wait(&self) {
        loop {
            self.watch.begin();
            while let Some((watcher, alarm)) = self.waited_for() {
                calls::wait_for_any(&[number(&watcher), number(&alarm)]);
                calls::silence(number(&alarm));
                drop(watcher);
                self.look();
            }
        }
    }

    /// Returns the files to wait for, while a request is pending.
    fn waited_for(&self) -> Option<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let state = lock(&self.state);
        state.request?;
        state.table.watcher.clone().zip(state.alarm.clone())
    }

    /// Reports that a processor goes idle.
    pub(crate) fn processor_idles(&self) {
        self.watch.processor_idles();
    }

    /// Polls for events, and completes the pending request if there are any.
    fn look(&self) {
        let mut state = lock(&self.state);
        let Some(request) = state.request else { return };
        let bytes = state.table.events(request.memory);
        if bytes > 0 {
            state.request = None;
            drop(state);
            announce(request, Ok(bytes));
        }
    }

    /// See [`hal_api::Machine::device_closed`].
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        let request = state.request.take();
        state.table.close_all();
        if let Some(alarm) = &state.alarm {
            calls::ring(number(alarm));
        }
        drop(state);
        if let Some(request) = request {
            announce(request, Err(DeviceFailure));
        }
    }
}

fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << GENERATION_SHIFT | u64::from(index)
}

fn receive_datagram(socket: &Socket, memory: Memory) -> io::Result<usize> {
    let room = memory.bytes().checked_sub(SENDER_BYTES).ok_or(io::ErrorKind::InvalidInput)?;
    let receive = if socket.is_echo { calls::receive_echo } else { calls::receive_from };
    let (length, sender) = receive(socket.descriptor(), memory.first(room))?;
    memory.after(room).fill(&sender.to_bytes());
    Ok(length.min(room))
}

fn readiness(bits: u32) -> u64 {
    let has = |wanted: libc::c_int| bits & wanted as u32 != 0;
    let mut readiness = 0;
    if has(libc::EPOLLIN) {
        readiness |= READABLE;
    }
    if has(libc::EPOLLOUT) {
        readiness |= WRITABLE;
    }
    if has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) {
        readiness |= ENDING | READABLE | WRITABLE;
    }
    readiness
}

/// Maps an error of the host.
pub(crate) fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error().unwrap_or(0) {
        libc::EAGAIN | libc::EINTR | libc::EINPROGRESS | libc::EALREADY => Failure::WouldBlock,
        libc::EACCES | libc::EPERM => Failure::NotPermitted,
        libc::EADDRNOTAVAIL | libc::EINVAL | libc::EAFNOSUPPORT | libc::EDESTADDRREQ => Failure::BadAddress,
        libc::EADDRINUSE => Failure::AddressInUse,
        libc::ECONNREFUSED => Failure::ConnectionRefused,
        libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Failure::Reset,
        libc::ETIMEDOUT => Failure::TimedOut,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => Failure::Unreachable,
        libc::ENOTCONN | libc::ESHUTDOWN => Failure::Closed,
        libc::EMFILE | libc::ENFILE => Failure::TooManySockets,
        libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC => Failure::Exhausted,
        libc::EMSGSIZE => Failure::TooLong,
        libc::ENOENT | libc::ENODEV | libc::ENXIO => Failure::NotFound,
        libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::ENOPROTOOPT => Failure::NotSupported,
        _ => Failure::Other,
    }
}

/// Makes a completion of a result.
pub(crate) fn complete(answer: Answer) -> Submitted {
    Submitted::Complete(Ok(encode(answer)))
}

/// Encodes a result as a number.
pub(crate) fn encode(answer: Answer) -> usize {
    answer.unwrap_or_else(|failure| (FAILURE | failure as u64) as usize)
}

fn announce(request: Request, result: Result<usize, DeviceFailure>) {
    if let Some(entries) = entries::get() {
        (entries.device_complete)(request.token, result.unwrap_or(0) as u64, result.is_err());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
