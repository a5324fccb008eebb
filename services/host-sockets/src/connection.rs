//! The contracts of a connection, as its client uses them.

use alloc::rc::Rc;

use contracts::SocketAddress;
use contracts::tcp::TcpError;
use contracts::tcp_connection::{self, ExpReady, states};
use contracts::tcp_writer::{self, ExpReady as OfWriter};
use sip::channel::TypedEndpoint;
use sip::executor::{self, Member};

use crate::failures::tcp_error;
use crate::returned::Content;
use crate::transfer::{Piece, Reading, Stream, Writing};

/// The two endpoints of a connection.
#[derive(Clone, Copy)]
pub struct Ends {
    /// Local address.
    pub local: SocketAddress,
    /// Remote address.
    pub remote: SocketAddress,
}

type Client = tcp_connection::Exp<states::Ready>;

/// Answers a client with what was read for it, in any state that awaits that; `None` if it is gone.
macro_rules! answer_read {
    ($client:ident, $reading:ident) => {
        match $reading {
            Reading::Data(block, count) => Some($client.data(block, count)),
            Reading::Nothing => Some($client.no_data()),
            Reading::End => Some($client.end_of_data()),
            Reading::Failed(failure) => Some($client.failed(tcp_error(failure))),
            Reading::Gone => None,
        }
    };
}

/// Serves a connection until its client is gone. A block lent by the client returns on its own when dropped here.
pub async fn serve(stream: Rc<Stream>, ends: Ends, mut client: Client) {
    let mut has_writer = false;
    let mut member = None;
    loop {
        let next = match executor::receive_as(client, member.take()).await {
            ExpReady::GetAddresses { next } => Some(next.addresses(ends.local, ends.remote)),
            ExpReady::Read { most, timeout_ms, next } => {
                let reading;
                (reading, member) = stream.read(&next, most, timeout_ms).await;
                answer_read!(next, reading)
            }
            ExpReady::Write { data, from, count, timeout_ms, next } => {
                let mut piece = Piece::new(data, from, count);
                if has_writer {
                    piece.into_block().map(|block| next.write_failed(block, TcpError::NotPermitted, 0))
                } else {
                    let written = stream.write(&next, &mut piece, timeout_ms).await;
                    match (written.end, piece.into_block()) {
                        (Writing::Done, Some(block)) => Some(next.written(block)),
                        (Writing::Failed(failure), Some(block)) => {
                            Some(next.write_failed(block, tcp_error(failure), written.bytes))
                        }
                        _ => None,
                    }
                }
            }
            ExpReady::WriteTwo { head, head_count, data, from, count, timeout_ms, next } => {
                let mut pieces = (Piece::new(head, 0, head_count), Piece::new(data, from, count));
                write_two(&stream, has_writer, &mut pieces, timeout_ms, &next).await.and_then(|result| {
                    let (head, data) = (pieces.0.into_block()?, pieces.1.into_block()?);
                    Some(match result {
                        Ok(()) => next.written_two(head, data),
                        Err((error, bytes)) => next.write_two_failed(head, data, error, bytes),
                    })
                })
            }
            ExpReady::SendAndRead { data, count, most, timeout_ms, next } => {
                let mut piece = Piece::new(data, 0, count);
                let sent = if has_writer { 0 } else { stream.send(&mut piece) };
                let (is_done, block) = (piece.is_done(), piece.into_block());
                if is_done {
                    block.into_iter().for_each(|block| stream.keep_spare(block));
                    let reading;
                    (reading, member) = read_after(&stream, &next, most, timeout_ms).await;
                    answer_read!(next, reading)
                } else {
                    block.map(|block| next.unsent(block, sent as u32))
                }
            }
            ExpReady::SendTwoAndRead { head, head_count, data, count, most, timeout_ms, next } => {
                let (mut head, mut data) = (Piece::new(head, 0, head_count), Piece::new(data, 0, count));
                let sent = if has_writer { 0 } else { stream.send_two(&mut head, &mut data) };
                let is_done = head.is_done() && data.is_done();
                let blocks = head.into_block().zip(data.into_block());
                if is_done {
                    blocks.into_iter().for_each(|(head, _)| stream.keep_spare(head));
                    let reading;
                    (reading, member) = read_after(&stream, &next, most, timeout_ms).await;
                    answer_read!(next, reading)
                } else {
                    blocks.map(|(head, data)| next.unsent_two(head, data, sent as u32))
                }
            }
            ExpReady::Finish { next } => Some(match stream.finish() {
                Ok(()) => next.done(),
                Err(failure) => next.failed(tcp_error(failure)),
            }),
            ExpReady::Abort { next } => {
                stream.abort();
                Some(next.done())
            }
            ExpReady::OpenWriter { next } => Some(match open_writer(&stream, has_writer) {
                Ok(writer) => {
                    has_writer = true;
                    next.writer(writer)
                }
                Err(error) => next.failed(error),
            }),
            ExpReady::SetOptions { no_delay, keep_alive_s, next } => {
                Some(match stream.socket.set_options(no_delay, keep_alive_s) {
                    Ok(()) => next.done(),
                    Err(failure) => next.failed(tcp_error(failure)),
                })
            }
            ExpReady::ChannelClosed(_) => None,
        };
        match next {
            Some(next) => client = next,
            None => return,
        }
    }
}

/// Reads for a client that has sent.
async fn read_after(
    stream: &Stream,
    client: &impl TypedEndpoint,
    most: u32,
    timeout_ms: u32,
) -> (Reading, Option<Member>) {
    // All that the client had to send is on its way: should it close while this waits, the peer gets it.
    stream.reset_when_closed(false);
    let read = stream.read(client, most, timeout_ms).await;
    if !matches!(read.0, Reading::Gone) {
        stream.reset_when_closed(true);
    }
    read
}

/// Writes two blocks as one; `None` if the client is gone.
async fn write_two<C: Content>(
    stream: &Stream,
    has_writer: bool,
    (head, data): &mut (Piece<C>, Piece<C>),
    timeout_ms: u32,
    client: &impl TypedEndpoint,
) -> Option<Result<(), (TcpError, u32)>> {
    if has_writer {
        return Some(Err((TcpError::NotPermitted, 0)));
    }
    let written = stream.write_two(client, head, data, timeout_ms).await;
    match written.end {
        Writing::Done => Some(Ok(())),
        Writing::Failed(failure) => Some(Err((tcp_error(failure), written.bytes))),
        Writing::Gone => None,
    }
}

fn open_writer(stream: &Rc<Stream>, has_writer: bool) -> Result<tcp_writer::Imp<tcp_writer::states::Ready>, TcpError> {
    if has_writer {
        return Err(TcpError::NotPermitted);
    }
    let (importer, exporter) = tcp_writer::new_channel().map_err(|_| TcpError::Exhausted)?;
    drop(executor::spawn(serve_writer(Rc::clone(stream), exporter)));
    Ok(importer)
}

/// Serves the write half until its client is gone, which shuts it down.
async fn serve_writer(stream: Rc<Stream>, mut client: tcp_writer::Exp<tcp_writer::states::Ready>) {
    loop {
        let next = match client.receive_async().await {
            OfWriter::Write { data, from, count, timeout_ms, next } => {
                let mut piece = Piece::new(data, from, count);
                let written = stream.write(&next, &mut piece, timeout_ms).await;
                match (written.end, piece.into_block()) {
                    (Writing::Done, Some(block)) => Some(next.written(block)),
                    (Writing::Failed(failure), Some(block)) => {
                        Some(next.write_failed(block, tcp_error(failure), written.bytes))
                    }
                    _ => None,
                }
            }
            OfWriter::Finish { next } => Some(match stream.finish() {
                Ok(()) => next.done(),
                Err(failure) => next.failed(tcp_error(failure)),
            }),
            OfWriter::ChannelClosed(_) => None,
        };
        match next {
            Some(next) => client = next,
            None => break,
        }
    }
    if stream.finish().is_err() {
        // The peer must not wait for a FIN that cannot be sent.
        stream.abort();
    }
}
