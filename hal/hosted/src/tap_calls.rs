//! The host's calls on TAP interfaces and their packets, none of which waits.
//!
//! Key type: [`Header`] (what goes before each packet where the host treats it). Each function is one call of the
//! host's, or two that belong together, with its error. Deliberately not here: whose packets they are, and what an error
//! is called.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use crate::socket_calls::{self, number};
use crate::transfer::Memory;

/// Bytes of what goes before each packet.
const HEADER_BYTES: usize = 10;
/// The checksum is still to be filled in.
const NEEDS_CHECKSUM: u8 = 1;
/// The checksum was looked at.
const CHECKSUM_GOOD: u8 = 2;

/// How the host is to cut.
const CUT_VERSION_4: u8 = 1;
const CUT_VERSION_6: u8 = 4;

/// What goes before each packet where the host treats it: `struct virtio_net_hdr`, without what this machine does not
/// use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// The checksum is to be filled in from here on; 0: it is there.
    pub(crate) checksum_start: u16,
    /// Where after that it is.
    pub(crate) checksum_offset: u16,
    /// Bytes of payload of each packet of TCP that this one is to be cut into; 0: it stays whole.
    pub(crate) segment_bytes: u16,
    /// Bytes of all headers of one that is to be cut.
    pub(crate) header_bytes: u16,
    /// Whether what is to be cut is IPv6.
    pub(crate) version_6: bool,
    /// Of a packet that was received: nobody needs to look at its checksum.
    pub(crate) is_good: bool,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        if self.checksum_start != 0 {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&self.checksum_start.to_ne_bytes());
            bytes[8..].copy_from_slice(&self.checksum_offset.to_ne_bytes());
        }
        if self.segment_bytes != 0 {
            bytes[1] = if self.version_6 { CUT_VERSION_6 } else { CUT_VERSION_4 };
            bytes[2..4].copy_from_slice(&self.header_bytes.to_ne_bytes());
            bytes[4..6].copy_from_slice(&self.segment_bytes.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Header {
        Header { is_good: bytes[0] & (NEEDS_CHECKSUM | CHECKSUM_GOOD) != 0, ..Header::default() }
    }
}

/// Whether the host has an interface of this name.
pub(crate) fn exists(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: the name is a live C string.
    unsafe { libc::if_nametoindex(name.as_ptr()) != 0 }
}

/// Opens the TAP interface of this name, which is made if there is none and this user may; it lasts as long as the
/// file then. With `treats` the host takes and gives packets whose checksums are not filled in.
pub(crate) fn open(name: &str, treats: bool) -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    let file: OwnedFd = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?.into();
    let mut request = request(name)?;
    let header = if treats { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | header) as libc::c_short;
    // SAFETY: the request is a live ifreq with a name and flags, as TUNSETIFF reads and writes it.
    done(unsafe { libc::ioctl(number(&file), libc::TUNSETIFF, ptr::from_mut(&mut request)) })?;
    if treats {
        // SAFETY: TUNSETOFFLOAD takes a number.
        done(unsafe { libc::ioctl(number(&file), libc::TUNSETOFFLOAD, libc::c_ulong::from(libc::TUN_F_CSUM)) })?;
    }
    Ok(file)
}

/// The hardware address of the host's end.
pub(crate) fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let request = ask(name, libc::SIOCGIFHWADDR)?;
    // SAFETY: SIOCGIFHWADDR has written an address, whose first bytes are the hardware's.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let mut bytes = [0; 6];
    for (byte, given) in bytes.iter_mut().zip(address.sa_data) {
        *byte = given as u8;
    }
    Ok(bytes)
}

/// Most bytes of a packet without its Ethernet header.
pub(crate) fn mtu(name: &str) -> io::Result<u16> {
    let request = ask(name, libc::SIOCGIFMTU)?;
    // SAFETY: SIOCGIFMTU has written a number.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Whether the interface is up.
pub(crate) fn is_up(name: &str) -> io::Result<bool> {
    let request = ask(name, libc::SIOCGIFFLAGS)?;
    // SAFETY: SIOCGIFFLAGS has written flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(i32::from(flags) & libc::IFF_UP != 0)
}

/// Gives the host's end an address, lets packets be so long, and brings it up.
pub(crate) fn bring_up(name: &str, address: Ipv4Addr, mask: Ipv4Addr, mtu: u16) -> io::Result<()> {
    let mut longer = request(name)?;
    longer.ifr_ifru.ifru_mtu = mtu.into();
    perform(&mut longer, libc::SIOCSIFMTU)?;
    for (which, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        let mut request = request(name)?;
        // As a sockaddr_in has it: the port, then the address.
        let mut name = libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: [0; 14] };
        for (place, byte) in name.sa_data[2..].iter_mut().zip(value.octets()) {
            *place = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_addr = name;
        perform(&mut request, which)?;
    }
    let mut request = ask(name, libc::SIOCGIFFLAGS)?;
    // SAFETY: SIOCGIFFLAGS has written flags.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    perform(&mut request, libc::SIOCSIFFLAGS)
}

/// Takes a packet into memory, as much of it as fits: its bytes there, and what the host says of it.
pub(crate) fn receive(file: RawFd, treats: bool, memory: Memory) -> io::Result<(usize, Header)> {
    let mut header = [0; HEADER_BYTES];
    let first = libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: if treats { HEADER_BYTES } else { 0 } };
    let both = [first, memory.io_vector()];
    // SAFETY: the vectors name a live array and `memory`, which is mapped, writable and lent for the request (`Memory`).
    let bytes = count(unsafe { libc::readv(file, both.as_ptr(), both.len() as libc::c_int) })?;
    let bytes = bytes.checked_sub(both[0].iov_len).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((bytes, Header::from_bytes(header)))
}

/// Sends what is in memory as one packet.
pub(crate) fn send(file: RawFd, treats: bool, header: Header, memory: Memory) -> io::Result<()> {
    let header = header.to_bytes();
    let bytes = if treats { HEADER_BYTES } else { 0 };
    let first = libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: bytes };
    let both = [first, memory.io_vector()];
    // SAFETY: the vectors name a live array and `memory`, which is mapped, readable and lent; writev only reads them.
    count(unsafe { libc::writev(file, both.as_ptr(), both.len() as libc::c_int) }).map(|_| ())
}

/// Asks about an interface.
fn ask(name: &str, which: libc::c_ulong) -> io::Result<libc::ifreq> {
    let mut request = request(name)?;
    perform(&mut request, which)?;
    Ok(request)
}

fn perform(request: &mut libc::ifreq, which: libc::c_ulong) -> io::Result<()> {
    let socket = socket_calls::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: each of these requests reads and writes one ifreq, which lives over the call.
    done(unsafe { libc::ioctl(number(&socket), which, ptr::from_mut(request)) })
}

/// An empty request about the interface of this name.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bytes are a valid ifreq: no name, and numbers that are 0.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays 0, for the name's end.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn count(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
