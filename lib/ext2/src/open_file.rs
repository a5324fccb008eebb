//! Open files, and the read-ahead window of each.

use alloc::rc::Rc;
use core::cell::Cell;
use core::ops::Range;

use task_sync::Mode;

use crate::block_map::Run;
use crate::error::Error;
use crate::file_data::{Partial, Position};
use crate::file_system::FileSystem;
use crate::format::inode::{Inode, Kind};
use crate::inode::Node;
use crate::source::BlockSource;

/// Initial read-ahead window in bytes, when sequential reading is detected.
const FIRST_WINDOW: u64 = 64 << 10;
/// Maximum blocks of a run cached for subsequent requests.
const MAX_REMEMBERED: u64 = 256;

/// An open node. It keeps its number and content, even without links, until this is dropped.
pub struct OpenFile<S: BlockSource> {
    file_system: Rc<FileSystem<S>>,
    node: Rc<Node>,
    reading: Cell<Reading>,
    remembered: Cell<Option<ReadExtent>>,
    is_closed: Cell<bool>,
}

/// Access pattern of a client.
#[derive(Clone, Copy, Default)]
struct Reading {
    /// End of the last read.
    next: u64,
    /// End of the read-ahead so far.
    ahead: u64,
    /// Bytes to read ahead next; 0 while access is not sequential.
    window: u64,
    /// End of the current request.
    request_end: u64,
}

/// Snapshot of a file's inode, for requests that continue a read: valid until the content lock is held exclusively.
#[derive(Clone, Copy)]
struct ReadExtent {
    exclusive_holds: u64,
    /// Size of the file in bytes.
    size: u64,
    /// Byte range of the file that is contiguous on the volume, from block `first` on.
    bytes: (u64, u64),
    first: u32,
}

/// A read request, and its current part.
struct Request {
    part: Range<u64>,
    end: u64,
}

impl<S: BlockSource> OpenFile<S> {
    pub(crate) fn new(file_system: Rc<FileSystem<S>>, node: Rc<Node>) -> OpenFile<S> {
        node.opens.set(node.opens.get() + 1);
        OpenFile {
            file_system,
            node,
            reading: Cell::default(),
            remembered: Cell::new(None),
            is_closed: Cell::new(false),
        }
    }

    /// Returns the inode number.
    pub fn number(&self) -> u32 {
        self.node.number
    }

    /// Returns the current inode.
    pub async fn inode(&self) -> Result<Inode, Error> {
        self.file_system.admission.check_mounted()?;
        self.file_system.inodes.get_open(&self.node).await
    }

    /// Reads a file's bytes from `offset` on into `buffer`: as many as fit or exist. Sequential reads trigger
    /// read-ahead.
    pub async fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.file_system.admission.check_mounted()?;
        let _content = self.node.content.acquire(Mode::Shared).await;
        let max_ahead = self.file_system.store.limits().read_ahead_bytes;
        let is_known = self.read_remembered(offset, buffer);
        if is_known {
            let part = offset..offset + buffer.len() as u64;
            let request = Request { end: part.end, part };
            let size = self.remembered.get().map_or(0, |known| known.size);
            if let Some(ahead) = self.note_reading(size, request, max_ahead as u64) {
                let inode = self.file_system.inodes.get_open(&self.node).await?;
                self.file_system.files.read_ahead(&self.node, &inode, ahead);
            }
            return Ok(buffer.len());
        }
        let inode = self.file_system.inodes.get_open(&self.node).await?;
        if inode.kind != Kind::File {
            return Err(Error::NotAFile);
        }
        // The disk reads the next part of a large request while one is copied.
        let part_bytes = if max_ahead == 0 { buffer.len() } else { max_ahead.div_ceil(2) };
        let request_end = offset.saturating_add(buffer.len() as u64);
        let mut done = 0;
        for part in buffer.chunks_mut(part_bytes.max(1)) {
            let start = offset.saturating_add(done as u64);
            let request = Request { part: start..start.saturating_add(part.len() as u64), end: request_end };
            if let Some(ahead) = self.note_reading(inode.size, request, max_ahead as u64) {
                self.file_system.files.read_ahead(&self.node, &inode, ahead);
            }
            let wanted = part.len();
            let bytes = self.file_system.files.read(&inode, start, part).await?;
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

    /// Reads from a single cache page with remembered state. Returns false if the page lacks some of the bytes; the
    /// buffer's content is then unspecified. The content lock is held.
    fn read_remembered(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(known) = self.remembered.get() else { return false };
        let end = offset.saturating_add(buffer.len() as u64);
        let is_inside = known.bytes.0 <= offset && end <= known.bytes.1 && end <= known.size;
        if !is_inside || known.exclusive_holds != self.node.content.exclusive_holds() || self.node.is_gone.get() {
            return false;
        }
        let (block_bytes, distance) = (self.file_system.blocks.block_bytes(), offset - known.bytes.0);
        // Both fit: the run was checked to lie in the volume, and the rest is smaller than a block.
        let first = known.first + (distance / block_bytes) as u32;
        self.file_system.store.read_cached(first, (distance % block_bytes) as usize, buffer)
    }

    /// Caches the run from here on for subsequent requests. The content lock is held.
    fn remember(&self, inode: &Inode, offset: u64) {
        let block_bytes = self.file_system.blocks.block_bytes();
        let logical = offset / block_bytes;
        let start = logical * block_bytes;
        self.remembered.set(match self.file_system.blocks.cached_run(inode, logical, MAX_REMEMBERED) {
            Some(Ok(Run::Blocks { first, blocks })) => Some(ReadExtent {
                exclusive_holds: self.node.content.exclusive_holds(),
                size: inode.size,
                bytes: (start, start.saturating_add(blocks * block_bytes)),
                first,
            }),
            _ => None,
        });
    }

    /// Records that a part of a request is read. Returns the range to read ahead, if it is due.
    fn note_reading(&self, file_bytes: u64, request: Request, most: u64) -> Option<Range<u64>> {
        let Request { part, end: request_end } = request;
        let mut reading = self.reading.get();
        let is_next = part.start == reading.next;
        if !is_next {
            reading = Reading { next: part.end, ahead: part.end, window: 0, request_end };
        }
        // A request that continues the previous one, and all of its parts.
        let is_sequential = is_next && (reading.window > 0 || request_end != reading.request_end);
        reading.next = part.end;
        reading.request_end = request_end;
        let start = reading.ahead.max(part.end);
        // The next part is requested when less than half of the read-ahead is left.
        if is_sequential && start - part.end <= reading.window / 2 {
            reading.window = (reading.window * 2).clamp(FIRST_WINDOW.min(most), most);
            reading.ahead = start.saturating_add(reading.window);
        }
        // The rest of the request is needed in any case.
        reading.ahead = reading.ahead.max(start).max(request_end.min(part.end.saturating_add(most)));
        self.reading.set(reading);
        (part.end < file_bytes && start < reading.ahead && most > 0).then_some(start..reading.ahead)
    }

    /// Writes bytes at an offset. A gap after the end of the file reads as zeros.
    pub async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Partial> {
        self.file_system.files.write(&self.node, Position::At(offset), bytes).await.map(|_| ())
    }

    /// Appends bytes to the file. Returns their offset.
    pub async fn append(&self, bytes: &[u8]) -> Result<u64, Partial> {
        self.file_system.files.write(&self.node, Position::End, bytes).await
    }

    /// Truncates the file to this many bytes, or extends it with a hole.
    pub async fn set_size(&self, bytes: u64) -> Result<(), Error> {
        self.file_system.files.set_size(&self.node, bytes).await
    }

    /// Closes the file. The last close of an unlinked file frees its space.
    pub async fn close(self) -> Result<(), Error> {
        let (file_system, number) = (self.file_system.clone(), self.node.number);
        let is_last = self.let_go();
        core::mem::drop(self);
        if is_last { file_system.evict(number).await } else { Ok(()) }
    }

    /// Decrements the open count. Returns whether the inode must be freed.
    fn let_go(&self) -> bool {
        let opens = self.node.opens.get();
        // Already closed.
        if self.is_closed.replace(true) {
            return false;
        }
        self.node.opens.set(opens.saturating_sub(1));
        opens == 1 && !self.node.is_gone.get() && self.file_system.orphans.contains(self.node.number)
    }
}

impl<S: BlockSource> Drop for OpenFile<S> {
    fn drop(&mut self) {
        if self.let_go() {
            let (file_system, number) = (self.file_system.clone(), self.node.number);
            // Otherwise the next mount frees the remaining content.
            self.file_system.store.source().spawn(async move {
                let _ = file_system.evict(number).await;
            });
        }
    }
}
