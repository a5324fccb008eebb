//! Whether a volume still admits its clients' requests.

use core::cell::Cell;

use crate::error::Error;
use crate::source::BlockSource;
use crate::store::Store;

/// Closed by an unmount before the store is, as the unmount itself still frees unlinked inodes.
pub(crate) struct Admission<S: BlockSource> {
    store: Store<S>,
    is_closed: Cell<bool>,
}

impl<S: BlockSource> Admission<S> {
    pub(crate) fn new(store: Store<S>) -> Admission<S> {
        Admission { store, is_closed: Cell::new(false) }
    }

    /// [`Error::ShutDown`] once the volume is unmounted.
    pub(crate) fn check_mounted(&self) -> Result<(), Error> {
        if self.is_closed.get() { Err(Error::ShutDown) } else { Ok(()) }
    }

    /// [`Error::ShutDown`] or [`Error::ReadOnly`] if requests to write are refused.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        self.check_mounted()?;
        self.store.read_only_reason().map_or(Ok(()), |reason| Err(Error::ReadOnly(reason)))
    }

    pub(crate) fn close(&self) {
        self.is_closed.set(true);
    }

    /// Undoes [`Admission::close`], after an unmount that failed.
    pub(crate) fn reopen(&self) {
        self.is_closed.set(false);
    }
}
