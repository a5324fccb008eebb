//! A disk as FAT's library wants it.

use contracts::disk::DiskError as Refusal;
use fat::{BlockSource, DiskError};
use sip::exheap::ExVec;

use crate::{DiskSource, TransferError};

fn error(error: TransferError) -> DiskError {
    match error {
        TransferError::Gone => DiskError::Gone,
        TransferError::NoMemory => DiskError::NoMemory,
        TransferError::Refused(Refusal::ReadOnly) => DiskError::ReadOnly,
        TransferError::Refused(Refusal::NotAligned | Refusal::OutOfRange) => DiskError::Short,
        TransferError::Refused(other) => DiskError::Failed(other as u32),
    }
}

impl BlockSource for DiskSource {
    type Buffer = ExVec<u8>;

    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn sector_bytes(&self) -> usize {
        self.sector_bytes()
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only()
    }

    fn allocate(&self, bytes: usize) -> Result<ExVec<u8>, DiskError> {
        ExVec::new(bytes).map_err(|_| DiskError::NoMemory)
    }

    async fn read(&self, offset: u64, block: ExVec<u8>, bytes: usize) -> (Option<ExVec<u8>>, Result<(), DiskError>) {
        let (block, outcome) = DiskSource::read(self, offset, block, bytes).await;
        (block, outcome.map_err(error))
    }

    async fn write(&self, offset: u64, block: ExVec<u8>, bytes: usize) -> (Option<ExVec<u8>>, Result<(), DiskError>) {
        let (block, outcome) = DiskSource::write(self, offset, block, bytes).await;
        (block, outcome.map_err(error))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        DiskSource::flush(self).await.map_err(error)
    }
}
