//! Reads from connections into blocks, and writes from lent blocks.

use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::tcp::TcpError;
use net_stack::{ConnectionId, Failure};
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;

use crate::convert;
use crate::gate::{Entry, Place};
use crate::shared::Shared;
use provider::waiting::{Waited, until, until_or_never, wait};

/// Maximum number of bytes per read.
const MAX_READ: usize = 256 << 10;

/// Result of a read.
pub enum Read {
    Data(ExVec<u8>, u32),
    Nothing,
    End,
    Failed(Failure),
    /// The client is gone.
    Gone,
}

/// Waits for data and reads it.
pub async fn read<E: TypedEndpoint>(shared: &Shared, id: ConnectionId, client: &E, most: u32, timeout_ms: u32) -> Read {
    if most == 0 {
        return Read::Nothing;
    }
    let mut result = Read::Nothing;
    let mut place = Place::default();
    let waited = wait(client, until(timeout_ms), async {
        result = poll_fn(|context| {
            // A non-blocking read does not queue for a turn.
            if timeout_ms > 0 && shared.stack().readable(id) > 0 {
                match shared.gate.enter(&mut place, context.waker()) {
                    Entry::Open => {}
                    Entry::Waits => return Poll::Pending,
                    Entry::WaitsFirst => {
                        shared.work.notify_one();
                        return Poll::Pending;
                    }
                }
            }
            poll_read(shared, id, most, context.waker())
        })
        .await;
    });
    match waited.await {
        Waited::Gone => Read::Gone,
        // Data present is returned even if no turn came before the timeout.
        Waited::TimedOut => match poll_read(shared, id, most, Waker::noop()) {
            Poll::Ready(read) => read,
            Poll::Pending => Read::Nothing,
        },
        Waited::Done => result,
    }
}

fn poll_read(shared: &Shared, id: ConnectionId, most: u32, waker: &Waker) -> Poll<Read> {
    let mut stack = shared.stack();
    let bytes = stack.readable(id).min(most as usize).min(MAX_READ);
    let mut block = match bytes {
        0 => None,
        bytes => match ExVec::<u8>::new(bytes) {
            Ok(block) => Some(block),
            Err(_) => return Poll::Ready(Read::Failed(Failure::Exhausted)),
        },
    };
    // While there is no data, reading one byte returns the reason or registers the waker.
    let mut one = [0];
    let into = block.as_mut().map_or(&mut one[..], |block| block.as_mut_slice());
    match (stack.poll_read(id, into, waker), block) {
        (Poll::Pending, _) => Poll::Pending,
        (Poll::Ready(Err(failure)), _) => Poll::Ready(Read::Failed(failure)),
        (Poll::Ready(Ok(0)), _) => Poll::Ready(Read::End),
        (Poll::Ready(Ok(count)), Some(block)) => Poll::Ready(Read::Data(block, count as u32)),
        (Poll::Ready(Ok(_)), None) => Poll::Ready(Read::Failed(Failure::Closed)),
    }
}

/// Why a write ended early.
pub enum WriteFailure {
    Failed(TcpError),
    /// The client is gone.
    Gone,
}

/// Writes all pieces in order and counts the bytes in `written`. Fails after `timeout_ms` without progress.
pub async fn write<E: TypedEndpoint>(
    shared: &Shared,
    id: ConnectionId,
    client: &E,
    pieces: &[&[u8]],
    timeout_ms: u32,
    written: &mut u32,
) -> Result<(), WriteFailure> {
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let mut result = Err(Failure::TimedOut);
            let waited = wait(client, until_or_never(timeout_ms), async {
                result = poll_fn(|context| shared.stack().poll_write(id, rest, context.waker())).await;
            });
            match (waited.await, result) {
                (Waited::Done, Ok(count)) => {
                    rest = &rest[count..];
                    *written += count as u32;
                }
                (Waited::Gone, _) => return Err(WriteFailure::Gone),
                (_, Ok(_)) => return Err(WriteFailure::Failed(TcpError::TimedOut)),
                (_, Err(failure)) => return Err(WriteFailure::Failed(convert::error(failure))),
            }
        }
    }
    Ok(())
}

/// Writes from the pieces, in order, what there is room for; returns the number of bytes.
pub fn send(shared: &Shared, id: ConnectionId, pieces: &[&[u8]]) -> usize {
    let mut sent = 0;
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match shared.stack().poll_write(id, rest, Waker::noop()) {
                Poll::Ready(Ok(count)) => {
                    rest = &rest[count..];
                    sent += count;
                }
                // The next write reports it.
                Poll::Ready(Err(_)) | Poll::Pending => return sent,
            }
        }
    }
    sent
}
