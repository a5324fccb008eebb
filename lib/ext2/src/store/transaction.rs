//! Transactions, the units of atomic commit, and the changes in flight within them.

use core::cell::Cell;

use task_sync::{Mutex, Notify, RwLock};

use super::Store;
use crate::error::Error;
use crate::source::BlockSource;

/// Blocks of the write set added to each change's announcement, for the superblock and uncounted blocks.
const SLACK: usize = 8;

/// State of the running and committed transactions.
pub(super) struct Transactions {
    /// Number of the running transaction.
    pub(super) running: Cell<u64>,
    /// All transactions with smaller numbers are committed.
    pub(super) first_uncommitted: Cell<u64>,
    /// Transactions committed since mount.
    pub(super) commits: Cell<u64>,
    /// Changes in flight, and the blocks they have announced.
    open: Cell<usize>,
    announced: Cell<usize>,
    /// Whether new changes must wait because the running transaction is closing.
    is_freezing: Cell<bool>,
    /// Maximum blocks in a write set.
    pub(super) max_blocks: Cell<usize>,
    /// Whether the volume has been prepared for writing.
    pub(super) is_started: Cell<bool>,
    start: Mutex<()>,
    pub(super) commit: RwLock,
    /// Tasks waiting for changes to end or to be admitted.
    pub(super) changed: Notify,
}

impl Transactions {
    pub(super) fn new() -> Transactions {
        Transactions {
            running: Cell::new(1),
            first_uncommitted: Cell::new(1),
            commits: Cell::new(0),
            open: Cell::new(0),
            announced: Cell::new(0),
            is_freezing: Cell::new(false),
            max_blocks: Cell::new(usize::MAX),
            is_started: Cell::new(false),
            start: Mutex::default(),
            commit: RwLock::default(),
            changed: Notify::default(),
        }
    }

    /// Blocks new changes and waits until those in flight have ended.
    pub(super) async fn freeze(&self) {
        self.is_freezing.set(true);
        self.changed.until(|| self.open.get() == 0).await;
    }

    /// Admits new changes again.
    pub(super) fn thaw(&self) {
        self.is_freezing.set(false);
        self.changed.notify_all();
    }
}

/// Guard of a multi-block change in flight; no commit happens until it is dropped.
#[must_use]
pub(crate) struct Change<S: BlockSource> {
    store: Store<S>,
    announced: usize,
}

impl<S: BlockSource> Drop for Change<S> {
    fn drop(&mut self) {
        let transactions = &self.store.0.transactions;
        transactions.open.set(transactions.open.get() - 1);
        transactions.announced.set(transactions.announced.get() - self.announced);
        transactions.changed.notify_all();
    }
}

impl<S: BlockSource> Store<S> {
    /// Returns an error if the volume is shut down or read-only.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.0.is_shut.get() {
            return Err(Error::ShutDown);
        }
        self.0.read_only.get().map_or(Ok(()), |reason| Err(Error::ReadOnly(reason)))
    }

    /// Begins a change of at most `max_blocks` metadata blocks.
    pub(crate) async fn begin(&self, max_blocks: usize) -> Result<Change<S>, Error> {
        self.begin_for(max_blocks, 0).await
    }

    /// Begins a change of at most `max_blocks` metadata blocks that will allocate `new_blocks`. Commits first if only
    /// that makes enough freed blocks available.
    pub(crate) async fn begin_for(&self, max_blocks: usize, new_blocks: u32) -> Result<Change<S>, Error> {
        let transactions = &self.0.transactions;
        let max_blocks = max_blocks + SLACK;
        loop {
            self.check_writable()?;
            if transactions.is_freezing.get() {
                transactions.changed.until(|| !transactions.is_freezing.get() || self.0.is_shut.get()).await;
                continue;
            }
            if !transactions.is_started.get() {
                let turn = transactions.start.lock().await;
                if !transactions.is_started.get() {
                    self.start_writing().await?;
                    transactions.is_started.set(true);
                }
                drop(turn);
                continue;
            }
            let used = self.0.sets.borrow().running.len();
            let is_full =
                used.saturating_add(transactions.announced.get() + max_blocks) > transactions.max_blocks.get();
            let is_short = self.0.groups.borrow().would_gain(new_blocks, self.reserved_blocks());
            if is_full && used == 0 && transactions.open.get() > 0 {
                let open = transactions.open.get();
                transactions.changed.until(|| transactions.open.get() < open).await;
                continue;
            }
            if is_full && used > 0 || is_short {
                self.commit_transaction().await?;
                continue;
            }
            if !self.has_superblock() {
                self.load_superblock().await?;
                continue;
            }
            transactions.open.set(transactions.open.get() + 1);
            transactions.announced.set(transactions.announced.get() + max_blocks);
            return Ok(Change { store: self.clone(), announced: max_blocks });
        }
    }

    pub(super) fn has_superblock(&self) -> bool {
        self.0.sets.borrow().running.contains_key(&self.0.geometry.first_data_block)
    }

    /// A change outside the write-set limit, for internal use.
    pub(crate) fn own_change(&self) -> Change<S> {
        let transactions = &self.0.transactions;
        transactions.open.set(transactions.open.get() + 1);
        Change { store: self.clone(), announced: 0 }
    }

    /// Adds the superblock to the write set.
    pub(crate) async fn load_superblock(&self) -> Result<(), Error> {
        let change = self.own_change();
        self.edit(&change, self.0.geometry.first_data_block, |_| ()).await
    }

    pub(crate) fn reserved_blocks(&self) -> u32 {
        self.0.superblock.borrow().reserved_blocks
    }
}
