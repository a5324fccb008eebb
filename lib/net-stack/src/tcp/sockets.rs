//! smoltcp's sockets with their buffers, kept for the next connection when one ends.
//!
//! A connection's buffers are made with it and stay as large as they are, so the more of the memory is taken, the
//! smaller are those of the next one.

use alloc::vec::Vec;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, SocketBuffer, State};

use crate::port::LONGEST_CUT_PAYLOAD;

use super::Limits;

/// One socket, in a set of its own.
pub(crate) struct Socket {
    set: SocketSet<'static>,
    handle: SocketHandle,
    /// Bytes of each of the two buffers.
    window_bytes: usize,
}

impl Socket {
    /// Makes a closed socket; nothing where memory ran out.
    fn new(window_bytes: usize) -> Option<Socket> {
        let socket = tcp::Socket::new(buffer(window_bytes)?, buffer(send_bytes(window_bytes))?);
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        Some(Socket { set, handle, window_bytes })
    }

    pub(crate) fn set(&mut self) -> &mut SocketSet<'static> {
        &mut self.set
    }

    pub(crate) fn tcp(&mut self) -> &mut tcp::Socket<'static> {
        self.set.get_mut(self.handle)
    }

    pub(crate) fn tcp_ref(&self) -> &tcp::Socket<'static> {
        self.set.get(self.handle)
    }

    pub(crate) fn state(&self) -> State {
        self.tcp_ref().state()
    }

    /// Whether it has said to the other end all there is to say.
    pub(crate) fn has_ended(&self) -> bool {
        // As long as it knows the other end, a reset is to be sent to it.
        self.tcp_ref().remote_endpoint().is_none()
    }

    /// Whether there is something to read.
    pub(crate) fn has_data(&self) -> bool {
        self.tcp_ref().can_recv()
    }

    /// Bytes of both buffers.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.window_bytes + send_bytes(self.window_bytes)
    }
}

/// Bytes of the buffer to send from: as many as long packets carry where there is room for one, or each time the buffer is
/// full a short packet would follow the long one.
fn send_bytes(window_bytes: usize) -> usize {
    match window_bytes / LONGEST_CUT_PAYLOAD {
        0 => window_bytes,
        packets => packets * LONGEST_CUT_PAYLOAD,
    }
}

fn buffer(bytes: usize) -> Option<SocketBuffer<'static>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).ok()?;
    memory.resize(bytes, 0);
    Some(SocketBuffer::new(memory))
}

/// Sizes of buffers there are: a window, and what is half and a quarter of it.
const SIZES: usize = 3;
/// Sockets kept of each size.
const MOST_KEPT: usize = 64;

/// Sockets that are not used now.
#[derive(Default)]
pub(crate) struct Spare {
    kept: [Vec<Socket>; SIZES],
}

impl Spare {
    /// A closed socket, for which so many bytes are left; nothing where they are too few.
    pub(crate) fn take(&mut self, left: usize, limits: &Limits) -> Option<Socket> {
        let all = limits.buffer_bytes.max(1);
        let size = match () {
            () if left > all / 4 * 3 => 0,
            () if left > all / 2 => 1,
            () => 2,
        };
        let window_bytes = limits.window_bytes >> size;
        if 2 * window_bytes > left {
            return None;
        }
        if let Some(mut socket) = self.kept[size].pop() {
            let tcp = socket.tcp();
            tcp.set_keep_alive(None);
            tcp.set_nagle_enabled(true);
            return Some(socket);
        }
        Socket::new(window_bytes)
    }

    /// Keeps a socket for the next connection.
    pub(crate) fn keep(&mut self, mut socket: Socket) {
        let tcp = socket.tcp();
        tcp.abort();
        let largest = self.kept.iter().flatten().map(|kept| kept.window_bytes).max().unwrap_or(0);
        let largest = largest.max(socket.window_bytes);
        let size = (largest / socket.window_bytes.max(1)).trailing_zeros() as usize;
        if let Some(kept) = self.kept.get_mut(size)
            && kept.len() < MOST_KEPT
        {
            kept.push(socket);
        }
    }
}
