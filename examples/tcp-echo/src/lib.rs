//! A server over TCP, as small as one can be: it sends back what it is sent, to many clients at once, and finishes when
//! its client has (RFC 862).
//!
//! Each connection is a task. What was read is sent from the block that it came in, so nothing is copied here; and
//! nothing is read before that is sent, so a client that does not read can make the server keep one block at most.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use client::namespace::Namespace;
use contracts::tcp_connection::{self, ImpReadyAfterRead, ImpReadyAfterWrite};
use contracts::{FOR_EVER, SocketAddress, tcp_listener};
use sip::{Deadline, executor};
use stdio::report;

sip::startup!();

/// Connections that wait to be taken.
const BACKLOG: u32 = 128;
/// Bytes that are read at once at most.
const MOST: u32 = 64 << 10;
/// When a listener without room is asked again.
const AGAIN_AFTER_MS: u64 = 10;

/// Serves until the network stack ends.
pub fn main(startup: Startup) -> i32 {
    let Ok(port) = u16::try_from(startup.port) else {
        report::error(format_args!("{}: there is no such port; give one from 0 to 65535", startup.port));
        return 2;
    };
    let mut namespace = Namespace::new(startup.namespace);
    let here = SocketAddress { port, ..SocketAddress::ANY };
    let listener = match network::listen(&mut namespace, here, BACKLOG) {
        Ok(listener) => listener,
        Err(error) => return report::path_error(network::TCP, &error),
    };
    if let Some(endpoint) = listener.into_endpoint() {
        // It ends with the stack; a supervisor starts this program again then.
        let _ = executor::block_on(accept(endpoint));
    }
    1
}

async fn accept(mut listener: tcp_listener::Imp<tcp_listener::states::Ready>) {
    loop {
        listener = match listener.accept().receive_async().await {
            tcp_listener::ImpReadyAfterAccept::Accepted { connection, next, .. } => {
                drop(executor::spawn(echo(connection)));
                next
            }
            tcp_listener::ImpReadyAfterAccept::Failed { next, .. } => {
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
                next
            }
            tcp_listener::ImpReadyAfterAccept::ChannelClosed(_) => return,
        };
    }
}

/// Sends back what comes, until the client finishes or goes.
async fn echo(mut connection: tcp_connection::Imp<tcp_connection::states::Ready>) {
    loop {
        let (data, count, next) = match connection.read(MOST, FOR_EVER).receive_async().await {
            ImpReadyAfterRead::Data { data, count, next } => (data, count, next),
            ImpReadyAfterRead::NoData { next } => {
                connection = next;
                continue;
            }
            ImpReadyAfterRead::EndOfData { next } => {
                // Closing the channel then ends the connection in order.
                drop(next.finish().receive_async().await);
                return;
            }
            ImpReadyAfterRead::Failed { .. } | ImpReadyAfterRead::ChannelClosed(_) => return,
        };
        connection = match next.write(data, 0, count, 0).receive_async().await {
            ImpReadyAfterWrite::Written { next, .. } => next,
            ImpReadyAfterWrite::WriteFailed { .. } | ImpReadyAfterWrite::ChannelClosed(_) => return,
        };
    }
}
