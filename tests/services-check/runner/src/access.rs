//! Access control lists of names: the matrix of principals and operations, inheritance, and persistence.

mod matrix;

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use client::directory_page::PAGE_BYTES;
use client::namespace::{NameAcl, Namespace, block};
use client::volume_managers::VolumeManager;
use contracts::directory::{
    CreateMode, ImpReadyAfterEnumerate, ImpReadyAfterGetAcl, ImpReadyAfterReadLink, NameError, ProviderScope,
};
use contracts::namespace_events::Change;
use contracts::volume_manager::{FormatOptions, MountAccess};
use sip::exheap::ExVec;
use sip::process::{Child, EpitaphKind, create};
use sip::{Deadline, Status};

use crate::client::{Provider, TIMEOUT_MS, same};
use crate::names::{change, said};
use crate::{Outcome, Test, check};
use matrix::{Case, Principal, Table};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("access: each principal may in each folder what the table says", matrix),
    ("access: each principal may in each folder of a volume what the table says", volume_matrix),
    ("access: a folder that is passed on gives nothing by the list of the mount point", passed_on),
    ("access: a text that is no list is refused by a file system as such", bad_list_on_a_volume),
    ("access: lists are inherited from the nearest folder above", inheritance),
    ("access: what is no list is refused", bad_lists),
    ("access: who has no rule sees nothing by way of a folder above", open_parent),
    ("access: changes are told to those who may hear of them", told),
    ("access: what is refused is written down", written_down),
];

/// Parent folder of the matrix.
const HERE: &str = "/check/matrix";
/// Path of the volume.
const VOLUME: &str = "/fs/volume";
const DISK: &str = "/dev/ram0";
/// The suite's own right to set up and clean up.
const OWN_ENTRY: &str = "allow all services-check.singularity\n";

fn matrix(namespace: &mut Namespace) -> Outcome {
    let cases = matrix::NAMES.cases()?;
    for case in &cases {
        let folder = format!("{HERE}/{}", case.folder);
        namespace.create_directory(&folder).map_err(said)?;
        if !case.list.is_empty() {
            namespace.set_acl(&folder, &format!("{OWN_ENTRY}{}", case.list)).map_err(said)?;
        }
        let provider = Provider::start(namespace, "serve", &format!("{folder}/service"), ProviderScope::Name)?;
        for (principal, expected) in &case.may {
            try_all(namespace, &folder, case, *principal, *expected)?;
        }
        namespace.deregister(&format!("{folder}/service")).map_err(said)?;
        provider.ended()?;
    }
    // Parent folders come first.
    for case in cases.iter().rev() {
        namespace.deregister(&format!("{HERE}/{}", case.folder)).map_err(said)?;
    }
    namespace.deregister(HERE).map_err(said)
}

fn try_all(namespace: &mut Namespace, folder: &str, case: &Case, principal: Principal, expected: u32) -> Outcome {
    for name in ["folder", "to-take-out"] {
        namespace.create_directory(&format!("{folder}/{name}")).map_err(said)?;
    }
    namespace.link(&format!("{folder}/link"), "folder").map_err(said)?;
    let permitted = probe(namespace, principal, folder, false)?;
    for name in ["folder", "to-take-out", "link", "made", "made-link", "registered"] {
        there_or_not(namespace.deregister(&format!("{folder}/{name}"))).map_err(said)?;
    }
    compare(&matrix::NAMES, case, principal, permitted, expected)
}

/// The same on the disk in memory.
fn volume_matrix(namespace: &mut Namespace) -> Outcome {
    let cases = matrix::FILES.cases()?;
    for case in &cases {
        let folder = format!("{VOLUME}/{}", case.folder);
        namespace.make_directory(&folder).map_err(said)?;
        if !case.list.is_empty() {
            namespace.set_acl(&folder, &format!("{OWN_ENTRY}{}", case.list)).map_err(said)?;
        }
        for (principal, expected) in &case.may {
            try_files(namespace, &folder, case, *principal, *expected)?;
        }
    }
    for case in cases.iter().rev() {
        namespace.remove_directory(&format!("{VOLUME}/{}", case.folder)).map_err(said)?;
    }
    mount_anew(namespace)
}

fn try_files(namespace: &mut Namespace, folder: &str, case: &Case, principal: Principal, expected: u32) -> Outcome {
    for name in ["folder", "to-take-out", "to-rename"] {
        namespace.make_directory(&format!("{folder}/{name}")).map_err(said)?;
    }
    namespace.make_link(&format!("{folder}/link"), "folder").map_err(said)?;
    drop(namespace.create_file(&format!("{folder}/file"), 0o644, CreateMode::New).map_err(said)?);
    let permitted = probe(namespace, principal, folder, true)?;
    for name in ["link", "made-link", "file"] {
        there_or_not(namespace.remove_file(&format!("{folder}/{name}"))).map_err(said)?;
    }
    for name in ["folder", "to-take-out", "to-rename", "renamed", "made"] {
        there_or_not(namespace.remove_directory(&format!("{folder}/{name}"))).map_err(said)?;
    }
    compare(&matrix::FILES, case, principal, permitted, expected)
}

fn there_or_not(taken_out: Result<(), AccessError>) -> Result<(), AccessError> {
    match taken_out {
        Err(AccessError::Name(NameError::NotFound)) => Ok(()),
        other => other,
    }
}

fn compare(table: &Table, case: &Case, principal: Principal, permitted: u32, expected: u32) -> Outcome {
    for (bit, operation) in table.operations.iter().enumerate() {
        let (may, should) = (permitted & 1 << bit != 0, expected & 1 << bit != 0);
        let not = |is: bool| if is { "" } else { " not" };
        check!(
            may == should,
            "{principal:?} may{} {operation} in {}, and should{}",
            not(may),
            case.folder,
            not(should)
        );
    }
    Ok(())
}

/// Runs the probe as a principal in a folder, of a volume or not; returns a bit for each permitted operation.
fn probe(namespace: &mut Namespace, principal: Principal, folder: &str, is_in_volume: bool) -> Result<u32, String> {
    let view = namespace.open_directory("/").map_err(said)?;
    probe_from(view, principal, folder, is_in_volume)
}

/// The same, seen from a folder that the suite has opened.
fn probe_from(view: Namespace, principal: Principal, folder: &str, is_in_volume: bool) -> Result<u32, String> {
    let say = |status: Status| format!("a probe cannot be started: {}", status.text());
    let view = view.into_endpoint().ok_or("no view of the namespace")?;
    let child = create(principal.program()).map_err(|error| error.to_string())?;
    let child = match principal.invocation() {
        None => Ok(child),
        Some(None) => child.invoke(),
        Some(Some(role)) => child.invoke_in_role(role),
    };
    let volume = if is_in_volume { "true" } else { "false" };
    let ready = |child: Child| child.parameter(0, folder)?.parameter(1, volume)?.endpoint(0, view)?.start();
    let child = child.and_then(ready).map_err(say)?;
    let end = child.wait_until(Deadline::after_ms(TIMEOUT_MS)).map_err(say)?;
    if end.kind != EpitaphKind::Exited {
        return Err(format!("{principal:?} in {folder}: {end}"));
    }
    u32::try_from(end.status).map_err(|_| format!("{principal:?} in {folder}: it failed; its output says why"))
}

/// Rights from a mount point's list do not extend to folders that were opened through it and passed on.
fn passed_on(namespace: &mut Namespace) -> Outcome {
    let folder = format!("{VOLUME}/passed");
    namespace.make_directory(&folder).map_err(said)?;
    namespace.set_acl(VOLUME, &format!("{OWN_ENTRY}allow traverse **\n")).map_err(said)?;
    let view = namespace.open_directory(&folder).map_err(said)?;
    let permitted = probe_from(view, Principal::Invoked, "", true)?;
    check!(permitted == 0, "who was given an open folder may there: {permitted:#b}");
    namespace.names(&folder).map_err(said)?;
    namespace.set_acl(VOLUME, "").map_err(said)?;
    namespace.remove_directory(&folder).map_err(said)?;
    mount_anew(namespace)
}

fn bad_list_on_a_volume(namespace: &mut Namespace) -> Outcome {
    let folder = format!("{VOLUME}/bad");
    namespace.make_directory(&folder).map_err(said)?;
    same("no list", namespace.set_acl(&folder, "allow"), NameError::BadAcl)?;
    namespace.remove_directory(&folder).map_err(said)?;
    mount_anew(namespace)
}

/// Formats the memory disk with an empty volume, mounts it, and uses it once.
pub(crate) fn prepare(namespace: &mut Namespace) -> Outcome {
    const OPTIONS: FormatOptions =
        FormatOptions { block_bytes: 0, nodes: 0, reserved_percent: 0, plain: 0, label: [0; 32] };
    let mut manager = VolumeManager::open(namespace, "ext2").map_err(|error| error.to_string())?;
    manager.format(DISK, OPTIONS).map_err(|error| error.to_string())?;
    mount(namespace, &mut manager)?;
    volume_matrix(namespace)
}

/// Remounts the volume: a file system's cache of its own activity is no leak, and a new instance has none.
fn mount_anew(namespace: &mut Namespace) -> Outcome {
    let mut manager = VolumeManager::open(namespace, "ext2").map_err(|error| error.to_string())?;
    manager.unmount(VOLUME).map_err(|error| error.to_string())?;
    mount(namespace, &mut manager)
}

fn mount(namespace: &mut Namespace, manager: &mut VolumeManager) -> Outcome {
    manager.mount(DISK, VOLUME, MountAccess::WriteIfPossible).map_err(|error| error.to_string())?;
    namespace.names(VOLUME).map(drop).map_err(said)
}

fn list(namespace: &mut Namespace, path: &str) -> Result<Option<(String, Option<String>)>, String> {
    let found = namespace.acl(path).map_err(said)?;
    Ok(found.map(|NameAcl { text, inherited_from }| (text, inherited_from)))
}

fn inheritance(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/i/a/b").map_err(said)?;
    let nearest = |namespace: &mut Namespace, path: &str, text: &str, from: Option<&str>| -> Outcome {
        let found = list(namespace, path)?;
        let expected = (!text.is_empty()).then(|| (text.to_string(), from.map(String::from)));
        check!(found == expected, "{path}: {found:?}, not {expected:?}");
        Ok(())
    };
    nearest(namespace, "/check/i/a/b", "", None)?;
    namespace.set_acl("/check/i", "allow   all **\n\n").map_err(said)?;
    nearest(namespace, "/check/i", "allow all **\n", None)?;
    nearest(namespace, "/check/i/a/b", "allow all **\n", Some("/check/i"))?;
    namespace.set_acl("/check/i/a", "allow all ..services-check.singularity").map_err(said)?;
    nearest(namespace, "/check/i/a/b", "allow all ..services-check.singularity\n", Some("/check/i/a"))?;
    // A reused name inherits nothing from its predecessor.
    for path in ["/check/i/a/b", "/check/i/a"] {
        namespace.deregister(path).map_err(said)?;
    }
    namespace.create_directory("/check/i/a").map_err(said)?;
    nearest(namespace, "/check/i/a", "allow all **\n", Some("/check/i"))?;
    namespace.set_acl("/check/i", "").map_err(said)?;
    nearest(namespace, "/check/i/a", "", None)?;
    same("a name that is not there", namespace.set_acl("/check/i/none", "allow all **"), NameError::NotFound)?;
    same("beyond its rules", namespace.set_acl("/service", "allow all **"), NameError::NotPermitted)?;
    for path in ["/check/i/a", "/check/i"] {
        namespace.deregister(path).map_err(said)?;
    }
    Ok(())
}

fn bad_lists(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/b").map_err(said)?;
    let many = "allow all **\n".repeat(65);
    let long = format!("allow all {}", "a".repeat(4096));
    for text in ["allow", "permit all **", "allow fly **", "allow all", "allow all Cat", "allow all a..b", &many, &long]
    {
        same(text.get(..20).unwrap_or(text), namespace.set_acl("/check/b", text), NameError::BadAcl)?;
    }
    check!(list(namespace, "/check/b")?.is_none(), "a list that was refused is there");
    let most = "allow all **\n".repeat(64);
    namespace.set_acl("/check/b", &most).map_err(said)?;
    check!(list(namespace, "/check/b")? == Some((most, None)), "the longest list is not there");
    namespace.deregister("/check/b").map_err(said)
}

/// Names that this suite has no bind rule for are invisible through the parent folder too, for which it has one.
fn open_parent(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/unseen/x").map_err(said)?;
    namespace.link("/unseen/link", "x").map_err(said)?;
    let say = |status: Status| status.text().to_string();
    let root = namespace.open_directory("/").map_err(said)?.into_endpoint().ok_or("no view")?;
    let room = ExVec::<u8>::new(PAGE_BYTES).map_err(say)?;
    let root = match root.enumerate(block("unseen").map_err(say)?, 0, room).receive() {
        ImpReadyAfterEnumerate::NotEnumerated { error: NameError::NotPermitted, next, .. } => next,
        ImpReadyAfterEnumerate::NotEnumerated { error, .. } => return Err(format!("/unseen: {error:?}")),
        _ => return Err("/unseen was listed by way of the root".to_string()),
    };
    let root = match root.read_link(block("unseen/link").map_err(say)?).receive() {
        ImpReadyAfterReadLink::Failed { error: NameError::NotPermitted, next } => next,
        _ => return Err("a link in /unseen was read by way of the root".to_string()),
    };
    let root = match root.get_acl(block("unseen/x").map_err(say)?).receive() {
        ImpReadyAfterGetAcl::Failed { error: NameError::NotPermitted, next } => next,
        _ => return Err("a list in /unseen was read by way of the root".to_string()),
    };
    let mut root = Namespace::new(root);
    same("what is in it", root.own_attributes("unseen/x").map(drop), NameError::NotPermitted)?;
    // For the names in a visible folder, it sees their kinds.
    root.own_attributes("unseen").map_err(said)?;
    for path in ["/unseen/link", "/unseen/x", "/unseen"] {
        namespace.deregister(path).map_err(said)?;
    }
    Ok(())
}

fn told(namespace: &mut Namespace) -> Outcome {
    namespace.create_directory("/check/t/open").map_err(said)?;
    namespace.create_directory("/check/t/quiet").map_err(said)?;
    let mut events = namespace.notify("/check/t").map_err(said)?;
    let mut below = namespace.notify("/check/t/open").map_err(said)?;
    namespace.set_acl("/check/t/quiet", "deny notify **\nallow all **").map_err(said)?;
    namespace.create_directory("/check/t/quiet/x").map_err(said)?;
    namespace.deregister("/check/t/quiet/x").map_err(said)?;
    same("subscribe", namespace.notify("/check/t/quiet").map(drop), NameError::NotPermitted)?;
    namespace.set_acl("/check/t", "allow all **").map_err(said)?;
    namespace.create_directory("/check/t/open/y").map_err(said)?;
    for wanted in [(Change::AclChanged, "check/t"), (Change::DirectoryCreated, "check/t/open/y")] {
        let (what, path, next) = change(events)?;
        events = next;
        check!((what, path.as_str()) == wanted, "{what:?} of `{path}`, not {wanted:?}");
    }
    // The list of a parent folder decides here as well.
    for wanted in [(Change::AclChanged, "check/t/open"), (Change::DirectoryCreated, "check/t/open/y")] {
        let (what, path, next) = change(below)?;
        below = next;
        check!((what, path.as_str()) == wanted, "below: {what:?} of `{path}`, not {wanted:?}");
    }
    drop((events, below));
    for path in ["/check/t/open/y", "/check/t/open", "/check/t/quiet", "/check/t"] {
        namespace.deregister(path).map_err(said)?;
    }
    Ok(())
}

fn written_down(namespace: &mut Namespace) -> Outcome {
    let say = |status: Status| format!("the audit ring: {}", status.text());
    let (_, from) = sip::audit::read(u64::MAX).map_err(say)?;
    namespace.create_directory("/check/w/inner").map_err(said)?;
    namespace.set_acl("/check/w", "deny traverse **\nallow all **").map_err(said)?;
    same("past a list", namespace.open_directory("/check/w/inner").map(drop), NameError::NotPermitted)?;
    same("past the rules", namespace.open_directory("/dev").map(drop), NameError::NotPermitted)?;
    namespace.set_acl("/check/w", "").map_err(said)?;
    for path in ["/check/w/inner", "/check/w"] {
        namespace.deregister(path).map_err(said)?;
    }
    let (lines, _) = sip::audit::read(from).map_err(say)?;
    for wanted in [
        "directory: services-check.singularity refused traverse on /check/w (entry 1 of the list of /check/w)",
        "directory: services-check.singularity refused traverse on /dev (no [[bind]] rule of the system)",
    ] {
        check!(lines.contains(wanted), "`{wanted}` is not in: {lines}");
    }
    Ok(())
}
