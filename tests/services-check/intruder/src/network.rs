//! Listening on a foreign port, sending to a forbidden address, and using a right delegated to another.

use alloc::format;
use alloc::string::{String, ToString};
use core::net::{IpAddr, Ipv4Addr};

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::tcp::{self, TcpError};
use contracts::{SocketAddress, udp};
use sip::Deadline;

use crate::{Attack, Intruder, Outcome, TCP_SLOT, check, comrade, send};

pub(crate) const ATTACKS: &[(&str, Attack)] = &[
    ("listen", listen),
    ("connect", connect),
    ("use-and-pass-on", use_and_pass_on),
    ("use-what-was-passed-on", use_what_was_passed_on),
];

type Stack = tcp::Imp<tcp::states::Ready>;

const UDP: &str = "/service/udp";
const TIMEOUT_MS: u64 = 10_000;

fn stack(namespace: &mut Namespace) -> Result<Stack, String> {
    network::open_tcp(namespace).map_err(|error| format!("{}: {error}", network::TCP))
}

fn port(intruder: &Intruder) -> Result<u16, String> {
    intruder.target.parse().map_err(|_| format!("`{}` is no port", intruder.target))
}

/// Tries to listen; returns the result and the stack.
fn listen_at(stack: Stack, address: IpAddr, port: u16) -> Result<(Result<(), TcpError>, Stack), String> {
    match stack.listen(SocketAddress::new(address, port), 1).receive_by(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(tcp::ImpReadyAfterListen::Listening { next, .. }) => Ok((Ok(()), next)),
        Ok(tcp::ImpReadyAfterListen::Failed { error, next }) => Ok((Err(error), next)),
        Ok(tcp::ImpReadyAfterListen::ChannelClosed(_)) => Err(String::from("the network stack ended")),
        Err(_) => Err(String::from("the network stack does not answer")),
    }
}

fn listen(intruder: &mut Intruder) -> Outcome {
    let port = port(intruder)?;
    let mut stack = stack(intruder.namespace()?)?;
    let localhost = Ipv4Addr::LOCALHOST;
    let addresses = [
        IpAddr::V4(localhost),
        IpAddr::V6(localhost.to_ipv6_mapped()),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
    ];
    for address in addresses {
        let (result, next) = listen_at(stack, address, port)?;
        stack = next;
        check!(result == Err(TcpError::NotPermitted), "listening at {address} port {port}: {result:?}");
    }
    let (importer, exporter) = udp::new_channel().map_err(|status| status.text().to_string())?;
    intruder.namespace()?.bind(UDP, exporter).map_err(|error: AccessError| format!("{UDP}: {error}"))?;
    let udp::ImpStart::Success { next } = importer.receive() else { return Err(format!("{UDP}: refused")) };
    match next.bind(SocketAddress::new(IpAddr::V4(localhost), port)).receive() {
        udp::ImpReadyAfterBind::Failed { error: TcpError::NotPermitted, .. } => Ok(()),
        udp::ImpReadyAfterBind::Failed { error, .. } => Err(format!("datagrams at port {port}: {error:?}")),
        _ => Err(format!("datagrams at port {port}: it may")),
    }
}

fn connect(intruder: &mut Intruder) -> Outcome {
    let port = port(intruder)?;
    let mut stack = stack(intruder.namespace()?)?;
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let connecting = stack.connect(SocketAddress::new(IpAddr::V4(address), port), 1000);
        stack = match connecting.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
            Ok(tcp::ImpReadyAfterConnect::Failed { error: TcpError::NotPermitted, next }) => next,
            Ok(tcp::ImpReadyAfterConnect::Failed { error, .. }) => {
                return Err(format!("connecting to {address} port {port}: {error:?}"));
            }
            _ => return Err(format!("connecting to {address} port {port}: it may")),
        };
    }
    Ok(())
}

/// A delegated endpoint works for the delegate only, not when passed on.
fn use_and_pass_on(intruder: &mut Intruder) -> Outcome {
    let port = port(intruder)?;
    let stack = intruder.tcp.take().ok_or("nobody delegated anything to it")?;
    let (result, stack) = listen_at(stack, IpAddr::V4(Ipv4Addr::LOCALHOST), port)?;
    check!(result == Ok(()), "what was delegated to it is refused: {result:?}");
    let child = comrade("use-what-was-passed-on", &intruder.target)?;
    let child = child.endpoint(TCP_SLOT, stack).map_err(|status| format!("passing it on: {}", status.text()))?;
    send(child)
}

/// Uses a right that was forwarded without delegation, and one delegated by a process that did not receive it from the
/// principal it acts for.
fn use_what_was_passed_on(intruder: &mut Intruder) -> Outcome {
    let port = port(intruder)?;
    let stack = intruder.tcp.take().ok_or("nobody passed anything on to it")?;
    let (result, stack) = listen_at(stack, IpAddr::V4(Ipv4Addr::LOCALHOST), port)?;
    check!(result == Err(TcpError::NotPermitted), "what was passed on: {result:?}");
    sip::principal::delegate(&stack).map_err(|status| format!("delegating: {}", status.text()))?;
    let (result, stack) = listen_at(stack, IpAddr::V4(Ipv4Addr::LOCALHOST), port)?;
    check!(result == Err(TcpError::NotPermitted), "what it delegates to nobody: {result:?}");
    // A chain of accomplices, each delegating to the next.
    if sip::principal::own().matches(" + ").count() < 3 {
        let child = comrade("use-what-was-passed-on", &intruder.target)?;
        let child = child.endpoint(TCP_SLOT, stack).map_err(|status| format!("passing it on: {}", status.text()))?;
        send(child)?;
    }
    Ok(())
}
