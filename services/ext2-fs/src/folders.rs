//! Serving one client of one folder.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::directory::{self, ExpReady, NameError, NodeAttributes, NodeKind, states};
use contracts::directory_page::PageWriter;
use contracts::path;
use ext2::{DirectoryEntry, Error, Inode, Kind, LastLink};
use sip::exheap::ExVec;

use crate::{Shared, answers};

/// Names that are read from the volume before they are put on a page.
const NAMES_AT_ONCE: usize = 256;

/// Opens the folder that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: u32, path: Vec<u8>, client: directory::Exp<states::Start>) {
    let folder = match find(&shared, base, &path, LastLink::Follow).await {
        Ok(inode) if inode.kind == Kind::Directory => inode.number,
        Ok(_) => {
            drop(client.refused(NameError::NotADirectory));
            return;
        }
        Err(error) => {
            drop(client.refused(error));
            return;
        }
    };
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
            ExpReady::Register { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::Deregister { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::Link { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::CreateDirectory { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::CreateFile { next, .. } => next.failed(NameError::ReadOnly),
            ExpReady::HardLink { next, .. } => next.failed(NameError::ReadOnly),
            ExpReady::Rename { next, .. } => next.failed(NameError::ReadOnly),
            ExpReady::RemoveFile { next, .. } => next.failed(NameError::ReadOnly),
            ExpReady::RemoveDirectory { next, .. } => next.failed(NameError::ReadOnly),
            ExpReady::SetAttributes { next, .. } => next.failed(NameError::ReadOnly),
            ExpReady::Sync { next } => next.done(),
            ExpReady::Notify { next, .. } => next.failed(NameError::NotSupported),
            ExpReady::ChannelClosed(_) => return,
        };
    }
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
    let target = shared.volume.link_target(&inode).await.map_err(|error| failed(shared, &error))?;
    ExVec::from_slice(&target).map_err(|_| NameError::Exhausted)
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
        let listing = shared.volume.list(&inode, cursor, NAMES_AT_ONCE).await;
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
