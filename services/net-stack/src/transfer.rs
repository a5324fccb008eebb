//! Reading from a connection into blocks, and writing from blocks that were lent.

use core::future::poll_fn;
use core::task::{Poll, Waker};

use net_stack::{ConnectionId, Failure};
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;

use crate::gate::{Entry, Place};
use crate::shared::Shared;
use provider::waiting::{Waited, until, until_or_never, wait};

/// Most bytes that are read at once.
const MAX_READ: usize = 256 << 10;

/// What came of reading.
pub enum Read {
    Data(ExVec<u8>, u32),
    Nothing,
    End,
    Failed(Failure),
    /// The client has gone.
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
            // Who does not wait for data is not made to wait for a turn.
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
        // What is there is not kept because its turn did not come in time.
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
    // With nothing there yet, the answer to reading one byte tells why, or wakes this task later.
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

/// How writing ended before all was written.
pub enum WriteFailure {
    Failed(Failure),
    /// The client has gone.
    Gone,
}

/// Writes all pieces, one after the other. `written` counts along. Without progress for so long it ends.
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
                (_, Ok(_)) => return Err(WriteFailure::Failed(Failure::TimedOut)),
                (_, Err(failure)) => return Err(WriteFailure::Failed(failure)),
            }
        }
    }
    Ok(())
}
