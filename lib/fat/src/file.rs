//! Open files.

use alloc::rc::Rc;

use hadris_fs::{NodeId, SetAttr};

use crate::BlockSource;
use crate::error::Error;
use crate::mounted::{Mounted, is_removed_name};
use crate::volume::{Core, Folder, Node, PIECE_BYTES, attributes_for, describe, get};

/// What to do with an existing name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// Fail.
    New,
    /// Open the existing file.
    OpenExisting,
}

/// A write that failed, perhaps halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Bytes written.
    pub written: usize,
    /// Cause of the short write.
    pub error: Error,
}

/// An open file. It survives renaming, and removal until it is closed.
pub struct OpenFile<S: BlockSource> {
    core: Rc<Core<S>>,
    node: NodeId,
    is_closed: bool,
}

impl<S: BlockSource> Drop for OpenFile<S> {
    fn drop(&mut self) {
        if !self.is_closed {
            self.core.release_file(self.node);
        }
    }
}

impl<S: BlockSource> Folder<S> {
    /// Opens an existing file.
    ///
    /// # Errors
    /// There is no such file.
    pub async fn open(&self, path: &str) -> Result<OpenFile<S>, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let node = self.resolve(mounted, path).await?;
        self.opened(mounted, node).await
    }

    /// Creates and opens an empty file, or opens an existing one if `mode` permits.
    ///
    /// # Errors
    /// The name exists or is invalid, or there is no space.
    pub async fn create(&self, path: &str, permissions: u32, mode: CreateMode) -> Result<OpenFile<S>, Error> {
        let (folder, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path.trim_end_matches('/')));
        if matches!(name, "" | "." | "..") {
            return Err(Error::IsADirectory);
        }
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let folder = self.resolve(mounted, folder).await?;
        let node = create(mounted, folder, name, permissions, mode).await;
        mounted.release(folder);
        let node = node?;
        self.core.changes();
        self.opened(mounted, node).await
    }

    async fn opened(&self, mounted: &mut Mounted<S>, node: NodeId) -> Result<OpenFile<S>, Error> {
        match mounted.open(node).await {
            Ok(()) => Ok(OpenFile { core: Rc::clone(&self.core), node, is_closed: false }),
            Err(error) => {
                mounted.release(node);
                Err(error)
            }
        }
    }
}

async fn create<S: BlockSource>(
    mounted: &mut Mounted<S>,
    folder: NodeId,
    name: &str,
    permissions: u32,
    mode: CreateMode,
) -> Result<NodeId, Error> {
    if mode == CreateMode::OpenExisting {
        match mounted.find(folder, name).await {
            Err(Error::NotFound) => {}
            other => return other,
        }
    }
    if is_removed_name(name) {
        return Err(Error::BadName);
    }
    let attributes = SetAttr::new().with_attributes(attributes_for(permissions));
    mounted.create(folder, name, &attributes).await
}

impl<S: BlockSource> OpenFile<S> {
    /// A number that no other file has while this one is open, whatever becomes of its name.
    pub fn number(&self) -> u64 {
        self.node.get()
    }

    /// The file's attributes.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn attributes(&self) -> Result<Node, Error> {
        let mut held = self.core.hold().await?;
        describe(get(&mut held)?, self.node).await
    }

    async fn size(&self) -> Result<u64, Error> {
        Ok(self.attributes().await?.size_bytes)
    }

    /// Reads from `offset` into `target`; returns the number of bytes, which is short only at the end of the file.
    ///
    /// # Errors
    /// The disk failed, or the cluster chain is damaged.
    pub async fn read(&self, offset: u64, target: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < target.len() {
            let Some(at) = offset.checked_add(done as u64) else { break };
            let end = target.len().min(done + PIECE_BYTES);
            let mut held = self.core.hold().await?;
            let count = get(&mut held)?.fs.read(self.node, at, &mut target[done..end]).await?;
            if count == 0 {
                break;
            }
            done += count;
        }
        Ok(done)
    }

    /// Writes `bytes` at `offset`. A gap after the end of the file is filled with zeros.
    ///
    /// # Errors
    ///
    /// The number of bytes written, and the cause of the short write.
    pub async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Partial> {
        let nothing = |error| Partial { written: 0, error };
        if offset.saturating_add(bytes.len() as u64) > u64::from(u32::MAX) {
            return Err(nothing(Error::TooLarge));
        }
        if !bytes.is_empty() && offset > self.size().await.map_err(nothing)? {
            self.grow(offset).await.map_err(nothing)?;
        }
        let mut written = 0;
        for piece in bytes.chunks(PIECE_BYTES) {
            let partial = |error| Partial { written, error };
            let mut held = self.core.hold().await.map_err(partial)?;
            self.core.writes();
            let mounted = get(&mut held).map_err(partial)?;
            match mounted.fs.write(self.node, offset + written as u64, piece).await {
                Ok(count) if count == piece.len() => written += count,
                Ok(count) => return Err(Partial { written: written + count, error: Error::TooLarge }),
                Err(error) => return Err(partial(error.into())),
            }
        }
        Ok(())
    }

    /// Appends `bytes` atomically with regard to other clients; returns their offset.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn append(&self, bytes: &[u8]) -> Result<u64, Partial> {
        self.append_whole(bytes).await.map_err(|error| Partial { written: 0, error })
    }

    async fn append_whole(&self, bytes: &[u8]) -> Result<u64, Error> {
        let mut held = self.core.hold().await?;
        let mounted = get(&mut held)?;
        let end = describe(mounted, self.node).await?.size_bytes;
        if end + bytes.len() as u64 > u64::from(u32::MAX) {
            return Err(Error::TooLarge);
        }
        self.core.writes();
        match mounted.fs.write(self.node, end, bytes).await {
            Ok(count) if count == bytes.len() => Ok(end),
            Ok(_) => Err(Error::TooLarge),
            Err(error) => Err(error.into()),
        }
    }

    /// Truncates the file, or extends it with zeros, which take space: FAT has no holes.
    ///
    /// # Errors
    /// No space; the size is unchanged.
    pub async fn set_size(&self, size_bytes: u64) -> Result<(), Error> {
        if size_bytes > u64::from(u32::MAX) {
            return Err(Error::TooLarge);
        }
        if size_bytes > self.size().await? {
            return self.grow(size_bytes).await;
        }
        let mut held = self.core.hold().await?;
        self.core.changes();
        Ok(get(&mut held)?.fs.truncate(self.node, size_bytes).await?)
    }

    /// Extends the file to at least this size, in pieces between which other operations run.
    async fn grow(&self, size_bytes: u64) -> Result<(), Error> {
        let start = {
            let mut held = self.core.hold().await?;
            let mounted = get(&mut held)?;
            let found = describe(mounted, self.node).await?;
            let room = mounted.fs.statfs().await?;
            let needed = size_bytes.saturating_sub(found.allocated_bytes);
            if needed.div_ceil(u64::from(room.block_size())) > room.free_blocks() {
                return Err(Error::NoSpace);
            }
            found.size_bytes
        };
        let writes = self.core.writes.get();
        loop {
            let mut held = self.core.hold().await?;
            let mounted = get(&mut held)?;
            let size = describe(mounted, self.node).await?.size_bytes;
            if size >= size_bytes {
                return Ok(());
            }
            self.core.changes();
            let next = (size + PIECE_BYTES as u64).min(size_bytes);
            if let Err(error) = mounted.fs.truncate(self.node, next).await {
                // Another client took the space: give back what was allocated, unless it may have content.
                if self.core.writes.get() == writes {
                    mounted.fs.truncate(self.node, start).await?;
                }
                return Err(error.into());
            }
        }
    }

    /// Closes the file. A removed file is deleted with its last handle.
    ///
    /// # Errors
    /// The disk failed; the file is closed nevertheless.
    pub async fn close(mut self) -> Result<(), Error> {
        let core = Rc::clone(&self.core);
        let mut held = core.hold().await?;
        self.is_closed = true;
        get(&mut held)?.close(self.node).await
    }
}
