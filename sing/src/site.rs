//! `sing run --web`: turns the content to serve into a machine's disks, and determines the machine's address.
//!
//! A folder is served live; for a user's own system, which does not expect a folder, it becomes an image
//! (`site::image`). An image is used as it is, once it is known to be mountable (`site::volume`). The access log has a
//! disk of its own. Deliberately not here: starting the machine (`run`).

mod access_log;
mod applications;
mod image;
mod tree;
mod volume;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use self::applications::Served;
use crate::bare::qemu::Network;
use crate::command_line::{MachineName, RunArguments};
use crate::failure::{Failure, Outcome, plain_reason};
use crate::repository::Repository;
use crate::run;
use crate::tap;

/// Default port.
const PORT: u16 = 8080;
/// Port of a machine with its own address.
pub const GUEST_PORT: u16 = 80;

/// Name of the served folder inside the machine.
const FOLDER: &str = "site";

/// A site that a machine can serve.
#[derive(Debug)]
pub struct Site {
    /// Arguments of the run that serves it.
    pub arguments: RunArguments,
    /// Announcement before the machine starts.
    pub announcement: String,
    /// Host address and port of the site, if it is served there.
    place: Option<(IpAddr, u16)>,
    /// The machine's own address and port, if known.
    machine: Option<SocketAddr>,
}

impl Site {
    /// Returns the address of the site for this host, if known.
    pub fn reached_at(&self) -> Option<SocketAddr> {
        let Some((address, port)) = self.place else { return self.machine };
        let local = match address {
            IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            address => address,
        };
        Some(SocketAddr::new(local, port))
    }

    /// Checks that the port is available.
    ///
    /// # Errors
    /// It is not.
    pub fn check_port(&self) -> Outcome<()> {
        self.place.map_or(Ok(()), |(address, port)| check_port(address, port))
    }
}

/// Makes the disks for the argument of `--web`, and the arguments of the run.
///
/// # Errors
/// It is neither a folder nor a mountable image, the address or port is unavailable, or an image cannot be written.
pub fn prepare(repository: &Repository, given: &Path, arguments: &RunArguments) -> Outcome<Site> {
    let port = arguments.port.unwrap_or(PORT);
    let is_hosted = matches!(arguments.machine, None | Some(MachineName::Hosted));
    // Over TAP a machine has its own address, and no host port is used.
    let place = arguments.tap.is_none().then(|| (host_address(arguments), port));
    if let Some((address, port)) = place {
        check_port(address, port)?;
        if !is_hosted {
            forwarded(arguments, port)?;
        }
    }
    let own_port = arguments.port.unwrap_or(GUEST_PORT);
    let (system, served_at) = match (is_hosted, place) {
        (true, Some(_)) => ("web", port),
        (true, None) => ("web-tap", own_port),
        (false, Some(_)) => ("web-bare", GUEST_PORT),
        (false, None) => ("web-bare", own_port),
    };
    // A user's own system determines itself what it serves.
    let live = live_folder(given).filter(|_| arguments.system.is_none());
    let root = if live.is_some() { format!("/fs/{FOLDER}") } else { "/fs/disk0".into() };
    let address = place.map(|(address, _)| address);
    let chosen = applications::choose(repository, arguments, system, address, &Served { at_host: given, root: &root })?;
    let disk = if live.is_some() { run::demo_disk(repository)? } else { disk(repository, given)? };
    let log = image::log(repository, port)?;
    let mut arguments = arguments.clone();
    if let Some(folder) = live {
        arguments.folder.insert(0, folder);
        arguments.parameter.push(format!("web-root={root}"));
    }
    let own_disks = std::mem::take(&mut arguments.disk);
    arguments.disk = [disk, log].into_iter().chain(own_disks).collect();
    arguments.system = Some(chosen.system);
    arguments.parameter.extend(chosen.parameters);
    access_log::place(&mut arguments)?;
    arguments.parameter.push(format!("web-port={served_at}"));
    if let (true, Some((address, _))) = (is_hosted, place) {
        arguments.parameter.push(format!("web-address={address}"));
    }
    arguments.port = Some(port);
    let announcement = match (place, tap::address(&arguments)) {
        (Some((address, port)), _) => served_at_host(address, port),
        (None, None) => format!("serving port {served_at} of the machine's own address, which `ipconfig` shows"),
        (None, Some(address)) if served_at == GUEST_PORT => format!("serving http://{address}/"),
        (None, Some(address)) => format!("serving http://{address}:{served_at}/"),
    };
    let machine = tap::address(&arguments).and_then(|address| address.parse().ok());
    let machine = machine.map(|address: IpAddr| SocketAddr::new(address, served_at));
    Ok(Site { arguments, announcement, place, machine })
}

/// Returns the host address of the site: loopback, unless another is requested.
fn host_address(arguments: &RunArguments) -> IpAddr {
    arguments.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Returns a bare machine's network with a host port forwarded to it.
///
/// # Errors
/// QEMU cannot forward from the requested address.
pub fn forwarded(arguments: &RunArguments, port: u16) -> Outcome<Network> {
    match host_address(arguments) {
        IpAddr::V4(address) => {
            Ok(Network::Forwarded { host: SocketAddrV4::new(address, port), guest_port: GUEST_PORT })
        }
        IpAddr::V6(address) => {
            Err(Failure::new(format!("--listen {address}: QEMU forwards ports of IPv4 addresses only"))
                .remedy("use an IPv4 address, or serve from the hosted machine"))
        }
    }
}

/// Returns the announcement of a site at a host address.
fn served_at_host(address: IpAddr, port: u16) -> String {
    if address.is_unspecified() {
        format!("serving http://localhost:{port}/, and to other hosts at every address of this one")
    } else if address == Ipv4Addr::LOCALHOST {
        format!("serving http://localhost:{port}/")
    } else {
        format!("serving http://{}/", SocketAddr::new(address, port))
    }
}

/// Returns the argument of `--folder` if a folder is to be served.
fn live_folder(given: &Path) -> Option<OsString> {
    let followed = given.as_os_str().as_bytes().strip_suffix(b":follow").map(OsStr::from_bytes);
    let (path, options) = match followed {
        Some(path) if !given.exists() => (Path::new(path), ":ro:follow"),
        _ => (given, ":ro"),
    };
    path.is_dir().then(|| {
        let mut text = OsString::from(format!("{FOLDER}="));
        text.push(path);
        text.push(options);
        text
    })
}

/// Returns the disk with the content to serve.
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
    volume::check(path)?;
    Ok(given.to_path_buf())
}

/// Checks that the port is available before anything is built for it.
fn check_port(address: IpAddr, port: u16) -> Outcome<()> {
    let Err(error) = TcpListener::bind((address, port)) else { return Ok(()) };
    let what = match error.kind() {
        ErrorKind::AddrInUse => format!("port {port} is in use by another program"),
        ErrorKind::PermissionDenied => format!("port {port} is privileged"),
        ErrorKind::AddrNotAvailable => {
            return Err(Failure::new(format!("{address} is not an address of this host"))
                .remedy("use one that `ip address` shows with --listen, or 0.0.0.0 for all"));
        }
        _ => format!("port {port} cannot be used: {}", plain_reason(&error)),
    };
    Err(Failure::new(what).remedy(match port {
        PORT => "stop that program, or choose another port, such as --port 8081",
        _ => "choose another port, such as --port 8080",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_port_in_use_is_one_sentence() {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let refused = check_port(LOCAL, port).expect_err("it is taken").to_string();
        let expected = format!("port {port} is in use by another program; choose another port, such as --port 8080.");
        assert_eq!(refused, expected);
        drop(listener);
        check_port(LOCAL, port).expect("it is free again");
    }

    #[test]
    fn an_address_of_another_host_is_one_sentence() {
        let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let refused = check_port(foreign, 8080).expect_err("it is for documents").to_string();
        assert!(refused.starts_with("192.0.2.1 is not an address of this host; use one"), "{refused}");
    }

    #[test]
    fn where_it_is_served_is_said_as_it_is() {
        let said = |address: &str| served_at_host(address.parse().expect("an address"), 8080);
        assert_eq!(said("127.0.0.1"), "serving http://localhost:8080/");
        assert_eq!(said("192.0.2.1"), "serving http://192.0.2.1:8080/");
        assert_eq!(said("::1"), "serving http://[::1]:8080/");
        assert!(said("0.0.0.0").ends_with("/, and to other hosts at every address of this one"));
    }
}
