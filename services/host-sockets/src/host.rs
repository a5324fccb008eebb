//! The device `sockets0` as functions, and the task that hears its events.
//!
//! Key types: [`Host`] (the device), [`Socket`] (one socket, closed when dropped). Every call but a look-up is done when
//! it returns; what would have had to wait is tried again when the device tells that it can go on. Deliberately not
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
    READABLE, RECORD_BYTES, SECOND_AT, TOKEN_AT, WRITABLE,
};
use sip::device::{Completion, Declared, Device, DeviceOperation};
use sip::exheap::{ExVec, Lendable, Lent};
use sip::{Deadline, Status, executor};
use task_sync::Notify;

/// Events taken at once at most.
const MAX_EVENTS: usize = 256;
/// After so many of them their work is done before the next ones are looked at.
const EVENTS_AT_ONCE: usize = 4;
/// How long until events are asked for again where that failed, in milliseconds.
const AGAIN_AFTER_MS: u64 = 10;
/// Connections accepted at once at most.
pub const MAX_ACCEPTED: usize = 16;
/// Where answers that carry no name tell what a socket sent once more or had no room for.
const LOST_AT: usize = NAME_AT;
const CONTROL_BYTES: usize = RECORD_BYTES + MAX_ACCEPTED * ACCEPTED_BYTES;

/// What a socket is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes to and from another end.
    Connection,
    /// Connections are accepted from it.
    Listener,
    /// Datagrams, or echo requests.
    Datagrams,
}

/// What a connection is like at a moment.
pub struct Described {
    /// As in `SocketRecord`.
    pub state: u16,
    /// Bytes that wait to be read.
    pub receive_queued: u32,
    /// Bytes to be sent or acknowledged.
    pub send_queued: u32,
}

/// What is known of a socket between calls.
#[derive(Default)]
struct Watch {
    token: Cell<u64>,
    /// Whether the device tells when it can go on: from the first call on that would have had to wait.
    watched: Cell<bool>,
    blocked_to_read: Cell<bool>,
    blocked_to_write: Cell<bool>,
    /// No more will come than what is there.
    ending: Cell<bool>,
    /// Notified when it is no longer blocked.
    reader: Notify,
    writer: Notify,
}

/// The device.
pub struct Host {
    /// Who may do what with it.
    pub guard: Guard,
    device: Device,
    control: RefCell<Option<ExVec<u8>>>,
    watches: RefCell<Vec<Option<Rc<Watch>>>>,
    /// Operations that the device finished while another was waited for: by their block's address.
    finished: RefCell<Vec<Completion>>,
    /// Whoever waits for a look-up: the address of its block.
    looking_up: RefCell<Vec<(usize, Waker)>>,
    /// The task that hears events, while the device has its request.
    hearing: RefCell<Option<Waker>>,
    /// Whether something was done since it last looked.
    active: Cell<bool>,
    /// Whoever waits for a socket to be closed, because there can be no more.
    crowded: Notify,
    /// What sockets of each kind that are closed sent once more or had no room for.
    lost: [Cell<u64>; 3],
}

/// An accepted connection.
pub struct Accepted {
    pub socket: Socket,
    pub local: SocketAddress,
    pub remote: SocketAddress,
}

/// A command's record.
pub struct Record(pub ExVec<u8>);

impl Record {
    fn set(&mut self, at: usize, number: u64) {
        if let Some(place) = self.0.get_mut(at..at + 8) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }

    /// The number at one of the places.
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

/// The name of a socket, as the device knows it.
#[derive(layout::Record)]
#[record(bytes = 24, order = "little")]
struct Name {
    /// Of IPv6; one of IPv4 is mapped.
    address: [u8; 16],
    /// The port.
    port: u16,
    /// The interface of a link-local address.
    #[at(20)]
    scope: u32,
}

const _: () = assert!(Name::BYTES == NAME_BYTES);

/// A connection that was accepted.
#[derive(layout::Record)]
#[record(bytes = 56, order = "little")]
struct AcceptedRecord {
    token: u64,
    local: Name,
    remote: Name,
}

const _: () = assert!(AcceptedRecord::BYTES == ACCEPTED_BYTES);

/// What a socket has become ready for.
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

/// The name at a place of a record.
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
    /// Opens the device. A predecessor's is closed before it can be opened.
    pub fn open(device: &Declared<Device>, guard: Guard) -> Result<Rc<Host>, Status> {
        let device = device.open_when_free()?;
        Ok(Rc::new(Host {
            guard,
            device,
            control: RefCell::new(Some(ExVec::new(CONTROL_BYTES)?)),
            watches: RefCell::default(),
            finished: RefCell::default(),
            looking_up: RefCell::default(),
            hearing: RefCell::default(),
            active: Cell::new(false),
            crowded: Notify::new(),
            lost: Default::default(),
        }))
    }

    /// Hears events for all sockets, as long as the process lives.
    pub async fn receive_events(self: Rc<Host>) {
        let mut block = None;
        loop {
            block = self.receive_event(block).await;
            if block.is_none() {
                // No event is lost: each is told when the device, or memory for what it tells, is there again.
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
            }
        }
    }

    /// Hears what there is, or what comes next: the block for it, to be used again. Nothing where that failed.
    async fn receive_event(&self, block: Option<ExVec<u8>>) -> Option<ExVec<u8>> {
        let block = match block {
            Some(block) => block,
            None => ExVec::<u8>::new(MAX_EVENTS * EVENT_BYTES).ok()?,
        };
        let (address, bytes) = (block.as_ptr() as usize, block.len());
        self.active.set(false);
        let completion = match self.device.submit(DeviceOperation::Read, EVENTS, block, bytes) {
            Ok(true) => self.take(address)?,
            Ok(false) => self.wait_for(address).await,
            Err(_) => return None,
        };
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

    /// Lets those that were woken do what they can, and then the clients to which they said something: an answer is on
    /// its way before the next question is heard, from memory that the processor's cache still holds.
    async fn work(&self) {
        executor::idle().await;
        if self.active.get() {
            sip::thread::yield_now();
            executor::idle().await;
        }
    }

    /// Waits for the request that hears events.
    async fn wait_for(&self, address: usize) -> Completion {
        loop {
            if let Some(completion) = self.take(address) {
                return completion;
            }
            if self.active.replace(false) {
                // Once all is done that can be, the device looks before this process waits.
                executor::idle().await;
                self.look();
                continue;
            }
            let mut ready = core::pin::pin!(executor::ready(&self.device));
            poll_fn(|context| {
                if self.active.get() || Future::poll(ready.as_mut(), context).is_ready() {
                    return Poll::Ready(());
                }
                *self.hearing.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }

    fn look(&self) {
        // The device takes a block with each operation, also with one that moves no bytes.
        if let Ok(block) = ExVec::<u8>::new(1) {
            let address = block.as_ptr() as usize;
            if self.device.submit(DeviceOperation::Flush, EVENTS, block, 0).is_ok() {
                drop(self.take(address));
            }
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

    /// Takes the finished operation with the block at this address, if it is finished.
    fn take(&self, address: usize) -> Option<Completion> {
        let mut finished = self.finished.borrow_mut();
        if let Some(index) = finished.iter().position(|one| one.block.as_ptr() as usize == address) {
            return Some(finished.swap_remove(index));
        }
        while let Ok(completion) = self.device.complete(Deadline::PASSED) {
            if completion.block.as_ptr() as usize == address {
                return Some(completion);
            }
            self.wake_look_up(completion.block.as_ptr() as usize);
            finished.push(completion);
        }
        None
    }

    fn wake_look_up(&self, address: usize) {
        let mut waiting = self.looking_up.borrow_mut();
        if let Some(index) = waiting.iter().position(|(waiting, _)| *waiting == address) {
            let (_, waker) = waiting.swap_remove(index);
            waker.wake();
        }
    }

    /// Does an operation that completes at once: the block, and the answer.
    pub fn perform(
        &self,
        operation: DeviceOperation,
        offset: u64,
        block: impl Lendable<ExVec<u8>>,
        address: usize,
        part: Range<usize>,
    ) -> (Option<ExVec<u8>>, Result<usize, Failure>) {
        if !self.active.replace(true) {
            let waker = self.hearing.take();
            waker.into_iter().for_each(Waker::wake);
        }
        match self.device.submit_part(operation, offset, block, part) {
            Ok(_) => match self.take(address) {
                Some(completion) if completion.result.is_ok() => (Some(completion.block), decoded(completion.answer)),
                Some(completion) => (Some(completion.block), Err(Failure::Other)),
                None => (None, Err(Failure::Other)),
            },
            Err(error) => (Some(error.block), Err(Failure::Exhausted)),
        }
    }

    /// Does a command that completes at once; `fill` writes its record, `read` reads the answer's.
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
        let (address, bytes) = (record.0.as_ptr() as usize, record.0.len());
        let (block, answer) = self.perform(DeviceOperation::Write, CONTROL, record.0, address, 0..bytes);
        let Some(block) = block else { return Err(Failure::Other) };
        let record = Record(block);
        let told = answer.map(|_| read(&record));
        *self.control.borrow_mut() = Some(record.0);
        told
    }

    /// A look-up: the record and the list after it. `room` is for the list.
    pub async fn look_up(&self, command: Command, first: u64, text: &[u8], room: usize) -> Result<Record, Failure> {
        let bytes = RECORD_BYTES + room.max(text.len());
        let mut record = Record(ExVec::new(bytes).map_err(|_| Failure::Exhausted)?);
        record.set(0, command as u64);
        record.set(FIRST_AT, first);
        record.set(SECOND_AT, text.len() as u64);
        record.0[RECORD_BYTES..RECORD_BYTES + text.len()].copy_from_slice(text);
        let address = record.0.as_ptr() as usize;
        self.device.submit(DeviceOperation::Write, CONTROL, record.0, bytes).map_err(|_| Failure::Exhausted)?;
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
        Socket { host: Rc::clone(self), watch, kind, reset: Cell::new(false), closed: Cell::new(false) }
    }

    /// What sockets of a kind that are closed sent once more or had no room for.
    pub fn lost(&self, kind: Kind) -> u64 {
        self.lost[kind as usize].get()
    }

    /// Takes connections at a name: the socket and the name it got.
    pub fn listen(self: &Rc<Host>, local: &SocketAddress, backlog: u32) -> Result<(Socket, SocketAddress), Failure> {
        self.named(Command::Listen, local, backlog.into())
    }

    /// A socket for datagrams at a name, and the name it got.
    pub fn bind(self: &Rc<Host>, local: &SocketAddress) -> Result<(Socket, SocketAddress), Failure> {
        self.named(Command::Bind, local, 0)
    }

    /// A socket for echo requests of ICMP (4) or ICMPv6 (6).
    pub fn open_echo(self: &Rc<Host>, version: u64) -> Result<Socket, Failure> {
        let fill = |record: &mut Record| record.set(FIRST_AT, version);
        let token = self.command(Command::OpenEcho, 0, fill, |record| record.number(TOKEN_AT))?;
        Ok(self.socket(token, Kind::Datagrams))
    }

    /// Begins to connect.
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

    /// Waits until a socket was closed: before that there can be no more.
    pub async fn room(&self) {
        self.crowded.notified().await;
    }
}

/// One socket of the host.
pub struct Socket {
    host: Rc<Host>,
    watch: Rc<Watch>,
    kind: Kind,
    /// Whether the other end is told of a reset when it is closed.
    reset: Cell<bool>,
    closed: Cell<bool>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.close();
    }
}

impl Socket {
    /// Closes it before its time. Whoever waits for it goes on, to no avail.
    pub fn close(&self) {
        if self.closed.replace(true) {
            return;
        }
        let token = self.watch.token.get();
        if let Some(place) = self.host.watches.borrow_mut().get_mut(token as u32 as usize) {
            *place = None;
        }
        let reset = u64::from(self.reset.get());
        // The token is this value's own.
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

    /// Lets closing it reset the connection, or not.
    pub fn reset_when_closed(&self, reset: bool) {
        self.reset.set(reset);
    }

    /// Whether a read now would find nothing, as far as is known.
    pub fn would_block_to_read(&self) -> bool {
        self.watch.blocked_to_read.get()
    }

    /// Reads into a block: the block, and how many bytes; 0 is the end.
    pub fn read(&self, block: ExVec<u8>) -> (Option<ExVec<u8>>, Result<usize, Failure>) {
        if self.watch.blocked_to_read.get() {
            return (Some(block), Err(Failure::WouldBlock));
        }
        let (address, bytes) = (block.as_ptr() as usize, block.len());
        let (block, answer) = self.host.perform(DeviceOperation::Read, self.token(), block, address, 0..bytes);
        match answer {
            Err(Failure::WouldBlock) => {
                self.watch.watched.set(true);
                self.watch.blocked_to_read.set(true);
            }
            // That was all for now; unless an end is on its way, the device tells when there is more.
            Ok(count) if count < bytes && count > 0 && self.watch.watched.get() && !self.watch.ending.get() => {
                self.watch.blocked_to_read.set(true);
            }
            _ => {}
        }
        (block, answer)
    }

    /// Receives one datagram into a block: the block, and the datagram's length. Its sender is at the block's end.
    pub fn read_datagram(&self, block: ExVec<u8>) -> (Option<ExVec<u8>>, Result<usize, Failure>) {
        if self.watch.blocked_to_read.get() {
            return (Some(block), Err(Failure::WouldBlock));
        }
        let (address, bytes) = (block.as_ptr() as usize, block.len());
        let (block, answer) = self.host.perform(DeviceOperation::Read, self.token(), block, address, 0..bytes);
        if answer == Err(Failure::WouldBlock) {
            self.watch.blocked_to_read.set(true);
        }
        (block, answer)
    }

    /// Writes a part of a block: the block, and how many bytes of it.
    pub fn write(
        &self,
        block: Lent<ExVec<u8>>,
        address: usize,
        part: Range<usize>,
        flags: u64,
    ) -> (Option<Lent<ExVec<u8>>>, Result<usize, Failure>) {
        if self.watch.blocked_to_write.get() {
            return (Some(block), Err(Failure::WouldBlock));
        }
        let (block, answer) = self.host.perform(DeviceOperation::Write, self.token() | flags, block, address, part);
        if matches!(answer, Err(Failure::WouldBlock)) {
            self.watch.watched.set(true);
            self.watch.blocked_to_write.set(true);
        }
        (block.and_then(|block| Lent::claim(block).ok()), answer)
    }

    /// Writes a part of a block of this process's own.
    pub fn write_own(&self, block: ExVec<u8>, part: Range<usize>) -> Result<usize, Failure> {
        let address = block.as_ptr() as usize;
        self.host.perform(DeviceOperation::Write, self.token(), block, address, part).1
    }

    /// Waits until it may be read from.
    pub async fn readable(&self) {
        self.watch.reader.until(|| !self.watch.blocked_to_read.get()).await;
    }

    /// Waits until it may be written to.
    pub async fn writable(&self) {
        self.watch.writer.until(|| !self.watch.blocked_to_write.get()).await;
    }

    /// Accepts connections that there are, at least one.
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

    /// How connecting went: the local name.
    pub fn connected(&self) -> Result<SocketAddress, Failure> {
        let answer = self.host.command(Command::Connected, self.token(), |_| (), Record::name);
        if matches!(answer, Err(Failure::WouldBlock)) {
            self.watch.blocked_to_write.set(true);
        }
        answer
    }

    /// Ends the writing half.
    pub fn finish(&self) -> Result<(), Failure> {
        self.host.command(Command::Finish, self.token(), |_| (), |_| ())
    }

    /// Sets options of a connection.
    pub fn set_options(&self, no_delay: bool, keep_alive_s: u32) -> Result<(), Failure> {
        let fill = |record: &mut Record| {
            record.set(FIRST_AT, no_delay.into());
            record.set(SECOND_AT, keep_alive_s.into());
        };
        self.host.command(Command::SetOptions, self.token(), fill, |_| ())
    }

    /// Whereto the next datagrams go.
    pub fn set_remote(&self, remote: &SocketAddress) -> Result<(), Failure> {
        self.host.command(Command::SetRemote, self.token(), |record| record.set_name(remote), |_| ())
    }

    /// What it sent once more or had no room for so far.
    pub fn lost_so_far(&self) -> u64 {
        self.host.command(Command::Describe, self.token(), |_| (), |record| record.number(LOST_AT)).unwrap_or(0)
    }

    /// What a connection is like now.
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
