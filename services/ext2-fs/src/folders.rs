//! Serving one client of one folder.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::directory::{self, CreateMode, ExpReady, NameError, NodeAttributes, NodeChanges, NodeKind, states};
use contracts::directory_page::PageWriter;
use contracts::path;
use ext2::{DirectoryEntry, Error, Inode, Kind, LastLink, NewKind, NewNode};
use sip::exheap::ExVec;

use crate::files::{self, Opened};
use crate::{Shared, answers};

/// Names that are read from the volume before they are put on a page.
const NAMES_AT_ONCE: usize = 256;
/// Everybody may look into a new folder, its owner may change it.
const FOLDER_PERMISSIONS: u32 = 0o755;
/// A link's permissions are those of what it leads to.
const LINK_PERMISSIONS: u32 = 0o777;

/// Opens the folder that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: u32, path: Vec<u8>, client: directory::Exp<states::Start>) {
    let opened = match open(&shared, base, &path).await {
        Ok(opened) => opened,
        Err(error) => {
            drop(client.refused(error));
            return;
        }
    };
    // A folder that is removed while a client has it keeps its number until the client closes.
    let folder = opened.number();
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::Bind { path, endpoint, next } => match crate::open(&shared, folder, &path, endpoint) {
                Ok(()) => next.bound(),
                Err(endpoint) => next.not_bound(NameError::WrongContract, endpoint),
            },
            ExpReady::Enumerate { path, cursor, mut page, next } => {
                match enumerate(&shared, folder, &path, cursor, &mut page).await {
                    // A page is smaller than the exchange heap, which is smaller than 4 GiB.
                    Ok((bytes, cursor, more)) => next.page(page, bytes as u32, cursor, more),
                    Err(error) => next.not_enumerated(page, error),
                }
            }
            ExpReady::GetAttributes { path, next } => match attributes(&shared, folder, &path).await {
                Ok((kind, attributes)) => next.attributes(kind, attributes),
                Err(error) => next.failed(error),
            },
            ExpReady::ReadLink { path, next } => match link_target(&shared, folder, &path).await {
                Ok(target) => next.target(target),
                Err(error) => next.failed(error),
            },
            ExpReady::Link { path, target, next } => match make_link(&shared, folder, &path, &target).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::CreateDirectory { path, next } => match make_folders(&shared, folder, &path).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::CreateFile { path, permissions, mode, file, next } => {
                match create_file(&shared, folder, &path, permissions, mode).await {
                    Ok(opened) => {
                        sip::executor::spawn(files::serve_opened(shared.clone(), opened, file));
                        next.done()
                    }
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::HardLink { existing, path, next } => match hard_link(&shared, folder, &existing, &path).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::Rename { from, to, next } => match rename(&shared, folder, &from, &to).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::RemoveFile { path, next } => match remove(&shared, folder, &path, NodeKind::File).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::RemoveDirectory { path, next } => {
                match remove(&shared, folder, &path, NodeKind::Directory).await {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::SetAttributes { path, changes, next } => {
                match set_attributes(&shared, folder, &path, &changes).await {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::Sync { next } => match shared.volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => next.failed(failed(&shared, &error)),
            },
            // Names of services are kept by the directory service, which also tells of changes.
            ExpReady::SetAcl { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::GetAcl { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::Register { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::Deregister { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::Notify { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

async fn open(shared: &Shared, base: u32, path: &[u8]) -> Result<Opened, NameError> {
    let inode = find(shared, base, path, LastLink::Follow).await?;
    if inode.kind != Kind::Directory {
        return Err(NameError::NotADirectory);
    }
    shared.volume.open(inode.number).await.map_err(|error| failed(shared, &error))
}

async fn find(shared: &Shared, folder: u32, path: &[u8], last: LastLink) -> Result<Inode, NameError> {
    if !core::str::from_utf8(path).is_ok_and(path::is_valid) {
        return Err(NameError::BadPath);
    }
    shared.volume.resolve(folder, path, last).await.map_err(|error| failed(shared, &error))
}

fn failed(shared: &Shared, error: &Error) -> NameError {
    shared.note(error);
    answers::name_error(error)
}

async fn attributes(shared: &Shared, folder: u32, path: &[u8]) -> Result<(NodeKind, NodeAttributes), NameError> {
    let inode = find(shared, folder, path, LastLink::Keep).await?;
    Ok((answers::node_kind(inode.kind), answers::node_attributes(&inode)))
}

async fn link_target(shared: &Shared, folder: u32, path: &[u8]) -> Result<ExVec<u8>, NameError> {
    let inode = find(shared, folder, path, LastLink::Keep).await?;
    if inode.kind != Kind::SymbolicLink {
        return Err(NameError::NotSupported);
    }
    let target = shared.volume.link_target(inode.number).await.map_err(|error| failed(shared, &error))?;
    ExVec::from_slice(&target).map_err(|_| NameError::Exhausted)
}

/// What a change of names needs: the folder it is in, and the name there.
async fn place(shared: &Shared, folder: u32, path: &[u8]) -> Result<(u32, Vec<u8>), NameError> {
    if !core::str::from_utf8(path).is_ok_and(path::is_valid) {
        return Err(NameError::BadPath);
    }
    shared.volume.resolve_parent(folder, path).await.map_err(|error| failed(shared, &error))
}

async fn create_file(
    shared: &Shared,
    folder: u32,
    path: &[u8],
    permissions: u32,
    mode: CreateMode,
) -> Result<Opened, NameError> {
    let (parent, name) = place(shared, folder, path).await?;
    let new = new_node(NewKind::File, permissions);
    let opened = match shared.volume.create_open(parent, &name, new).await {
        Err(Error::AlreadyExists) if mode == CreateMode::OpenExisting => {
            let existing = find(shared, parent, &name, LastLink::Follow).await?;
            files::open_number(shared, existing.number).await
        }
        created => created,
    };
    opened.map_err(|error| failed(shared, &error))
}

/// Makes the folder at the end of the path, and those on the way that are not there.
async fn make_folders(shared: &Shared, folder: u32, path: &[u8]) -> Result<(), NameError> {
    let mut missing: Vec<Vec<u8>> = Vec::new();
    let mut rest = path;
    // Up to the first folder that is there.
    let mut parent = loop {
        match place(shared, folder, rest).await {
            Ok((parent, name)) => {
                missing.push(name);
                break parent;
            }
            Err(NameError::NotFound) => {
                let text = core::str::from_utf8(rest).map_err(|_| NameError::BadPath)?;
                let (above, name) = path::split_last(text).ok_or(NameError::NotFound)?;
                missing.push(name.as_bytes().to_vec());
                rest = &rest[..above.len()];
            }
            Err(error) => return Err(error),
        }
    };
    while let Some(name) = missing.pop() {
        let made = shared.volume.create(parent, &name, new_node(NewKind::Directory, FOLDER_PERMISSIONS)).await;
        parent = made.map_err(|error| failed(shared, &error))?.number;
    }
    Ok(())
}

async fn make_link(shared: &Shared, folder: u32, path: &[u8], target: &[u8]) -> Result<(), NameError> {
    let (parent, name) = place(shared, folder, path).await?;
    let new = new_node(NewKind::SymbolicLink(target), LINK_PERMISSIONS);
    shared.volume.create(parent, &name, new).await.map(drop).map_err(|error| failed(shared, &error))
}

async fn hard_link(shared: &Shared, folder: u32, existing: &[u8], path: &[u8]) -> Result<(), NameError> {
    let target = find(shared, folder, existing, LastLink::Keep).await?;
    let (parent, name) = place(shared, folder, path).await?;
    shared.volume.link(parent, &name, target.number).await.map_err(|error| failed(shared, &error))
}

async fn rename(shared: &Shared, folder: u32, from: &[u8], to: &[u8]) -> Result<(), NameError> {
    let (from_parent, from_name) = place(shared, folder, from).await?;
    let (to_parent, to_name) = place(shared, folder, to).await?;
    let renamed = shared.volume.rename(from_parent, &from_name, to_parent, &to_name).await;
    renamed.map_err(|error| failed(shared, &error))
}

async fn remove(shared: &Shared, folder: u32, path: &[u8], kind: NodeKind) -> Result<(), NameError> {
    let (parent, name) = place(shared, folder, path).await?;
    let removed = match kind {
        NodeKind::Directory => shared.volume.remove_directory(parent, &name).await,
        _ => shared.volume.unlink(parent, &name).await,
    };
    removed.map_err(|error| failed(shared, &error))
}

async fn set_attributes(shared: &Shared, folder: u32, path: &[u8], changes: &NodeChanges) -> Result<(), NameError> {
    let inode = find(shared, folder, path, LastLink::Keep).await?;
    let changes = answers::attribute_changes(changes);
    shared.volume.set_attributes(inode.number, changes).await.map_err(|error| failed(shared, &error))
}

/// What is new belongs to the system: user and group 0.
fn new_node(kind: NewKind<'_>, permissions: u32) -> NewNode<'_> {
    // Only the low twelve bits count.
    NewNode { kind, permissions: (permissions & 0o7777) as u16, owner: 0, group: 0 }
}

/// Fills a page with names from `cursor` on. Gives the bytes used, where to go on, and whether there is more.
async fn enumerate(
    shared: &Shared,
    folder: u32,
    path: &[u8],
    cursor: u64,
    page: &mut [u8],
) -> Result<(usize, u64, bool), NameError> {
    let inode = find(shared, folder, path, LastLink::Follow).await?;
    let mut writer = PageWriter::new(page);
    let mut cursor = cursor;
    loop {
        let listing = shared.volume.list(inode.number, cursor, NAMES_AT_ONCE).await;
        let listing = listing.map_err(|error| failed(shared, &error))?;
        for entry in &listing.entries {
            let kind = kind_of(shared, entry).await;
            if writer.push(kind, entry.inode.into(), &entry.name).is_err() {
                // A page that has no room for one name would make its client ask for ever.
                let used = writer.used();
                return if used == 0 { Err(NameError::Exhausted) } else { Ok((used, entry.position, true)) };
            }
        }
        match listing.next {
            Some(next) => cursor = next,
            None => return Ok((writer.used(), cursor, false)),
        }
    }
}

/// What an entry names. Folders of old volumes do not say; then the inode does, and one that is damaged
/// is no reason to show nothing of its folder.
async fn kind_of(shared: &Shared, entry: &DirectoryEntry) -> NodeKind {
    let kind = match entry.kind {
        Some(kind) => Some(kind),
        None => shared.volume.inode(entry.inode).await.map(|inode| inode.kind).ok(),
    };
    kind.map_or(NodeKind::Other, answers::node_kind)
}
