//! Where the bytes are: in memory, or on another disk.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use contracts::access::AccessError;
use contracts::directory::NameError;
use contracts::disk::{self, DiskError, states};
use contracts::namespace::{Namespace, PATIENCE_MS};
use disk_server::{SECTOR_BYTES, Shape};
use sip::exheap::ExVec;
use sip::{Deadline, executor};

type Channel = disk::Imp<states::Ready>;

const AGAIN_AFTER_MS: u64 = 5;
/// How often a request is asked of a driver that ends at it.
const ATTEMPTS: u32 = 3;

/// The bytes of a disk.
pub enum Bytes {
    /// In memory.
    Memory(RefCell<Vec<u8>>),
    /// On another disk.
    Below(Below),
}

/// A disk below, which is asked for one thing at a time.
pub struct Below {
    namespace: RefCell<Namespace>,
    path: String,
    shape: Shape,
    channel: Cell<Option<Channel>>,
}

impl Bytes {
    /// So many zero bytes.
    pub fn in_memory(size_bytes: u64) -> Result<Bytes, String> {
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| format!("there is no memory for a disk of {size_bytes} bytes"))?;
        bytes.resize(size, 0);
        Ok(Bytes::Memory(RefCell::new(bytes)))
    }

    /// Those of the disk at this path.
    pub async fn over(namespace: Namespace, path: &str) -> Result<Bytes, String> {
        let namespace = RefCell::new(namespace);
        let said = |error: AccessError| format!("{path}: {error}");
        let channel = open(&namespace, path).await.map_err(said)?;
        match channel.get_info().receive_async().await {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, read_only, next } => {
                let shape = Shape { size_bytes, sector_bytes, read_only };
                let channel = Cell::new(Some(next));
                Ok(Bytes::Below(Below { namespace, path: path.into(), shape, channel }))
            }
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(said(AccessError::ServerEnded)),
        }
    }

    /// What clients are told.
    pub fn shape(&self) -> Shape {
        match self {
            Bytes::Memory(bytes) => {
                Shape { size_bytes: bytes.borrow().len() as u64, sector_bytes: SECTOR_BYTES, read_only: false }
            }
            Bytes::Below(below) => below.shape,
        }
    }

    /// Reads from `offset` on. To be called by one at a time, as all that follow.
    pub async fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DiskError> {
        match self {
            Bytes::Memory(bytes) => {
                target.copy_from_slice(&bytes.borrow()[offset as usize..offset as usize + target.len()]);
                Ok(())
            }
            Bytes::Below(below) => below.read(offset, target).await,
        }
    }

    /// Writes from `offset` on.
    pub async fn write(&self, offset: u64, source: &[u8]) -> Result<(), DiskError> {
        match self {
            Bytes::Memory(bytes) => {
                bytes.borrow_mut()[offset as usize..offset as usize + source.len()].copy_from_slice(source);
                Ok(())
            }
            Bytes::Below(below) => below.write(offset, source).await,
        }
    }

    /// Makes what was written last.
    pub async fn flush(&self) -> Result<(), DiskError> {
        match self {
            Bytes::Memory(_) => Ok(()),
            Bytes::Below(below) => below.flush().await,
        }
    }
}

impl Below {
    async fn channel(&self) -> Result<Channel, DiskError> {
        match self.channel.take() {
            Some(channel) => Ok(channel),
            None => open(&self.namespace, &self.path).await.map_err(|_| DiskError::DeviceError),
        }
    }

    async fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            let channel = self.channel().await?;
            let block = ExVec::<u8>::new(target.len()).map_err(|_| DiskError::Exhausted)?;
            match channel.read(block, offset, target.len() as u32).receive_async().await {
                disk::ImpReadyAfterRead::ReadDone { data, next } => {
                    self.channel.set(Some(next));
                    target.copy_from_slice(&data);
                    return Ok(());
                }
                disk::ImpReadyAfterRead::ReadFailed { error, next, .. } => {
                    self.channel.set(Some(next));
                    return Err(error);
                }
                disk::ImpReadyAfterRead::ChannelClosed(_) => {}
            }
        }
        Err(DiskError::DeviceError)
    }

    async fn write(&self, offset: u64, source: &[u8]) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            let channel = self.channel().await?;
            let block = ExVec::from_slice(source).map_err(|_| DiskError::Exhausted)?;
            match channel.write(block, offset, source.len() as u32).receive_async().await {
                disk::ImpReadyAfterWrite::WriteDone { next, .. } => {
                    self.channel.set(Some(next));
                    return Ok(());
                }
                disk::ImpReadyAfterWrite::WriteFailed { error, next, .. } => {
                    self.channel.set(Some(next));
                    return Err(error);
                }
                disk::ImpReadyAfterWrite::ChannelClosed(_) => {}
            }
        }
        Err(DiskError::DeviceError)
    }

    async fn flush(&self) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            match self.channel().await?.flush().receive_async().await {
                disk::ImpReadyAfterFlush::Flushed { next } => {
                    self.channel.set(Some(next));
                    return Ok(());
                }
                disk::ImpReadyAfterFlush::FlushFailed { error, next } => {
                    self.channel.set(Some(next));
                    return Err(error);
                }
                disk::ImpReadyAfterFlush::ChannelClosed(_) => {}
            }
        }
        Err(DiskError::DeviceError)
    }
}

/// Opens the disk, whose driver may just be being started again.
async fn open(namespace: &RefCell<Namespace>, path: &str) -> Result<Channel, AccessError> {
    let deadline = Deadline::after_ms(PATIENCE_MS);
    loop {
        match try_open(namespace, path).await {
            Err(error) if error.may_pass() && !deadline.has_passed() => {
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
            }
            other => return other,
        }
    }
}

async fn try_open(namespace: &RefCell<Namespace>, path: &str) -> Result<Channel, AccessError> {
    let (importer, exporter) = disk::new_channel()?;
    namespace.borrow_mut().bind(path, exporter)?;
    match importer.receive_async().await {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}
