//! A mounted volume as clients see it.
//!
//! Key types: [`Volume`], [`Folder`], [`OpenFile`]. Operations are serialized in order of arrival; long transfers are
//! split, and others run in between. Written data is durable after [`Volume::sync`]; until then it may be in the cache,
//! and the volume is marked dirty on the disk.
//!
//! Unsupported by FAT, hence refused: links, owners, names that differ only in case. Deliberately not here:
//! permissions; the read-only attribute is stored and shown, but not enforced.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use hadris_fat::async_::FatFs;
use hadris_fat::{CacheOptions, FatKind};
use hadris_fs::{Attributes, Clock, DateTime, DirCursor, Metadata, NodeId, SetAttr};
use task_sync::{Mutex, MutexGuard};

use crate::bytes::Bytes;
use crate::cache::{Cache, CacheCounters, CacheLimits};
use crate::device::Device;
use crate::error::Error;
use crate::mounted::{Mounted, is_removed_name};
use crate::recognise::recognise;
use crate::{BlockSource, DiskError};

/// Maximum referenced nodes.
const MAX_NODES: usize = 100_000;
/// Cached positions in cluster chains, so that random access does not follow chains from the start.
const CHAIN_POSITIONS: usize = 512;
/// Cached names of one folder.
const DIRECTORY_NAMES: usize = 512;
/// Maximum bytes of a transfer between other operations.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Mount options.
#[derive(Clone, Copy)]
pub struct MountOptions {
    /// Limits of the cache.
    pub limits: CacheLimits,
    /// Whether to mount read-only.
    pub access: Access,
    /// Clock for timestamps.
    pub clock: &'static dyn Clock,
}

/// Access mode of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read-only.
    ReadOnly,
    /// Read-write if the disk is writable.
    WriteIfPossible,
}

/// File type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Folder.
    Directory,
    /// Regular file.
    File,
}

/// Attributes of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Node number, valid while the node is referenced or its name exists.
    pub number: u64,
    /// File or folder.
    pub kind: Kind,
    /// Size in bytes; 0 for a folder.
    pub size_bytes: u64,
    /// Bytes of the allocated clusters.
    pub allocated_bytes: u64,
    /// Modification time in seconds since 1970, in the time zone of the volume's clock, which FAT does not record.
    pub modified_s: i64,
    /// Access time, to the day.
    pub accessed_s: i64,
    /// Creation time.
    pub created_s: i64,
    /// Unix permission bits, derived from the read-only attribute.
    pub permissions: u32,
}

/// Attributes to change.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttributeChanges {
    /// New permission bits; without any write bit the file becomes read-only.
    pub permissions: Option<u32>,
    /// New modification time, in seconds since 1970. FAT stores even seconds from 1980 to 2107.
    pub modified_s: Option<i64>,
    /// New access time, of which FAT stores only the day.
    pub accessed_s: Option<i64>,
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name; the short one if the long one has half of a surrogate pair, which UTF-8 cannot express.
    pub name: String,
    /// File or folder.
    pub kind: Kind,
    /// Node number.
    pub number: u64,
    /// Position after this entry.
    pub position: u64,
}

/// A part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Entries.
    pub entries: Vec<Entry>,
    /// Position to continue from, if there may be more.
    pub next: Option<u64>,
}

/// Volume statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatistics {
    /// Total bytes for content and folders.
    pub size_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Cluster size in bytes.
    pub cluster_bytes: u32,
    /// FAT width: 12, 16 or 32.
    pub bits: u32,
    /// Whether the volume is read-only.
    pub is_read_only: bool,
    /// Referenced files and folders.
    pub open: u64,
    /// Volume label.
    pub label: String,
    /// Cache statistics.
    pub cache: CacheCounters,
}

/// Cleanup left by dropped handles, for the next operation.
enum Release {
    Folder(NodeId),
    File(NodeId),
}

pub(crate) struct Core<S: BlockSource> {
    /// `None` after unmounting.
    pub(crate) mounted: Mutex<Option<Mounted<S>>>,
    cache: Rc<Cache<S>>,
    releases: RefCell<Vec<Release>>,
    has_changes: Cell<bool>,
    /// Counts writes to files.
    pub(crate) writes: Cell<u64>,
    was_dirty: bool,
}

/// A mounted volume; cheap to clone.
pub struct Volume<S: BlockSource> {
    pub(crate) core: Rc<Core<S>>,
}

impl<S: BlockSource> Clone for Volume<S> {
    fn clone(&self) -> Volume<S> {
        Volume { core: Rc::clone(&self.core) }
    }
}

/// A reference to a folder; it survives renaming.
pub struct Folder<S: BlockSource> {
    pub(crate) core: Rc<Core<S>>,
    pub(crate) node: NodeId,
}

impl<S: BlockSource> Drop for Folder<S> {
    fn drop(&mut self) {
        self.core.releases.borrow_mut().push(Release::Folder(self.node));
    }
}

impl<S: BlockSource> Core<S> {
    /// Locks the volume for one operation, and first runs the cleanup of dropped handles.
    pub(crate) async fn hold(&self) -> Result<MutexGuard<'_, Option<Mounted<S>>>, Error> {
        let mut held = self.mounted.lock().await;
        let mounted = held.as_mut().ok_or(Error::ShutDown)?;
        loop {
            let next = self.releases.borrow_mut().pop();
            match next {
                None => return Ok(held),
                Some(Release::Folder(node)) => mounted.release(node),
                // An error here has no recipient: a client that cares about errors closes the file.
                Some(Release::File(node)) => drop(mounted.close(node).await),
            }
        }
    }

    pub(crate) fn release_file(&self, node: NodeId) {
        self.releases.borrow_mut().push(Release::File(node));
    }

    pub(crate) fn changes(&self) {
        self.has_changes.set(true);
    }

    pub(crate) fn writes(&self) {
        self.changes();
        self.writes.set(self.writes.get() + 1);
    }
}

/// The volume behind a lock guard.
pub(crate) fn get<'a, S: BlockSource>(
    held: &'a mut MutexGuard<'_, Option<Mounted<S>>>,
) -> Result<&'a mut Mounted<S>, Error> {
    held.as_mut().ok_or(Error::ShutDown)
}

impl<S: BlockSource> Volume<S> {
    /// Mounts the volume on a disk.
    ///
    /// # Errors
    /// Not a FAT volume, damage, or a disk error.
    pub async fn mount(source: S, options: MountOptions) -> Result<Volume<S>, Error> {
        let writable = options.access == Access::WriteIfPossible && !source.is_read_only();
        let cache = Rc::new(Cache::new(source, options.limits));
        let bytes = Bytes::over(Rc::clone(&cache));
        let mut sector = [0; hadris_fat_raw::BOOT_SECTOR_LEN];
        match bytes.read(0, &mut sector).await {
            Ok(()) => recognise(&sector)?,
            Err(DiskError::Short) => return Err(Error::NotRecognised),
            Err(error) => return Err(error.into()),
        };
        let device = Device::new(Rc::clone(&cache), writable);
        let mut settings = hadris_fs::MountOptions::new().with_clock(options.clock).with_node_limit(MAX_NODES);
        if !writable {
            settings = settings.read_only();
        }
        let fs = FatFs::mount(device, settings).await.map_err(|error| Error::from(error.into_error()))?;
        let remembered = CacheOptions::new()
            .with_chain_positions(CHAIN_POSITIONS)
            .with_blocks(0)
            .with_directory_entries(DIRECTORY_NAMES);
        let fs = fs.with_cache(remembered);
        let was_dirty = fs.was_dirty();
        let mut mounted = Mounted::new(fs);
        if writable && was_dirty {
            mounted.remove_leftovers().await?;
        }
        let core = Core {
            mounted: Mutex::new(Some(mounted)),
            cache,
            releases: RefCell::new(Vec::new()),
            has_changes: Cell::new(false),
            writes: Cell::new(0),
            was_dirty,
        };
        Ok(Volume { core: Rc::new(core) })
    }

    /// Whether the volume was not cleanly unmounted before. FAT12 does not record it.
    pub fn was_dirty(&self) -> bool {
        self.core.was_dirty
    }

    /// Whether anything was changed since the last sync.
    pub fn has_changes(&self) -> bool {
        self.core.has_changes.get() || self.core.cache.counters().unwritten_bytes > 0
    }

    /// Cache statistics.
    pub fn cache(&self) -> CacheCounters {
        self.core.cache.counters()
    }

    /// The underlying disk.
    pub fn source(&self) -> &S {
        self.core.cache.source()
    }

    /// The root folder.
    ///
    /// # Errors
    /// The volume was unmounted.
    pub async fn root(&self) -> Result<Folder<S>, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let node = mounted.fs.root();
        mounted.share(node);
        Ok(Folder { core: Rc::clone(&self.core), node })
    }

    /// Volume statistics.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn statistics(&self) -> Result<VolumeStatistics, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let room = mounted.fs.statfs().await?;
        let mut buffer = [0; 384];
        // An unreadable label is no reason to fail.
        let label = mounted.fs.label(&mut buffer).await.ok().flatten().map(String::from).unwrap_or_default();
        Ok(VolumeStatistics {
            size_bytes: room.total_bytes(),
            free_bytes: room.free_bytes(),
            cluster_bytes: room.block_size(),
            bits: match mounted.fs.info().kind() {
                FatKind::Fat12 => 12,
                FatKind::Fat16 => 16,
                _ => 32,
            },
            is_read_only: mounted.fs.is_read_only(),
            open: mounted.held() as u64,
            label,
            cache: self.core.cache.counters(),
        })
    }

    /// Writes everything to the medium, and marks the volume clean until the next change.
    ///
    /// # Errors
    /// The disk failed; unwritten data stays dirty for the next sync.
    pub async fn sync(&self) -> Result<(), Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        if mounted.fs.is_read_only() {
            return Ok(());
        }
        self.core.has_changes.set(false);
        let synced = match mounted.fs.sync().await {
            Ok(()) => Rc::clone(&self.core.cache).flush().await.map_err(Error::from),
            Err(error) => Err(Error::from(error)),
        };
        self.core.has_changes.set(synced.is_err());
        synced
    }

    /// Writes everything to the medium, marks the volume clean and unmounts it: later requests fail with
    /// [`Error::ShutDown`]. Removed files that are still open are deleted.
    ///
    /// # Errors
    /// The disk failed; the volume stays mounted.
    pub async fn unmount(&self) -> Result<(), Error> {
        {
            let mut held = self.core.hold().await?;
            let mounted = get(&mut held)?;
            if !mounted.fs.is_read_only() {
                mounted.end_removed().await?;
            }
        }
        self.sync().await?;
        let mut held = self.core.mounted.lock().await;
        self.core.cache.drain().await;
        *held = None;
        Ok(())
    }
}

/// Splits a path into its folder and last name.
fn split_last(path: &str) -> Result<(&str, &str), Error> {
    let path = path.trim_end_matches('/');
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if matches!(name, "" | "." | "..") { Err(Error::NotPermitted) } else { Ok((folder, name)) }
}

/// Whether the name is valid in FAT and allowed to clients.
fn check_new_name(name: &str) -> Result<(), Error> {
    // Other systems strip trailing dots and spaces, and would not find the name.
    let is_whole = !name.ends_with(['.', ' ']);
    let is_good = hadris_fat_raw::short_name::is_valid_long_name(name) && is_whole && !is_removed_name(name);
    if is_good { Ok(()) } else { Err(Error::BadName) }
}

impl<S: BlockSource> Folder<S> {
    /// Resolves a path relative to this folder. The caller must release the node.
    pub(crate) async fn resolve(&self, mounted: &mut Mounted<S>, path: &str) -> Result<NodeId, Error> {
        let mut node = self.node;
        mounted.share(node);
        for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
            let next = if part == ".." { Err(Error::BadName) } else { mounted.find(node, part).await };
            mounted.release(node);
            node = next?;
        }
        Ok(node)
    }

    async fn resolve_parent<'a>(&self, mounted: &mut Mounted<S>, path: &'a str) -> Result<(NodeId, &'a str), Error> {
        let (folder, name) = split_last(path)?;
        Ok((self.resolve(mounted, folder).await?, name))
    }

    /// Opens the folder at a path.
    ///
    /// # Errors
    /// No such folder.
    pub async fn folder(&self, path: &str) -> Result<Folder<S>, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let node = self.resolve(mounted, path).await?;
        match describe(mounted, node).await {
            Ok(found) if found.kind == Kind::Directory => Ok(Folder { core: Rc::clone(&self.core), node }),
            other => {
                mounted.release(node);
                other.and(Err(Error::NotADirectory))
            }
        }
    }

    /// The attributes of the file or folder at a path.
    ///
    /// # Errors
    /// No such file or folder.
    pub async fn attributes(&self, path: &str) -> Result<Node, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let node = self.resolve(mounted, path).await?;
        let found = describe(mounted, node).await;
        mounted.release(node);
        found
    }

    /// Lists at most `limit` names of the folder at a path, from `position` on, which starts at 0. Positions stay
    /// valid while names are added and removed: a name that exists throughout is listed once.
    ///
    /// # Errors
    ///
    /// No such folder.
    pub async fn list(&self, path: &str, position: u64, limit: usize) -> Result<Listing, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let folder = self.resolve(mounted, path).await?;
        let listing = list(mounted, folder, position, limit).await;
        mounted.release(folder);
        listing
    }

    /// Creates a folder in an existing one.
    ///
    /// # Errors
    /// The name exists or is invalid, or there is no space.
    pub async fn make_folder(&self, path: &str) -> Result<(), Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let (folder, name) = self.resolve_parent(mounted, path).await?;
        self.core.changes();
        let made = match check_new_name(name) {
            Ok(()) => mounted.make_folder(folder, name).await,
            Err(error) => refuse_name(mounted, folder, name, error).await,
        };
        mounted.release(folder);
        made.map(|node| mounted.release(node))
    }

    /// Removes a file's name. Open handles stay usable; the content is freed with the last one.
    ///
    /// # Errors
    /// No such file, or it is a folder. [`Error::NoSpace`]: the file is open, and neither the root nor its folder has
    /// room for a hidden name; it can be removed once it is closed.
    pub async fn remove_file(&self, path: &str) -> Result<(), Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let (folder, name) = self.resolve_parent(mounted, path).await?;
        self.core.changes();
        let removed = mounted.remove_file(folder, name).await;
        mounted.release(folder);
        removed
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// The folder is not empty or does not exist.
    pub async fn remove_folder(&self, path: &str) -> Result<(), Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let (folder, name) = self.resolve_parent(mounted, path).await?;
        self.core.changes();
        let removed = mounted.remove_folder(folder, name).await;
        mounted.release(folder);
        removed
    }

    /// Renames `from` to `to`, across folders too. A file replaces a file, a folder an empty folder.
    ///
    /// # Errors
    /// `from` does not exist, `to` cannot be replaced, or there is no space.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let (from_folder, old) = self.resolve_parent(mounted, from).await?;
        let outcome = match self.resolve_parent(mounted, to).await {
            Ok((to_folder, new)) => {
                self.core.changes();
                let renamed = match check_new_name(new) {
                    Ok(()) => mounted.rename(from_folder, old, to_folder, new).await,
                    Err(error) => Err(error),
                };
                mounted.release(to_folder);
                renamed
            }
            Err(error) => Err(error),
        };
        mounted.release(from_folder);
        outcome
    }

    /// Changes the attributes of the file or folder at a path; the root has none to change.
    ///
    /// # Errors
    /// No such file or folder.
    pub async fn set_attributes(&self, path: &str, changes: AttributeChanges) -> Result<(), Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let node = self.resolve(mounted, path).await?;
        self.core.changes();
        let changed = change(mounted, node, changes).await;
        mounted.release(node);
        changed
    }
}

/// The error for an invalid name: a file with such a name can only come from another system.
async fn refuse_name<S: BlockSource, T>(
    mounted: &mut Mounted<S>,
    folder: NodeId,
    name: &str,
    error: Error,
) -> Result<T, Error> {
    match mounted.find(folder, name).await {
        Ok(node) => {
            mounted.release(node);
            Err(Error::AlreadyExists)
        }
        Err(Error::NotADirectory) => Err(Error::NotADirectory),
        Err(_) => Err(error),
    }
}

/// The attributes of a node.
pub(crate) async fn describe<S: BlockSource>(mounted: &mut Mounted<S>, node: NodeId) -> Result<Node, Error> {
    let cluster_bytes = u64::from(mounted.fs.info().cluster_size());
    let stat = mounted.fs.stat(node).await?;
    Ok(node_of(node, &stat, cluster_bytes))
}

fn node_of(node: NodeId, stat: &Metadata, cluster_bytes: u64) -> Node {
    let seconds = |time: Option<DateTime>| time.map_or(0, |time| time.unix_seconds());
    Node {
        number: node.get(),
        kind: if stat.file_type().is_dir() { Kind::Directory } else { Kind::File },
        size_bytes: stat.len(),
        allocated_bytes: stat.len().div_ceil(cluster_bytes.max(1)) * cluster_bytes,
        modified_s: seconds(stat.modified()),
        accessed_s: seconds(stat.accessed()),
        created_s: seconds(stat.created()),
        permissions: stat.permissions().bits(),
    }
}

async fn list<S: BlockSource>(
    mounted: &mut Mounted<S>,
    folder: NodeId,
    position: u64,
    limit: usize,
) -> Result<Listing, Error> {
    let mut cursor = DirCursor::from_raw(position);
    let mut entries = Vec::new();
    while entries.len() < limit {
        let Some(found) = mounted.fs.readdir(folder, cursor).await? else {
            return Ok(Listing { entries, next: None });
        };
        cursor = found.next_cursor();
        if mounted.is_shown(found.node()) {
            let name = String::from_utf8_lossy(found.name().as_bytes()).into_owned();
            let name = match name.contains(char::REPLACEMENT_CHARACTER) {
                true => mounted.name_that_finds(folder, found.node(), name).await?,
                false => name,
            };
            entries.push(Entry {
                name,
                kind: if found.file_type().is_dir() { Kind::Directory } else { Kind::File },
                number: found.node().get(),
                position: cursor.into_raw(),
            });
        }
    }
    Ok(Listing { entries, next: Some(cursor.into_raw()) })
}

/// Permission bits as attributes: read-only without any write bit.
pub(crate) fn attributes_for(permissions: u32) -> Attributes {
    if permissions & 0o222 == 0 { Attributes::READ_ONLY } else { Attributes::NONE }
}

async fn change<S: BlockSource>(
    mounted: &mut Mounted<S>,
    node: NodeId,
    changes: AttributeChanges,
) -> Result<(), Error> {
    if node == mounted.fs.root() {
        // The root has no directory entry.
        return Ok(());
    }
    let mut wanted = SetAttr::new();
    if let Some(permissions) = changes.permissions {
        let others = mounted.fs.stat(node).await?.attributes().without(Attributes::READ_ONLY);
        wanted = wanted.with_attributes(others | attributes_for(permissions));
    }
    let time = |seconds: i64| DateTime::from_unix_seconds(seconds).unwrap_or(DateTime::UNIX_EPOCH);
    if let Some(seconds) = changes.modified_s {
        wanted = wanted.with_modified(time(seconds));
    }
    if let Some(seconds) = changes.accessed_s {
        wanted = wanted.with_accessed(time(seconds));
    }
    Ok(mounted.fs.setattr(node, &wanted).await?)
}
