//! Names without providers: folders, links, pages of names, attributes, events, access, bad paths.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::directory_page;
use client::namespace::{Namespace, block};
use contracts::directory::{self, ImpReadyAfterEnumerate, NameError, NodeKind, ProviderScope};
use contracts::file;
use contracts::namespace_events::{self, Change, ImpReady};
use path::{PART_BYTES, PATH_BYTES};
use sip::Deadline;
use sip::exheap::ExVec;

use crate::client::{Provider, TIMEOUT_MS, connect, refused, rest_of, same};
use crate::{Outcome, Test, check};

/// More names than fit a page of this suite.
const MANY: usize = 1000;
const SMALL_PAGE: usize = 4096;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("directory: folders are made, listed and taken out", folders),
    ("directory: links are followed, circles end", links),
    ("directory: more names than a page holds", pages),
    ("directory: a page without room and a wrong cursor are refused", bad_pages),
    ("directory: attributes tell the kind", attributes),
    ("directory: changes are announced", events),
    ("directory: a subscriber that takes nothing gets one overflow", overflow),
    ("directory: only who has a rule may", access),
    ("directory: bad paths are refused", bad_paths),
];

/// An error as a test's failure.
pub(crate) fn said(error: AccessError) -> String {
    error.to_string()
}

fn folders(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/a/b/c").map_err(said)?;
    same("again", namespace.create_directory("/check/a/b"), NameError::AlreadyExists)?;
    same("a full folder", namespace.deregister("/check/a/b"), NameError::IsADirectory)?;
    let names = namespace.names("/check/a").map_err(said)?;
    check!(names.len() == 1 && names[0].name == b"b", "{names:?}");
    let mut part = namespace.open_directory("/check/a").map_err(said)?;
    check!(part.own_attributes("b").map_err(said)?.0 == NodeKind::Directory, "b is no folder");
    drop(part);
    for path in ["/check/a/b/c", "/check/a/b", "/check/a"] {
        namespace.deregister(path).map_err(said)?;
    }
    same("it is gone", namespace.deregister("/check/a"), NameError::NotFound)
}

fn links(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "serve", "/check/l/real", ProviderScope::Subtree)?;
    namespace.link("/check/l/relative", "real").map_err(said)?;
    namespace.link("/check/l/absolute", "/check/l/real/deep").map_err(said)?;
    namespace.link("/check/l/chain", "absolute").map_err(said)?;
    namespace.link("/check/l/circle", "back").map_err(said)?;
    namespace.link("/check/l/back", "/check/l/circle").map_err(said)?;
    namespace.link("/check/l/nowhere", "nothing").map_err(said)?;
    for (path, expected) in
        [("relative/x", "x"), ("absolute", "deep"), ("absolute/y/z", "deep/y/z"), ("chain/q", "deep/q")]
    {
        let rest = rest_of(namespace, &format!("/check/l/{path}"))?;
        check!(rest == expected, "{path}: the provider sees `{rest}`, not `{expected}`");
    }
    refused(namespace, "/check/l/circle", NameError::TooManyLinks)?;
    refused(namespace, "/check/l/circle/x", NameError::TooManyLinks)?;
    refused(namespace, "/check/l/nowhere", NameError::NotFound)?;
    let target = namespace.read_link("/check/l/absolute").map_err(said)?;
    check!(target == "/check/l/real/deep", "the link leads to `{target}`");
    same("no link", namespace.read_link("/check/l/real").map(drop), NameError::NotSupported)?;
    same("taken", namespace.link("/check/l/real", "x"), NameError::AlreadyExists)?;
    same("empty", namespace.link("/check/l/empty", ""), NameError::BadPath)?;
    for name in ["relative", "absolute", "chain", "circle", "back", "nowhere", "real"] {
        namespace.deregister(&format!("/check/l/{name}")).map_err(said)?;
    }
    namespace.deregister("/check/l").map_err(said)?;
    provider.ended()
}

type Folder = directory::Imp<directory::states::Ready>;
/// The names of a page, the next cursor, and whether there are more.
type Filled = Result<(Vec<String>, u64, bool), NameError>;

/// One page of the names in a folder: the names, the next cursor, and whether there are more.
fn page(folder: Folder, from: u64, bytes: usize) -> Result<(Folder, Filled), String> {
    let room = ExVec::<u8>::new(bytes).map_err(|status| status.text().to_string())?;
    let here = block("").map_err(|status| status.text().to_string())?;
    match folder.enumerate(here, from, room).receive() {
        ImpReadyAfterEnumerate::Page { page, bytes, cursor, more, next } => {
            let used = page.get(..bytes as usize).ok_or("the page is said to hold more than it can")?;
            let name = |entry: directory_page::Entry<'_>| String::from_utf8_lossy(entry.name).into_owned();
            Ok((next, Ok((directory_page::entries(used).map(name).collect(), cursor, more))))
        }
        ImpReadyAfterEnumerate::NotEnumerated { error, next, .. } => Ok((next, Err(error))),
        ImpReadyAfterEnumerate::ChannelClosed(_) => Err(said(AccessError::ServerEnded)),
    }
}

fn open_raw(namespace: &mut Namespace, path: &str) -> Result<Folder, String> {
    namespace.open_directory(path).map_err(said)?.into_endpoint().ok_or_else(|| "no endpoint".to_string())
}

fn pages(namespace: &mut Namespace) -> Outcome {
    let names: Vec<String> = (0..MANY).map(|number| format!("name-{number:05}")).collect();
    for name in &names {
        namespace.create_directory(&format!("/check/many/{name}")).map_err(said)?;
    }
    let mut folder = open_raw(namespace, "/check/many")?;
    let (mut found, mut from, mut count) = (Vec::new(), 0, 0);
    loop {
        let (next, filled) = page(folder, from, SMALL_PAGE)?;
        folder = next;
        let (some, cursor, more) = filled.map_err(|error| format!("page {count}: {error:?}"))?;
        found.extend(some);
        count += 1;
        check!(count < MANY, "the pages do not end");
        // A removal between two pages must not lose the rest.
        if count == 2 {
            let last = found.last().ok_or("an empty page")?;
            namespace.deregister(&format!("/check/many/{last}")).map_err(said)?;
        }
        from = cursor;
        if !more {
            break;
        }
    }
    check!(count > 2, "all names fit on {count} pages");
    check!(found == names, "{} names were listed, not {MANY}", found.len());
    drop(folder);
    for name in &names {
        // One is gone already.
        let _ = namespace.deregister(&format!("/check/many/{name}"));
    }
    namespace.deregister("/check/many").map_err(said)
}

fn bad_pages(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/p/one").map_err(said)?;
    let mut folder = open_raw(namespace, "/check/p")?;
    for bytes in [1, 10] {
        let (next, filled) = page(folder, 0, bytes)?;
        folder = next;
        check!(filled == Err(NameError::Exhausted), "{bytes} bytes: {filled:?}");
    }
    let (next, filled) = page(folder, u64::MAX, SMALL_PAGE)?;
    check!(filled.is_err(), "a wrong cursor: {filled:?}");
    // A folder removed while open no longer names anything.
    namespace.deregister("/check/p/one").map_err(said)?;
    namespace.deregister("/check/p").map_err(said)?;
    let (_next, filled) = page(next, 0, SMALL_PAGE)?;
    check!(filled == Err(NameError::NotFound), "a folder that is gone: {filled:?}");
    Ok(())
}

fn attributes(namespace: &mut Namespace) -> Outcome {
    let service = Provider::start(namespace, "serve", "/check/k/service", ProviderScope::Name)?;
    let mount = Provider::start(namespace, "serve", "/check/k/mount", ProviderScope::Subtree)?;
    namespace.link("/check/k/link", "service").map_err(said)?;
    let mut part = namespace.open_directory("/check/k").map_err(said)?;
    let kinds = [
        ("service", NodeKind::Service),
        ("mount", NodeKind::Mount),
        ("link", NodeKind::Link),
        ("", NodeKind::Directory),
    ];
    for (name, expected) in kinds {
        let (kind, found) = part.own_attributes(name).map_err(said)?;
        check!(kind == expected, "`{name}` is a {kind:?}");
        check!(found.links == 1 && found.size_bytes == 0, "{name}: {} links, {} bytes", found.links, found.size_bytes);
    }
    same("nothing", part.own_attributes("nothing").map(drop), NameError::NotFound)?;
    drop(part);
    for name in ["link", "service", "mount"] {
        namespace.deregister(&format!("/check/k/{name}")).map_err(said)?;
    }
    namespace.deregister("/check/k").map_err(said)?;
    service.ended()?;
    mount.ended()
}

type Events = namespace_events::Imp<namespace_events::states::Ready>;

/// The next announced change.
pub(crate) fn change(events: Events) -> Result<(Change, String, Events), String> {
    match events.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(ImpReady::Changed { change, path, next }) => Ok((change, path.to_text(), next.next())),
        Ok(ImpReady::ChannelClosed(_)) => Err("the subscription was closed".to_string()),
        Err(_) => Err("no change was announced".to_string()),
    }
}

fn events(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/e/f").map_err(said)?;
    let mut part = namespace.open_directory("/check/e").map_err(said)?;
    let mut events = part.notify("f").map_err(said)?;
    // Outside the watched folder.
    namespace.create_directory("/check/e/other").map_err(said)?;
    namespace.create_directory("/check/e/f/new").map_err(said)?;
    namespace.link("/check/e/f/link", "new").map_err(said)?;
    let provider = Provider::start(namespace, "serve", "/check/e/f/service", ProviderScope::Name)?;
    provider.kill()?;
    refused(namespace, "/check/e/f/service", NameError::Unavailable)?;
    for name in ["service", "link", "new"] {
        namespace.deregister(&format!("/check/e/f/{name}")).map_err(said)?;
    }
    let expected = [
        (Change::DirectoryCreated, "f/new"),
        (Change::Linked, "f/link"),
        (Change::Registered, "f/service"),
        (Change::Unavailable, "f/service"),
        (Change::Removed, "f/service"),
        (Change::Removed, "f/link"),
        (Change::Removed, "f/new"),
    ];
    for wanted in expected {
        let (what, path, next) = change(events)?;
        events = next;
        check!((what, path.as_str()) == wanted, "{what:?} of `{path}`, not {wanted:?}");
    }
    drop(events);
    // The directory notices at the next change that the subscriber is gone.
    for path in ["/check/e/f", "/check/e/other", "/check/e"] {
        namespace.deregister(path).map_err(said)?;
    }
    Ok(())
}

fn overflow(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/o").map_err(said)?;
    let mut events = namespace.notify("/check/o").map_err(said)?;
    for number in 0..200 {
        namespace.create_directory(&format!("/check/o/{number}")).map_err(said)?;
    }
    let mut count = 0;
    loop {
        let (what, _, next) = change(events)?;
        events = next;
        if what == Change::Overflow {
            break;
        }
        count += 1;
        check!(what == Change::DirectoryCreated && count < 200, "{what:?} after {count} changes");
    }
    drop(events);
    for number in 0..200 {
        namespace.deregister(&format!("/check/o/{number}")).map_err(said)?;
    }
    namespace.deregister("/check/o").map_err(said)
}

fn access(namespace: &mut Namespace) -> Outcome {
    let (provider, ready) = Provider::unregistered("serve", None)?;
    let denied = namespace.register("/elsewhere/x", ProviderScope::Name, ready);
    same("register", denied, NameError::NotPermitted)?;
    // The refused registration was closed, and with it the provider's only link.
    provider.ended()?;
    same("deregister", namespace.deregister("/service/manager"), NameError::NotPermitted)?;
    same("link", namespace.link("/service/mine", "manager"), NameError::NotPermitted)?;
    same("create", namespace.create_directory("/dev/mine"), NameError::NotPermitted)?;
    same("notify", namespace.notify("/dev").map(drop), NameError::NotPermitted)?;
    same("bind", namespace.open_directory("/dev").map(drop), NameError::NotPermitted)?;
    // A link grants no rights to its target.
    namespace.link("/check/way", "/dev").map_err(said)?;
    same("bind by a link", namespace.open_directory("/check/way").map(drop), NameError::NotPermitted)?;
    let made = namespace.create_directory("/check/way/mine");
    check!(made.is_err(), "a name was made in /dev by way of a link");
    namespace.deregister("/check/way").map_err(said)?;
    let (importer, exporter) = file::new_channel().map_err(|status| status.text().to_string())?;
    drop(importer);
    same("a folder as a file", namespace.bind("/check", exporter), NameError::IsADirectory)
}

fn bad_paths(namespace: &mut Namespace) -> Outcome {
    let long_part = "x".repeat(PART_BYTES + 1);
    let long_path = "/y".repeat(PATH_BYTES / 2 + 1);
    for path in ["/check/..", "../check", "/check/a\0b", &long_part, &long_path] {
        refused(namespace, path, NameError::BadPath)?;
        // A name that cannot be checked against a rule is not permitted.
        let made = namespace.create_directory(&format!("/check/{path}"));
        let refused = matches!(made, Err(AccessError::Name(NameError::BadPath | NameError::NotPermitted)));
        check!(refused, "{} bytes: {made:?}", path.len());
    }
    refused(namespace, "/check/nothing", NameError::NotFound)?;
    refused(namespace, "/service/manager/below", NameError::NotADirectory)?;
    let longest = format!("/check/{}", "x".repeat(PART_BYTES));
    namespace.create_directory(&longest).map_err(said)?;
    check!(connect(namespace, &longest).is_err(), "a folder is no provider");
    namespace.deregister(&longest).map_err(said)?;
    // Not UTF-8.
    let mut folder = open_raw(namespace, "")?;
    let bytes = ExVec::from_slice(&[b'/', 0xff, 0xfe]).map_err(|status| status.text().to_string())?;
    folder = match folder.get_attributes(bytes).receive() {
        directory::ImpReadyAfterGetAttributes::Failed { error: NameError::BadPath, next } => next,
        _ => return Err("a path that is not UTF-8 was taken".to_string()),
    };
    drop(folder);
    Ok(())
}
