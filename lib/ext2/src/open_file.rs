//! A node that a client has open.

use alloc::rc::Rc;
use core::cell::Cell;
use core::ops::Range;

use task_sync::Mode;

use crate::error::Error;
use crate::inode::Node;
use crate::mapping::Run;
use crate::operations::{Partial, Position};
use crate::source::BlockSource;
use crate::volume::{Core, Volume};
use crate::wire::inode::{Inode, Kind};

/// Bytes that are read ahead when sequential reading is first seen.
const FIRST_WINDOW: u64 = 64 << 10;
/// Blocks of a run that is remembered for the requests that come next, at most.
const MAX_REMEMBERED: u64 = 256;
/// Runs that one window of reading ahead has at most.
const MAX_RUNS_AHEAD: usize = 32;

/// An open node. It keeps its number and content, also when it has lost its last name, until this is dropped.
pub struct OpenFile<S: BlockSource> {
    core: Rc<Core<S>>,
    node: Rc<Node>,
    reading: Cell<Reading>,
    remembered: Cell<Option<ReadExtent>>,
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
    /// Where the request ends that is read.
    request_end: u64,
}

/// What a file was found to be while its content was held, for requests that read on: it is so as long as nobody has held
/// the content alone.
#[derive(Clone, Copy)]
struct ReadExtent {
    exclusive_holds: u64,
    /// Bytes of the file.
    size: u64,
    /// Bytes of the file that are one piece of the volume, which begins with block `first`.
    bytes: (u64, u64),
    first: u32,
}

/// A request to read, and the part of it that is being read.
struct Request {
    part: Range<u64>,
    end: u64,
}

impl<S: BlockSource> Volume<S> {
    /// Opens a node of any kind.
    pub async fn open(&self, number: u32) -> Result<OpenFile<S>, Error> {
        self.0.check_alive()?;
        self.0.inodes.get(number).await?;
        Ok(OpenFile::new(self.0.clone(), self.0.inodes.node(number)))
    }
}

impl<S: BlockSource> Core<S> {
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

    /// Has the disk load a part of a file that will be wanted, without waiting for anything. The content of `node`,
    /// whose inode this is, is held.
    fn read_ahead(self: &Rc<Self>, node: &Node, inode: &Inode, part: Range<u64>) {
        let block_bytes = self.block_bytes();
        let end = part.end.min(inode.size).div_ceil(block_bytes);
        let mut logical = part.start / block_bytes;
        for _ in 0..MAX_RUNS_AHEAD {
            if logical >= end {
                return;
            }
            logical += match self.known_run(inode, logical, end - logical) {
                Some(Ok(run)) => self.load_soon(run),
                // What cannot be read now shows when it is.
                Some(Err(_)) => return,
                None => return self.read_ahead_of_tables(node, inode, logical..end),
            };
        }
    }

    /// The same from a block on whose table has to be read first.
    fn read_ahead_of_tables(self: &Rc<Self>, node: &Node, inode: &Inode, blocks: Range<u64>) {
        // The inode stays as it is while the content is held; who waits to change it comes first.
        let Some(content) = node.content.try_acquire(Mode::Shared) else { return };
        let (core, inode) = (Rc::clone(self), *inode);
        self.store.source().spawn(async move {
            let _content = content;
            let mut logical = blocks.start;
            for _ in 0..MAX_RUNS_AHEAD {
                if logical >= blocks.end {
                    return;
                }
                let Ok(run) = core.run(&inode, logical, blocks.end - logical).await else { return };
                logical += core.load_soon(run);
            }
        });
    }

    /// Has the disk load a run. Gives its blocks.
    fn load_soon(&self, run: Run) -> u64 {
        if let Run::Blocks { first, blocks } = run {
            // Not more than a table has.
            self.store.read_ahead(first, blocks as u32);
        }
        run.blocks()
    }
}

impl<S: BlockSource> OpenFile<S> {
    pub(crate) fn new(core: Rc<Core<S>>, node: Rc<Node>) -> OpenFile<S> {
        node.opens.set(node.opens.get() + 1);
        OpenFile { core, node, reading: Cell::default(), remembered: Cell::new(None), is_closed: Cell::new(false) }
    }

    /// The inode's number.
    pub fn number(&self) -> u32 {
        self.node.number
    }

    /// The inode as it is.
    pub async fn inode(&self) -> Result<Inode, Error> {
        self.core.check_alive()?;
        self.core.inodes.get_open(&self.node).await
    }

    /// Reads a file's bytes from `offset` on into `buffer`: as many as fit or as there are. A client that reads on
    /// where it ended has the disk read ahead.
    pub async fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.core.check_alive()?;
        let _content = self.node.content.acquire(Mode::Shared).await;
        let max_ahead = self.core.store.limits().read_ahead_bytes;
        let is_known = self.read_remembered(offset, buffer);
        if is_known {
            let part = offset..offset + buffer.len() as u64;
            let request = Request { end: part.end, part };
            let size = self.remembered.get().map_or(0, |known| known.size);
            if let Some(ahead) = self.note_reading(size, request, max_ahead as u64) {
                let inode = self.core.inodes.get_open(&self.node).await?;
                self.core.read_ahead(&self.node, &inode, ahead);
            }
            return Ok(buffer.len());
        }
        let inode = self.core.inodes.get_open(&self.node).await?;
        if inode.kind != Kind::File {
            return Err(Error::NotAFile);
        }
        // The disk is at work on the next part of a large request while one is copied.
        let part_bytes = if max_ahead == 0 { buffer.len() } else { max_ahead.div_ceil(2) };
        let request_end = offset.saturating_add(buffer.len() as u64);
        let mut done = 0;
        for part in buffer.chunks_mut(part_bytes.max(1)) {
            let start = offset.saturating_add(done as u64);
            let request = Request { part: start..start.saturating_add(part.len() as u64), end: request_end };
            if let Some(ahead) = self.note_reading(inode.size, request, max_ahead as u64) {
                self.core.read_ahead(&self.node, &inode, ahead);
            }
            let wanted = part.len();
            let bytes = self.core.read_content(&inode, start, part).await?;
            done += bytes;
            if bytes < wanted {
                break;
            }
        }
        if self.reading.get().window > 0 {
            self.remember(&inode, offset);
        }
        Ok(done)
    }

    /// Reads what one line of the cache has of a piece that is remembered. False where it has not, or not all; then the
    /// buffer may hold anything. The content is held.
    fn read_remembered(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(known) = self.remembered.get() else { return false };
        let end = offset.saturating_add(buffer.len() as u64);
        let is_inside = known.bytes.0 <= offset && end <= known.bytes.1 && end <= known.size;
        if !is_inside || known.exclusive_holds != self.node.content.exclusive_holds() || self.node.is_gone.get() {
            return false;
        }
        let (block_bytes, distance) = (self.core.block_bytes(), offset - known.bytes.0);
        // Both fit: the run was checked to lie in the volume, and the rest is smaller than a block.
        let first = known.first + (distance / block_bytes) as u32;
        self.core.store.read_cached(first, (distance % block_bytes) as usize, buffer)
    }

    /// Remembers the piece of the volume from here on for requests that come next. The content is held.
    fn remember(&self, inode: &Inode, offset: u64) {
        let block_bytes = self.core.block_bytes();
        let logical = offset / block_bytes;
        let start = logical * block_bytes;
        self.remembered.set(match self.core.known_run(inode, logical, MAX_REMEMBERED) {
            Some(Ok(Run::Blocks { first, blocks })) => Some(ReadExtent {
                exclusive_holds: self.node.content.exclusive_holds(),
                size: inode.size,
                bytes: (start, start.saturating_add(blocks * block_bytes)),
                first,
            }),
            _ => None,
        });
    }

    /// Notes that a part of a request is read. Gives what to read ahead, if it is time.
    fn note_reading(&self, file_bytes: u64, request: Request, most: u64) -> Option<Range<u64>> {
        let Request { part, end: request_end } = request;
        let mut reading = self.reading.get();
        let is_next = part.start == reading.next;
        if !is_next {
            reading = Reading { next: part.end, ahead: part.end, window: 0, request_end };
        }
        // A request that goes on where the one before ended, and all of its parts.
        let is_sequential = is_next && (reading.window > 0 || request_end != reading.request_end);
        reading.next = part.end;
        reading.request_end = request_end;
        let start = reading.ahead.max(part.end);
        // Before half of what was read ahead is left, the next part is asked for.
        if is_sequential && start - part.end <= reading.window / 2 {
            reading.window = (reading.window * 2).clamp(FIRST_WINDOW.min(most), most);
            reading.ahead = start.saturating_add(reading.window);
        }
        // The rest of the request is wanted in any case.
        reading.ahead = reading.ahead.max(start).max(request_end.min(part.end.saturating_add(most)));
        self.reading.set(reading);
        (part.end < file_bytes && start < reading.ahead && most > 0).then_some(start..reading.ahead)
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
