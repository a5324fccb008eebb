//! A mounted volume: the handle that clients of the library hold, and what its parts share.
//!
//! There are three caches, as in the paper: inodes, block numbers (the leaf tables of the indirect blocks) and
//! data, which is the store's. Requests are served side by side; what keeps them apart, in the order in which a
//! task may take it: the namespace's lock, for changes of names; the locks of inodes, in the order of their
//! numbers, shared to read content or names and alone to change them; the orphans' lock; that of extended attributes; a
//! [`Change`](crate::store::Change), under which no lock is waited for. An inode's own fields need no lock, see [`inode`](crate::inode).
//!
//! Not here: what is done under the locks; see `operations`, `directory`, `mapping` and `open_file`.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use task_sync::{Mode, Mutex, RwLock};

use crate::cache::{Cache, CacheCounts};
use crate::directory::hash::{Algorithm, Hasher};
use crate::directory::names::NameIndexes;
use crate::directory::{DirectoryEntry, Found, Listing};
use crate::error::{Error, ReadOnlyReason};
use crate::inode::InodeTable;
use crate::mapping::Leaf;
use crate::source::BlockSource;
use crate::store::{CacheLimits, MountOptions, Store};
use crate::wire::inode::{Inode, Kind};
use crate::wire::superblock::Superblock;

/// Bytes that the names of big folders may take in memory, for each byte that block numbers may.
const NAME_SHARE: usize = 4;

/// How the caches have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// The inode cache.
    pub inodes: CacheCounts,
    /// The block number cache.
    pub numbers: CacheCounts,
    /// The data cache.
    pub data: CacheCounts,
}

/// A mounted volume as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeStatistics {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks of the volume.
    pub blocks: u32,
    /// Blocks that are free.
    pub free_blocks: u32,
    /// Those of the free ones that are held in reserve for repairs.
    pub reserved_blocks: u32,
    /// Inodes of the volume.
    pub inodes: u32,
    /// Inodes that are free.
    pub free_inodes: u32,
    /// Bytes of files and metadata that are not yet where they belong on the disk.
    pub dirty_bytes: u64,
    /// Inodes that are open, each counted as often as it is.
    pub open: u32,
    /// How the caches have done.
    pub caches: CacheStatistics,
    /// How much each cache may hold.
    pub limits: CacheLimits,
}

/// A mounted volume. Clones are handles of the same one.
pub struct Volume<S: BlockSource>(pub(crate) Rc<Core<S>>);

impl<S: BlockSource> Clone for Volume<S> {
    fn clone(&self) -> Volume<S> {
        Volume(Rc::clone(&self.0))
    }
}

/// What the parts of a mounted volume share.
pub(crate) struct Core<S: BlockSource> {
    pub(crate) store: Store<S>,
    /// As it was when the volume was mounted: what never changes counts, not the numbers of what is free.
    pub(crate) superblock: Superblock,
    pub(crate) inodes: InodeTable<S>,
    /// Leaf tables by inode and window.
    pub(crate) numbers: RefCell<Cache<(u32, u64), Leaf>>,
    pub(crate) names: RefCell<NameIndexes>,
    /// Held alone by whoever changes names.
    pub(crate) namespace: Mutex<()>,
    /// Inodes on the way to deletion or truncation, as the list on the disk has them from its end on.
    pub(crate) orphans: RefCell<Vec<u32>>,
    /// Held alone by whoever changes that list.
    pub(crate) orphan_lock: Mutex<()>,
    /// Held by whoever reads extended attributes, alone by whoever changes them.
    pub(crate) attribute_lock: RwLock,
    pub(crate) is_shut_down: Cell<bool>,
}

impl<S: BlockSource> Core<S> {
    /// Refuses what comes after the unmount.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        if self.is_shut_down.get() { Err(Error::ShutDown) } else { Ok(()) }
    }

    /// Refuses changes of what is not to be changed.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        self.check_alive()?;
        self.store.read_only_reason().map_or(Ok(()), |reason| Err(Error::ReadOnly(reason)))
    }

    /// Where a name is in a folder, whose lock is held.
    async fn find_in_folder(&self, folder: u32, name: &[u8]) -> Result<Found, Error> {
        let inode = self.inodes.get(folder).await?;
        if inode.links == 0 {
            return Err(Error::NotFound);
        }
        self.find_entry(&inode, name).await?.ok_or(Error::NotFound)
    }

    /// Names of folders in the volume's index are hashed so, if their root names this algorithm.
    pub(crate) fn hasher(&self, algorithm: Algorithm, unsigned: bool) -> Hasher {
        let unsigned = unsigned || self.superblock.hash_unsigned;
        Hasher { algorithm, unsigned, seed: self.superblock.hash_seed }
    }
}

impl<S: BlockSource> Volume<S> {
    /// Mounts the volume of a disk, and refuses what cannot be read rightly. What a crash left in the journal is
    /// put in its place, and deletions that it interrupted are ended.
    pub async fn mount(source: S, options: MountOptions) -> Result<Volume<S>, Error> {
        let store = Store::open(source, &options).await?;
        let limits = options.limits;
        let core = Core {
            superblock: store.superblock(),
            inodes: InodeTable::new(store.clone(), limits.inode_bytes),
            store,
            numbers: RefCell::new(Cache::new(limits.number_bytes)),
            names: RefCell::new(NameIndexes::new(limits.number_bytes.saturating_mul(NAME_SHARE))),
            namespace: Mutex::default(),
            orphans: RefCell::default(),
            orphan_lock: Mutex::default(),
            attribute_lock: RwLock::default(),
            is_shut_down: Cell::new(false),
        };
        let volume = Volume(Rc::new(core));
        if volume.read_only_reason().is_none() {
            volume.0.adopt_orphans().await;
        }
        Ok(volume)
    }

    /// Why the volume is not written, if it is not.
    pub fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.store.read_only_reason()
    }

    /// The superblock as it is.
    pub fn superblock(&self) -> Superblock {
        self.0.store.superblock()
    }

    /// Whether there is something for [`Volume::sync`] to do.
    pub fn has_changes(&self) -> bool {
        self.0.store.has_changes()
    }

    /// The disk.
    pub fn source(&self) -> &S {
        self.0.store.source()
    }

    /// The volume in numbers.
    pub fn statistics(&self) -> VolumeStatistics {
        let store = self.0.store.statistics();
        // No volume has more blocks than a number of 32 bits counts.
        let whole = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        VolumeStatistics {
            block_bytes: self.0.superblock.block_bytes,
            blocks: whole(store.blocks),
            free_blocks: whole(store.free_blocks),
            reserved_blocks: whole(store.free_blocks.saturating_sub(store.available_blocks)),
            inodes: whole(store.inodes),
            free_inodes: whole(store.free_inodes),
            dirty_bytes: store.dirty_bytes + store.metadata_bytes,
            open: self.0.inodes.open_files(),
            caches: CacheStatistics {
                inodes: self.0.inodes.cache_counts(),
                numbers: self.0.numbers.borrow().counts(),
                data: store.data,
            },
            limits: self.0.store.limits(),
        }
    }

    /// The inode with this number; [`Error::NotFound`] if it is not in use.
    pub async fn inode(&self, number: u32) -> Result<Inode, Error> {
        self.0.check_alive()?;
        self.0.inodes.get(number).await
    }

    /// Lists a folder from `position` on (0, or a `next` from before): at most `limit` entries. A position inside an
    /// entry goes on with the entry after it. A folder that was removed has nothing.
    pub async fn list(&self, folder: u32, position: u64, limit: usize) -> Result<Listing, Error> {
        self.0.check_alive()?;
        let node = self.0.inodes.node(folder);
        let _content = node.content.acquire(Mode::Shared).await;
        let inode = self.0.inodes.get(folder).await?;
        if inode.links == 0 {
            return Ok(Listing { entries: Vec::<DirectoryEntry>::new(), next: None });
        }
        self.0.list(&inode, position, limit).await
    }

    /// The inode number that a name in a folder stands for.
    pub async fn find(&self, folder: u32, name: &[u8]) -> Result<u32, Error> {
        self.0.check_alive()?;
        let node = self.0.inodes.node(folder);
        let _content = node.content.acquire(Mode::Shared).await;
        Ok(self.0.find_in_folder(folder, name).await?.inode)
    }

    /// The inode that a name in a folder stands for. As `find` and `inode`, but nobody can come in between.
    pub(crate) async fn look_up(&self, folder: u32, name: &[u8]) -> Result<Inode, Error> {
        let node = self.0.inodes.node(folder);
        let _content = node.content.acquire(Mode::Shared).await;
        let found = self.0.find_in_folder(folder, name).await?;
        self.0.inodes.get_linked(found.inode).await
    }

    /// Where a symbolic link leads: a path, from the folder that the link is in.
    pub async fn link_target(&self, link: u32) -> Result<Vec<u8>, Error> {
        self.0.check_alive()?;
        let node = self.0.inodes.node(link);
        let _content = node.content.acquire(Mode::Shared).await;
        let inode = self.0.inodes.get(link).await?;
        if inode.kind != Kind::SymbolicLink {
            return Err(Error::NotFound);
        }
        self.0.link_target(&inode).await
    }

    /// Puts all that was said before on the medium.
    pub async fn sync(&self) -> Result<(), Error> {
        self.0.check_alive()?;
        self.0.store.commit().await
    }

    /// Writes everything and marks the volume as cleanly unmounted. Unlinked files that are open lose their
    /// content. If it fails, the volume goes on serving; afterwards every request gives [`Error::ShutDown`].
    pub async fn unmount(&self) -> Result<(), Error> {
        self.0.check_alive()?;
        let _namespace = self.0.namespace.lock().await;
        self.0.check_alive()?;
        self.0.is_shut_down.set(true);
        let result = self.0.end().await;
        self.0.is_shut_down.set(result.is_ok());
        result
    }
}
