//! Creating files, directories and symbolic links.

use alloc::rc::Rc;
use alloc::vec::Vec;

use task_sync::Mode;

use super::{MAX_NAMES, Namespace, check_name};
use crate::directory::change::{INSERT_BLOCKS, INSERT_NEW_BLOCKS};
use crate::error::Error;
use crate::format::directory::{self, NewEntry, needed_bytes};
use crate::format::error::{Problem, Structure};
use crate::format::inode::{BLOCK_NUMBERS, Inode, Kind, SHORT_TARGET_BYTES};
use crate::inode::Node;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum metadata blocks that a creation changes: besides the entry, the inode's bitmap and block, the content's
/// bitmap and block.
const CREATE_BLOCKS: usize = INSERT_BLOCKS + 3 + 3;

/// Kind of the node to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewKind<'a> {
    /// An empty file.
    File,
    /// An empty folder.
    Directory,
    /// A link with this target: 1 byte to a block less one, none of them zero.
    SymbolicLink(&'a [u8]),
}

/// A node to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode<'a> {
    /// Kind of the node.
    pub kind: NewKind<'a>,
    /// Permission bits (12).
    pub permissions: u16,
    /// User ID of the owner.
    pub owner: u32,
    /// Group ID of the owner.
    pub group: u32,
}

impl NewKind<'_> {
    fn kind(self) -> Kind {
        match self {
            NewKind::File => Kind::File,
            NewKind::Directory => Kind::Directory,
            NewKind::SymbolicLink(_) => Kind::SymbolicLink,
        }
    }
}

/// Allocations of a creation so far.
#[derive(Default)]
struct Taken {
    inode: Option<(u32, bool)>,
    blocks: Vec<u32>,
}

impl<S: BlockSource> Namespace<S> {
    pub(crate) async fn create(&self, folder: u32, name: &[u8], new: &NewNode<'_>) -> Result<(Inode, Rc<Node>), Error> {
        self.admission.check_writable()?;
        check_name(name)?;
        self.check_target(new.kind)?;
        let _namespace = self.lock().await;
        let folder_node = self.inodes.node(folder);
        let _content = folder_node.content.acquire(Mode::Exclusive).await;
        self.admission.check_writable()?;
        let parent = self.open_folder(folder).await?;
        if self.directories.find(&parent, name).await?.is_some() {
            return Err(Error::AlreadyExists);
        }
        if new.kind == NewKind::Directory && parent.links >= MAX_NAMES {
            return Err(Error::TooManyNames);
        }
        let change = self.store.begin_for(CREATE_BLOCKS, INSERT_NEW_BLOCKS + 1).await?;
        let mut taken = Taken::default();
        match self.make(&change, &parent, name, new, &mut taken).await {
            Ok(inode) => Ok((inode, self.inodes.node(inode.number))),
            Err(error) => {
                self.take_back(&change, taken).await;
                Err(error)
            }
        }
    }

    fn check_target(&self, kind: NewKind<'_>) -> Result<(), Error> {
        let NewKind::SymbolicLink(target) = kind else { return Ok(()) };
        if target.is_empty() || target.contains(&0) {
            return Err(Error::BadName);
        }
        // Linux reads a target into a block and appends a zero.
        if target.len() >= self.store.block_bytes() { Err(Error::NameTooLong) } else { Ok(()) }
    }

    async fn make(
        &self,
        change: &Change<S>,
        parent: &Inode,
        name: &[u8],
        new: &NewNode<'_>,
        taken: &mut Taken,
    ) -> Result<Inode, Error> {
        let kind = new.kind.kind();
        let is_folder = kind == Kind::Directory;
        let number = self.store.allocator().allocate_inode(change, parent.number, is_folder).await?;
        taken.inode = Some((number, is_folder));
        let parent_place = self.inodes.fetch(change, parent.number).await?;
        let place = self.inodes.fetch(change, number).await?;
        if let Ok(inode) = self.inodes.get_any(number).await
            && inode.links > 0
        {
            // The bitmap is wrong. The inode stays marked as used.
            taken.inode = None;
            let group = self.store.geometry().group_of_inode(number);
            let problem = Problem::Missing("the bit of an inode that is in use");
            return Err(Error::corrupt(Structure::InodeBitmap(group), inode.home_block, problem));
        }
        let mut inode = self.new_inode(number, new);
        self.make_content(change, new.kind, &mut inode, taken).await?;
        let entry = NewEntry { inode: number, kind: kind.entry_number(), name };
        let insertion = self.directories.plan_insertion(change, parent, &entry).await?;
        if is_folder {
            let content = self.folder_content(number, parent.number);
            self.store.create(change, inode.blocks[0], |block| block.copy_from_slice(&content))?;
        }
        let inode = self.inodes.write_new(change, &place, &inode)?;
        self.directories.insert_entry(change, &parent_place, &insertion, &entry)?;
        if is_folder {
            self.inodes.change(change, &parent_place, |parent| parent.links += 1)?;
        }
        Ok(inode)
    }

    fn new_inode(&self, number: u32, new: &NewNode<'_>) -> Inode {
        let now = self.store.now_s();
        let kind = new.kind.kind();
        Inode {
            number,
            home_block: 0,
            kind,
            permissions: new.permissions & 0o7777,
            owner: new.owner,
            group: new.group,
            size: 0,
            accessed: now,
            changed: now,
            modified: now,
            links: if kind == Kind::Directory { 2 } else { 1 },
            sectors: 0,
            flags: 0,
            deleted: 0,
            attribute_block: 0,
            has_inline_attributes: false,
            blocks: [0; BLOCK_NUMBERS],
        }
    }

    /// Allocates the block of a directory or slow symlink, and writes the link's target.
    async fn make_content(
        &self,
        change: &Change<S>,
        kind: NewKind<'_>,
        inode: &mut Inode,
        taken: &mut Taken,
    ) -> Result<(), Error> {
        match kind {
            NewKind::File => return Ok(()),
            NewKind::SymbolicLink(target) if target.len() < SHORT_TARGET_BYTES => {
                inode.set_short_target(target);
                inode.size = target.len() as u64;
                return Ok(());
            }
            NewKind::Directory => inode.size = self.store.block_bytes() as u64,
            NewKind::SymbolicLink(target) => inode.size = target.len() as u64,
        }
        let goal = self.store.geometry().inode_goal(inode.number);
        let (block, _) = self.store.allocator().allocate_blocks(change, goal, 1).await?;
        taken.blocks.push(block);
        inode.blocks[0] = block;
        inode.sectors = self.store.geometry().block_sectors();
        match kind {
            NewKind::SymbolicLink(target) => self.store.write_data(block, 0, target, true).await,
            _ => Ok(()),
        }
    }

    /// The block of a new directory, with `.` and `..`.
    fn folder_content(&self, number: u32, parent: u32) -> Vec<u8> {
        let mut block = alloc::vec![0; self.store.block_bytes()];
        let (itself, above) = block.split_at_mut(needed_bytes(1));
        let kind = Kind::Directory.entry_number();
        directory::write(itself, &NewEntry { inode: number, kind, name: b"." }, self.directories.entry_format());
        directory::write(above, &NewEntry { inode: parent, kind, name: b".." }, self.directories.entry_format());
        block
    }

    /// Frees the allocations of a failed creation. Blocks that cannot be freed leak until the next check.
    async fn take_back(&self, change: &Change<S>, taken: Taken) {
        for block in taken.blocks {
            let _ = self.store.allocator().free_blocks(change, block, 1).await;
        }
        if let Some((number, is_folder)) = taken.inode {
            let _ = self.store.allocator().free_inode(change, number, is_folder).await;
        }
    }
}
