//! The way to a disk's driver: several channels, so that several requests are under way at once.
//!
//! When the driver ends, one of those who need it waits for its successor while the others wait for that one.
//! Whoever opens the disk again looks at what it has become before anything is asked of it. Deliberately
//! not here: what is asked, and asking it again.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::access::AccessError;
use contracts::answer::{DISK_LIMIT, wait_async};
use contracts::directory::NameError;
use contracts::disk::{self, states};
use contracts::namespace::Namespace;
use partition_table::{Source, Unreadable};
use sip::exheap::ExVec;

/// An open disk.
pub type Channel = disk::Imp<states::Ready>;

/// What a driver says of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub size_bytes: u64,
    pub sector_bytes: u32,
    pub read_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The driver has ended.
    Lost,
    /// A task opens the disk again.
    Opening,
}

/// A channel that is one's own until it is given back, and which opening of the disk it belongs to.
pub struct Acquired {
    pub channel: Channel,
    pub opening: u64,
}

/// What to do to get a channel.
pub enum Step {
    /// This is one.
    Use(Acquired),
    /// One more may be opened; then it is [`Way::opened_one`], or [`Way::lose`] if that fails.
    OpenOne { opening: u64 },
    /// The disk is to be opened again; then it is [`Way::opened`].
    OpenAgain,
    /// Another task could not open it.
    Missed,
}

/// The channels to one disk.
pub struct Way {
    most: usize,
    idle: RefCell<Vec<Channel>>,
    waiting: RefCell<Vec<Waker>>,
    /// Channels of this opening, idle or in use.
    open: Cell<usize>,
    opening: Cell<u64>,
    /// Counts the times that the disk was looked for in vain.
    missed: Cell<u64>,
    state: Cell<State>,
}

impl Way {
    /// Not open yet.
    pub fn new(most: usize) -> Way {
        Way {
            most,
            idle: RefCell::new(Vec::new()),
            waiting: RefCell::new(Vec::new()),
            open: Cell::new(0),
            opening: Cell::new(0),
            missed: Cell::new(0),
            state: Cell::new(State::Lost),
        }
    }

    /// How often the disk was looked for in vain: to be asked before the first [`Way::step`].
    pub fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// What to do next to get a channel, for one who has seen `missed`. Waits where others have all of them.
    pub async fn step(&self, missed: u64) -> Step {
        poll_fn(|context| {
            if self.missed.get() != missed {
                return Poll::Ready(Step::Missed);
            }
            match self.state.get() {
                State::Lost => {
                    self.state.set(State::Opening);
                    return Poll::Ready(Step::OpenAgain);
                }
                State::Open => {
                    let opening = self.opening.get();
                    if let Some(channel) = self.idle.borrow_mut().pop() {
                        return Poll::Ready(Step::Use(Acquired { channel, opening }));
                    }
                    if self.open.get() < self.most {
                        self.open.set(self.open.get() + 1);
                        return Poll::Ready(Step::OpenOne { opening });
                    }
                }
                State::Opening => {}
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The disk was opened, by one who was told to or by another; `None` if it could not be.
    pub fn opened(&self, channel: Option<Channel>) {
        match channel {
            Some(channel) => {
                self.opening.set(self.opening.get() + 1);
                self.open.set(1);
                *self.idle.borrow_mut() = Vec::from([channel]);
                self.state.set(State::Open);
            }
            None => {
                self.missed.set(self.missed.get() + 1);
                self.state.set(State::Lost);
            }
        }
        self.wake_all();
    }

    /// Takes a channel that was opened for another purpose, where that opens the disk.
    pub fn offer(&self, channel: Channel) {
        if self.state.get() == State::Lost {
            self.opened(Some(channel));
        }
    }

    /// One more channel was opened, which may be used if the disk has not been lost meanwhile.
    pub fn opened_one(&self, channel: Channel, opening: u64) -> Option<Acquired> {
        self.is_current(opening).then_some(Acquired { channel, opening })
    }

    /// Gives a channel back.
    pub fn release(&self, channel: Channel, opening: u64) {
        if self.is_current(opening) {
            self.idle.borrow_mut().push(channel);
            // The first in the row may be one who waits no more, and would wake nobody else.
            self.wake_all();
        }
    }

    /// The driver of that opening has ended, or does not answer. Whether this is the first notice of it.
    pub fn lose(&self, opening: u64) -> bool {
        let is_first = self.is_current(opening);
        if is_first {
            self.state.set(State::Lost);
            self.idle.borrow_mut().clear();
            self.wake_all();
        }
        is_first
    }

    fn is_current(&self, opening: u64) -> bool {
        opening == self.opening.get() && self.state.get() == State::Open
    }

    fn wake_all(&self) {
        let waiting = core::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Opens a channel to the disk at this path.
pub async fn open_channel(namespace: &RefCell<Namespace>, path: &str) -> Result<Channel, AccessError> {
    let (importer, exporter) = disk::new_channel()?;
    namespace.borrow_mut().bind(path, exporter)?;
    match wait_async(importer, DISK_LIMIT).await? {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

/// A channel through which a table is read.
pub struct TableSource {
    channel: Cell<Option<Channel>>,
    info: Info,
    /// Why what was read says nothing of the disk.
    error: Cell<Option<AccessError>>,
}

impl TableSource {
    /// Asks for the disk's shape.
    pub async fn new(channel: Channel) -> Result<TableSource, AccessError> {
        match wait_async(channel.get_info(), DISK_LIMIT).await? {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, read_only, next } => {
                let info = Info { size_bytes, sector_bytes, read_only };
                Ok(TableSource { channel: Cell::new(Some(next)), info, error: Cell::new(None) })
            }
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// What the driver says of the disk.
    pub fn info(&self) -> Info {
        self.info
    }

    /// The channel, if what was read is what is on the disk.
    pub fn finish(self) -> Result<Channel, AccessError> {
        match (self.error.get(), self.channel.take()) {
            (None, Some(channel)) => Ok(channel),
            (error, _) => Err(error.unwrap_or(AccessError::ServerEnded)),
        }
    }
}

impl Source for TableSource {
    fn size_bytes(&self) -> u64 {
        self.info.size_bytes
    }

    fn sector_bytes(&self) -> u32 {
        self.info.sector_bytes
    }

    async fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, Unreadable> {
        let Some(channel) = self.channel.take() else { return Err(Unreadable) };
        // A table is a mebibyte at most.
        let (block, count) = match (ExVec::<u8>::new(bytes), u32::try_from(bytes)) {
            (Ok(block), Ok(count)) => (block, count),
            _ => {
                self.error.set(Some(AccessError::Name(NameError::Exhausted)));
                return Err(Unreadable);
            }
        };
        let answer = wait_async(channel.read(block, offset, count), DISK_LIMIT).await.map_err(|error| {
            self.error.set(Some(error));
            Unreadable
        })?;
        match answer {
            disk::ImpReadyAfterRead::ReadDone { data, next } => {
                self.channel.set(Some(next));
                Ok(data.to_vec())
            }
            disk::ImpReadyAfterRead::ReadFailed { next, .. } => {
                self.channel.set(Some(next));
                Err(Unreadable)
            }
            disk::ImpReadyAfterRead::ChannelClosed(_) => {
                self.error.set(Some(AccessError::ServerEnded));
                Err(Unreadable)
            }
        }
    }
}

/// The path of a name in `/dev`.
pub fn device_path(name: &str) -> String {
    alloc::format!("/dev/{name}")
}
