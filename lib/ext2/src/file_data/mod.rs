//! Contents of files and symbolic links: reading and read-ahead here, [`write`], [`truncate`].

mod truncate;
mod write;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::Range;

use task_sync::Mode;

use crate::admission::Admission;
use crate::block_map::{BlockMap, Run};
use crate::error::Error;
use crate::format::error::{Corruption, FormatError, Problem, Structure};
use crate::format::inode::{Inode, SHORT_TARGET_BYTES};
use crate::inode::{InodeTable, Node};
use crate::orphans::OrphanList;
use crate::source::BlockSource;
use crate::store::Store;
pub use write::Partial;
pub(crate) use write::Position;

/// Maximum runs in one read-ahead window.
const MAX_RUNS_AHEAD: usize = 32;

/// Reads, writes and truncates under the content locks of inodes.
pub(crate) struct FileData<S: BlockSource> {
    store: Store<S>,
    admission: Rc<Admission<S>>,
    inodes: Rc<InodeTable<S>>,
    blocks: Rc<BlockMap<S>>,
    orphans: Rc<OrphanList<S>>,
}

impl<S: BlockSource> FileData<S> {
    pub(crate) fn new(
        store: Store<S>,
        admission: Rc<Admission<S>>,
        inodes: Rc<InodeTable<S>>,
        blocks: Rc<BlockMap<S>>,
        orphans: Rc<OrphanList<S>>,
    ) -> FileData<S> {
        FileData { store, admission, inodes, blocks, orphans }
    }

    /// Reads content, at most up to the end of the file. The content lock is held.
    pub(crate) async fn read(&self, inode: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = inode.size.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let block_bytes = self.blocks.block_bytes();
        let mut done = 0;
        while done < wanted {
            let position = offset + done as u64;
            let within = position % block_bytes;
            let blocks = (within + (wanted - done) as u64).div_ceil(block_bytes);
            let run = self.blocks.run(inode, position / block_bytes, blocks).await?;
            let run_bytes = run.blocks() * block_bytes - within;
            let bytes = usize::try_from(run_bytes).map_or(wanted - done, |bytes| bytes.min(wanted - done));
            let target = &mut buffer[done..done + bytes];
            match run {
                Run::Hole { .. } => target.fill(0),
                // Smaller than a block.
                Run::Blocks { first, .. } => self.store.read_data(first, within as usize, target).await?,
            }
            done += bytes;
        }
        Ok(wanted)
    }

    /// Starts read-ahead of a part of a file without waiting. The content lock of `node`, whose inode is passed, is
    /// held.
    pub(crate) fn read_ahead(self: &Rc<Self>, node: &Node, inode: &Inode, part: Range<u64>) {
        let block_bytes = self.blocks.block_bytes();
        let end = part.end.min(inode.size).div_ceil(block_bytes);
        let mut logical = part.start / block_bytes;
        for _ in 0..MAX_RUNS_AHEAD {
            if logical >= end {
                return;
            }
            logical += match self.blocks.cached_run(inode, logical, end - logical) {
                Some(Ok(run)) => self.load_soon(run),
                // The error shows when the block is read.
                Some(Err(_)) => return,
                None => return self.read_ahead_of_tables(node, inode, logical..end),
            };
        }
    }

    /// The same in a task, where an indirect block has to be read first.
    fn read_ahead_of_tables(self: &Rc<Self>, node: &Node, inode: &Inode, blocks: Range<u64>) {
        // The lock keeps the inode unchanged; waiting writers take precedence.
        let Some(content) = node.content.try_acquire(Mode::Shared) else { return };
        let (files, inode) = (Rc::clone(self), *inode);
        self.store.source().spawn(async move {
            let _content = content;
            let mut logical = blocks.start;
            for _ in 0..MAX_RUNS_AHEAD {
                if logical >= blocks.end {
                    return;
                }
                let Ok(run) = files.blocks.run(&inode, logical, blocks.end - logical).await else { return };
                logical += files.load_soon(run);
            }
        });
    }

    /// Starts read-ahead of a run. Returns its length.
    fn load_soon(&self, run: Run) -> u64 {
        if let Run::Blocks { first, blocks } = run {
            // Not more than a table has.
            self.store.read_ahead(first, blocks as u32);
        }
        run.blocks()
    }

    /// Returns the target of a symbolic link, whose content lock is held.
    pub(crate) async fn read_link(&self, link: &Inode) -> Result<Vec<u8>, Error> {
        let is_fast = self.blocks.is_fast_symlink(link);
        let most = if is_fast { SHORT_TARGET_BYTES - 1 } else { self.store.block_bytes() };
        // Checked to be at most a block before anything of that size is allocated.
        let bytes = usize::try_from(link.size).ok().filter(|bytes| (1..=most).contains(bytes)).ok_or({
            let problem = Problem::OutOfRange { field: "a link's size", value: link.size, least: 1, most: most as u64 };
            FormatError::Corrupt(Corruption {
                structure: Structure::Inode(link.number),
                block: link.home_block,
                problem,
            })
        })?;
        if is_fast {
            return Ok(link.short_target()[..bytes].to_vec());
        }
        let mut target = alloc::vec![0; bytes];
        self.read(link, 0, &mut target).await?;
        Ok(target)
    }
}
