//! The parts of a mounted volume and how they are composed.
//!
//! Each part owns its state and calls the parts it was built from; `docs/storage.md` has the table. Lock order:
//!
//! 1. the lock of the [`Namespace`], for changes of directory entries;
//! 2. content locks of inodes ([`Node`](crate::inode::Node)), in ascending order of inode numbers;
//! 3. the lock of the [`OrphanList`];
//! 4. the lock of [`ExtendedAttributes`];
//! 5. a [`Change`](crate::store::Change), under which no lock is waited for.
//!
//! The fields of an inode need no lock, see [`inode`](crate::inode).

use alloc::rc::Rc;

use task_sync::Mode;

use crate::admission::Admission;
use crate::block_map::BlockMap;
use crate::directory::Directories;
use crate::error::Error;
use crate::extended_attributes::ExtendedAttributes;
use crate::file_data::FileData;
use crate::inode::InodeTable;
use crate::namespace::Namespace;
use crate::orphans::OrphanList;
use crate::source::BlockSource;
use crate::store::{MountOptions, Store};

/// A mounted file system.
pub(crate) struct FileSystem<S: BlockSource> {
    pub(crate) store: Store<S>,
    pub(crate) admission: Rc<Admission<S>>,
    pub(crate) inodes: Rc<InodeTable<S>>,
    pub(crate) blocks: Rc<BlockMap<S>>,
    pub(crate) orphans: Rc<OrphanList<S>>,
    pub(crate) attributes: ExtendedAttributes<S>,
    pub(crate) directories: Rc<Directories<S>>,
    pub(crate) files: Rc<FileData<S>>,
    pub(crate) namespace: Namespace<S>,
}

impl<S: BlockSource> FileSystem<S> {
    /// Builds the parts on an open store, and recovers the orphans if the volume is writable.
    pub(crate) async fn mount(source: S, options: MountOptions) -> Result<FileSystem<S>, Error> {
        let store = Store::open(source, &options).await?;
        let limits = options.limits;
        let admission = Rc::new(Admission::new(store.clone()));
        let inodes = Rc::new(InodeTable::new(store.clone(), limits.inode_bytes));
        let blocks = Rc::new(BlockMap::new(store.clone(), inodes.clone(), limits.number_bytes));
        let orphans = Rc::new(OrphanList::new(store.clone(), inodes.clone()));
        let attributes = ExtendedAttributes::new(store.clone(), admission.clone(), inodes.clone());
        let directories = Rc::new(Directories::new(store.clone(), inodes.clone(), blocks.clone(), limits.number_bytes));
        let files =
            Rc::new(FileData::new(store.clone(), admission.clone(), inodes.clone(), blocks.clone(), orphans.clone()));
        let namespace =
            Namespace::new(store.clone(), admission.clone(), inodes.clone(), orphans.clone(), directories.clone());
        let file_system =
            FileSystem { store, admission, inodes, blocks, orphans, attributes, directories, files, namespace };
        if file_system.store.read_only_reason().is_none() {
            file_system.recover_orphans().await;
        }
        Ok(file_system)
    }

    /// Finishes the deletions and truncations that a crash interrupted. An inode that fails stays on the list.
    async fn recover_orphans(&self) {
        for (number, links) in self.orphans.load().await {
            let _ = if links == 0 { self.evict(number).await } else { self.files.finish_truncate(number).await };
        }
    }

    /// Frees unlinked inodes, commits and marks the volume as clean. If it fails, requests are admitted again.
    pub(crate) async fn unmount(&self) -> Result<(), Error> {
        self.admission.check_mounted()?;
        let _namespace = self.namespace.lock().await;
        self.admission.check_mounted()?;
        self.admission.close();
        let result = self.shut_down().await;
        if result.is_err() {
            self.admission.reopen();
        }
        result
    }

    async fn shut_down(&self) -> Result<(), Error> {
        if self.store.read_only_reason().is_none() {
            for number in self.orphans.numbers() {
                self.revoke(number).await;
                let _ = self.evict(number).await;
            }
        }
        self.store.unmount().await
    }

    /// Disconnects the open files of an unlinked inode, once none of them is being read or written.
    async fn revoke(&self, number: u32) {
        let node = self.inodes.node(number);
        let _content = node.content.acquire(Mode::Exclusive).await;
        self.inodes.revoke(&node);
    }
}
