//! `sing run --web`: what is served, as disks of a machine, and how the machine is reached.
//!
//! A folder becomes an image (`site::image`); an image is used as it is. The access log lies on a disk of its own.
//! Deliberately not here: starting the machine (`run`).

mod image;
mod tree;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::command_line::{MachineName, RunArguments};
use crate::failure::{Failure, Outcome, plain_reason};
use crate::repository::Repository;
use crate::tap;

/// The port where none is asked for.
const PORT: u16 = 8080;
/// The port that a machine with an address of its own serves at.
pub const GUEST_PORT: u16 = 80;

/// A site that a machine can serve.
#[derive(Debug)]
pub struct Site {
    /// The arguments of a run that serves it.
    pub arguments: RunArguments,
    /// What is said to a person before the machine starts.
    pub announcement: String,
    /// The host's port that it is served at, where it is one.
    port: Option<u16>,
}

impl Site {
    /// Looks whether its port can be had.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_port(&self) -> Outcome<()> {
        self.port.map_or(Ok(()), check_port)
    }
}

/// Makes the disks of what `--web` names, and the arguments of the run.
///
/// # Errors
/// It is neither a folder nor an image, the port is taken, or an image cannot be written.
pub fn prepare(repository: &Repository, given: &Path, arguments: &RunArguments) -> Outcome<Site> {
    let port = arguments.port.unwrap_or(PORT);
    let is_hosted = matches!(arguments.machine, None | Some(MachineName::Hosted));
    // Over TAP a machine has an address of its own, and none of the host's ports is used.
    let has_own_address = arguments.tap.is_some();
    if !has_own_address {
        check_port(port)?;
    }
    let disk = disk(repository, given)?;
    let log = image::log(repository, port)?;
    let mut arguments = arguments.clone();
    let own_disks = std::mem::take(&mut arguments.disk);
    arguments.disk = [disk, log].into_iter().chain(own_disks).collect();
    if arguments.system.is_none() {
        let name = match (is_hosted, has_own_address) {
            (true, false) => "web",
            (true, true) => "web-tap",
            (false, _) => "web-bare",
        };
        arguments.system = Some(name.into());
    }
    let served_at = match (is_hosted, has_own_address) {
        (_, true) => arguments.port.unwrap_or(GUEST_PORT),
        (true, false) => port,
        (false, false) => GUEST_PORT,
    };
    arguments.parameter.push(format!("web-port={served_at}"));
    arguments.port = Some(port);
    let announcement = match (has_own_address, tap::address(&arguments)) {
        (false, _) => format!("serving http://localhost:{port}/"),
        (true, None) => format!("serving port {served_at} of the machine's own address, which `ipconfig` shows"),
        (true, Some(address)) if served_at == GUEST_PORT => format!("serving http://{address}/"),
        (true, Some(address)) => format!("serving http://{address}:{served_at}/"),
    };
    Ok(Site { arguments, announcement, port: (!has_own_address).then_some(port) })
}

/// The disk for what is served.
fn disk(repository: &Repository, given: &Path) -> Outcome<PathBuf> {
    let without_access = given.as_os_str().as_bytes().strip_suffix(b":ro").map(OsStr::from_bytes);
    let path = match without_access {
        Some(path) if !given.exists() => Path::new(path),
        _ => given,
    };
    let metadata = std::fs::metadata(path).map_err(|error| Failure::file("serve", path, &error))?;
    if metadata.is_dir() {
        let mut disk = image::of_folder(repository, path)?.into_os_string();
        // Other machines may serve the same folder.
        disk.push(":ro");
        return Ok(disk.into());
    }
    if !has_file_system(path)? {
        return Err(Failure::new(format!("{} is neither a folder nor a disk image with ext2 or FAT", path.display()))
            .remedy("give the folder that is to be served"));
    }
    Ok(given.to_path_buf())
}

/// Whether the image begins as a volume does that the system mounts.
fn has_file_system(path: &Path) -> Outcome<bool> {
    let file = std::fs::File::open(path).map_err(|error| Failure::file("open", path, &error))?;
    let is_at = |offset: u64, expected: &[u8]| {
        let mut found = vec![0; expected.len()];
        file.read_exact_at(&mut found, offset).is_ok() && found == expected
    };
    let is_ext2 = is_at(1080, &[0x53, 0xef]);
    let is_fat = is_at(510, &[0x55, 0xaa]) && (is_at(54, b"FAT") || is_at(82, b"FAT"));
    Ok(is_ext2 || is_fat)
}

/// Looks whether the port can be had before anything is built for it.
fn check_port(port: u16) -> Outcome<()> {
    let tried = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).map(drop);
    // A host without IPv6 is no reason against it.
    let also = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        _ => Ok(()),
    };
    let error = match tried.and(also) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let what = match error.kind() {
        ErrorKind::AddrInUse => format!("port {port} is in use by another program"),
        ErrorKind::PermissionDenied => format!("port {port} is not for this user"),
        _ => format!("port {port} cannot be used: {}", plain_reason(&error)),
    };
    Err(Failure::new(what).remedy(match port {
        PORT => "end that program, or choose another port, as with --port 8081",
        _ => "choose another port, as with --port 8080",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_one_sentence() {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let refused = check_port(port).expect_err("it is taken").to_string();
        let expected = format!("port {port} is in use by another program; choose another port, as with --port 8080.");
        assert_eq!(refused, expected);
        drop(listener);
        check_port(port).expect("it is free again");
    }

    #[test]
    fn what_holds_no_volume_is_told_from_what_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "text").expect("a file");
        assert_eq!(has_file_system(&path), Ok(false));
        let mut bytes = vec![0; 4096];
        bytes[1080..1082].copy_from_slice(&[0x53, 0xef]);
        std::fs::write(&path, &bytes).expect("a file");
        assert_eq!(has_file_system(&path), Ok(true));
    }
}
