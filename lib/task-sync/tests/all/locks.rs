//! `Mutex`, `RwLock` and `Semaphore`, which differ in the number of permits per operation.
//!
//! The model: a request is granted when no earlier one waits and enough permits are free. After each step every waiter
//! that the model would grant must have been woken, and no other.

use std::collections::VecDeque;

use task_sync::{Mode, Mutex, MutexGuard, Permit, RwLock, RwLockGuard, Semaphore};

use crate::explorer::{Choices, Task, every, random};

/// The lock under test.
trait Lock {
    type Guard<'a>
    where
        Self: 'a;

    /// Total permits.
    const TOTAL: usize;

    fn new() -> Self;
    fn acquire(&self, wanted: usize) -> impl Future<Output = Self::Guard<'_>>;
    /// `None` for a lock that has no such operation.
    fn try_acquire(&self, wanted: usize) -> Option<Option<Self::Guard<'_>>>;
    /// Compares with the model's count.
    fn check(&self, _exclusive_holds: u64) {}
}

impl Lock for Mutex<u32> {
    type Guard<'a> = MutexGuard<'a, u32>;
    const TOTAL: usize = 1;

    fn new() -> Mutex<u32> {
        Mutex::new(0)
    }

    async fn acquire(&self, _wanted: usize) -> MutexGuard<'_, u32> {
        let mut guard = self.lock().await;
        *guard += 1;
        guard
    }

    fn try_acquire(&self, _wanted: usize) -> Option<Option<MutexGuard<'_, u32>>> {
        Some(self.try_lock().map(|mut guard| {
            *guard += 1;
            guard
        }))
    }
}

const READERS: usize = 8;

fn mode(wanted: usize) -> Mode {
    if wanted == READERS { Mode::Exclusive } else { Mode::Shared }
}

impl Lock for RwLock {
    type Guard<'a> = RwLockGuard;
    const TOTAL: usize = READERS;

    fn new() -> RwLock {
        RwLock::new()
    }

    fn acquire(&self, wanted: usize) -> impl Future<Output = RwLockGuard> {
        RwLock::acquire(self, mode(wanted))
    }

    fn try_acquire(&self, wanted: usize) -> Option<Option<RwLockGuard>> {
        Some(RwLock::try_acquire(self, mode(wanted)))
    }

    fn check(&self, exclusive_holds: u64) {
        assert_eq!(self.exclusive_holds(), exclusive_holds);
    }
}

impl Lock for Semaphore {
    type Guard<'a> = Permit;
    const TOTAL: usize = 3;

    fn new() -> Semaphore {
        Semaphore::new(3)
    }

    fn acquire(&self, wanted: usize) -> impl Future<Output = Permit> {
        Semaphore::acquire(self, wanted)
    }

    fn try_acquire(&self, _wanted: usize) -> Option<Option<Permit>> {
        None
    }
}

#[derive(Default)]
struct Model {
    free: usize,
    /// Waiting tasks and their permits, in order.
    queue: VecDeque<(usize, usize)>,
    exclusive_holds: u64,
    total: usize,
}

impl Model {
    fn poll(&mut self, task: usize, wanted: usize) -> bool {
        let is_queued = self.queue.iter().any(|(other, _)| *other == task);
        let is_first = self.queue.front().is_none_or(|(first, _)| *first == task);
        if !is_first || self.free < wanted {
            if !is_queued {
                self.queue.push_back((task, wanted));
            }
            return false;
        }
        self.leave(task);
        self.free -= wanted;
        self.exclusive_holds += u64::from(wanted == self.total);
        true
    }

    fn leave(&mut self, task: usize) {
        self.queue.retain(|(other, _)| *other != task);
    }

    fn may_go_on(&self, task: usize) -> bool {
        self.queue.front().is_some_and(|(first, wanted)| *first == task && self.free >= *wanted)
    }
}

enum State<'a, L: Lock + 'a> {
    Idle,
    Waiting(Task<'a, L::Guard<'a>>),
    Holding(L::Guard<'a>),
}

#[derive(Clone, Copy)]
enum Action {
    Begin,
    Try,
    Poll,
    PollElsewhere,
    Release,
    Drop,
}

/// `wants` lists the permits of each task's successive operations. With `spurious`, tasks may be polled without a
/// wake-up, once per wait.
fn scenario<L: Lock>(choices: &mut Choices, wants: &[&[usize]], spurious: bool) {
    let lock = L::new();
    let mut model = Model { free: L::TOTAL, total: L::TOTAL, ..Model::default() };
    let mut tasks: Vec<_> = wants.iter().map(|wants| (State::<L>::Idle, wants.iter(), 0, spurious)).collect();
    loop {
        let mut actions = Vec::new();
        for (index, (state, rest, _, may_poll)) in tasks.iter().enumerate() {
            let possible: &[Action] = match state {
                State::Idle if rest.len() == 0 => &[],
                State::Idle => &[Action::Begin, Action::Try],
                State::Waiting(task) if task.is_woken() => &[Action::Poll, Action::Drop],
                State::Waiting(_) if *may_poll => &[Action::Poll, Action::PollElsewhere, Action::Drop],
                State::Waiting(_) => &[Action::Drop],
                State::Holding(_) => &[Action::Release],
            };
            actions.extend(possible.iter().map(|action| (index, *action)));
        }
        if actions.is_empty() {
            break;
        }
        let (index, action) = actions[choices.pick(actions.len())];
        let (state, rest, wanted, may_poll) = &mut tasks[index];
        *state = match (core::mem::replace(state, State::Idle), action) {
            (State::Idle, Action::Begin) => {
                *wanted = *rest.next().expect("it has one more");
                *may_poll = spurious;
                step(&mut model, index, *wanted, Task::new(lock.acquire(*wanted)), Action::Poll)
            }
            (State::Idle, _) => {
                *wanted = *rest.next().expect("it has one more");
                let would_wait = !model.queue.is_empty() || model.free < *wanted;
                match lock.try_acquire(*wanted) {
                    Some(Some(guard)) => {
                        assert!(!would_wait && model.poll(index, *wanted));
                        State::Holding(guard)
                    }
                    Some(None) => {
                        assert!(would_wait);
                        State::Idle
                    }
                    None => State::Idle,
                }
            }
            (State::Waiting(task), Action::Drop) => {
                drop(task);
                model.leave(index);
                State::Idle
            }
            (State::Waiting(task), action) => {
                *may_poll &= task.is_woken();
                step(&mut model, index, *wanted, task, action)
            }
            (State::Holding(guard), _) => {
                drop(guard);
                model.free += *wanted;
                State::Idle
            }
        };
        for (index, (state, ..)) in tasks.iter().enumerate() {
            if let State::Waiting(task) = state {
                assert_eq!(task.is_woken(), model.may_go_on(index), "task {index} of {}", tasks.len());
                assert!(!task.is_woken_twice());
            }
        }
        lock.check(model.exclusive_holds);
    }
    assert_eq!((model.free, model.queue.len()), (L::TOTAL, 0));
}

fn step<'a, L: Lock + 'a>(
    model: &mut Model,
    index: usize,
    wanted: usize,
    mut task: Task<'a, L::Guard<'a>>,
    action: Action,
) -> State<'a, L> {
    let granted = if matches!(action, Action::PollElsewhere) { task.poll_elsewhere() } else { task.poll() };
    assert_eq!(granted.is_some(), model.poll(index, wanted));
    granted.map_or(State::Waiting(task), State::Holding)
}

#[test]
fn every_order_of_a_mutex() {
    assert!(every(|choices| scenario::<Mutex<u32>>(choices, &[&[1], &[1], &[1]], true)) > 1000);
    every(|choices| scenario::<Mutex<u32>>(choices, &[&[1, 1], &[1, 1]], true));
    every(|choices| scenario::<Mutex<u32>>(choices, &[&[1], &[1], &[1], &[1]], false));
}

#[test]
fn every_order_of_readers_and_writers() {
    const ALL: usize = READERS;
    for wants in [[1, 1, ALL], [1, ALL, ALL]] {
        let wants: Vec<&[usize]> = wants.iter().map(std::slice::from_ref).collect();
        every(|choices| scenario::<RwLock>(choices, &wants, true));
    }
    every(|choices| scenario::<RwLock>(choices, &[&[1, ALL], &[ALL, 1]], true));
    every(|choices| scenario::<RwLock>(choices, &[&[1], &[1], &[ALL], &[ALL]], false));
}

#[test]
fn every_order_of_a_semaphore() {
    for wants in [[1, 2, 3], [2, 2, 1], [3, 1, 1]] {
        let wants: Vec<&[usize]> = wants.iter().map(std::slice::from_ref).collect();
        every(|choices| scenario::<Semaphore>(choices, &wants, true));
    }
    every(|choices| scenario::<Semaphore>(choices, &[&[1], &[2], &[3], &[1]], false));
}

#[test]
fn random_orders_of_many_tasks() {
    random(2000, |choices| {
        of_random::<Mutex<u32>>(choices, &[1]);
        of_random::<RwLock>(choices, &[1, 1, READERS]);
        of_random::<Semaphore>(choices, &[1, 2, 3]);
    });
}

fn of_random<L: Lock>(choices: &mut Choices, options: &[usize]) {
    let tasks = 2 + choices.pick(6);
    let mut list = || (0..1 + choices.pick(8)).map(|_| options[choices.pick(options.len())]).collect();
    let wants: Vec<Vec<usize>> = (0..tasks).map(|_| list()).collect();
    let wants: Vec<&[usize]> = wants.iter().map(Vec::as_slice).collect();
    scenario::<L>(choices, &wants, true);
}

#[test]
fn a_waiting_writer_holds_up_later_readers() {
    let lock = RwLock::new();
    let first = Task::new(lock.acquire(Mode::Shared)).poll().expect("the lock is free");
    let second = lock.try_acquire(Mode::Shared).expect("readers share");
    let mut writer = Task::new(lock.acquire(Mode::Exclusive));
    assert!(writer.poll().is_none());
    let mut late = Task::new(lock.acquire(Mode::Shared));
    assert!(late.poll().is_none() && lock.try_acquire(Mode::Shared).is_none());
    drop((first, second));
    assert!(late.poll().is_none());
    let written = writer.poll().expect("all readers have left");
    assert!(late.poll().is_none());
    assert_eq!(lock.exclusive_holds(), 1);
    drop(written);
    assert!(late.poll().is_some());
    assert_eq!(lock.exclusive_holds(), 1, "readers do not count");
}

#[test]
fn a_dropped_writer_lets_readers_go_on() {
    let lock = RwLock::new();
    let reader = Task::new(lock.acquire(Mode::Shared)).poll().expect("the lock is free");
    let mut writer = Task::new(lock.acquire(Mode::Exclusive));
    let mut late = Task::new(lock.acquire(Mode::Shared));
    assert!(writer.poll().is_none() && late.poll().is_none());
    drop(writer);
    assert!(late.is_woken() && late.poll().is_some());
    drop(reader);
    assert!(lock.try_acquire(Mode::Exclusive).is_some());
}

#[test]
fn a_woken_waiter_that_is_dropped_passes_the_lock_on() {
    let lock = Mutex::new(());
    let guard = lock.try_lock().expect("the lock is free");
    let (mut first, mut second) = (Task::new(lock.lock()), Task::new(lock.lock()));
    assert!(first.poll().is_none() && second.poll().is_none());
    drop(guard);
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    assert!(second.is_woken() && second.poll().is_some());
}
