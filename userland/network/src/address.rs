//! Parsing and formatting of network addresses.
//!
//! Key types: [`Target`] (a host and a port), [`Network`] (an address and its prefix length). Neighbour:
//! [`contracts::address`] has the conversions of records. Deliberately not here: names, which the network stack
//! resolves ([`crate::resolve`]).

use alloc::string::{String, ToString};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use contracts::address::{from_bytes, to_bytes};

/// Maximum bytes of a host name (RFC 1035, section 2.3.4).
pub const NAME_BYTES: usize = 253;
/// Maximum bytes of a label.
const LABEL_BYTES: usize = 63;

/// Returns whether it is the unspecified address, of IPv6 or IPv4.
pub fn is_unspecified(address: [u8; 16]) -> bool {
    from_bytes(address).is_unspecified()
}

/// Error of parsing an address, host or network. Displays as the rest of a sentence that begins with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The text is empty.
    Empty,
    /// It is no address.
    NotAnAddress,
    /// It is neither an address nor a name.
    NotAHost,
    /// The text after the colon is no port.
    BadPort,
    /// A bracket is missing, or is followed by something other than a port.
    BadBrackets,
    /// The address has a zone.
    Zone,
    /// The prefix length is invalid.
    BadPrefix,
}

impl fmt::Display for AddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            AddressError::Empty => "no host is given; write an address or a name",
            AddressError::NotAnAddress => "not an address; write it as 192.0.2.1 or 2001:db8::1",
            AddressError::NotAHost => {
                "neither an address nor a name; a name has letters, digits, `-` and `.`, 253 bytes at most"
            }
            AddressError::BadPort => "the port is not a number from 1 to 65535",
            AddressError::BadBrackets => "an IPv6 address with a port is written in brackets, as [2001:db8::1]:80",
            AddressError::Zone => "an address has no interface name here: leave out `%` and what follows",
            AddressError::BadPrefix => {
                "write the prefix length after a slash, as 192.0.2.0/24: at most 32 for IPv4, 128 for IPv6"
            }
        })
    }
}

/// Parses an address.
///
/// # Errors
/// The text is no address.
pub fn parse_address(text: &str) -> Result<IpAddr, AddressError> {
    match text.trim() {
        "" => Err(AddressError::Empty),
        text if has_zone(text) => Err(AddressError::Zone),
        text => text.parse::<IpAddr>().map(|address| address.to_canonical()).map_err(|_| AddressError::NotAnAddress),
    }
}

/// A host and an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// An address or a name, without brackets.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
}

impl Target {
    /// Parses `name`, `name:80`, `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Target, AddressError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or(AddressError::BadBrackets)?;
            host.parse::<Ipv6Addr>()
                .map_err(|_| if has_zone(host) { AddressError::Zone } else { AddressError::BadBrackets })?;
            let port = match rest {
                "" => None,
                rest => Some(parse_port(rest.strip_prefix(':').ok_or(AddressError::BadBrackets)?)?),
            };
            return Ok(Target { host: host.to_string(), port });
        }
        if text.parse::<Ipv6Addr>().is_ok() {
            return Ok(Target { host: text.to_string(), port: None });
        }
        if has_zone(text) {
            return Err(AddressError::Zone);
        }
        let (host, port) = match text.split_once(':') {
            None => (text, None),
            Some((_, port)) if port.contains(':') => return Err(AddressError::BadBrackets),
            Some((host, port)) => (host, Some(parse_port(port)?)),
        };
        check_host(host)?;
        Ok(Target { host: host.to_string(), port })
    }

    /// Parses a host without a port: an address, which may be in brackets, or a name.
    ///
    /// # Errors
    /// It is no host, or has a port.
    pub fn parse_host(text: &str) -> Result<String, AddressError> {
        match Target::parse(text)? {
            Target { port: Some(_), .. } => Err(AddressError::NotAHost),
            Target { host, .. } => Ok(host),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]", self.host)?;
        } else {
            formatter.write_str(&self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

/// Returns whether an IPv6 address has a zone (RFC 4007, section 11).
fn has_zone(text: &str) -> bool {
    text.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok())
}

fn parse_port(text: &str) -> Result<u16, AddressError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0).ok_or(AddressError::BadPort)
}

/// Returns whether text can be the name or the address of a host. Names need not be ASCII; that is up to the name
/// server.
fn check_host(host: &str) -> Result<(), AddressError> {
    if host.is_empty() {
        return Err(AddressError::Empty);
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Ok(());
    }
    // A trailing dot marks a fully qualified name.
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let is_label = |label: &str| (1..=LABEL_BYTES).contains(&label.len()) && label.chars().all(is_letter);
    // Dotted numbers that are no address are a mistyped one.
    let is_number = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if host.len() > NAME_BYTES || is_number || !labels.into_iter().all(is_label) {
        return Err(AddressError::NotAHost);
    }
    Ok(())
}

/// An address with a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address, of a host or of the network.
    pub address: IpAddr,
    /// At most 32 for IPv4, 128 for IPv6.
    pub prefix_bits: u8,
}

impl Network {
    /// Parses `192.0.2.0/24`, `2001:db8::/32`, an address alone (a full-length prefix), or `default` (all of IPv4).
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Network, AddressError> {
        if text.trim() == "default" {
            return Ok(Network { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix_bits: 0 });
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (parse_address(address)?, Some(bits)),
            None => (parse_address(text)?, None),
        };
        let most = max_bits(address);
        let prefix_bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(AddressError::BadPrefix)?,
        };
        Ok(Network { address, prefix_bits })
    }

    /// Converts from a record. The prefix length is clamped to that of the address.
    pub fn new(address: [u8; 16], prefix_bits: u32) -> Network {
        let address = from_bytes(address);
        let most = max_bits(address);
        Network { address, prefix_bits: u8::try_from(prefix_bits).unwrap_or(most).min(most) }
    }

    /// Returns the network address: the host bits are zero.
    pub fn masked(self) -> Network {
        let bits = u32::from(self.prefix_bits);
        let address = match self.address {
            IpAddr::V4(address) => {
                IpAddr::V4((u32::from(address) & u32::MAX.checked_shl(32 - bits).unwrap_or(0)).into())
            }
            IpAddr::V6(address) => {
                IpAddr::V6((u128::from(address) & u128::MAX.checked_shl(128 - bits).unwrap_or(0)).into())
            }
        };
        Network { address, ..self }
    }
}

fn max_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_bits)
    }
}

/// A MAC address. Displays as `02:00:00:00:00:01`.
pub struct MacAddress(
    /// The bytes.
    pub [u8; 6],
);

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            write!(formatter, "{}{byte:02x}", if index == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<(String, Option<u16>), AddressError> {
        Target::parse(text).map(|target| (target.host, target.port))
    }

    #[test]
    fn addresses_of_both_kinds_go_there_and_back() {
        for text in ["0.0.0.0", "192.0.2.1", "::", "::1", "2001:db8::1", "fe80::1"] {
            let address = parse_address(text).expect("an address");
            assert_eq!(from_bytes(to_bytes(address)), address, "{text}");
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(to_bytes(parse_address("192.0.2.1").expect("an address"))[10..], [0xff, 0xff, 192, 0, 2, 1]);
        assert_eq!(parse_address("::ffff:192.0.2.1").expect("an address").to_string(), "192.0.2.1");
        for wrong in ["1.2.3", "1.2.3.256", "1.2.3.4.5", "a.b.c.d", "2001:db8", ":", "[::1]"] {
            assert_eq!(parse_address(wrong), Err(AddressError::NotAnAddress), "{wrong}");
        }
    }

    #[test]
    fn hosts_and_ports_are_read() {
        let some = |host: &str, port| Ok((host.to_string(), port));
        assert_eq!(target("example.org"), some("example.org", None));
        assert_eq!(target("example.org:8080"), some("example.org", Some(8080)));
        assert_eq!(target("example.org.:1"), some("example.org.", Some(1)));
        assert_eq!(target(" localhost:80 "), some("localhost", Some(80)));
        assert_eq!(target("192.0.2.1:65535"), some("192.0.2.1", Some(65535)));
        assert_eq!(target("::1"), some("::1", None));
        assert_eq!(target("[::1]"), some("::1", None));
        assert_eq!(target("[2001:db8::1]:80"), some("2001:db8::1", Some(80)));
        assert_eq!(target("b\u{fc}cher.example"), some("b\u{fc}cher.example", None));
    }

    #[test]
    fn invalid_hosts_are_refused_with_a_reason() {
        assert_eq!(target(""), Err(AddressError::Empty));
        assert_eq!(target(":80"), Err(AddressError::Empty));
        for wrong in ["a:", "a:0", "a:65536", "a:-1", "a:+1", "a:http"] {
            assert_eq!(target(wrong), Err(AddressError::BadPort), "{wrong}");
        }
        for wrong in ["[::1", "[::1]80", "[example.org]:80", "[]", "2001:db8::1::80", "1:2:3"] {
            assert_eq!(target(wrong), Err(AddressError::BadBrackets), "{wrong}");
        }
        for wrong in ["fe80::1%net0", "[fe80::1%net0]", "[fe80::1%25net0]:80"] {
            assert_eq!(target(wrong), Err(AddressError::Zone), "{wrong}");
        }
        assert_eq!(parse_address("fe80::1%1"), Err(AddressError::Zone));
        for wrong in ["a b", "a..b", ".a", "a/b", "1.2.3", "1.2.3.256", "a\nb", "@", &"a".repeat(64), &"a.".repeat(200)]
        {
            assert_eq!(target(wrong), Err(AddressError::NotAHost), "{wrong}");
        }
    }

    #[test]
    fn a_target_is_shown_as_it_was_written() {
        for text in ["example.org", "example.org:80", "[2001:db8::1]:80", "192.0.2.1:1"] {
            assert_eq!(Target::parse(text).map(|target| target.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn networks_are_parsed_and_masked() {
        let masked = |text: &str| Network::parse(text).map(|network| network.masked().to_string());
        assert_eq!(masked("192.0.2.77/24").as_deref(), Ok("192.0.2.0/24"));
        assert_eq!(masked("192.0.2.77").as_deref(), Ok("192.0.2.77/32"));
        assert_eq!(masked("2001:db8:1::7/32").as_deref(), Ok("2001:db8::/32"));
        assert_eq!(masked("::/0").as_deref(), Ok("::/0"));
        assert_eq!(masked("default").as_deref(), Ok("0.0.0.0/0"));
        for wrong in ["192.0.2.0/33", "::/129", "192.0.2.0/", "192.0.2.0/x", "192.0.2.0/-1", "192.0.2.0/256"] {
            assert_eq!(Network::parse(wrong), Err(AddressError::BadPrefix), "{wrong}");
        }
        assert_eq!(Network::new(to_bytes(IpAddr::V4(Ipv4Addr::LOCALHOST)), 9000).prefix_bits, 32);
    }

    #[test]
    fn a_card_has_six_bytes_with_colons() {
        assert_eq!(MacAddress([2, 0, 0, 0xab, 0, 1]).to_string(), "02:00:00:ab:00:01");
    }
}
