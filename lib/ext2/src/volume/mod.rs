//! The handle of a mounted volume, and its read-only requests.

mod changes;
mod extended_attributes;

use alloc::rc::Rc;
use alloc::vec::Vec;

use task_sync::Mode;

use crate::cache::CacheCounts;
use crate::directory::{DirectoryEntry, Listing};
use crate::error::{Error, ReadOnlyReason};
use crate::file_system::FileSystem;
use crate::format::inode::{Inode, Kind};
use crate::format::superblock::Superblock;
use crate::open_file::OpenFile;
use crate::source::BlockSource;
use crate::store::{CacheLimits, MountOptions};
pub use changes::AttributeChanges;

/// Cache counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// The inode cache.
    pub inodes: CacheCounts,
    /// The block number cache.
    pub numbers: CacheCounts,
    /// The data cache.
    pub data: CacheCounts,
}

/// Statistics of a mounted volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeStatistics {
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of free blocks.
    pub free_blocks: u32,
    /// Free blocks that are reserved.
    pub reserved_blocks: u32,
    /// Number of inodes.
    pub inodes: u32,
    /// Number of free inodes.
    pub free_inodes: u32,
    /// Bytes of files and metadata that are not yet in place on the disk.
    pub dirty_bytes: u64,
    /// Number of opens of all inodes.
    pub open: u32,
    /// Cache counters.
    pub caches: CacheStatistics,
    /// Limits of the caches.
    pub limits: CacheLimits,
}

/// A mounted volume. Clones are handles of the same one.
pub struct Volume<S: BlockSource>(pub(crate) Rc<FileSystem<S>>);

impl<S: BlockSource> Clone for Volume<S> {
    fn clone(&self) -> Volume<S> {
        Volume(Rc::clone(&self.0))
    }
}

impl<S: BlockSource> Volume<S> {
    /// Mounts the volume of a disk, and refuses unsupported volumes. Replays the journal left by a crash, and completes
    /// the deletions that it interrupted.
    pub async fn mount(source: S, options: MountOptions) -> Result<Volume<S>, Error> {
        Ok(Volume(Rc::new(FileSystem::mount(source, options).await?)))
    }

    /// Returns the reason why the volume is read-only, if it is.
    pub fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.store.read_only_reason()
    }

    /// Returns a copy of the current superblock.
    pub fn superblock(&self) -> Superblock {
        self.0.store.superblock()
    }

    /// Returns whether there is anything to [`sync`](Volume::sync).
    pub fn has_changes(&self) -> bool {
        self.0.store.has_changes()
    }

    /// Returns the disk.
    pub fn source(&self) -> &S {
        self.0.store.source()
    }

    /// Returns the volume's statistics.
    pub fn statistics(&self) -> VolumeStatistics {
        let store = self.0.store.statistics();
        // Block counts of a volume fit 32 bits.
        let whole = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        VolumeStatistics {
            block_bytes: self.0.store.block_bytes() as u32,
            blocks: whole(store.blocks),
            free_blocks: whole(store.free_blocks),
            reserved_blocks: whole(store.free_blocks.saturating_sub(store.available_blocks)),
            inodes: whole(store.inodes),
            free_inodes: whole(store.free_inodes),
            dirty_bytes: store.dirty_bytes + store.metadata_bytes,
            open: self.0.inodes.open_files(),
            caches: CacheStatistics {
                inodes: self.0.inodes.cache_counts(),
                numbers: self.0.blocks.cache_counts(),
                data: store.data,
            },
            limits: self.0.store.limits(),
        }
    }

    /// Returns the inode with this number; [`Error::NotFound`] if it is not in use.
    pub async fn inode(&self, number: u32) -> Result<Inode, Error> {
        self.0.admission.check_mounted()?;
        self.0.inodes.get(number).await
    }

    /// Opens a node of any kind.
    pub async fn open(&self, number: u32) -> Result<OpenFile<S>, Error> {
        self.0.admission.check_mounted()?;
        self.0.inodes.get(number).await?;
        Ok(OpenFile::new(self.0.clone(), self.0.inodes.node(number)))
    }

    /// Lists a folder from `position` on (0, or an earlier `next`): at most `limit` entries. A position inside an entry
    /// continues with the entry after it. A removed folder is empty.
    pub async fn list(&self, folder: u32, position: u64, limit: usize) -> Result<Listing, Error> {
        self.0.admission.check_mounted()?;
        let node = self.0.inodes.node(folder);
        let _content = node.content.acquire(Mode::Shared).await;
        let inode = self.0.inodes.get(folder).await?;
        if inode.links == 0 {
            return Ok(Listing { entries: Vec::<DirectoryEntry>::new(), next: None });
        }
        self.0.directories.list(&inode, position, limit).await
    }

    /// Returns the inode number of a name in a folder.
    pub async fn find(&self, folder: u32, name: &[u8]) -> Result<u32, Error> {
        self.0.admission.check_mounted()?;
        let node = self.0.inodes.node(folder);
        let _content = node.content.acquire(Mode::Shared).await;
        Ok(self.0.directories.lookup(folder, name).await?.inode)
    }

    /// Returns the inode of a name in a folder. As `find` and `inode`, but atomic.
    pub(crate) async fn look_up(&self, folder: u32, name: &[u8]) -> Result<Inode, Error> {
        let node = self.0.inodes.node(folder);
        let _content = node.content.acquire(Mode::Shared).await;
        let found = self.0.directories.lookup(folder, name).await?;
        self.0.inodes.get_linked(found.inode).await
    }

    /// Returns the target of a symbolic link: a path, relative to the folder of the link.
    pub async fn link_target(&self, link: u32) -> Result<Vec<u8>, Error> {
        self.0.admission.check_mounted()?;
        let node = self.0.inodes.node(link);
        let _content = node.content.acquire(Mode::Shared).await;
        let inode = self.0.inodes.get(link).await?;
        if inode.kind != Kind::SymbolicLink {
            return Err(Error::NotFound);
        }
        self.0.files.read_link(&inode).await
    }

    /// Commits every earlier change and waits until it is durable.
    pub async fn sync(&self) -> Result<(), Error> {
        self.0.admission.check_mounted()?;
        self.0.store.commit().await
    }

    /// Writes everything and marks the volume as cleanly unmounted. Open unlinked files are freed. If it fails, the
    /// volume stays mounted; otherwise every later request fails with [`Error::ShutDown`].
    pub async fn unmount(&self) -> Result<(), Error> {
        self.0.unmount().await
    }
}
