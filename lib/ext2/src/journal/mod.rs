//! The journal.

use crate::error::Error;
use crate::source::BlockSource;
use crate::store::Store;

pub(crate) struct Journal {}

impl<S: BlockSource> Store<S> {
    pub(crate) fn journal_has(&self, _first: u32, _count: u32) -> bool {
        false
    }
    pub(crate) async fn open_journal(&self) -> Result<(), Error> {
        Ok(())
    }
    pub(crate) async fn start_journal(&self) -> Result<(), Error> {
        Ok(())
    }
    pub(crate) async fn end_journal(&self) -> Result<(), Error> {
        Ok(())
    }
    pub(crate) async fn log(&self, _blocks: &[u32]) -> Result<(), Error> {
        Ok(())
    }
}
