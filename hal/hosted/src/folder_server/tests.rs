use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use nine_p::{Data, UNLINK_DIRECTORY, entries};

use super::*;

/// A shared folder `shared` beside a folder `outside`, which must stay unreachable.
struct Fixture {
    place: PathBuf,
    server: Server,
}

impl Fixture {
    fn new(access: FolderAccess, links: LinkPolicy) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = std::env::temp_dir().join(format!("hal-hosted-folder-{}-{number}", std::process::id()));
        for folder in ["shared/sub", "outside"] {
            fs::create_dir_all(place.join(folder)).expect("a folder");
        }
        fs::write(place.join("shared/file"), "content").expect("a file");
        fs::write(place.join("shared/sub/secret"), "inside").expect("a file");
        fs::write(place.join("outside/secret"), "outside").expect("a file");
        let server = Server::new(File::open(place.join("shared")).expect("open").into(), access, links);
        let fixture = Self { place, server: server.expect("a server") };
        let root = Request::Attach {
            fid: 0,
            authentication: nine_p::NO_FID,
            user: Text(b""),
            folder: Text(b""),
            user_number: 0,
        };
        fixture.ask(&root, |reply| assert!(matches!(reply, Reply::Attached { qid } if qid.is_directory())));
        fixture
    }

    fn path(&self, below: &str) -> PathBuf {
        self.place.join(below)
    }

    fn ask<R>(&self, request: &Request<'_>, take: impl FnOnce(Reply<'_>) -> R) -> R {
        let mut bytes = [0; 4096];
        let length = request.encode(1, &mut bytes).expect("room");
        match self.server.answer(&bytes[..length], 64 << 10).expect("an answer") {
            Answered::Message(message) => take(Reply::decode(&message).expect("a message").1),
            Answered::Content(Content { file, offset, count, .. }) => {
                let mut content = vec![0; count.min(4096)];
                let count = rustix::io::pread(file.file().expect("open"), &mut content, offset).expect("content");
                take(Reply::ReadDone { data: Data(&content[..count]) })
            }
        }
    }

    /// Returns the error number, or 0.
    fn error(&self, request: &Request<'_>) -> u32 {
        self.ask(request, |reply| if let Reply::Failed { error } = reply { error } else { 0 })
    }

    /// Walks from the root to a new fid; returns how many names were found, or the error of the first.
    fn walk(&self, new_fid: u32, names: &[&str]) -> Result<usize, u32> {
        let names = names.iter().map(|name| Text(name.as_bytes())).collect();
        self.ask(&Request::Walk { fid: 0, new_fid, names }, |reply| match reply {
            Reply::Walked { qids } => Ok(qids.len()),
            Reply::Failed { error } => Err(error),
            other => panic!("{other:?}"),
        })
    }

    fn forget(&self, fid: u32) {
        assert_eq!(self.error(&Request::Forget { fid }), 0);
    }

    fn open(&self, fid: u32, flags: u32) -> u32 {
        self.error(&Request::Open { fid, flags })
    }

    fn read(&self, fid: u32) -> Vec<u8> {
        self.ask(&Request::Read { fid, offset: 0, count: 100 }, |reply| match reply {
            Reply::ReadDone { data } => data.0.to_vec(),
            other => panic!("{other:?}"),
        })
    }

    fn names(&self, fid: u32) -> Vec<(Vec<u8>, u8)> {
        let mut found = Vec::new();
        let mut offset = 0;
        loop {
            let page = self.ask(&Request::ReadEntries { fid, offset, count: 100 }, |reply| match reply {
                Reply::EntriesRead { data } => data.0.to_vec(),
                other => panic!("{other:?}"),
            });
            let before = offset;
            for entry in entries(&page) {
                offset = entry.offset;
                if entry.name != b"." && entry.name != b".." {
                    found.push((entry.name.to_vec(), entry.kind));
                }
            }
            if offset == before {
                found.sort();
                return found;
            }
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Leftovers in the temporary folder do no harm.
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn writable() -> Fixture {
    Fixture::new(FolderAccess::Write, LinkPolicy::StayInside)
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo of coreutils");
    assert!(made.success() && fs::symlink_metadata(path).expect("there").file_type().is_fifo());
}

const REFUSED: u32 = nine_p::errno::EOPNOTSUPP;

#[test]
fn files_are_found_read_and_listed() {
    let fixture = writable();
    fs::write(fixture.path("shared/caf\u{e9}"), "").expect("a file");
    assert_eq!(fixture.walk(1, &["sub", "secret"]), Ok(2));
    assert_eq!(fixture.open(1, open_flags::READ), 0);
    assert_eq!(fixture.read(1), b"inside");
    assert_eq!(fixture.walk(2, &["sub", "none"]), Ok(1), "as far as it goes");
    assert_eq!(fixture.error(&Request::Forget { fid: 2 }), nine_p::errno::EBADF, "and makes no fid");
    assert_eq!(fixture.walk(2, &["none"]), Err(nine_p::errno::ENOENT));
    assert_eq!(fixture.walk(2, &[]), Ok(0));
    assert_eq!(fixture.open(2, open_flags::READ), 0);
    let expected = [(b"caf\xc3\xa9".to_vec(), 8), (b"file".to_vec(), 8), (b"sub".to_vec(), 4)];
    assert_eq!(fixture.names(2), expected);
}

#[test]
fn no_name_leads_out() {
    let fixture = writable();
    symlink("../outside", fixture.path("shared/out")).expect("a link");
    symlink("/etc", fixture.path("shared/absolute")).expect("a link");
    for name in ["", ".", "..", "/", "/etc", "sub/secret", "../outside", "a\0b"] {
        assert_eq!(fixture.walk(1, &[name]), Err(nine_p::errno::EINVAL), "{name:?}");
        let text = Text(name.as_bytes());
        for request in [
            Request::MakeDirectory { fid: 0, name: text, mode: 0o755, group: 0 },
            Request::MakeLink { fid: 0, name: text, target: Text(b"x"), group: 0 },
            Request::Unlink { fid: 0, name: text, flags: UNLINK_DIRECTORY },
            Request::Rename { from: 0, old_name: Text(b"file"), to: 0, new_name: text },
            Request::Rename { from: 0, old_name: text, to: 0, new_name: Text(b"x") },
        ] {
            assert_eq!(fixture.error(&request), nine_p::errno::EINVAL, "{request:?}");
        }
    }
    for link in ["out", "absolute"] {
        assert_eq!(fixture.walk(1, &[link, "secret"]), Ok(1), "a link is not walked through");
        assert_eq!(fixture.walk(1, &[link]), Ok(1), "it is a node");
        assert_eq!(fixture.open(1, open_flags::READ), REFUSED);
        fixture.forget(1);
    }
}

#[test]
fn a_link_put_in_place_of_a_file_or_folder_is_not_followed() {
    let fixture = writable();
    assert_eq!(fixture.walk(1, &["sub", "secret"]), Ok(2));
    assert_eq!(fixture.walk(2, &["sub"]), Ok(1));
    fs::remove_file(fixture.path("shared/sub/secret")).expect("removed");
    symlink("../../outside/secret", fixture.path("shared/sub/secret")).expect("a link");
    // The node looked up is opened, although it no longer has a name.
    assert_eq!(fixture.open(1, open_flags::READ), 0);
    assert_eq!(fixture.read(1), b"inside");
    fs::rename(fixture.path("shared/sub"), fixture.path("shared/other")).expect("renamed");
    symlink("../outside", fixture.path("shared/sub")).expect("a link");
    let names = vec![Text(b"secret")];
    let found = fixture.ask(&Request::Walk { fid: 2, new_fid: 3, names }, |reply| match reply {
        Reply::Walked { qids } => qids[0],
        other => panic!("{other:?}"),
    });
    assert!(found.is_link(), "the folder that was looked up, wherever it is now");
}

#[test]
fn a_host_that_swaps_a_folder_and_a_link_all_the_time_shows_nothing_of_outside() {
    let fixture = writable();
    symlink("../outside", fixture.path("shared/link")).expect("a link");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let shared = File::open(fixture.path("shared")).expect("open");
            while !done.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(&shared, "sub", &shared, "link", flags).expect("exchanged");
            }
        });
        let mut reached = 0;
        for _ in 0..20_000 {
            if fixture.walk(1, &["sub", "secret"]) == Ok(2) {
                if fixture.open(1, open_flags::READ) == 0 {
                    assert_eq!(fixture.read(1), b"inside");
                    reached += 1;
                }
                fixture.forget(1);
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(reached > 0, "the folder was there at times");
    });
}

#[test]
fn what_is_no_file_is_listed_and_not_opened() {
    let fixture = writable();
    pipe(&fixture.path("shared/pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("shared/socket")).expect("a socket");
    assert_eq!(fixture.walk(1, &[]), Ok(0));
    assert_eq!(fixture.open(1, open_flags::READ), 0);
    let kinds = fixture.names(1).into_iter().filter(|(_, kind)| ![4, 8].contains(kind)).collect::<Vec<_>>();
    assert_eq!(kinds, [(b"pipe".to_vec(), 1), (b"socket".to_vec(), 12)]);
    for (fid, name) in [(2, "pipe"), (3, "socket")] {
        assert_eq!(fixture.walk(fid, &[name]), Ok(1));
        for flags in [open_flags::READ, open_flags::WRITE, open_flags::READ_WRITE] {
            assert_eq!(fixture.open(fid, flags), REFUSED, "{name}");
        }
    }
}

#[test]
fn changes_are_made_and_seen_by_the_host() {
    let fixture = writable();
    assert_eq!(fixture.walk(1, &[]), Ok(0));
    let name = Text(b"new");
    let create = Request::Create { fid: 1, name, flags: open_flags::READ_WRITE, mode: 0o4666, group: 0 };
    assert_eq!(fixture.error(&create), 0);
    assert_eq!(fixture.error(&Request::Write { fid: 1, offset: 2, data: Data(b"text") }), 0);
    assert_eq!(fs::read(fixture.path("shared/new")).expect("there"), b"\0\0text");
    let mode = || fs::metadata(fixture.path("shared/new")).expect("there").permissions().mode() & 0o7777;
    assert_eq!(mode(), 0o666, "as asked for, but for what would let it run as its owner");
    let set = |changes| fixture.error(&Request::SetAttributes { fid: 1, changes });
    assert_eq!(set(Changes { valid: Changes::SIZE, size: 3, ..Changes::default() }), 0);
    assert_eq!(set(Changes { valid: Changes::MODE, mode: 0o600, ..Changes::default() }), 0);
    assert_eq!(set(Changes { valid: Changes::MODE, mode: 0o4755, ..Changes::default() }), nine_p::errno::EPERM);
    let valid = Changes::MODIFIED | Changes::MODIFIED_SET;
    assert_eq!(set(Changes { valid, modified_s: 86_400, ..Changes::default() }), 0);
    assert_eq!(mode(), 0o600);
    let metadata = fs::metadata(fixture.path("shared/new")).expect("there");
    assert_eq!((metadata.len(), metadata.mtime()), (3, 86_400));
    assert_eq!(fixture.error(&Request::Sync { fid: 1, data_only: 0 }), 0);
    assert_eq!(fixture.error(&Request::HardLink { directory: 0, fid: 1, name: Text(b"twin") }), 0);
    assert_eq!(fs::metadata(fixture.path("shared/twin")).expect("there").nlink(), 2);
    let rename = Request::Rename { from: 0, old_name: name, to: 0, new_name: Text(b"file") };
    assert_eq!(fixture.error(&rename), 0);
    assert_eq!(fs::read(fixture.path("shared/file")).expect("there").len(), 3);
    let unlink = |name, flags| fixture.error(&Request::Unlink { fid: 0, name: Text(name), flags });
    assert_eq!(unlink(b"file", 0), 0);
    assert_eq!(unlink(b"sub", UNLINK_DIRECTORY), nine_p::errno::ENOTEMPTY);
    assert_eq!(unlink(b"sub", 0), nine_p::errno::EISDIR);
}

#[test]
fn a_file_that_is_appended_to_grows_at_its_end_whatever_the_offset() {
    let fixture = writable();
    assert_eq!(fixture.walk(1, &["file"]), Ok(1));
    assert_eq!(fixture.open(1, open_flags::WRITE | open_flags::APPEND), 0);
    fs::write(fixture.path("shared/file"), "longer by the host").expect("written");
    assert_eq!(fixture.error(&Request::Write { fid: 1, offset: 0, data: Data(b"!") }), 0);
    assert_eq!(fs::read(fixture.path("shared/file")).expect("there"), b"longer by the host!");
}

#[test]
fn a_folder_that_is_read_only_is_not_changed() {
    let fixture = Fixture::new(FolderAccess::ReadOnly, LinkPolicy::StayInside);
    assert_eq!(fixture.walk(1, &["file"]), Ok(1));
    for flags in [open_flags::WRITE, open_flags::READ_WRITE] {
        assert_eq!(fixture.open(1, flags), nine_p::errno::EROFS);
    }
    assert_eq!(fixture.open(1, open_flags::READ), 0);
    let (name, mode, group) = (Text(b"new"), 0o644, 0);
    for request in [
        Request::Create { fid: 0, name, flags: open_flags::READ_WRITE, mode, group },
        Request::Write { fid: 1, offset: 0, data: Data(b"x") },
        Request::SetAttributes { fid: 1, changes: Changes { valid: Changes::SIZE, ..Changes::default() } },
        Request::MakeDirectory { fid: 0, name, mode, group },
        Request::MakeLink { fid: 0, name, target: Text(b"file"), group },
        Request::HardLink { directory: 0, fid: 1, name },
        Request::Rename { from: 0, old_name: Text(b"file"), to: 0, new_name: name },
        Request::Unlink { fid: 0, name: Text(b"file"), flags: 0 },
    ] {
        assert_eq!(fixture.error(&request), nine_p::errno::EROFS, "{request:?}");
    }
}

#[test]
fn links_that_are_followed_are_what_they_lead_to_and_can_only_be_read() {
    let fixture = Fixture::new(FolderAccess::Write, LinkPolicy::Follow);
    symlink("../outside", fixture.path("shared/out")).expect("a link");
    symlink("nowhere", fixture.path("shared/broken")).expect("a link");
    assert_eq!(fixture.walk(1, &["out", "secret"]), Ok(2));
    assert_eq!(fixture.open(1, open_flags::WRITE), nine_p::errno::EROFS);
    assert_eq!(fixture.open(1, open_flags::READ), 0);
    assert_eq!(fixture.read(1), b"outside");
    assert_eq!(fixture.walk(2, &["out"]), Ok(1));
    let new = Request::MakeDirectory { fid: 2, name: Text(b"new"), mode: 0o755, group: 0 };
    assert_eq!(fixture.error(&new), nine_p::errno::EROFS);
    assert_eq!(fixture.walk(3, &[]), Ok(0));
    assert_eq!(fixture.open(3, open_flags::READ), 0);
    let listed = fixture.names(3);
    assert!(listed.contains(&(b"out".to_vec(), 4)) && listed.contains(&(b"broken".to_vec(), 10)), "{listed:?}");
}

#[test]
fn fids_are_bounded_and_come_back() {
    let fixture = writable();
    let fids = MAX_FIDS as u32;
    let made = (1..fids).filter(|&fid| fixture.walk(fid, &["file"]) == Ok(1)).count();
    assert_eq!(made, MAX_FIDS - 1);
    assert_eq!(fixture.walk(fids, &["file"]), Err(nine_p::errno::ENFILE));
    fixture.forget(7);
    assert_eq!(fixture.walk(fids, &["file"]), Ok(1));
    assert_eq!(fixture.walk(fids, &["file"]), Err(nine_p::errno::EBADF), "one that is in use");
    fixture.server.reset();
    assert_eq!(fixture.error(&Request::Forget { fid: 1 }), nine_p::errno::EBADF);
}

#[test]
fn whatever_is_asked_the_answer_is_a_message_and_outside_stays_as_it_is() {
    let fixture = writable();
    symlink("../outside", fixture.path("shared/out")).expect("a link");
    symlink("../outside/secret", fixture.path("shared/sub/out")).expect("a link");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let names: [&[u8]; 8] = [b"file", b"sub", b"out", b"secret", b"..", b"a/b", b"new", b"\xff"];
    let kinds = [100_u8, 104, 110, 12, 14, 116, 118, 40, 24, 26, 22, 50, 72, 16, 70, 74, 76, 120, 7, 0];
    for _ in 0..30_000 {
        let mut request = vec![0, 0, 0, 0, kinds[random(kinds.len() as u64) as usize], 1, 0];
        for _ in 0..random(5) {
            match random(3) {
                0 => request.extend((random(6) as u32).to_le_bytes()),
                1 => {
                    let name = names[random(names.len() as u64) as usize];
                    request.extend((name.len() as u16).to_le_bytes());
                    request.extend(name);
                }
                _ => request.extend((random(4) as u16).to_le_bytes()),
            }
        }
        let length = (request.len() as u32).to_le_bytes();
        request[..4].copy_from_slice(&length);
        match fixture.server.answer(&request, 4096) {
            Some(Answered::Message(message)) => assert!(Reply::decode(&message).is_some()),
            Some(Answered::Content(Content { count, .. })) => assert!(count <= 4096),
            None => assert!(Request::decode(&request).is_none()),
        }
    }
    let outside = fs::read_dir(fixture.path("outside")).expect("there").count();
    assert_eq!((outside, fs::read(fixture.path("outside/secret")).expect("there")), (1, b"outside".to_vec()));
    assert_eq!(fs::metadata(fixture.path("outside/secret")).expect("there").nlink(), 1);
}
