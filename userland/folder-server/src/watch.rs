//! Watches folders for clients that subscribed to changes.
//!
//! 9P has no notification, so a watched directory is polled, and differences from the last snapshot are announced: key
//! functions [`subscribe`], [`look`] and [`changes`]. A slow client delays the next poll, so there is no queue here.
//! Deliberately not here: the host's own notification, which would require the confined process to have a system call
//! that names any path of the host.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use contracts::namespace_events::{self, Change, states};
use nine_p::{Attributes, entries, errno, open_flags};
use sip::exheap::ExVec;
use sip::{Deadline, executor, time};

use crate::session::Error;
use crate::walk::{Base, Found, LastLink};

/// Maximum number of watches.
const MAX_WATCHES: usize = 64;
/// Maximum number of names at or below a watched path.
const MAX_NODES: usize = 1024;
/// Maximum number of changes that are announced one by one; more become one `Overflow`.
const MAX_CHANGES: usize = 64;
/// Minimum time between two polls, in nanoseconds and as a multiple of the duration of a poll.
const PAUSE_NS: u64 = 1_000_000_000;
const PAUSE_PER_SCAN: u64 = 20;
/// Bytes of directory entries per read.
const ENTRIES_BYTES: usize = 16 << 10;

type Events = namespace_events::Exp<states::Ready>;

/// Identifies a node and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    kind: u32,
    node: u64,
    size: u64,
    modified: (u64, u64),
    changed: (u64, u64),
}

/// The names at and below a path, relative to it; the empty one is the path itself.
type Snapshot = BTreeMap<Vec<u8>, Stamp>;

/// The number of watches.
#[derive(Default)]
pub(crate) struct Watches(Cell<usize>);

/// A watch that is counted.
struct Counted(Rc<Watches>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() - 1);
    }
}

/// Announces changes at and below the path from now on, until the client closes.
pub(crate) async fn subscribe(watches: &Rc<Watches>, base: Base, path: &str, events: Events) -> Result<(), Error> {
    if watches.0.get() >= MAX_WATCHES {
        return Err(Error::Exhausted);
    }
    watches.0.set(watches.0.get() + 1);
    let counted = Counted(Rc::clone(watches));
    let path = String::from(path);
    let first = scan(&base, &path).await?;
    drop(executor::spawn(async move {
        watch(&base, &path, first, events).await;
        drop(counted);
    }));
    Ok(())
}

async fn watch(base: &Base, path: &str, mut known: Snapshot, mut events: Events) {
    let (mut pause_ns, mut is_too_large) = (PAUSE_NS, false);
    while !is_gone_within(&events, pause_ns).await {
        let begin = time::monotonic();
        let scanned = scan(base, path).await;
        pause_ns = PAUSE_NS.max((time::monotonic() - begin).saturating_mul(PAUSE_PER_SCAN));
        let now = match scanned {
            Ok(now) => now,
            Err(Error::Host(errno::ENOENT | errno::ENOTDIR | errno::ESTALE)) => Snapshot::new(),
            // Too many names: clients have to rescan, once now and once when it can be watched again.
            Err(Error::Exhausted) if is_too_large => continue,
            Err(Error::Exhausted) => {
                is_too_large = true;
                let Some(next) = announce(events, Change::Overflow, path, b"").await else { return };
                events = next;
                continue;
            }
            // The host may answer next time.
            Err(_) => continue,
        };
        let found = if core::mem::take(&mut is_too_large) {
            Vec::from([(Change::Overflow, &b""[..])])
        } else {
            changes(&known, &now)
        };
        for (change, below) in found {
            let Some(next) = announce(events, change, path, below).await else { return };
            events = next;
        }
        known = now;
    }
}

/// Waits. Returns whether the client has closed.
async fn is_gone_within(events: &Events, pause_ns: u64) -> bool {
    let mut gone = pin!(executor::gone(events));
    let mut sleep = pin!(executor::sleep_until(Deadline::after_ms(pause_ns / 1_000_000)));
    poll_fn(|context| match gone.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending => sleep.as_mut().poll(context).map(|_| false),
    })
    .await
}

/// Announces one change; `None` if the client has closed, or there is no memory for the path.
async fn announce(events: Events, change: Change, path: &str, below: &[u8]) -> Option<Events> {
    let slash: &[u8] = if path.is_empty() || below.is_empty() { b"" } else { b"/" };
    let path = ExVec::from_slice(&[path.as_bytes(), slash, below].concat()).ok()?;
    match events.changed(change, path).receive_async().await {
        namespace_events::ExpReadyAfterChanged::Next { next } => Some(next),
        namespace_events::ExpReadyAfterChanged::ChannelClosed(_) => None,
    }
}

/// Takes a snapshot.
async fn scan(base: &Base, path: &str) -> Result<Snapshot, Error> {
    let root = base.find(path, LastLink::Keep).await?;
    let mut snapshot = Snapshot::new();
    snapshot.insert(Vec::new(), stamp(&root.fid.attributes().await?));
    // Paths, not fids, which are scarce on the host.
    let mut folders = Vec::from([String::new()]);
    while let Some(below) = folders.pop() {
        let folder = match base.find(&format!("{path}/{below}"), LastLink::Keep).await {
            Ok(folder) if folder.qid.is_directory() => folder,
            Err(error) if below.is_empty() => return Err(error),
            _ => continue,
        };
        for name in names(&folder).await? {
            // Names removed since, or unreadable for the user, are not watched.
            let Ok((qids, Some(fid))) = folder.fid.walk(core::slice::from_ref(&name)).await else { continue };
            let (Some(&qid), Ok(known)) = (qids.first(), fid.attributes().await) else { continue };
            let text = name_text::to_text(&name);
            let path = if below.is_empty() { text.into_owned() } else { format!("{below}/{text}") };
            if snapshot.len() >= MAX_NODES {
                return Err(Error::Exhausted);
            }
            snapshot.insert(path.clone().into_bytes(), stamp(&known));
            if qid.is_directory() {
                folders.push(path);
            }
        }
    }
    Ok(snapshot)
}

fn stamp(known: &Attributes) -> Stamp {
    Stamp {
        kind: known.mode & Attributes::KIND,
        node: known.qid.path,
        size: known.size,
        modified: (known.modified_s, known.modified_ns),
        changed: (known.changed_s, known.changed_ns),
    }
}

/// Returns the names in a directory; none if it cannot be read.
async fn names(folder: &Found) -> Result<Vec<Vec<u8>>, Error> {
    let open = folder.fid.duplicate().await?;
    if open.open(open_flags::READ).await.is_err() {
        return Ok(Vec::new());
    }
    let (mut all, mut cursor) = (Vec::new(), 0);
    loop {
        let page = open.read_entries(cursor, ENTRIES_BYTES, <[u8]>::to_vec).await?;
        let before = cursor;
        for entry in entries(&page) {
            cursor = entry.offset;
            if entry.name != b"." && entry.name != b".." {
                all.push(entry.name.to_vec());
            }
        }
        if cursor == before {
            return Ok(all);
        }
        if all.len() > MAX_NODES {
            return Err(Error::Exhausted);
        }
    }
}

/// Compares two snapshots. A file whose content may have changed is `Overflow`, which asks the client to read it again.
fn changes<'a>(known: &'a Snapshot, now: &'a Snapshot) -> Vec<(Change, &'a [u8])> {
    let mut found = Vec::new();
    for (path, old) in known {
        match now.get(path) {
            None => found.push((Change::Removed, &path[..])),
            Some(new) if new.kind != old.kind => found.extend([(Change::Removed, &path[..]), (made(new), &path[..])]),
            // The names in it are compared themselves.
            Some(new) if new.kind == Attributes::DIRECTORY && new.node == old.node => {}
            Some(new) if new != old => found.push((Change::Overflow, &path[..])),
            Some(_) => {}
        }
    }
    found.extend(now.iter().filter(|(path, _)| !known.contains_key(*path)).map(|(path, new)| (made(new), &path[..])));
    if found.len() > MAX_CHANGES { Vec::from([(Change::Overflow, &b""[..])]) } else { found }
}

fn made(new: &Stamp) -> Change {
    match new.kind {
        Attributes::DIRECTORY => Change::DirectoryCreated,
        Attributes::LINK => Change::Linked,
        _ => Change::Overflow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(names: &[(&str, u32, u64, u64)]) -> Snapshot {
        let stamp = |kind, node, size| Stamp { kind, node, size, modified: (1, 2), changed: (3, 4) };
        names.iter().map(|&(path, kind, node, size)| (path.as_bytes().to_vec(), stamp(kind, node, size))).collect()
    }

    #[test]
    fn each_kind_of_change_is_announced_once() {
        let folder = Attributes::DIRECTORY;
        let file = Attributes::FILE;
        let known = snapshot(&[
            ("", folder, 1, 0),
            ("a", file, 2, 5),
            ("b", file, 3, 5),
            ("c", folder, 4, 100),
            ("c/x", file, 5, 1),
            ("k", file, 6, 1),
        ]);
        let now = snapshot(&[
            ("", folder, 1, 50),
            ("a", file, 2, 6),
            ("c", folder, 4, 200),
            ("c/x", file, 7, 1),
            ("d", folder, 8, 0),
            ("k", folder, 9, 0),
            ("l", Attributes::LINK, 10, 1),
            ("n", file, 11, 0),
        ]);
        let found = changes(&known, &now);
        let expected: [(Change, &[u8]); 8] = [
            (Change::Overflow, b"a"),
            (Change::Removed, b"b"),
            (Change::Overflow, b"c/x"),
            (Change::Removed, b"k"),
            (Change::DirectoryCreated, b"k"),
            (Change::DirectoryCreated, b"d"),
            (Change::Linked, b"l"),
            (Change::Overflow, b"n"),
        ];
        assert_eq!(found, expected);
        assert_eq!(changes(&now, &now), []);
    }

    #[test]
    fn too_many_changes_become_one_overflow() {
        let names: Vec<_> = (0..=MAX_CHANGES as u64).map(|node| (alloc::format!("{node}"), node)).collect();
        let all: Vec<_> = names.iter().map(|(name, node)| (name.as_str(), Attributes::FILE, *node, 0)).collect();
        assert_eq!(changes(&Snapshot::new(), &snapshot(&all)), [(Change::Overflow, &b""[..])]);
        assert_eq!(changes(&Snapshot::new(), &snapshot(&all[1..])).len(), MAX_CHANGES);
    }
}
