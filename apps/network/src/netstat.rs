//! Shows connections, listeners and the counters of the network stack.

use alloc::format;
use alloc::string::{String, ToString};

use client::namespace::Namespace;
use contracts::{NetCounters, SocketAddress, SocketRecord};
use network::address::{from_bytes, is_unspecified};
use network::ip::IpStack;
use network::{IP, NetError};
use stdio::{Output, report};
use text::{Align, Table, count};

sip::startup!("netstat/manifest.toml");

/// Prints the sockets or the counters.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let found = IpStack::open(&mut namespace).and_then(|mut stack| {
        if startup.counters {
            stack.counters().map(|counters| of_counters(&counters))
        } else {
            sockets(&mut stack, startup.listening)
        }
    });
    match found {
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(error) => report::path_error(IP, &error),
    }
}

/// `protocol` of a [`SocketRecord`].
const TCP: u16 = 1;
/// `state` of a listening socket.
const LISTEN: u16 = 1;

fn sockets(stack: &mut IpStack, only_listening: bool) -> Result<String, NetError> {
    let mut sockets = stack.sockets()?;
    if only_listening {
        sockets.retain(|socket| if socket.protocol == TCP { socket.state == LISTEN } else { socket.remote_port == 0 });
    }
    sockets.sort_by_key(|socket| {
        (socket.protocol, socket.state, socket.local_port, socket.remote_address, socket.remote_port)
    });
    Ok(of_sockets(&sockets))
}

fn of_sockets(sockets: &[SocketRecord]) -> String {
    let mut table = Table::new(&[
        ("PROTOCOL", Align::Left),
        ("LOCAL", Align::Left),
        ("REMOTE", Align::Left),
        ("STATE", Align::Left),
        ("TO READ", Align::Right),
        ("TO SEND", Align::Right),
    ]);
    for socket in sockets {
        let protocol = match socket.protocol {
            TCP => "TCP".into(),
            2 => "UDP".into(),
            3 => "ICMP".into(),
            other => other.to_string(),
        };
        let state = if socket.protocol == TCP { state_word(socket.state) } else { "" };
        table.row([
            protocol,
            end(socket.local_address, socket.local_port),
            end(socket.remote_address, socket.remote_port),
            state.into(),
            count(socket.receive_queued.into()),
            count(socket.send_queued.into()),
        ]);
    }
    table.render()
}

/// Formats an address and a port, either of which may be a wildcard.
fn end(address: [u8; 16], port: u16) -> String {
    match (is_unspecified(address), port) {
        (true, 0) => "-".into(),
        (true, port) => format!("any:{port}"),
        (false, 0) => from_bytes(address).to_string(),
        (false, port) => SocketAddress::new(from_bytes(address), port).to_string(),
    }
}

fn state_word(state: u16) -> &'static str {
    match state {
        0 => "closed",
        LISTEN => "listens",
        2 => "SYN sent",
        3 => "SYN received",
        4 => "established",
        5 => "FIN wait 1",
        6 => "FIN wait 2",
        7 => "close wait",
        8 => "closing",
        9 => "last ACK",
        10 => "time wait",
        _ => "unknown",
    }
}

fn of_counters(counters: &NetCounters) -> String {
    let mut table = Table::new(&[("", Align::Right), ("", Align::Left)]);
    for (number, what) in [
        (counters.tcp_sockets, "TCP sockets there are"),
        (counters.tcp_connected, "connections made"),
        (counters.tcp_accepted, "connections accepted"),
        (counters.tcp_overflowed, "connections dropped because the backlog was full"),
        (counters.tcp_reset, "connections reset"),
        (counters.tcp_retransmitted, "segments retransmitted"),
        (counters.malformed, "packets malformed or with a bad checksum"),
        (counters.udp_overflowed, "datagrams dropped because the receive buffer was full"),
    ] {
        table.row([count(number), what.into()]);
    }
    table.body()
}

#[cfg(test)]
mod tests {
    use network::address::{parse_address, to_bytes};

    use super::*;

    #[test]
    fn sockets_are_shown_with_both_ends() {
        let address = |text: &str| to_bytes(parse_address(text).expect("an address"));
        let listener = SocketRecord {
            local_address: [0; 16],
            remote_address: [0; 16],
            local_port: 80,
            remote_port: 0,
            protocol: TCP,
            state: LISTEN,
            receive_queued: 0,
            send_queued: 0,
        };
        let connection = SocketRecord {
            local_address: address("10.0.2.15"),
            remote_address: address("2001:db8::1"),
            remote_port: 50000,
            state: 4,
            receive_queued: 12_345,
            ..listener
        };
        let datagrams = SocketRecord { local_port: 68, protocol: 2, state: 0, ..listener };
        assert_eq!(
            of_sockets(&[listener, connection, datagrams]),
            "PROTOCOL  LOCAL         REMOTE               STATE        TO READ  TO SEND\n\
             TCP       any:80        -                    listens            0        0\n\
             TCP       10.0.2.15:80  [2001:db8::1]:50000  established   12,345        0\n\
             UDP       any:68        -                                       0        0\n"
        );
    }
}
