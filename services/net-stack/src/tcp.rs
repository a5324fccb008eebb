//! Serving clients of `Tcp` and their listeners.

use alloc::rc::Rc;
use core::future::poll_fn;

use contracts::tcp::{self, TcpError};
use contracts::{tcp_connection, tcp_listener};
use net_stack::{ConnectionId, End, Failure, ListenerId};
use network_guard::Action;
use sip::executor;

use crate::connection;
use crate::convert;
use crate::shared::Shared;
use provider::waiting::{Waited, until_or_never, wait};

type Ready = tcp::Exp<tcp::states::Ready>;

/// Serves one client.
pub async fn serve(shared: Rc<Shared>, client: tcp::Exp<tcp::states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            tcp::ExpReady::Listen { local, next, .. } if !shared.guard.allows(&next, Action::Listen, &local) => {
                next.failed(TcpError::NotPermitted)
            }
            tcp::ExpReady::Listen { local, backlog, next } => {
                let (address, port) = convert::from_contract(&local);
                match listen(&shared, address, port, backlog) {
                    Ok((listener, port)) => {
                        let local = contracts::SocketAddress { port, ..local };
                        next.listening(listener, local)
                    }
                    Err(error) => next.failed(error),
                }
            }
            tcp::ExpReady::Connect { remote, timeout_ms, next } => {
                match connect(&shared, remote, timeout_ms, next).await {
                    Some(client) => client,
                    None => return,
                }
            }
            tcp::ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn listen(
    shared: &Rc<Shared>,
    address: Option<net_stack::IpAddress>,
    port: u16,
    backlog: u32,
) -> Result<(tcp_listener::Imp<tcp_listener::states::Ready>, u16), TcpError> {
    let (importer, exporter) = tcp_listener::new_channel().map_err(|_| TcpError::Exhausted)?;
    let listened = shared.stack().listen(address, port, backlog as usize);
    let (id, port) = listened.map_err(convert::error)?;
    drop(executor::spawn(take_connections(Rc::clone(shared), id, exporter)));
    Ok((importer, port))
}

/// Connects; `None` if the client is gone.
async fn connect(
    shared: &Rc<Shared>,
    remote: contracts::SocketAddress,
    timeout_ms: u32,
    client: tcp::Exp<tcp::states::ReadyAfterConnect>,
) -> Option<Ready> {
    if !shared.guard.allows(&client, Action::Connect, &remote) {
        return Some(client.failed(TcpError::NotPermitted));
    }
    let (Some(address), port) = convert::from_contract(&remote) else {
        return Some(client.failed(TcpError::BadAddress));
    };
    let begun = shared.stack().connect(End::new(address, port));
    let id = match begun {
        Ok(id) => id,
        Err(failure) => return Some(client.failed(convert::error(failure))),
    };
    let mut result = Err(Failure::TimedOut);
    let waited = wait(&client, until_or_never(timeout_ms), async {
        result = poll_fn(|context| shared.stack().poll_connected(id, context.waker())).await;
    });
    let waited = waited.await;
    let connected = match (waited, result) {
        (Waited::Done, Ok(())) => open(shared, id),
        (Waited::Done, Err(failure)) => Err(convert::error(failure)),
        (Waited::TimedOut, _) => Err(TcpError::TimedOut),
        (Waited::Gone, _) => {
            shared.stack().release(id);
            return None;
        }
    };
    Some(match connected {
        Ok((connection, local, _)) => client.connected(connection, local),
        Err(error) => {
            shared.stack().release(id);
            client.failed(error)
        }
    })
}

type Opened = (tcp_connection::Imp<tcp_connection::states::Ready>, contracts::SocketAddress, contracts::SocketAddress);

/// Starts serving a connection; on failure the caller keeps it.
fn open(shared: &Rc<Shared>, id: ConnectionId) -> Result<Opened, TcpError> {
    let (local, remote) = shared.stack().ends(id).ok_or(TcpError::Closed)?;
    let (importer, exporter) = tcp_connection::new_channel().map_err(|_| TcpError::Exhausted)?;
    drop(executor::spawn(connection::serve(Rc::clone(shared), id, exporter)));
    Ok((importer, convert::to_contract(local), convert::to_contract(remote)))
}

/// Accepts connections until the listener's channel closes.
async fn take_connections(shared: Rc<Shared>, id: ListenerId, client: tcp_listener::Exp<tcp_listener::states::Ready>) {
    let mut client = client;
    while let tcp_listener::ExpReady::Accept { next } = client.receive_async().await {
        let mut accepted = Err(Failure::Closed);
        let waited = wait(&next, sip::Deadline::NEVER, async {
            accepted = poll_fn(|context| shared.stack().poll_accept(id, context.waker())).await;
        });
        if waited.await != Waited::Done {
            if let Ok(connection) = accepted {
                shared.stack().release(connection);
            }
            break;
        }
        client = match accepted
            .map_err(convert::error)
            .and_then(|connection| open(&shared, connection).inspect_err(|_| shared.stack().release(connection)))
        {
            Ok((connection, local, remote)) => next.accepted(connection, local, remote),
            Err(error) => next.failed(error),
        };
    }
    shared.stack().close_listener(id);
}
