//! The place of a rule: an address prefix and a port range.

use core::net::IpAddr;

use crate::error::Fault;
use crate::{End, NamedPort};

/// Addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// `None`: all addresses of both versions.
    network: Option<Network>,
    first_port: u16,
    last_port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_beginning(u128::from(network.to_bits()) << 96, u128::from(address.to_bits()) << 96, self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_beginning(network.to_bits(), address.to_bits(), self.bits)
            }
            _ => false,
        }
    }
}

fn same_beginning(one: u128, other: u128, bits: u8) -> bool {
    (one ^ other).checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
}

impl Place {
    /// All addresses and ports.
    pub const EVERYWHERE: Place = Place { network: None, first_port: 0, last_port: u16::MAX };

    /// Parses `*`, `192.0.2.1`, `192.0.2.0/24:80`, `[2001:db8::]/32:8000-8999` or `*:NAME`.
    pub fn parse(text: &str, ports: &[NamedPort<'_>]) -> Result<Place, Fault> {
        let (network, after) = Network::parse(text)?;
        let (first_port, last_port) = match after {
            None => (0, u16::MAX),
            Some(range) => match range.split_once('-') {
                // A port name may contain a hyphen.
                _ if ports.iter().any(|named| named.name == range) => {
                    let port = parse_port(range, ports)?;
                    (port, port)
                }
                Some((first, last)) => (parse_port(first, ports)?, parse_port(last, ports)?),
                None => {
                    let port = parse_port(range, ports)?;
                    (port, port)
                }
            },
        };
        if first_port > last_port {
            return Err(Fault::PortsReversed);
        }
        Ok(Place { network, first_port, last_port })
    }

    /// Whether it has a port range.
    pub fn names_ports(&self) -> bool {
        (self.first_port, self.last_port) != (0, u16::MAX)
    }

    /// Whether it contains all of the end.
    pub fn covers(&self, end: &End) -> bool {
        let has_address = match (&self.network, end.address) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(network), Some(address)) => network.has(address),
        };
        has_address && self.has_port(end.port)
    }

    /// Whether it intersects the end.
    pub fn touches(&self, end: &End) -> bool {
        let has_address = match (&self.network, end.address) {
            (None, _) | (_, None) => true,
            (Some(network), Some(address)) => network.has(address),
        };
        // A port chosen by the stack may be any of them.
        has_address && (end.port == 0 || self.has_port(end.port))
    }

    fn has_port(&self, port: u16) -> bool {
        (self.first_port..=self.last_port).contains(&port)
    }
}

impl Network {
    /// Parses the part before the ports; also returns the ports.
    fn parse(text: &str) -> Result<(Option<Network>, Option<&str>), Fault> {
        if let Some(rest) = text.strip_prefix('*') {
            return match rest {
                "" => Ok((None, None)),
                rest => match rest.strip_prefix(':') {
                    Some(ports) => Ok((None, Some(ports))),
                    None => Err(Fault::AfterStar),
                },
            };
        }
        let (address, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or(Fault::BracketOpen)?;
                if address.parse::<core::net::Ipv4Addr>().is_ok() {
                    return Err(Fault::BracketsOfVersion4);
                }
                (address, rest)
            }
            None if text.bytes().filter(|&byte| byte == b':').count() > 1 => return Err(Fault::NoBrackets),
            None => text.split_at(text.find(['/', ':']).unwrap_or(text.len())),
        };
        let address: IpAddr = address.parse().map_err(|_| Fault::BadAddress)?;
        if address.to_canonical() != address {
            return Err(Fault::MappedAddress);
        }
        let (bits, rest) = match rest.strip_prefix('/') {
            None => (None, rest),
            Some(rest) => {
                let (bits, rest) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
                (Some(bits), rest)
            }
        };
        let ports = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':').ok_or(Fault::AfterAddress)?),
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => decimal(bits).filter(|&bits| bits <= most.into()).ok_or(Fault::BadBits)? as u8,
        };
        let network = Network { address, bits };
        if !network.has_no_more_than_its_bits() {
            return Err(Fault::BitsBehindNetwork);
        }
        // The unspecified address means all addresses elsewhere; a rule for it as a host would match none.
        if address.is_unspecified() && bits == most {
            return Err(Fault::Unspecified);
        }
        Ok((Some(network), ports))
    }

    fn has_no_more_than_its_bits(&self) -> bool {
        let address = match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        address.checked_shl(self.bits.into()).unwrap_or(0) == 0
    }
}

fn parse_port(text: &str, ports: &[NamedPort<'_>]) -> Result<u16, Fault> {
    if let Some(named) = ports.iter().find(|named| named.name == text) {
        return Ok(named.port);
    }
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => decimal(text).and_then(|port| port.try_into().ok()).ok_or(Fault::BadPort),
        false => Err(Fault::UnknownPortName),
    }
}

/// Digits only: Rust would parse `+80`.
fn decimal(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
