//! IP addresses as text.

use core::fmt::{self, Write};
use core::net::{IpAddr, Ipv6Addr};

use contracts::SocketAddress;

/// Length of the longest address.
const MAX_LETTERS: usize = 45;

/// An address as text, without allocation.
#[derive(Clone, Copy)]
pub(crate) struct AddressText {
    letters: [u8; MAX_LETTERS],
    used: u8,
}

impl AddressText {
    /// Formats a client's address without its port; mapped IPv4 addresses as IPv4.
    pub(crate) fn of(address: &SocketAddress) -> AddressText {
        let mut text = AddressText { letters: [0; MAX_LETTERS], used: 0 };
        // Any address fits.
        let _ = write!(text, "{}", address.ip());
        text
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.letters[..usize::from(self.used)]).unwrap_or("")
    }
}

impl Write for AddressText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let used = usize::from(self.used);
        let room = self.letters.get_mut(used..used + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len() as u8;
        Ok(())
    }
}

/// Parses a configured address; the empty text is the unspecified address.
pub(crate) fn parse(text: &str, port: u16) -> Option<SocketAddress> {
    let address = match text {
        "" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => text.parse().ok()?,
    };
    Some(SocketAddress::new(address, port))
}
