//! Serving one client of one file.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::file::{self, ExpReady, FileError, states};
use contracts::path;
use ext2::{Inode, Kind, LastLink};

use crate::{Shared, answers};

/// Opens the file that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: u32, path: Vec<u8>, client: file::Exp<states::Start>) {
    let inode = match open(&shared, base, &path).await {
        Ok(inode) => inode,
        Err(error) => {
            drop(client.refused(error));
            return;
        }
    };
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => next.attributes(answers::file_attributes(&inode)),
            ExpReady::Read { mut data, offset, count, next } => {
                let wanted = data.len().min(count as usize);
                match shared.volume.read(&inode, offset, &mut data[..wanted]).await {
                    // Not more than `count`.
                    Ok(bytes) => next.read_done(data, bytes as u32),
                    Err(error) => {
                        shared.note(&error);
                        next.read_failed(data, answers::file_error(&error))
                    }
                }
            }
            ExpReady::Write { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::Append { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::SetSize { next, .. } => next.failed(FileError::ReadOnly),
            ExpReady::Sync { next } => next.done(),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

async fn open(shared: &Shared, base: u32, path: &[u8]) -> Result<Inode, FileError> {
    if !core::str::from_utf8(path).is_ok_and(path::is_valid) {
        return Err(FileError::BadPath);
    }
    let inode = shared.volume.resolve(base, path, LastLink::Follow).await.map_err(|error| {
        shared.note(&error);
        answers::file_error(&error)
    })?;
    match inode.kind {
        Kind::File => Ok(inode),
        Kind::Directory => Err(FileError::IsADirectory),
        _ => Err(FileError::NotAFile),
    }
}
