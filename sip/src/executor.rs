//! Single-threaded asynchronous executor.
//!
//! [`block_on`] runs a future and the tasks it [`spawn`]s. A task that awaits an endpoint adds it to the executor's wait
//! set, so that the cost of a wait depends on the endpoints that have messages, not on all of them. Neighbours: generated
//! endpoints' `receive_async` is [`Receive`]. Deliberately not here: tasks that move between threads; an endpoint belongs
//! to one thread at a time.

mod current;
mod device_waits;
mod gone;
mod member;
mod ready;
mod task;
mod turns;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};

use abi::{Status, limits};

use crate::channel::{Receiver, receive_or_add};
use crate::raw::value as kernel;
use crate::slots::Slots;
use crate::thread_block;
use crate::time::{Deadline, monotonic, monotonic_coarse};

use device_waits::Handles;
pub use gone::{Gone, gone};
pub use member::Member;
use ready::{MAIN_TASK, TaskWaker, Waiter};
pub use task::Task;
use turns::Turns;
pub use turns::{Idle, Ready, idle, ready};

/// Maximum length of one wait, in nanoseconds, when the kernel's wait has no room for all devices.
const PARTIAL_WAIT_NS: u64 = 1_000_000;

/// Waits that tell the clock, after one of its readers: a server's tasks do not ask after each.
const WAITS_WITH_CLOCK: u8 = 8;

/// Polls of a [`Sleep`] between two looks at the clock.
const POLLS_PER_LOOK: u8 = 16;

struct LocalTask {
    future: Pin<Box<dyn Future<Output = ()>>>,
    /// Made when the task is first polled.
    waker: Option<Waker>,
}

/// State shared by the tasks of one `block_on`.
struct Executor {
    set: u64,
    waiting: RefCell<Slots<Waiter>>,
    tasks: RefCell<Slots<Option<LocalTask>>>,
    timers: RefCell<BTreeMap<(u64, u64), Waker>>,
    next_timer: Cell<u64>,
    /// The clock as it was last seen.
    seen_ns: Cell<u64>,
    /// Whether it was seen since the last wait.
    has_seen: Cell<bool>,
    /// Waits that are to tell it, since somebody has asked for it lately.
    waits_with_clock: Cell<u8>,
    turns: Turns,
    ready: ready::Ready,
}

/// Runs a future to completion on this thread, together with the tasks it spawns. Tasks unfinished then are dropped.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, Status> {
    let set = kernel::wait_set_create()?;
    let executor = Rc::new(Executor {
        set,
        waiting: RefCell::new(Slots::new()),
        tasks: RefCell::new(Slots::new()),
        timers: RefCell::new(BTreeMap::new()),
        next_timer: Cell::new(0),
        seen_ns: Cell::new(0),
        has_seen: Cell::new(false),
        waits_with_clock: Cell::new(0),
        turns: Turns::default(),
        ready: ready::Ready::new(set),
    });
    let _entered = current::enter(&executor);
    let output = executor.run(future);
    // Waiting tasks hold a reference to the executor; dropping them breaks the cycle.
    let unfinished: Vec<Option<LocalTask>> = executor.tasks.borrow_mut().drain();
    drop(unfinished);
    Ok(output)
}

/// Spawns a task on the executor that runs on this thread.
///
/// # Panics
///
/// If called outside [`block_on`].
pub fn spawn<F>(future: F) -> Task<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let (task, body) = task::pair(future);
    let executor = current::get();
    let key = executor.tasks.borrow_mut().insert(Some(LocalTask { future: Box::pin(body), waker: None }));
    executor.ready.push(key);
    task
}

/// Completes at the deadline; other tasks run meanwhile.
pub fn sleep_until(deadline: Deadline) -> Sleep {
    Sleep { deadline: deadline.as_ns(), registered: None, polls: 0 }
}

/// Notes what the clock shows, for this thread's executor if there is one: a sleep that is over then ends at once.
pub(crate) fn note_time(now_ns: u64) {
    current::with(|executor| executor.note_time(now_ns));
}

/// The clock as this thread's executor has seen it since it last waited, if it has.
pub(crate) fn time_seen() -> Option<u64> {
    current::with(|executor| {
        executor.waits_with_clock.set(WAITS_WITH_CLOCK);
        executor.has_seen.get().then(|| executor.seen_ns.get())
    })
    .flatten()
}

/// Room for the keys of one wait.
type Keys = [u64; limits::WAIT_KEYS];

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// This many keys of the set were reported.
    Set(usize),
    /// A device was ready, or tasks that waited for idleness were woken.
    Other,
    /// At its deadline.
    TimedOut,
}

impl Executor {
    fn note_time(&self, now_ns: u64) {
        self.seen_ns.set(now_ns);
        self.has_seen.set(true);
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = TaskWaker::waker(MAIN_TASK, &self.ready.mail);
        self.ready.push(MAIN_TASK);
        loop {
            while let Some(key) = self.ready.pop() {
                if key != MAIN_TASK {
                    self.poll_task(key);
                    continue;
                }
                self.ready.runs(key, &waker);
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                self.ready.stops();
                if let Poll::Ready(output) = polled {
                    return output;
                }
            }
            self.wait();
        }
    }

    fn poll_task(&self, key: u64) {
        // Taken out while it is polled, so that it can spawn other tasks.
        let Some(mut task) = self.tasks.borrow_mut().get_mut(key).and_then(Option::take) else {
            return;
        };
        let waker = task.waker.get_or_insert_with(|| TaskWaker::waker(key, &self.ready.mail));
        self.ready.runs(key, waker);
        let polled = task.future.as_mut().poll(&mut Context::from_waker(waker));
        self.ready.stops();
        if polled.is_ready() {
            self.tasks.borrow_mut().remove(key);
        } else if let Some(slot) = self.tasks.borrow_mut().get_mut(key) {
            *slot = Some(task);
        }
    }

    /// Blocks for an endpoint, a device, a timer or a wake from another thread, and wakes the tasks that wait for it.
    fn wait(&self) {
        let first_timer = self.timers.borrow().first_key_value().map(|((deadline, _), _)| *deadline);
        let mut keys: Keys = [0; limits::WAIT_KEYS];
        self.has_seen.set(false);
        let ended = match self.turns.is_empty() {
            true => self.wait_for_set(first_timer.unwrap_or(Deadline::NEVER.as_ns()), &mut keys),
            false => self.wait_with_turns(first_timer, &mut keys),
        };
        let reported = if let Waited::Set(reported) = ended { reported } else { 0 };
        for key in &keys[..reported] {
            // An alert has no waiter: another thread has put a task into the mail.
            let waiter = self.waiting.borrow_mut().remove(*key);
            if let Some(waiter) = waiter {
                self.ready.wake(waiter);
            }
        }
        // A steady stream of messages should not pay for a clock read per message.
        let is_turn_of_others = ended != Waited::TimedOut && self.turns.is_turn_of_others(reported.max(1) as u32);
        if is_turn_of_others {
            self.look_at_devices();
        }
        if first_timer.is_some() && (is_turn_of_others || ended == Waited::TimedOut) {
            self.wake_timers();
        }
    }

    /// Waits for endpoints of the set, and copies their keys, before a waker's code can use the message buffer.
    fn wait_for_set(&self, deadline: u64, keys: &mut Keys) -> Waited {
        let left = self.waits_with_clock.get();
        let clock = left > 0;
        let Ok(words) = kernel::wait_set_wait(self.set, deadline, keys.len() as u64, clock.into()) else {
            return Waited::TimedOut;
        };
        let reported = keys.len().min((words as usize).saturating_sub(clock.into()));
        if clock {
            self.waits_with_clock.set(left - 1);
            self.note_time(thread_block::message_word(reported));
        }
        for (index, key) in keys[..reported].iter_mut().enumerate() {
            *key = thread_block::message_word(index);
        }
        Waited::Set(reported)
    }

    /// Like `wait_for_set`, while tasks wait for a device or for idleness.
    fn wait_with_turns(&self, first_timer: Option<u64>, keys: &mut Keys) -> Waited {
        let polled = self.wait_for_set(Deadline::PASSED.as_ns(), keys);
        if polled != Waited::TimedOut {
            return polled;
        }
        if self.turns.wake_idle() {
            return Waited::Other;
        }
        let chosen = self.turns.choose(&[self.set]);
        let deadline = first_timer.unwrap_or(Deadline::NEVER.as_ns());
        let deadline = match chosen.is_partial {
            true => deadline.min(monotonic().saturating_add(PARTIAL_WAIT_NS)),
            false => deadline,
        };
        let ready = wait_any(&chosen, deadline);
        if let Some(index @ 1..) = ready {
            self.turns.wake_device(chosen.as_slice()[index]);
        }
        // Whatever it returned, the wait set is polled again.
        match self.wait_for_set(Deadline::PASSED.as_ns(), keys) {
            Waited::TimedOut if ready.is_some() => Waited::Other,
            polled => polled,
        }
    }

    /// Polls the devices and wakes tasks that wait for idleness, so that a stream of messages cannot starve them.
    fn look_at_devices(&self) {
        let chosen = self.turns.choose(&[]);
        if let Some(index) = wait_any(&chosen, Deadline::PASSED.as_ns()) {
            self.turns.wake_device(chosen.as_slice()[index]);
        }
        self.turns.wake_idle();
    }

    fn wake_timers(&self) {
        let now = monotonic_coarse();
        loop {
            let due = {
                let mut timers = self.timers.borrow_mut();
                match timers.first_entry() {
                    Some(entry) if entry.key().0 <= now => entry.remove(),
                    _ => return,
                }
            };
            due.wake();
        }
    }
}

/// Returns the index of a ready handle; `None` at the deadline, and without handles.
fn wait_any<const N: usize>(chosen: &Handles<N>, deadline: u64) -> Option<usize> {
    let handles = chosen.as_slice();
    if handles.is_empty() {
        return None;
    }
    thread_block::put_words(handles);
    kernel::wait_any(handles.len() as u64, deadline).ok().map(|index| index as usize)
}

impl Drop for Executor {
    fn drop(&mut self) {
        // The executor owns the set.
        let _ = kernel::wait_set_close(self.set);
    }
}

/// Awaits the next message or closure of an endpoint that has a place in the wait set already; of any other, as its
/// `receive_async`.
pub fn receive_as<R: Receiver>(endpoint: R, member: Option<Member>) -> Receive<R> {
    Receive { member, endpoint: Some(endpoint) }
}

/// Future of an endpoint's next message or closure. Dropping it closes the endpoint.
#[must_use = "a future does nothing until it is awaited"]
pub struct Receive<R: Receiver> {
    /// Before the endpoint, which it leaves the set for.
    member: Option<Member>,
    endpoint: Option<R>,
}

// The endpoint is never pinned: it moves out when the future completes.
impl<R: Receiver> Unpin for Receive<R> {}

impl<R: Receiver> Receive<R> {
    pub(crate) fn new(endpoint: R) -> Receive<R> {
        receive_as(endpoint, None)
    }
}

impl<R: Receiver> Future for Receive<R> {
    type Output = R::Event;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R::Event> {
        let executor = current::get();
        let Some(handle) = self.endpoint.as_ref().map(|endpoint| endpoint.raw().handle()) else {
            panic!("a future was polled after it was done");
        };
        if let Some(member) = &self.member
            && member.is_of(&executor, handle)
            && member.wakes(executor.ready.waiter(context))
        {
            // It has not been reported yet.
            return Poll::Pending;
        }
        self.member = None;
        let Some(endpoint) = self.endpoint.take() else { return Poll::Pending };
        let key = executor.waiting.borrow().next_key();
        match receive_or_add(endpoint, executor.set, key) {
            Ok(event) => Poll::Ready(event),
            Err(endpoint) => {
                // Takes the key it was added with, since nothing else was inserted meanwhile.
                executor.waiting.borrow_mut().insert(executor.ready.waiter(context));
                self.endpoint = Some(endpoint);
                self.member = Some(Member::new(executor, key, handle));
                Poll::Pending
            }
        }
    }
}

/// Future of a point in time; see [`sleep_until`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep {
    deadline: u64,
    registered: Option<(Rc<Executor>, u64)>,
    /// Since it was registered.
    polls: u8,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let executor = current::get();
        // No look at the clock: most sleeps are timeouts that are never reached, and others are woken when it was seen.
        if self.deadline <= executor.seen_ns.get() {
            return Poll::Ready(());
        }
        if let Some((registered, number)) = &self.registered
            && Rc::ptr_eq(registered, &executor)
            && let Some(waker) = executor.timers.borrow_mut().get_mut(&(self.deadline, *number))
        {
            waker.clone_from(context.waker());
            // Tasks that are always runnable let the executor never come to its timers.
            self.polls = self.polls.wrapping_add(1);
            return match self.polls.is_multiple_of(POLLS_PER_LOOK) && Deadline::at(self.deadline).has_passed() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            };
        }
        self.leave_timers();
        let number = executor.next_timer.get();
        executor.next_timer.set(number + 1);
        executor.timers.borrow_mut().insert((self.deadline, number), context.waker().clone());
        self.registered = Some((executor, number));
        Poll::Pending
    }
}

impl Sleep {
    fn leave_timers(&mut self) {
        if let Some((executor, number)) = self.registered.take() {
            executor.timers.borrow_mut().remove(&(self.deadline, number));
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.leave_timers();
    }
}
