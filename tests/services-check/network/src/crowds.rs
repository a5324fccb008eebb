//! Exhaustion of the machine's sockets.

use alloc::format;
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::tcp::TcpError;
use contracts::tcp_listener;
use sip::{Deadline, diagnostics, thread};

use crate::datagrams;
use crate::ends::{End, connect, ended, let_it_be_taken, listen, loopback, read_all, write};
use crate::{Outcome, Test, answer, check};

/// More than the machine's maximum number of sockets.
const MOST: usize = 2000;
const WATCHED_MS: u64 = 500;
/// Maximum cycles in that time without busy waiting, which takes more than twice as many: periodic polling takes few,
/// but a busy host also counts cycles of other work.
const MAX_CYCLES: u64 = 250_000_000;

pub(crate) const TESTS: &[Test] = &[
    ("crowds: who finds no socket is told, and goes on when there is one", exhausted),
    ("crowds: a listener without room waits quietly, and goes on", quiet_listener),
];

/// Connects until no socket is left; returns the connections, and the listener, which has accepted none.
fn crowd(
    namespace: &mut Namespace,
) -> Result<(Vec<End>, crate::ends::Listener, contracts::SocketAddress), alloc::string::String> {
    let failed = |error| format!("{error:?}");
    let (listener, local) = listen(namespace, loopback(0), MOST as u32)?.map_err(failed)?;
    let mut open = Vec::new();
    loop {
        match connect(namespace, local, 0)? {
            Ok((end, _)) => open.push(end),
            Err(TcpError::Exhausted) => return Ok((open, listener, local)),
            Err(error) => return Err(failed(error)),
        }
        check!(open.len() < MOST, "this machine has room for {MOST} sockets");
    }
}

fn exhausted(namespace: &mut Namespace) -> Outcome {
    let (mut open, listener, local) = crowd(namespace)?;
    check!(open.len() > 20, "only {} connections had room", open.len());
    for _ in 0..10 {
        let more = connect(namespace, local, 0)?;
        check!(more.as_ref().err() == Some(&TcpError::Exhausted), "one more connection has room");
        let more = listen(namespace, loopback(0), 1)?;
        check!(more.as_ref().err() == Some(&TcpError::Exhausted), "one more listener has room");
        let more = datagrams::bind(namespace, loopback(0))?;
        check!(more.as_ref().err() == Some(&TcpError::Exhausted), "one more socket for datagrams has room");
    }
    drop(open.pop());
    let_it_be_taken();
    let again = connect(namespace, local, 0)?;
    check!(again.is_ok(), "when there was room again: {:?}", again.err());
    drop((open, listener, again));
    Ok(())
}

/// Cycles used by the stack.
fn cycles() -> Result<u64, alloc::string::String> {
    let processes = diagnostics::processes().map_err(|status| format!("the processes: {}", status.text()))?;
    let stack = processes.iter().find(|process| diagnostics::name(&process.name) == "host-sockets");
    Ok(stack.ok_or("no host-sockets runs")?.cycles)
}

fn quiet_listener(namespace: &mut Namespace) -> Outcome {
    let (mut open, listener, _) = crowd(namespace)?;
    let mut accepting = listener.accept();
    let_it_be_taken();
    let before = cycles()?;
    accepting = match accepting.receive_by(Deadline::after_ms(WATCHED_MS)) {
        Err(waiting) => waiting,
        Ok(_) => return Err("a listener without room has an answer".into()),
    };
    let used = cycles()? - before;
    check!(used < MAX_CYCLES, "{used} cycles in {WATCHED_MS} ms of waiting");
    // Each closed connection makes room for a waiting one; those are served.
    let mut listener = None;
    for round in 0..20 {
        drop(open.pop());
        let (end, next) = match answer!(accepting) {
            tcp_listener::ImpReadyAfterAccept::Accepted { connection, next, .. } => (connection, next),
            tcp_listener::ImpReadyAfterAccept::Failed { error, .. } => return Err(format!("round {round}: {error:?}")),
            tcp_listener::ImpReadyAfterAccept::ChannelClosed(_) => return Err(ended()),
        };
        if round == 0 {
            // The oldest one connected first.
            let oldest = open.remove(0);
            let (written, oldest) = write(oldest, b"first", 0)?;
            check!(written.is_ok(), "{written:?}");
            let (there, _) = read_all(end, 5)?;
            check!(there == b"first", "{there:?}");
            drop(oldest);
        }
        accepting = match round {
            19 => {
                listener = Some(next);
                break;
            }
            _ => next.accept(),
        };
    }
    drop((open, listener));
    thread::sleep(Deadline::after_ms(10));
    Ok(())
}
