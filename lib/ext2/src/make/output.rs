//! Writes whole blocks to the disk, one transfer at a time.

use super::MakeError;
use block_source::BlockSource;
use block_source::DiskError;

/// Maximum size of a transfer of zeros.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes wiped at the start of the disk, whatever the block size: a boot sector and the superblock.
const BEGINNING_BYTES: usize = 4096;

pub(super) struct Output<'a, S: BlockSource> {
    source: &'a S,
    block_bytes: u32,
    /// Returned buffers for reuse: one that stays zeroed, one for blocks.
    zeros: Option<S::Buffer>,
    block: Option<S::Buffer>,
}

impl<'a, S: BlockSource> Output<'a, S> {
    pub(super) fn new(source: &'a S, block_bytes: u32) -> Output<'a, S> {
        Output { source, block_bytes, zeros: None, block: None }
    }

    /// Wipes the old superblock.
    pub(super) async fn clear_beginning(&mut self) -> Result<(), MakeError> {
        self.write_zeros(0, BEGINNING_BYTES).await
    }

    /// Writes a block. `fill` is called with a zeroed block.
    pub(super) async fn block(&mut self, block: u32, fill: impl FnOnce(&mut [u8])) -> Result<(), MakeError> {
        let bytes = self.block_bytes as usize;
        let offset = u64::from(block) * u64::from(self.block_bytes);
        let mut buffer = match self.block.take() {
            Some(buffer) => buffer,
            None => self.source.allocate(bytes).map_err(|error| MakeError::Disk(offset, error))?,
        };
        let content = buffer.get_mut(..bytes).ok_or(MakeError::Disk(offset, DiskError::Short))?;
        content.fill(0);
        fill(content);
        let (buffer, result) = self.source.write(offset, buffer, bytes).await;
        self.block = buffer;
        result.map_err(|error| MakeError::Disk(offset, error))
    }

    /// Writes blocks of zeros.
    pub(super) async fn zeros(&mut self, first: u32, count: u32) -> Result<(), MakeError> {
        let end = (u64::from(first) + u64::from(count)) * u64::from(self.block_bytes);
        let mut offset = u64::from(first) * u64::from(self.block_bytes);
        while offset < end {
            let bytes = (end - offset).min(PIECE_BYTES as u64) as usize;
            self.write_zeros(offset, bytes).await?;
            offset += bytes as u64;
        }
        Ok(())
    }

    /// Waits until all writes are durable.
    pub(super) async fn flush(&mut self) -> Result<(), MakeError> {
        self.source.flush().await.map_err(|error| MakeError::Disk(0, error))
    }

    async fn write_zeros(&mut self, offset: u64, bytes: usize) -> Result<(), MakeError> {
        let failed = |error| MakeError::Disk(offset, error);
        let buffer = match self.zeros.take() {
            Some(buffer) => buffer,
            None => {
                let mut buffer = self.source.allocate(PIECE_BYTES).map_err(failed)?;
                buffer.fill(0);
                buffer
            }
        };
        let (buffer, result) = self.source.write(offset, buffer, bytes).await;
        self.zeros = buffer;
        result.map_err(failed)
    }
}
