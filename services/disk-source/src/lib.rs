//! The way to a disk's driver: several channels, so that several transfers are under way at once.
//!
//! When the driver ends, transfers under way are asked for once more: that opens the disk again, which waits for the
//! driver's restart, so nobody above notices. What caches hold stays good, because the disk must prove to be the
//! same. Blocks that the driver had come home with its end, so nothing that was to be written is lost.
//!
//! Key type: [`DiskSource`]. Deliberately not here: what is on the disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod fat_source;
mod opening;

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::access::AccessError;
use contracts::disk::{self, DiskError, states};
use contracts::namespace::Namespace;
use contracts::{disk_events, report};
use sip::channel::Closed;
use sip::executor;
use sip::exheap::ExVec;

use opening::{Opened, Shape, open_all};

type Channel = disk::Imp<states::Ready>;
type Events = disk_events::Imp<disk_events::states::Ready>;

/// The most channels that are opened, whatever is asked for.
const MOST_CHANNELS: usize = 64;
/// How often one transfer is asked for: a driver that ends at each is broken.
const ATTEMPTS: u32 = 5;

/// Why a transfer was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The driver has ended and does not come back.
    Gone,
    /// There is no memory for a block.
    NoMemory,
    /// The driver says no.
    Refused(DiskError),
}

/// A disk behind its driver.
pub struct DiskSource {
    shared: Rc<Shared>,
}

struct Shared {
    path: String,
    channels: usize,
    namespace: RefCell<Namespace>,
    shape: Shape,
    idle: RefCell<Vec<Channel>>,
    waiting: RefCell<Vec<Waker>>,
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

impl DiskSource {
    /// Opens the disk at this path `channels` times. Its first bytes are what it is known by when its driver was
    /// started again, so whoever uses it does not change them. To be used in `sip::executor::block_on`.
    ///
    /// # Errors
    /// There is no such disk, or this program may not have it.
    pub async fn open(namespace: Namespace, path: &str, channels: usize) -> Result<DiskSource, AccessError> {
        let namespace = RefCell::new(namespace);
        let channels = channels.clamp(1, MOST_CHANNELS);
        let Opened { idle, events, shape } = open_all(&namespace, path, channels).await?;
        let shared = Rc::new(Shared {
            path: String::from(path),
            channels,
            namespace,
            shape,
            idle: RefCell::new(idle),
            waiting: RefCell::new(Vec::new()),
            opened: Cell::new(1),
            missed: Cell::new(0),
            state: Cell::new(State::Open),
        });
        Shared::watch(&shared, events);
        Ok(DiskSource { shared })
    }

    /// Bytes of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.shared.shape.size_bytes
    }

    /// Bytes of the smallest piece that can be transferred.
    pub fn sector_bytes(&self) -> usize {
        self.shared.shape.sector_bytes
    }

    /// Whether it cannot be written to.
    pub fn is_read_only(&self) -> bool {
        self.shared.shape.is_read_only
    }

    /// Fills the first `bytes` bytes of the block from `offset` on. The block comes back unless there is no memory
    /// for another one after the driver ended with it.
    pub async fn read(
        &self,
        offset: u64,
        mut block: ExVec<u8>,
        bytes: usize,
    ) -> (Option<ExVec<u8>>, Result<(), TransferError>) {
        let Ok(count) = u32::try_from(bytes) else { return (Some(block), Err(OUT_OF_RANGE)) };
        for _ in 0..ATTEMPTS {
            let Some((channel, opened)) = self.shared.acquire().await else { break };
            let length = block.len();
            match channel.read(block, offset, count).receive_async().await {
                disk::ImpReadyAfterRead::ReadDone { data, next } => {
                    self.shared.release(next, opened);
                    return (Some(data), Ok(()));
                }
                disk::ImpReadyAfterRead::ReadFailed { data, error, next } => {
                    self.shared.release(next, opened);
                    return (Some(data), Err(TransferError::Refused(error)));
                }
                disk::ImpReadyAfterRead::ChannelClosed(closed) => {
                    self.shared.lose(opened);
                    block = match home(closed).map_or_else(|| ExVec::new(length), Ok) {
                        Ok(block) => block,
                        Err(_) => return (None, Err(TransferError::NoMemory)),
                    };
                }
            }
        }
        (Some(block), Err(TransferError::Gone))
    }

    /// Writes the first `bytes` bytes of the block to `offset`.
    pub async fn write(
        &self,
        offset: u64,
        mut block: ExVec<u8>,
        bytes: usize,
    ) -> (Option<ExVec<u8>>, Result<(), TransferError>) {
        let Ok(count) = u32::try_from(bytes) else { return (Some(block), Err(OUT_OF_RANGE)) };
        for _ in 0..ATTEMPTS {
            let Some((channel, opened)) = self.shared.acquire().await else { break };
            match channel.write(block, offset, count).receive_async().await {
                disk::ImpReadyAfterWrite::WriteDone { data, next } => {
                    self.shared.release(next, opened);
                    return (Some(data), Ok(()));
                }
                disk::ImpReadyAfterWrite::WriteFailed { data, error, next } => {
                    self.shared.release(next, opened);
                    return (Some(data), Err(TransferError::Refused(error)));
                }
                disk::ImpReadyAfterWrite::ChannelClosed(closed) => {
                    self.shared.lose(opened);
                    // Without the block there is nothing to write.
                    let Some(came_home) = home(closed) else { return (None, Err(TransferError::Gone)) };
                    block = came_home;
                }
            }
        }
        (Some(block), Err(TransferError::Gone))
    }

    /// Waits until what was written is on the medium.
    pub async fn flush(&self) -> Result<(), TransferError> {
        for _ in 0..ATTEMPTS {
            let Some((channel, opened)) = self.shared.acquire().await else { break };
            match channel.flush().receive_async().await {
                disk::ImpReadyAfterFlush::Flushed { next } => {
                    self.shared.release(next, opened);
                    return Ok(());
                }
                disk::ImpReadyAfterFlush::FlushFailed { error, next } => {
                    self.shared.release(next, opened);
                    return Err(TransferError::Refused(error));
                }
                disk::ImpReadyAfterFlush::ChannelClosed(_) => self.shared.lose(opened),
            }
        }
        Err(TransferError::Gone)
    }
}

const OUT_OF_RANGE: TransferError = TransferError::Refused(DiskError::OutOfRange);

/// The block that the driver had when it ended.
fn home(mut closed: Closed) -> Option<ExVec<u8>> {
    closed.take_home().pop().and_then(|block| block.into_vec().ok())
}

impl Shared {
    /// Starts a task that notices when the driver ends, and ends the process when the medium changes: what the
    /// caches hold is worth nothing then.
    fn watch(shared: &Rc<Shared>, events: Events) {
        let (shared, opened) = (Rc::clone(shared), shared.opened.get());
        drop(executor::spawn(async move {
            match events.receive_async().await {
                disk_events::ImpReady::Changed { .. } => other_disk(&shared.path),
                disk_events::ImpReady::ChannelClosed(_) => shared.lose(opened),
            }
        }));
    }

    /// A channel that nobody uses, and when it was opened; `None` if the driver has ended and does not come back.
    async fn acquire(self: &Rc<Shared>) -> Option<(Channel, u64)> {
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
                    self.waiting.borrow_mut().push(context.waker().clone());
                    Poll::Pending
                }
            })
            .await;
            match found {
                Some(channel) => return Some((channel, self.opened.get())),
                None => {
                    let opened = self.open_again().await;
                    self.state.set(if opened { State::Open } else { State::Lost });
                    self.missed.set(self.missed.get() + u64::from(!opened));
                    self.wake_all();
                }
            }
        }
    }

    /// Opens the disk of a driver that was started again. Whether it came back.
    async fn open_again(self: &Rc<Shared>) -> bool {
        let Ok(Opened { idle, events, shape }) = open_all(&self.namespace, &self.path, self.channels).await else {
            return false;
        };
        if shape != self.shape {
            other_disk(&self.path);
        }
        *self.idle.borrow_mut() = idle;
        self.opened.set(self.opened.get() + 1);
        Shared::watch(self, events);
        true
    }

    fn release(&self, channel: Channel, opened: u64) {
        if opened == self.opened.get() && self.state.get() == State::Open {
            self.idle.borrow_mut().push(channel);
            // The first in the row may be one who waits no more, and would wake nobody else.
            self.wake_all();
        }
    }

    /// The driver of that time has ended: its channels are of no use any more, and somebody has to open the disk
    /// again. Only the first who notices is heard.
    fn lose(&self, opened: u64) {
        if opened != self.opened.get() || self.state.get() != State::Open {
            return;
        }
        self.state.set(State::Lost);
        self.idle.borrow_mut().clear();
        self.wake_all();
    }

    fn wake_all(&self) {
        let waiting = core::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Ends the process, so that the disk is mounted anew.
fn other_disk(path: &str) -> ! {
    report::error(format_args!("{path}: there is another disk now; it is mounted again"));
    sip::process::exit(1)
}
