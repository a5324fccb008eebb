//! Serving one connection.

use alloc::rc::Rc;
use core::cell::Cell;

use contracts::tcp::TcpError;
use contracts::tcp_connection::{self, ExpReady, states};
use contracts::tcp_writer;
use net_stack::{ConnectionId, Failure};
use sip::channel::TypedEndpoint;
use sip::executor;

use crate::convert;
use crate::shared::Shared;
use crate::transfer::{self, Read, WriteFailure};

/// A connection and its client.
struct Connection {
    shared: Rc<Shared>,
    id: ConnectionId,
    /// The write half has its own channel, so writes on this one fail.
    has_writer: Cell<bool>,
}

/// Closed with the last of its channels.
impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.stack().release(self.id);
    }
}

/// Serves a connection until its client closes.
pub async fn serve(shared: Rc<Shared>, id: ConnectionId, client: tcp_connection::Exp<states::Ready>) {
    let connection = Rc::new(Connection { shared, id, has_writer: Cell::new(false) });
    let mut client = client;
    while let Some(next) = answer(&connection, client).await {
        client = next;
    }
}

fn failed(failure: Failure) -> TcpError {
    convert::error(failure)
}

/// Answers a client with what was read for it, in any state that awaits that.
macro_rules! answer_read {
    ($client:ident, $read:expr) => {
        match $read {
            Read::Data(data, count) => $client.data(data, count),
            Read::Nothing => $client.no_data(),
            Read::End => $client.end_of_data(),
            Read::Failed(failure) => $client.failed(failed(failure)),
            Read::Gone => return None,
        }
    };
}

/// Handles the client's next request; `None` once the client is gone.
async fn answer(
    connection: &Rc<Connection>,
    client: tcp_connection::Exp<states::Ready>,
) -> Option<tcp_connection::Exp<states::Ready>> {
    let (shared, id) = (&connection.shared, connection.id);
    Some(match client.receive_async().await {
        ExpReady::Read { most, timeout_ms, next } => {
            answer_read!(next, transfer::read(shared, id, &next, most, timeout_ms).await)
        }
        ExpReady::Write { data, from, count, timeout_ms, next } => {
            let mut written = 0;
            let piece = part(&data, from, count);
            match write(connection, &next, &[piece], timeout_ms, &mut written).await {
                Ok(()) => next.written(data),
                Err(WriteFailure::Failed(error)) => next.write_failed(data, error, written),
                Err(WriteFailure::Gone) => return None,
            }
        }
        ExpReady::WriteTwo { head, head_count, data, from, count, timeout_ms, next } => {
            let mut written = 0;
            let pieces = [part(&head, 0, head_count), part(&data, from, count)];
            match write(connection, &next, &pieces, timeout_ms, &mut written).await {
                Ok(()) => next.written_two(head, data),
                Err(WriteFailure::Failed(error)) => next.write_two_failed(head, data, error, written),
                Err(WriteFailure::Gone) => return None,
            }
        }
        ExpReady::SendAndRead { data, count, most, timeout_ms, next } => {
            let piece = part(&data, 0, count);
            let sent = send(connection, &[piece]);
            if sent < piece.len() {
                return Some(next.unsent(data, sent as u32));
            }
            drop(data);
            answer_read!(next, read_after(connection, &next, most, timeout_ms).await)
        }
        ExpReady::SendTwoAndRead { head, head_count, data, count, most, timeout_ms, next } => {
            let pieces = [part(&head, 0, head_count), part(&data, 0, count)];
            let sent = send(connection, &pieces);
            if sent < pieces[0].len() + pieces[1].len() {
                return Some(next.unsent_two(head, data, sent as u32));
            }
            drop((head, data));
            answer_read!(next, read_after(connection, &next, most, timeout_ms).await)
        }
        ExpReady::GetAddresses { next } => {
            // The endpoints remain available after the connection ends, while its client exists.
            let ends = shared.stack().ends(id);
            let (local, remote) = ends?;
            next.addresses(convert::to_contract(local), convert::to_contract(remote))
        }
        ExpReady::Finish { next } => {
            let finished = shared.stack().finish(id);
            match finished {
                Ok(()) => next.done(),
                Err(failure) => next.failed(failed(failure)),
            }
        }
        ExpReady::Abort { next } => {
            shared.stack().abort(id);
            next.done()
        }
        ExpReady::OpenWriter { next } => {
            if connection.has_writer.get() {
                return Some(next.failed(TcpError::NotPermitted));
            }
            match tcp_writer::new_channel() {
                Ok((importer, exporter)) => {
                    connection.has_writer.set(true);
                    drop(executor::spawn(serve_writer(Rc::clone(connection), exporter)));
                    next.writer(importer)
                }
                Err(_) => next.failed(TcpError::Exhausted),
            }
        }
        ExpReady::SetOptions { no_delay, keep_alive_s, next } => {
            let set = shared.stack().set_options(id, no_delay, keep_alive_s);
            match set {
                Ok(()) => next.done(),
                Err(failure) => next.failed(failed(failure)),
            }
        }
        ExpReady::ChannelClosed(_) => return None,
    })
}

/// Returns `count` bytes from an offset, clamped to the data.
fn part(data: &[u8], from: u32, count: u32) -> &[u8] {
    let rest = data.get(from as usize..).unwrap_or(&[]);
    &rest[..rest.len().min(count as usize)]
}

async fn write<E: TypedEndpoint>(
    connection: &Connection,
    client: &E,
    pieces: &[&[u8]],
    timeout_ms: u32,
    written: &mut u32,
) -> Result<(), WriteFailure> {
    if connection.has_writer.get() {
        return Err(WriteFailure::Failed(TcpError::NotPermitted));
    }
    transfer::write(&connection.shared, connection.id, client, pieces, timeout_ms, written).await
}

/// Sends from pieces what there is room for; returns the number of bytes.
fn send(connection: &Connection, pieces: &[&[u8]]) -> usize {
    if connection.has_writer.get() { 0 } else { transfer::send(&connection.shared, connection.id, pieces) }
}

/// Reads for a client that has sent.
async fn read_after<E: TypedEndpoint>(connection: &Connection, client: &E, most: u32, timeout_ms: u32) -> Read {
    let (shared, id) = (&connection.shared, connection.id);
    let read = transfer::read(shared, id, client, most, timeout_ms).await;
    if matches!(read, Read::Gone) {
        // All that the client had to send was accepted, and the peer is to get it.
        let _ = shared.stack().finish(id);
    }
    read
}

/// Serves the write half until its client closes it, which sends a FIN.
async fn serve_writer(connection: Rc<Connection>, client: tcp_writer::Exp<tcp_writer::states::Ready>) {
    let (shared, id) = (&connection.shared, connection.id);
    let mut client = client;
    loop {
        client = match client.receive_async().await {
            tcp_writer::ExpReady::Write { data, from, count, timeout_ms, next } => {
                let mut written = 0;
                let pieces = [part(&data, from, count)];
                match transfer::write(shared, id, &next, &pieces, timeout_ms, &mut written).await {
                    Ok(()) => next.written(data),
                    Err(WriteFailure::Failed(error)) => next.write_failed(data, error, written),
                    Err(WriteFailure::Gone) => break,
                }
            }
            tcp_writer::ExpReady::Finish { next } => {
                let finished = shared.stack().finish(id);
                match finished {
                    Ok(()) => next.done(),
                    Err(failure) => next.failed(failed(failure)),
                }
            }
            tcp_writer::ExpReady::ChannelClosed(_) => break,
        };
    }
    // The read half fails as well and reports it.
    let _ = shared.stack().finish(id);
}
