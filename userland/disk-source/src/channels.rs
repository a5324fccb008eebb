//! A pool of channels to a disk's driver, so that several requests are in flight at once, each on a channel of its
//! own.
//!
//! When the driver ends, the first task that needs a channel opens the disk again, and the others wait for it. An
//! *opening* is the time from then until the driver ends: a channel of an earlier opening is useless. Deliberately not
//! here: requirements on the reopened disk ([`Open`]).

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::future::Future;

use client::answer::DISK_LIMIT;
use stdio::report;
use task_sync::{Mutex, Pool};

use crate::Channel;

/// Opens a disk.
pub trait Open<C = Channel> {
    /// Reopens the disk for the opening of this number; waits for a driver that is being restarted. `None` if the
    /// disk does not come back.
    fn open(&self, opening: u64) -> impl Future<Output = Option<Vec<C>>>;

    /// Opens one more channel to a disk that is open.
    fn open_one(&self) -> impl Future<Output = Option<C>>;
}

/// A channel for exclusive use until [`Channels::release`], and the opening that it belongs to.
pub struct Acquired<C = Channel> {
    /// The channel.
    pub channel: C,
    /// The number of its opening.
    pub opening: u64,
}

/// The channels to one disk.
pub struct Channels<C = Channel> {
    path: String,
    most: usize,
    /// Closed while the disk is not open.
    idle: Pool<C>,
    /// Number of channels of this opening: idle, in use, and being opened.
    count: Cell<usize>,
    opening: Cell<u64>,
    /// Number of failures to open the disk.
    missed: Cell<u64>,
    /// Held while the disk is opened.
    reopening: Mutex<()>,
}

impl<C> Channels<C> {
    /// Creates a pool of at most this many channels to the disk at this path, which is not open yet.
    pub fn new(path: &str, most: usize) -> Channels<C> {
        Channels {
            path: String::from(path),
            most,
            idle: Pool::closed(),
            count: Cell::new(0),
            opening: Cell::new(0),
            missed: Cell::new(0),
            reopening: Mutex::default(),
        }
    }

    /// Path of the disk.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Takes over channels that were opened elsewhere, if the disk is not open and no task opens it. Returns the number
    /// of the opening that begins with them.
    pub fn offer(&self, channels: Vec<C>) -> Option<u64> {
        let _reopening = self.reopening.try_lock()?;
        self.idle.is_closed().then(|| self.opened(channels))
    }

    /// Acquires a channel; opens the disk, or one more channel, if necessary. `None` if the disk could not be opened.
    pub async fn acquire(&self, disk: &impl Open<C>) -> Option<Acquired<C>> {
        let missed = self.missed.get();
        loop {
            if let Some(channel) = self.idle.try_take() {
                return Some(Acquired { channel, opening: self.opening.get() });
            }
            if !self.idle.is_closed() && self.count.get() < self.most {
                self.open_one(disk).await;
                continue;
            }
            if let Some(channel) = self.idle.take().await {
                return Some(Acquired { channel, opening: self.opening.get() });
            }
            if !self.reopen(disk, missed).await {
                return None;
            }
        }
    }

    /// Releases a channel of that opening.
    pub fn release(&self, channel: C, opening: u64) {
        if self.is_current(opening) {
            self.idle.put(channel);
        }
    }

    /// Reports that the driver of that opening has ended: the disk must be reopened. Returns whether this is the
    /// first report.
    pub fn lose(&self, opening: u64) -> bool {
        let is_first = self.is_current(opening);
        if is_first {
            self.idle.close();
        }
        is_first
    }

    /// Reports that the driver of that opening did not answer a request: its other channels are not used any more.
    pub fn stalls(&self, opening: u64) {
        if self.lose(opening) {
            report::error(format_args!("{}: the disk has not answered for {} s", self.path, DISK_LIMIT.as_secs()));
        }
    }

    fn is_current(&self, opening: u64) -> bool {
        opening == self.opening.get() && !self.idle.is_closed()
    }

    fn opened(&self, channels: Vec<C>) -> u64 {
        let opening = self.opening.get() + 1;
        self.opening.set(opening);
        self.count.set(channels.len());
        channels.into_iter().for_each(|channel| self.idle.put(channel));
        opening
    }

    async fn open_one(&self, disk: &impl Open<C>) {
        let place = Place::new(self);
        match disk.open_one().await {
            Some(channel) if self.is_current(place.opening) => {
                self.idle.put(channel);
                core::mem::forget(place);
            }
            Some(_) => {}
            None => drop(self.lose(place.opening)),
        }
    }

    /// Opens the disk, unless another task has done so. Returns false if an attempt failed since `missed` was read.
    async fn reopen(&self, disk: &impl Open<C>, missed: u64) -> bool {
        let _reopening = self.reopening.lock().await;
        if self.missed.get() != missed {
            return false;
        }
        if self.idle.is_closed() {
            match disk.open(self.opening.get() + 1).await {
                Some(channels) => drop(self.opened(channels)),
                None => {
                    self.missed.set(missed + 1);
                    return false;
                }
            }
        }
        true
    }
}

/// The slot of a channel that is being opened, released when dropped.
struct Place<'a, C> {
    channels: &'a Channels<C>,
    opening: u64,
}

impl<'a, C> Place<'a, C> {
    fn new(channels: &'a Channels<C>) -> Place<'a, C> {
        channels.count.set(channels.count.get() + 1);
        Place { channels, opening: channels.opening.get() }
    }
}

impl<C> Drop for Place<'_, C> {
    fn drop(&mut self) {
        if self.opening == self.channels.opening.get() {
            self.channels.count.set(self.channels.count.get() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;
    use core::future::poll_fn;
    use core::pin::Pin;
    use core::task::{Context, Poll, Waker};

    use super::*;

    /// A disk whose channels are numbers: the opening, and a count.
    #[derive(Default)]
    struct Disk {
        /// The number of the last opening.
        opening: Cell<u64>,
        is_there: Cell<bool>,
        /// Attempts to open it do not end before this is set.
        answers: Cell<bool>,
        opened: Cell<u32>,
        attempts: Cell<u32>,
    }

    impl Disk {
        fn new(most: usize) -> (Disk, Channels<(u64, u32)>) {
            let (disk, channels) = (Disk::default(), Channels::new("/dev/disk0", most));
            disk.is_there.set(true);
            disk.answers.set(true);
            (disk, channels)
        }

        async fn channel(&self, opening: u64) -> Option<(u64, u32)> {
            self.attempts.set(self.attempts.get() + 1);
            poll_fn(|_| if self.answers.get() { Poll::Ready(()) } else { Poll::Pending }).await;
            self.opened.set(self.opened.get() + 1);
            self.is_there.get().then_some((opening, self.opened.get()))
        }
    }

    impl Open<(u64, u32)> for Disk {
        async fn open(&self, opening: u64) -> Option<Vec<(u64, u32)>> {
            self.opening.set(opening);
            Some(vec![self.channel(opening).await?])
        }

        async fn open_one(&self) -> Option<(u64, u32)> {
            self.channel(self.opening.get()).await
        }
    }

    type Acquiring<'a> = Pin<Box<dyn Future<Output = Option<Acquired<(u64, u32)>>> + 'a>>;

    fn acquiring<'a>(channels: &'a Channels<(u64, u32)>, disk: &'a Disk) -> Acquiring<'a> {
        Box::pin(channels.acquire(disk))
    }

    fn poll(acquiring: &mut Acquiring<'_>) -> Poll<Option<(u64, u32)>> {
        let polled = acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        polled.map(|acquired| {
            acquired.map(|Acquired { channel, opening }| {
                assert_eq!(channel.0, opening, "a channel of another opening");
                channel
            })
        })
    }

    fn acquire(channels: &Channels<(u64, u32)>, disk: &Disk) -> Poll<Option<(u64, u32)>> {
        poll(&mut acquiring(channels, disk))
    }

    #[test]
    fn channels_are_opened_as_they_are_needed() {
        let (disk, channels) = Disk::new(2);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 1))));
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 2))));
        let mut third = acquiring(&channels, &disk);
        assert_eq!(poll(&mut third), Poll::Pending, "there are as many as there may be");
        channels.release((1, 1), 1);
        assert_eq!(acquire(&channels, &disk), Poll::Pending, "a newcomer does not overtake");
        assert_eq!(poll(&mut third), Poll::Ready(Some((1, 1))));
        assert_eq!(disk.attempts.get(), 2);
    }

    #[test]
    fn one_task_opens_the_disk_and_the_others_wait() {
        let (disk, channels) = Disk::new(3);
        disk.answers.set(false);
        let mut tasks = [(); 3].map(|()| acquiring(&channels, &disk));
        tasks.iter_mut().for_each(|task| assert_eq!(poll(task), Poll::Pending));
        assert_eq!(disk.attempts.get(), 1);
        disk.answers.set(true);
        tasks.iter_mut().enumerate().for_each(|(index, task)| {
            assert_eq!(poll(task), Poll::Ready(Some((1, index as u32 + 1))));
        });
    }

    #[test]
    fn a_dropped_opener_leaves_opening_to_the_next_task() {
        let (disk, channels) = Disk::new(1);
        disk.answers.set(false);
        let (mut first, mut second) = (acquiring(&channels, &disk), acquiring(&channels, &disk));
        assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
        drop(first);
        disk.answers.set(true);
        assert_eq!(poll(&mut second), Poll::Ready(Some((1, 1))));
    }

    #[test]
    fn a_dropped_opener_releases_its_slot() {
        let (disk, channels) = Disk::new(2);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 1))));
        disk.answers.set(false);
        assert_eq!(acquire(&channels, &disk), Poll::Pending);
        disk.answers.set(true);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 2))));
        // A channel of the previous opening does not take up a slot of this one.
        disk.answers.set(false);
        channels.release((1, 1), 1);
        let one_less = acquire(&channels, &disk);
        assert_eq!(one_less, Poll::Ready(Some((1, 1))));
        channels.lose(1);
        disk.answers.set(true);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((2, 3))));
        assert_eq!(channels.count.get(), 1);
    }

    #[test]
    fn channels_of_an_earlier_opening_are_of_no_use() {
        let (disk, channels) = Disk::new(2);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 1))));
        assert!(channels.lose(1) && !channels.lose(1));
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((2, 2))));
        channels.release((1, 1), 1);
        assert!(!channels.lose(1), "the disk was opened again since");
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((2, 3))));
    }

    #[test]
    fn waiters_reopen_a_lost_disk() {
        let (disk, channels) = Disk::new(1);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 1))));
        let mut waiting = acquiring(&channels, &disk);
        assert_eq!(poll(&mut waiting), Poll::Pending);
        channels.lose(1);
        assert_eq!(poll(&mut waiting), Poll::Ready(Some((2, 2))));
    }

    #[test]
    fn a_lost_disk_fails_all_waiters() {
        let (disk, channels) = Disk::new(1);
        disk.is_there.set(false);
        disk.answers.set(false);
        let mut tasks = [(); 3].map(|()| acquiring(&channels, &disk));
        tasks.iter_mut().for_each(|task| assert_eq!(poll(task), Poll::Pending));
        disk.answers.set(true);
        tasks.iter_mut().for_each(|task| assert_eq!(poll(task), Poll::Ready(None)));
        assert_eq!(disk.attempts.get(), 1, "they waited for one attempt");
        disk.is_there.set(true);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 2))), "later ones try again");
    }

    #[test]
    fn a_channel_is_taken_over_only_while_the_disk_is_not_open() {
        let (disk, channels) = Disk::new(1);
        assert_eq!(channels.offer(vec![(1, 7)]), Some(1));
        assert_eq!(channels.offer(vec![(1, 8)]), None);
        assert_eq!(acquire(&channels, &disk), Poll::Ready(Some((1, 7))));
        channels.lose(1);
        disk.answers.set(false);
        let mut opens = acquiring(&channels, &disk);
        assert_eq!(poll(&mut opens), Poll::Pending);
        assert_eq!(channels.offer(vec![(2, 9)]), None, "a task opens it");
        disk.answers.set(true);
        assert_eq!(poll(&mut opens), Poll::Ready(Some((2, 1))));
    }
}
