//! The `Tcp` and `TcpListener` contracts.

use alloc::collections::VecDeque;
use alloc::rc::Rc;

use contracts::tcp::{self, ExpReady, TcpError};
use contracts::tcp_listener::{self, ExpReady as OfListener};
use contracts::{SocketAddress, tcp_connection};
use network_guard::Action;
use sip::channel::TypedEndpoint;
use sip::device::sockets::Failure;
use sip::{Deadline, executor};

use crate::connection::{self, Ends};
use crate::failures::tcp_error;
use crate::host::{Accepted, Host, MAX_ACCEPTED, Socket};
use crate::ip::Known;
use crate::transfer::Stream;
use provider::waiting::{self, Waited};

/// Retry interval of a listener at the socket limit, in milliseconds: other programs on the host may have closed
/// sockets.
const CROWDED_MS: u64 = 100;

/// Serves one `Tcp` client.
pub async fn serve(host: Rc<Host>, known: Rc<Known>, client: tcp::Exp<tcp::states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::Listen { local, next, .. } if !host.guard.allows(&next, Action::Listen, &local) => {
                next.failed(TcpError::NotPermitted)
            }
            ExpReady::Listen { local, backlog, next } => match listen(&host, &known, &local, backlog) {
                Ok((listener, local)) => next.listening(listener, local),
                Err(error) => next.failed(error),
            },
            ExpReady::Connect { remote, next, .. } if !host.guard.allows(&next, Action::Connect, &remote) => {
                next.failed(TcpError::NotPermitted)
            }
            ExpReady::Connect { remote, timeout_ms, next } => {
                match connect(&host, &known, &remote, timeout_ms, &next).await {
                    Some(Ok((connection, local))) => next.connected(connection, local),
                    Some(Err(error)) => next.failed(error),
                    None => return,
                }
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

type Listener = tcp_listener::Imp<tcp_listener::states::Ready>;
type Connection = tcp_connection::Imp<tcp_connection::states::Ready>;

fn listen(
    host: &Rc<Host>,
    known: &Rc<Known>,
    local: &SocketAddress,
    backlog: u32,
) -> Result<(Listener, SocketAddress), TcpError> {
    let (importer, exporter) = tcp_listener::new_channel().map_err(|_| TcpError::Exhausted)?;
    let (socket, local) = host.listen(local, backlog).map_err(tcp_error)?;
    drop(executor::spawn(serve_listener(Rc::clone(host), Rc::clone(known), socket, local, exporter)));
    Ok((importer, local))
}

/// Connects; `None` if the client is gone.
async fn connect<E: TypedEndpoint>(
    host: &Rc<Host>,
    known: &Rc<Known>,
    remote: &SocketAddress,
    timeout_ms: u32,
    client: &E,
) -> Option<Result<(Connection, SocketAddress), TcpError>> {
    let socket = match host.connect(remote) {
        Ok(socket) => socket,
        Err(failure) => return Some(Err(tcp_error(failure))),
    };
    let deadline = waiting::until_or_never(timeout_ms);
    let local = loop {
        match waiting::wait(client, deadline, socket.writable()).await {
            Waited::Done => {}
            Waited::TimedOut => return Some(Err(TcpError::TimedOut)),
            Waited::Gone => return None,
        }
        match socket.connected() {
            Ok(local) => break local,
            Err(Failure::WouldBlock) => {}
            Err(failure) => return Some(Err(tcp_error(failure))),
        }
    };
    known.count_connected();
    let ends = Ends { local, remote: *remote };
    Some(hand_over(known, socket, ends).map(|connection| (connection, local)))
}

/// Starts serving a connection and returns the client's end of its channel.
fn hand_over(known: &Rc<Known>, socket: Socket, ends: Ends) -> Result<Connection, TcpError> {
    let (importer, exporter) = tcp_connection::new_channel().map_err(|_| TcpError::Exhausted)?;
    let stream = Stream::new(socket);
    let known = Rc::clone(known);
    drop(executor::spawn(async move {
        let number = known.add(&stream, ends);
        connection::serve(Rc::clone(&stream), ends, exporter).await;
        if stream.was_reset() {
            known.count_reset();
        }
        known.remove(number);
    }));
    Ok(importer)
}

/// Serves a listener until its client is gone.
async fn serve_listener(
    host: Rc<Host>,
    known: Rc<Known>,
    socket: Socket,
    local: SocketAddress,
    mut client: tcp_listener::Exp<tcp_listener::states::Ready>,
) {
    let socket = Rc::new(socket);
    let number = known.add_listener(&socket, local);
    let mut waiting = VecDeque::new();
    while let OfListener::Accept { next } = client.receive_async().await {
        client = match accept(&host, &socket, &mut waiting, &next).await {
            Some(Ok(Accepted { socket, local, remote })) => {
                known.count_accepted();
                match hand_over(&known, socket, Ends { local, remote }) {
                    Ok(connection) => next.accepted(connection, local, remote),
                    Err(error) => next.failed(error),
                }
            }
            Some(Err(failure)) => next.failed(tcp_error(failure)),
            None => break,
        };
    }
    known.remove(number);
}

/// Accepts the next connection; `None` if the client is gone.
async fn accept<E: TypedEndpoint>(
    host: &Host,
    socket: &Socket,
    waiting: &mut VecDeque<Accepted>,
    client: &E,
) -> Option<Result<Accepted, Failure>> {
    loop {
        if let Some(accepted) = waiting.pop_front() {
            return Some(Ok(accepted));
        }
        let waited = match socket.accept(MAX_ACCEPTED) {
            Ok(accepted) => {
                waiting.extend(accepted);
                continue;
            }
            Err(Failure::WouldBlock) => waiting::wait(client, Deadline::NEVER, socket.readable()).await,
            // Pending connections stay in the host's backlog until there is room.
            Err(Failure::TooManySockets | Failure::Exhausted) => {
                waiting::wait(client, Deadline::after_ms(CROWDED_MS), host.room()).await
            }
            Err(failure) => return Some(Err(failure)),
        };
        if waited == Waited::Gone {
            return None;
        }
    }
}
