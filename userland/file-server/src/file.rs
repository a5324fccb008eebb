//! Serving one client of one file.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::directory::NodeAttributes;
use contracts::file::{self, ExpReady, FileAttributes, FileError, LockKind, states};
use principal::Right;

use crate::paths::text;
use crate::volume::{Opened, Request, Volume};

/// Opens the file that the path leads to, and serves it until the client closes.
pub(crate) async fn serve<V: Volume>(
    volume: Rc<V>,
    directory: Rc<V::Directory>,
    path: Vec<u8>,
    client: file::Exp<states::Start>,
) {
    let request = Request { directory: &*directory, client: &client };
    let opened = match text(&path) {
        None => Err(FileError::BadPath),
        Some(path) if !volume.permits(request, path, &[Right::Read, Right::Write]) => Err(FileError::NotPermitted),
        Some(path) => volume.open_file(request, path, &client).await.map_err(|error| volume.file_error(error)),
    };
    drop(directory);
    match opened {
        Ok(opened) => serve_opened(volume, opened, client).await,
        Err(error) => drop(client.refused(error)),
    }
}

/// Serves an open file until the client closes.
pub(crate) async fn serve_opened<V: Volume>(volume: Rc<V>, opened: Opened<V::File>, client: file::Exp<states::Start>) {
    let Opened { mut file, rights } = opened;
    let mut locks = volume.locks().of_channel(volume.file_number(&file));
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => match volume.file_attributes(&file).await {
                Ok(attributes) => next.attributes(file_attributes(&attributes)),
                Err(error) => {
                    // The contract has no message for this: the client sees the channel close and opens the file again.
                    let _ = volume.file_error(error);
                    break;
                }
            },
            ExpReady::Read { mut data, offset, count, next } => {
                let wanted = data.len().min(count as usize);
                match rights.check(Right::Read, &next) {
                    Err(error) => next.read_failed(data, error),
                    Ok(()) => match volume.read(&mut file, offset, &mut data[..wanted]).await {
                        // At most `count`.
                        Ok(bytes) => next.read_done(data, bytes as u32),
                        Err(error) => next.read_failed(data, volume.file_error(error)),
                    },
                }
            }
            ExpReady::Write { data, offset, count, next } => {
                match (rights.check(Right::Write, &next), data.get(..count as usize)) {
                    (Err(error), _) => next.write_failed(data, error, 0),
                    (_, None) => next.write_failed(data, FileError::TooLarge, 0),
                    (_, Some(bytes)) => match volume.write(&mut file, offset, bytes).await {
                        Ok(()) => next.write_done(data),
                        // At most `count`.
                        Err(partial) => {
                            next.write_failed(data, volume.file_error(partial.error), partial.written as u32)
                        }
                    },
                }
            }
            ExpReady::Append { data, count, next } => {
                match (rights.check(Right::Write, &next), data.get(..count as usize)) {
                    (Err(error), _) => next.write_failed(data, error, 0),
                    (_, None) => next.write_failed(data, FileError::TooLarge, 0),
                    (_, Some(bytes)) => match volume.append(&mut file, bytes).await {
                        Ok(offset) => next.appended(data, offset),
                        Err(partial) => {
                            next.write_failed(data, volume.file_error(partial.error), partial.written as u32)
                        }
                    },
                }
            }
            ExpReady::SetSize { size_bytes, next } => match rights.check(Right::Write, &next) {
                Err(error) => next.failed(error),
                Ok(()) => match volume.set_size(&mut file, size_bytes).await {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(volume.file_error(error)),
                },
            },
            ExpReady::Sync { next } => match volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(volume.file_error(error)),
            },
            ExpReady::Lock { kind, start, length, next } => {
                match rights.check(right_to(kind), &next).and_then(|()| locks.lock(kind, start, length)) {
                    Ok(true) => next.locked(),
                    Ok(false) => next.excluded(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Unlock { start, length, next } => match locks.unlock(start, length) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::TestLock { kind, start, length, next } => match locks.is_free(kind, start, length) {
                Ok(true) => next.free(),
                Ok(false) => next.excluded(),
                Err(error) => next.failed(error),
            },
            ExpReady::ChannelClosed(_) => break,
        };
    }
    // Before closing, which can take time.
    drop(locks);
    volume.close(file).await;
}

/// The right that a lock needs.
fn right_to(kind: LockKind) -> Right {
    match kind {
        LockKind::Shared => Right::Read,
        LockKind::Exclusive => Right::Write,
    }
}

fn file_attributes(attributes: &NodeAttributes) -> FileAttributes {
    FileAttributes {
        size_bytes: attributes.size_bytes,
        allocated_bytes: attributes.allocated_bytes,
        node: attributes.node,
        modified_s: attributes.modified_s,
        permissions: attributes.permissions,
        links: attributes.links,
    }
}
