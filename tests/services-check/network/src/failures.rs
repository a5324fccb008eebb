//! A device with intermittent failures: the caller gets an error, no wait hangs, nothing leaks.

use alloc::format;
use alloc::string::String;

use client::namespace::Namespace;
use contracts::dns::AddressFamily;
use contracts::tcp::TcpError;
use contracts::{tcp_connection, tcp_writer};

use crate::ends::{
    End, Reading, abort, block, connect, ended, finish, listen, loopback, pattern, read, reading, write,
};
use crate::resources::Count;
use crate::{Outcome, answer, check, datagrams};

/// Timeout of a read: bytes lost in transit never arrive.
const SHORT_MS: u32 = 100;

/// Why a round ended early: the stack reported a failure, or an invariant is violated.
enum Stopped {
    Told,
    Wrong(String),
}

impl From<String> for Stopped {
    fn from(why: String) -> Stopped {
        Stopped::Wrong(why)
    }
}

impl From<TcpError> for Stopped {
    fn from(_: TcpError) -> Stopped {
        Stopped::Told
    }
}

/// Repeatedly exercises every request to the stack.
pub(crate) fn rounds(namespace: &mut Namespace, rounds: u32) -> Outcome {
    let mut told = 0;
    for round in 0..rounds {
        let before = Count::settled(namespace)?;
        match one(namespace) {
            Ok(()) => {}
            Err(Stopped::Told) => told += 1,
            Err(Stopped::Wrong(why)) => return Err(format!("round {round}: {why}")),
        }
        before.wait_until_back(namespace).map_err(|why| format!("round {round}: {why}"))?;
    }
    sip::log!("{told} of {rounds} rounds were told of a failure");
    check!(rounds < 50 || told > 0, "nothing failed in {rounds} rounds");
    Ok(())
}

fn told<T>((result, end): (Result<T, (TcpError, u32)>, End)) -> Result<End, Stopped> {
    match result {
        Ok(_) => Ok(end),
        Err((error, _)) => Err(error.into()),
    }
}

/// Reads bytes that were sent; they may have been lost together with their sender.
fn expect(mut end: End, expected: &[u8]) -> Result<End, Stopped> {
    let mut at = 0;
    while at < expected.len() {
        let left = (expected.len() - at) as u32;
        let (got, next) = reading(answer!(end.read(left, SHORT_MS)))?;
        end = next;
        match got {
            Reading::Data(bytes) => {
                if expected.get(at..at + bytes.len()) != Some(&*bytes) {
                    return Err(Stopped::Wrong(format!("at byte {at} comes what was not sent")));
                }
                at += bytes.len();
            }
            Reading::Failed(error) => return Err(error.into()),
            Reading::Nothing => return Err(Stopped::Wrong(format!("nothing comes after byte {at}, and no failure"))),
            Reading::End => return Err(Stopped::Wrong(format!("an end in order after byte {at}"))),
        }
    }
    Ok(end)
}

fn one(namespace: &mut Namespace) -> Result<(), Stopped> {
    let (listener, local) = listen(namespace, loopback(0), 4)??;
    let (left, _) = connect(namespace, local, 1000)??;
    let (right, _, listener) = crate::ends::accept(listener).map_err(|_| Stopped::Told)?;
    let data = pattern(100_000);
    let left = told(write(left, &data, 1000)?)?;
    let right = expect(right, &data)?;
    let right = match answer!(right.write_two(block(b"head")?, 4, block(&data)?, 0, 50_000, 1000)) {
        tcp_connection::ImpReadyAfterWriteTwo::WrittenTwo { next, .. } => next,
        tcp_connection::ImpReadyAfterWriteTwo::WriteTwoFailed { error, .. } => return Err(error.into()),
        tcp_connection::ImpReadyAfterWriteTwo::ChannelClosed(_) => return Err(ended().into()),
    };
    let left = expect(left, b"head")?;
    let left = expect(left, &data[..50_000])?;
    let left = match answer!(left.set_options(false, 10)) {
        tcp_connection::ImpReadyAfterSetOptions::Done { next }
        | tcp_connection::ImpReadyAfterSetOptions::Failed { next, .. } => next,
        tcp_connection::ImpReadyAfterSetOptions::ChannelClosed(_) => return Err(ended().into()),
    };
    let (writer, left) = match answer!(left.open_writer()) {
        tcp_connection::ImpReadyAfterOpenWriter::Writer { writer, next } => (writer, next),
        tcp_connection::ImpReadyAfterOpenWriter::Failed { error, .. } => return Err(error.into()),
        tcp_connection::ImpReadyAfterOpenWriter::ChannelClosed(_) => return Err(ended().into()),
    };
    let waits = left.read(100, SHORT_MS);
    let writer = match answer!(writer.write(block(b"from the writer")?, 0, 15, 1000)) {
        tcp_writer::ImpReadyAfterWrite::Written { next, .. } => next,
        tcp_writer::ImpReadyAfterWrite::WriteFailed { error, .. } => return Err(error.into()),
        tcp_writer::ImpReadyAfterWrite::ChannelClosed(_) => return Err(ended().into()),
    };
    let right = expect(right, b"from the writer")?;
    let right = told(write(right, b"x", 1000)?)?;
    let left = match reading(answer!(waits))? {
        (Reading::Data(bytes), next) if bytes == b"x" => next,
        (Reading::Failed(error), _) => return Err(error.into()),
        (other, _) => return Err(Stopped::Wrong(format!("a read that waited gave {other:?}"))),
    };
    drop(writer);
    let (end, right) = read(right, SHORT_MS)?;
    check_end(&end)?;
    let (done, right) = finish(right)?;
    done?;
    let (end, left) = read(left, SHORT_MS)?;
    check_end(&end)?;
    let left = abort(left)?;
    drop((left, right, listener));
    others(namespace)
}

fn check_end(reading: &Reading) -> Result<(), Stopped> {
    match reading {
        Reading::End => Ok(()),
        Reading::Failed(error) => Err((*error).into()),
        other => Err(Stopped::Wrong(format!("{other:?} where the end was to come"))),
    }
}

fn others(namespace: &mut Namespace) -> Result<(), Stopped> {
    let (left, name) = datagrams::bind(namespace, loopback(0))??;
    let (right, _) = datagrams::bind(namespace, loopback(0))??;
    let (sent, right) = datagrams::send(right, block(&pattern(2000))?, 2000, name)?;
    let (received, left) = datagrams::receive(left, SHORT_MS)?;
    match received? {
        Some((bytes, _)) if bytes == pattern(2000) => {}
        Some(_) => return Err(Stopped::Wrong(String::from("a datagram is not what was sent"))),
        // Datagrams may be lost.
        None => sent?,
    }
    drop((left, right));
    // A failed name query is no reason to end early.
    datagrams::resolve(namespace, b"localhost", AddressFamily::Any)?.map(drop).or(Ok(()))
}
