//! Serving one client of one folder.

use alloc::rc::Rc;
use alloc::vec::Vec;

use client::directory_page::PageWriter;
use contracts::directory::{self, CreateMode, ExpReady, NameError, NodeAttributes, NodeChanges, NodeKind, states};
use disk_source::DiskSource;
use ext2::{DirectoryEntry, Error, Kind, LastLink, NewKind, NewNode, OpenFile};
use name_text as text;
use principal::Right;
use sip::exheap::ExVec;

use crate::access::{self, Base, Caller, RequestError, Speaks};
use crate::files::{self, Opened};
use crate::{Shared, answers};

/// Names that are read from the volume before they are put on a page.
const NAMES_AT_ONCE: usize = 256;
/// Everybody may look into a new folder, its owner may change it.
const FOLDER_PERMISSIONS: u32 = 0o755;
/// A link's permissions are those of what it leads to.
const LINK_PERMISSIONS: u32 = 0o777;

/// Opens the folder that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(shared: Rc<Shared>, base: Rc<Base>, path: Vec<u8>, client: directory::Exp<states::Start>) {
    let caller = Caller { shared: &shared, base: &base, who: &client };
    let (_opened, here) = match open(&caller, &path).await {
        // A folder that is removed while a client has it keeps its number until the client closes.
        Ok(opened) => {
            let here = caller.base_of(opened.number(), &path);
            (opened, here)
        }
        Err(error) => {
            drop(client.refused(failed(&shared, error)));
            return;
        }
    };
    let (base, mut client) = (Rc::new(here), client.success());
    while let Some(next) = answer(&shared, &base, client).await {
        client = next;
    }
}

/// Answers one request; nothing when the client has closed.
async fn answer(
    shared: &Rc<Shared>,
    base: &Rc<Base>,
    client: directory::Exp<states::Ready>,
) -> Option<directory::Exp<states::Ready>> {
    Some(match client.receive_async().await {
        ExpReady::Bind { path, endpoint, next } => match crate::open(shared, base, &path, endpoint) {
            Ok(()) => next.bound(),
            Err(endpoint) => next.not_bound(NameError::WrongContract, endpoint),
        },
        ExpReady::Enumerate { path, cursor, mut page, next } => {
            match enumerate(&Caller { shared, base, who: &next }, &path, cursor, &mut page).await {
                // A page is smaller than the exchange heap, which is smaller than 4 GiB.
                Ok((bytes, cursor, more)) => next.page(page, bytes as u32, cursor, more),
                Err(error) => next.not_enumerated(page, failed(shared, error)),
            }
        }
        ExpReady::GetAttributes { path, next } => match attributes(&Caller { shared, base, who: &next }, &path).await {
            Ok((kind, attributes)) => next.attributes(kind, attributes),
            Err(error) => next.failed(failed(shared, error)),
        },
        ExpReady::ReadLink { path, next } => match link_target(&Caller { shared, base, who: &next }, &path).await {
            Ok(target) => match ExVec::from_slice(text::to_text(&target).as_bytes()) {
                Ok(target) => next.target(target),
                Err(_) => next.failed(NameError::Exhausted),
            },
            Err(error) => next.failed(failed(shared, error)),
        },
        ExpReady::GetAcl { path, next } => match (Caller { shared, base, who: &next }).list(&path).await {
            Ok((acl, from)) => match (ExVec::from_slice(acl.as_bytes()), ExVec::from_slice(from.as_bytes())) {
                (Ok(acl), Ok(from)) => next.acl(acl, from),
                _ => next.failed(NameError::Exhausted),
            },
            Err(error) => next.failed(failed(shared, error)),
        },
        ExpReady::CreateFile { path, permissions, mode, file, next } => {
            let creator = Caller { shared, base, who: &next };
            match create_file(&creator, &path, permissions, mode, &file).await {
                Ok(opened) => {
                    sip::executor::spawn(files::serve_opened(Rc::clone(shared), opened, file));
                    next.done()
                }
                Err(error) => next.failed(failed(shared, error)),
            }
        }
        ExpReady::ChannelClosed(_) => return None,
        change => answer_change(shared, base, change).await?,
    })
}

/// Answers a request that changes something, with nothing but whether it was done.
async fn answer_change(shared: &Shared, base: &Base, change: ExpReady) -> Option<directory::Exp<states::Ready>> {
    /// Answers with what came of it.
    macro_rules! answer {
        ($next:ident, $done:expr) => {{
            let done: Result<(), RequestError> = $done;
            match done {
                Ok(()) => $next.done(),
                Err(error) => $next.failed(failed(shared, error)),
            }
        }};
    }
    Some(match change {
        ExpReady::Link { path, target, next } => {
            answer!(next, make_link(&Caller { shared, base, who: &next }, &path, &target).await)
        }
        ExpReady::CreateDirectory { path, next } => {
            answer!(next, make_folders(&Caller { shared, base, who: &next }, &path).await)
        }
        ExpReady::HardLink { existing, path, next } => {
            answer!(next, hard_link(&Caller { shared, base, who: &next }, &existing, &path).await)
        }
        ExpReady::Rename { from, to, next } => {
            answer!(next, rename(&Caller { shared, base, who: &next }, &from, &to).await)
        }
        ExpReady::RemoveFile { path, next } => {
            answer!(next, remove(&Caller { shared, base, who: &next }, &path, NodeKind::File).await)
        }
        ExpReady::RemoveDirectory { path, next } => {
            answer!(next, remove(&Caller { shared, base, who: &next }, &path, NodeKind::Directory).await)
        }
        ExpReady::SetAttributes { path, changes, next } => {
            answer!(next, set_attributes(&Caller { shared, base, who: &next }, &path, &changes).await)
        }
        ExpReady::SetAcl { path, acl, next } => {
            answer!(next, Caller { shared, base, who: &next }.set_list(&path, &acl).await)
        }
        ExpReady::Sync { next } => answer!(next, shared.volume.sync().await.map_err(RequestError::Volume)),
        // Names of services are kept by the directory service, which also tells of changes.
        ExpReady::Register { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Deregister { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Notify { next, .. } => next.failed(NameError::NotSupported),
        _ => return None,
    })
}

async fn open(caller: &Caller<'_>, path: &[u8]) -> Result<OpenFile<DiskSource>, RequestError> {
    let found = caller.find(path, LastLink::Follow).await?;
    if found.inode.kind != Kind::Directory {
        return Err(Error::NotADirectory.into());
    }
    // What is asked for there is looked at then; somebody for whom nothing is there is told at once.
    if !caller.may_mend_lists() {
        caller.need(&found, &[Right::Traverse, Right::Read, Right::SetAcl], path).await?;
    }
    Ok(caller.shared.volume.open(found.inode.number).await?)
}

fn failed(shared: &Shared, error: RequestError) -> NameError {
    match error {
        RequestError::Volume(error) => {
            shared.note(&error);
            answers::name_error(&error)
        }
        RequestError::Refused => NameError::NotPermitted,
        RequestError::BadPath => NameError::BadPath,
        RequestError::BadList | RequestError::NotALink => NameError::NotSupported,
        RequestError::NoRoomForOne => NameError::Exhausted,
    }
}

async fn attributes(caller: &Caller<'_>, path: &[u8]) -> Result<(NodeKind, NodeAttributes), RequestError> {
    let found = caller.find(path, LastLink::Keep).await?;
    caller.need(&found, &[Right::Read], path).await?;
    Ok((answers::node_kind(found.inode.kind), answers::node_attributes(&found.inode)))
}

async fn link_target(caller: &Caller<'_>, path: &[u8]) -> Result<Vec<u8>, RequestError> {
    let found = caller.find(path, LastLink::Keep).await?;
    if found.inode.kind != Kind::SymbolicLink {
        return Err(RequestError::NotALink);
    }
    caller.need(&found, &[Right::Read], path).await?;
    Ok(caller.shared.volume.link_target(found.inode.number).await?)
}

/// Opens a file, which is made first where there is none, for who has the other end of `file`.
async fn create_file(
    caller: &Caller<'_>,
    path: &[u8],
    permissions: u32,
    mode: CreateMode,
    file: &dyn Speaks,
) -> Result<Opened, RequestError> {
    let (parent, name) = caller.place(path).await?;
    let shown = text::to_text(&name);
    let base = caller.base_of(parent.inode.number, path_of_folder(path));
    let client = Caller { base: &base, who: file, ..*caller };
    let volume = &caller.shared.volume;
    if !caller.rights(&parent).await?.has(Right::Write) {
        // What is there can be opened without being made.
        if mode == CreateMode::OpenExisting && volume.find(parent.inode.number, &name).await.is_ok() {
            return files::open(&client, shown.as_bytes()).await;
        }
        caller.need(&parent, &[Right::Write], path).await?;
    }
    match volume.create_open(parent.inode.number, &name, new_node(NewKind::File, permissions)).await {
        Ok(made) => {
            caller.shared.access.forget_node(made.number());
            let rights = client.rights(&parent).await?;
            Ok(Opened { file: made, rights, path: access::join(&base.path, shown.as_bytes()) })
        }
        Err(Error::AlreadyExists) if mode == CreateMode::OpenExisting => files::open(&client, shown.as_bytes()).await,
        Err(error) => Err(error.into()),
    }
}

/// The path without its last name.
fn path_of_folder(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(&[], |slash| &path[..slash])
}

/// Makes the folder at the end of the path, and those on the way that are not there.
async fn make_folders(caller: &Caller<'_>, path: &[u8]) -> Result<(), RequestError> {
    if path.iter().all(|&byte| byte == b'/') {
        // The bound folder itself is there.
        return Err(Error::AlreadyExists.into());
    }
    let mut missing: Vec<Vec<u8>> = Vec::new();
    let mut rest = path;
    // Up to the first folder that is there.
    let found = loop {
        match caller.place(rest).await {
            Ok((found, name)) => {
                missing.push(name);
                break found;
            }
            Err(RequestError::Volume(Error::NotFound)) => {
                let path = core::str::from_utf8(rest).map_err(|_| RequestError::BadPath)?;
                let (above, name) = path::split_last(path).ok_or(Error::NotFound)?;
                missing.push(text::from_text(name)?.into_owned());
                rest = &rest[..above.len()];
            }
            Err(error) => return Err(error),
        }
    };
    caller.need(&found, &[Right::Write], path).await?;
    let mut parent = found.inode.number;
    while let Some(name) = missing.pop() {
        let new = new_node(NewKind::Directory, FOLDER_PERMISSIONS);
        parent = caller.shared.volume.create(parent, &name, new).await?.number;
        caller.shared.access.forget_node(parent);
    }
    Ok(())
}

async fn make_link(caller: &Caller<'_>, path: &[u8], target: &[u8]) -> Result<(), RequestError> {
    let (parent, name) = caller.place(path).await?;
    caller.need(&parent, &[Right::Write], path).await?;
    let target = text::from_text(core::str::from_utf8(target).map_err(|_| RequestError::BadPath)?)?;
    let new = new_node(NewKind::SymbolicLink(&target), LINK_PERMISSIONS);
    let made = caller.shared.volume.create(parent.inode.number, &name, new).await?;
    caller.shared.access.forget_node(made.number);
    Ok(())
}

async fn hard_link(caller: &Caller<'_>, existing: &[u8], path: &[u8]) -> Result<(), RequestError> {
    let target = caller.find(existing, LastLink::Keep).await?;
    let (parent, name) = caller.place(path).await?;
    caller.need(&target, &[Right::Write], existing).await?;
    caller.need(&parent, &[Right::Write], path).await?;
    caller.need_to_move(&target, &parent, existing).await?;
    Ok(caller.shared.volume.link(parent.inode.number, &name, target.inode.number).await?)
}

async fn rename(caller: &Caller<'_>, from: &[u8], to: &[u8]) -> Result<(), RequestError> {
    let (from_parent, from_name) = caller.place(from).await?;
    let (to_parent, to_name) = caller.place(to).await?;
    caller.need(&from_parent, &[Right::Write], from).await?;
    caller.need(&to_parent, &[Right::Write], to).await?;
    caller.need_to_take(&from_parent, &from_name, from).await?;
    caller.need_to_take(&to_parent, &to_name, to).await?;
    if from_parent.inode.number != to_parent.inode.number {
        let node = caller.child(&from_parent, &from_name).await?;
        caller.need_to_move(&node, &to_parent, from).await?;
    }
    let (volume, to_folder) = (&caller.shared.volume, to_parent.inode.number);
    volume.rename(from_parent.inode.number, &from_name, to_folder, &to_name).await?;
    caller.shared.access.forget();
    Ok(())
}

async fn remove(caller: &Caller<'_>, path: &[u8], kind: NodeKind) -> Result<(), RequestError> {
    let (parent, name) = caller.place(path).await?;
    caller.need(&parent, &[Right::Write], path).await?;
    caller.need_to_take(&parent, &name, path).await?;
    match kind {
        NodeKind::Directory => caller.shared.volume.remove_directory(parent.inode.number, &name).await?,
        _ => caller.shared.volume.unlink(parent.inode.number, &name).await?,
    }
    caller.shared.access.forget();
    Ok(())
}

async fn set_attributes(caller: &Caller<'_>, path: &[u8], changes: &NodeChanges) -> Result<(), RequestError> {
    let found = caller.find(path, LastLink::Keep).await?;
    caller.need(&found, &[Right::Write], path).await?;
    Ok(caller.shared.volume.set_attributes(found.inode.number, answers::attribute_changes(changes)).await?)
}

/// What is new belongs to the system: user and group 0.
fn new_node(kind: NewKind<'_>, permissions: u32) -> NewNode<'_> {
    // Only the low twelve bits count.
    NewNode { kind, permissions: (permissions & 0o7777) as u16, owner: 0, group: 0 }
}

/// Fills a page with names from `cursor` on. Gives the bytes used, where to go on, and whether there is more.
async fn enumerate(
    caller: &Caller<'_>,
    path: &[u8],
    cursor: u64,
    page: &mut [u8],
) -> Result<(usize, u64, bool), RequestError> {
    let (shared, found) = (caller.shared, caller.find(path, LastLink::Follow).await?);
    caller.need(&found, &[Right::Read], path).await?;
    let mut writer = PageWriter::new(page);
    let mut cursor = cursor;
    loop {
        let listing = shared.volume.list(found.inode.number, cursor, NAMES_AT_ONCE).await?;
        for entry in &listing.entries {
            let kind = kind_of(shared, entry).await;
            if writer.push(kind, entry.inode.into(), text::to_text(&entry.name).as_bytes()).is_err() {
                // A page that has no room for one name would make its client ask for ever.
                let used = writer.used();
                return if used == 0 { Err(RequestError::NoRoomForOne) } else { Ok((used, entry.position, true)) };
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
