//! Waiting: blocking a thread until an event, and waking it.
//!
//! A thread begins a wait ([`begin`]), registers tickets at the objects it waits for, and blocks ([`block`]). A ticket
//! names the thread and the number of the wait, so a stale ticket has no effect. The first use of one wakes the thread;
//! a wait is woken at most once. The waker may hand over the result ([`HandOver`]).

use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use abi::TraceKind;
use abi::limits::NEVER;

use crate::lock::SpinLock;
use crate::preempt::{PENDING_KILL, PENDING_WAKE};
use crate::process::stream;
use crate::thread::ThreadRef;
use crate::{arch, cpu, sched, timers, wait_word, watch};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Woken {
    /// The event may have occurred.
    Signalled = 0,
    /// The deadline expired.
    TimedOut = 1,
    /// Its SIP is being ended.
    Killed = 2,
}

/// A claim to wake a thread from one wait.
#[derive(Clone, Copy)]
pub struct Ticket {
    /// The thread.
    pub thread: ThreadRef,
    /// Its state word while it waits.
    pub state: u32,
}

impl Ticket {
    /// Ends the wait; false if it is over already.
    #[inline(always)]
    pub fn wake(self, why: Woken) -> bool {
        if !self.claim(why) {
            return false;
        }
        sched::make_runnable(self.thread);
        true
    }

    /// Ends the wait and hands over a value. Returns whether the thread accepts it; `None` if the wait is over already.
    #[inline(always)]
    fn hand(self, what: u64) -> Option<bool> {
        if !self.claim(Woken::Signalled) {
            return None;
        }
        let taken = self.thread.handed.give(what);
        sched::make_runnable(self.thread);
        Some(taken)
    }

    /// Like [`wake`](Ticket::wake), for callers outside the processors.
    pub fn wake_from_outside(self, why: Woken) -> bool {
        if !self.claim(why) {
            return false;
        }
        sched::make_runnable_from_outside(self.thread);
        true
    }

    #[inline(always)]
    fn claim(self, why: Woken) -> bool {
        if !wait_word::claim(&self.thread.state, self.state) {
            return false;
        }
        self.thread.woken.store(why as u32, Ordering::Relaxed);
        true
    }
}

/// A value handed over by the waker, so that the thread need not check the object again.
///
/// The thread sets whether it accepts a value before it registers its ticket, with the object's lock held; after that
/// only the waker that claimed the ticket writes, until the thread runs again.
#[derive(Default)]
pub struct HandOver {
    state: AtomicU8,
    what: AtomicU64,
}

const NOTHING: u8 = 0;
const WANTED: u8 = 1;
const GIVEN: u8 = 2;

impl HandOver {
    /// Accepts a hand-over in the wait that begins.
    #[inline(always)]
    pub fn want(&self) {
        self.state.store(WANTED, Ordering::Relaxed);
    }

    /// Accepts no hand-over; the thread polls the object.
    #[inline(always)]
    pub fn refuse(&self) {
        self.state.store(NOTHING, Ordering::Relaxed);
    }

    /// Takes the value handed over.
    #[inline(always)]
    pub fn take(&self) -> Option<u64> {
        let given = self.state.load(Ordering::Relaxed) == GIVEN;
        self.refuse();
        given.then(|| self.what.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn give(&self, what: u64) -> bool {
        let wanted = self.state.load(Ordering::Relaxed) == WANTED;
        if wanted {
            self.what.store(what, Ordering::Relaxed);
            self.state.store(GIVEN, Ordering::Relaxed);
        }
        wanted
    }
}

/// Begins a wait of the current thread.
#[inline(always)]
pub fn begin() -> Ticket {
    let thread = cpu::current();
    Ticket { thread, state: wait_word::begin(&thread.state) }
}

/// Cancels the wait, without blocking. False if a waker has used the ticket: then the thread is in
/// a run queue and must [`block`].
#[inline(always)]
pub fn cancel(ticket: Ticket) -> bool {
    wait_word::cancel(&ticket.thread.state, ticket.state)
}

/// Blocks the current thread until its ticket is used or the deadline expires. No lock may be held, and nothing on the
/// stack may need to be dropped: the SIP may end here.
pub fn block(ticket: Ticket, deadline: u64) -> Woken {
    let dying = ticket.thread.owner().is_none_or(|process| process.is_dying());
    if dying && cancel(ticket) {
        // This processor may not have the flag yet. The thread must still end on its way out of the kernel: `Closed`
        // returns no words to a dying SIP, which would take the stale words in its buffer for blocks.
        arch::cpu_set_pending(PENDING_KILL);
        return Woken::Killed;
    }
    if deadline == NEVER {
        give_processor_away(ticket.thread);
    } else {
        timers::arm(deadline, ticket);
        give_processor_away(ticket.thread);
        timers::disarm(ticket);
    }
    match ticket.thread.woken.load(Ordering::Relaxed) {
        0 => Woken::Signalled,
        1 => Woken::TimedOut,
        _ => Woken::Killed,
    }
}

/// Ends a wait that was begun but not needed.
pub fn drop_wait(ticket: Ticket) {
    if !cancel(ticket) {
        block(ticket, NEVER);
    }
}

#[inline(always)]
fn give_processor_away(current: ThreadRef) {
    if watch::is_any() {
        stream::between(current, TraceKind::Blocked, sched::schedule);
    } else {
        sched::schedule();
    }
}

/// Maximum tickets used at once, before other threads run.
const AT_ONCE: usize = 64;
/// Capacity that an empty queue keeps, in tickets.
const KEPT_TICKETS: usize = 16;

/// Tickets of objects with many waiters, to be used by any processor.
static LATER: SpinLock<VecDeque<Waiters>> = SpinLock::new(VecDeque::new());
static HAVE_LATER: AtomicBool = AtomicBool::new(false);

/// Whether [`wake_later`] has threads to wake.
pub fn has_later() -> bool {
    HAVE_LATER.load(Ordering::Acquire)
}

/// Wakes some of the threads deferred by an earlier wake-up.
pub fn wake_later() {
    if !has_later() {
        return;
    }
    let mut later = LATER.lock();
    let Some(mut waiters) = later.pop_front() else { return };
    HAVE_LATER.store(!later.is_empty(), Ordering::Release);
    drop(later);
    waiters.wake_all();
}

/// Threads waiting for one object, in order.
#[derive(Default)]
pub struct Waiters {
    queue: VecDeque<Ticket>,
}

impl Ticket {
    fn is_same(self, other: Ticket) -> bool {
        core::ptr::eq(self.thread, other.thread) && self.state == other.state
    }
}

impl Waiters {
    /// Adds a ticket.
    pub fn add(&mut self, ticket: Ticket) {
        // An object named twice in one wait gets one ticket.
        if !self.queue.back().is_some_and(|last| last.is_same(ticket)) {
            self.queue.push_back(ticket);
        }
    }

    /// Shrinks a queue that once had many waiters.
    #[inline(always)]
    fn trim(&mut self) {
        if self.queue.is_empty() && self.queue.capacity() > KEPT_TICKETS {
            self.queue = VecDeque::new();
        }
    }

    /// Removes a thread's tickets.
    pub fn remove(&mut self, thread: ThreadRef) {
        self.queue.retain(|ticket| !core::ptr::eq(ticket.thread, thread));
        self.trim();
    }

    /// Wakes the first valid waiter and returns it.
    pub fn wake_one(&mut self) -> Option<ThreadRef> {
        while let Some(ticket) = self.queue.pop_front() {
            if ticket.wake(Woken::Signalled) {
                self.trim();
                return Some(ticket.thread);
            }
        }
        None
    }

    /// Wakes the first waiter and hands over a value. True if it accepts; false if it polls or there is no waiter.
    #[inline(always)]
    pub fn hand_to_one(&mut self, what: u64) -> bool {
        while let Some(ticket) = self.queue.pop_front() {
            if let Some(taken) = ticket.hand(what) {
                self.trim();
                return taken;
            }
        }
        false
    }

    /// Takes the first valid ticket, without using it.
    pub fn take_one(&mut self) -> Option<Ticket> {
        while let Some(ticket) = self.queue.pop_front() {
            if ticket.thread.state.load(Ordering::Acquire) == ticket.state {
                return Some(ticket);
            }
        }
        None
    }

    /// Wakes all waiters; if there are many, the rest later.
    pub fn wake_all(&mut self) {
        for _ in 0..AT_ONCE {
            let Some(ticket) = self.queue.pop_front() else { break };
            ticket.wake(Woken::Signalled);
        }
        if !self.queue.is_empty() {
            LATER.lock().push_back(core::mem::take(self));
            HAVE_LATER.store(true, Ordering::Release);
            arch::cpu_set_pending(PENDING_WAKE);
        }
        self.trim();
    }

    /// Drops all tickets without waking; keeps the capacity.
    pub fn clear(&mut self) {
        self.queue.clear();
    }

    /// Whether there are no waiters.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
