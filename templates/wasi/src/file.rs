//! Open files: a position, and transfers between linear memory and the file's server in pieces.

use client::file_io::{BLOCK_BYTES, OpenFile};
use client::namespace::Namespace;
use contracts::directory::{NodeAttributes, NodeChanges, NodeKind};
use contracts::file::LockKind;
use sip::exheap::ExVec;

use alloc::string::String;

use crate::abi::{Errno, descriptor_flags};
use crate::folder::Folder;
use crate::guest::{Cursor, Guest, total};

/// An open file.
pub struct File {
    file: OpenFile,
    /// Where the next read or write begins.
    pub offset: u64,
    /// Where it was opened: only its folder has its times.
    folder: Folder,
    name: String,
    /// Whether the program has locked some of it, and not given up all since.
    is_locked: bool,
}

/// Where a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the position, which moves.
    Position,
    /// At a byte; the position stays.
    At(u64),
}

impl File {
    /// Wraps an open file.
    pub fn new(file: OpenFile, folder: Folder, name: String) -> File {
        File { file, offset: 0, folder, name, is_locked: false }
    }

    /// Reads until the vectors are full or the file ends; returns the number of bytes.
    ///
    /// # Errors
    /// The server's; what was read before counts, if anything was.
    pub fn read(&mut self, guest: &mut Guest<'_>, vectors: &[(u32, u32)], start: Start) -> Result<u32, Errno> {
        let all = total(vectors);
        let mut cursor = Cursor::new(vectors);
        let mut done = 0;
        let from = self.start(start);
        while done < all {
            let wanted = piece(all - done);
            let read = ExVec::new(wanted)
                .map_err(Errno::from)
                .and_then(|block| Ok(self.file.read_part(block, place(from, done)?, wanted)?));
            let (block, bytes) = match read {
                Ok(read) => read,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            };
            cursor.scatter(guest, &block[..bytes])?;
            done += bytes as u32;
            if bytes < wanted {
                break;
            }
        }
        if start == Start::Position {
            self.offset = place(from, done)?;
        }
        Ok(done)
    }

    /// Writes all bytes of the vectors; returns their number.
    ///
    /// # Errors
    /// The server's; what was written before counts, if anything was.
    pub fn write(&mut self, guest: &Guest<'_>, vectors: &[(u32, u32)], start: Start, flags: u16) -> Result<u32, Errno> {
        let all = total(vectors);
        let mut cursor = Cursor::new(vectors);
        let mut done = 0;
        let from = self.start(start);
        while done < all {
            let mut block = ExVec::new(piece(all - done))?;
            let bytes = cursor.gather(guest, &mut block)?;
            let written = match flags & descriptor_flags::APPEND {
                0 => self.file.write_at(block, place(from, done)?, bytes),
                _ => self.file.append(block, bytes),
            };
            let written = match written {
                Ok(written) => written,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.into()),
            };
            done += written.bytes as u32;
            match written.failed {
                Some(error) if done == 0 => return Err(error.into()),
                Some(_) => break,
                None if start == Start::Position => self.offset = place(written.offset, written.bytes as u32)?,
                None => {}
            }
        }
        if done > 0 && flags & (descriptor_flags::SYNC | descriptor_flags::DSYNC) != 0 {
            self.file.sync()?;
        }
        Ok(done)
    }

    /// Waits until written data is on the medium.
    ///
    /// # Errors
    /// The server's.
    pub fn sync(&mut self) -> Result<(), Errno> {
        Ok(self.file.sync()?)
    }

    /// Truncates or extends it.
    ///
    /// # Errors
    /// The server's.
    pub fn set_size(&mut self, size_bytes: u64) -> Result<(), Errno> {
        Ok(self.file.set_size(size_bytes)?)
    }

    /// Size in bytes.
    ///
    /// # Errors
    /// The server's.
    pub fn size(&mut self) -> Result<u64, Errno> {
        Ok(self.file.attributes()?.size_bytes)
    }

    /// Number of the volume it lies on.
    ///
    /// # Errors
    /// As [`Folder::device`].
    pub fn device(&self, root: &mut Namespace) -> Result<u64, Errno> {
        self.folder.device(root)
    }

    /// Attributes; those that only its folder knows are zero if it is no longer there under its name.
    ///
    /// # Errors
    /// The server's.
    pub fn attributes(&mut self) -> Result<NodeAttributes, Errno> {
        let own = self.file.attributes()?;
        if let Ok((NodeKind::File, named)) = self.folder.attributes(&self.name)
            && named.node == own.node
        {
            return Ok(named);
        }
        Ok(NodeAttributes {
            size_bytes: own.size_bytes,
            allocated_bytes: own.allocated_bytes,
            node: own.node,
            modified_s: own.modified_s,
            accessed_s: own.modified_s,
            changed_s: own.modified_s,
            permissions: own.permissions,
            links: own.links,
            owner: 0,
            group: 0,
        })
    }

    /// Sets times.
    ///
    /// # Errors
    /// The server's; it is no longer there under its name.
    pub fn set_times(&mut self, changes: NodeChanges) -> Result<(), Errno> {
        let (_, named) = self.folder.attributes(&self.name)?;
        if named.node != self.file.attributes()?.node {
            return Err(Errno::NOENT);
        }
        Ok(self.folder.namespace().set_attributes(&self.name, changes)?)
    }

    /// Locks a range, and returns whether no other program's lock excludes it.
    ///
    /// # Errors
    /// The server's.
    pub fn lock(&mut self, kind: LockKind, start: u64, length: u64) -> Result<bool, Errno> {
        let is_granted = self.file.lock(kind, start, length)?;
        self.is_locked |= is_granted;
        Ok(is_granted)
    }

    /// Gives up the locks of a range.
    ///
    /// # Errors
    /// The server's.
    pub fn unlock(&mut self, start: u64, length: u64) -> Result<(), Errno> {
        self.file.unlock(start, length)?;
        if (start, length) == (0, 0) {
            self.is_locked = false;
        }
        Ok(())
    }

    /// Returns whether no other program's lock excludes one.
    ///
    /// # Errors
    /// The server's.
    pub fn may_lock(&mut self, kind: LockKind, start: u64, length: u64) -> Result<bool, Errno> {
        Ok(self.file.may_lock(kind, start, length)?)
    }

    /// Closes it. Its locks are given up before this returns; by its end alone the server would learn of that later.
    pub fn close(mut self) {
        if self.is_locked {
            // A server that has ended has no locks.
            let _ = self.unlock(0, 0);
        }
    }

    /// Checks that locks on it still hold.
    ///
    /// # Errors
    /// Its server has ended, and another one knows nothing of them.
    pub fn check_locks(&mut self) -> Result<(), Errno> {
        if self.is_locked && self.file.attributes().is_err() { Err(Errno::IO) } else { Ok(()) }
    }

    fn start(&self, start: Start) -> u64 {
        match start {
            Start::Position => self.offset,
            Start::At(offset) => offset,
        }
    }
}

/// Size of the next piece of this many bytes.
fn piece(left: u32) -> usize {
    BLOCK_BYTES.min(left as usize)
}

/// A place in a file.
fn place(from: u64, done: u32) -> Result<u64, Errno> {
    from.checked_add(done.into()).filter(|place| *place <= i64::MAX as u64).ok_or(Errno::FBIG)
}
