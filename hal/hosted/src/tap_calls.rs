//! Non-blocking system calls on TAP interfaces and their packets.
//!
//! Key type: [`Header`] (precedes each packet if offloads are enabled). Each function is one system call,
//! or two that belong together, with its error. Deliberately not here: ownership of packets, and the meaning of
//! errors.

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

/// Length of the header before each packet.
const HEADER_BYTES: usize = 10;
/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum is not filled in yet.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_F_DATA_VALID: the checksum was verified.
const CHECKSUM_GOOD: u8 = 2;

/// Segmentation type, VIRTIO_NET_HDR_GSO_*.
const CUT_VERSION_4: u8 = 1;
const CUT_VERSION_6: u8 = 4;

/// Header before each packet if offloads are enabled: the used fields of `struct virtio_net_hdr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Offset at which the checksum range starts; 0: the checksum is filled in.
    pub(crate) checksum_start: u16,
    /// Offset of the checksum field from there.
    pub(crate) checksum_offset: u16,
    /// Payload bytes of each TCP segment that the packet has to be split into; 0: it stays whole.
    pub(crate) segment_bytes: u16,
    /// Length of all headers of a packet to be split.
    pub(crate) header_bytes: u16,
    /// Whether the packet to be split is IPv6.
    pub(crate) version_6: bool,
    /// Whether the checksum of a received packet needs no verification.
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

/// Returns whether the host has an interface of this name.
pub(crate) fn exists(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: the name is a live C string.
    unsafe { libc::if_nametoindex(name.as_ptr()) != 0 }
}

/// Opens the TAP interface of this name, or creates it if this user may; a created one lasts as long as the
/// file. With `treats` packets are exchanged with partial checksums.
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

/// Returns the hardware address of the host's end.
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

/// Returns the MTU: maximum bytes of a packet without its Ethernet header.
pub(crate) fn mtu(name: &str) -> io::Result<u16> {
    let request = ask(name, libc::SIOCGIFMTU)?;
    // SAFETY: SIOCGIFMTU has written a number.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Returns whether the interface is up.
pub(crate) fn is_up(name: &str) -> io::Result<bool> {
    let request = ask(name, libc::SIOCGIFFLAGS)?;
    // SAFETY: SIOCGIFFLAGS has written flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(i32::from(flags) & libc::IFF_UP != 0)
}

/// Sets address, mask and MTU of the host's end, and brings it up.
pub(crate) fn bring_up(name: &str, address: Ipv4Addr, mask: Ipv4Addr, mtu: u16) -> io::Result<()> {
    let mut longer = request(name)?;
    longer.ifr_ifru.ifru_mtu = mtu.into();
    perform(&mut longer, libc::SIOCSIFMTU)?;
    for (which, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        let mut request = request(name)?;
        // Layout of sockaddr_in: the port, then the address.
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

/// Receives a packet, truncated to the memory; returns its length there and its header.
pub(crate) fn receive(file: RawFd, treats: bool, memory: Memory) -> io::Result<(usize, Header)> {
    let mut header = [0; HEADER_BYTES];
    let first = libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: if treats { HEADER_BYTES } else { 0 } };
    let both = [first, memory.io_vector()];
    // SAFETY: the vectors name a live array and `memory`, which is mapped, writable and lent for the request (`Memory`).
    let bytes = count(unsafe { libc::readv(file, both.as_ptr(), both.len() as libc::c_int) })?;
    let bytes = bytes.checked_sub(both[0].iov_len).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((bytes, Header::from_bytes(header)))
}

/// Sends the memory as one packet.
pub(crate) fn send(file: RawFd, treats: bool, header: Header, memory: Memory) -> io::Result<()> {
    let header = header.to_bytes();
    let bytes = if treats { HEADER_BYTES } else { 0 };
    let first = libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: bytes };
    let both = [first, memory.io_vector()];
    // SAFETY: the vectors name a live array and `memory`, which is mapped, readable and lent; writev only reads them.
    count(unsafe { libc::writev(file, both.as_ptr(), both.len() as libc::c_int) }).map(|_| ())
}

/// Queries a property of an interface.
fn ask(name: &str, which: libc::c_ulong) -> io::Result<libc::ifreq> {
    let mut request = request(name)?;
    perform(&mut request, which)?;
    Ok(request)
}

fn perform(request: &mut libc::ifreq, which: libc::c_ulong) -> io::Result<()> {
    let socket = socket_calls::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: each of these requests reads and writes one ifreq, which lives across the call.
    done(unsafe { libc::ioctl(number(&socket), which, ptr::from_mut(request)) })
}

/// Makes an empty request for the interface of this name.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bytes are a valid ifreq: no name, and numbers that are 0.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays 0, to terminate the name.
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
