//! SIPs: from creation from a manifest to the last resource given back.
//!
//! Who owns a SIP's slot: its parent, as long as it holds the child's handle; else the SIP itself
//! until its end. What if it dies here: ending a SIP marks it as dying and makes every thread of it
//! leave the kernel, where it ends; the last one gives everything back ([`finish`]), without running
//! any code of the SIP, tells whoever waits, and ends the SIP's children.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::limits::PAGE_BYTES;
use abi::{EpitaphKind, ProcessState, Status, StopReason, TraceKind, TraceRecord};

use crate::claims::{self, Kind};
use crate::lock::{AtomicRef, SpinLock};
use crate::machine::machine;
use crate::program::{Loaded, Program};
use crate::slab::{Links, List, Listed, Slab, Slot};
use crate::thread::{self, Argument, ThreadRef};
use crate::trace::Ring;
use crate::wait::{Ticket, Waiters, Woken};
use crate::{channel, cpu, device, exheap, memory, sync, wait_word};

/// All SIPs.
pub static PROCESSES: Slab<Process> = Slab::new();
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// SIPs created and ended since start.
pub static CREATED: AtomicU64 = AtomicU64::new(0);
/// See [`CREATED`].
pub static ENDED: AtomicU64 = AtomicU64::new(0);

/// Index of the memory quota in a [`TraceKind::QuotaExceeded`] event.
pub const QUOTA_MEMORY: u64 = 0;
/// Index of the block quota.
pub const QUOTA_BLOCKS: u64 = 1;
/// Index of the thread quota.
pub const QUOTA_THREADS: u64 = 2;
/// Index of the handle quota.
pub const QUOTA_HANDLES: u64 = 3;
/// Index of the channel quota.
pub const QUOTA_CHANNELS: u64 = 4;
/// Index of the child quota.
pub const QUOTA_CHILDREN: u64 = 5;

/// One SIP.
#[derive(Default)]
pub struct Process {
    /// Its number, never used again.
    pub id: AtomicU64,
    /// What it runs.
    pub program: AtomicRef<Program>,
    /// The same, verified and mapped.
    pub loaded: AtomicRef<Loaded>,
    state: AtomicU64,
    dying: AtomicBool,
    /// Threads that have not ended.
    pub live_threads: AtomicU32,
    /// Its trace.
    pub trace: Ring,
    /// Messages sent.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Cycles of threads that have ended.
    pub past_cycles: AtomicU64,
    /// When it was started, ns.
    pub started_ns: AtomicU64,
    links: Links,
    life: SpinLock<Life>,
    /// Its threads.
    pub threads: SpinLock<List<thread::InProcess>>,
    /// Its exchange-heap blocks.
    pub blocks: SpinLock<List<exheap::OfProcess>>,
    /// Bytes of blocks that count against its quota: its own, and those it sent that are not received.
    pub block_bytes: AtomicUsize,
    /// Its endpoints.
    pub endpoints: SpinLock<List<channel::OfProcess>>,
    /// Channels that it created and that are not gone.
    created_channels: AtomicU32,
    /// Its mutexes, events and wait sets.
    pub syncs: SpinLock<List<sync::OfProcess>>,
    /// Its paged memory.
    pub pages: SpinLock<Pages>,
    children: SpinLock<List<OfParent>>,
    open_devices: AtomicU32,
}

/// A reference to a SIP.
pub type ProcessRef = &'static Slot<Process>;

/// Children in their parent's list.
pub enum OfParent {}

impl Listed for OfParent {
    fn links(index: u32) -> Option<&'static Links> {
        PROCESSES.slot(index).map(|slot| &slot.links)
    }
}

/// Paged memory of a SIP.
#[derive(Default)]
pub struct Pages {
    /// Address and number of pages of each allocation.
    pub runs: Vec<(usize, usize)>,
    /// All pages.
    pub count: usize,
}

#[derive(Default)]
struct Life {
    parent: Option<(ProcessRef, u64)>,
    held: bool,
    epitaph: Option<Epitaph>,
    waiters: Waiters,
    parameters: Vec<Option<Vec<u8>>>,
    slots: Vec<Option<u64>>,
    devices: Vec<Option<String>>,
}

/// How a SIP ended.
#[derive(Clone, Debug)]
pub struct Epitaph {
    /// The kind.
    pub kind: EpitaphKind,
    /// Exit status, if it exited.
    pub status: u64,
    /// For people.
    pub text: String,
}

impl Epitaph {
    /// An epitaph.
    pub fn new(kind: EpitaphKind, text: impl Into<String>) -> Epitaph {
        Epitaph { kind, status: 0, text: text.into() }
    }

    /// That of a SIP which exited by itself.
    pub fn exited(status: u64) -> Epitaph {
        let text = if status == 0 { "exited".to_string() } else { format!("exited with status {}", status as i64) };
        Epitaph { kind: EpitaphKind::Exited, status, text }
    }
}

impl Slot<Process> {
    /// Whether it is being ended.
    #[inline(always)]
    pub fn is_dying(&self) -> bool {
        self.dying.load(Ordering::SeqCst)
    }

    /// Where it is in its life.
    pub fn state(&self) -> ProcessState {
        ProcessState::from_number(self.state.load(Ordering::Acquire)).unwrap_or(ProcessState::Ended)
    }

    /// Name of its program.
    pub fn name(&self) -> &'static str {
        self.program.get().map_or("?", |program| &program.manifest.name)
    }

    /// Whether it is the child of this SIP, which still holds its handle.
    pub fn is_child_of(&'static self, parent: ProcessRef) -> bool {
        self.is_held_by(&self.life.lock(), parent)
    }

    fn is_held_by(&self, life: &Life, parent: ProcessRef) -> bool {
        life.held && life.parent.is_some_and(|(known, _)| core::ptr::eq(known, parent))
    }

    /// The parent's process id, 0 if there is none.
    pub fn parent_id(&self) -> u64 {
        self.life.lock().parent.map_or(0, |(_, id)| id)
    }

    /// Its handle, for its parent.
    pub fn handle(&'static self) -> u64 {
        claims::handle(Kind::Process, self.index(), self.generation())
    }

    /// Handles in use.
    pub fn handles(&self) -> u32 {
        // One lock at a time: in one expression the guards would be held together.
        let blocks = self.blocks.lock().count();
        let endpoints = self.endpoints.lock().count();
        let syncs = self.syncs.lock().count();
        let threads = self.threads.lock().count();
        let children = self.children.lock().count();
        blocks + endpoints + syncs + threads + children + self.open_devices.load(Ordering::Relaxed)
    }

    /// Children whose handles it holds.
    pub fn child_count(&self) -> u32 {
        self.children.lock().count()
    }

    /// Notes that a quota was used up.
    #[cold]
    pub fn quota_exceeded(&self, which: u64) -> Status {
        self.trace.add(TraceKind::QuotaExceeded, which, 0);
        Status::QuotaExceeded
    }

    fn quota(&self) -> package::Quota {
        self.program.get().map(|program| program.manifest.quota).unwrap_or_default()
    }

    /// Whether it may have one more handle.
    pub fn may_have_another_handle(&self) -> Result<(), Status> {
        if self.handles() < self.quota().handles { Ok(()) } else { Err(self.quota_exceeded(QUOTA_HANDLES)) }
    }

    /// Counts a block that it allocates.
    #[inline(always)]
    pub fn charge_blocks(&self, bytes: usize) -> Result<(), Status> {
        let Some(program) = self.program.get() else { return Err(Status::WrongState) };
        let quota = &program.manifest.quota;
        if self.blocks.lock().count() >= quota.handles {
            return Err(self.quota_exceeded(QUOTA_HANDLES));
        }
        let allowed = quota.block_kib as usize * 1024;
        let used = self.block_bytes.load(Ordering::Relaxed);
        if used.checked_add(bytes).is_none_or(|sum| sum > allowed) {
            return Err(self.quota_exceeded(QUOTA_BLOCKS));
        }
        self.block_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Counts blocks that came in a message: they may exceed the quota, but then it can allocate none.
    #[inline(always)]
    pub fn charge_received_blocks(&self, bytes: usize) {
        self.block_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Blocks are another's from now on; nothing to do if the slot is another SIP's by now.
    #[inline(always)]
    pub fn refund_blocks(&self, id: u64, bytes: usize) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |used: usize| used.checked_sub(bytes);
            // It is less only if the slot has just been taken into use for another SIP.
            let _ = self.block_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Counts a channel that it creates.
    #[inline(always)]
    pub fn charge_channel(&self) -> Result<(), Status> {
        let Some(program) = self.program.get() else { return Err(Status::WrongState) };
        let quota = &program.manifest.quota;
        if self.endpoints.lock().count() + 2 > quota.handles {
            return Err(self.quota_exceeded(QUOTA_HANDLES));
        }
        if self.created_channels.fetch_add(1, Ordering::Relaxed) >= quota.channels {
            self.created_channels.fetch_sub(1, Ordering::Relaxed);
            return Err(self.quota_exceeded(QUOTA_CHANNELS));
        }
        Ok(())
    }

    /// A channel that the SIP with this id created is gone; nothing to do if the slot is another's.
    pub fn refund_channel(&self, id: u64) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |count: u32| count.checked_sub(1);
            // It is 0 only if the slot has just been taken into use for another SIP.
            let _ = self.created_channels.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Allocates pages.
    pub fn allocate_pages(&self, count: usize) -> Result<usize, Status> {
        let allowed = self.quota().memory_kib as usize * 1024 / PAGE_BYTES;
        {
            let mut pages = self.pages.lock();
            if count == 0 {
                return Err(Status::BadArgument);
            }
            if pages.count.checked_add(count).is_none_or(|sum| sum > allowed) {
                drop(pages);
                return Err(self.quota_exceeded(QUOTA_MEMORY));
            }
            pages.count += count;
        }
        let Some(address) = memory::allocate_pages(count) else {
            self.pages.lock().count -= count;
            return Err(Status::Exhausted);
        };
        self.pages.lock().runs.push((address, count));
        self.trace.add(TraceKind::MemoryAllocated, address as u64, count as u64);
        Ok(address)
    }

    /// Frees an allocation; how many pages.
    pub fn free_pages(&self, address: usize) -> Result<usize, Status> {
        let mut pages = self.pages.lock();
        let position = pages.runs.iter().position(|&(run, _)| run == address).ok_or(Status::BadArgument)?;
        let (_, count) = pages.runs.swap_remove(position);
        pages.count -= count;
        drop(pages);
        memory::free_pages(address, count);
        self.trace.add(TraceKind::MemoryFreed, address as u64, count as u64);
        Ok(count)
    }

    /// Pages used and allowed.
    pub fn page_usage(&self) -> (usize, usize) {
        (self.pages.lock().count, self.quota().memory_kib as usize * 1024 / PAGE_BYTES)
    }

    /// The value that was given for a parameter.
    pub fn parameter(&self, index: usize) -> Option<Vec<u8>> {
        self.life.lock().parameters.get(index).cloned().flatten()
    }

    /// Takes the endpoint that was given for a slot.
    pub fn take_endpoint(&self, slot: usize) -> Option<u64> {
        self.life.lock().slots.get_mut(slot).and_then(Option::take)
    }

    /// The machine's name for a device of its manifest.
    pub fn device_name(&self, index: usize) -> Option<String> {
        let manifest = &self.program.get()?.manifest;
        let need = manifest.devices.get(index)?;
        Some(self.life.lock().devices.get(index).cloned().flatten().unwrap_or_else(|| need.name.clone()))
    }

    /// Counts a device opened or closed.
    pub fn count_device(&self, opened: bool) {
        if opened {
            self.open_devices.fetch_add(1, Ordering::Relaxed);
        } else {
            self.open_devices.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Its epitaph if it has ended, else leaves a ticket for its end. `generation` is that of the handle:
    /// another thread of the parent may release the child while one waits.
    pub fn wait_at(&self, parent: ProcessRef, generation: u32, ticket: Ticket) -> Result<Option<Epitaph>, Status> {
        let mut life = self.life.lock();
        if !self.is_held_by(&life, parent) || self.generation() != generation {
            return Err(Status::BadHandle);
        }
        if self.state() == ProcessState::Ended {
            return Ok(Some(life.epitaph.clone().unwrap_or_else(|| Epitaph::exited(0))));
        }
        life.waiters.add(ticket);
        Ok(None)
    }

    /// Takes a ticket back.
    pub fn stop_waiting_at(&self, thread: ThreadRef) {
        self.life.lock().waiters.remove(thread);
    }
}

/// Creates a SIP of a program, for a parent (none: the first).
pub fn create(program: &'static Program, parent: Option<ProcessRef>) -> Result<ProcessRef, CreateError> {
    if let Some(parent) = parent {
        let children = parent.children.lock().count();
        if children >= parent.quota().children {
            return Err(CreateError::Status(parent.quota_exceeded(QUOTA_CHILDREN)));
        }
    }
    let loaded = program.load().map_err(CreateError::Refused)?;
    let process = PROCESSES.allocate().ok_or(CreateError::Status(Status::Exhausted))?;
    let manifest = &program.manifest;
    process.id.store(NEXT_ID.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    process.program.set(Some(program));
    process.loaded.set(Some(loaded));
    process.state.store(ProcessState::Created as u64, Ordering::Release);
    process.dying.store(false, Ordering::SeqCst);
    process.live_threads.store(0, Ordering::Relaxed);
    process.created_channels.store(0, Ordering::Relaxed);
    process.block_bytes.store(0, Ordering::Relaxed);
    for counter in [&process.sent, &process.received, &process.past_cycles, &process.started_ns] {
        counter.store(0, Ordering::Relaxed);
    }
    process.trace.clear();
    {
        let mut life = process.life.lock();
        life.parent = parent.map(|parent| (parent, parent.id.load(Ordering::Relaxed)));
        life.held = parent.is_some();
        life.epitaph = None;
        life.waiters = Waiters::default();
        life.parameters.clear();
        life.parameters.resize(manifest.parameters.len(), None);
        life.slots.clear();
        life.slots.resize(manifest.endpoints.len(), None);
        life.devices.clear();
        life.devices.resize(manifest.devices.len(), None);
    }
    CREATED.fetch_add(1, Ordering::Relaxed);
    let parent_id = process.parent_id();
    process.trace.add(TraceKind::Created, parent_id, 0);
    if let Some(parent) = parent {
        parent.children.lock().insert(process.index());
        parent.trace.add(TraceKind::ChildCreated, process.id.load(Ordering::Relaxed), 0);
    }
    Ok(process)
}

/// Why a SIP was not created.
pub enum CreateError {
    /// A quota, or the machine.
    Status(Status),
    /// The program's package: why.
    Refused(String),
}

/// Adds to the value of a parameter of a SIP that has not started.
pub fn give_parameter(child: ProcessRef, index: usize, bytes: &[u8]) -> Result<(), Status> {
    if child.state() != ProcessState::Created {
        return Err(Status::WrongState);
    }
    let mut life = child.life.lock();
    let parameter = life.parameters.get_mut(index).ok_or(Status::NotFound)?;
    let value = parameter.get_or_insert_default();
    if value.len() + bytes.len() > 64 * 1024 {
        return Err(Status::TooLarge);
    }
    value.extend_from_slice(bytes);
    Ok(())
}

/// Names the machine's device for a device of the child's manifest.
pub fn give_device(child: ProcessRef, index: usize, name: String) -> Result<(), Status> {
    if child.state() != ProcessState::Created {
        return Err(Status::WrongState);
    }
    let mut life = child.life.lock();
    *life.devices.get_mut(index).ok_or(Status::NotFound)? = Some(name);
    Ok(())
}

/// Moves an endpoint of the parent's to a slot of a SIP that has not started.
pub fn give_endpoint(parent: ProcessRef, child: ProcessRef, slot: usize, handle: u64) -> Result<(), Status> {
    if child.state() != ProcessState::Created || child.is_dying() {
        return Err(Status::WrongState);
    }
    let manifest = &child.program.get().ok_or(Status::WrongState)?.manifest;
    let declared = manifest.endpoints.get(slot).ok_or(Status::NotFound)?;
    let contracts = &child.loaded.get().ok_or(Status::WrongState)?.contracts;
    let contract = contracts.get(declared.contract as usize).ok_or(Status::NotFound)?;
    let shape = abi::EndpointShape {
        contract: contract.tag,
        importer: declared.side == package::Side::Importer,
        state: declared.state,
    };
    // Held throughout: a child that is ended meanwhile gives back what it has been given, all of it.
    let mut life = child.life.lock();
    if child.state() != ProcessState::Created || child.is_dying() {
        return Err(Status::WrongState);
    }
    let place = life.slots.get_mut(slot).ok_or(Status::NotFound)?;
    if place.is_some() {
        return Err(Status::Busy);
    }
    let endpoint = claims::endpoint(handle)?;
    channel::take_givable(parent, endpoint, &shape)?;
    channel::adopt_endpoint(child, endpoint);
    *place = Some(endpoint.handle());
    Ok(())
}

/// Starts a created SIP.
pub fn start(process: ProcessRef) -> Result<(), Status> {
    let thread = {
        // With the lock held, so that ending it finds it either not started or with a thread to end.
        let _life = process.life.lock();
        if process.state() != ProcessState::Created || process.is_dying() {
            return Err(Status::WrongState);
        }
        let entry = process.loaded.get().ok_or(Status::WrongState)?.entry;
        let thread = thread::create(process, entry, Argument::ThreadBlock)?;
        process.state.store(ProcessState::Running as u64, Ordering::Release);
        thread
    };
    thread.end.lock().released = true;
    process.started_ns.store(machine().monotonic_ns(), Ordering::Relaxed);
    process.trace.add(TraceKind::Started, 0, 0);
    crate::sched::make_runnable_new(thread);
    Ok(())
}

/// Whether the SIP may have another thread.
pub fn may_create_thread(process: ProcessRef) -> Result<(), Status> {
    if process.threads.lock().count() < process.quota().threads {
        process.may_have_another_handle()
    } else {
        Err(process.quota_exceeded(QUOTA_THREADS))
    }
}

/// Ends a SIP. Its threads end when they leave the kernel; does not wait.
pub fn end(process: ProcessRef, epitaph: Epitaph) {
    let never_started = {
        let mut life = process.life.lock();
        if process.state() == ProcessState::Ended || process.dying.swap(true, Ordering::SeqCst) {
            return;
        }
        let never_started = process.state() == ProcessState::Created;
        process.state.store(ProcessState::Stopping as u64, Ordering::Release);
        life.epitaph = Some(epitaph);
        never_started
    };
    if never_started {
        finish(process);
        return;
    }
    let threads: Vec<ThreadRef> = {
        let list = process.threads.lock();
        core::iter::successors(list.first(), |&index| list.next(index))
            .filter_map(|index| thread::THREADS.slot(index))
            .collect()
    };
    let here = cpu::this();
    for thread in threads {
        let state = thread.state.load(Ordering::SeqCst);
        match state & 3 {
            wait_word::BLOCKED => {
                Ticket { thread, state }.wake(Woken::Killed);
            }
            wait_word::RUNNING => {
                let number = thread.cpu.load(Ordering::Relaxed);
                if number == here.number {
                    here.pending.fetch_or(cpu::PENDING_KILL, Ordering::Relaxed);
                } else {
                    machine().interrupt(number as usize);
                }
            }
            _ => {}
        }
    }
}

/// A thread of the SIP ends: called on it, last thing but the switch away.
pub fn thread_ended(process: ProcessRef, thread: ThreadRef) {
    let cycles = thread.cycles.load(Ordering::Relaxed);
    process.past_cycles.fetch_add(cycles, Ordering::Relaxed);
    process.trace.add(TraceKind::ThreadEnded, thread.handle(), 0);
    let dying = process.is_dying();
    {
        let mut end = thread.end.lock();
        if dying || end.released {
            end.released = true;
            drop(end);
            process.threads.lock().remove(thread.index());
        }
    }
    if process.live_threads.fetch_sub(1, Ordering::AcqRel) == 1 {
        if !dying {
            let mut life = process.life.lock();
            process.dying.store(true, Ordering::SeqCst);
            life.epitaph.get_or_insert_with(|| Epitaph::exited(0));
        }
        finish(process);
    }
}

/// Gives back everything that a SIP without threads has.
fn finish(process: ProcessRef) {
    for child in take_all(&process.children) {
        if let Some(child) = PROCESSES.slot(child) {
            orphan(child);
        }
    }
    release_threads(process);
    device::close_all(process);
    let mut endpoints = Vec::new();
    loop {
        // Taken out of the list one at a time: an endpoint's lock comes before the list's.
        let first = process.endpoints.lock().first();
        let Some(index) = first else { break };
        process.endpoints.lock().remove(index);
        if let Some(channel) = channel::CHANNELS.slot(index >> 1) {
            endpoints.push(channel::endpoint_at(channel, index));
        }
        if endpoints.len() == 64 {
            channel::close_all(core::mem::take(&mut endpoints));
        }
    }
    channel::close_all(endpoints);
    loop {
        let block = {
            let mut blocks = process.blocks.lock();
            let Some(block) = blocks.first().and_then(|index| exheap::BLOCKS.slot(index)) else { break };
            exheap::unlist(&mut blocks, block);
            block
        };
        exheap::dispose(block);
    }
    for index in take_all(&process.syncs) {
        if let Some(sync) = sync::SYNCS.slot(index) {
            sync::release(sync);
        }
    }
    let runs = {
        let mut pages = process.pages.lock();
        pages.count = 0;
        core::mem::take(&mut pages.runs)
    };
    for (address, count) in runs {
        memory::free_pages(address, count);
    }
    announce_end(process);
}

fn take_all<K: Listed>(list: &SpinLock<List<K>>) -> Vec<u32> {
    let mut list = list.lock();
    let mut all = Vec::new();
    while let Some(index) = list.first() {
        list.remove(index);
        all.push(index);
    }
    all
}

/// Frees the slots of threads that ended without being joined.
fn release_threads(process: ProcessRef) {
    for index in take_all(&process.threads) {
        let Some(thread) = thread::THREADS.slot(index) else { continue };
        let mut end = thread.end.lock();
        end.released = true;
        // One that is not buried yet is freed by whoever buries it.
        if end.ended {
            drop(end);
            thread::THREADS.release(thread);
        }
    }
}

fn orphan(child: ProcessRef) {
    let ended = {
        let mut life = child.life.lock();
        life.held = false;
        life.parent = None;
        child.state() == ProcessState::Ended
    };
    if ended {
        PROCESSES.release(child);
    } else {
        end(child, Epitaph::new(EpitaphKind::Orphaned, "ended with its parent"));
    }
}

fn announce_end(process: ProcessRef) {
    let mut life = process.life.lock();
    let epitaph = life.epitaph.get_or_insert_with(|| Epitaph::exited(0)).clone();
    process.trace.add(TraceKind::Ended, epitaph.kind as u64, epitaph.status);
    remember(process, &epitaph);
    process.state.store(ProcessState::Ended as u64, Ordering::Release);
    ENDED.fetch_add(1, Ordering::Relaxed);
    life.waiters.wake_all();
    let held = life.held;
    let first = process.parent_id_locked(&life) == 0 && !held && process.id.load(Ordering::Relaxed) == 1;
    drop(life);
    if first {
        crate::root_ended(&epitaph);
    }
    if !held {
        PROCESSES.release(process);
    }
}

impl Slot<Process> {
    fn parent_id_locked(&self, life: &Life) -> u64 {
        life.parent.map_or(0, |(_, id)| id)
    }
}

/// The parent gives a child's handle up.
pub fn release(parent: ProcessRef, child: ProcessRef, generation: u32) -> Result<(), Status> {
    let ended = {
        let mut life = child.life.lock();
        // Another thread of the parent may have released it, and the slot be another SIP's.
        if !life.held || !child.is_held_by(&life, parent) || child.generation() != generation {
            return Err(Status::BadHandle);
        }
        life.held = false;
        life.parent = None;
        child.state() == ProcessState::Ended
    };
    parent.children.lock().remove(child.index());
    if ended {
        PROCESSES.release(child);
    } else if child.state() == ProcessState::Created {
        end(child, Epitaph::new(EpitaphKind::NotStarted, "given up before it was started"));
    }
    Ok(())
}

/// Ends a SIP on behalf of another.
pub fn stop(stopper: ProcessRef, process: ProcessRef, reason: StopReason) {
    let who = stopper.name();
    let text = match reason {
        StopReason::Requested => format!("stopped by {who}"),
        StopReason::Interrupted => format!("interrupted by {who}"),
        StopReason::Shutdown => format!("stopped by {who} for shutdown"),
    };
    stopper.trace.add(TraceKind::ChildStopped, process.id.load(Ordering::Relaxed), 0);
    end(process, Epitaph::new(EpitaphKind::Stopped, text));
}

/// What is kept of SIPs that have ended.
struct Graveyard {
    lines: VecDeque<String>,
    traces: VecDeque<(u64, Vec<TraceRecord>)>,
}

static GRAVEYARD: SpinLock<Graveyard> = SpinLock::new(Graveyard { lines: VecDeque::new(), traces: VecDeque::new() });
const EPITAPHS_KEPT: usize = 256;
const TRACES_KEPT: usize = 64;

fn remember(process: ProcessRef, epitaph: &Epitaph) {
    let id = process.id.load(Ordering::Relaxed);
    let line = format!("{id} {} {}", process.name(), epitaph.text);
    let records = process.trace.records();
    let mut graveyard = GRAVEYARD.lock();
    if graveyard.lines.len() == EPITAPHS_KEPT {
        graveyard.lines.pop_front();
    }
    graveyard.lines.push_back(line);
    if graveyard.traces.len() == TRACES_KEPT {
        graveyard.traces.pop_front();
    }
    graveyard.traces.push_back((id, records));
}

/// The epitaphs that are kept, a line each.
pub fn epitaph_lines() -> String {
    let graveyard = GRAVEYARD.lock();
    let mut text = String::new();
    for line in &graveyard.lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// The trace of a SIP that runs or ended lately.
pub fn trace_of(id: u64) -> Option<Vec<TraceRecord>> {
    let running = PROCESSES.iter().find(|process| process.id.load(Ordering::Relaxed) == id);
    if let Some(process) = running {
        return Some(process.trace.records());
    }
    let graveyard = GRAVEYARD.lock();
    graveyard.traces.iter().find(|(dead, _)| *dead == id).map(|(_, records)| records.clone())
}
