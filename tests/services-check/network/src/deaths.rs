//! Clients that end in each state of their contracts, before the stack has read their request and while it waits on
//! their behalf. Checks the notification of the connection's peer, and that nothing leaks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::dns::AddressFamily;
use contracts::tcp::TcpError;
use contracts::{FOR_EVER, dns, ip_configuration, tcp_connection};

use crate::datagrams;
use crate::ends::{
    End, Reading, abort, block, connect, ended, fill, finish, let_it_be_taken, listen, loopback, pair, pattern, read,
    stack, write,
};
use crate::{Outcome, Test, answer, check};

pub(crate) const TESTS: &[Test] = &[
    ("deaths: a connection's client ends in each state", of_connections),
    ("deaths: a writer's client ends in each state", of_writers),
    ("deaths: a listener's client ends in each state", of_listeners),
    ("deaths: who connects ends before it is connected", of_connecting),
    ("deaths: who asks for a name, a ping or a datagram ends before the answer", of_others),
];

/// Last request of a connection's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    GetAddresses,
    Read,
    Write,
    WriteTwo,
    Finish,
    Abort,
    OpenWriter,
    SetOptions,
}

const LASTS: [Last; 9] = [
    Last::Nothing,
    Last::GetAddresses,
    Last::Read,
    Last::Write,
    Last::WriteTwo,
    Last::Finish,
    Last::Abort,
    Last::OpenWriter,
    Last::SetOptions,
];

/// State of a connection before that request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Quiet,
    /// Write buffers are full: the other end does not read.
    Full,
    /// There is data to be read.
    Unread,
    /// The other end has finished.
    OtherFinished,
    /// This end has finished.
    Finished,
    /// The other end was reset.
    Reset,
}

const BEFORES: [Before; 6] =
    [Before::Quiet, Before::Full, Before::Unread, Before::OtherFinished, Before::Finished, Before::Reset];

fn prepare(namespace: &mut Namespace, before: Before) -> Result<(End, End), String> {
    let (left, right) = pair(namespace)?;
    Ok(match before {
        Before::Quiet => (left, right),
        Before::Full => (fill(left)?.1, right),
        Before::Unread => (left, write(right, b"unread", 0)?.1),
        Before::OtherFinished => (left, finish(right)?.1),
        Before::Finished => (finish(left)?.1, right),
        Before::Reset => (left, abort(right)?),
    })
}

/// Sends the last request and exits, immediately or after it was read.
fn end_after(left: End, last: Last, taken: bool) -> Outcome {
    let pause = || {
        if taken {
            let_it_be_taken();
        }
    };
    // Each arm's endpoint is in the middle of a call, and dropped there.
    match last {
        Last::Nothing => drop(left),
        Last::GetAddresses => {
            let asked = left.get_addresses();
            pause();
            drop(asked);
        }
        Last::Read => {
            let asked = left.read(100, FOR_EVER);
            pause();
            drop(asked);
        }
        Last::Write => {
            let asked = left.write(block(&pattern(100_000))?, 0, 100_000, 0);
            pause();
            drop(asked);
        }
        Last::WriteTwo => {
            let asked = left.write_two(block(b"head")?, 4, block(&pattern(100_000))?, 0, 100_000, 0);
            pause();
            drop(asked);
        }
        Last::Finish => {
            let asked = left.finish();
            pause();
            drop(asked);
        }
        Last::Abort => {
            let asked = left.abort();
            pause();
            drop(asked);
        }
        Last::OpenWriter => {
            let asked = left.open_writer();
            pause();
            drop(asked);
        }
        Last::SetOptions => {
            let asked = left.set_options(true, 10);
            pause();
            drop(asked);
        }
    }
    Ok(())
}

/// Returns the peer's final event: FIN or RST, not silence.
fn final_event(mut right: End) -> Result<Reading, String> {
    loop {
        let (reading, next) = read(right, FOR_EVER)?;
        right = next;
        match reading {
            Reading::Data(_) => {}
            other => return Ok(other),
        }
    }
}

fn of_connections(namespace: &mut Namespace) -> Outcome {
    for before in BEFORES {
        for last in LASTS {
            for taken in [false, true] {
                let at = || format!("{before:?}, {last:?}, taken: {taken}");
                let (left, right) = prepare(namespace, before)?;
                end_after(left, last, taken).map_err(|why| format!("{}: {why}", at()))?;
                let heard = final_event(right).map_err(|why| format!("{}: {why}", at()))?;
                let is_right = match before {
                    // Both have finished, or finish by exiting: all written data is read to its end.
                    Before::Finished | Before::OtherFinished => {
                        matches!(heard, Reading::End | Reading::Failed(TcpError::Reset))
                    }
                    Before::Reset => matches!(heard, Reading::Failed(TcpError::Closed)),
                    // Finish may have been processed before the client exited; then its closure is orderly.
                    _ if last == Last::Finish || last == Last::OpenWriter => {
                        matches!(heard, Reading::End | Reading::Failed(TcpError::Reset))
                    }
                    _ => heard == Reading::Failed(TcpError::Reset),
                };
                check!(is_right, "{}: the other end hears {heard:?}", at());
            }
        }
    }
    Ok(())
}

fn of_writers(namespace: &mut Namespace) -> Outcome {
    for full in [false, true] {
        for taken in [false, true] {
            for writer_first in [false, true] {
                let (left, right) = pair(namespace)?;
                let left = if full { fill(left)?.1 } else { left };
                let (writer, left) = match answer!(left.open_writer()) {
                    tcp_connection::ImpReadyAfterOpenWriter::Writer { writer, next } => (writer, next),
                    _ => return Err(String::from("no writer")),
                };
                let reading = left.read(100, FOR_EVER);
                let writing = writer.write(block(&pattern(100_000))?, 0, 100_000, 0);
                if taken {
                    let_it_be_taken();
                }
                if writer_first {
                    drop(writing);
                    let_it_be_taken();
                    drop(reading);
                } else {
                    drop(reading);
                    let_it_be_taken();
                    drop(writing);
                }
                let heard = final_event(right)?;
                let is_told = matches!(heard, Reading::End | Reading::Failed(TcpError::Reset));
                check!(is_told, "full: {full}, taken: {taken}, writer first: {writer_first}: {heard:?}");
            }
        }
    }
    Ok(())
}

fn of_listeners(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    for waiting in [0, 1, 20] {
        for accepts in [false, true] {
            for taken in [false, true] {
                let (listener, local) = listen(namespace, loopback(0), 64)?.map_err(failed)?;
                // One is accepted, so that others may have arrived with it.
                let mut others = Vec::new();
                for _ in 0..waiting {
                    others.push(connect(namespace, local, 0)?.map_err(failed)?.0);
                }
                let listener = if waiting == 0 {
                    listener
                } else {
                    let (end, _, next) = crate::ends::accept(listener)?;
                    drop(end);
                    next
                };
                if accepts {
                    let asked = listener.accept();
                    if taken {
                        let_it_be_taken();
                    }
                    drop(asked);
                } else {
                    drop(listener);
                }
                for other in others {
                    let heard = final_event(other)?;
                    let is_told = matches!(heard, Reading::End | Reading::Failed(TcpError::Reset));
                    check!(is_told, "{waiting} wait, accepts: {accepts}, taken: {taken}: {heard:?}");
                }
            }
        }
    }
    Ok(())
}

/// Connections to a listener with a full backlog: they get no reply.
fn of_connecting(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    for taken in [false, true] {
        let asked = stack(namespace)?.listen(loopback(0), 4);
        if taken {
            let_it_be_taken();
        }
        drop(asked);
        let (listener, local) = listen(namespace, loopback(0), 1)?.map_err(failed)?;
        let mut open = Vec::new();
        let silent = loop {
            match connect(namespace, local, 100)? {
                Ok((end, _)) => open.push(end),
                Err(error) => break error,
            }
            check!(open.len() < 100, "a listener with a backlog of 1 takes any number of connections");
        };
        // A host may refuse them instead of queueing them.
        check!(matches!(silent, TcpError::TimedOut | TcpError::ConnectionRefused), "{silent:?}");
        let asked = stack(namespace)?.connect(local, 0);
        if taken {
            let_it_be_taken();
        }
        drop(asked);
        drop((listener, open));
    }
    Ok(())
}

fn of_others(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    for taken in [false, true] {
        let pause = || {
            if taken {
                let_it_be_taken();
            }
        };
        let (socket, name) = datagrams::bind(namespace, loopback(0))?.map_err(failed)?;
        let asked = socket.receive(FOR_EVER);
        pause();
        drop(asked);
        let (socket, _) = datagrams::bind(namespace, loopback(0))?.map_err(failed)?;
        let asked = socket.send(block(&pattern(1000))?, 1000, name);
        pause();
        drop(asked);

        let names = namespace.open(network::DNS, dns::new_channel, |importer| match importer.receive() {
            dns::ImpStart::Success { next } => Ok(next),
            dns::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        });
        let asked = names.map_err(|_| ended())?.resolve(block(b"localhost")?, AddressFamily::Any);
        pause();
        drop(asked);

        let ip = namespace.open(network::IP, ip_configuration::new_channel, |importer| match importer.receive() {
            ip_configuration::ImpStart::Success { next } => Ok(next),
            ip_configuration::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        });
        // A documentation address (RFC 5737), which never replies.
        let mut nobody = loopback(0).address;
        nobody[12..].copy_from_slice(&[192, 0, 2, 1]);
        let asked = ip.map_err(|_| ended())?.ping(nobody, 8, 1, 300);
        pause();
        drop(asked);
    }
    Ok(())
}
