//! The machine's own devices (consoles, disks, sockets, packets): their owners, and the operations in flight.
//!
//! The block of an operation belongs to the device from submission until the same call, if the machine is done at once,
//! or `device_complete` returns it. When a SIP dies, its console is free for the next one at once, its disk when the
//! machine has finished all operations; an operation still in progress keeps its block, which is disposed of on
//! completion.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi::{DeviceOperation, SUBMIT_DONE, SUBMIT_QUEUED, Status, TraceKind, sockets};
use hal_api::{DeviceKind, DeviceRequest, DeviceResult, Submitted};

use crate::channel;
use crate::exheap::{self, BlockRef, Freeing};
use crate::handle::{self, Kind};
use crate::lock::{AtomicRef, SpinGuard, SpinLock};
use crate::machine::machine;
use crate::process::{ProcessRef, stream};
use crate::thread::{MessageBuffer, ThreadRef};
use crate::wait::{self, Ticket, Waiters, Woken};

/// Maximum operations in flight per device.
const REQUESTS: usize = 64;
/// Maximum finished operations not yet collected.
const DONE: usize = 1024;

/// A device of the machine.
pub struct Device {
    /// The machine's name of it.
    pub name: String,
    kind: DeviceKind,
    number: usize,
    /// Number of times it was opened: the generation in its handle.
    openings: AtomicU32,
    inner: SpinLock<Inner>,
}

#[derive(Default)]
struct Inner {
    owner: Option<ProcessRef>,
    /// Whether the last owner is closing it on the machine; it cannot be opened meanwhile.
    closing: bool,
    requests: Vec<Option<Request>>,
    done: VecDeque<Done>,
    waiters: Waiters,
}

/// A device as a handle names it. Another SIP may have it open by the time it is used, so every use checks owner and
/// opening under the lock.
#[derive(Clone, Copy)]
pub struct OpenDevice {
    device: &'static Device,
    opening: u32,
    owner: ProcessRef,
}

impl OpenDevice {
    fn lock(self) -> Result<SpinGuard<'static, Inner>, Status> {
        let inner = self.device.inner.lock();
        let owned = inner.owner.is_some_and(|owner| core::ptr::eq(owner, self.owner));
        let opening = self.device.openings.load(Ordering::Acquire) & 0x00ff_ffff;
        if owned && opening == self.opening { Ok(inner) } else { Err(Status::BadHandle) }
    }
}

impl Inner {
    /// Whether an operation of the last owner is still in flight.
    fn is_at_work(&self) -> bool {
        self.requests.iter().any(Option::is_some)
    }
}

struct Request {
    block: BlockRef,
    opening: u32,
    filling: Filling,
}

/// Bytes of a 9P answer before the contents of a file: size, type, tag, number of bytes. Apart from them, contents that
/// are read again are the same.
const FOLDER_HEAD_BYTES: usize = 11;

/// The part of a block that an operation may write to.
#[derive(Clone, Copy, Default)]
struct Filling {
    first: usize,
    bytes: usize,
    /// Bytes at its start that differ from one answer to the next.
    head: usize,
    /// Bytes at its end that are written whatever the operation transfers.
    tail: usize,
}

impl Filling {
    fn by(
        kind: DeviceKind,
        operation: hal_api::DeviceOperation,
        offset: u64,
        (first, bytes): (usize, usize),
    ) -> Filling {
        use hal_api::DeviceOperation::{Flush, Read, Write};
        let (head, tail) = match (kind, operation) {
            (DeviceKind::Sockets, Read) if offset < sockets::EVENTS && offset & sockets::SENDER != 0 => {
                (0, sockets::SENDER_BYTES.min(bytes))
            }
            // An answer overwrites a command, and its result is not its length.
            (DeviceKind::Sockets, Write) if offset == sockets::CONTROL => (0, bytes),
            (DeviceKind::Folder { .. }, Write) => (FOLDER_HEAD_BYTES, 0),
            (_, Read) => (0, 0),
            (_, Write | Flush) => return Filling::default(),
        };
        Filling { first, bytes, head, tail }
    }

    /// Notes in a block what was written to it: as much as was transferred, all if that failed, nothing if the result is no
    /// number of bytes.
    fn note(self, block: BlockRef, result: DeviceResult) {
        block.filled.iter().zip(self.parts(result)).for_each(|(word, part)| word.store(part, Ordering::Relaxed));
    }

    /// First byte and number of bytes of two parts.
    fn parts(self, result: DeviceResult) -> [usize; 4] {
        let Filling { first, bytes, head, tail } = self;
        let done = result.map_or(bytes, |done| if done <= bytes { done } else { 0 });
        match head {
            0 => [first, done, first + bytes - tail, tail],
            head => [first, head.min(done), first + head, done.saturating_sub(head)],
        }
    }
}

/// First byte and number of bytes of what a device has written to a block in its last operation.
pub fn filled(block: BlockRef) -> [(usize, usize); 2] {
    let [first, bytes, end, tail] = block.filled.each_ref().map(|word| word.load(Ordering::Relaxed));
    let cut = |first: usize, bytes: usize| (first, bytes.min(block.size().saturating_sub(first)));
    [cut(first, bytes), cut(end, tail)]
}

struct Done {
    block: BlockRef,
    result: DeviceResult,
}

static DEVICES: AtomicRef<Vec<Device>> = AtomicRef::none();
/// Blocks of operations whose SIP is gone, to be disposed of by a processor, and those being freed.
static ORPHANS: SpinLock<Orphans> = SpinLock::new(Orphans { blocks: Vec::new(), freeing: Vec::new() });
static HAVE_ORPHANS: AtomicBool = AtomicBool::new(false);
/// Maximum steps of freeing per call.
const STEPS: usize = 64;

struct Orphans {
    blocks: Vec<BlockRef>,
    freeing: Vec<Freeing>,
}

/// Enumerates the machine's devices.
pub fn start() {
    let devices = machine()
        .devices()
        .into_iter()
        .enumerate()
        .map(|(number, device)| Device {
            name: device.name,
            kind: device.kind,
            number,
            openings: AtomicU32::new(0),
            inner: SpinLock::new(Inner { requests: (0..REQUESTS).map(|_| None).collect(), ..Inner::default() }),
        })
        .collect();
    DEVICES.set(Some(Box::leak(Box::new(devices))));
}

/// Whether the machine has a console or disk of this name.
pub fn exists(name: &str) -> bool {
    DEVICES.get().is_some_and(|devices| devices.iter().any(|device| device.name == name))
}

/// Opens the device with this name for a SIP and returns its handle.
pub fn open(caller: ProcessRef, name: &str) -> Result<u64, Status> {
    let device = DEVICES.get().and_then(|devices| devices.iter().find(|device| device.name == name));
    let device = device.ok_or(Status::NotFound)?;
    let mut inner = device.inner.lock();
    // A write of the last owner in flight must not reach the disk after writes of the next, nor create a fid unknown
    // to the next. A console read may never complete, and changes nothing.
    let keeps_changes = matches!(device.kind, DeviceKind::Disk { .. } | DeviceKind::Folder { .. });
    let is_unsettled = keeps_changes && inner.is_at_work();
    if inner.owner.is_some() || inner.closing || is_unsettled {
        return Err(Status::Busy);
    }
    inner.owner = Some(caller);
    let opening = device.openings.fetch_add(1, Ordering::AcqRel) + 1;
    caller.count_device(true);
    Ok(handle::encode(Kind::Device, device.number as u32, opening))
}

/// Resolves number and opening of a handle to a device, if this SIP has it open.
pub fn opened(number: u32, opening: u32, owner: ProcessRef) -> Option<OpenDevice> {
    let device = DEVICES.get()?.get(number as usize)?;
    let open = OpenDevice { device, opening, owner };
    open.lock().is_ok().then_some(open)
}

/// Writes the description of a device to the buffer.
pub fn describe(open: OpenDevice, buffer: MessageBuffer) {
    let device = open.device;
    let (columns, rows) = machine().console_size(device.number);
    let size = [u64::from(columns), u64::from(rows)];
    let words = match device.kind {
        DeviceKind::Console { terminal } => (abi::DeviceKind::Console, 0, u64::from(terminal) << 1, size),
        DeviceKind::Disk { bytes, read_only } => (abi::DeviceKind::Disk, bytes, u64::from(read_only), size),
        DeviceKind::Sockets => (abi::DeviceKind::Sockets, 0, 0, [0; 2]),
        DeviceKind::Random => (abi::DeviceKind::Random, 0, 0, [0; 2]),
        DeviceKind::Folder { read_only } => (abi::DeviceKind::Folder, 0, u64::from(read_only), [0; 2]),
        DeviceKind::Packets { mac_address: [a, b, c, d, e, f], mtu, features } => {
            let address = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
            (abi::DeviceKind::Packets, address, features, [u64::from(mtu), 0])
        }
    };
    let (kind, bytes, flags, [third, fourth]) = words;
    buffer.write_words(&[kind as u64, bytes, flags, third, fourth]);
}

/// The kind of a device that a SIP has opened, an `abi::DeviceKind`; `u64::MAX` if it is hardware.
pub fn kind_of(handle: u64, owner: ProcessRef) -> u64 {
    let opened = handle::decode(handle, Kind::Device).ok().and_then(|(number, opening)| opened(number, opening, owner));
    match opened.map(|open| open.device.kind) {
        Some(DeviceKind::Console { .. }) => abi::DeviceKind::Console as u64,
        Some(DeviceKind::Disk { .. }) => abi::DeviceKind::Disk as u64,
        Some(DeviceKind::Sockets) => abi::DeviceKind::Sockets as u64,
        Some(DeviceKind::Random) => abi::DeviceKind::Random as u64,
        Some(DeviceKind::Folder { .. }) => abi::DeviceKind::Folder as u64,
        Some(DeviceKind::Packets { .. }) => abi::DeviceKind::Packets as u64,
        None => u64::MAX,
    }
}

/// Submits an operation on the bytes of a block from `first` on. If it is done at once, the block is the caller's again:
/// returns [`SUBMIT_DONE`] if there is no more to say, or its handle, and describes it in the buffer as [`wait_complete`]
/// does. Otherwise returns [`SUBMIT_QUEUED`].
pub fn submit(
    caller: ProcessRef,
    open: OpenDevice,
    operation: u64,
    offset: u64,
    handle: u64,
    (first, bytes): (u64, u64),
    buffer: MessageBuffer,
) -> Result<u64, Status> {
    let number = operation;
    let operation = match DeviceOperation::from_number(operation).ok_or(Status::BadArgument)? {
        DeviceOperation::Read => hal_api::DeviceOperation::Read,
        DeviceOperation::Write => hal_api::DeviceOperation::Write,
        DeviceOperation::Flush => hal_api::DeviceOperation::Flush,
    };
    let block = exheap::block(handle)?;
    let device = open.device;
    exheap::take_from(caller, block, handle)?;
    // Checked once it is taken: until then another thread may split it.
    if first.checked_add(bytes).is_none_or(|end| end > block.size() as u64) {
        exheap::give_to(caller, block);
        return Err(Status::BadArgument);
    }
    let filling = Filling::by(device.kind, operation, offset, (first as usize, bytes as usize));
    let slot = {
        let mut inner = match open.lock() {
            Ok(inner) => inner,
            Err(status) => {
                exheap::give_to(caller, block);
                return Err(status);
            }
        };
        let opening = device.openings.load(Ordering::Acquire);
        let free = inner.requests.iter().position(Option::is_none).filter(|_| inner.done.len() < DONE);
        if let Some(slot) = free {
            inner.requests[slot] = Some(Request { block, opening, filling });
        }
        free
    };
    let Some(slot) = slot else {
        exheap::give_to(caller, block);
        return Err(Status::Exhausted);
    };
    let request = DeviceRequest {
        device: device.number,
        token: (device.number as u64) << 32 | slot as u64,
        operation,
        offset,
        address: block.address.load(Ordering::Relaxed) + first as usize,
        bytes: bytes as usize,
    };
    if stream::is_on() {
        stream::add(caller.id.load(Ordering::Relaxed), TraceKind::RequestBegun, handle, number, bytes);
    }
    match machine().device_submit(request) {
        Submitted::Queued => Ok(SUBMIT_QUEUED),
        Submitted::Complete(result) => {
            device.inner.lock().requests[slot] = None;
            let done = Done { block, result };
            if filling.bytes == 0 && result == Ok(bytes as usize) {
                give_to_caller(caller, &done);
                return Ok(SUBMIT_DONE);
            }
            filling.note(block, result);
            Ok(give_back(caller, &done, buffer))
        }
    }
}

/// Gives a block to its process and describes it, and what came of its operation, in the buffer. Returns its handle.
fn give_back(caller: ProcessRef, done: &Done, buffer: MessageBuffer) -> u64 {
    let Done { block, result } = *done;
    let handle = give_to_caller(caller, done);
    let (count, status) = match result {
        Ok(count) => (count as u64, Status::Ok),
        Err(_) => (0, Status::DeviceError),
    };
    let address = block.address.load(Ordering::Relaxed) as u64;
    let is_lent = u64::from(block.is_lent());
    buffer.write_words(&[address, block.size() as u64, count, status as u64, is_lent]);
    handle
}

/// Gives a block to its process. Returns its handle.
fn give_to_caller(caller: ProcessRef, done: &Done) -> u64 {
    exheap::give_to(caller, done.block);
    let handle = done.block.handle();
    if stream::is_on() {
        stream::add(caller.id.load(Ordering::Relaxed), TraceKind::RequestDone, handle, 0, 0);
    }
    handle
}

/// Records that a queued operation is finished, and returns the waiter to wake.
fn finish(device: &'static Device, slot: usize, result: DeviceResult) -> Option<Ticket> {
    let mut inner = device.inner.lock();
    let request = inner.requests.get_mut(slot)?.take()?;
    request.filling.note(request.block, result);
    if inner.owner.is_some() && request.opening == device.openings.load(Ordering::Acquire) {
        inner.done.push_back(Done { block: request.block, result });
        return inner.waiters.take_one();
    }
    drop(inner);
    ORPHANS.lock().blocks.push(request.block);
    HAVE_ORPHANS.store(true, Ordering::Release);
    None
}

/// Completes a queued operation. Called by the machine from outside the processors.
pub extern "C" fn complete(token: u64, done: u64, failed: bool) {
    let device = DEVICES.get().and_then(|devices| devices.get((token >> 32) as usize));
    let Some(device) = device else { return };
    let result = if failed { Err(hal_api::DeviceFailure) } else { Ok(done as usize) };
    if let Some(ticket) = finish(device, token as u32 as usize, result) {
        ticket.wake_from_outside(Woken::Signalled);
    }
}

/// Whether [`dispose_orphans`] has work to do.
pub fn has_orphans() -> bool {
    HAVE_ORPHANS.load(Ordering::Acquire)
}

/// Disposes of some of the blocks whose operation outlived its SIP. Must run on a processor.
pub fn dispose_orphans() {
    if !has_orphans() {
        return;
    }
    let mut orphans = ORPHANS.lock();
    let begun = orphans.freeing.pop();
    let next = if begun.is_none() { orphans.blocks.pop() } else { None };
    drop(orphans);
    let mut freeing = begun.or_else(|| next.and_then(channel::begin_disposal));
    if !freeing.as_mut().is_some_and(|freeing| freeing.go_on(STEPS)) {
        freeing = None;
    }
    let mut orphans = ORPHANS.lock();
    orphans.freeing.extend(freeing);
    HAVE_ORPHANS.store(!orphans.freeing.is_empty() || !orphans.blocks.is_empty(), Ordering::Release);
}

/// Waits for a finished operation and returns its block, described in the buffer.
pub fn wait_complete(
    caller: ProcessRef,
    thread: ThreadRef,
    device: OpenDevice,
    deadline: u64,
    buffer: MessageBuffer,
) -> Result<u64, Status> {
    loop {
        if let Some(done) = device.lock()?.done.pop_front() {
            return Ok(give_back(caller, &done, buffer));
        }
        let ticket = wait::begin();
        match wait_at(device, ticket) {
            Ok(false) => {}
            other => {
                wait::drop_wait(ticket);
                other?;
                continue;
            }
        }
        match wait::block(ticket, deadline) {
            Woken::Signalled => {}
            Woken::Killed => return Err(Status::Closed),
            Woken::TimedOut => {
                stop_waiting_at(device, thread);
                return Err(Status::TimedOut);
            }
        }
    }
}

/// Leaves a ticket, or returns true if an operation is finished.
pub fn wait_at(device: OpenDevice, ticket: Ticket) -> Result<bool, Status> {
    let mut inner = device.lock()?;
    if !inner.done.is_empty() {
        return Ok(true);
    }
    inner.waiters.add(ticket);
    Ok(false)
}

/// Withdraws a thread's ticket.
pub fn stop_waiting_at(device: OpenDevice, thread: ThreadRef) {
    let Ok(mut inner) = device.lock() else { return };
    inner.waiters.remove(thread);
    if !inner.done.is_empty() {
        inner.waiters.wake_one();
    }
}

/// Closes a device of the caller.
pub fn close(open: OpenDevice) -> Result<(), Status> {
    let mut inner = open.lock()?;
    let done = give_up(&mut inner);
    drop(inner);
    settle(open.device, done);
    open.owner.count_device(false);
    Ok(())
}

fn give_up(inner: &mut Inner) -> VecDeque<Done> {
    inner.owner = None;
    inner.closing = true;
    inner.waiters.wake_all();
    core::mem::take(&mut inner.done)
}

/// Closes it on the machine, without the lock, as that may complete operations; then it can be opened again.
fn settle(device: &Device, done: VecDeque<Done>) {
    machine().device_closed(device.number);
    device.inner.lock().closing = false;
    for done in done {
        channel::dispose(done.block);
    }
}

/// Closes all devices of a SIP that is ending.
pub fn close_all(process: ProcessRef) {
    for device in DEVICES.get().into_iter().flatten() {
        let mut inner = device.inner.lock();
        if !inner.owner.is_some_and(|owner| core::ptr::eq(owner, process)) {
            continue;
        }
        let done = give_up(&mut inner);
        drop(inner);
        settle(device, done);
        process.count_device(false);
    }
}

#[cfg(test)]
mod tests {
    use hal_api::DeviceFailure;
    use hal_api::DeviceOperation::{Read, Write};

    use super::*;

    fn parts(kind: DeviceKind, operation: hal_api::DeviceOperation, offset: u64, result: DeviceResult) -> [usize; 4] {
        Filling::by(kind, operation, offset, (100, 1000)).parts(result)
    }

    #[test]
    fn what_a_device_has_written_is_noted() {
        let sender = sockets::SENDER_BYTES;
        let datagram = parts(DeviceKind::Sockets, Read, 7 | sockets::SENDER, Ok(300));
        assert_eq!(datagram, [100, 300, 1100 - sender, sender]);
        for offset in [7, sockets::EVENTS] {
            assert_eq!(parts(DeviceKind::Sockets, Read, offset, Ok(300)), [100, 300, 1100, 0], "no sender");
        }
        assert_eq!(parts(DeviceKind::Sockets, Write, 7, Ok(300))[1], 0);
        assert_eq!(parts(DeviceKind::Sockets, Write, sockets::CONTROL, Ok(0))[2..], [100, 1000]);
        assert_eq!(parts(DeviceKind::Random, Read, 0, Ok(1000))[..2], [100, 1000]);
        assert_eq!(parts(DeviceKind::Random, Read, 0, Err(DeviceFailure))[..2], [100, 1000], "perhaps all of it");
        assert_eq!(parts(DeviceKind::Random, Read, 0, Ok(1001))[..2], [100, 0], "no number of bytes");
    }

    #[test]
    fn the_contents_in_an_answer_of_a_folder_are_a_part_of_their_own() {
        let folder = DeviceKind::Folder { read_only: true };
        assert_eq!(parts(folder, Write, 0, Ok(811)), [100, 11, 111, 800]);
        assert_eq!(parts(folder, Write, 0, Ok(7)), [100, 7, 111, 0], "an answer without contents");
        assert_eq!(parts(folder, Write, 0, Err(DeviceFailure)), [100, 11, 111, 989]);
    }
}
