//! SIPs: from creation from a manifest to the last resource given back.
//!
//! Who owns a SIP's slot: its parent, as long as it holds the child's handle; else the SIP itself
//! until its end. What if it dies here: ending a SIP marks it as dying and makes every thread of it
//! leave the kernel, where it ends; the last one gives everything back ([`finish`]), without running
//! any code of the SIP, tells whoever waits, and ends the SIP's children.

mod child;
mod end;
mod graveyard;
mod parameters;
mod quota;
mod reclaim;

pub use child::ChildRef;
pub use end::{end, stop, thread_ended};
pub use graveyard::{Epitaph, epitaph_lines, trace_of};
pub use quota::may_create_thread;
pub use reclaim::{Scarce, no_room, reclaim, used_up};

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::{ProcessState, Status, TraceKind};

use parameters::Parameters;

use crate::lock::{AtomicRef, SpinLock};
use crate::principal::{self, Principal, TooLong};
use crate::program::{Loaded, Program};
use crate::slab::{Links, List, Listed, Slab, Slot, Slotted};
use crate::trace::Ring;
use crate::wait::Waiters;
use crate::{channel, debug_sink, exheap, sync, thread};

/// All SIPs.
pub static PROCESSES: Slab<Process> = Slab::new();
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// SIPs created and ended since start.
pub static CREATED: AtomicU64 = AtomicU64::new(0);
/// See [`CREATED`].
pub static ENDED: AtomicU64 = AtomicU64::new(0);

impl Slotted for Process {
    const SCARCE: Scarce = Scarce::Processes;
}

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
    /// How many parents lie between it and nobody: 0 for the root.
    depth: AtomicU32,
    /// Process id of the top of the tree that it belongs to when memory runs out.
    tree: AtomicU64,
    /// Whether it is being ended because memory ran out.
    reclaimed: AtomicBool,
    /// More than its program's principal, if it was invoked.
    own_principal: principal::Own,
    /// Its trace.
    pub trace: Ring,
    /// Messages sent.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Cycles that its threads were charged.
    pub cycles: AtomicU64,
    /// When it was started, ns.
    pub started_ns: AtomicU64,
    links: Links,
    life: SpinLock<Life>,
    /// Its threads.
    pub threads: SpinLock<List<thread::InProcess>>,
    /// Of the threads of one that is being ended, the next to be told. Guarded by their list.
    next_to_end: AtomicU32,
    /// Its exchange-heap blocks.
    pub blocks: SpinLock<List<exheap::OfProcess>>,
    /// Bytes of blocks that count against its quota: its own, and those it sent that are not received.
    pub block_bytes: AtomicUsize,
    /// Its endpoints.
    pub endpoints: SpinLock<List<channel::OfProcess>>,
    /// Channels that it pays for, those that it created above all, and their bytes, in one word.
    channels: AtomicU64,
    /// How many bytes the kernel may keep for it in queues, sets and records of children.
    kernel_quota: AtomicUsize,
    /// Bytes that the kernel keeps for it beside those that follow from its lists.
    kernel_bytes: AtomicUsize,
    /// Its mutexes, events, wait sets and debug sinks.
    pub syncs: SpinLock<List<sync::OfProcess>>,
    /// Its paged memory.
    pub pages: SpinLock<Pages>,
    children: SpinLock<List<OfParent>>,
    /// Children whose handles it has, and those that it gave up and that still run.
    charged_children: AtomicU32,
    open_devices: AtomicU32,
    /// Where its debug text goes.
    pub debug_sink: debug_sink::Place,
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
    /// Its allocations.
    runs: Runs,
    /// All pages.
    pub count: usize,
}

/// The number of pages of each allocation, by its address. Most SIPs have one, which needs no memory of its own here.
#[derive(Default)]
struct Runs {
    one: Option<(usize, usize)>,
    others: BTreeMap<usize, usize>,
}

impl Runs {
    /// Adds an allocation.
    fn insert(&mut self, address: usize, count: usize) {
        if self.one.is_none() {
            self.one = Some((address, count));
        } else {
            self.others.insert(address, count);
        }
    }

    /// Takes the allocation at an address out; how many pages it has.
    fn remove(&mut self, address: usize) -> Option<usize> {
        match self.one {
            Some((one, count)) if one == address => {
                self.one = None;
                Some(count)
            }
            _ => self.others.remove(&address),
        }
    }

    /// Takes any allocation out.
    fn pop(&mut self) -> Option<(usize, usize)> {
        self.one.take().or_else(|| self.others.pop_first())
    }

    /// How many allocations.
    fn len(&self) -> usize {
        usize::from(self.one.is_some()) + self.others.len()
    }
}

#[derive(Default)]
struct Life {
    parent: Option<(ProcessRef, u64)>,
    /// Who is charged for it although it gave the handle up, with its process id.
    released_by: Option<(ProcessRef, u64)>,
    held: bool,
    /// Whether its parent said that it invoked it.
    is_invoked: bool,
    epitaph: Option<Epitaph>,
    waiters: Waiters,
    parameters: Parameters,
    slots: Vec<Option<u64>>,
    devices: Vec<Option<String>>,
}

impl Life {
    /// What is kept of what its parent gave it.
    fn bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Option<u64>>();
        let names: usize = self.devices.iter().flatten().map(String::capacity).sum();
        self.parameters.held() + slots + names + self.devices.capacity() * size_of::<Option<String>>()
    }

    /// What is kept of it when it has ended, until its parent gives its handle up.
    fn remains(&self) -> usize {
        let epitaph = self.epitaph.as_ref().map_or(0, |epitaph| epitaph.text.len());
        quota::PROCESS_BYTES + self.bytes() + epitaph
    }

    /// Whether it is the child of this SIP, which still holds its handle; without one, whether it is the first SIP.
    fn is_held_by(&self, parent: Option<ProcessRef>) -> bool {
        let known = self.parent.map(|(known, _)| known);
        let is_same = match (known, parent) {
            (Some(known), Some(parent)) => core::ptr::eq(known, parent),
            (known, parent) => known.is_none() && parent.is_none(),
        };
        is_same && self.held == parent.is_some()
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

    /// Who it speaks for.
    #[inline(always)]
    pub fn principal(&self) -> Option<Principal> {
        self.program.get().map(|program| self.own_principal.of(program))
    }

    /// The parent's process id, 0 if there is none.
    pub fn parent_id(&self) -> u64 {
        self.life.lock().parent.map_or(0, |(_, id)| id)
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

    /// What is read of the value that was given for a parameter. Its life is locked meanwhile.
    pub fn with_parameter<R>(&self, index: usize, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.life.lock().parameters.get(index).map(read)
    }

    /// Takes the endpoint that was given for a slot.
    pub fn take_endpoint(&self, slot: usize) -> Option<u64> {
        self.life.lock().slots.get_mut(slot).and_then(Option::take)
    }

    /// A device of its manifest.
    pub fn device_need(&self, index: usize) -> Option<&'static manifest_model::DeviceNeed> {
        self.program.get()?.manifest.devices.get(index)
    }

    /// The machine's name for a device of its manifest.
    pub fn device_name(&self, index: usize) -> Option<String> {
        let need = self.device_need(index)?;
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
}

/// Creates a SIP of a program, for a parent (none: the first).
pub fn create(program: &'static Program, parent: Option<ProcessRef>) -> Result<ChildRef, CreateError> {
    let Some(parent) = parent else { return make(program, None) };
    // Before anything is made, so that threads that create at the same time are counted one by one.
    parent.charge_child().map_err(CreateError::Status)?;
    let made = make(program, Some(parent));
    if made.is_err() {
        parent.refund_child(parent.id.load(Ordering::Relaxed));
    }
    made
}

fn make(program: &'static Program, parent: Option<ProcessRef>) -> Result<ChildRef, CreateError> {
    let loaded = program.load().map_err(CreateError::Refused)?;
    let invoker = parent.map(|parent| invoker(parent, program)).transpose()?.flatten();
    let process = PROCESSES.allocate().ok_or(CreateError::Status(Status::Exhausted))?;
    let child = ChildRef::new(process, process.generation());
    let manifest = &program.manifest;
    process.id.store(NEXT_ID.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    process.place_below(parent);
    process.reclaimed.store(false, Ordering::Relaxed);
    process.own_principal.clear();
    if let Some(invoker) = invoker {
        process.own_principal.set_invoker(invoker);
    }
    process.program.set(Some(program));
    process.loaded.set(Some(loaded));
    process.state.store(ProcessState::Created as u64, Ordering::Release);
    process.dying.store(false, Ordering::SeqCst);
    process.live_threads.store(0, Ordering::Relaxed);
    process.channels.store(0, Ordering::Relaxed);
    process.kernel_bytes.store(0, Ordering::Relaxed);
    process.kernel_quota.store(quota::kernel_quota(&manifest.quota), Ordering::Relaxed);
    process.charged_children.store(0, Ordering::Relaxed);
    process.block_bytes.store(0, Ordering::Relaxed);
    for counter in [&process.sent, &process.received, &process.cycles, &process.started_ns] {
        counter.store(0, Ordering::Relaxed);
    }
    process.debug_sink.inherit(parent);
    process.trace.clear();
    let parent_id = parent.map_or(0, |parent| parent.id.load(Ordering::Relaxed));
    process.trace.add(TraceKind::Created, parent_id, 0);
    {
        let mut life = process.life.lock();
        life.parent = parent.map(|parent| (parent, parent_id));
        life.released_by = None;
        life.held = parent.is_some();
        life.is_invoked = false;
        life.epitaph = None;
        life.waiters.clear();
        life.parameters.reset(manifest.parameters.len());
        life.slots.clear();
        life.slots.resize(manifest.endpoints.len(), None);
        life.devices.clear();
        life.devices.resize(manifest.devices.len(), None);
        if let Some(parent) = parent {
            // Before anybody can give the child up, who would take it out.
            parent.children.lock().insert(process.index());
        }
    }
    CREATED.fetch_add(1, Ordering::Relaxed);
    if let Some(parent) = parent {
        parent.trace.add(TraceKind::ChildCreated, process.id.load(Ordering::Relaxed), 0);
    }
    Ok(child)
}

/// Why a SIP was not created.
pub enum CreateError {
    /// A quota, or the machine.
    Status(Status),
    /// The program's package: why.
    Refused(String),
}

/// Whom a child's principal names although its parent says nothing. One who was invoked cannot shed the names of its
/// invokers by starting others, or itself, without them.
fn invoker(parent: ProcessRef, program: &'static Program) -> Result<Option<Principal>, CreateError> {
    if !parent.own_principal.is_compound() {
        return Ok(None);
    }
    let Some(invoker) = parent.principal() else { return Ok(None) };
    match invoker.may_invoke(program) {
        Ok(()) => Ok(Some(invoker)),
        Err(TooLong) => Err(CreateError::Refused(String::from(
            "too many programs have invoked each other; start it from one that fewer have",
        ))),
    }
}
