//! The sockets that the program is given: its own calls open none.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use client::namespace::Namespace;
use contracts::SocketAddress;
use contracts::dns::AddressFamily;
use network::address::Target;

use crate::abi::rights;
use crate::descriptors::Descriptor;
use crate::socket::{Connection, Listener};

/// Timeout of a connection attempt, in milliseconds.
const CONNECT_MS: u32 = 10_000;

/// Opens the sockets, the listening ones first.
///
/// # Errors
/// A text is no address, or the network refuses; a sentence.
pub fn sockets(namespace: &mut Namespace, listen: &[String], connect: &[String]) -> Result<Vec<Descriptor>, String> {
    let mut opened = Vec::with_capacity(listen.len() + connect.len());
    for asked in listen {
        let local = local(asked)?;
        let listener = Listener::new(namespace, local).map_err(|error| format!("--tcp-listen {asked}: {error}"))?;
        opened.push(Descriptor::listener(listener));
    }
    for asked in connect {
        opened.push(connected(namespace, asked).map_err(|error| format!("--tcp-connect {asked}: {error}"))?);
    }
    Ok(opened)
}

fn connected(namespace: &mut Namespace, asked: &str) -> Result<Descriptor, String> {
    let (host, port) = target(asked)?;
    let text = |error: network::NetError| format!("{error}");
    let addresses = network::resolve(namespace, &host, AddressFamily::Any).map_err(text)?;
    let connection = network::connect(namespace, &addresses, port, CONNECT_MS).map_err(text)?;
    let endpoint = connection.into_endpoint().ok_or("the connection is closed")?;
    let connection = Connection::new(endpoint).map_err(|_| "the network stack has no memory left; try again")?;
    Ok(Descriptor::connection(connection, rights::OF_CONNECTION, 0))
}

fn target(asked: &str) -> Result<(String, u16), String> {
    match Target::parse(asked).map_err(|error| format!("{error}"))? {
        Target { host, port: Some(port) } => Ok((host, port)),
        Target { .. } => Err("the port is missing; write ADDRESS:PORT".into()),
    }
}

fn local(asked: &str) -> Result<SocketAddress, String> {
    let mistake = |error: String| format!("--tcp-listen {asked}: {error}");
    let (host, port) = target(asked).map_err(mistake)?;
    let address: IpAddr = network::address::parse_address(&host).map_err(|error| mistake(format!("{error}")))?;
    Ok(SocketAddress::new(address, port))
}

/// Variables that tell the program which descriptors its sockets are, from the first on.
pub fn variables(first: usize, listening: usize, connected: usize) -> Vec<String> {
    let mut variables = Vec::new();
    for (name, first, count) in [("LISTEN", first, listening), ("CONNECT", first + listening, connected)] {
        if count > 0 {
            variables.extend([format!("{name}_FDS={count}"), format!("{name}_FDS_FIRST={first}")]);
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_at_has_a_port_and_is_no_name() {
        assert_eq!(local("127.0.0.1:80").map(|address| format!("{address}")), Ok("127.0.0.1:80".into()));
        assert_eq!(local("[::]:8080").map(|address| address.port), Ok(8080));
        // The program could not learn which port it got.
        for (asked, part) in [
            ("127.0.0.1", "the port is missing"),
            ("[::]:0", "the port is not a number"),
            ("localhost:80", "--tcp-listen localhost:80"),
            ("", "--tcp-listen"),
        ] {
            let refused = local(asked).expect_err("no address");
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn the_program_is_told_where_its_sockets_are() {
        assert!(variables(3, 0, 0).is_empty());
        assert_eq!(variables(5, 2, 0), ["LISTEN_FDS=2", "LISTEN_FDS_FIRST=5"]);
        let both = ["LISTEN_FDS=1", "LISTEN_FDS_FIRST=3", "CONNECT_FDS=2", "CONNECT_FDS_FIRST=4"];
        assert_eq!(variables(3, 1, 2), both);
    }
}
