//! The scheduler: the papers' two lists (Rethinking, 3.3.2), one pair of queues shared by all processors for cold
//! threads.
//!
//! Each processor has its own *unblocked* list: threads that were woken on this processor, first come, first served,
//! within the current quantum (quantum inheritance: the timer is never reset by a switch). When the timer expires, all
//! of it and the running thread move to the *preempted* list, which all processors share and which feeds idle ones.
//! Threads woken from outside the processors (by devices) go to the *inbox*, which comes before the preempted list.
//!
//! Ownership of a thread: the processor it runs on, or the queue it is in, or (blocked) the waker that uses its ticket.
//! A thread is queued only when no processor is on its stack any more: wakers wait for that, and a preempted thread is
//! queued by the context that runs next.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use abi::TraceKind;

use crate::cpu::{self, Afterwards, Cpu};
use crate::lock::{AtomicRef, SpinLock};
use crate::machine::machine;
use crate::preempt::{PENDING_INTERRUPT, PENDING_KILL, PENDING_RESCHEDULE, PENDING_TIMER};
use crate::process::stream;
use crate::thread::{self, ThreadRef};
use crate::wait_word::{self, RUNNABLE, RUNNING};
use crate::{arch, latency, watch};

/// A first-in, first-out list through [`thread::Thread::next`].
#[derive(Default)]
pub struct Queue {
    head: AtomicRef<crate::slab::Slot<thread::Thread>>,
    tail: AtomicRef<crate::slab::Slot<thread::Thread>>,
    count: AtomicU32,
}

impl Queue {
    const fn new() -> Queue {
        Queue { head: AtomicRef::none(), tail: AtomicRef::none(), count: AtomicU32::new(0) }
    }

    #[inline(always)]
    fn push(&self, thread: ThreadRef) {
        thread.next.set(None);
        match self.tail.get() {
            Some(last) => last.next.set(Some(thread)),
            None => self.head.set(Some(thread)),
        }
        self.tail.set(Some(thread));
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn pop(&self) -> Option<ThreadRef> {
        let first = self.head.get()?;
        let next = first.next.get();
        self.head.set(next);
        if next.is_none() {
            self.tail.set(None);
        }
        self.count.store(self.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        Some(first)
    }

    /// Appends all of another.
    fn append(&self, other: &Queue) {
        let Some(first) = other.head.take() else { return };
        match self.tail.get() {
            Some(last) => last.next.set(Some(first)),
            None => self.head.set(Some(first)),
        }
        self.tail.set(other.tail.take());
        let more = other.count.swap(0, Ordering::Relaxed);
        self.count.store(self.count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Number of them.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

struct Shared {
    inbox: Queue,
    preempted: Queue,
}

static SHARED: SpinLock<Shared> = SpinLock::new(Shared { inbox: Queue::new(), preempted: Queue::new() });
/// Number of threads in the shared queues; read without the lock.
static SHARED_COUNT: AtomicU32 = AtomicU32::new(0);
/// Idle processors, one bit each.
static IDLE: AtomicU64 = AtomicU64::new(0);
static NEXT_TO_INTERRUPT: AtomicU32 = AtomicU32::new(0);

/// With this many runnable threads, one more is worth the thousands of cycles that waking another processor and moving
/// the thread's cache lines cost. Fewer stay together: most run briefly, send a message and block. Long-running
/// threads are spread by the timer.
const CROWDED: u32 = 8;

/// Makes a thread runnable on this processor, after those already queued.
#[inline(always)]
pub fn make_runnable(thread: ThreadRef) {
    wait_until_off_processor(thread);
    let cpu = cpu::this();
    if cpu.unblocked.count() >= CROWDED && IDLE.load(Ordering::Relaxed) != 0 {
        share(thread);
    } else {
        cpu.unblocked.push(thread);
    }
}

/// Makes a thread runnable from a host thread or interrupt outside the processors.
pub fn make_runnable_from_outside(thread: ThreadRef) {
    wait_until_off_processor(thread);
    let shared = SHARED.lock();
    shared.inbox.push(thread);
    SHARED_COUNT.store(shared.inbox.count() + shared.preempted.count(), Ordering::Release);
    drop(shared);
    if !wake_idle_processor() {
        let count = machine().processor_count() as u32;
        let number = NEXT_TO_INTERRUPT.fetch_add(1, Ordering::Relaxed) % count.max(1);
        machine().interrupt(number as usize);
    }
}

fn share(thread: ThreadRef) {
    let shared = SHARED.lock();
    shared.preempted.push(thread);
    SHARED_COUNT.store(shared.inbox.count() + shared.preempted.count(), Ordering::Release);
    drop(shared);
    wake_idle_processor();
}

/// A processor that has just blocked a thread may still be on its stack for a moment. It cannot wait for the caller
/// meanwhile: `schedule` never waits.
#[inline(always)]
fn wait_until_off_processor(thread: ThreadRef) {
    let mut spins = 0;
    while thread.on_cpu.load(Ordering::Acquire) {
        spins += 1;
        machine().relax(spins);
    }
}

/// Wakes some idle processor; false if none is idle.
pub fn wake_idle_processor() -> bool {
    // Pending work was stored before this; a processor that goes idle marks itself before it checks.
    fence(Ordering::SeqCst);
    let idle = IDLE.load(Ordering::Acquire);
    if idle == 0 {
        return false;
    }
    let number = idle.trailing_zeros();
    IDLE.fetch_and(!(1 << number), Ordering::AcqRel);
    machine().wake(number as usize);
    true
}

#[inline(always)]
fn pick(cpu: &'static Cpu) -> Option<ThreadRef> {
    cpu.unblocked.pop().or_else(pick_shared)
}

fn pick_shared() -> Option<ThreadRef> {
    if SHARED_COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let shared = SHARED.lock();
    let thread = shared.inbox.pop().or_else(|| shared.preempted.pop());
    SHARED_COUNT.store(shared.inbox.count() + shared.preempted.count(), Ordering::Release);
    thread
}

/// Runs other threads until the current thread, which blocked or queued itself, is picked again.
#[inline(always)]
pub fn schedule() {
    let cpu = cpu::this();
    let Some(current) = cpu.current() else { return };
    match pick(cpu) {
        Some(next) if core::ptr::eq(next, current) => {
            set_running(next);
            finish_switch();
        }
        Some(next) => {
            switch_to(cpu, current, next);
        }
        None => {
            account_before_idling(cpu, current);
            cpu.set_current(None);
            let idle = cpu.idle_saved.load(Ordering::Relaxed);
            // SAFETY: the idle context of this processor saved itself when it switched to a thread.
            unsafe { arch::switch(&current.saved, idle, &current.on_cpu) };
            finish_switch();
        }
    }
}

/// Like [`schedule`], for rare paths, where its size counts.
#[inline(never)]
pub fn schedule_out_of_line() {
    schedule();
}

#[inline(always)]
fn switch_to(cpu: &'static Cpu, current: ThreadRef, next: ThreadRef) {
    arrive(cpu, next);
    // SAFETY: `next` came from a queue, so it is saved and ours alone; no lock is held here.
    unsafe { arch::switch(&current.saved, next.saved.load(Ordering::Relaxed), &current.on_cpu) };
    finish_switch();
}

#[inline(always)]
fn set_running(thread: ThreadRef) {
    let state = thread.state.load(Ordering::Relaxed);
    thread.state.store(wait_word::with_state(state, RUNNING), Ordering::Relaxed);
}

#[inline(always)]
fn arrive(cpu: &'static Cpu, next: ThreadRef) {
    set_running(next);
    next.cpu.store(cpu.number, Ordering::Relaxed);
    next.on_cpu.store(true, Ordering::Relaxed);
    cpu.set_current(Some(next));
    cpu.stack_limit.store(next.limit.load(Ordering::Relaxed), Ordering::Relaxed);
    cpu.switches.store(cpu.switches.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// On a timer interrupt, charges all cycles not yet accounted to the interrupted thread. Over time each thread is
/// charged its share; reading the cycle counter at each switch would cost as much as the switch.
pub fn account_sample() {
    let cpu = cpu::this();
    let Some(running) = cpu.current() else { return };
    let before = cpu.uncharged.swap(0, Ordering::Relaxed);
    charge(cpu, running, before);
}

/// Accounts before the processor goes idle. If one thread alone has run since it was last idle, it is charged exactly.
/// Of several, the last is no fair sample: their cycles wait for the timer.
fn account_before_idling(cpu: &'static Cpu, running: ThreadRef) {
    if cpu.switches.load(Ordering::Relaxed).wrapping_sub(cpu.switches_before.load(Ordering::Relaxed)) <= 1 {
        charge(cpu, running, 0);
    } else {
        let used = arch::cycles().wrapping_sub(cpu.since.load(Ordering::Relaxed));
        cpu.uncharged.store(cpu.uncharged.load(Ordering::Relaxed).wrapping_add(used), Ordering::Relaxed);
    }
}

fn charge(cpu: &'static Cpu, running: ThreadRef, before: u64) {
    let now = arch::cycles();
    let used = now.wrapping_sub(cpu.since.load(Ordering::Relaxed)).wrapping_add(before);
    running.cycles.store(running.cycles.load(Ordering::Relaxed).wrapping_add(used), Ordering::Relaxed);
    if let Some(process) = running.owner() {
        process.cycles.fetch_add(used, Ordering::Relaxed);
    }
    cpu.since.store(now, Ordering::Relaxed);
    cpu.tick_ns.store(machine().monotonic_ns(), Ordering::Relaxed);
}

/// First step of every context that is switched to, including new threads.
#[inline(always)]
pub fn finish_switch() {
    let cpu = cpu::this();
    if cpu.afterwards.load(Ordering::Relaxed) != Afterwards::Nothing as u8 {
        clean_up(cpu);
    }
    if let Some(process) = cpu.current().and_then(|thread| thread.owner())
        && process.is_dying()
    {
        cpu.pending.fetch_or(PENDING_KILL, Ordering::Relaxed);
    }
}

#[cold]
fn clean_up(cpu: &'static Cpu) {
    let afterwards = cpu.afterwards.swap(Afterwards::Nothing as u8, Ordering::Relaxed);
    let Some(left) = cpu.left.take() else { return };
    if afterwards == Afterwards::Requeue as u8 {
        share(left);
    } else {
        thread::bury(left);
    }
}

/// Lets the other runnable threads of this processor go first.
#[inline(always)]
pub fn yield_now() {
    let cpu = cpu::this();
    let current = cpu::current();
    if cpu.unblocked.count() == 0 && SHARED_COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    set_runnable(current);
    if cpu.unblocked.count() == 0 {
        cpu.leave_behind(Afterwards::Requeue, current);
    } else {
        cpu.unblocked.push(current);
    }
    if watch::is_any() {
        stream::between(current, TraceKind::GaveWay, schedule_out_of_line);
    } else {
        schedule();
    }
}

#[inline(always)]
fn set_runnable(thread: ThreadRef) {
    let state = thread.state.load(Ordering::Relaxed);
    thread.state.store(wait_word::with_state(state, RUNNABLE), Ordering::Relaxed);
}

/// Switches to another thread if the pending flags require it.
pub fn let_others_run(current: ThreadRef, pending: u32) {
    if latency::is_on() {
        latency::between(&current.stretch, || switch_if_pending(current, pending));
    } else {
        switch_if_pending(current, pending);
    }
}

fn switch_if_pending(current: ThreadRef, pending: u32) {
    let cpu = cpu::this();
    if pending & PENDING_TIMER != 0 {
        give_way(cpu, current);
    } else if pending & PENDING_INTERRUPT != 0 && cpu.unblocked.count() != 0 {
        // A driver's latency must not depend on the quantum of the running thread.
        set_runnable(current);
        cpu.leave_behind(Afterwards::Requeue, current);
        stream::around(current, TraceKind::GaveWay, schedule_out_of_line);
    } else if pending & PENDING_RESCHEDULE != 0 && SHARED_COUNT.load(Ordering::Acquire) != 0 {
        set_runnable(current);
        cpu.leave_behind(Afterwards::Requeue, current);
        stream::around(current, TraceKind::GaveWay, || match pick_shared() {
            Some(next) => switch_to(cpu, current, next),
            None => schedule_out_of_line(),
        });
    }
}

/// End of the quantum: everything here moves to the preempted list, the current thread last.
fn give_way(cpu: &'static Cpu, current: ThreadRef) {
    if cpu.unblocked.count() == 0 && SHARED_COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let count = cpu.unblocked.count();
    let shared = SHARED.lock();
    shared.preempted.append(&cpu.unblocked);
    SHARED_COUNT.store(shared.inbox.count() + shared.preempted.count(), Ordering::Release);
    drop(shared);
    // At most as many as there are processors.
    let _ = (0..count).find(|_| !wake_idle_processor());
    set_runnable(current);
    cpu.leave_behind(Afterwards::Requeue, current);
    stream::around(current, TraceKind::GaveWay, schedule_out_of_line);
}

/// Switches away from a thread that has ended.
pub fn leave_for_ever(thread: ThreadRef) -> ! {
    if latency::is_on() {
        latency::end(&thread.stretch);
    }
    let cpu = cpu::this();
    let state = thread.state.load(Ordering::Relaxed);
    thread.state.store(wait_word::with_state(state, wait_word::ENDED), Ordering::Release);
    cpu.leave_behind(Afterwards::Bury, thread);
    schedule();
    unreachable!("an ended thread is in no queue")
}

/// Runs runnable threads, from the idle context, until the processor has none left; false if there was none.
pub fn run_next(cpu: &'static Cpu) -> bool {
    let Some(next) = pick(cpu) else { return false };
    cpu.since.store(arch::cycles(), Ordering::Relaxed);
    cpu.tick_ns.store(machine().monotonic_ns(), Ordering::Relaxed);
    cpu.switches_before.store(cpu.switches.load(Ordering::Relaxed), Ordering::Relaxed);
    arrive(cpu, next);
    // SAFETY: `next` came from a queue; the idle context holds nothing.
    unsafe { arch::switch(&cpu.idle_saved, next.saved.load(Ordering::Relaxed), &cpu.idle_on_cpu) };
    finish_switch();
    cpu.pending.fetch_and(!(PENDING_KILL | PENDING_RESCHEDULE | PENDING_TIMER), Ordering::Relaxed);
    true
}

/// Sleeps until the processor is woken or the time returned by `until`, which is called when the processor already
/// counts as idle. Does not sleep if that is `None` or a thread is runnable.
pub fn sleep(cpu: &'static Cpu, until: impl FnOnce() -> Option<u64>) {
    let bit = 1 << cpu.number;
    IDLE.fetch_or(bit, Ordering::AcqRel);
    // An interrupt from here on ends the idling: the machine counts it like a wake.
    let until = until();
    if SHARED_COUNT.load(Ordering::SeqCst) == 0
        && let Some(deadline) = until
    {
        machine().idle(cpu.number as usize, deadline);
    }
    IDLE.fetch_and(!bit, Ordering::AcqRel);
}

/// Number of idle processors.
pub fn idle_processors() -> u32 {
    IDLE.load(Ordering::Relaxed).count_ones()
}

#[cfg(test)]
mod tests;
