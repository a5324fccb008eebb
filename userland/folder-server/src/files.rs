//! Open files.
//!
//! A file is opened for reading, and for writing only at the first write: the host cannot execute a file that is open
//! for writing.

use alloc::rc::Rc;

use nine_p::{Attributes, Changes, errno, open_flags};

use crate::session::{Error, Fid};
use crate::walk::{Base, LastLink};

/// A file that a client has open.
pub(crate) struct OpenFile {
    /// Not open; the other fids are duplicates of it.
    node: Fid,
    number: u64,
    reader: Option<Rc<Fid>>,
    writer: Option<Rc<Fid>>,
    appender: Option<Rc<Fid>>,
}

impl OpenFile {
    /// Opens the file at a path.
    pub(crate) async fn open(base: &Base, path: &str) -> Result<OpenFile, Error> {
        let found = base.find(path, LastLink::Follow).await?;
        let mode = found.fid.attributes().await?.mode;
        match mode & Attributes::KIND {
            Attributes::FILE => {}
            Attributes::DIRECTORY => return Err(Error::Host(errno::EISDIR)),
            // Opening a device may have side effects, and opening a FIFO blocks.
            _ => return Err(Error::NotAFile),
        }
        let mut file = OpenFile { node: found.fid, number: found.qid.path, reader: None, writer: None, appender: None };
        match file.opened(open_flags::READ).await {
            Ok(reader) => file.reader = Some(reader),
            // A file that cannot be read may still be writable.
            Err(refused @ Error::Host(errno::EACCES)) => {
                file.writer = Some(file.opened(open_flags::WRITE).await.map_err(|_| refused)?);
            }
            Err(error) => return Err(error),
        }
        Ok(file)
    }

    /// Wraps a file that was just created and is open for reading and writing.
    pub(crate) fn created(node: Fid, open: Fid, number: u64) -> OpenFile {
        let open = Rc::new(open);
        OpenFile { node, number, reader: Some(Rc::clone(&open)), writer: Some(open), appender: None }
    }

    /// The host's number of the file, which stays its own while it is open.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    async fn opened(&self, flags: u32) -> Result<Rc<Fid>, Error> {
        let fid = self.node.duplicate().await?;
        fid.open(flags).await?;
        Ok(Rc::new(fid))
    }

    /// Prefers an open fid, which reaches the file even after it was unlinked.
    pub(crate) async fn attributes(&self) -> Result<Attributes, Error> {
        self.reader.as_deref().or(self.writer.as_deref()).unwrap_or(&self.node).attributes().await
    }

    async fn writer(&mut self) -> Result<Rc<Fid>, Error> {
        if let Some(writer) = &self.writer {
            return Ok(Rc::clone(writer));
        }
        let writer = self.opened(open_flags::WRITE).await?;
        self.writer = Some(Rc::clone(&writer));
        Ok(writer)
    }

    async fn appender(&mut self) -> Result<Rc<Fid>, Error> {
        if let Some(appender) = &self.appender {
            return Ok(Rc::clone(appender));
        }
        let appender = self.opened(open_flags::WRITE | open_flags::APPEND).await?;
        self.appender = Some(Rc::clone(&appender));
        Ok(appender)
    }

    pub(crate) async fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, Error> {
        match &self.reader {
            Some(reader) => reader.read(offset, out).await,
            None => Err(Error::Host(errno::EACCES)),
        }
    }

    pub(crate) async fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), (Error, usize)> {
        self.writer().await.map_err(|error| (error, 0))?.write(offset, data).await
    }

    pub(crate) async fn append(&mut self, data: &[u8]) -> Result<u64, (Error, usize)> {
        self.appender().await.map_err(|error| (error, 0))?.append(data).await
    }

    pub(crate) async fn set_size(&mut self, size: u64) -> Result<(), Error> {
        if size > i64::MAX as u64 {
            return Err(Error::Host(errno::EFBIG));
        }
        let changes = Changes { valid: Changes::SIZE, size, ..Changes::default() };
        let writer = self.writer().await?;
        writer.set_attributes(changes).await?;
        // Marks it as written, so that it is synced, too.
        writer.write(0, &[]).await.map_err(|(error, _)| error)
    }
}
