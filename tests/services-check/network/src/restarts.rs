//! A stack that is killed in the middle of its clients' requests: they are notified, their loans return, and its
//! successor starts with no state of its predecessor.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::{FOR_EVER, tcp_connection, tcp_listener, udp_socket};
use sip::channel::Closed;
use sip::exheap::ExVec;
use sip::process::{StopReason, stop_any};
use sip::time::monotonic;
use sip::{Deadline, diagnostics, thread};

use crate::datagrams;
use crate::ends::{TIMEOUT_MS, block, fill, let_it_be_taken, listen, loopback, pair, pattern, read_all, write};
use crate::{Outcome, Test, answer, check};

/// Programs that may be the stack.
const STACKS: [&str; 2] = ["host-sockets", "net-stack"];
const KILLS: usize = 20;

pub(crate) const TESTS: &[Test] = &[
    ("restarts: all who wait hear that the stack has ended", all_hear),
    ("restarts: the successor serves at the same port at once", same_port),
];

/// Kills the stack and waits until it has ended.
fn kill() -> Outcome {
    let processes = diagnostics::processes().map_err(|status| format!("the processes: {}", status.text()))?;
    let stack = processes.iter().find(|process| STACKS.contains(&diagnostics::name(&process.name).as_str()));
    let id = stack.ok_or("no network stack runs")?.id;
    stop_any(id, StopReason::Requested).map_err(|status| format!("it cannot be ended: {}", status.text()))?;
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        let all = diagnostics::processes().map_err(|status| format!("the processes: {}", status.text()))?;
        if !all.iter().any(|process| process.id == id) {
            return Ok(());
        }
        check!(!deadline.has_passed(), "it does not end");
        thread::sleep(Deadline::after_ms(1));
    }
}

/// The returned blocks have these lengths.
fn came_home(mut closed: Closed, expected: &[usize]) -> Outcome {
    let home: Vec<ExVec<u8>> = closed.take_home().into_iter().filter_map(|block| block.into_vec().ok()).collect();
    let lengths: Vec<usize> = home.iter().map(|block| block.len()).collect();
    check!(lengths == expected, "blocks of {lengths:?} bytes came home, not {expected:?}");
    Ok(())
}

fn all_hear(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    for round in 0..KILLS {
        let (reader, _other) = pair(namespace)?;
        let reading = reader.read(100, FOR_EVER);
        let (full, _deaf) = pair(namespace)?;
        let writing = fill(full)?.1.write(block(&pattern(50_000))?, 0, 50_000, 0);
        let (full, _deaf_too) = pair(namespace)?;
        let writing_two = fill(full)?.1.write_two(block(b"head")?, 4, block(&pattern(60_000))?, 0, 60_000, 0);
        let (listener, _) = listen(namespace, loopback(0), 4)?.map_err(failed)?;
        let accepting = listener.accept();
        let (socket, _) = datagrams::bind(namespace, loopback(0))?.map_err(failed)?;
        let receiving = socket.receive(FOR_EVER);
        let (idle, _idle_too) = pair(namespace)?;
        if round % 2 == 1 {
            let_it_be_taken();
        }
        kill()?;
        match answer!(reading) {
            tcp_connection::ImpReadyAfterRead::ChannelClosed(closed) => came_home(closed, &[])?,
            _ => return Err(String::from("a read was answered by who has ended")),
        }
        match answer!(writing) {
            tcp_connection::ImpReadyAfterWrite::ChannelClosed(closed) => came_home(closed, &[50_000])?,
            _ => return Err(String::from("a write was answered by who has ended")),
        }
        match answer!(writing_two) {
            tcp_connection::ImpReadyAfterWriteTwo::ChannelClosed(closed) => came_home(closed, &[4, 60_000])?,
            tcp_connection::ImpReadyAfterWriteTwo::WrittenTwo { .. } => {
                return Err(String::from("a write of two was done where there was no room"));
            }
            tcp_connection::ImpReadyAfterWriteTwo::WriteTwoFailed { error, .. } => {
                return Err(format!("a write of two: {error:?}"));
            }
        }
        match answer!(accepting) {
            tcp_listener::ImpReadyAfterAccept::ChannelClosed(closed) => came_home(closed, &[])?,
            _ => return Err(String::from("a listener was answered by who has ended")),
        }
        match answer!(receiving) {
            udp_socket::ImpReadyAfterReceive::ChannelClosed(closed) => came_home(closed, &[])?,
            _ => return Err(String::from("a receive was answered by who has ended")),
        }
        check!(write(idle, b"x", 0).is_err(), "a connection outlived the stack");
        // The successor serves current clients.
        let (left, right) = pair(namespace)?;
        let (written, _left) = write(left, b"again", 0)?;
        check!(written.is_ok(), "after the restart: {written:?}");
        let (there, _right) = read_all(right, 5)?;
        check!(there == b"again", "after the restart: {there:?}");
    }
    Ok(())
}

fn same_port(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    let (first, local) = listen(namespace, loopback(0), 16)?.map_err(failed)?;
    drop(first);
    let mut longest_ms = 0;
    for _ in 0..KILLS {
        // The predecessor's closure may not have arrived yet.
        let mut listening = listen(namespace, local, 16)?;
        for _ in 0..100 {
            if listening.is_ok() {
                break;
            }
            let_it_be_taken();
            listening = listen(namespace, local, 16)?;
        }
        let (listener, _) = listening.map_err(failed)?;
        let (_left, _) = crate::ends::connect(namespace, local, 0)?.map_err(failed)?;
        let (_right, _, _listener) = crate::ends::accept(listener)?;
        let begin = monotonic();
        kill()?;
        let again = listen(namespace, local, 16)?;
        check!(again.is_ok(), "{:?}", again.err());
        longest_ms = longest_ms.max((monotonic() - begin) / 1_000_000);
    }
    check!(longest_ms < 1000, "{longest_ms} ms went by until the successor took connections");
    Ok(())
}
