//! The cache as a block device for the FAT crate.

use alloc::boxed::Box;
use alloc::rc::Rc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use hadris_io::{Error, ErrorKind, ErrorType};
use hadris_storage::async_::BlockDevice;
use hadris_storage::{BlockIndex, BlockSize};

use crate::cache::{Cache, SECTOR_BYTES};
use crate::{BlockSource, DiskError};

const BLOCK: BlockSize = match BlockSize::new(SECTOR_BYTES as u32) {
    Some(size) => size,
    None => panic!("a sector has bytes"),
};

/// A disk behind its cache, in blocks of 512 bytes regardless of the disk's sector size.
pub(crate) struct Device<S: BlockSource> {
    cache: Rc<Cache<S>>,
    writable: bool,
}

type Waiting = Pin<Box<dyn Future<Output = Result<(), DiskError>>>>;

/// Progress of a transfer.
#[derive(Default)]
pub(crate) struct Progress {
    done: usize,
    waiting: Option<Waiting>,
}

impl<S: BlockSource> Device<S> {
    pub(crate) fn new(cache: Rc<Cache<S>>, writable: bool) -> Device<S> {
        Device { cache, writable }
    }

    /// Polls the future that the transfer awaits.
    fn poll_waiting(progress: &mut Progress, context: &mut Context<'_>) -> Poll<Result<(), Error<DiskError>>> {
        let Some(waiting) = &mut progress.waiting else { return Poll::Ready(Ok(())) };
        match waiting.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                progress.waiting = None;
                Poll::Ready(outcome.map_err(failed))
            }
        }
    }
}

fn failed(error: DiskError) -> Error<DiskError> {
    match error {
        DiskError::ReadOnly => Error::new(ErrorKind::ReadOnly, "the disk is read-only"),
        other => Error::device(other, "the disk failed"),
    }
}

impl<S: BlockSource> ErrorType for Device<S> {
    type Error = DiskError;
}

impl<S: BlockSource> BlockDevice for Device<S> {
    type State = Progress;

    fn block_size(&self) -> BlockSize {
        BLOCK
    }

    fn block_count(&self) -> u64 {
        self.cache.size_bytes() / SECTOR_BYTES as u64
    }

    fn writable(&self) -> bool {
        self.writable
    }

    fn poll_read_blocks(
        &mut self,
        progress: &mut Progress,
        context: &mut Context<'_>,
        first: BlockIndex,
        buffer: &mut [u8],
    ) -> Poll<Result<(), Error<DiskError>>> {
        let start = first.get() * SECTOR_BYTES as u64;
        loop {
            core::task::ready!(Self::poll_waiting(progress, context))?;
            let rest = &mut buffer[progress.done..];
            progress.done += self.cache.copy_out(start + progress.done as u64, rest).map_err(failed)?;
            if progress.done == buffer.len() {
                return Poll::Ready(Ok(()));
            }
            let offset = start + progress.done as u64;
            let bytes = buffer.len() - progress.done;
            progress.waiting = Some(Box::pin(Rc::clone(&self.cache).bring(offset, bytes)));
        }
    }

    fn poll_write_blocks(
        &mut self,
        progress: &mut Progress,
        context: &mut Context<'_>,
        first: BlockIndex,
        buffer: &[u8],
    ) -> Poll<Result<(), Error<DiskError>>> {
        if !self.writable {
            return Poll::Ready(Err(failed(DiskError::ReadOnly)));
        }
        let start = first.get() * SECTOR_BYTES as u64;
        loop {
            core::task::ready!(Self::poll_waiting(progress, context))?;
            if self.cache.is_full_of_changes() {
                progress.waiting = Some(Box::pin(Rc::clone(&self.cache).write_back_now()));
                continue;
            }
            let rest = &buffer[progress.done..];
            progress.done += self.cache.copy_in(start + progress.done as u64, rest).map_err(failed)?;
            if progress.done == buffer.len() {
                return Poll::Ready(Ok(()));
            }
            let offset = start + progress.done as u64;
            let cache = Rc::clone(&self.cache);
            progress.waiting = Some(if cache.covers_page(offset, buffer.len() - progress.done) {
                Box::pin(cache.make(offset))
            } else {
                Box::pin(cache.bring(offset, 1))
            });
        }
    }

    fn poll_flush(&mut self, progress: &mut Progress, context: &mut Context<'_>) -> Poll<Result<(), Error<DiskError>>> {
        if !self.writable {
            return Poll::Ready(Ok(()));
        }
        if progress.done == 0 {
            progress.done = 1;
            progress.waiting = Some(Box::pin(Rc::clone(&self.cache).flush()));
        }
        Self::poll_waiting(progress, context)
    }

    fn cancel(&mut self, progress: &mut Progress) {
        *progress = Progress::default();
    }
}
