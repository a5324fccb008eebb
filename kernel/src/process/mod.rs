//! SIPs: the kernel's record of each, and the accounting of its resources.
//!
//! Owner of a SIP's slot: its parent, as long as it holds the child's handle; otherwise the SIP itself until its end.
//! Neighbours: `lifecycle` creates, starts and ends SIPs. Deliberately not here: a SIP's objects (threads, channels,
//! blocks); their modules depend on this one, not the reverse.

mod debug_text;
mod epitaph;
mod owned;
mod parameters;
mod quota;
pub mod stream;
mod trace;
mod turn;
mod windows;

pub use debug_text::SinkRef;
pub use epitaph::Epitaph;
pub use owned::{Blocks, Endpoints, Syncs, Threads};
pub use quota::{kernel_quota, may_create_thread};
pub use trace::EVENTS as TRACE_EVENTS;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::ProcessState;

use debug_text::DebugText;
use parameters::Parameters;
use trace::Ring;
pub use turn::Turn;

use crate::audit;
use crate::lock::{AtomicRef, SpinLock};
use crate::memory::windows::Window;
use crate::principal::{self, Principal};
use crate::program::{Loaded, Program};
use crate::slab::{Links, List, Listed, Slab, Slot};
use crate::space::Space;
use crate::wait::Waiters;

/// All SIPs.
pub static PROCESSES: Slab<Process> = Slab::new();

/// A SIP.
#[derive(Default)]
pub struct Process {
    /// Process id, never reused.
    pub id: AtomicU64,
    /// The program that it runs.
    pub program: AtomicRef<Program>,
    /// The same, verified and mapped.
    pub loaded: AtomicRef<Loaded>,
    /// Its space; none if it is the kernel's own.
    pub space: AtomicRef<Slot<Space>>,
    pub(crate) state: AtomicU64,
    pub(crate) dying: AtomicBool,
    pub(crate) has_no_room: AtomicBool,
    /// Threads that have not ended.
    pub live_threads: AtomicU32,
    /// Depth below the root, which has 0.
    pub(crate) depth: AtomicU32,
    /// Process id of the root of the tree that it is reclaimed with when memory runs out.
    pub(crate) tree: AtomicU64,
    /// Whether it is ending because memory ran out.
    pub(crate) reclaimed: AtomicBool,
    /// Its own principal, if it was invoked; otherwise its program's applies.
    pub(crate) own_principal: principal::Own,
    /// Its trace.
    pub trace: Ring,
    /// Messages sent.
    pub sent: AtomicU64,
    /// The latency of the first message is sampled that brings [`sent`](Self::sent) to at least this.
    pub sample_at: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Cycles charged to its threads.
    pub cycles: AtomicU64,
    /// Start time, in ns.
    pub started_ns: AtomicU64,
    pub(crate) links: Links,
    pub(crate) life: SpinLock<Life>,
    /// Its threads.
    pub threads: SpinLock<List<Threads>>,
    /// While it ends: the next thread to notify. Guarded by the list of threads.
    pub(crate) next_to_end: AtomicU32,
    /// Its exchange-heap blocks.
    pub blocks: SpinLock<List<Blocks>>,
    /// Bytes of blocks charged to its quota: its own, and those it sent that are not yet received.
    pub block_bytes: AtomicUsize,
    /// Its endpoints.
    pub endpoints: SpinLock<List<Endpoints>>,
    /// Channels that it pays for, mainly those it created, and their bytes, packed in one word.
    pub(crate) channels: AtomicU64,
    /// Maximum bytes that the kernel keeps for it in queues, sets and records of children.
    pub(crate) kernel_quota: AtomicUsize,
    /// Bytes that the kernel keeps for it, beyond those that follow from its lists.
    pub(crate) kernel_bytes: AtomicUsize,
    /// Its mutexes, events, wait sets and debug sinks.
    pub syncs: SpinLock<List<Syncs>>,
    /// Its paged memory.
    pub pages: SpinLock<Pages>,
    pub(crate) children: SpinLock<List<OfParent>>,
    /// Children whose handles it holds, and released ones that still run.
    pub(crate) charged_children: AtomicU32,
    pub(crate) open_devices: AtomicU32,
    /// Which of its threads runs, if the run is recorded.
    pub(crate) turn: Turn,
    /// Destination of its debug text.
    pub debug_text: DebugText,
}

/// A reference to a SIP.
pub type ProcessRef = &'static Slot<Process>;

/// A parent's list of children.
pub enum OfParent {}

impl Listed for OfParent {
    fn links(index: u32) -> Option<&'static Links> {
        PROCESSES.slot(index).map(|slot| &slot.links)
    }
}

/// Page allocations of a SIP.
#[derive(Default)]
pub struct Pages {
    /// The allocations.
    pub(crate) runs: Runs,
    /// Its copies of its image's data.
    pub(crate) data: Vec<ImageData>,
    /// Its windows.
    pub(crate) windows: Vec<Window>,
    /// Total number of pages.
    pub count: usize,
}

/// A process's copy of data of its image.
#[derive(Clone, Copy)]
pub(crate) struct ImageData {
    /// Its address in the image, where the process's domain has it.
    pub(crate) address: usize,
    /// Its address in the kernel.
    pub(crate) memory: usize,
    pub(crate) pages: usize,
}

/// Number of pages of each allocation, by address. Most SIPs have one, which needs no heap memory.
#[derive(Default)]
pub(crate) struct Runs {
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

    /// Removes the allocation at an address and returns its number of pages.
    fn remove(&mut self, address: usize) -> Option<usize> {
        match self.one {
            Some((one, count)) if one == address => {
                self.one = None;
                Some(count)
            }
            _ => self.others.remove(&address),
        }
    }

    /// Removes any allocation.
    pub(crate) fn pop(&mut self) -> Option<(usize, usize)> {
        self.one.take().or_else(|| self.others.pop_first())
    }

    /// Number of allocations.
    fn len(&self) -> usize {
        usize::from(self.one.is_some()) + self.others.len()
    }
}

/// State guarded by the lock of a SIP's life.
#[derive(Default)]
pub(crate) struct Life {
    pub(crate) parent: Option<(ProcessRef, u64)>,
    /// The parent that released it and is still charged for it, with its process id.
    pub(crate) released_by: Option<(ProcessRef, u64)>,
    pub(crate) held: bool,
    /// Whether it was invoked by its parent.
    pub(crate) is_invoked: bool,
    pub(crate) epitaph: Option<Epitaph>,
    pub(crate) waiters: Waiters,
    pub(crate) parameters: Parameters,
    pub(crate) slots: Vec<Option<u64>>,
    pub(crate) devices: Vec<Option<String>>,
}

impl Life {
    /// Bytes kept of its parameters, endpoint slots and device names.
    fn bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Option<u64>>();
        let names: usize = self.devices.iter().flatten().map(String::capacity).sum();
        self.parameters.held() + slots + names + self.devices.capacity() * size_of::<Option<String>>()
    }

    /// Bytes kept after its end, until its parent closes the handle.
    pub(crate) fn remains(&self) -> usize {
        let epitaph = self.epitaph.as_ref().map_or(0, |epitaph| epitaph.text.len());
        quota::PROCESS_BYTES + self.bytes() + epitaph
    }

    /// Whether this SIP is its parent and still holds its handle; for `None`, whether it is the first SIP.
    pub(crate) fn is_held_by(&self, parent: Option<ProcessRef>) -> bool {
        let known = self.parent.map(|(known, _)| known);
        let is_same = match (known, parent) {
            (Some(known), Some(parent)) => core::ptr::eq(known, parent),
            (known, parent) => known.is_none() && parent.is_none(),
        };
        is_same && self.held == parent.is_some()
    }
}

impl Slot<Process> {
    /// Whether it is ending.
    #[inline(always)]
    pub fn is_dying(&self) -> bool {
        self.dying.load(Ordering::SeqCst)
    }

    /// Whether it has been given a block for which no memory was left in its space. It must not be told the address, which
    /// is not mapped for it, and ends.
    #[inline(always)]
    pub fn has_no_room(&self) -> bool {
        self.has_no_room.load(Ordering::Relaxed)
    }

    /// State of its life.
    pub fn state(&self) -> ProcessState {
        ProcessState::from_number(self.state.load(Ordering::Acquire)).unwrap_or(ProcessState::Ended)
    }

    /// Name of its program.
    pub fn name(&self) -> &'static str {
        self.program.get().map_or("?", |program| &program.manifest.name)
    }

    /// Its principal.
    #[inline(always)]
    pub fn principal(&self) -> Option<Principal> {
        self.program.get().map(|program| self.own_principal.of(program))
    }

    /// Records a refusal by the kernel in the audit: the right, the object and the rule.
    #[cold]
    pub fn audit_refusal(&self, right: &str, object: &str, rule: &str) {
        let principal = self.principal();
        audit::refused(principal.as_ref().map_or("?", Principal::text), right, object, rule);
    }

    /// Process id of the parent, 0 if there is none.
    pub fn parent_id(&self) -> u64 {
        self.life.lock().parent.map_or(0, |(_, id)| id)
    }

    /// Number of handles in use.
    pub fn handles(&self) -> u32 {
        // One lock at a time: in one expression the guards would be held together.
        let blocks = self.blocks.lock().count();
        let endpoints = self.endpoints.lock().count();
        let syncs = self.syncs.lock().count();
        let threads = self.threads.lock().count();
        let children = self.children.lock().count();
        blocks + endpoints + syncs + threads + children + self.open_devices.load(Ordering::Relaxed)
    }

    /// Number of children whose handles it holds.
    pub fn child_count(&self) -> u32 {
        self.children.lock().count()
    }

    /// Applies `read` to the value given for a parameter, with its life locked.
    pub fn with_parameter<R>(&self, index: usize, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.life.lock().parameters.get(index).map(read)
    }

    /// Takes the endpoint given for a slot.
    pub fn take_endpoint(&self, slot: usize) -> Option<u64> {
        self.life.lock().slots.get_mut(slot).and_then(Option::take)
    }

    /// A device of its manifest.
    pub fn device_need(&self, index: usize) -> Option<&'static manifest_model::DeviceNeed> {
        self.program.get()?.manifest.devices.get(index)
    }

    /// The machine's name of a device in its manifest.
    pub fn device_name(&self, index: usize) -> Option<String> {
        let need = self.device_need(index)?;
        Some(self.life.lock().devices.get(index).cloned().flatten().unwrap_or_else(|| need.name.clone()))
    }

    /// Counts an opened or closed device.
    pub fn count_device(&self, opened: bool) {
        if opened {
            self.open_devices.fetch_add(1, Ordering::Relaxed);
        } else {
            self.open_devices.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
