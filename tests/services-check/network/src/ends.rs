//! Both ends of connections over the loopback, and single requests to one end.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use client::namespace::Namespace;
use contracts::tcp::{self, TcpError};
use contracts::{SocketAddress, tcp_connection, tcp_listener};
use sip::exheap::ExVec;
use sip::{Deadline, thread};

use crate::{Outcome, answer};

/// Timeout for anything that must not hang.
pub(crate) const TIMEOUT_MS: u64 = 10_000;
/// Delay until a message's receiver has processed it.
pub(crate) const TAKEN_MS: u64 = 3;
/// Maximum bytes per read.
const MOST: u32 = 1 << 20;
/// Timeout of a write: when it expires, all buffers between both ends are full.
const FULL_MS: u32 = 15;

pub(crate) type Stack = tcp::Imp<tcp::states::Ready>;
pub(crate) type Listener = tcp_listener::Imp<tcp_listener::states::Ready>;
pub(crate) type End = tcp_connection::Imp<tcp_connection::states::Ready>;

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Bytes.
    Data(Vec<u8>),
    /// None before the timeout.
    Nothing,
    /// End of stream.
    End,
    /// It failed.
    Failed(TcpError),
}

/// A block with these bytes.
pub(crate) fn block(bytes: &[u8]) -> Result<ExVec<u8>, String> {
    ExVec::from_slice(bytes).map_err(|status| format!("no block: {}", status.text()))
}

/// A byte pattern without repetitions.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 4).wrapping_mul(0x9E37_79B1).to_le_bytes()[at % 4]).collect()
}

/// Lets the stack process pending requests.
pub(crate) fn let_it_be_taken() {
    thread::sleep(Deadline::after_ms(TAKEN_MS));
}

/// A loopback address; port 0 picks a free one.
pub(crate) fn loopback(port: u16) -> SocketAddress {
    SocketAddress::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

pub(crate) fn ended() -> String {
    String::from("the network stack ended")
}

/// The stack.
pub(crate) fn stack(namespace: &mut Namespace) -> Result<Stack, String> {
    network::open_tcp(namespace).map_err(|error| format!("{}: {error}", network::TCP))
}

/// Uses each part of the stack once: what it then caches is no leak.
pub(crate) fn settle(namespace: &mut Namespace) -> Outcome {
    let (left, right) = pair(namespace)?;
    let (_, left) = write(left, b"x", 0)?;
    // The write may have failed.
    let (_, right) = read(right, FULL_MS)?;
    drop((left, right));
    Ok(())
}

/// Accepts connections.
pub(crate) fn listen(
    namespace: &mut Namespace,
    local: SocketAddress,
    backlog: u32,
) -> Result<Result<(Listener, SocketAddress), TcpError>, String> {
    match answer!(stack(namespace)?.listen(local, backlog)) {
        tcp::ImpReadyAfterListen::Listening { listener, local, .. } => Ok(Ok((listener, local))),
        tcp::ImpReadyAfterListen::Failed { error, .. } => Ok(Err(error)),
        tcp::ImpReadyAfterListen::ChannelClosed(_) => Err(ended()),
    }
}

/// Connects within this many milliseconds.
pub(crate) fn connect(
    namespace: &mut Namespace,
    remote: SocketAddress,
    timeout_ms: u32,
) -> Result<Result<(End, SocketAddress), TcpError>, String> {
    match answer!(stack(namespace)?.connect(remote, timeout_ms)) {
        tcp::ImpReadyAfterConnect::Connected { connection, local, .. } => Ok(Ok((connection, local))),
        tcp::ImpReadyAfterConnect::Failed { error, .. } => Ok(Err(error)),
        tcp::ImpReadyAfterConnect::ChannelClosed(_) => Err(ended()),
    }
}

/// Accepts one connection; returns it and its peer.
pub(crate) fn accept(listener: Listener) -> Result<(End, SocketAddress, Listener), String> {
    match answer!(listener.accept()) {
        tcp_listener::ImpReadyAfterAccept::Accepted { connection, remote, next, .. } => Ok((connection, remote, next)),
        tcp_listener::ImpReadyAfterAccept::Failed { error, .. } => Err(format!("not accepted: {error:?}")),
        tcp_listener::ImpReadyAfterAccept::ChannelClosed(_) => Err(ended()),
    }
}

/// Both ends of a connection: connecting and accepting.
pub(crate) fn pair(namespace: &mut Namespace) -> Result<(End, End), String> {
    let failed = |error: TcpError| format!("no connection over the loopback: {error:?}");
    let (listener, local) = listen(namespace, loopback(0), 4)?.map_err(failed)?;
    let (left, _) = connect(namespace, local, 0)?.map_err(failed)?;
    let (right, ..) = accept(listener)?;
    Ok((left, right))
}

/// Reads once.
pub(crate) fn read(end: End, timeout_ms: u32) -> Result<(Reading, End), String> {
    reading(answer!(end.read(MOST, timeout_ms)))
}

/// Result of a read.
pub(crate) fn reading(event: tcp_connection::ImpReadyAfterRead) -> Result<(Reading, End), String> {
    match event {
        tcp_connection::ImpReadyAfterRead::Data { data, count, next } => {
            let count = count as usize;
            if count == 0 || count > data.len() {
                return Err(format!("{count} bytes in a block of {}", data.len()));
            }
            Ok((Reading::Data(data[..count].to_vec()), next))
        }
        tcp_connection::ImpReadyAfterRead::NoData { next } => Ok((Reading::Nothing, next)),
        tcp_connection::ImpReadyAfterRead::EndOfData { next } => Ok((Reading::End, next)),
        tcp_connection::ImpReadyAfterRead::Failed { error, next } => Ok((Reading::Failed(error), next)),
        tcp_connection::ImpReadyAfterRead::ChannelClosed(_) => Err(ended()),
    }
}

/// Reads this many bytes, or up to the end.
pub(crate) fn read_all(mut end: End, bytes: usize) -> Result<(Vec<u8>, End), String> {
    let mut all = Vec::new();
    while all.len() < bytes {
        let (reading, next) = read(end, TIMEOUT_MS as u32 / 2)?;
        end = next;
        match reading {
            Reading::Data(data) => all.extend_from_slice(&data),
            Reading::End => break,
            other => return Err(format!("{other:?} after {} of {bytes} bytes", all.len())),
        }
    }
    Ok((all, end))
}

/// Result of a write: the error, and the number of bytes in transit.
pub(crate) type Written = Result<(), (TcpError, u32)>;

/// Writes bytes.
pub(crate) fn write(end: End, bytes: &[u8], timeout_ms: u32) -> Result<(Written, End), String> {
    match answer!(end.write(block(bytes)?, 0, bytes.len() as u32, timeout_ms)) {
        tcp_connection::ImpReadyAfterWrite::Written { data, next } if data.len() == bytes.len() => Ok((Ok(()), next)),
        tcp_connection::ImpReadyAfterWrite::Written { data, .. } => {
            Err(format!("a block of {} bytes came back, not of {}", data.len(), bytes.len()))
        }
        tcp_connection::ImpReadyAfterWrite::WriteFailed { error, written, next, .. } => {
            Ok((Err((error, written)), next))
        }
        tcp_connection::ImpReadyAfterWrite::ChannelClosed(_) => Err(ended()),
    }
}

/// Writes until the buffers are full because the other end does not read; returns the number of bytes.
pub(crate) fn fill(mut end: End) -> Result<(usize, End), String> {
    let piece = pattern(64 << 10);
    let (mut bytes, mut in_vain) = (0, 0);
    // A host may find a little more room on a retry.
    while in_vain < 2 {
        let (written, next) = write(end, &piece, FULL_MS)?;
        end = next;
        let count = match written {
            Ok(()) => piece.len(),
            Err((TcpError::TimedOut, count)) => count as usize,
            Err((error, _)) => return Err(format!("writing to who does not read: {error:?}")),
        };
        bytes += count;
        in_vain = if count == 0 { in_vain + 1 } else { 0 };
    }
    Ok((bytes, end))
}

/// Closes for writing.
pub(crate) fn finish(end: End) -> Result<(Result<(), TcpError>, End), String> {
    match answer!(end.finish()) {
        tcp_connection::ImpReadyAfterFinish::Done { next } => Ok((Ok(()), next)),
        tcp_connection::ImpReadyAfterFinish::Failed { error, next } => Ok((Err(error), next)),
        tcp_connection::ImpReadyAfterFinish::ChannelClosed(_) => Err(ended()),
    }
}

/// Aborts a connection.
pub(crate) fn abort(end: End) -> Result<End, String> {
    match answer!(end.abort()) {
        tcp_connection::ImpReadyAfterAbort::Done { next } => Ok(next),
        tcp_connection::ImpReadyAfterAbort::ChannelClosed(_) => Err(ended()),
    }
}
