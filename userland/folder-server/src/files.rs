//! Serving one client of one file.
//!
//! A file is opened to be read, and to be written only when somebody writes: the host notices who has its files open for
//! that, and cannot run a program meanwhile.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::file::{self, ExpReady, FileError, states};
use mount_permit::Permit;
use nine_p::{Attributes, Changes, errno, open_flags};
use principal::Right;

use crate::answers;
use crate::session::{Error, Fid};
use crate::walk::{Base, LastLink};

/// A file as a client has it open.
pub(crate) struct OpenFile {
    /// Not open: others are made of it.
    node: Fid,
    reader: Option<Rc<Fid>>,
    writer: Option<Rc<Fid>>,
    appender: Option<Rc<Fid>>,
    base: Base,
}

impl OpenFile {
    /// Opens what the path leads to.
    pub(crate) async fn open(base: &Base, path: &[u8]) -> Result<OpenFile, Error> {
        let found = base.find(path, LastLink::Follow).await?;
        let mode = found.fid.attributes().await?.mode;
        match mode & Attributes::KIND {
            Attributes::FILE => {}
            Attributes::DIRECTORY => return Err(Error::Host(errno::EISDIR)),
            // Opening a device does something, and opening a pipe waits.
            _ => return Err(Error::NotAFile),
        }
        let base = Rc::clone(base);
        let mut file = OpenFile { node: found.fid, reader: None, writer: None, appender: None, base };
        match file.opened(open_flags::READ).await {
            Ok(reader) => file.reader = Some(reader),
            // One may still be written that cannot be read.
            Err(refused @ Error::Host(errno::EACCES)) => {
                file.writer = Some(file.opened(open_flags::WRITE).await.map_err(|_| refused)?);
            }
            Err(error) => return Err(error),
        }
        Ok(file)
    }

    /// One that was made just now and is open to be read and written.
    pub(crate) fn created(base: &Base, node: Fid, open: Fid) -> OpenFile {
        let open = Rc::new(open);
        let base = Rc::clone(base);
        OpenFile { node, reader: Some(Rc::clone(&open)), writer: Some(open), appender: None, base }
    }

    async fn opened(&self, flags: u32) -> Result<Rc<Fid>, Error> {
        let fid = self.node.duplicate().await?;
        fid.open(flags).await?;
        Ok(Rc::new(fid))
    }

    fn any(&self) -> &Fid {
        self.reader.as_deref().or(self.writer.as_deref()).unwrap_or(&self.node)
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

    async fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, Error> {
        match &self.reader {
            Some(reader) => reader.read(offset, out).await,
            None => Err(Error::Host(errno::EACCES)),
        }
    }

    async fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), (Error, usize)> {
        self.writer().await.map_err(|error| (error, 0))?.write(offset, data).await
    }

    async fn append(&mut self, data: &[u8]) -> Result<u64, (Error, usize)> {
        self.appender().await.map_err(|error| (error, 0))?.append(data).await
    }

    async fn set_size(&mut self, size: u64) -> Result<(), Error> {
        if size > i64::MAX as u64 {
            return Err(Error::Host(errno::EFBIG));
        }
        let changes = Changes { valid: Changes::SIZE, size, ..Changes::default() };
        let writer = self.writer().await?;
        writer.set_attributes(changes).await?;
        // It is to be synced, too.
        writer.write(0, &[]).await.map_err(|(error, _)| error)
    }
}

/// Opens the file that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(base: Base, path: Vec<u8>, client: file::Exp<states::Start>) {
    let permit = base.permit.below(&path);
    if !permit.allows(&[Right::Read, Right::Write], &client) {
        drop(client.refused(FileError::NotPermitted));
        return;
    }
    match OpenFile::open(&base, &path).await {
        Ok(file) => serve_open(file, permit.of_open_file(), client).await,
        Err(error) => drop(client.refused(answers::file_error(error))),
    }
}

/// Serves an open file until the client closes.
pub(crate) async fn serve_open(mut file: OpenFile, permit: Permit, client: file::Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => match file.any().attributes().await {
                Ok(known) => next.attributes(answers::file_attributes(&known)),
                // The contract has no word for this; the client sees the channel close and opens again.
                Err(_) => return,
            },
            ExpReady::Read { data, next, .. } if !permit.allows(&[Right::Read], &next) => {
                next.read_failed(data, FileError::NotPermitted)
            }
            ExpReady::Write { data, next, .. } if !permit.allows(&[Right::Write], &next) => {
                next.write_failed(data, FileError::NotPermitted, 0)
            }
            ExpReady::Append { data, next, .. } if !permit.allows(&[Right::Write], &next) => {
                next.write_failed(data, FileError::NotPermitted, 0)
            }
            ExpReady::SetSize { next, .. } if !permit.allows(&[Right::Write], &next) => {
                next.failed(FileError::NotPermitted)
            }
            ExpReady::Read { mut data, offset, count, next } => {
                let wanted = data.len().min(count as usize);
                match file.read(offset, &mut data[..wanted]).await {
                    // Not more than `count`.
                    Ok(bytes) => next.read_done(data, bytes as u32),
                    Err(error) => next.read_failed(data, answers::file_error(error)),
                }
            }
            ExpReady::Write { data, offset, count, next } => {
                let Some(bytes) = data.get(..count as usize) else {
                    client = next.write_failed(data, FileError::TooLarge, 0);
                    continue;
                };
                match file.write(offset, bytes).await {
                    Ok(()) => next.write_done(data),
                    // Likewise.
                    Err((error, written)) => next.write_failed(data, answers::file_error(error), written as u32),
                }
            }
            ExpReady::Append { data, count, next } => {
                let Some(bytes) = data.get(..count as usize) else {
                    client = next.write_failed(data, FileError::TooLarge, 0);
                    continue;
                };
                match file.append(bytes).await {
                    Ok(offset) => next.appended(data, offset),
                    Err((error, written)) => next.write_failed(data, answers::file_error(error), written as u32),
                }
            }
            ExpReady::SetSize { size_bytes, next } => match file.set_size(size_bytes).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(answers::file_error(error)),
            },
            ExpReady::Sync { next } => match file.base.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(answers::file_error(error)),
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}
