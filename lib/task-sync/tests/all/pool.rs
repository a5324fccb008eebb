//! `Pool`: values in order of arrival, also across closing and reopening.

use std::collections::VecDeque;

use task_sync::Pool;

use crate::explorer::{Choices, Task, every, random};

#[derive(Default)]
struct Model {
    values: usize,
    is_closed: bool,
    /// Each waiting task, and whether it was woken because the pool was closed.
    queue: VecDeque<(usize, bool)>,
}

impl Model {
    /// Result of a poll: pending, pool closed, or a value.
    fn poll(&mut self, task: usize) -> Option<bool> {
        let place = self.queue.iter().position(|(other, _)| *other == task);
        if self.is_closed {
            self.leave(task);
            return Some(false);
        }
        if place.unwrap_or(self.queue.len()) == 0 && self.values > 0 {
            self.leave(task);
            self.values -= 1;
            return Some(true);
        }
        match place {
            Some(place) => self.queue[place].1 = false,
            None => self.queue.push_back((task, false)),
        }
        None
    }

    fn leave(&mut self, task: usize) {
        self.queue.retain(|(other, _)| *other != task);
    }

    fn is_woken(&self, task: usize) -> bool {
        let place = self.queue.iter().position(|(other, _)| *other == task).expect("it waits");
        self.queue[place].1 || place == 0 && self.values > 0
    }
}

enum State<'a> {
    Idle,
    Waiting(Task<'a, Option<u32>>),
    Holding(u32),
}

#[derive(Clone, Copy)]
enum Action {
    Begin,
    Try,
    Poll,
    Drop,
    PutBack,
    Keep,
    Close,
    PutNew,
}

/// `takes` lists the operations of each task; the pool is closed `closes` times and given values `puts` times.
fn scenario(choices: &mut Choices, takes: &[usize], mut closes: usize, mut puts: usize) {
    let pool = Pool::new();
    let mut model = Model::default();
    let mut next_value = 0;
    let mut tasks: Vec<_> = takes.iter().map(|takes| (State::Idle, *takes)).collect();
    loop {
        let mut actions = Vec::new();
        for (index, (state, rest)) in tasks.iter().enumerate() {
            let possible: &[Action] = match state {
                State::Idle if *rest == 0 => &[],
                State::Idle => &[Action::Begin, Action::Try],
                State::Waiting(_) => &[Action::Poll, Action::Drop],
                State::Holding(_) => &[Action::PutBack, Action::Keep],
            };
            // Spurious polls in every state would take too long.
            let is_asleep = matches!(state, State::Waiting(task) if !task.is_woken());
            let possible = possible.iter().filter(|action| !(is_asleep && matches!(action, Action::Poll)));
            actions.extend(possible.map(|action| (index, *action)));
        }
        if closes > 0 {
            actions.push((0, Action::Close));
        }
        if puts > 0 {
            actions.push((0, Action::PutNew));
        }
        if actions.is_empty() {
            break;
        }
        let (index, action) = actions[choices.pick(actions.len())];
        match action {
            Action::Close => {
                closes -= 1;
                pool.close();
                (model.values, model.is_closed) = (0, true);
                model.queue.iter_mut().for_each(|(_, is_woken)| *is_woken = true);
            }
            Action::PutNew => {
                puts -= 1;
                next_value += 1;
                pool.put(next_value);
                (model.values, model.is_closed) = (model.values + 1, false);
            }
            action => {
                let (state, rest) = &mut tasks[index];
                *rest -= usize::from(matches!(action, Action::Begin | Action::Try));
                *state = of_task(core::mem::replace(state, State::Idle), action, &pool, &mut model, index);
            }
        }
        for (index, (state, _)) in tasks.iter().enumerate() {
            if let State::Waiting(task) = state {
                assert_eq!(task.is_woken(), model.is_woken(index), "task {index}");
            }
        }
        assert_eq!(pool.is_closed(), model.is_closed);
    }
}

fn of_task<'a>(state: State<'a>, action: Action, pool: &'a Pool<u32>, model: &mut Model, index: usize) -> State<'a> {
    match (state, action) {
        (State::Idle, Action::Try) => {
            let is_there = model.queue.is_empty() && model.values > 0;
            model.values -= usize::from(is_there);
            let value = pool.try_take();
            assert_eq!(value.is_some(), is_there);
            value.map_or(State::Idle, State::Holding)
        }
        (State::Idle, _) => poll(Task::new(pool.take()), model, index),
        (State::Waiting(task), Action::Drop) => {
            drop(task);
            model.leave(index);
            State::Idle
        }
        (State::Waiting(task), _) => poll(task, model, index),
        (State::Holding(value), Action::PutBack) => {
            pool.put(value);
            (model.values, model.is_closed) = (model.values + 1, false);
            State::Idle
        }
        (State::Holding(_), _) => State::Idle,
    }
}

fn poll<'a>(mut task: Task<'a, Option<u32>>, model: &mut Model, index: usize) -> State<'a> {
    let polled = task.poll();
    assert_eq!(polled.map(|value| value.is_some()), model.poll(index));
    match polled {
        None => State::Waiting(task),
        Some(None) => State::Idle,
        Some(Some(value)) => State::Holding(value),
    }
}

#[test]
fn every_order_of_a_pool() {
    assert!(every(|choices| scenario(choices, &[1, 1], 1, 2)) > 1000);
    every(|choices| scenario(choices, &[1, 1, 1], 0, 2));
    every(|choices| scenario(choices, &[2, 1], 0, 2));
    every(|choices| scenario(choices, &[1, 1, 1], 1, 1));
}

#[test]
fn random_orders_of_many_tasks() {
    random(3000, |choices| {
        let takes: Vec<usize> = (0..1 + choices.pick(8)).map(|_| 1 + choices.pick(8)).collect();
        let (closes, puts) = (choices.pick(5), choices.pick(12));
        scenario(choices, &takes, closes, puts);
    });
}

#[test]
fn the_value_put_back_last_comes_first() {
    let pool = Pool::new();
    pool.put(1);
    pool.put(2);
    assert_eq!((pool.try_take(), pool.try_take(), pool.try_take()), (Some(2), Some(1), None));
}

#[test]
fn a_waiter_keeps_its_place_while_the_pool_is_closed_and_opened() {
    let pool = Pool::new();
    let mut waiter = Task::new(pool.take());
    assert_eq!(waiter.poll(), None);
    pool.close();
    pool.put(1);
    assert_eq!(pool.try_take(), None, "a newcomer does not overtake");
    assert_eq!(waiter.poll(), Some(Some(1)));
}

#[test]
fn a_closed_pool_gives_nothing() {
    let pool = Pool::closed();
    assert_eq!(Task::new(pool.take()).poll(), Some(None));
    pool.put(1);
    assert_eq!(Task::new(pool.take()).poll(), Some(Some(1)));
}
