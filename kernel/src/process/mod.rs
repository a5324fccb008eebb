//! SIPs: what the kernel keeps of each, and the accounts of what it uses.
//!
//! Owner of a SIP's slot: its parent, as long as it holds the child's handle; else the SIP itself until its end.
//! Neighbours: `lifecycle` creates, starts and ends SIPs. Deliberately not here: what a SIP owns (threads, channels,
//! blocks); their modules know SIPs, not the other way round.

mod debug_text;
mod epitaph;
mod owned;
mod parameters;
mod quota;
mod trace;

pub use debug_text::SinkRef;
pub use epitaph::Epitaph;
pub use owned::{Blocks, Endpoints, Syncs, Threads};
pub use quota::{kernel_quota, may_create_thread};

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::ProcessState;

use debug_text::DebugText;
use parameters::Parameters;
use trace::Ring;

use crate::audit;
use crate::lock::{AtomicRef, SpinLock};
use crate::principal::{self, Principal};
use crate::program::{Loaded, Program};
use crate::slab::{Links, List, Listed, Slab, Slot};
use crate::wait::Waiters;

/// All SIPs.
pub static PROCESSES: Slab<Process> = Slab::new();

/// One SIP.
#[derive(Default)]
pub struct Process {
    /// Its number, never used again.
    pub id: AtomicU64,
    /// What it runs.
    pub program: AtomicRef<Program>,
    /// The same, verified and mapped.
    pub loaded: AtomicRef<Loaded>,
    pub(crate) state: AtomicU64,
    pub(crate) dying: AtomicBool,
    /// Threads that have not ended.
    pub live_threads: AtomicU32,
    /// Its distance from the root, which has 0.
    pub(crate) depth: AtomicU32,
    /// Process id of the top of the tree that it belongs to when memory runs out.
    pub(crate) tree: AtomicU64,
    /// Whether it is being ended because memory ran out.
    pub(crate) reclaimed: AtomicBool,
    /// More than its program's principal, if it was invoked.
    pub(crate) own_principal: principal::Own,
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
    pub(crate) links: Links,
    pub(crate) life: SpinLock<Life>,
    /// Its threads.
    pub threads: SpinLock<List<Threads>>,
    /// Of the threads of one that is being ended, the next to be told. Guarded by their list.
    pub(crate) next_to_end: AtomicU32,
    /// Its exchange-heap blocks.
    pub blocks: SpinLock<List<Blocks>>,
    /// Bytes of blocks that count against its quota: its own, and those it sent that are not received.
    pub block_bytes: AtomicUsize,
    /// Its endpoints.
    pub endpoints: SpinLock<List<Endpoints>>,
    /// Channels that it pays for, those that it created above all, and their bytes, in one word.
    pub(crate) channels: AtomicU64,
    /// How many bytes the kernel may keep for it in queues, sets and records of children.
    pub(crate) kernel_quota: AtomicUsize,
    /// Bytes that the kernel keeps for it beside those that follow from its lists.
    pub(crate) kernel_bytes: AtomicUsize,
    /// Its mutexes, events, wait sets and debug sinks.
    pub syncs: SpinLock<List<Syncs>>,
    /// Its paged memory.
    pub pages: SpinLock<Pages>,
    pub(crate) children: SpinLock<List<OfParent>>,
    /// Children whose handles it has, and those that it gave up and that still run.
    pub(crate) charged_children: AtomicU32,
    pub(crate) open_devices: AtomicU32,
    /// Where its debug text goes.
    pub debug_text: DebugText,
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
    pub(crate) runs: Runs,
    /// All pages.
    pub count: usize,
}

/// The number of pages of each allocation, by its address. Most SIPs have one, which needs no memory of its own here.
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
    pub(crate) fn pop(&mut self) -> Option<(usize, usize)> {
        self.one.take().or_else(|| self.others.pop_first())
    }

    /// How many allocations.
    fn len(&self) -> usize {
        usize::from(self.one.is_some()) + self.others.len()
    }
}

/// What the lock of a SIP's life guards.
#[derive(Default)]
pub(crate) struct Life {
    pub(crate) parent: Option<(ProcessRef, u64)>,
    /// The parent that released it and is still charged for it, with its process id.
    pub(crate) released_by: Option<(ProcessRef, u64)>,
    pub(crate) held: bool,
    /// Whether its parent invoked it.
    pub(crate) is_invoked: bool,
    pub(crate) epitaph: Option<Epitaph>,
    pub(crate) waiters: Waiters,
    pub(crate) parameters: Parameters,
    pub(crate) slots: Vec<Option<u64>>,
    pub(crate) devices: Vec<Option<String>>,
}

impl Life {
    /// What is kept of what its parent gave it.
    fn bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Option<u64>>();
        let names: usize = self.devices.iter().flatten().map(String::capacity).sum();
        self.parameters.held() + slots + names + self.devices.capacity() * size_of::<Option<String>>()
    }

    /// What is kept of it when it has ended, until its parent gives its handle up.
    pub(crate) fn remains(&self) -> usize {
        let epitaph = self.epitaph.as_ref().map_or(0, |epitaph| epitaph.text.len());
        quota::PROCESS_BYTES + self.bytes() + epitaph
    }

    /// Whether it is the child of this SIP, which still holds its handle; without one, whether it is the first SIP.
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

    /// The principal that it speaks for.
    #[inline(always)]
    pub fn principal(&self) -> Option<Principal> {
        self.program.get().map(|program| self.own_principal.of(program))
    }

    /// Notes in the audit that the kernel refused it something: which right on what, by which rule.
    #[cold]
    pub fn audit_refusal(&self, right: &str, object: &str, rule: &str) {
        let principal = self.principal();
        audit::refused(principal.as_ref().map_or("?", Principal::text), right, object, rule);
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
