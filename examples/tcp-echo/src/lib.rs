//! A minimal TCP server: echoes data to many clients concurrently, and closes after the client's FIN (RFC 862).
//!
//! Each connection is a task. Data is sent from the block that it was received in, without a copy; and nothing is read
//! until that is sent, so a client that does not read makes the server hold at most one block.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use client::namespace::Namespace;
use contracts::tcp_connection::{self, ImpReadyAfterRead, ImpReadyAfterWrite};
use contracts::{FOR_EVER, SocketAddress, tcp_listener};
use sip::{Deadline, executor};
use stdio::report;

sip::startup!();

/// Maximum connections waiting to be accepted.
const BACKLOG: u32 = 128;
/// Maximum bytes per read.
const MOST: u32 = 64 << 10;
/// Retry interval of a listener that is out of resources, in milliseconds.
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
        // Ends with the stack; a supervisor then restarts this program.
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

/// Echoes received data until the client finishes or disconnects.
async fn echo(mut connection: tcp_connection::Imp<tcp_connection::states::Ready>) {
    loop {
        let (data, count, next) = match connection.read(MOST, FOR_EVER).receive_async().await {
            ImpReadyAfterRead::Data { data, count, next } => (data, count, next),
            ImpReadyAfterRead::NoData { next } => {
                connection = next;
                continue;
            }
            ImpReadyAfterRead::EndOfData { next } => {
                // Closing the channel then closes the connection gracefully.
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
