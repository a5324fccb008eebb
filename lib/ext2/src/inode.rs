//! The inode table of a mounted volume: cached inodes, and the state of inodes in use.
//!
//! The authoritative copy of an inode is its slot in the inode table's block, which the write set holds once it was
//! changed. The cache holds copies, replaced at every change. A change is a read-modify-write of the slot without an
//! await in between, so two tasks cannot lose each other's updates. Not here: the order of locks, see
//! [`file_system`](crate::file_system).

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use task_sync::RwLock;

use crate::cache::{Cache, CacheCounts};
use crate::error::Error;
use crate::format::attributes;
use crate::format::error::{Problem, Structure};
use crate::format::inode::{self, Inode, flag};
use crate::source::BlockSource;
use crate::store::{Change, Store};

/// Bytes charged for a cached inode, including its share of the cache's map.
const INODE_COST: usize = size_of::<Inode>() + 64;
/// Minimum number of inodes in use before dead entries are swept.
const MIN_SWEEP: usize = 64;

/// [`Error::Protected`] if the inode is immutable or append-only.
pub(crate) fn check_unprotected(inode: &Inode) -> Result<(), Error> {
    if inode.flags & (flag::IMMUTABLE | flag::APPEND_ONLY) != 0 { Err(Error::Protected) } else { Ok(()) }
}

/// In-memory state of an inode in use.
pub(crate) struct Node {
    pub(crate) number: u32,
    /// Held shared to read content or directory entries, exclusively to change them.
    pub(crate) content: RwLock,
    /// Number of open files of this inode.
    pub(crate) opens: Cell<u32>,
    /// Set when the inode was freed while open; its number may have been reused.
    pub(crate) is_gone: Cell<bool>,
}

/// Location of an inode on the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InodePlace {
    pub(crate) number: u32,
    block: u32,
    start: usize,
}

/// Inodes in use, by number.
#[derive(Default)]
struct Nodes {
    nodes: BTreeMap<u32, Weak<Node>>,
    /// Size of the map at which dead entries are swept.
    sweep_at: usize,
}

impl Nodes {
    fn get(&self, number: u32) -> Option<Rc<Node>> {
        self.nodes.get(&number).and_then(Weak::upgrade)
    }

    fn insert(&mut self, number: u32, node: &Rc<Node>) {
        self.nodes.insert(number, Rc::downgrade(node));
        if self.nodes.len() > self.sweep_at {
            self.nodes.retain(|_, node| node.strong_count() > 0);
            self.sweep_at = (self.nodes.len() * 2).max(MIN_SWEEP);
        }
    }
}

/// Owns the inode cache and the state of inodes in use.
pub(crate) struct InodeTable<S: BlockSource> {
    store: Store<S>,
    cache: RefCell<Cache<u32, Inode>>,
    nodes: RefCell<Nodes>,
    has_seen_attributes: Cell<bool>,
}

impl<S: BlockSource> InodeTable<S> {
    /// `cache_bytes` is the capacity of the inode cache.
    pub(crate) fn new(store: Store<S>, cache_bytes: usize) -> InodeTable<S> {
        InodeTable {
            store,
            cache: RefCell::new(Cache::new(cache_bytes)),
            nodes: RefCell::default(),
            has_seen_attributes: Cell::new(false),
        }
    }

    /// Counters of the inode cache.
    pub(crate) fn cache_counts(&self) -> CacheCounts {
        self.cache.borrow().counts()
    }

    /// Returns whether any inode read since the mount had extended attributes.
    pub(crate) fn has_seen_attributes(&self) -> bool {
        self.has_seen_attributes.get()
    }

    /// The in-memory state of an inode, created if it is not in use.
    pub(crate) fn node(&self, number: u32) -> Rc<Node> {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(node) = nodes.get(number) {
            return node;
        }
        let node = Rc::new(Node { number, content: RwLock::default(), opens: Cell::new(0), is_gone: Cell::new(false) });
        nodes.insert(number, &node);
        node
    }

    /// Number of open files of an inode.
    fn opens(&self, number: u32) -> u32 {
        self.nodes.borrow().get(number).map_or(0, |node| node.opens.get())
    }

    /// Number of open files of all inodes.
    pub(crate) fn open_files(&self) -> u32 {
        self.nodes.borrow().nodes.values().filter_map(Weak::upgrade).map(|node| node.opens.get()).sum()
    }

    /// Disconnects the open files of an unlinked inode. The caller holds its content lock exclusively.
    pub(crate) fn revoke(&self, node: &Node) {
        if self.cache.borrow_mut().get(node.number).is_none_or(|inode| inode.links == 0) {
            node.is_gone.set(true);
            self.nodes.borrow_mut().nodes.remove(&node.number);
        }
    }

    /// The inode of a node; [`Error::NotFound`] if it was revoked.
    pub(crate) async fn get_open(&self, node: &Node) -> Result<Inode, Error> {
        if node.is_gone.get() { Err(Error::NotFound) } else { self.get_any(node.number).await }
    }

    /// The inode with this number if it is linked or open, else [`Error::NotFound`].
    pub(crate) async fn get(&self, number: u32) -> Result<Inode, Error> {
        let inode = self.get_any(number).await?;
        if inode.links == 0 && self.opens(number) == 0 { Err(Error::NotFound) } else { Ok(inode) }
    }

    /// The inode that a directory entry refers to. An unused one is corruption.
    pub(crate) async fn get_linked(&self, number: u32) -> Result<Inode, Error> {
        let inode = self.get_any(number).await?;
        if inode.links == 0 {
            let problem = Problem::Missing("a name (the link count is 0, so the inode is not in use)");
            return Err(Error::corrupt(Structure::Inode(number), inode.home_block, problem));
        }
        Ok(inode)
    }

    /// The inode with this number, used or not.
    pub(crate) async fn get_any(&self, number: u32) -> Result<Inode, Error> {
        let cached = self.cache.borrow_mut().get(number);
        if let Some(inode) = cached {
            return Ok(inode);
        }
        let place = self.place(number).await?;
        let inode = self.store.read_block(place.block, |block| self.parse(&place, block)).await??;
        self.cache.borrow_mut().insert(number, inode, INODE_COST);
        Ok(inode)
    }

    /// Removes an inode from the cache.
    pub(crate) fn forget(&self, number: u32) {
        self.cache.borrow_mut().remove(number);
    }

    /// Locates an inode. The reserved ones other than the root are rejected.
    async fn place(&self, number: u32) -> Result<InodePlace, Error> {
        let geometry = self.store.geometry();
        if number != crate::ROOT_INODE && (number < geometry.first_inode || number > geometry.inodes) {
            let (value, least, most) = (number.into(), geometry.first_inode.into(), geometry.inodes.into());
            let problem = Problem::OutOfRange { field: "its number", value, least, most };
            return Err(Error::corrupt(Structure::Inode(number), geometry.first_data_block.into(), problem));
        }
        let (block, start) = self.store.allocator().inode_place(number).await?;
        Ok(InodePlace { number, block, start })
    }

    fn parse(&self, place: &InodePlace, block: &[u8]) -> Result<Inode, Error> {
        let home_block = u64::from(place.block);
        let geometry = self.store.geometry();
        let damaged = |problem| Error::corrupt(Structure::Inode(place.number), home_block, problem);
        let end = place.start + geometry.inode_bytes as usize;
        let bytes = block.get(place.start..end).ok_or(damaged(Problem::Missing("its end")))?;
        let view = inode::View::new(bytes).ok_or(damaged(Problem::Missing("its end")))?;
        let mut inode = Inode::parse_any(place.number, home_block, &view, geometry.max_file_bytes).map_err(damaged)?;
        inode.has_inline_attributes = attributes::inline_start(bytes).is_some();
        if inode.has_extended_attributes() {
            self.has_seen_attributes.set(true);
        }
        Ok(inode)
    }

    /// Adds an inode's block to the change, so that [`InodeTable::change`] cannot fail for lack of it.
    pub(crate) async fn fetch(&self, change: &Change<S>, number: u32) -> Result<InodePlace, Error> {
        let place = self.place(number).await?;
        self.store.fetch_block(change, place.block).await?;
        Ok(place)
    }

    /// Changes an inode that was [fetched](InodeTable::fetch).
    pub(crate) fn change(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        with: impl FnOnce(&mut Inode),
    ) -> Result<Inode, Error> {
        let inode = self.store.change_block(change, place.block, |block| {
            let mut inode = self.parse(place, block)?;
            with(&mut inode);
            inode.store(self.slot(place, block));
            if inode.attribute_block != 0 {
                self.has_seen_attributes.set(true);
            }
            Ok::<Inode, Error>(inode)
        })??;
        self.cache.borrow_mut().insert(place.number, inode, INODE_COST);
        Ok(inode)
    }

    /// Writes a new inode to a slot that was [fetched](InodeTable::fetch).
    pub(crate) fn write_new(&self, change: &Change<S>, place: &InodePlace, inode: &Inode) -> Result<Inode, Error> {
        let inode = Inode { number: place.number, home_block: place.block.into(), ..*inode };
        self.store.change_block(change, place.block, |block| inode.store_new(self.slot(place, block)))?;
        self.cache.borrow_mut().insert(place.number, inode, INODE_COST);
        Ok(inode)
    }

    /// Changes the raw bytes of an inode that was [fetched](InodeTable::fetch), but not its parsed fields.
    pub(crate) fn change_bytes(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        with: impl FnOnce(&mut [u8]),
    ) -> Result<(), Error> {
        self.store.change_block(change, place.block, |block| with(self.slot(place, block)))?;
        self.change(change, place, |_| ()).map(drop)
    }

    /// Reads the raw bytes of an inode.
    pub(crate) async fn read_bytes<R>(&self, number: u32, look: impl FnOnce(&[u8]) -> R) -> Result<R, Error> {
        let place = self.place(number).await?;
        let end = place.start + self.store.geometry().inode_bytes as usize;
        self.store.read_block(place.block, |block| look(block.get(place.start..end).unwrap_or(&[]))).await
    }

    fn slot<'a>(&self, place: &InodePlace, block: &'a mut [u8]) -> &'a mut [u8] {
        // `place` locates whole inodes.
        &mut block[place.start..][..self.store.geometry().inode_bytes as usize]
    }
}
