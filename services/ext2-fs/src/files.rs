//! Serving one client of one file.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::file::{self, ExpReady, FileError, states};
use contracts::path;
use ext2::{Error, Kind, LastLink, OpenFile};

use crate::{Shared, answers};
use disk_source::DiskSource;

/// A file as its clients have it open.
pub(crate) type Opened = OpenFile<DiskSource>;

/// Opens the file that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: u32, path: Vec<u8>, client: file::Exp<states::Start>) {
    match open(&shared, base, &path).await {
        Ok(opened) => serve_opened(shared, opened, client).await,
        Err(error) => drop(client.refused(error)),
    }
}

/// Serves an open file until the client closes.
pub(crate) async fn serve_opened(shared: Rc<Shared>, opened: Opened, client: file::Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => match opened.inode().await {
                Ok(inode) => next.attributes(answers::file_attributes(&inode)),
                Err(error) => {
                    // The contract has no word for this; the client sees the channel close and opens again.
                    shared.note(&error);
                    return;
                }
            },
            ExpReady::Read { mut data, offset, count, next } => {
                let wanted = data.len().min(count as usize);
                match opened.read(offset, &mut data[..wanted]).await {
                    // Not more than `count`.
                    Ok(bytes) => next.read_done(data, bytes as u32),
                    Err(error) => next.read_failed(data, failed(&shared, &error)),
                }
            }
            ExpReady::Write { data, offset, count, next } => match data.get(..count as usize) {
                None => next.write_failed(data, FileError::TooLarge, 0),
                Some(bytes) => match opened.write(offset, bytes).await {
                    Ok(()) => next.write_done(data),
                    // Not more than `count`.
                    Err(partial) => next.write_failed(data, failed(&shared, &partial.error), partial.written as u32),
                },
            },
            ExpReady::Append { data, count, next } => match data.get(..count as usize) {
                None => next.write_failed(data, FileError::TooLarge, 0),
                Some(bytes) => match opened.append(bytes).await {
                    Ok(offset) => next.appended(data, offset),
                    Err(partial) => next.write_failed(data, failed(&shared, &partial.error), partial.written as u32),
                },
            },
            ExpReady::SetSize { size_bytes, next } => match opened.set_size(size_bytes).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(failed(&shared, &error)),
            },
            ExpReady::Sync { next } => match shared.volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(failed(&shared, &error)),
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

/// Opens what is known to be there by its number.
pub(crate) async fn open_number(shared: &Shared, number: u32) -> Result<Opened, Error> {
    let opened = shared.volume.open(number).await?;
    match opened.inode().await?.kind {
        Kind::File => Ok(opened),
        Kind::Directory => Err(Error::IsADirectory),
        _ => Err(Error::NotAFile),
    }
}

async fn open(shared: &Shared, base: u32, path: &[u8]) -> Result<Opened, FileError> {
    if !core::str::from_utf8(path).is_ok_and(path::is_valid) {
        return Err(FileError::BadPath);
    }
    let opened = async {
        let inode = shared.volume.resolve(base, path, LastLink::Follow).await?;
        open_number(shared, inode.number).await
    };
    opened.await.map_err(|error| failed(shared, &error))
}

fn failed(shared: &Shared, error: &Error) -> FileError {
    shared.note(error);
    answers::file_error(error)
}
