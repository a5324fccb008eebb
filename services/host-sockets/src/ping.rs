//! ICMP (RFC 792) and ICMPv6 (RFC 4443) echo requests over the host's unprivileged ping sockets.

use alloc::rc::Rc;

use contracts::SocketAddress;
use contracts::ip_configuration::IpError;
use sip::channel::TypedEndpoint;
use sip::device::sockets::Failure;
use sip::exheap::ExVec;
use sip::time::monotonic;

use crate::failures::ip_error;
use crate::host::{Host, Socket};
use crate::udp::Datagrams;
use provider::waiting::{self, Waited};

const HEADER_BYTES: usize = 8;
/// Maximum payload after the header, in bytes.
const MAX_BYTES: u32 = 65_535 - 40 - 8;
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// An echo reply.
pub struct Pong {
    /// Address of the responder.
    pub address: [u8; 16],
    /// Round-trip time, in nanoseconds.
    pub round_trip_ns: u64,
    /// Payload bytes returned after the header.
    pub bytes: u32,
    /// TTL or hop limit of the reply.
    pub hop_limit: u16,
}

/// Sends an echo request and waits for the reply; `None` if the client is gone.
pub async fn ping<E: TypedEndpoint>(
    host: &Rc<Host>,
    address: [u8; 16],
    bytes: u32,
    sequence: u16,
    timeout_ms: u32,
    client: &E,
) -> Option<Result<Pong, IpError>> {
    if bytes > MAX_BYTES {
        return Some(Err(IpError::BadAddress));
    }
    let is_version_4 = address[..12] == MAPPED;
    let socket = match host.open_echo(if is_version_4 { 4 } else { 6 }) {
        Ok(socket) => Datagrams::new(socket),
        Err(failure) => return Some(Err(ip_error(failure))),
    };
    let sent_ns = match send(socket.socket(), address, is_version_4, bytes, sequence) {
        Ok(sent_ns) => sent_ns,
        Err(failure) => return Some(Err(ip_error(failure))),
    };
    let deadline = waiting::until(timeout_ms);
    loop {
        match socket.receive() {
            Ok((answer, sender)) if is_answer(&answer, is_version_4, sequence) => {
                let round_trip_ns = monotonic().saturating_sub(sent_ns);
                let bytes = (answer.len() - HEADER_BYTES) as u32;
                // There is no port: the device reports the hop limit in its place.
                return Some(Ok(Pong { address: sender.address, round_trip_ns, bytes, hop_limit: sender.port }));
            }
            Ok(_) => continue,
            Err(Failure::WouldBlock) => {}
            Err(failure) => return Some(Err(ip_error(failure))),
        }
        match waiting::wait(client, deadline, socket.socket().readable()).await {
            Waited::Done => {}
            Waited::TimedOut => return Some(Err(IpError::TimedOut)),
            Waited::Gone => return None,
        }
    }
}

/// Sends an echo request and returns its send time. The host fills in the identifier and the checksum.
fn send(socket: &Socket, address: [u8; 16], is_version_4: bool, bytes: u32, sequence: u16) -> Result<u64, Failure> {
    let mut request = ExVec::<u8>::new(HEADER_BYTES + bytes as usize).map_err(|_| Failure::Exhausted)?;
    request[0] = if is_version_4 { 8 } else { 128 };
    request[6..8].copy_from_slice(&sequence.to_be_bytes());
    for (index, byte) in request[HEADER_BYTES..].iter_mut().enumerate() {
        *byte = index as u8;
    }
    socket.set_remote(&SocketAddress { address, port: 0, reserved: 0, scope: 0 })?;
    let sent_ns = monotonic();
    let length = request.len();
    socket.write_own(request, 0..length).map(|_| sent_ns)
}

fn is_answer(answer: &[u8], is_version_4: bool, sequence: u16) -> bool {
    let kind = if is_version_4 { 0 } else { 129 };
    answer.len() >= HEADER_BYTES && answer[0] == kind && answer[6..8] == sequence.to_be_bytes()
}
