//! Serving one client of one folder.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::directory::{
    self, CreateMode, ExpReady, NameError, NodeAttributes, NodeChanges, NodeKind, NodeParts, states,
};
use contracts::directory_page::PageWriter;
use contracts::file;
use fat::{AttributeChanges, Error};
use principal::Right;
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;

use crate::access::{Base, Here};
use crate::{Shared, answers, files, text};

/// Names that are read from the volume before they are put on a page.
const NAMES_AT_ONCE: usize = 64;

/// Opens the folder that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: Base, path: Vec<u8>, client: directory::Exp<states::Start>) {
    let permit = base.permit.below(&path);
    let opened = match checked(&path) {
        _ if !permit.allows(&[Right::Traverse, Right::Read], &client) => Err(NameError::NotPermitted),
        Ok(path) => base.folder.folder(path).await.map_err(|error| shared.name_error(error)),
        Err(error) => Err(error),
    };
    drop(base);
    let folder = match opened {
        Ok(folder) => Rc::new(Here { folder: Rc::new(folder), permit: permit.held_by(&client) }),
        Err(error) => {
            drop(client.refused(error));
            return;
        }
    };
    let mut client = client.success();
    while let Some(next) = answer(&shared, &folder, client).await {
        client = next;
    }
}

/// Answers one request; nothing when the client has closed.
async fn answer(
    shared: &Rc<Shared>,
    folder: &Base,
    client: directory::Exp<states::Ready>,
) -> Option<directory::Exp<states::Ready>> {
    Some(match client.receive_async().await {
        ExpReady::Bind { path, endpoint, next } => match crate::open(shared, folder, &path, endpoint) {
            Ok(()) => next.bound(),
            Err(endpoint) => next.not_bound(NameError::WrongContract, endpoint),
        },
        ExpReady::Enumerate { page, next, .. } if !may_read(folder, &next) => {
            next.not_enumerated(page, NameError::NotPermitted)
        }
        ExpReady::GetAttributes { next, .. } if !may_read(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::CreateDirectory { next, .. } if !may_write(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::Rename { next, .. } if !may_write(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::RemoveFile { next, .. } if !may_write(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::RemoveDirectory { next, .. } if !may_write(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::SetAttributes { next, .. } if !may_write(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::Enumerate { path, cursor, mut page, next } => {
            match enumerate(shared, folder, &path, cursor, &mut page).await {
                // A page is smaller than the exchange heap, which is smaller than 4 GiB.
                Ok((bytes, cursor, more)) => next.page(page, bytes as u32, cursor, more),
                Err(error) => next.not_enumerated(page, error),
            }
        }
        ExpReady::GetAttributes { path, next } => match attributes(shared, folder, &path).await {
            Ok((kind, attributes)) => next.attributes(kind, attributes),
            Err(error) => next.failed(error),
        },
        ExpReady::CreateDirectory { path, next } => match make_folders(shared, folder, &path).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(error),
        },
        ExpReady::CreateFile { path, mode, next, .. } if !may_create(folder, &path, mode, &next).await => {
            next.failed(NameError::NotPermitted)
        }
        ExpReady::CreateFile { path, permissions, mode, file, next } => {
            match create_file(shared, folder, &path, permissions, mode, file).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            }
        }
        ExpReady::Rename { from, to, next } => match rename(shared, folder, &from, &to).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(error),
        },
        ExpReady::RemoveFile { path, next } => match remove(shared, folder, &path, Removal::File).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(error),
        },
        ExpReady::RemoveDirectory { path, next } => match remove(shared, folder, &path, Removal::Folder).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(error),
        },
        ExpReady::SetAttributes { path, changes, next } => {
            match set_attributes(shared, folder, &path, &changes).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            }
        }
        ExpReady::Sync { next } => match shared.volume.sync().await {
            Ok(()) => next.done(),
            Err(error) => next.failed(shared.name_error(error)),
        },
        ExpReady::GetAcl { next, .. } if !may_read(folder, &next) => next.failed(NameError::NotPermitted),
        ExpReady::GetAcl { path, next } => match list(shared, folder, &path).await {
            Ok((none, from)) => next.acl(none, from),
            Err(error) => next.failed(error),
        },
        // FAT has no links and no room for lists, and file systems do not register services.
        ExpReady::SetAcl { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::ReadLink { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Register { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Deregister { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Link { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::HardLink { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Notify { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::ChannelClosed(_) => return None,
    })
}

fn may_read<E: TypedEndpoint>(folder: &Base, client: &E) -> bool {
    folder.permit.allows(&[Right::Read], client)
}

fn may_write<E: TypedEndpoint>(folder: &Base, client: &E) -> bool {
    folder.permit.allows(&[Right::Write], client)
}

/// Whether the client may write, or the file is there and it may read.
async fn may_create<E: TypedEndpoint>(folder: &Base, path: &[u8], mode: CreateMode, client: &E) -> bool {
    let is_there = match checked(path) {
        Ok(path) => mode == CreateMode::OpenExisting && folder.folder.attributes(path).await.is_ok(),
        Err(_) => false,
    };
    let rights: &[Right] = if is_there { &[Right::Read, Right::Write] } else { &[Right::Write] };
    folder.permit.allows(rights, client)
}

fn checked(path: &[u8]) -> Result<&str, NameError> {
    text(path).ok_or(NameError::BadPath)
}

async fn attributes(shared: &Shared, folder: &Base, path: &[u8]) -> Result<(NodeKind, NodeAttributes), NameError> {
    let node = folder.folder.attributes(checked(path)?).await.map_err(|error| shared.name_error(error))?;
    Ok((answers::node_kind(node.kind), answers::node_attributes(&node)))
}

/// The list that decides about what is there: none of its own, and where it is told.
async fn list(shared: &Shared, folder: &Base, path: &[u8]) -> Result<(ExVec<u8>, ExVec<u8>), NameError> {
    attributes(shared, folder, path).await?;
    let block = |text: &str| ExVec::from_slice(text.as_bytes()).map_err(|_| NameError::Exhausted);
    Ok((block("")?, block(folder.permit.list_from())?))
}

/// Makes a folder, and those on the way that are not there.
async fn make_folders(shared: &Shared, folder: &Base, path: &[u8]) -> Result<(), NameError> {
    let path = checked(path)?;
    let mut made = folder.folder.make_folder(path).await;
    if made == Err(Error::NotFound) {
        for (end, _) in path.match_indices('/').filter(|(end, _)| *end > 0) {
            match folder.folder.make_folder(&path[..end]).await {
                // Only the last one has to be new.
                Ok(()) | Err(Error::AlreadyExists | Error::NotPermitted) => {}
                Err(error) => return Err(shared.name_error(error)),
            }
        }
        made = folder.folder.make_folder(path).await;
    }
    made.map_err(|error| match error {
        // The bound folder itself is there.
        Error::NotPermitted => NameError::AlreadyExists,
        other => shared.name_error(other),
    })
}

/// Opens a file, which is made first where there is none, for who has the other end of `client`.
async fn create_file(
    shared: &Rc<Shared>,
    folder: &Base,
    path: &[u8],
    permissions: u32,
    mode: CreateMode,
    client: file::Exp<file::states::Start>,
) -> Result<(), NameError> {
    let mode = match mode {
        CreateMode::New => fat::CreateMode::New,
        CreateMode::OpenExisting => fat::CreateMode::OpenExisting,
    };
    let permit = folder.permit.below(path).of_open_file();
    let opened =
        folder.folder.create(checked(path)?, permissions, mode).await.map_err(|error| shared.name_error(error))?;
    sip::executor::spawn(files::serve_open(Rc::clone(shared), opened, permit, client));
    Ok(())
}

async fn rename(shared: &Shared, folder: &Base, from: &[u8], to: &[u8]) -> Result<(), NameError> {
    folder.folder.rename(checked(from)?, checked(to)?).await.map_err(|error| shared.name_error(error))
}

#[derive(Clone, Copy)]
enum Removal {
    File,
    Folder,
}

async fn remove(shared: &Shared, folder: &Base, path: &[u8], removal: Removal) -> Result<(), NameError> {
    let path = checked(path)?;
    let removed = match removal {
        Removal::File => folder.folder.remove_file(path).await,
        Removal::Folder => folder.folder.remove_folder(path).await,
    };
    removed.map_err(|error| shared.name_error(error))
}

async fn set_attributes(shared: &Shared, folder: &Base, path: &[u8], changes: &NodeChanges) -> Result<(), NameError> {
    let wanted = |part| changes.which.contains(part);
    let is_owned = wanted(NodeParts::OWNER) && changes.owner != 0 || wanted(NodeParts::GROUP) && changes.group != 0;
    if is_owned {
        // On FAT everything belongs to user and group 0.
        return Err(NameError::NotSupported);
    }
    let changes = AttributeChanges {
        permissions: wanted(NodeParts::PERMISSIONS).then_some(changes.permissions & 0o7777),
        modified_s: wanted(NodeParts::MODIFIED).then_some(changes.modified_s),
        accessed_s: wanted(NodeParts::ACCESSED).then_some(changes.accessed_s),
    };
    folder.folder.set_attributes(checked(path)?, changes).await.map_err(|error| shared.name_error(error))
}

/// Fills a page with names from `cursor` on. Gives the bytes used, where to go on, and whether there is more.
async fn enumerate(
    shared: &Shared,
    folder: &Base,
    path: &[u8],
    cursor: u64,
    page: &mut [u8],
) -> Result<(usize, u64, bool), NameError> {
    let path = checked(path)?;
    let mut writer = PageWriter::new(page);
    let mut cursor = cursor;
    loop {
        let listing =
            folder.folder.list(path, cursor, NAMES_AT_ONCE).await.map_err(|error| shared.name_error(error))?;
        for entry in &listing.entries {
            if writer.push(answers::node_kind(entry.kind), entry.number, entry.name.as_bytes()).is_err() {
                // A page that has no room for one name would make its client ask for ever.
                let used = writer.used();
                return if used == 0 { Err(NameError::Exhausted) } else { Ok((used, cursor, true)) };
            }
            cursor = entry.position;
        }
        match listing.next {
            Some(next) => cursor = next,
            None => return Ok((writer.used(), cursor, false)),
        }
    }
}
