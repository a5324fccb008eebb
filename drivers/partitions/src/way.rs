//! Channels to a disk's driver: several, so that several requests are in flight at once.
//!
//! When the driver ends, one of the tasks that need it reopens the disk while the others wait for that one.
//! It rescans the disk before any request is sent. Deliberately
//! not here: the requests, and retrying them.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use client::access::AccessError;
use client::answer::{DISK_LIMIT, wait_async};
use client::namespace::Namespace;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use partition_table::{Source, Unreadable};
use sip::exheap::ExVec;

/// An open disk.
pub type Channel = disk::Imp<states::Ready>;

/// A disk's properties according to its driver.
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
    /// A task is reopening the disk.
    Opening,
}

/// A channel for exclusive use until it is released, and the opening of the disk that it belongs to.
pub struct Acquired {
    pub channel: Channel,
    pub opening: u64,
}

/// Next step to acquire a channel.
pub enum Step {
    /// Use this channel.
    Use(Acquired),
    /// Open one more; then call [`Way::opened_one`], or [`Way::lose`] if that fails.
    OpenOne { opening: u64 },
    /// Reopen the disk; then call [`Way::opened`].
    OpenAgain,
    /// Another task failed to open it.
    Missed,
}

/// The channels to one disk.
pub struct Way {
    most: usize,
    idle: RefCell<Vec<Channel>>,
    waiting: RefCell<Vec<Waker>>,
    /// Number of channels of this opening, idle or in use.
    open: Cell<usize>,
    opening: Cell<u64>,
    /// Number of failures to open the disk.
    missed: Cell<u64>,
    state: Cell<State>,
}

impl Way {
    /// Creates the closed state.
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

    /// Returns the number of failures to open the disk: to be read before the first [`Way::step`].
    pub fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// Returns the next step to acquire a channel, for a caller that has read `missed`. Waits while all channels are in use.
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

    /// Reports that the disk was opened; `None` if it could not be.
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

    /// Takes over a channel that was opened for another purpose, if the disk is not open.
    pub fn offer(&self, channel: Channel) {
        if self.state.get() == State::Lost {
            self.opened(Some(channel));
        }
    }

    /// Reports one more channel, which may be used if the disk has not been lost meanwhile.
    pub fn opened_one(&self, channel: Channel, opening: u64) -> Option<Acquired> {
        self.is_current(opening).then_some(Acquired { channel, opening })
    }

    /// Releases a channel.
    pub fn release(&self, channel: Channel, opening: u64) {
        if self.is_current(opening) {
            self.idle.borrow_mut().push(channel);
            // All, because the first waiter may have been dropped, and would not pass the wake on.
            self.wake_all();
        }
    }

    /// Reports that the driver of that opening has ended or does not answer. Returns whether this is the first report.
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

/// A channel for reading a partition table.
pub struct TableSource {
    channel: Cell<Option<Channel>>,
    info: Info,
    /// First error that makes the result meaningless.
    error: Cell<Option<AccessError>>,
}

impl TableSource {
    /// Queries the disk's properties.
    pub async fn new(channel: Channel) -> Result<TableSource, AccessError> {
        match wait_async(channel.get_info(), DISK_LIMIT).await? {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, read_only, next } => {
                let info = Info { size_bytes, sector_bytes, read_only };
                Ok(TableSource { channel: Cell::new(Some(next)), info, error: Cell::new(None) })
            }
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Returns the disk's properties.
    pub fn info(&self) -> Info {
        self.info
    }

    /// Returns the channel, if the table read is that of the disk.
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
        // A table has at most 1 MiB.
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

/// Returns the path of a name in `/dev`.
pub fn device_path(name: &str) -> String {
    alloc::format!("/dev/{name}")
}
