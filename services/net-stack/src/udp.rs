//! Serving clients of `Udp` and their sockets.

use alloc::rc::Rc;
use core::future::poll_fn;

use contracts::tcp::TcpError;
use contracts::udp::{self, ExpReady};
use contracts::udp_socket::{self, ExpReady as OfSocket};
use net_stack::{End, Failure, UdpId};
use network_guard::Action;
use sip::executor;
use sip::exheap::ExVec;

use crate::convert;
use crate::shared::Shared;
use provider::waiting::{Waited, until, wait};

/// Serves one client.
pub async fn serve(shared: Rc<Shared>, client: udp::Exp<udp::states::Start>) {
    let mut client = client.success();
    while let ExpReady::Bind { local, next } = client.receive_async().await {
        let (address, port) = convert::from_contract(&local);
        client = match shared.guard.allows(&next, Action::Listen, &local) {
            false => next.failed(TcpError::NotPermitted),
            true => match bind(&shared, address, port) {
                Ok((socket, port)) => next.bound(socket, contracts::SocketAddress { port, ..local }),
                Err(error) => next.failed(error),
            },
        };
    }
}

fn bind(
    shared: &Rc<Shared>,
    address: Option<net_stack::IpAddress>,
    port: u16,
) -> Result<(udp_socket::Imp<udp_socket::states::Ready>, u16), TcpError> {
    let (importer, exporter) = udp_socket::new_channel().map_err(|_| TcpError::Exhausted)?;
    let bound = shared.stack().udp_bind(address, port);
    let (id, port) = bound.map_err(convert::error)?;
    let shared = Rc::clone(shared);
    drop(executor::spawn(async move {
        serve_socket(&shared, id, exporter).await;
        shared.stack().udp_close(id);
    }));
    Ok((importer, port))
}

/// Serves a socket until its client closes.
async fn serve_socket(shared: &Shared, id: UdpId, mut client: udp_socket::Exp<udp_socket::states::Ready>) {
    loop {
        client = match client.receive_async().await {
            OfSocket::Send { data, remote, next, .. } if !shared.guard.allows(&next, Action::Datagram, &remote) => {
                next.send_failed(data, TcpError::NotPermitted)
            }
            OfSocket::Send { data, count, remote, next } => {
                let sent = match (convert::from_contract(&remote), data.get(..count as usize)) {
                    ((Some(address), port), Some(bytes)) => shared.stack().udp_send(id, End::new(address, port), bytes),
                    _ => Err(Failure::BadAddress),
                };
                match sent {
                    Ok(()) => next.sent(data),
                    Err(failure) => next.send_failed(data, convert::error(failure)),
                }
            }
            OfSocket::Receive { timeout_ms, next } => {
                let mut received = None;
                let waited = wait(&next, until(timeout_ms), async {
                    received = Some(poll_fn(|context| shared.stack().poll_udp(id, context.waker())).await);
                });
                match (waited.await, received) {
                    (Waited::Gone, _) => return,
                    (_, None) => next.no_datagram(),
                    (_, Some(Err(failure))) => next.failed(convert::error(failure)),
                    (_, Some(Ok(datagram))) => match ExVec::from_slice(&datagram.data) {
                        // No datagram is longer than 64 KiB.
                        Ok(block) => {
                            next.datagram(block, datagram.data.len() as u32, convert::to_contract(datagram.remote))
                        }
                        // Dropped for want of memory, as UDP allows.
                        Err(_) => next.failed(TcpError::Exhausted),
                    },
                }
            }
            OfSocket::ChannelClosed(_) => return,
        };
    }
}
