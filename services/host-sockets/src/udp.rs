//! The `Udp` and `UdpSocket` contracts.

use alloc::rc::Rc;
use core::cell::RefCell;

use contracts::SocketAddress;
use contracts::tcp::TcpError;
use contracts::udp::{self, ExpReady};
use contracts::udp_socket::{self, ExpReady as OfSocket};
use network_guard::Action;
use sip::device::sockets::{Failure, SENDER_BYTES};
use sip::executor;
use sip::exheap::{ExVec, Lent};

use crate::failures::tcp_error;
use crate::host::{self, Host, Socket};
use crate::ip::Known;
use provider::waiting::{self, Waited};

/// Maximum length of a datagram.
const MAX_DATAGRAM_BYTES: usize = 65_535;
/// Timeout for a send to find buffer space, in milliseconds; the datagram is then not sent.
const TIMEOUT_MS: u32 = 1_000;

/// Serves one `Udp` client.
pub async fn serve(host: Rc<Host>, known: Rc<Known>, client: udp::Exp<udp::states::Start>) {
    let mut client = client.success();
    while let ExpReady::Bind { local, next } = client.receive_async().await {
        client = match host.guard.allows(&next, Action::Listen, &local) {
            false => next.failed(TcpError::NotPermitted),
            true => match bind(&host, &known, &local) {
                Ok((socket, local)) => next.bound(socket, local),
                Err(failure) => next.failed(tcp_error(failure)),
            },
        };
    }
}

type BoundSocket = udp_socket::Imp<udp_socket::states::Ready>;

fn bind(host: &Rc<Host>, known: &Rc<Known>, local: &SocketAddress) -> Result<(BoundSocket, SocketAddress), Failure> {
    let (importer, exporter) = udp_socket::new_channel().map_err(|_| Failure::Exhausted)?;
    let (socket, local) = host.bind(local)?;
    let (host, known) = (Rc::clone(host), Rc::clone(known));
    drop(executor::spawn(async move {
        let datagrams = Rc::new(Datagrams::new(socket));
        let number = known.add_datagrams(&datagrams, local);
        serve_socket(&host, &datagrams, exporter).await;
        drop(datagrams);
        known.remove(number);
    }));
    Ok((importer, local))
}

/// A datagram socket.
pub struct Datagrams {
    socket: Socket,
    /// Receive buffer for a datagram whose length is not yet known.
    room: RefCell<Option<ExVec<u8>>>,
}

impl Datagrams {
    /// Takes ownership of a socket.
    pub fn new(socket: Socket) -> Datagrams {
        Datagrams { socket, room: RefCell::new(None) }
    }

    /// Returns the socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Receives a queued datagram into a block of exactly its length.
    pub fn receive(&self) -> Result<(ExVec<u8>, SocketAddress), Failure> {
        let room = self.room.take();
        let room = match room {
            Some(room) => room,
            None => ExVec::new(MAX_DATAGRAM_BYTES + SENDER_BYTES).map_err(|_| Failure::Exhausted)?,
        };
        let (room, answer) = self.socket.read_datagram(room);
        let Some(room) = room else { return Err(Failure::Other) };
        let received = answer.and_then(|count| {
            let sender = host::name_at(&room, room.len() - SENDER_BYTES);
            // Dropped if there is no memory for it, as UDP allows.
            let datagram = ExVec::from_slice(room.get(..count).unwrap_or(&[])).map_err(|_| Failure::Exhausted)?;
            Ok((datagram, sender))
        });
        *self.room.borrow_mut() = Some(room);
        received
    }
}

async fn serve_socket(host: &Host, datagrams: &Datagrams, mut client: udp_socket::Exp<udp_socket::states::Ready>) {
    loop {
        client = match client.receive_async().await {
            OfSocket::Send { data, remote, next, .. } if !host.guard.allows(&next, Action::Datagram, &remote) => {
                next.send_failed(data, TcpError::NotPermitted)
            }
            OfSocket::Send { data, count, remote, next } => {
                let Some((data, sent)) = send(&datagrams.socket, data, count, &remote, &next).await else { return };
                match sent {
                    Ok(()) => next.sent(data),
                    Err(failure) => next.send_failed(data, tcp_error(failure)),
                }
            }
            OfSocket::Receive { timeout_ms, next } => {
                let deadline = waiting::until(timeout_ms);
                let received = loop {
                    match datagrams.receive() {
                        Err(Failure::WouldBlock) if timeout_ms == 0 => break None,
                        Err(Failure::WouldBlock) => {}
                        // An ICMP error for an earlier datagram is reported on the socket; later datagrams may still
                        // arrive.
                        Err(Failure::ConnectionRefused | Failure::Unreachable) => continue,
                        other => break Some(other),
                    }
                    match waiting::wait(&next, deadline, datagrams.socket.readable()).await {
                        Waited::Done => {}
                        Waited::TimedOut => break None,
                        Waited::Gone => return,
                    }
                };
                match received {
                    Some(Ok((data, remote))) => {
                        let count = data.len() as u32;
                        next.datagram(data, count, remote)
                    }
                    Some(Err(failure)) => next.failed(tcp_error(failure)),
                    None => next.no_datagram(),
                }
            }
            OfSocket::ChannelClosed(_) => return,
        };
    }
}

/// Sends a datagram and returns the block and the result; `None` if the client is gone.
async fn send<E: sip::channel::TypedEndpoint>(
    socket: &Socket,
    data: Lent<ExVec<u8>>,
    count: u32,
    remote: &SocketAddress,
    client: &E,
) -> Option<(Lent<ExVec<u8>>, Result<(), Failure>)> {
    if count as usize > data.len() {
        return Some((data, Err(Failure::BadAddress)));
    }
    if let Err(failure) = socket.set_remote(remote) {
        return Some((data, Err(failure)));
    }
    let deadline = waiting::until(TIMEOUT_MS);
    let mut data = data;
    loop {
        let (block, answer) = socket.write(data, 0..count as usize, 0);
        data = block?;
        match answer {
            Ok(_) => return Some((data, Ok(()))),
            Err(Failure::WouldBlock) => match waiting::wait(client, deadline, socket.writable()).await {
                Waited::Done => {}
                Waited::TimedOut => return Some((data, Err(Failure::Exhausted))),
                Waited::Gone => return None,
            },
            Err(failure) => return Some((data, Err(failure))),
        }
    }
}
