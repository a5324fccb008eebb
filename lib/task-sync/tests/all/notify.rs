//! `Notify`: no notification is lost, and none reaches two waiters.

use std::cell::Cell;

use task_sync::Notify;

use crate::explorer::{Choices, Task, every, random};

/// A waiter in the model, in the order of first polls.
struct Waiter {
    task: usize,
    has_one: bool,
    has_all: bool,
}

#[derive(Default)]
struct Model {
    is_kept: bool,
    rounds: u64,
    queue: Vec<Waiter>,
}

impl Model {
    fn notify_one(&mut self) {
        match self.queue.iter_mut().find(|waiter| !waiter.has_one && !waiter.has_all) {
            Some(waiter) => waiter.has_one = true,
            None => self.is_kept = true,
        }
    }

    fn notify_all(&mut self) {
        self.rounds += 1;
        self.queue.iter_mut().filter(|waiter| !waiter.has_one).for_each(|waiter| waiter.has_all = true);
    }

    fn poll(&mut self, task: usize, created: u64) -> bool {
        match self.queue.iter().position(|waiter| waiter.task == task) {
            Some(place) if self.queue[place].has_one || self.queue[place].has_all => {
                self.queue.remove(place);
                true
            }
            Some(_) => false,
            None if self.rounds != created || core::mem::take(&mut self.is_kept) => true,
            None => {
                self.queue.push(Waiter { task, has_one: false, has_all: false });
                false
            }
        }
    }

    fn leave(&mut self, task: usize) {
        if let Some(place) = self.queue.iter().position(|waiter| waiter.task == task)
            && self.queue.remove(place).has_one
        {
            self.notify_one();
        }
    }
}

enum State<'a> {
    Idle,
    /// Created in this round, and polled or not.
    Waiting(Task<'a, ()>, u64, bool),
}

#[derive(Clone, Copy)]
enum Action {
    Create,
    Poll,
    Drop,
    One,
    All,
}

fn scenario(choices: &mut Choices, waits: &[usize], mut ones: usize, mut alls: usize) {
    let notify = Notify::new();
    let mut model = Model::default();
    let mut tasks: Vec<_> = waits.iter().map(|waits| (State::Idle, *waits)).collect();
    loop {
        let mut actions = Vec::new();
        for (index, (state, rest)) in tasks.iter().enumerate() {
            let possible: &[Action] = match state {
                State::Idle if *rest == 0 => &[],
                State::Idle => &[Action::Create],
                State::Waiting(task, _, was_polled) if !was_polled || task.is_woken() => &[Action::Poll, Action::Drop],
                State::Waiting(..) => &[Action::Drop],
            };
            actions.extend(possible.iter().map(|action| (index, *action)));
        }
        actions.extend((ones > 0).then_some((0, Action::One)));
        actions.extend((alls > 0).then_some((0, Action::All)));
        if actions.is_empty() {
            break;
        }
        let (index, action) = actions[choices.pick(actions.len())];
        let (state, rest) = &mut tasks[index];
        match action {
            Action::One => {
                ones -= 1;
                notify.notify_one();
                model.notify_one();
            }
            Action::All => {
                alls -= 1;
                notify.notify_all();
                model.notify_all();
            }
            Action::Create => {
                *rest -= 1;
                *state = State::Waiting(Task::new(notify.notified()), model.rounds, false);
            }
            Action::Drop => {
                *state = State::Idle;
                model.leave(index);
            }
            Action::Poll => {
                let State::Waiting(task, created, was_polled) = state else { unreachable!("it waits") };
                *was_polled = true;
                let is_done = task.poll().is_some();
                assert_eq!(is_done, model.poll(index, *created));
                if is_done {
                    *state = State::Idle;
                }
            }
        }
        for waiter in &model.queue {
            let State::Waiting(task, ..) = &tasks[waiter.task].0 else { unreachable!("it waits") };
            assert_eq!(task.is_woken(), waiter.has_one || waiter.has_all, "task {}", waiter.task);
            assert!(!task.is_woken_twice());
        }
    }
}

#[test]
fn every_order_of_notifications() {
    assert!(every(|choices| scenario(choices, &[1, 1], 2, 1)) > 1000);
    every(|choices| scenario(choices, &[2, 1], 1, 1));
    every(|choices| scenario(choices, &[1, 1, 1], 1, 1));
    every(|choices| scenario(choices, &[1, 1, 1], 2, 0));
}

#[test]
fn random_orders_of_many_tasks() {
    random(3000, |choices| {
        let waits: Vec<usize> = (0..1 + choices.pick(8)).map(|_| 1 + choices.pick(8)).collect();
        let (ones, alls) = (choices.pick(20), choices.pick(6));
        scenario(choices, &waits, ones, alls);
    });
}

#[test]
fn one_notification_is_kept_until_a_task_waits() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    assert!(Task::new(notify.notified()).poll().is_some());
    let mut wait = Task::new(notify.notified());
    assert!(wait.poll().is_none());
    notify.notify_one();
    assert!(wait.is_woken() && wait.poll().is_some());
}

#[test]
fn a_condition_is_looked_at_again_after_each_notification() {
    let (notify, count) = (Notify::new(), Cell::new(0));
    let mut enough = Task::new(notify.until(|| count.get() >= 2));
    let mut some = Task::new(notify.until(|| count.get() >= 1));
    assert!(enough.poll().is_none() && some.poll().is_none());
    count.set(1);
    notify.notify_all();
    assert!(enough.poll().is_none() && some.poll().is_some());
    count.set(2);
    notify.notify_all();
    assert!(enough.is_woken() && enough.poll().is_some());
}

/// The condition itself may change state that others wait for.
#[test]
fn a_notification_by_the_condition_is_not_lost() {
    let (notify, looks) = (Notify::new(), Cell::new(0));
    let mut wait = Task::new(notify.until(|| {
        looks.set(looks.get() + 1);
        if looks.get() == 1 {
            notify.notify_all();
        }
        looks.get() == 2
    }));
    assert!(wait.poll().is_some());
}
