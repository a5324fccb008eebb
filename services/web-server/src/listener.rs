//! Accepts connections.

use alloc::rc::Rc;

use contracts::{SocketAddress, tcp, tcp_listener};
use sip::{Deadline, executor};
use stdio::report;

use crate::Server;
use crate::address::AddressText;
use crate::connection;

/// Length of the accept queue.
const BACKLOG: u32 = 1024;
const FIRST_PAUSE_MS: u64 = 2;
const MAX_PAUSE_MS: u64 = 100;
/// Retries without backoff, enough for a restart of the network stack.
const QUICK_TRIES: u32 = 50;

type Listener = tcp_listener::Imp<tcp_listener::states::Ready>;

/// Accepts connections until shutdown begins. When the network stack ends, listens again on its successor. Calls `ready` when the first listen succeeds.
pub(crate) async fn run(server: Rc<Server>, address: SocketAddress, ready: impl FnOnce()) {
    let mut pause_ms = FIRST_PAUSE_MS;
    let mut tries = 0;
    let mut reported = None;
    let mut ready = Some(ready);
    while !server.ending.has_begun() {
        match listen(&server, address).await {
            // Keep the stack's channel open: closing it may close the listener.
            Ok((_stack, listener, local)) => {
                // Report only a port that the user did not choose: output may disturb a prompt.
                if address.port == 0 || reported.is_some() {
                    report::error(format_args!("serving {} at port {}", server.root_path, local.port));
                }
                (pause_ms, tries, reported) = (FIRST_PAUSE_MS, 0, None);
                ready.take().into_iter().for_each(|ready| ready());
                accept(&server, listener).await;
            }
            Err(reason) => {
                if reported != Some(reason) {
                    report::error(format_args!("cannot accept connections: {reason}"));
                    reported = Some(reason);
                }
            }
        }
        executor::sleep_until(Deadline::after_ms(pause_ms)).await;
        tries += 1;
        if tries > QUICK_TRIES {
            pause_ms = (pause_ms * 2).min(MAX_PAUSE_MS);
        }
    }
}

async fn listen(
    server: &Server,
    address: SocketAddress,
) -> Result<(tcp::Imp<tcp::states::Ready>, Listener, SocketAddress), &'static str> {
    let (importer, exporter) = tcp::new_channel().map_err(|status| status.text())?;
    let bound = server.store.bind_in_namespace(&server.tcp_path, exporter).await;
    bound.map_err(|_| "there is no network stack")?;
    let stack = match importer.receive_async().await {
        tcp::ImpStart::Success { next } => next,
        tcp::ImpStart::Refused { error, .. } => return Err(words(error)),
        tcp::ImpStart::ChannelClosed(_) => return Err("the network stack has ended"),
    };
    match stack.listen(address, BACKLOG).receive_async().await {
        tcp::ImpReadyAfterListen::Listening { listener, local, next } => Ok((next, listener, local)),
        tcp::ImpReadyAfterListen::Failed { error, .. } => Err(words(error)),
        tcp::ImpReadyAfterListen::ChannelClosed(_) => Err("the network stack has ended"),
    }
}

/// Accepts connections until the listener ends or shutdown begins.
async fn accept(server: &Rc<Server>, mut listener: Listener) {
    loop {
        server.has_room().await;
        listener = match listener.accept().receive_async().await {
            // Dropping both refuses this connection and closes the port.
            tcp_listener::ImpReadyAfterAccept::Accepted { .. } if server.ending.has_begun() => return,
            tcp_listener::ImpReadyAfterAccept::Accepted { connection, remote, next, .. } => {
                let server = server.clone();
                let guard = server.clone().enter();
                executor::spawn(async move {
                    connection::serve(server, connection, AddressText::of(&remote)).await;
                    drop(guard);
                });
                next
            }
            tcp_listener::ImpReadyAfterAccept::Failed { next, .. } => {
                executor::sleep_until(Deadline::after_ms(FIRST_PAUSE_MS)).await;
                next
            }
            tcp_listener::ImpReadyAfterAccept::ChannelClosed(_) => return,
        };
    }
}

fn words(error: tcp::TcpError) -> &'static str {
    match error {
        tcp::TcpError::NotPermitted => "this program may not listen on that port",
        tcp::TcpError::BadAddress => "the address is not one of this machine",
        tcp::TcpError::AddressInUse => "the address is in use",
        tcp::TcpError::Exhausted => "the network stack is out of memory",
        _ => "the network stack failed",
    }
}
