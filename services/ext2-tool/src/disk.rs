//! The way to the disk driver: one channel, one transfer at a time.
//!
//! When the driver ends, so does the work: what is on the disk may have changed by the time that it is back.

use core::cell::RefCell;
use core::future::Future;

use contracts::access::AccessError;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use contracts::namespace::Namespace;
use ext2::{BlockSource, DiskError};
use sip::channel::Closed;
use sip::executor;
use sip::exheap::ExVec;

type Channel = disk::Imp<states::Ready>;
type Transferred = (Option<ExVec<u8>>, Result<(), DiskError>);

const NS_PER_S: u64 = 1_000_000_000;

/// A disk behind its driver.
pub(crate) struct DiskSource {
    /// Nothing while a transfer is under way, and after the driver ended.
    channel: RefCell<Option<Channel>>,
    size_bytes: u64,
    read_only: bool,
}

impl DiskSource {
    /// Opens the disk at this path.
    pub(crate) async fn open(namespace: &mut Namespace, path: &str) -> Result<DiskSource, AccessError> {
        let (importer, exporter) = disk::new_channel()?;
        namespace.bind(path, exporter)?;
        let channel = match importer.receive_async().await {
            disk::ImpStart::Success { next } => next,
            disk::ImpStart::Refused { .. } => return Err(AccessError::Name(NameError::DeviceError)),
            disk::ImpStart::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        };
        match channel.get_info().receive_async().await {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, read_only, next, .. } => {
                Ok(DiskSource { channel: RefCell::new(Some(next)), size_bytes, read_only })
            }
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    fn take(&self) -> Option<Channel> {
        self.channel.borrow_mut().take()
    }

    fn put_back(&self, channel: Channel) {
        *self.channel.borrow_mut() = Some(channel);
    }
}

/// The block that was lent to the driver that ended.
fn home(mut closed: Closed) -> Option<ExVec<u8>> {
    closed.take_home().into_iter().find_map(|block| block.into_vec::<u8>().ok())
}

fn failed(error: disk::DiskError) -> DiskError {
    match error {
        disk::DiskError::ReadOnly => DiskError::ReadOnly,
        disk::DiskError::Exhausted => DiskError::NoMemory,
        other => DiskError::Failed(other as u32),
    }
}

impl BlockSource for DiskSource {
    type Buffer = ExVec<u8>;

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn allocate(&self, bytes: usize) -> Result<ExVec<u8>, DiskError> {
        ExVec::new(bytes).map_err(|_| DiskError::NoMemory)
    }

    async fn read(&self, offset: u64, buffer: ExVec<u8>, bytes: usize) -> Transferred {
        let Ok(count) = u32::try_from(bytes) else { return (Some(buffer), Err(DiskError::NoMemory)) };
        let Some(channel) = self.take() else { return (Some(buffer), Err(DiskError::Gone)) };
        match channel.read(buffer, offset, count).receive_async().await {
            disk::ImpReadyAfterRead::ReadDone { data, next } => {
                self.put_back(next);
                (Some(data), Ok(()))
            }
            disk::ImpReadyAfterRead::ReadFailed { data, error, next } => {
                self.put_back(next);
                (Some(data), Err(failed(error)))
            }
            disk::ImpReadyAfterRead::ChannelClosed(closed) => (home(closed), Err(DiskError::Gone)),
        }
    }

    async fn write(&self, offset: u64, buffer: ExVec<u8>, bytes: usize) -> Transferred {
        let Ok(count) = u32::try_from(bytes) else { return (Some(buffer), Err(DiskError::NoMemory)) };
        let Some(channel) = self.take() else { return (Some(buffer), Err(DiskError::Gone)) };
        match channel.write(buffer, offset, count).receive_async().await {
            disk::ImpReadyAfterWrite::WriteDone { data, next } => {
                self.put_back(next);
                (Some(data), Ok(()))
            }
            disk::ImpReadyAfterWrite::WriteFailed { data, error, next } => {
                self.put_back(next);
                (Some(data), Err(failed(error)))
            }
            disk::ImpReadyAfterWrite::ChannelClosed(closed) => (home(closed), Err(DiskError::Gone)),
        }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let Some(channel) = self.take() else { return Err(DiskError::Gone) };
        match channel.flush().receive_async().await {
            disk::ImpReadyAfterFlush::Flushed { next } => {
                self.put_back(next);
                Ok(())
            }
            disk::ImpReadyAfterFlush::FlushFailed { error, next } => {
                self.put_back(next);
                Err(failed(error))
            }
            disk::ImpReadyAfterFlush::ChannelClosed(_) => Err(DiskError::Gone),
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        drop(executor::spawn(task));
    }

    fn now_s(&self) -> u32 {
        // Times on the volume end in 2106.
        u32::try_from(sip::time::wall() / NS_PER_S).unwrap_or(u32::MAX)
    }
}
