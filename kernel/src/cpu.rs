//! The block of each processor, reached through the GS base register.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use alloc::boxed::Box;

use crate::arch;
use crate::lock::{AtomicRef, SpinLock};
use crate::process::stream::Events;
use crate::sched::Queue;
use crate::slab::Slot;
use crate::thread::Thread;

/// Work that the next context does for the one that a processor has just left.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Afterwards {
    /// Nothing.
    Nothing = 0,
    /// Put the thread at the end of the preempted list.
    Requeue = 1,
    /// Free the ended thread's stack.
    Bury = 2,
}

/// One processor. Its fields are used by that processor alone, in the kernel, except where noted; so no other
/// processor's block may share its cache lines, or the adjacent line fetched with each.
#[repr(C, align(128))]
pub struct Cpu {
    address: AtomicUsize,
    /// Flags to check before leaving the kernel. Any processor may set them.
    pub pending: AtomicU32,
    current: AtomicRef<Slot<Thread>>,
    /// Its [limit](Thread::limit).
    pub stack_limit: AtomicUsize,
    /// Number from 0.
    pub number: u32,
    /// Recently unblocked threads, in order.
    pub unblocked: Queue,
    /// The saved stack pointer of the idle context.
    pub idle_saved: AtomicUsize,
    /// See [`Afterwards`].
    pub afterwards: AtomicU8,
    /// The thread to which `afterwards` applies.
    pub left: AtomicRef<Slot<Thread>>,
    /// Cycle counter when cycles were last charged to a thread, or when it stopped idling if that was later.
    pub since: AtomicU64,
    /// Earlier cycles not yet charged.
    pub uncharged: AtomicU64,
    /// The monotonic clock, in nanoseconds, when `since` was set.
    pub tick_ns: AtomicU64,
    /// Value of [`switches`](Self::switches) when it stopped idling.
    pub switches_before: AtomicU64,
    /// Stands in for a thread's `on_cpu` when the idle context is left.
    pub idle_on_cpu: AtomicBool,
    /// Switches between threads.
    pub switches: AtomicU64,
    /// Events of the trace stream; the reader takes them from any processor.
    pub events: SpinLock<Events>,
}

const _: () = {
    assert!(offset_of!(Cpu, address) == arch::CPU_SELF);
    assert!(offset_of!(Cpu, pending) == arch::CPU_PENDING);
    assert!(offset_of!(Cpu, current) == arch::CPU_CURRENT);
    assert!(offset_of!(Cpu, stack_limit) == arch::CPU_STACK_LIMIT);
};

/// Bits of the scheduler's set of idle processors.
const PROCESSORS_MAX: usize = 64;

/// All blocks, by processor number.
static MADE: [AtomicRef<Cpu>; PROCESSORS_MAX] = [const { AtomicRef::none() }; PROCESSORS_MAX];

/// All processors, by number.
pub fn all() -> impl Iterator<Item = &'static Cpu> + Clone {
    MADE.iter().map_while(AtomicRef::get)
}

/// Number of thread switches of each processor, by processor number.
pub fn switches() -> impl Iterator<Item = u64> {
    all().map(|cpu| cpu.switches.load(Ordering::Relaxed))
}

impl Cpu {
    /// Leaks a block for processor `number`.
    pub fn make(number: u32) -> &'static Cpu {
        let cpu = Box::leak(Box::new(Cpu {
            address: AtomicUsize::new(0),
            pending: AtomicU32::new(0),
            current: AtomicRef::none(),
            stack_limit: AtomicUsize::new(0),
            number,
            unblocked: Queue::default(),
            idle_saved: AtomicUsize::new(0),
            afterwards: AtomicU8::new(Afterwards::Nothing as u8),
            left: AtomicRef::none(),
            since: AtomicU64::new(0),
            uncharged: AtomicU64::new(0),
            tick_ns: AtomicU64::new(0),
            switches_before: AtomicU64::new(0),
            idle_on_cpu: AtomicBool::new(false),
            switches: AtomicU64::new(0),
            events: SpinLock::default(),
        }));
        cpu.address.store(cpu.base(), Ordering::Release);
        if let Some(place) = MADE.get(number as usize) {
            place.set(Some(cpu));
        }
        cpu
    }

    /// The value for the GS base register.
    pub fn base(&'static self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The thread running on this processor.
    #[inline(always)]
    pub fn current(&self) -> Option<&'static Slot<Thread>> {
        self.current.get()
    }

    /// Sets the thread running on this processor.
    #[inline(always)]
    pub fn set_current(&self, thread: Option<&'static Slot<Thread>>) {
        self.current.set(thread);
    }

    /// Leaves work to the context that runs next on this processor.
    #[inline(always)]
    pub fn leave_behind(&self, afterwards: Afterwards, thread: &'static Slot<Thread>) {
        self.left.set(Some(thread));
        self.afterwards.store(afterwards as u8, Ordering::Relaxed);
    }
}

/// Returns the calling processor's block. Must be called again after anything that may switch.
#[inline(always)]
pub fn this() -> &'static Cpu {
    // SAFETY: the first word of a Cpu block is its own address, set by `Cpu::make`; blocks are leaked.
    unsafe { &*(arch::cpu_address() as *const Cpu) }
}

/// The monotonic clock at the calling processor's last tick, in nanoseconds. Reading the clock itself would double the
/// cost of a trace event.
#[inline(always)]
pub fn tick_ns() -> u64 {
    // Unit tests run on no processor.
    if cfg!(test) { 0 } else { this().tick_ns.load(Ordering::Relaxed) }
}

/// Returns the thread that makes the current ABI call.
#[inline(always)]
pub fn current() -> &'static Slot<Thread> {
    // SAFETY: ABI functions run only on a thread; `set_current` stores references to slots, which live for ever, before
    // a thread runs.
    unsafe { &*(arch::cpu_current() as *const Slot<Thread>) }
}
