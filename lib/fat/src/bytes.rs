//! Byte-granular access to a disk through the cache.

use alloc::rc::Rc;

use crate::cache::Cache;
use crate::{BlockSource, DiskError};

/// A disk addressed in bytes.
pub(crate) struct Bytes<S: BlockSource> {
    cache: Rc<Cache<S>>,
}

impl<S: BlockSource> Bytes<S> {
    pub(crate) fn new(cache: Cache<S>) -> Bytes<S> {
        Bytes::over(Rc::new(cache))
    }

    pub(crate) fn over(cache: Rc<Cache<S>>) -> Bytes<S> {
        Bytes { cache }
    }

    pub(crate) fn cache(&self) -> &Rc<Cache<S>> {
        &self.cache
    }

    fn check(&self, offset: u64, bytes: usize) -> Result<(), DiskError> {
        let is_inside = offset.checked_add(bytes as u64).is_some_and(|end| end <= self.cache.size_bytes());
        if is_inside { Ok(()) } else { Err(DiskError::Short) }
    }

    pub(crate) async fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DiskError> {
        self.check(offset, target.len())?;
        let mut done = 0;
        loop {
            done += self.cache.copy_out(offset + done as u64, &mut target[done..])?;
            if done == target.len() {
                return Ok(());
            }
            Rc::clone(&self.cache).bring(offset + done as u64, target.len() - done).await?;
        }
    }

    pub(crate) async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check(offset, bytes.len())?;
        let mut done = 0;
        loop {
            if self.cache.is_full_of_changes() {
                self.cache.write_back().await?;
            }
            done += self.cache.copy_in(offset + done as u64, &bytes[done..])?;
            if done == bytes.len() {
                return Ok(());
            }
            Rc::clone(&self.cache).bring(offset + done as u64, 1).await?;
        }
    }

    pub(crate) async fn flush(&self) -> Result<(), DiskError> {
        Rc::clone(&self.cache).flush().await
    }
}
