//! Certificates: delegation of publishers from one key to another.
//!
//! All numbers are little-endian. A certificate is: magic (8 bytes), key (32 bytes), issuer's key (32 bytes), serial
//! number (u64), permission (u8: 0 sign, 1 certify), rights (u8, see [`Rights`]), length of the publisher pattern
//! (u8), the pattern, then the issuer's Ed25519 signature (64 bytes) over the SHA-256 of all that precedes. A chain is
//! a concatenation of certificates: first that of the signing key, then that of its issuer, the last one issued by a
//! root.

use alloc::string::String;
use alloc::vec::Vec;

use manifest_model::{PublicKey, Rights, trust};

use crate::TrustError;

const MAGIC: &[u8; 8] = b"SINGCRT2";
/// Size of a certificate without its pattern, in bytes.
const FIXED_BYTES: usize = 8 + 32 + 32 + 8 + 1 + 1 + 1 + 64;

/// Maximum number of certificates between a root and a package.
pub const CHAIN_MAX: usize = 3;

/// Maximum size of a chain, in bytes.
pub const CHAIN_BYTES_MAX: usize = CHAIN_MAX * (FIXED_BYTES + 65);

/// Permission of a certified key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// Sign packages, but no certificates.
    Sign,
    /// Sign certificates, but no packages: such a key can stay off line.
    Certify,
}

impl May {
    /// Returns the keyword for it.
    pub const fn word(self) -> &'static str {
        match self {
            May::Sign => "sign",
            May::Certify => "certify",
        }
    }

    /// Parses a keyword.
    pub fn from_word(word: &str) -> Option<May> {
        [May::Sign, May::Certify].into_iter().find(|may| may.word() == word)
    }
}

/// An issuer's statement that a key may sign for a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The publisher's name, or `name-*` for all names with that prefix.
    pub publishers: String,
    /// The certified key.
    pub key: PublicKey,
    /// Serial number for revocation; random, so that it is unique.
    pub serial: u64,
    /// Permission of the key.
    pub may: May,
    /// Maximum rights of packages signed by the key, and by the keys that it certifies.
    pub rights: Rights,
    /// The issuer's key.
    pub issuer: PublicKey,
    /// The issuer's signature.
    pub signature: [u8; 64],
}

impl Certificate {
    /// Returns the bytes whose SHA-256 the issuer signs.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.key.0);
        out.extend_from_slice(&self.issuer.0);
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.push(match self.may {
            May::Sign => 0,
            May::Certify => 1,
        });
        out.push(self.rights.to_byte());
        // A pattern has at most 65 bytes; see `is_certified_publishers`.
        let pattern = &self.publishers.as_bytes()[..self.publishers.len().min(255)];
        out.push(pattern.len() as u8);
        out.extend_from_slice(pattern);
        out
    }

    /// Serializes the certificate.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.signed_bytes();
        out.extend_from_slice(&self.signature);
        out
    }

    /// Parses the certificates of a chain, without verifying them.
    ///
    /// # Errors
    /// The bytes are malformed, or there are more than [`CHAIN_MAX`] certificates.
    pub fn chain(bytes: &[u8]) -> Result<Vec<Certificate>, TrustError> {
        let mut rest = bytes;
        let mut chain = Vec::new();
        while !rest.is_empty() {
            if chain.len() == CHAIN_MAX {
                return Err(TrustError::ChainTooLong);
            }
            let offset = bytes.len() - rest.len();
            let (certificate, after) = read(rest).ok_or(TrustError::BadCertificate { offset })?;
            chain.push(certificate);
            rest = after;
        }
        Ok(chain)
    }

    /// Serializes a chain.
    pub fn encode_chain(chain: &[Certificate]) -> Vec<u8> {
        chain.iter().flat_map(Certificate::encode).collect()
    }
}

fn read(bytes: &[u8]) -> Option<(Certificate, &[u8])> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (key, rest) = rest.split_first_chunk::<32>()?;
    let (issuer, rest) = rest.split_first_chunk::<32>()?;
    let (serial, rest) = rest.split_first_chunk::<8>()?;
    let (&[may, rights, length], rest) = rest.split_first_chunk::<3>()?;
    let (publishers, rest) = rest.split_at_checked(usize::from(length))?;
    let (signature, rest) = rest.split_first_chunk::<64>()?;
    let publishers = core::str::from_utf8(publishers).ok().filter(|text| trust::is_certified_publishers(text))?;
    let may = match may {
        0 => May::Sign,
        1 => May::Certify,
        _ => return None,
    };
    let certificate = Certificate {
        publishers: publishers.into(),
        key: PublicKey(*key),
        serial: u64::from_le_bytes(*serial),
        may,
        rights: Rights::from_byte(rights)?,
        issuer: PublicKey(*issuer),
        signature: *signature,
    };
    (magic == MAGIC).then_some((certificate, rest))
}
