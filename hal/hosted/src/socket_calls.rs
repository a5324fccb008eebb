//! Non-blocking system calls on sockets.
//!
//! Key types: [`Name`] (an address and a port, as in records), [`Event`]. Each function is one system call,
//! with its error. Deliberately not here: ownership of sockets, and the meaning of errors.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use abi::sockets::NAME_BYTES;

use crate::transfer::Memory;

/// An IPv6 address (IPv4 ones are mapped) and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) address: [u8; 16],
    pub(crate) port: u16,
    /// Interface index of a link-local address.
    pub(crate) scope: u32,
}

const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Returns the IPv4-mapped IPv6 address.
pub(crate) fn mapped(address: [u8; 4]) -> [u8; 16] {
    let mut whole = [0; 16];
    whole[..12].copy_from_slice(&MAPPED);
    whole[12..].copy_from_slice(&address);
    whole
}

/// Returns the IPv4 address of an IPv4-mapped one.
pub(crate) fn unmapped(address: [u8; 16]) -> Option<[u8; 4]> {
    if address[..12] != MAPPED {
        return None;
    }
    <[u8; 4]>::try_from(&address[12..]).ok()
}

impl Name {
    /// Decodes a name of a record.
    pub(crate) fn from_bytes(bytes: &[u8; NAME_BYTES]) -> Self {
        let mut address = [0; 16];
        address.copy_from_slice(&bytes[..16]);
        let port = u16::from_le_bytes([bytes[16], bytes[17]]);
        let scope = u32::from_le_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]);
        Self { address, port, scope }
    }

    /// Encodes a name for a record.
    pub(crate) fn to_bytes(self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..16].copy_from_slice(&self.address);
        bytes[16..18].copy_from_slice(&self.port.to_le_bytes());
        bytes[20..].copy_from_slice(&self.scope.to_le_bytes());
        bytes
    }

    /// Returns whether it is the unspecified IPv6 address.
    pub(crate) fn is_any(self) -> bool {
        self.address == [0; 16]
    }

    /// Returns whether it is an IPv4 address.
    pub(crate) fn is_version_4(self) -> bool {
        unmapped(self.address).is_some()
    }

    fn to_host(self, version_6: bool) -> HostName {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let place = ptr::from_mut(&mut storage);
        let bytes = if version_6 {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: self.port.to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: self.address },
                sin6_scope_id: self.scope,
            };
            // SAFETY: a sockaddr_storage has room for, and the alignment of, every kind of name.
            unsafe { place.cast::<libc::sockaddr_in6>().write(name) };
            mem::size_of::<libc::sockaddr_in6>()
        } else {
            let address = unmapped(self.address).unwrap_or([0; 4]);
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: self.port.to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address) },
                sin_zero: [0; 8],
            };
            // SAFETY: as before.
            unsafe { place.cast::<libc::sockaddr_in>().write(name) };
            mem::size_of::<libc::sockaddr_in>()
        };
        HostName { storage, bytes: bytes as libc::socklen_t }
    }
}

/// A name as a `sockaddr`.
struct HostName {
    storage: libc::sockaddr_storage,
    bytes: libc::socklen_t,
}

impl HostName {
    fn empty() -> Self {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let storage = unsafe { mem::zeroed() };
        Self { storage, bytes: mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t }
    }

    fn pointer(&self) -> *const libc::sockaddr {
        ptr::from_ref(&self.storage).cast()
    }

    fn pointer_mut(&mut self) -> *mut libc::sockaddr {
        ptr::from_mut(&mut self.storage).cast()
    }

    /// Decodes the name; the unspecified name for other families.
    fn name(&self) -> Name {
        let place = ptr::from_ref(&self.storage);
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the storage is initialised memory, large and aligned enough for every kind of name.
                let name = unsafe { &*place.cast::<libc::sockaddr_in>() };
                let address = mapped(name.sin_addr.s_addr.to_ne_bytes());
                Name { address, port: u16::from_be(name.sin_port), scope: 0 }
            }
            libc::AF_INET6 => {
                // SAFETY: as before.
                let name = unsafe { &*place.cast::<libc::sockaddr_in6>() };
                let port = u16::from_be(name.sin6_port);
                Name { address: name.sin6_addr.s6_addr, port, scope: name.sin6_scope_id }
            }
            _ => Name::default(),
        }
    }
}

/// Decodes a `sockaddr` of `getaddrinfo` or `getifaddrs`: `None` for other families.
///
/// # Safety
///
/// The pointer is null or points to a `sockaddr` as long as its family requires.
pub(crate) unsafe fn name_at(pointer: *const libc::sockaddr) -> Option<Name> {
    // SAFETY: passed on from the caller.
    let family = i32::from(unsafe { pointer.as_ref() }?.sa_family);
    let bytes = match family {
        libc::AF_INET => mem::size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => mem::size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    let mut copy = HostName::empty();
    // SAFETY: the source is that long, by the caller's contract; the target is longer.
    unsafe { ptr::copy_nonoverlapping(pointer.cast::<u8>(), copy.pointer_mut().cast::<u8>(), bytes) };
    Some(copy.name())
}

/// Creates a non-blocking socket.
pub(crate) fn open(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket touches no memory of this process.
    owned(unsafe { libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) })
}

/// Sets an integer option.
pub(crate) fn set_option(socket: RawFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let value_bytes = mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value lives across the call and has the given length.
    done(unsafe { libc::setsockopt(socket, level, option, ptr::from_ref(&value).cast(), value_bytes) })
}

/// Makes the next close send a reset.
pub(crate) fn reset_on_close(socket: RawFd) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let bytes = mem::size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: as in `set_option`.
    done(unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_LINGER, ptr::from_ref(&linger).cast(), bytes) })
}

/// Takes the pending error, such as that of a connection attempt.
pub(crate) fn pending_error(socket: RawFd) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut bytes = mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value and its length live across the call.
    done(unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ERROR, ptr::from_mut(&mut error).cast(), &mut bytes)
    })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Returns the number of retransmitted segments of a connection; 0 if unknown.
pub(crate) fn retransmitted(socket: RawFd) -> u32 {
    // `struct tcp_info` up to and including `tcpi_total_retrans`.
    let mut told = [0; TOTAL_RETRANSMITTED_AT + 4];
    let mut bytes = told.len() as libc::socklen_t;
    // SAFETY: as in `pending_error`.
    let answer =
        unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, told.as_mut_ptr().cast(), &mut bytes) };
    let [.., a, b, c, d] = told;
    if answer == 0 && bytes as usize == told.len() { u32::from_ne_bytes([a, b, c, d]) } else { 0 }
}

/// Returns the number of connections dropped for a full accept queue, or of datagrams for a full buffer; 0 if unknown.
pub(crate) fn dropped(socket: RawFd) -> u32 {
    let mut told = [0u32; DROPS + 1];
    let mut bytes = mem::size_of_val(&told) as libc::socklen_t;
    // SAFETY: as in `pending_error`.
    let answer =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, told.as_mut_ptr().cast(), &mut bytes) };
    if answer == 0 && bytes as usize == mem::size_of_val(&told) { told[DROPS] } else { 0 }
}

/// Offset of `tcpi_total_retrans` in `struct tcp_info` (include/uapi/linux/tcp.h).
const TOTAL_RETRANSMITTED_AT: usize = 100;
/// Index of the drop count in `SO_MEMINFO` (include/uapi/linux/sock_diag.h: SK_MEMINFO_DROPS).
const DROPS: usize = 8;

/// Returns the state of a connection, in the host's numbering.
pub(crate) fn connection_state(socket: RawFd) -> io::Result<u8> {
    // The state is the first byte of `struct tcp_info`.
    let mut state: u8 = 0;
    let mut bytes: libc::socklen_t = 1;
    // SAFETY: as in `pending_error`.
    done(unsafe {
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, ptr::from_mut(&mut state).cast(), &mut bytes)
    })?;
    Ok(state)
}

/// Returns the bytes queued for reading (`FIONREAD`) or sending (`TIOCOUTQ`).
pub(crate) fn queued(socket: RawFd, which: libc::Ioctl) -> u32 {
    let mut count: libc::c_int = 0;
    // SAFETY: both requests write one number, which lives across the call.
    let answer = unsafe { libc::ioctl(socket, which, ptr::from_mut(&mut count)) };
    if answer == 0 { u32::try_from(count).unwrap_or(0) } else { 0 }
}

/// Binds to a local name.
pub(crate) fn bind(socket: RawFd, name: Name, version_6: bool) -> io::Result<()> {
    let name = name.to_host(version_6);
    // SAFETY: the name lives across the call and has the given length.
    done(unsafe { libc::bind(socket, name.pointer(), name.bytes) })
}

/// Starts to connect.
pub(crate) fn connect(socket: RawFd, name: Name, version_6: bool) -> io::Result<()> {
    let name = name.to_host(version_6);
    // SAFETY: as in `bind`.
    done(unsafe { libc::connect(socket, name.pointer(), name.bytes) })
}

/// Starts to listen.
pub(crate) fn listen(socket: RawFd, backlog: u32) -> io::Result<()> {
    // SAFETY: listen touches no memory of this process.
    done(unsafe { libc::listen(socket, libc::c_int::try_from(backlog).unwrap_or(libc::c_int::MAX)) })
}

/// Accepts a connection; returns it with the peer's name.
pub(crate) fn accept(socket: RawFd) -> io::Result<(OwnedFd, Name)> {
    let mut name = HostName::empty();
    let mut bytes = name.bytes;
    // SAFETY: name and length live across the call; the length is the room there is.
    let accepted = owned(unsafe {
        libc::accept4(socket, name.pointer_mut(), &mut bytes, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
    })?;
    Ok((accepted, name.name()))
}

/// Returns a socket's own name.
pub(crate) fn local_name(socket: RawFd) -> io::Result<Name> {
    let mut name = HostName::empty();
    let mut bytes = name.bytes;
    // SAFETY: as in `accept`.
    done(unsafe { libc::getsockname(socket, name.pointer_mut(), &mut bytes) })?;
    Ok(name.name())
}

/// Shuts down the sending direction.
pub(crate) fn finish(socket: RawFd) -> io::Result<()> {
    // SAFETY: shutdown touches no memory of this process.
    done(unsafe { libc::shutdown(socket, libc::SHUT_WR) })
}

/// Receives available bytes into memory.
pub(crate) fn receive(socket: RawFd, memory: Memory) -> io::Result<usize> {
    let vector = memory.io_vector();
    // SAFETY: the vector names `memory`, which is mapped, writable and lent for the request (`Memory`).
    count(unsafe { libc::recv(socket, vector.iov_base, vector.iov_len, 0) })
}

/// Receives one datagram, truncated to the memory; returns its full length and its sender.
pub(crate) fn receive_from(socket: RawFd, memory: Memory) -> io::Result<(usize, Name)> {
    let vector = memory.io_vector();
    let mut name = HostName::empty();
    let mut bytes = name.bytes;
    // SAFETY: as in `receive` and `accept`.
    let length = count(unsafe {
        libc::recvfrom(socket, vector.iov_base, vector.iov_len, libc::MSG_TRUNC, name.pointer_mut(), &mut bytes)
    })?;
    Ok((length, name.name()))
}

/// Receives an echo reply, as `receive_from` does a datagram. The port of the name holds the remaining hop
/// limit.
pub(crate) fn receive_echo(socket: RawFd, memory: Memory) -> io::Result<(usize, Name)> {
    let mut vector = memory.io_vector();
    let mut name = HostName::empty();
    let mut control = [0u64; 8];
    // SAFETY: all-zero bytes are a valid, empty msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_name = name.pointer_mut().cast();
    message.msg_namelen = name.bytes;
    message.msg_iov = &mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control);
    // SAFETY: the message names live memory of this function, and `memory`, as in `receive`.
    let length = count(unsafe { libc::recvmsg(socket, &mut message, libc::MSG_TRUNC) })?;
    Ok((length, Name { port: hop_limit(&message), ..name.name() }))
}

/// Enables reporting of the remaining hop limit of echo replies.
pub(crate) fn report_hop_limit(socket: RawFd, version_6: bool) -> io::Result<()> {
    match version_6 {
        true => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
        false => set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
    }
}

/// Returns the hop limit of a received message; 0 if it is not reported.
fn hop_limit(message: &libc::msghdr) -> u16 {
    // SAFETY: the kernel has filled in the message's control memory and its length.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: it is null or a header within the control memory, which is aligned for one.
    while let Some(header) = unsafe { next.as_ref() } {
        let kind = (header.cmsg_level, header.cmsg_type);
        if kind == (libc::IPPROTO_IP, libc::IP_TTL) || kind == (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) {
            // SAFETY: both contain a number, which need not be aligned.
            let hops = unsafe { libc::CMSG_DATA(next).cast::<libc::c_int>().read_unaligned() };
            return u16::try_from(hops).unwrap_or(0);
        }
        // SAFETY: as for the first header.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    0
}

/// Sends two buffers in one call. Returns the bytes sent of both together, which may be fewer.
pub(crate) fn send(socket: RawFd, first: &[u8], memory: Memory, more: bool) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
    let vector = memory.io_vector();
    if first.is_empty() {
        // SAFETY: the vector names `memory`, which is mapped, readable and lent for the request (`Memory`).
        return count(unsafe { libc::send(socket, vector.iov_base, vector.iov_len, flags) });
    }
    let first = libc::iovec { iov_base: first.as_ptr().cast_mut().cast(), iov_len: first.len() };
    let mut both = [first, vector];
    // SAFETY: all-zero bytes are a valid, empty msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = both.as_mut_ptr();
    message.msg_iovlen = both.len();
    // SAFETY: the message names two live pieces of memory, one borrowed, one lent; sendmsg only reads them.
    count(unsafe { libc::sendmsg(socket, &message, flags) })
}

/// Sends one datagram.
pub(crate) fn send_to(socket: RawFd, memory: Memory, name: Name, version_6: bool) -> io::Result<usize> {
    let vector = memory.io_vector();
    let name = name.to_host(version_6);
    let flags = libc::MSG_NOSIGNAL;
    // SAFETY: as in `send` and `bind`.
    count(unsafe { libc::sendto(socket, vector.iov_base, vector.iov_len, flags, name.pointer(), name.bytes) })
}

/// A readiness event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// The token given to `watch`.
    pub(crate) token: u64,
    /// Event bits of epoll.
    pub(crate) bits: u32,
}

/// Creates an epoll instance.
pub(crate) fn watcher() -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1 touches no memory of this process.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// Registers a socket, edge-triggered, until it is closed; for writability only on request. Existing readiness is an
/// event. `again` changes an existing registration.
pub(crate) fn watch(watcher: RawFd, socket: RawFd, token: u64, for_room: bool, again: bool) -> io::Result<()> {
    let bits = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET | if for_room { libc::EPOLLOUT } else { 0 };
    let mut event = libc::epoll_event { events: bits as u32, u64: token };
    let operation = if again { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_ADD };
    // SAFETY: the event lives across the call.
    done(unsafe { libc::epoll_ctl(watcher, operation, socket, &mut event) })
}

/// Maximum events per call.
const MAX_EVENTS: usize = 256;

/// Takes available events without blocking.
pub(crate) fn events(watcher: RawFd, most: usize, mut take: impl FnMut(Event)) -> io::Result<usize> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS];
    let most = most.min(MAX_EVENTS);
    // SAFETY: there is room for as many events as requested.
    let there = unsafe { libc::epoll_wait(watcher, events.as_mut_ptr(), most as libc::c_int, 0) };
    let there = count(there as isize)?;
    for event in &events[..there.min(most)] {
        take(Event { token: event.u64, bits: event.events });
    }
    Ok(there)
}

/// Creates an eventfd that interrupts another thread's wait.
pub(crate) fn alarm() -> io::Result<OwnedFd> {
    // SAFETY: eventfd touches no memory of this process.
    owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
}

/// Signals an eventfd. Async-signal-safe.
pub(crate) fn ring(alarm: RawFd) {
    let one: u64 = 1;
    // SAFETY: eight bytes of a live number are read. It fails only if the counter is at its maximum.
    unsafe { libc::write(alarm, ptr::from_ref(&one).cast(), mem::size_of::<u64>()) };
}

/// Clears an eventfd.
pub(crate) fn silence(alarm: RawFd) {
    let mut count: u64 = 0;
    // SAFETY: eight bytes of a live number are written. It fails only if the counter is 0.
    unsafe { libc::read(alarm, ptr::from_mut(&mut count).cast(), mem::size_of::<u64>()) };
}

/// Blocks until one of the files is readable. May return early.
pub(crate) fn wait_for_any(files: &[RawFd; 2]) {
    let mut list = files.map(|file| libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 });
    // SAFETY: the list lives across the call and has the given length.
    unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, -1) };
}

/// Raises the limit of open files to the hard limit.
pub(crate) fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives across both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            // Best-effort: on failure the limit stays as it is.
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

fn owned(answer: libc::c_int) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn count(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Returns the descriptor of an open file.
pub(crate) fn number(file: &OwnedFd) -> RawFd {
    file.as_raw_fd()
}
