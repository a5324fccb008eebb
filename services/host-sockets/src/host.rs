//! The `sockets0` device as functions, and the task that receives its events.
//!
//! Key types: [`Host`] (the device), [`Socket`] (one socket, closed when dropped). Every call except a name lookup
//! completes when it returns; a call that would block is retried when the device reports readiness. Deliberately not
//! here: contracts.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::ops::Range;
use core::task::{Poll, Waker};

use contracts::SocketAddress;
use network_guard::Guard;
use sip::device::sockets::{
    ACCEPTED_BYTES, CONTROL, Command, ENDING, EVENT_BYTES, EVENTS, FAILURE, FIRST_AT, Failure, NAME_AT, NAME_BYTES,
    READABLE, RECORD_BYTES, SECOND_AT, SENDER, TOKEN_AT, WRITABLE,
};
use sip::device::{Completion, Declared, Device, DeviceOperation};
use sip::exheap::{ExVec, Lendable};
use sip::{Deadline, Status, executor};
use task_sync::Notify;

use crate::returned::{Content, Returned};

/// Maximum number of events taken at once.
const MAX_EVENTS: usize = 256;
/// After this many events, their work is done before the next batch is read.
const EVENTS_AT_ONCE: usize = 16;
/// Retry delay after a failed event request, in milliseconds.
const RETRY_MS: u64 = 10;
/// Maximum number of connections accepted at once.
pub const MAX_ACCEPTED: usize = 16;
/// Number of open sockets above which idle ones keep no memory.
const CROWD: usize = 1024;
/// Offset of a socket's loss counter (retransmits or drops) in answers that carry no name.
const LOST_AT: usize = NAME_AT;
const CONTROL_BYTES: usize = RECORD_BYTES + MAX_ACCEPTED * ACCEPTED_BYTES;

/// Kind of a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A connected byte stream.
    Connection,
    /// A listening socket.
    Listener,
    /// A socket for datagrams or echo requests.
    Datagrams,
}

/// A snapshot of a connection's state.
pub struct Described {
    /// State number, as in `SocketRecord`.
    pub state: u16,
    /// Bytes queued for reading.
    pub receive_queued: u32,
    /// Bytes not yet sent or not yet acknowledged.
    pub send_queued: u32,
}

/// State kept for a socket between calls.
#[derive(Default)]
struct Watch {
    token: Cell<u64>,
    /// Whether the device reports readiness: from the first call that would block.
    watched: Cell<bool>,
    blocked_to_read: Cell<bool>,
    blocked_to_write: Cell<bool>,
    /// Nothing more will arrive beyond the queued data.
    ending: Cell<bool>,
    /// Notified when reading no longer blocks.
    reader: Notify,
    writer: Notify,
}

/// The host's socket device.
pub struct Host {
    /// Access checks for its use.
    pub guard: Guard,
    device: Device,
    control: RefCell<Option<ExVec<u8>>>,
    /// The block of operations without data.
    empty: RefCell<Option<ExVec<u8>>>,
    watches: RefCell<Vec<Option<Rc<Watch>>>>,
    /// Completions that arrived while another operation was awaited; keyed by their block's address.
    finished: RefCell<Vec<Completion>>,
    /// Tasks waiting for a lookup, each with the address of its block.
    looking_up: RefCell<Vec<(usize, Waker)>>,
    /// The task that receives events, while its request is with the device.
    event_waiter: RefCell<Option<Waker>>,
    /// Whether anything was done since that task last checked.
    active: Cell<bool>,
    /// Tasks waiting for a socket to close because the socket limit is reached.
    crowded: Notify,
    /// Retransmits or drops of closed sockets, by kind.
    lost: [Cell<u64>; 3],
    /// Number of open sockets.
    open: Cell<usize>,
}

/// An accepted connection.
pub struct Accepted {
    pub socket: Socket,
    pub local: SocketAddress,
    pub remote: SocketAddress,
}

/// A command record.
pub struct Record(pub ExVec<u8>);

impl Record {
    fn set(&mut self, at: usize, number: u64) {
        if let Some(place) = self.0.get_mut(at..at + 8) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }

    /// Returns the number at an offset.
    pub fn number(&self, at: usize) -> u64 {
        number_at(&self.0, at)
    }

    fn set_name(&mut self, name: &SocketAddress) {
        let place = self.0.get_mut(NAME_AT..).and_then(|place| place.first_chunk_mut());
        if let Some(place) = place {
            let SocketAddress { address, port, scope, .. } = *name;
            *place = Name { address, port, scope }.to_bytes();
        }
    }

    fn name(&self) -> SocketAddress {
        name_at(&self.0, NAME_AT)
    }
}

/// A socket name (address and port) in the device's format.
#[derive(layout::Record)]
#[record(bytes = 24, order = "little")]
struct Name {
    /// An IPv6 address; IPv4 addresses are mapped.
    address: [u8; 16],
    /// Port number.
    port: u16,
    /// Interface of a link-local address.
    #[at(20)]
    scope: u32,
}

const _: () = assert!(Name::BYTES == NAME_BYTES);

/// Record of an accepted connection.
#[derive(layout::Record)]
#[record(bytes = 56, order = "little")]
struct AcceptedRecord {
    token: u64,
    local: Name,
    remote: Name,
}

const _: () = assert!(AcceptedRecord::BYTES == ACCEPTED_BYTES);

/// Readiness event of a socket.
#[derive(layout::Record)]
#[record(bytes = 16, order = "little")]
struct EventRecord {
    token: u64,
    ready: u64,
}

const _: () = assert!(EventRecord::BYTES == EVENT_BYTES);

impl From<Name> for SocketAddress {
    fn from(name: Name) -> SocketAddress {
        let Name { address, port, scope } = name;
        SocketAddress { address, port, reserved: 0, scope }
    }
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    if let Some(there) = bytes.get(at..at + 8) {
        number.copy_from_slice(there);
    }
    u64::from_le_bytes(number)
}

/// Returns the socket name at an offset of a record.
pub fn name_at(bytes: &[u8], at: usize) -> SocketAddress {
    let name = bytes.get(at..).and_then(Name::parse);
    name.map_or(SocketAddress { address: [0; 16], port: 0, reserved: 0, scope: 0 }, SocketAddress::from)
}

fn decoded(answer: u64) -> Result<usize, Failure> {
    if answer < FAILURE {
        return Ok(answer as usize);
    }
    Err(Failure::from_number(answer & (FAILURE - 1)).unwrap_or(Failure::Other))
}

impl Host {
    /// Opens the device, waiting until a predecessor has closed it.
    pub fn open(device: &Declared<Device>, guard: Guard) -> Result<Rc<Host>, Status> {
        let device = device.open_when_free()?;
        Ok(Rc::new(Host {
            guard,
            device,
            control: RefCell::new(Some(ExVec::new(CONTROL_BYTES)?)),
            empty: RefCell::default(),
            watches: RefCell::default(),
            finished: RefCell::default(),
            looking_up: RefCell::default(),
            event_waiter: RefCell::default(),
            active: Cell::new(false),
            crowded: Notify::new(),
            lost: Default::default(),
            open: Cell::new(0),
        }))
    }

    /// Receives events for all sockets for the life of the process.
    pub async fn receive_events(self: Rc<Host>) {
        let mut block = None;
        loop {
            block = self.receive_event(block).await;
            if block.is_none() {
                // No event is lost: each is reported once the device, or memory for its events, is available again.
                executor::sleep_until(Deadline::after_ms(RETRY_MS)).await;
            }
        }
    }

    /// Receives pending events, or waits for the next; returns the block for reuse, `None` on failure.
    async fn receive_event(&self, block: Option<ExVec<u8>>) -> Option<ExVec<u8>> {
        let block = match block {
            Some(block) => block,
            None => ExVec::<u8>::new(MAX_EVENTS * EVENT_BYTES).ok()?,
        };
        let (address, bytes) = (block.as_ptr() as usize, block.len());
        self.active.set(false);
        let completion = match self.device.submit(DeviceOperation::Read, EVENTS, block, bytes) {
            Ok(Some(completion)) => completion,
            Ok(None) => self.wait_for(address).await,
            Err(_) => return None,
        };
        if !self.looking_up.borrow().is_empty() {
            self.collect();
        }
        completion.result.ok()?;
        let bytes = decoded(completion.answer).ok()?;
        for events in completion.block.get(..bytes).unwrap_or(&[]).as_chunks().0.chunks(EVENTS_AT_ONCE) {
            self.active.set(false);
            for event in events {
                let EventRecord { token, ready } = EventRecord::from_bytes(event);
                self.dispatch(token, ready);
            }
            self.work().await;
        }
        Some(completion.block)
    }

    /// Lets woken tasks make progress, and then the clients that they sent messages to: an answer is on its way
    /// before the next request is received, from memory that the processor's cache still holds.
    async fn work(&self) {
        executor::idle().await;
        if self.active.get() {
            sip::thread::yield_now();
            executor::idle().await;
        }
    }

    /// Waits for the event request to complete.
    async fn wait_for(&self, address: usize) -> Completion {
        loop {
            if let Some(completion) = self.take(address) {
                return completion;
            }
            if self.active.replace(false) {
                // Once nothing else is runnable, the device polls before this process blocks.
                executor::idle().await;
                self.look();
                continue;
            }
            let mut ready = core::pin::pin!(executor::ready(&self.device));
            poll_fn(|context| {
                if self.active.get() || Future::poll(ready.as_mut(), context).is_ready() {
                    return Poll::Ready(());
                }
                *self.event_waiter.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }

    fn look(&self) {
        // The device requires a block with each operation, even one without data.
        let block = self.empty.take();
        if let Some(block) = block.or_else(|| ExVec::new(1).ok())
            && let Ok(Some(completion)) = self.device.submit(DeviceOperation::Flush, EVENTS, block, 0)
        {
            *self.empty.borrow_mut() = Some(completion.block);
        }
    }

    fn dispatch(&self, token: u64, readiness: u64) {
        let watch = self.watches.borrow().get(token as u32 as usize).cloned().flatten();
        let Some(watch) = watch.filter(|watch| watch.token.get() == token) else { return };
        if readiness & ENDING != 0 {
            watch.ending.set(true);
        }
        if readiness & READABLE != 0 {
            watch.blocked_to_read.set(false);
            watch.reader.notify_all();
        }
        if readiness & WRITABLE != 0 {
            watch.blocked_to_write.set(false);
            watch.writer.notify_all();
        }
    }

    /// Takes the completion of the queued operation on the block at this address, if there is one.
    fn take(&self, address: usize) -> Option<Completion> {
        self.collect();
        let mut finished = self.finished.borrow_mut();
        let index = finished.iter().position(|one| one.block.as_ptr() as usize == address)?;
        Some(finished.swap_remove(index))
    }

    /// Collects completions of queued operations.
    fn collect(&self) {
        while let Ok(completion) = self.device.complete(Deadline::PASSED) {
            self.wake_look_up(completion.block.as_ptr() as usize);
            self.finished.borrow_mut().push(completion);
        }
    }

    fn wake_look_up(&self, address: usize) {
        let mut waiting = self.looking_up.borrow_mut();
        if let Some(index) = waiting.iter().position(|(waiting, _)| *waiting == address) {
            let (_, waker) = waiting.swap_remove(index);
            waker.wake();
        }
    }

    /// Performs an operation that completes at once; returns the block and the result.
    pub fn perform(
        &self,
        operation: DeviceOperation,
        offset: u64,
        block: impl Lendable<ExVec<u8>>,
        part: Range<usize>,
    ) -> (Option<Returned>, Result<usize, Failure>) {
        if !self.active.replace(true) {
            let waker = self.event_waiter.take();
            waker.into_iter().for_each(Waker::wake);
        }
        match self.device.submit_part(operation, offset, block, part) {
            Ok(Some(completion)) => {
                let answer = completion.result.map_err(|_| Failure::Other).and_then(|()| decoded(completion.answer));
                (Some(Returned::Completed(completion)), answer)
            }
            Ok(None) => (None, Err(Failure::Other)),
            Err(error) => (Some(Returned::Refused(error.block)), Err(Failure::Exhausted)),
        }
    }

    /// Performs a command that completes at once; `fill` writes its record, `read` decodes the answer's.
    fn command<T>(
        &self,
        command: Command,
        token: u64,
        fill: impl FnOnce(&mut Record),
        read: impl FnOnce(&Record) -> T,
    ) -> Result<T, Failure> {
        let block = self.control.take();
        let block = match block {
            Some(block) => block,
            None => ExVec::new(CONTROL_BYTES).map_err(|_| Failure::Exhausted)?,
        };
        let mut record = Record(block);
        record.set(0, command as u64);
        record.set(TOKEN_AT, token);
        fill(&mut record);
        let bytes = record.0.len();
        let (block, answer) = self.perform(DeviceOperation::Write, CONTROL, record.0, 0..bytes);
        let block = block.map(Returned::into_block);
        let Some(block) = block else { return Err(Failure::Other) };
        let record = Record(block);
        let result = answer.map(|_| read(&record));
        *self.control.borrow_mut() = Some(record.0);
        result
    }

    /// Performs a lookup and returns its record followed by the list. `room` is the space for the list, in bytes.
    pub async fn look_up(&self, command: Command, first: u64, text: &[u8], room: usize) -> Result<Record, Failure> {
        let bytes = RECORD_BYTES + room.max(text.len());
        let mut record = Record(ExVec::new(bytes).map_err(|_| Failure::Exhausted)?);
        record.set(0, command as u64);
        record.set(FIRST_AT, first);
        record.set(SECOND_AT, text.len() as u64);
        record.0[RECORD_BYTES..RECORD_BYTES + text.len()].copy_from_slice(text);
        let address = record.0.as_ptr() as usize;
        let submitted = self.device.submit(DeviceOperation::Write, CONTROL, record.0, bytes);
        if let Some(completion) = submitted.map_err(|_| Failure::Exhausted)? {
            return decoded(completion.answer).map(|_| Record(completion.block));
        }
        let completion = poll_fn(|context| match self.take(address) {
            Some(completion) => Poll::Ready(completion),
            None => {
                let mut waiting = self.looking_up.borrow_mut();
                waiting.retain(|(waiting, _)| *waiting != address);
                waiting.push((address, context.waker().clone()));
                Poll::Pending
            }
        })
        .await;
        decoded(completion.answer).map(|_| Record(completion.block))
    }

    fn socket(self: &Rc<Host>, token: u64, kind: Kind) -> Socket {
        let watch = Rc::new(Watch { token: Cell::new(token), ..Watch::default() });
        let index = token as u32 as usize;
        let mut watches = self.watches.borrow_mut();
        if watches.len() <= index {
            watches.resize(index + 1, None);
        }
        watches[index] = Some(Rc::clone(&watch));
        self.open.set(self.open.get() + 1);
        Socket { host: Rc::clone(self), watch, kind, reset: Cell::new(false), closed: Cell::new(false) }
    }

    /// Returns the retransmits or drops of closed sockets of a kind.
    pub fn lost(&self, kind: Kind) -> u64 {
        self.lost[kind as usize].get()
    }

    /// Listens at an address; returns the socket and its bound address.
    pub fn listen(self: &Rc<Host>, local: &SocketAddress, backlog: u32) -> Result<(Socket, SocketAddress), Failure> {
        self.named(Command::Listen, local, backlog.into())
    }

    /// Opens a datagram socket; returns the socket and its bound address.
    pub fn bind(self: &Rc<Host>, local: &SocketAddress) -> Result<(Socket, SocketAddress), Failure> {
        self.named(Command::Bind, local, 0)
    }

    /// Opens a socket for ICMP (4) or ICMPv6 (6) echo requests.
    pub fn open_echo(self: &Rc<Host>, version: u64) -> Result<Socket, Failure> {
        let fill = |record: &mut Record| record.set(FIRST_AT, version);
        let token = self.command(Command::OpenEcho, 0, fill, |record| record.number(TOKEN_AT))?;
        Ok(self.socket(token, Kind::Datagrams))
    }

    /// Starts connecting.
    pub fn connect(self: &Rc<Host>, remote: &SocketAddress) -> Result<Socket, Failure> {
        let (socket, _) = self.named(Command::Connect, remote, 0)?;
        socket.watch.watched.set(true);
        socket.watch.blocked_to_write.set(true);
        Ok(socket)
    }

    fn named(
        self: &Rc<Host>,
        command: Command,
        name: &SocketAddress,
        first: u64,
    ) -> Result<(Socket, SocketAddress), Failure> {
        let fill = |record: &mut Record| {
            record.set(FIRST_AT, first);
            record.set_name(name);
        };
        let (token, name) = self.command(command, 0, fill, |record| (record.number(TOKEN_AT), record.name()))?;
        let kind = match command {
            Command::Listen => Kind::Listener,
            Command::Bind => Kind::Datagrams,
            _ => Kind::Connection,
        };
        Ok((self.socket(token, kind), name))
    }

    /// Waits until a socket closes, when the socket limit is reached.
    pub async fn room(&self) {
        self.crowded.notified().await;
    }
}

/// One socket of the host.
pub struct Socket {
    host: Rc<Host>,
    watch: Rc<Watch>,
    kind: Kind,
    /// Whether closing it sends a reset to the peer.
    reset: Cell<bool>,
    closed: Cell<bool>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.close();
    }
}

impl Socket {
    /// Closes the socket early. Tasks waiting for it wake up and fail.
    pub fn close(&self) {
        if self.closed.replace(true) {
            return;
        }
        let token = self.watch.token.get();
        self.host.open.set(self.host.open.get() - 1);
        if let Some(place) = self.host.watches.borrow_mut().get_mut(token as u32 as usize) {
            *place = None;
        }
        let reset = u64::from(self.reset.get());
        // The token belongs to this value alone.
        let closed = self.host.command(
            Command::Close,
            token,
            |record| record.set(FIRST_AT, reset),
            |record| record.number(LOST_AT),
        );
        let lost = &self.host.lost[self.kind as usize];
        lost.set(lost.get() + closed.unwrap_or(0));
        self.host.crowded.notify_all();
        self.watch.blocked_to_read.set(false);
        self.watch.blocked_to_write.set(false);
        self.watch.reader.notify_all();
        self.watch.writer.notify_all();
    }

    fn token(&self) -> u64 {
        self.watch.token.get()
    }

    /// Sets whether closing the socket resets the connection.
    pub fn reset_when_closed(&self, reset: bool) {
        self.reset.set(reset);
    }

    /// Whether so many sockets are open that an idle one keeps no memory.
    pub fn is_crowded(&self) -> bool {
        self.host.open.get() > CROWD
    }

    /// Whether a read is known to block.
    pub fn would_block_to_read(&self) -> bool {
        self.watch.blocked_to_read.get()
    }

    /// Reads at most `bytes` bytes into a block; returns the block and the number of bytes, 0 at the end of the stream.
    pub fn read(&self, block: ExVec<u8>, bytes: usize) -> (Option<ExVec<u8>>, Result<usize, Failure>) {
        if self.watch.blocked_to_read.get() {
            return (Some(block), Err(Failure::WouldBlock));
        }
        let (block, answer) = self.host.perform(DeviceOperation::Read, self.token(), block, 0..bytes);
        let block = block.map(Returned::into_block);
        match answer {
            Err(Failure::WouldBlock) => {
                self.watch.watched.set(true);
                self.watch.blocked_to_read.set(true);
            }
            // A short read drained the socket; unless the end of the stream is near, the device reports when there is
            // more.
            Ok(count) if count < bytes && count > 0 && self.watch.watched.get() && !self.watch.ending.get() => {
                self.watch.blocked_to_read.set(true);
            }
            _ => {}
        }
        (block, answer)
    }

    /// Receives one datagram into a block; returns the block and the datagram's length. The sender is at the block's
    /// end.
    pub fn read_datagram(&self, block: ExVec<u8>) -> (Option<ExVec<u8>>, Result<usize, Failure>) {
        if self.watch.blocked_to_read.get() {
            return (Some(block), Err(Failure::WouldBlock));
        }
        let bytes = block.len();
        let (block, answer) = self.host.perform(DeviceOperation::Read, self.token() | SENDER, block, 0..bytes);
        let block = block.map(Returned::into_block);
        if answer == Err(Failure::WouldBlock) {
            self.watch.blocked_to_read.set(true);
        }
        (block, answer)
    }

    /// Writes a range of a block; returns the block and the number of bytes written.
    pub fn write<C: Content>(&self, block: C, part: Range<usize>, flags: u64) -> (Option<C>, Result<usize, Failure>) {
        if self.watch.blocked_to_write.get() {
            return (Some(block), Err(Failure::WouldBlock));
        }
        let (block, answer) = self.host.perform(DeviceOperation::Write, self.token() | flags, block, part);
        if matches!(answer, Err(Failure::WouldBlock)) {
            self.watch.watched.set(true);
            self.watch.blocked_to_write.set(true);
        }
        (block.and_then(C::from_returned), answer)
    }

    /// Writes a range of a block that this process owns.
    pub fn write_own(&self, block: ExVec<u8>, part: Range<usize>) -> Result<usize, Failure> {
        self.host.perform(DeviceOperation::Write, self.token(), block, part).1
    }

    /// Waits until the socket is readable.
    pub async fn readable(&self) {
        self.watch.reader.until(|| !self.watch.blocked_to_read.get()).await;
    }

    /// Waits until the socket is writable.
    pub async fn writable(&self) {
        self.watch.writer.until(|| !self.watch.blocked_to_write.get()).await;
    }

    /// Accepts pending connections, at least one.
    pub fn accept(&self, most: usize) -> Result<Vec<Accepted>, Failure> {
        if self.watch.blocked_to_read.get() {
            return Err(Failure::WouldBlock);
        }
        let records = self.host.command(
            Command::Accept,
            self.token(),
            |record| record.set(FIRST_AT, most as u64),
            |record| {
                let count = record.number(FIRST_AT) as usize;
                let list = record.0.get(RECORD_BYTES..).unwrap_or(&[]).as_chunks().0.iter().take(count);
                list.map(AcceptedRecord::from_bytes).collect::<Vec<_>>()
            },
        );
        if matches!(records, Err(Failure::WouldBlock)) {
            self.watch.watched.set(true);
            self.watch.blocked_to_read.set(true);
        }
        let accepted = |AcceptedRecord { token, local, remote }| Accepted {
            socket: self.host.socket(token, Kind::Connection),
            local: local.into(),
            remote: remote.into(),
        };
        records.map(|records| records.into_iter().map(accepted).collect())
    }

    /// Returns the local address of a completed connect, or its error.
    pub fn connected(&self) -> Result<SocketAddress, Failure> {
        let answer = self.host.command(Command::Connected, self.token(), |_| (), Record::name);
        if matches!(answer, Err(Failure::WouldBlock)) {
            self.watch.blocked_to_write.set(true);
        }
        answer
    }

    /// Shuts down the write half.
    pub fn finish(&self) -> Result<(), Failure> {
        self.host.command(Command::Finish, self.token(), |_| (), |_| ())
    }

    /// Sets TCP options of a connection.
    pub fn set_options(&self, no_delay: bool, keep_alive_s: u32) -> Result<(), Failure> {
        let fill = |record: &mut Record| {
            record.set(FIRST_AT, no_delay.into());
            record.set(SECOND_AT, keep_alive_s.into());
        };
        self.host.command(Command::SetOptions, self.token(), fill, |_| ())
    }

    /// Sets the destination of later datagrams.
    pub fn set_remote(&self, remote: &SocketAddress) -> Result<(), Failure> {
        self.host.command(Command::SetRemote, self.token(), |record| record.set_name(remote), |_| ())
    }

    /// Returns its retransmits or drops so far.
    pub fn lost_so_far(&self) -> u64 {
        self.host.command(Command::Describe, self.token(), |_| (), |record| record.number(LOST_AT)).unwrap_or(0)
    }

    /// Returns a snapshot of the connection's state.
    pub fn describe(&self) -> Result<Described, Failure> {
        self.host.command(
            Command::Describe,
            self.token(),
            |_| (),
            |record| {
                let queued = record.number(SECOND_AT);
                Described {
                    state: record.number(FIRST_AT) as u16,
                    receive_queued: (queued >> 32) as u32,
                    send_queued: queued as u32,
                }
            },
        )
    }
}
