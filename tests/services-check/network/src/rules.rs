//! Refusals by the rules of the system manifest: the caller gets an error, others are unaffected, and the audit ring
//! records principal, action and rule.
//!
//! Deliberately not here: the meaning of rules, which the library's own tests cover.

use alloc::format;
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use client::namespace::Namespace;
use contracts::SocketAddress;
use contracts::dns::{AddressFamily, DnsError};
use contracts::ip_configuration::IpError;
use contracts::tcp::TcpError;
use network::NetError;
use network::ip::IpStack;
use sip::audit;

use crate::datagrams::{bind, receive, resolve, send};
use crate::ends::{TIMEOUT_MS, accept, block, connect, listen, loopback};
use crate::{Outcome, Test, check};

/// A port where the system manifest denies listening, connecting and sending to everyone.
const FORBIDDEN: u16 = 7100;

pub(crate) const TESTS: &[Test] = &[
    ("rules: who may not listen is refused, in whatever words the address is written", no_listening),
    ("rules: who may not connect is refused before anything is sent", no_connecting),
    ("rules: who may not send datagrams keeps the socket and the block", no_datagrams),
    ("rules: an echo that nobody may ask for is not asked for", no_echo),
];

/// Audit lines since the given line number.
fn noted(from: u64) -> Result<String, String> {
    audit::read(from).map(|(lines, _)| lines).map_err(|status| format!("the audit ring: {}", status.text()))
}

/// Returns the number of the next line.
fn next_line() -> Result<u64, String> {
    audit::read(u64::MAX).map(|(_, next)| next).map_err(|status| format!("the audit ring: {}", status.text()))
}

/// Checks that the ring has this refusal.
fn is_noted(from: u64, refused: &str) -> Outcome {
    let lines = noted(from)?;
    let wanted = format!(": {} refused {refused}", sip::principal::own());
    check!(lines.lines().any(|line| line.contains(&wanted)), "no line `{wanted}` in: {lines}");
    Ok(())
}

/// Checks that the ring has no line of this process.
fn is_silent(from: u64) -> Outcome {
    let lines = noted(from)?;
    check!(!lines.contains(&sip::principal::own()), "what was allowed is noted: {lines}");
    Ok(())
}

fn no_listening(namespace: &mut Namespace) -> Outcome {
    let from = next_line()?;
    let allowed = listen(namespace, loopback(0), 1)?;
    check!(allowed.is_ok(), "at a port that is free: {:?}", allowed.err());
    drop(allowed);
    is_silent(from)?;
    let addresses = [
        (IpAddr::V4(Ipv4Addr::LOCALHOST), "127.0.0.1:7100"),
        (IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()), "127.0.0.1:7100"),
        (IpAddr::V4(Ipv4Addr::UNSPECIFIED), "*:7100"),
        (IpAddr::V6(Ipv6Addr::UNSPECIFIED), "*:7100"),
    ];
    for (address, shown) in addresses {
        let local = SocketAddress::new(address, FORBIDDEN);
        let listening = listen(namespace, local, 1)?.map(drop);
        check!(listening == Err(TcpError::NotPermitted), "{shown}: {listening:?}");
        let bound = bind(namespace, local)?.map(drop);
        check!(bound == Err(TcpError::NotPermitted), "datagrams at {shown}: {bound:?}");
        is_noted(from, &format!("listen on {shown} (network rule 2)"))?;
    }
    Ok(())
}

fn no_connecting(namespace: &mut Namespace) -> Outcome {
    let failed = |error: TcpError| format!("{error:?}");
    let (listener, local) = listen(namespace, loopback(0), 4)?.map_err(failed)?;
    let from = next_line()?;
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let connected = connect(namespace, SocketAddress::new(IpAddr::V4(address), FORBIDDEN), 0)?.map(drop);
        check!(connected == Err(TcpError::NotPermitted), "{address}: {connected:?}");
    }
    is_noted(from, "connect on 127.0.0.1:7100 (network rule 3)")?;
    is_noted(from, "connect on *:7100 (network rule 3)")?;
    // No rule covers this version of IP, so it is denied by default.
    let connected = connect(namespace, SocketAddress::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 7101), 0)?.map(drop);
    check!(connected == Err(TcpError::NotPermitted), "::1: {connected:?}");
    is_noted(from, "connect on [::1]:7101 (no network rule allows it)")?;
    let from = next_line()?;
    let (left, _) = connect(namespace, local, TIMEOUT_MS as u32)?.map_err(failed)?;
    let (right, _, listener) = accept(listener)?;
    drop((left, right, listener));
    is_silent(from)
}

fn no_datagrams(namespace: &mut Namespace) -> Outcome {
    let failed = |error: TcpError| format!("{error:?}");
    let (one, _) = bind(namespace, loopback(0))?.map_err(failed)?;
    let (other, there) = bind(namespace, loopback(0))?.map_err(failed)?;
    let from = next_line()?;
    let (sent, one) = send(one, block(b"not this")?, 8, loopback(FORBIDDEN))?;
    check!(sent == Err(TcpError::NotPermitted), "{sent:?}");
    is_noted(from, "datagram on 127.0.0.1:7100 (network rule 4)")?;
    let (sent, one) = send(one, block(b"this")?, 4, there)?;
    check!(sent == Ok(()), "after one that was refused: {sent:?}");
    let (received, other) = receive(other, TIMEOUT_MS as u32)?;
    let data = received.map_err(failed)?.map(|(data, _)| data);
    check!(data.as_deref() == Some(&b"this"[..]), "{data:?} came");
    drop((one, other));
    Ok(())
}

fn no_echo(namespace: &mut Namespace) -> Outcome {
    let from = next_line()?;
    let mut stack = IpStack::open(namespace).map_err(|error| format!("{error}"))?;
    let answered = stack.ping(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99)), 16, 1, 100).map(|_| ());
    check!(matches!(answered, Err(NetError::Ip(IpError::NotPermitted))), "{answered:?}");
    is_noted(from, "ping on 127.0.0.99 (network rule 5)")?;
    drop(stack);
    let from = next_line()?;
    let resolved = resolve(namespace, b"localhost", AddressFamily::Any)?;
    check!(resolved != Err(DnsError::NotPermitted), "names may be resolved");
    is_silent(from)
}
