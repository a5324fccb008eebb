//! Rights: what a root's or certificate's key may publish beyond scripts.
//!
//! Rights narrow along a certificate chain, as publishers do: a certificate never has a right that its issuer lacks.
//! Deliberately not here: permissions, which a program requests in its manifest regardless of publisher.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A set of rights of a publisher's key.
///
/// In a certificate it is one byte, with a bit for each right; unknown bits make it invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Rights(u8);

impl Rights {
    /// No right: scripts only.
    pub const NONE: Rights = Rights(0);
    /// Native code for the software domain. Only the publisher's compiler and builder keep such code out of the memory
    /// of other programs and the kernel, so this right is for the makers of the system.
    pub const NATIVE: Rights = Rights(1);
    /// All rights.
    pub const ALL: Rights = Rights::NATIVE;

    /// Returns whether the set includes every right of `other`.
    pub const fn contains(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights of both.
    #[must_use]
    pub const fn union(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// The byte of a certificate.
    pub const fn to_byte(self) -> u8 {
        self.0
    }

    /// Decodes the byte of a certificate.
    pub const fn from_byte(byte: u8) -> Option<Rights> {
        if byte & !Rights::ALL.0 == 0 { Some(Rights(byte)) } else { None }
    }
}

impl From<Rights> for u8 {
    fn from(rights: Rights) -> u8 {
        rights.0
    }
}

impl TryFrom<u8> for Rights {
    type Error = &'static str;

    fn try_from(byte: u8) -> Result<Rights, &'static str> {
        Rights::from_byte(byte).ok_or("no set of rights")
    }
}

/// `native`, or `no rights`.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.contains(Rights::NATIVE) { "native" } else { "no rights" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_unknown_bits_are_refused() {
        for byte in 0..=u8::MAX {
            let rights = Rights::from_byte(byte);
            assert_eq!(rights.map(Rights::to_byte), (byte <= 1).then_some(byte));
        }
    }

    #[test]
    fn a_set_contains_itself_and_less() {
        assert!(Rights::NATIVE.contains(Rights::NATIVE) && Rights::NATIVE.contains(Rights::NONE));
        assert!(!Rights::NONE.contains(Rights::NATIVE));
        assert_eq!(Rights::NONE.union(Rights::NATIVE), Rights::NATIVE);
    }
}
