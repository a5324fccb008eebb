//! Serving one client of one file.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::file::{self, ExpReady, FileError, states};
use disk_source::DiskSource;
use ext2::{Error, Kind, LastLink, OpenFile};
use principal::{Right, Rights};

use crate::access::{self, Base, Caller, RequestError, Speaks};
use crate::{Shared, answers};

/// A file as a client has it open.
pub(crate) struct Opened {
    pub(crate) file: OpenFile<DiskSource>,
    /// What the client could do when it opened the file. Lists that change later are for who opens it then.
    pub(crate) rights: Rights,
    /// How it was asked for.
    pub(crate) path: String,
}

impl Opened {
    /// Refuses what the file was not opened for.
    fn check(&self, right: Right, client: &dyn Speaks) -> Result<(), FileError> {
        if self.rights.has(right) {
            return Ok(());
        }
        if let Some(principal) = client.principal() {
            sip::audit::refused(&principal, right.word(), &self.path, "the list that decided when it was opened");
        }
        Err(FileError::NotPermitted)
    }
}

/// Opens the file that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: Rc<Base>, path: Vec<u8>, client: file::Exp<states::Start>) {
    match open(&Caller { shared: &shared, base: &base, who: &client }, &path).await {
        Ok(opened) => serve_opened(shared, opened, client).await,
        Err(error) => drop(client.refused(refused(&shared, error))),
    }
}

/// Serves an open file until the client closes.
pub(crate) async fn serve_opened(shared: Rc<Shared>, opened: Opened, client: file::Exp<states::Start>) {
    let file = &opened.file;
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => match file.inode().await {
                Ok(inode) => next.attributes(answers::file_attributes(&inode)),
                Err(error) => {
                    // The contract has no word for this; the client sees the channel close and opens again.
                    shared.note(&error);
                    return;
                }
            },
            ExpReady::Read { mut data, offset, count, next } => {
                let wanted = data.len().min(count as usize);
                match opened.check(Right::Read, &next) {
                    Err(error) => next.read_failed(data, error),
                    Ok(()) => match file.read(offset, &mut data[..wanted]).await {
                        // Not more than `count`.
                        Ok(bytes) => next.read_done(data, bytes as u32),
                        Err(error) => next.read_failed(data, failed(&shared, &error)),
                    },
                }
            }
            ExpReady::Write { data, offset, count, next } => {
                match (opened.check(Right::Write, &next), data.get(..count as usize)) {
                    (Err(error), _) => next.write_failed(data, error, 0),
                    (_, None) => next.write_failed(data, FileError::TooLarge, 0),
                    (_, Some(bytes)) => match file.write(offset, bytes).await {
                        Ok(()) => next.write_done(data),
                        // Not more than `count`.
                        Err(partial) => {
                            next.write_failed(data, failed(&shared, &partial.error), partial.written as u32)
                        }
                    },
                }
            }
            ExpReady::Append { data, count, next } => {
                match (opened.check(Right::Write, &next), data.get(..count as usize)) {
                    (Err(error), _) => next.write_failed(data, error, 0),
                    (_, None) => next.write_failed(data, FileError::TooLarge, 0),
                    (_, Some(bytes)) => match file.append(bytes).await {
                        Ok(offset) => next.appended(data, offset),
                        Err(partial) => {
                            next.write_failed(data, failed(&shared, &partial.error), partial.written as u32)
                        }
                    },
                }
            }
            ExpReady::SetSize { size_bytes, next } => match opened.check(Right::Write, &next) {
                Err(error) => next.failed(error),
                Ok(()) => match file.set_size(size_bytes).await {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(failed(&shared, &error)),
                },
            },
            ExpReady::Sync { next } => match shared.volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(failed(&shared, &error)),
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

/// Opens the file that a path leads to, for who may read or write it.
pub(crate) async fn open(caller: &Caller<'_>, path: &[u8]) -> Result<Opened, RequestError> {
    let found = caller.find(path, LastLink::Follow).await?;
    caller.need(&found, &[Right::Read, Right::Write], path).await?;
    match found.inode.kind {
        Kind::File => {}
        Kind::Directory => return Err(Error::IsADirectory.into()),
        _ => return Err(Error::NotAFile.into()),
    }
    let rights = caller.rights(&found).await?;
    let file = caller.shared.volume.open(found.inode.number).await?;
    Ok(Opened { file, rights, path: access::join(&caller.base.path, path) })
}

fn refused(shared: &Shared, error: RequestError) -> FileError {
    match error {
        RequestError::Volume(error) => failed(shared, &error),
        RequestError::BadPath => FileError::BadPath,
        _ => FileError::NotPermitted,
    }
}

fn failed(shared: &Shared, error: &Error) -> FileError {
    shared.note(error);
    answers::file_error(error)
}
