//! Serving one client of one file.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::file::{self, ExpReady, FileError, states};
use disk_source::DiskSource;
use fat::{Error, OpenFile};
use mount_permit::Permit;
use principal::Right;

use crate::access::Base;
use crate::{Shared, answers, text};

/// Opens the file that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: Base, path: Vec<u8>, client: file::Exp<states::Start>) {
    let permit = base.permit.below(&path);
    if !permit.allows(&[Right::Read, Right::Write], &client) {
        drop(client.refused(FileError::NotPermitted));
        return;
    }
    let opened = match text(&path) {
        Some(path) => base.folder.open(path).await,
        None => Err(Error::BadName),
    };
    match opened {
        Ok(file) => serve_open(shared, file, permit.of_open_file(), client).await,
        Err(error) => {
            shared.note(error);
            drop(client.refused(answers::file_error(error)));
        }
    }
}

/// Serves an open file until the client closes.
pub(crate) async fn serve_open(
    shared: Rc<Shared>,
    file: OpenFile<DiskSource>,
    permit: Permit,
    client: file::Exp<states::Start>,
) {
    let refused = |error: Error| -> FileError {
        shared.note(error);
        answers::file_error(error)
    };
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            // A file that could be opened has attributes, unless the disk fails: then it has none that are known.
            ExpReady::GetAttributes { next } => match file.attributes().await {
                Ok(node) => next.attributes(answers::file_attributes(&node)),
                Err(error) => {
                    shared.note(error);
                    break;
                }
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
                    Err(error) => next.read_failed(data, refused(error)),
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
                    Err(partial) => next.write_failed(data, refused(partial.error), partial.written as u32),
                }
            }
            ExpReady::Append { data, count, next } => {
                let Some(bytes) = data.get(..count as usize) else {
                    client = next.write_failed(data, FileError::TooLarge, 0);
                    continue;
                };
                match file.append(bytes).await {
                    Ok(offset) => next.appended(data, offset),
                    Err(partial) => next.write_failed(data, refused(partial.error), partial.written as u32),
                }
            }
            ExpReady::SetSize { size_bytes, next } => match file.set_size(size_bytes).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(refused(error)),
            },
            ExpReady::Sync { next } => match shared.volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(refused(error)),
            },
            ExpReady::ChannelClosed(_) => break,
        };
    }
    match file.close().await {
        Ok(()) | Err(Error::ShutDown) => {}
        Err(error) => shared.note(error),
    }
}
