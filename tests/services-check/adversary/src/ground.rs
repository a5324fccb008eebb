//! Targets of the attacks: folders and names of this program, a volume with its files, and its port.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use client::access::AccessError;
use client::namespace::Namespace;
use client::volume_managers::VolumeManager;
use contracts::SocketAddress;
use contracts::directory::{CreateMode, NameError};
use contracts::tcp::{self, ImpReadyAfterListen, TcpError};
use contracts::volume_manager::{FormatOptions, MountAccess};
use sip::Deadline;
use sip::exheap::ExVec;

use crate::{Outcome, check};

/// The port that only this program may listen on.
pub(crate) const PORT: u16 = 7301;
/// Its diary.
pub(crate) const DIARY: &str = "/fs/vault/own/diary";
/// Its content.
const SECRET: &[u8] = b"nobody else reads this";
/// Its access control list.
const OWN_LIST: &str = "allow all adversary-check.singularity\n";
const DISK: &str = "/dev/ram0";
/// Mount point of its volume.
pub(crate) const VAULT: &str = "/fs/vault";
/// Its world-readable file, in a world-writable folder.
pub(crate) const LETTER: &str = "/fs/vault/open/letter";
const LETTER_LIST: &str = "allow all adversary-check.singularity\nallow read **\n";
/// Default format options.
const OPTIONS: FormatOptions =
    FormatOptions { block_bytes: 0, nodes: 0, reserved_percent: 0, plain: 0, label: [0; 32] };
const TIMEOUT_MS: u64 = 10_000;

fn said(what: &str) -> impl Fn(AccessError) -> String + use<'_> {
    move |error| format!("{what}: {error}")
}

/// Creates all targets.
pub(crate) fn prepare(namespace: &mut Namespace) -> Outcome {
    for folder in ["/check/closed", "/check/closed/inner", "/check/open", "/check/alone"] {
        match namespace.create_directory(folder) {
            Ok(()) | Err(AccessError::Name(NameError::AlreadyExists)) => {}
            Err(error) => return Err(format!("{folder}: {error}")),
        }
    }
    let mut manager = VolumeManager::open(namespace, "ext2").map_err(|error| format!("{error}"))?;
    manager.format(DISK, OPTIONS).map_err(|error| format!("{error}"))?;
    manager.mount(DISK, VAULT, MountAccess::WriteIfPossible).map_err(|error| format!("{error}"))?;
    namespace.make_directory("/fs/vault/own").map_err(said("/fs/vault/own"))?;
    namespace.make_directory("/fs/vault/open").map_err(said("/fs/vault/open"))?;
    for path in [DIARY, LETTER] {
        let block = ExVec::from_slice(SECRET).map_err(|status| String::from(status.text()))?;
        let mut file = namespace.create_file(path, 0o644, CreateMode::New).map_err(said(path))?;
        file.write_at(block, 0, SECRET.len()).and_then(|written| written.all()).map_err(said(path))?;
    }
    namespace.set_acl(LETTER, LETTER_LIST).map_err(said("the list of the letter"))?;
    namespace.set_acl("/fs/vault/own", OWN_LIST).map_err(said("the list of /fs/vault/own"))?;
    is_unharmed(namespace)
}

/// Reads a whole file.
pub(crate) fn read(namespace: &mut Namespace, path: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = namespace.open_file(path).and_then(|mut file| {
        let mut pieces = file.pieces();
        while let Some(piece) = pieces.next()? {
            bytes.extend_from_slice(piece);
        }
        Ok(bytes)
    });
    read.map_err(said(path))
}

/// The network stack for this program.
pub(crate) fn stack(namespace: &mut Namespace) -> Result<tcp::Imp<tcp::states::Ready>, String> {
    network::open_tcp(namespace).map_err(|error| format!("{}: {error}", network::TCP))
}

/// Checks that everything of this program is unchanged.
pub(crate) fn is_unharmed(namespace: &mut Namespace) -> Outcome {
    let inside = namespace.names("/check/closed").map_err(said("/check/closed"))?;
    check!(inside.len() == 1, "{} names in /check/closed, where there was one", inside.len());
    check!(read(namespace, DIARY)? == SECRET, "the diary says something else");
    check!(read(namespace, LETTER)? == SECRET, "the letter says something else");
    let list = namespace.acl(LETTER).map_err(said("the list of the letter"))?.map(|found| found.text);
    check!(list.as_deref() == Some(LETTER_LIST), "the letter's list is {list:?}");
    let inside = namespace.names(VAULT).map_err(said(VAULT))?;
    check!(inside.iter().any(|name| name.name == b"own"), "the volume is not what it was");
    let list = namespace.acl(DIARY).map_err(said("the list of the diary"))?.map(|found| found.text);
    check!(list.as_deref() == Some(OWN_LIST), "the diary's list is {list:?}");
    let here = SocketAddress::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    let mut stack = stack(namespace)?;
    loop {
        stack = match stack.listen(here, 1).receive_by(deadline) {
            Ok(ImpReadyAfterListen::Listening { .. }) => return Ok(()),
            // A listener is closed slightly after its client.
            Ok(ImpReadyAfterListen::Failed { error: TcpError::AddressInUse, next }) if !deadline.has_passed() => next,
            Ok(ImpReadyAfterListen::Failed { error, .. }) => {
                return Err(format!("port {PORT} is no longer this program's: {error:?}"));
            }
            _ => return Err(String::from("the network stack does not answer")),
        };
        sip::thread::sleep(Deadline::after_ms(1));
    }
}
