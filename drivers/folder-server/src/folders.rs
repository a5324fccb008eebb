//! Serving one client of one folder.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::directory::{
    self, CreateMode, ExpReady, NameError, NodeAttributes, NodeChanges, NodeKind, NodeParts, states,
};
use contracts::directory_page::PageWriter;
use contracts::file;
use nine_p::{Changes, Entry, UNLINK_DIRECTORY, entries, errno, open_flags};
use principal::Right;
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;

use crate::answers;
use crate::files::{self, OpenFile};
use crate::session::{Error, Fid};
use crate::walk::{self, Base, Here, LastLink};
use crate::watch;

/// Bytes of names that are asked for at once.
const ENTRIES_BYTES: usize = 16 << 10;
/// Everybody may look into a new folder, its owner may change it.
const FOLDER_PERMISSIONS: u32 = 0o755;
/// Permissions that clients may give: no program of the host's becomes one that runs as its owner.
const PERMISSIONS: u32 = 0o777;

/// A folder that a client is reading, between two pages.
struct Reading {
    path: Vec<u8>,
    cursor: u64,
    fid: Fid,
}

/// Opens the folder that the path leads to from the folder `base`, and serves it until the client closes.
pub(crate) async fn serve(base: Base, path: Vec<u8>, client: directory::Exp<states::Start>) {
    let permit = base.permit.below(&path);
    if !permit.allows(&[Right::Traverse, Right::Read], &client) {
        drop(client.refused(NameError::NotPermitted));
        return;
    }
    let here = match base.find(&path, LastLink::Follow).await {
        Ok(found) if found.qid.is_directory() => base.below(found, permit.held_by(&client)),
        Ok(_) => {
            drop(client.refused(NameError::NotADirectory));
            return;
        }
        Err(error) => {
            drop(client.refused(answers::name_error(error)));
            return;
        }
    };
    drop(base);
    let (here, mut reading, mut client) = (Rc::new(here), None, client.success());
    while let Some(next) = answer(&here, &mut reading, client).await {
        client = next;
    }
}

/// Answers one request; nothing when the client has closed.
async fn answer(
    here: &Base,
    reading: &mut Option<Reading>,
    client: directory::Exp<states::Ready>,
) -> Option<directory::Exp<states::Ready>> {
    Some(match client.receive_async().await {
        ExpReady::Bind { path, endpoint, next } => match crate::open(here, &path, endpoint) {
            Ok(()) => next.bound(),
            Err(endpoint) => next.not_bound(NameError::WrongContract, endpoint),
        },
        ExpReady::Enumerate { page, next, .. } if !may_read(here, &next) => {
            next.not_enumerated(page, NameError::NotPermitted)
        }
        ExpReady::Enumerate { path, cursor, mut page, next } => {
            match enumerate(here, reading, &path, cursor, &mut page).await {
                // A page is smaller than the exchange heap, which is smaller than 4 GiB.
                Ok((bytes, cursor, more)) => next.page(page, bytes as u32, cursor, more),
                Err(error) => next.not_enumerated(page, answers::name_error(error)),
            }
        }
        ExpReady::GetAttributes { next, .. } if !may_read(here, &next) => next.failed(NameError::NotPermitted),
        ExpReady::GetAttributes { path, next } => match attributes(here, &path).await {
            Ok((kind, attributes)) => next.attributes(kind, attributes),
            Err(error) => next.failed(answers::name_error(error)),
        },
        ExpReady::ReadLink { next, .. } if !may_read(here, &next) => next.failed(NameError::NotPermitted),
        ExpReady::ReadLink { path, next } => match link_target(here, &path).await {
            Ok(target) => next.target(target),
            Err(error) => next.failed(error),
        },
        ExpReady::GetAcl { next, .. } if !may_read(here, &next) => next.failed(NameError::NotPermitted),
        ExpReady::GetAcl { path, next } => match list(here, &path).await {
            Ok((none, from)) => next.acl(none, from),
            Err(error) => next.failed(answers::name_error(error)),
        },
        ExpReady::Notify { next, .. } if !here.permit.allows(&[Right::Notify], &next) => {
            next.failed(NameError::NotPermitted)
        }
        ExpReady::Notify { path, events, next } => match watch::subscribe(here, &path, events).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(answers::name_error(error)),
        },
        ExpReady::CreateFile { path, mode, next, .. } if !may_create(here, &path, mode, &next).await => {
            next.failed(NameError::NotPermitted)
        }
        ExpReady::CreateFile { path, permissions, mode, file, next } => {
            match create_file(here, &path, permissions, mode, file).await {
                Ok(()) => next.done(),
                Err(error) => next.failed(answers::name_error(error)),
            }
        }
        ExpReady::ChannelClosed(_) => return None,
        change => answer_change(here, change).await?,
    })
}

/// Answers a request that changes something, with nothing but whether it was done.
async fn answer_change(here: &Base, change: ExpReady) -> Option<directory::Exp<states::Ready>> {
    /// Answers with what came of it, where the client may write.
    macro_rules! answer {
        ($next:ident, $done:expr) => {{
            if !may_write(here, &$next) {
                return Some($next.failed(NameError::NotPermitted));
            }
            let done: Result<(), Error> = $done;
            match done {
                Ok(()) => $next.done(),
                Err(error) => $next.failed(answers::name_error(error)),
            }
        }};
    }
    Some(match change {
        ExpReady::CreateDirectory { path, next } => answer!(next, make_folders(here, &path).await),
        ExpReady::Link { path, target, next } => answer!(next, make_link(here, &path, &target).await),
        ExpReady::HardLink { existing, path, next } => answer!(next, hard_link(here, &existing, &path).await),
        ExpReady::Rename { next, .. } if !may_write(here, &next) => next.failed(NameError::NotPermitted),
        ExpReady::Rename { from, to, next } => match rename(here, &from, &to).await {
            Ok(()) => next.done(),
            // What is moved is a folder, and the other place lies in it.
            Err(Error::Host(errno::EINVAL)) => next.failed(NameError::IntoItself),
            Err(error) => next.failed(answers::name_error(error)),
        },
        ExpReady::RemoveFile { path, next } => answer!(next, remove(here, &path, 0).await),
        ExpReady::RemoveDirectory { path, next } => answer!(next, remove(here, &path, UNLINK_DIRECTORY).await),
        ExpReady::SetAttributes { path, changes, next } => answer!(next, set_attributes(here, &path, &changes).await),
        ExpReady::Sync { next } => match here.sync().await {
            Ok(()) => next.done(),
            Err(error) => next.failed(answers::name_error(error)),
        },
        // The host has no room for lists that it would keep to, and file systems do not register services.
        ExpReady::SetAcl { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Register { next, .. } => next.failed(NameError::NotSupported),
        ExpReady::Deregister { next, .. } => next.failed(NameError::NotSupported),
        _ => return None,
    })
}

fn may_read<E: TypedEndpoint>(here: &Here, client: &E) -> bool {
    here.permit.allows(&[Right::Read], client)
}

fn may_write<E: TypedEndpoint>(here: &Here, client: &E) -> bool {
    here.permit.allows(&[Right::Write], client)
}

/// Whether the client may write, or the file is there and it may read.
async fn may_create<E: TypedEndpoint>(here: &Here, path: &[u8], mode: CreateMode, client: &E) -> bool {
    let is_there = mode == CreateMode::OpenExisting && here.find(path, LastLink::Follow).await.is_ok();
    let rights: &[Right] = if is_there { &[Right::Read, Right::Write] } else { &[Right::Write] };
    here.permit.allows(rights, client)
}

async fn attributes(here: &Here, path: &[u8]) -> Result<(NodeKind, NodeAttributes), Error> {
    let known = here.find(path, LastLink::Keep).await?.fid.attributes().await?;
    Ok((answers::node_kind(known.mode), answers::node_attributes(&known)))
}

async fn link_target(here: &Here, path: &[u8]) -> Result<ExVec<u8>, NameError> {
    let found = here.find(path, LastLink::Keep).await.map_err(answers::name_error)?;
    if !found.qid.is_link() {
        return Err(NameError::NotSupported);
    }
    let target = found.fid.target().await.map_err(answers::name_error)?;
    ExVec::from_slice(name_text::to_text(&target).as_bytes()).map_err(|_| NameError::Exhausted)
}

/// The list that decides about what is there: none of its own, and where it is told.
async fn list(here: &Here, path: &[u8]) -> Result<(ExVec<u8>, ExVec<u8>), Error> {
    here.find(path, LastLink::Keep).await?;
    let block = |text: &str| ExVec::from_slice(text.as_bytes()).map_err(|_| Error::Exhausted);
    Ok((block("")?, block(here.permit.list_from())?))
}

/// Opens a file, which is made first where there is none, for who has the other end of `client`.
async fn create_file(
    here: &Base,
    path: &[u8],
    permissions: u32,
    mode: CreateMode,
    client: file::Exp<file::states::Start>,
) -> Result<(), Error> {
    let permit = here.permit.below(path).of_open_file();
    let (folder, name) = here.place(path).await?;
    let open = folder.fid.duplicate().await?;
    let file = match open.create(&name, permissions & PERMISSIONS).await {
        Ok(qid) => {
            let (qids, node) = folder.fid.walk(core::slice::from_ref(&name)).await?;
            // The host may have taken it away already.
            let node = node.filter(|_| qids.first().map(|found| found.path) == Some(qid.path));
            OpenFile::created(here, node.ok_or(Error::Host(errno::ENOENT))?, open)
        }
        Err(Error::Host(errno::EEXIST)) if mode == CreateMode::OpenExisting => OpenFile::open(here, path).await?,
        // One that is there can be opened where none can be made.
        Err(error @ Error::Host(errno::EROFS | errno::EACCES | errno::EPERM)) if mode == CreateMode::OpenExisting => {
            OpenFile::open(here, path).await.map_err(|_| error)?
        }
        Err(error) => return Err(error),
    };
    drop(sip::executor::spawn(files::serve_open(file, permit, client)));
    Ok(())
}

/// Makes a folder, and those on the way that are not there.
async fn make_folders(here: &Here, path: &[u8]) -> Result<(), Error> {
    let missing = Error::Host(errno::ENOENT);
    let made = match make_folder(here, path).await {
        Err(error) if error == missing => {
            let ends = path.iter().enumerate().filter(|&(at, &byte)| at > 0 && byte == b'/');
            for (end, _) in ends {
                match make_folder(here, &path[..end]).await {
                    // Only the last one has to be new.
                    Ok(()) | Err(Error::Host(errno::EEXIST) | Error::Itself) => {}
                    Err(error) => return Err(error),
                }
            }
            make_folder(here, path).await
        }
        made => made,
    };
    // The bound folder itself is there.
    made.map_err(|error| if error == Error::Itself { Error::Host(errno::EEXIST) } else { error })
}

async fn make_folder(here: &Here, path: &[u8]) -> Result<(), Error> {
    let (folder, name) = here.place(path).await?;
    folder.fid.make_folder(&name, FOLDER_PERMISSIONS).await
}

/// Makes a symbolic link. One that leads out could not be followed here, and would deceive programs of the host.
async fn make_link(here: &Here, path: &[u8], target: &[u8]) -> Result<(), Error> {
    let (folder, name) = here.place(path).await?;
    let target = core::str::from_utf8(target).map_err(|_| Error::BadPath)?;
    let target = name_text::from_text(target).map_err(|_| Error::BadPath)?;
    if !walk::stays_inside(&folder.names, &target) {
        return Err(Error::LeadsOut);
    }
    folder.fid.make_link(&name, &target).await
}

async fn hard_link(here: &Here, existing: &[u8], path: &[u8]) -> Result<(), Error> {
    let file = here.find(existing, LastLink::Keep).await?;
    if file.qid.is_directory() {
        return Err(Error::Host(errno::EISDIR));
    }
    let (folder, name) = here.place(path).await?;
    folder.fid.hard_link(&file.fid, &name).await
}

async fn rename(here: &Here, from: &[u8], to: &[u8]) -> Result<(), Error> {
    let (from_folder, old_name) = here.place(from).await?;
    let (to_folder, new_name) = here.place(to).await?;
    from_folder.fid.rename(&old_name, &to_folder.fid, &new_name).await
}

async fn remove(here: &Here, path: &[u8], flags: u32) -> Result<(), Error> {
    let (folder, name) = here.place(path).await?;
    folder.fid.unlink(&name, flags).await
}

async fn set_attributes(here: &Here, path: &[u8], wanted: &NodeChanges) -> Result<(), Error> {
    let has = |part| wanted.which.contains(part);
    let mut changes = Changes {
        mode: wanted.permissions & 0o7777,
        owner: wanted.owner,
        group: wanted.group,
        modified_s: wanted.modified_s.cast_unsigned(),
        accessed_s: wanted.accessed_s.cast_unsigned(),
        ..Changes::default()
    };
    if has(NodeParts::PERMISSIONS) && changes.mode & !PERMISSIONS != 0 {
        return Err(Error::Host(errno::EPERM));
    }
    let parts = [
        (NodeParts::PERMISSIONS, Changes::MODE),
        (NodeParts::OWNER, Changes::OWNER),
        (NodeParts::GROUP, Changes::GROUP),
        (NodeParts::MODIFIED, Changes::MODIFIED | Changes::MODIFIED_SET),
        (NodeParts::ACCESSED, Changes::ACCESSED | Changes::ACCESSED_SET),
    ];
    changes.valid = parts.iter().filter(|(part, _)| has(*part)).map(|(_, valid)| valid).sum();
    here.find(path, LastLink::Keep).await?.fid.set_attributes(changes).await
}

/// Fills a page with names from `cursor` on. Gives the bytes used, where to go on, and whether there is more.
async fn enumerate(
    here: &Here,
    reading: &mut Option<Reading>,
    path: &[u8],
    cursor: u64,
    page: &mut [u8],
) -> Result<(usize, u64, bool), Error> {
    let fid = match reading.take() {
        // Where to go on is told to whoever has the folder open.
        Some(reading) if cursor != 0 && reading.cursor == cursor && reading.path == path => reading.fid,
        _ => {
            let found = here.find(path, LastLink::Follow).await?;
            if !found.qid.is_directory() {
                return Err(Error::Host(errno::ENOTDIR));
            }
            found.fid.open(open_flags::READ).await?;
            found.fid
        }
    };
    let mut writer = PageWriter::new(page);
    let mut cursor = cursor;
    loop {
        let names = fid.read_entries(cursor, ENTRIES_BYTES, <[u8]>::to_vec).await?;
        let mut found_any = false;
        for entry in entries(&names) {
            found_any = true;
            if entry.name != b"." && entry.name != b".." {
                let kind = kind_of(here, path, &entry).await;
                let name = name_text::to_text(entry.name);
                if writer.push(kind, entry.qid.path, name.as_bytes()).is_err() {
                    let used = writer.used();
                    if used == 0 {
                        // A page that has no room for one name would make its client ask for ever.
                        return Err(Error::Exhausted);
                    }
                    *reading = Some(Reading { path: path.to_vec(), cursor, fid });
                    return Ok((used, cursor, true));
                }
            }
            cursor = entry.offset;
        }
        if !found_any {
            return Ok((writer.used(), cursor, false));
        }
    }
}

/// What an entry names. Some file systems do not say in their folders; then the node does.
async fn kind_of(here: &Here, folder: &[u8], entry: &Entry<'_>) -> NodeKind {
    if let Some(kind) = answers::entry_kind(entry) {
        return kind;
    }
    let mut path = folder.to_vec();
    path.push(b'/');
    path.extend(name_text::to_text(entry.name).bytes());
    attributes(here, &path).await.map_or(NodeKind::Other, |(kind, _)| kind)
}
