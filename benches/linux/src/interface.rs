//! Configures the network of a freshly booted Linux: kernel modules for the device, address, default route.

use std::ffi::{CString, c_char, c_int, c_short};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Loads a kernel module.
///
/// # Errors
///
/// If Linux refuses it.
pub fn load_module(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let none = CString::default();
    // SAFETY: the descriptor is open as long as `file` lives, and the text ends with a zero.
    let answer = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), none.as_ptr(), 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Mounts a file system that has no device.
///
/// # Errors
///
/// If Linux refuses it.
pub fn mount(kind: &str, place: &str) -> io::Result<()> {
    let (kind, place) = (CString::new(kind)?, CString::new(place)?);
    // SAFETY: all texts end with a zero; no data is given.
    let answer = unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the address of an interface and brings it up.
///
/// # Errors
///
/// If there is no such interface, or Linux refuses it.
pub fn configure(interface: &str, address: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let ask = |request: libc::Ioctl, value: libc::__c_anonymous_ifr_ifru| {
        let asked = libc::ifreq { ifr_name: name(interface), ifr_ifru: value };
        // SAFETY: the descriptor is open as long as `socket` lives, and each request reads one ifreq.
        let answer = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw const asked) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    if address != Ipv4Addr::LOCALHOST {
        ask(libc::SIOCSIFADDR, libc::__c_anonymous_ifr_ifru { ifru_addr: as_address(address) })?;
        ask(libc::SIOCSIFNETMASK, libc::__c_anonymous_ifr_ifru { ifru_netmask: as_address(mask) })?;
    }
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as c_short;
    ask(libc::SIOCSIFFLAGS, libc::__c_anonymous_ifr_ifru { ifru_flags: up })
}

fn name(interface: &str) -> [c_char; libc::IFNAMSIZ] {
    let mut name = [0; libc::IFNAMSIZ];
    // The last byte stays zero.
    for (place, byte) in name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
        *place = byte as c_char;
    }
    name
}

/// Encodes a `sockaddr_in` (ip(7)) in the bytes of a `sockaddr`: port, address, zeros.
fn as_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (place, byte) in data[2..6].iter_mut().zip(address.octets()) {
        *place = byte as c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as c_int as libc::sa_family_t, sa_data: data }
}
