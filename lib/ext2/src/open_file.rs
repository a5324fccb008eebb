//! A node that a client has open.

use alloc::rc::Rc;
use core::cell::Cell;

use crate::error::Error;
use crate::inode::Node;
use crate::lock::Hold;
use crate::mapping::Run;
use crate::operations::{Partial, Position};
use crate::source::BlockSource;
use crate::volume::{Core, Volume};
use crate::wire::inode::{Inode, Kind};

/// Bytes that are read ahead when sequential reading is first seen.
const FIRST_WINDOW: u64 = 64 << 10;
/// Runs that one window of reading ahead has at most.
const MOST_RUNS_AHEAD: usize = 32;

/// An open node. It keeps its number and content, also when it has lost its last name, until this is dropped.
pub struct OpenFile<S: BlockSource> {
    core: Rc<Core<S>>,
    node: Rc<Node>,
    reading: Cell<Reading>,
    is_closed: Cell<bool>,
}

/// How a client reads a file.
#[derive(Clone, Copy, Default)]
struct Reading {
    /// Where the last read ended.
    next: u64,
    /// Up to where has been read ahead.
    ahead: u64,
    /// Bytes to read ahead next; 0 while reading is not sequential.
    window: u64,
}

impl<S: BlockSource> Volume<S> {
    /// Opens a node of any kind.
    pub async fn open(&self, number: u32) -> Result<OpenFile<S>, Error> {
        self.0.check_alive()?;
        self.0.inode(number).await?;
        Ok(OpenFile::new(self.0.clone(), self.0.node(number)))
    }
}

impl<S: BlockSource> Core<S> {
    /// The inode of a node that is open.
    pub(crate) async fn open_inode(&self, node: &Node) -> Result<Inode, Error> {
        if node.is_gone.get() { Err(Error::NotFound) } else { self.any_inode(node.number).await }
    }

    /// Reads content up to the file's end. The lock is held.
    pub(crate) async fn read_content(&self, inode: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = inode.size.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let block_bytes = self.block_bytes();
        let mut done = 0;
        while done < wanted {
            let position = offset + done as u64;
            let within = position % block_bytes;
            let blocks = (within + (wanted - done) as u64).div_ceil(block_bytes);
            let run = self.run(inode, position / block_bytes, blocks).await?;
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

    /// Has the disk load a part of a file that will be wanted. What cannot be read now shows when it is. Waits at
    /// most for a table, which is wanted as well.
    async fn read_ahead(&self, inode: &Inode, start: u64, end: u64) {
        let block_bytes = self.block_bytes();
        let (mut logical, end) = (start / block_bytes, end.min(inode.size).div_ceil(block_bytes));
        for _ in 0..MOST_RUNS_AHEAD {
            if logical >= end {
                return;
            }
            let Ok(run) = self.run(inode, logical, end - logical).await else { return };
            if let Run::Blocks { first, blocks } = run {
                // Not more than a table has.
                self.store.read_ahead(first, blocks as u32);
            }
            logical += run.blocks();
        }
    }
}

impl<S: BlockSource> OpenFile<S> {
    pub(crate) fn new(core: Rc<Core<S>>, node: Rc<Node>) -> OpenFile<S> {
        node.opens.set(node.opens.get() + 1);
        OpenFile { core, node, reading: Cell::default(), is_closed: Cell::new(false) }
    }

    /// The inode's number.
    pub fn number(&self) -> u32 {
        self.node.number
    }

    /// The inode as it is.
    pub async fn inode(&self) -> Result<Inode, Error> {
        self.core.check_alive()?;
        self.core.open_inode(&self.node).await
    }

    /// Reads a file's bytes from `offset` on into `buffer`: as many as fit or as there are. A client that reads on
    /// where it ended has the disk read ahead.
    pub async fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.core.check_alive()?;
        let _content = self.node.content.acquire(Hold::Shared).await;
        let inode = self.core.open_inode(&self.node).await?;
        if inode.kind != Kind::File {
            return Err(Error::NotAFile);
        }
        if let Some((start, end)) = self.note_reading(&inode, offset, buffer.len() as u64) {
            self.core.read_ahead(&inode, start, end).await;
        }
        self.core.read_content(&inode, offset, buffer).await
    }

    /// Notes a read. Gives what to read ahead, if it is time.
    fn note_reading(&self, inode: &Inode, offset: u64, bytes: u64) -> Option<(u64, u64)> {
        let most = self.core.store.limits().read_ahead_bytes as u64;
        let end = offset.saturating_add(bytes);
        let mut reading = self.reading.get();
        if offset != reading.next || bytes == 0 {
            self.reading.set(Reading { next: end, ahead: end, window: 0 });
            return None;
        }
        reading.next = end;
        let mut wanted = None;
        // Before half of what was read ahead is left, the next part is asked for.
        let is_due = reading.ahead.saturating_sub(end) <= reading.window / 2;
        if end < inode.size && is_due && most > 0 {
            reading.window = (reading.window * 2).clamp(FIRST_WINDOW.min(most), most);
            let start = reading.ahead.max(end);
            reading.ahead = start.saturating_add(reading.window);
            wanted = Some((start, reading.ahead));
        }
        self.reading.set(reading);
        wanted
    }

    /// Writes bytes at an offset. What lies between the end of the file and there reads as zeros.
    pub async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Partial> {
        self.core.write(&self.node, Position::At(offset), bytes).await.map(|_| ())
    }

    /// Writes bytes at the end of the file. Gives where that was.
    pub async fn append(&self, bytes: &[u8]) -> Result<u64, Partial> {
        self.core.write(&self.node, Position::End, bytes).await
    }

    /// Cuts the file to so many bytes, or makes it longer with zeros that take no room.
    pub async fn set_size(&self, bytes: u64) -> Result<(), Error> {
        self.core.set_size(&self.node, bytes).await
    }

    /// Closes the file. If it was the last to have one open that has no name, its room is free afterwards.
    pub async fn close(self) -> Result<(), Error> {
        let (core, number) = (self.core.clone(), self.node.number);
        let is_last = self.let_go();
        core::mem::drop(self);
        if is_last { core.release(number).await } else { Ok(()) }
    }

    /// Counts the file as closed. Gives whether it has to be freed.
    fn let_go(&self) -> bool {
        let opens = self.node.opens.get();
        // It was let go of before.
        if self.is_closed.replace(true) {
            return false;
        }
        self.node.opens.set(opens.saturating_sub(1));
        opens == 1 && !self.node.is_gone.get() && self.core.is_orphan(self.node.number)
    }
}

impl<S: BlockSource> Drop for OpenFile<S> {
    fn drop(&mut self) {
        if self.let_go() {
            let (core, number) = (self.core.clone(), self.node.number);
            // What is left of the content otherwise goes at the next mount.
            self.core.store.source().spawn(async move {
                let _ = core.release(number).await;
            });
        }
    }
}
