//! The channels to one driver after the other, and who waits for one.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use client::access::AccessError;
use client::answer::{DISK_LIMIT, within};
use client::namespace::Namespace;
use contracts::disk_events;
use sip::executor;
use stdio::report;

use crate::opening::{Opened, Shape, open_all};
use crate::{Channel, Events, Mark};

/// The most channels that are opened, whatever is asked for.
const MAX_CHANNELS: usize = 64;

/// The channels to a disk's driver.
pub(crate) struct Channels {
    path: String,
    count: usize,
    namespace: RefCell<Namespace>,
    mark: Option<Mark>,
    shape: Shape,
    idle: RefCell<Vec<Channel>>,
    /// Who waits for a channel, in order; each is here until it has one or gives up.
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    /// Counts those who asked for a channel.
    asked: Cell<u64>,
    /// Counts the times that the disk was opened: a channel of an earlier time is of no use.
    opened: Cell<u64>,
    /// Counts the times that it was looked for in vain.
    missed: Cell<u64>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The driver has ended.
    Lost,
    /// A task opens the disk again.
    Opening,
}

impl Channels {
    /// Opens the disk `count` times.
    pub(crate) async fn open(
        namespace: Namespace,
        path: &str,
        count: usize,
        mark: Option<Mark>,
    ) -> Result<Rc<Channels>, AccessError> {
        let namespace = RefCell::new(namespace);
        let count = count.clamp(1, MAX_CHANNELS);
        let Opened { idle, events, shape } = open_all(&namespace, path, count, mark).await?;
        let own = Rc::new(Channels {
            path: String::from(path),
            count,
            namespace,
            mark,
            shape,
            idle: RefCell::new(idle),
            waiting: RefCell::new(VecDeque::new()),
            asked: Cell::new(0),
            opened: Cell::new(1),
            missed: Cell::new(0),
            state: Cell::new(State::Open),
        });
        Channels::watch(&own, events);
        Ok(own)
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Starts a task that notices when the driver ends, and ends the process when the medium changes: what the
    /// caches hold is worth nothing then. Who does not go on with another disk at all only gets errors.
    fn watch(own: &Rc<Channels>, events: Events) {
        let (own, opened) = (Rc::clone(own), own.opened.get());
        drop(executor::spawn(async move {
            match events.receive_async().await {
                disk_events::ImpReady::Changed { .. } if own.mark.is_some() => other_disk(&own.path),
                disk_events::ImpReady::Changed { .. } | disk_events::ImpReady::ChannelClosed(_) => own.lose(opened),
            }
        }));
    }

    /// A channel that nobody uses, and when it was opened; `None` if the driver has ended and does not come back.
    pub(crate) async fn acquire(self: &Rc<Channels>) -> Option<(Channel, u64)> {
        let place = Place::new(self);
        let missed = self.missed.get();
        loop {
            if self.missed.get() != missed {
                return None;
            }
            let found = poll_fn(|context| match self.state.get() {
                State::Lost => {
                    self.state.set(State::Opening);
                    Poll::Ready(None)
                }
                State::Open if !self.idle.borrow().is_empty() => Poll::Ready(self.idle.borrow_mut().pop()),
                _ => {
                    place.wait(context.waker());
                    Poll::Pending
                }
            })
            .await;
            match found {
                Some(channel) => return Some((channel, self.opened.get())),
                None => {
                    let attempt = Attempt(self);
                    let opened = self.open_again().await;
                    self.state.set(if opened { State::Open } else { State::Lost });
                    self.missed.set(self.missed.get() + u64::from(!opened));
                    drop(attempt);
                }
            }
        }
    }

    /// Opens the disk of a driver that was started again. Whether it came back.
    async fn open_again(self: &Rc<Channels>) -> bool {
        if self.mark.is_none() {
            return false;
        }
        let again = within(DISK_LIMIT, open_all(&self.namespace, &self.path, self.count, self.mark)).await;
        let Some(Ok(Opened { idle, events, shape })) = again else { return false };
        if shape != self.shape {
            other_disk(&self.path);
        }
        *self.idle.borrow_mut() = idle;
        self.opened.set(self.opened.get() + 1);
        Channels::watch(self, events);
        true
    }

    /// Gives a channel back that was opened then.
    pub(crate) fn release(&self, channel: Channel, opened: u64) {
        if opened == self.opened.get() && self.state.get() == State::Open {
            self.idle.borrow_mut().push(channel);
            self.wake_next();
        }
    }

    /// The driver of that time has not answered a request: it is not asked on the channels of that time any more.
    pub(crate) fn stalls(&self, opened: u64) {
        if opened == self.opened.get() && self.state.get() == State::Open {
            report::error(format_args!("{}: the disk has not answered for {} s", self.path, DISK_LIMIT.as_secs()));
        }
        self.lose(opened);
    }

    /// The driver of that time has ended: its channels are of no use any more, and somebody has to open the disk
    /// again. Only the first who notices is heard.
    pub(crate) fn lose(&self, opened: u64) {
        if opened != self.opened.get() || self.state.get() != State::Open {
            return;
        }
        self.state.set(State::Lost);
        self.idle.borrow_mut().clear();
        self.wake_all();
    }

    fn wake_next(&self) {
        let next = self.waiting.borrow().front().map(|(_, waker)| waker.clone());
        if let Some(next) = next {
            next.wake();
        }
    }

    fn wake_all(&self) {
        let waiting: Vec<Waker> = self.waiting.borrow().iter().map(|(_, waker)| waker.clone()).collect();
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// An attempt to open the disk again. However it ends, also by being dropped, others look at the state again.
struct Attempt<'a>(&'a Channels);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.0.state.get() == State::Opening {
            self.0.state.set(State::Lost);
        }
        self.0.wake_all();
    }
}

/// A place among those who wait for a channel. One task may have several. Whoever leaves wakes the next if there is
/// a channel for it: several may have come back since the first in the row was woken.
struct Place<'a> {
    channels: &'a Channels,
    number: u64,
}

impl<'a> Place<'a> {
    fn new(channels: &'a Channels) -> Place<'a> {
        let number = channels.asked.get();
        channels.asked.set(number + 1);
        Place { channels, number }
    }

    fn wait(&self, waker: &Waker) {
        let mut waiting = self.channels.waiting.borrow_mut();
        match waiting.iter_mut().find(|(number, _)| *number == self.number) {
            Some((_, own)) => own.clone_from(waker),
            None => waiting.push_back((self.number, waker.clone())),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.channels.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
        if !self.channels.idle.borrow().is_empty() {
            self.channels.wake_next();
        }
    }
}

/// Ends the process, so that the disk is mounted anew.
fn other_disk(path: &str) -> ! {
    report::error(format_args!("{path}: there is another disk now; it is mounted again"));
    sip::process::exit(1)
}
