//! Trust anchors of a system: roots and their scope, revocations, and the policy for unsigned packages.
//!
//! Key types: [`Trust`], [`Root`], [`Policy`], [`Revoked`]. Neighbours: certificates (crate `package`) delegate a
//! root's right; `package-check` evaluates it. A `Trust` is part of every [`SystemManifest`](crate::SystemManifest),
//! so that it is sealed with the system.
//!
//! A publisher pattern is an exact name (`acme`), a name and a hyphen as prefix (`acme-*`, which excludes `acme`
//! itself), or, for roots only, `*`.
//!
//! Deliberately not here: times. A system has no clock to trust before trust is established, so nothing expires; keys
//! and certificates are revoked instead.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Rights, is_name};

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Placeholder for the key in an unsigned package.
    pub const NONE: PublicKey = PublicKey([0; 32]);

    /// Parses the 64 hexadecimal digits of `Display`.
    pub fn parse(text: &str) -> Option<PublicKey> {
        let mut key = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(PublicKey(key))
    }
}

/// 64 hexadecimal digits; with `{:#}` the first 16 and `...`, enough to distinguish keys.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() { 8 } else { 32 };
        for byte in &self.0[..shown] {
            write!(f, "{byte:02x}")?;
        }
        if f.alternate() { f.write_str("...") } else { Ok(()) }
    }
}

/// A trust anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// The key.
    pub key: PublicKey,
    /// Pattern of the publishers whose packages and certificates it may sign.
    pub publishers: String,
    /// Whether it may sign whole systems. Such a root can replace everything, roots included.
    pub systems: bool,
    /// Rights of its packages and certificates, unless it may sign whole systems.
    pub rights: Rights,
}

impl Root {
    /// Returns the effective rights of its packages and certificates. A signer of whole systems has every right, since
    /// it can sign a system that grants them.
    pub fn effective_rights(&self) -> Rights {
        if self.systems { Rights::ALL } else { self.rights }
    }
}

/// A revocation, which overrides any signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Revoked {
    /// Certificates with this serial number, of any issuer.
    Serial(u64),
    /// The key, as a root, an issuer and a signer.
    Key(PublicKey),
}

impl Revoked {
    /// Parses the 16 digits of a serial number or the 64 of a key, all hexadecimal.
    pub fn parse(text: &str) -> Option<Revoked> {
        let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.len() {
            16 if digits => u64::from_str_radix(text, 16).ok().map(Revoked::Serial),
            _ => PublicKey::parse(text).map(Revoked::Key),
        }
    }
}

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Revoked::Serial(serial) => write!(f, "{serial:016x}"),
            Revoked::Key(key) => key.fmt(f),
        }
    }
}

/// Which packages a system accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// Only packages signed by a root or a delegate of one.
    SignedOnly,
    /// Of those, the packages of publishers that one of these patterns covers.
    AllowPublisher(Vec<String>),
    /// Signed ones; and unsigned ones, which may be installed but not run in the kernel's own hardware domain.
    QuarantineUnsigned,
}

impl Policy {
    /// Keyword in a system manifest.
    pub const fn word(&self) -> &'static str {
        match self {
            Policy::SignedOnly => "signed-only",
            Policy::AllowPublisher(_) => "allow-publisher",
            Policy::QuarantineUnsigned => "quarantine-unsigned",
        }
    }
}

/// Trust anchors of a system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Trust anchors. A key may occur with several patterns.
    pub roots: Vec<Root>,
    /// Revocations.
    pub revoked: Vec<Revoked>,
    /// Which packages are accepted.
    pub policy: Policy,
}

/// No roots, and signed packages only: nothing is accepted.
impl Default for Trust {
    fn default() -> Trust {
        Trust { roots: Vec::new(), revoked: Vec::new(), policy: Policy::SignedOnly }
    }
}

impl Trust {
    /// The trust of a system with one root that may sign everything.
    pub fn in_key(key: PublicKey) -> Trust {
        let root = Root { key, publishers: String::from("*"), systems: true, rights: Rights::ALL };
        Trust { roots: Vec::from([root]), ..Trust::default() }
    }

    /// Returns whether the key is revoked.
    pub fn is_revoked_key(&self, key: PublicKey) -> bool {
        self.revoked.contains(&Revoked::Key(key))
    }

    /// Returns whether certificates with this serial number are revoked.
    pub fn is_revoked_serial(&self, serial: u64) -> bool {
        self.revoked.contains(&Revoked::Serial(serial))
    }

    /// Returns whether the key may sign whole systems.
    pub fn may_sign_systems(&self, key: PublicKey) -> bool {
        self.roots.iter().any(|root| root.key == key && root.systems) && !self.is_revoked_key(key)
    }

    /// Returns whether the policy accepts packages of the publisher.
    pub fn takes(&self, publisher: &str) -> bool {
        match &self.policy {
            Policy::SignedOnly | Policy::QuarantineUnsigned => true,
            Policy::AllowPublisher(patterns) => patterns.iter().any(|pattern| covers(pattern, publisher)),
        }
    }
}

/// Returns whether the text is a valid publisher pattern of a root.
pub fn is_publishers(pattern: &str) -> bool {
    pattern == "*" || is_certified_publishers(pattern)
}

/// Returns whether the text is a valid publisher pattern of a certificate: a name or `name-*`.
pub fn is_certified_publishers(pattern: &str) -> bool {
    is_name(pattern.strip_suffix("-*").unwrap_or(pattern))
}

/// Returns whether the pattern matches the publisher.
pub fn covers(pattern: &str, publisher: &str) -> bool {
    is_name(publisher) && is_within(publisher, pattern)
}

/// Whether everything that the pattern `inner` covers is also covered by `outer`. What is no pattern covers nothing.
pub fn is_within(inner: &str, outer: &str) -> bool {
    if !is_publishers(inner) || !is_publishers(outer) {
        return false;
    }
    if outer == "*" || inner == outer {
        return true;
    }
    // The prefix includes the hyphen of `acme-*`: `acmeevil` does not match.
    let Some(prefix) = outer.strip_suffix('*') else { return false };
    let inner = inner.strip_suffix('*').unwrap_or(inner);
    inner.len() > prefix.len() && inner.starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn publishers_are_within_each_other_as_they_say() {
        for (inner, outer, expected) in [
            ("acme", "acme", true),
            ("acme", "*", true),
            ("acme-*", "*", true),
            ("*", "*", true),
            ("*", "acme-*", false),
            ("*", "acme", false),
            ("acme", "acme-*", false),
            ("acme-", "acme-*", false),
            ("acme-tools", "acme-*", true),
            ("acme-tools-*", "acme-*", true),
            ("acme-*", "acme-*", true),
            ("acme-*", "acme-tools-*", false),
            ("acme-*", "acme", false),
            ("acmeevil", "acme-*", false),
            ("acmeevil-*", "acme-*", false),
            ("acme", "acm*", false),
            ("", "", false),
            ("", "*", false),
            ("ACME", "*", false),
            ("a.b", "*", false),
        ] {
            assert_eq!(is_within(inner, outer), expected, "{inner} within {outer}");
        }
        assert!(covers("acme-*", "acme-tools") && !covers("*", "acme-*") && !covers("acme-*", "acme-*"));
    }

    #[test]
    fn keys_and_serial_numbers_read_back() {
        let key = PublicKey(core::array::from_fn(|index| index as u8 * 8));
        assert_eq!(PublicKey::parse(&key.to_string()), Some(key));
        assert_eq!(PublicKey::parse(&key.to_string()[1..]), None);
        assert_eq!(PublicKey::parse(&"é".repeat(32)), None);
        for revoked in [Revoked::Key(key), Revoked::Serial(0), Revoked::Serial(u64::MAX)] {
            assert_eq!(Revoked::parse(&revoked.to_string()), Some(revoked));
        }
        assert_eq!(Revoked::parse("+123456789abcdef"), None);
        assert_eq!(Revoked::parse("12"), None);
    }
}
