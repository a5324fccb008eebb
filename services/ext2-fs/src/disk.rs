//! The way to the disk driver: several channels, so that several reads are under way at once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::access::AccessError;
use contracts::disk::{self, states};
use contracts::disk_events;
use contracts::namespace::Namespace;
use ext2::{BlockSource, ReadError};
use sip::exheap::ExVec;

type Channel = disk::Imp<states::Ready>;

/// The most channels that are opened, whatever the parameter says.
const MOST_CHANNELS: usize = 64;

/// A disk behind its driver.
pub(crate) struct DiskSource {
    size_bytes: u64,
    idle: RefCell<Vec<Channel>>,
    waiting: RefCell<VecDeque<Waker>>,
    events: RefCell<Option<disk_events::Imp<disk_events::states::Ready>>>,
    gone: Cell<bool>,
}

impl DiskSource {
    /// Opens the disk at this path `channels` times.
    pub(crate) fn open(namespace: &mut Namespace, path: &str, channels: usize) -> Result<DiskSource, AccessError> {
        let mut first = open_channel(namespace, path)?;
        let size_bytes;
        (first, size_bytes) = match first.get_info().receive() {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, next, .. } => (next, size_bytes),
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        };
        let (events, exporter) = disk_events::new_channel()?;
        first = match first.notify(exporter).receive() {
            disk::ImpReadyAfterNotify::Notifying { next } => next,
            disk::ImpReadyAfterNotify::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        };
        let mut idle = alloc::vec![first];
        while idle.len() < channels.min(MOST_CHANNELS) {
            idle.push(open_channel(namespace, path)?);
        }
        Ok(DiskSource {
            size_bytes,
            idle: RefCell::new(idle),
            waiting: RefCell::new(VecDeque::new()),
            events: RefCell::new(Some(events)),
            gone: Cell::new(false),
        })
    }

    /// Whether the driver is known to have ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Starts a task that ends the process when the driver ends or the medium changes: what the caches
    /// hold is worth nothing then.
    pub(crate) fn watch(&self) {
        if let Some(events) = self.events.borrow_mut().take() {
            sip::executor::spawn(async move {
                let (disk_events::ImpReady::Changed { .. } | disk_events::ImpReady::ChannelClosed(_)) =
                    events.receive_async().await;
                crate::disk_ended()
            });
        }
    }

    /// A channel that nobody uses; `None` if the driver has ended.
    async fn acquire(&self) -> Option<Channel> {
        poll_fn(|context| {
            if self.gone.get() {
                return Poll::Ready(None);
            }
            match self.idle.borrow_mut().pop() {
                Some(channel) => Poll::Ready(Some(channel)),
                None => {
                    self.waiting.borrow_mut().push_back(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn release(&self, channel: Channel) {
        self.idle.borrow_mut().push(channel);
        let next = self.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            next.wake();
        }
    }

    /// Lets all who wait for a channel see that there will be none.
    fn lose(&self) {
        self.gone.set(true);
        let waiting = core::mem::take(&mut *self.waiting.borrow_mut());
        for waker in waiting {
            waker.wake();
        }
    }
}

impl BlockSource for DiskSource {
    type Buffer = ExVec<u8>;

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    async fn read(&self, offset: u64, bytes: usize) -> Result<ExVec<u8>, ReadError> {
        let count = u32::try_from(bytes).map_err(|_| ReadError::NoMemory)?;
        let Some(channel) = self.acquire().await else { return Err(ReadError::Gone) };
        let block = match ExVec::<u8>::new(bytes) {
            Ok(block) => block,
            Err(_) => {
                self.release(channel);
                return Err(ReadError::NoMemory);
            }
        };
        match channel.read(block, offset, count).receive_async().await {
            disk::ImpReadyAfterRead::ReadDone { data, next } => {
                self.release(next);
                Ok(data)
            }
            disk::ImpReadyAfterRead::ReadFailed { error, next, .. } => {
                self.release(next);
                Err(ReadError::Failed(error as u32))
            }
            disk::ImpReadyAfterRead::ChannelClosed(_) => {
                self.lose();
                Err(ReadError::Gone)
            }
        }
    }
}

fn open_channel(namespace: &mut Namespace, path: &str) -> Result<Channel, AccessError> {
    namespace.open(path, disk::new_channel, |importer| match importer.receive() {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(contracts::directory::NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}
