//! Why a signature is not trusted. Each message has the problem, its subject and a remedy.

use alloc::string::String;
use core::fmt;

use manifest_model::{PublicKey, Rights};

use crate::CHAIN_MAX;

/// Why the signature of a package or system is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustError {
    /// The package is unsigned, and the policy requires signatures.
    Unsigned,
    /// A package without a key that has a signature or certificates.
    HalfSigned,
    /// The key is neither a root of the system nor certified.
    UntrustedKey {
        /// The key.
        key: PublicKey,
    },
    /// The issuer of the last certificate is not a root of the system.
    UntrustedIssuer {
        /// The issuer.
        issuer: PublicKey,
    },
    /// The key is a root or certified, but not for this publisher.
    NotItsPublisher {
        /// The key.
        key: PublicKey,
        /// The publisher that the manifest names.
        publisher: String,
    },
    /// A certificate covers more publishers than its issuer may certify.
    WiderThanIssuer {
        /// Its serial number.
        serial: u64,
        /// Its publishers.
        publishers: String,
    },
    /// A certificate grants a right that its issuer lacks.
    MoreRightsThanIssuer {
        /// Its serial number.
        serial: u64,
        /// Its rights.
        rights: Rights,
    },
    /// Native code signed by a key without the right to publish such code.
    NotNative {
        /// The key.
        key: PublicKey,
        /// The publisher that the manifest names.
        publisher: String,
    },
    /// A package signed by a key that may only certify.
    MayNotSign {
        /// The certificate's serial number.
        serial: u64,
    },
    /// A certificate signed by a key that may only sign packages.
    MayNotCertify {
        /// Serial number of that key's certificate.
        serial: u64,
    },
    /// A certificate for another key than expected at this position of the chain.
    BrokenChain {
        /// Its serial number.
        serial: u64,
    },
    /// Too many certificates.
    ChainTooLong,
    /// A malformed certificate.
    BadCertificate {
        /// Its offset in the chain.
        offset: usize,
    },
    /// Wrong signature of a certificate.
    CertificateSignature {
        /// Its serial number.
        serial: u64,
    },
    /// Revoked key.
    RevokedKey {
        /// The key.
        key: PublicKey,
    },
    /// Revoked certificate.
    RevokedSerial {
        /// Its serial number.
        serial: u64,
    },
    /// The policy does not accept this publisher.
    PublisherNotAllowed {
        /// The publisher.
        publisher: String,
    },
    /// A certificate was to be issued for an invalid publisher pattern.
    NotPublishers {
        /// The text.
        pattern: String,
    },
    /// A system image signed by a key that may not sign systems.
    NotASystemSigner {
        /// The key.
        key: PublicKey,
    },
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustError::Unsigned => f.write_str(
                "nobody has signed the package, and this system takes signed ones only; have its publisher sign it, or set the policy `quarantine-unsigned`",
            ),
            TrustError::HalfSigned => f.write_str(
                "the package has no key, but a signature or certificates; a byte was changed: copy or sign it again",
            ),
            TrustError::UntrustedKey { key } => write!(
                f,
                "the package is signed with the key {key:#}, which this system does not trust; sign it with a trusted key, add a certificate, or add the key to the system's roots"
            ),
            TrustError::UntrustedIssuer { issuer } => write!(
                f,
                "the last certificate is issued by the key {issuer:#}, which is no root of this system; add the key to the system's roots, or have a root certify it"
            ),
            TrustError::NotItsPublisher { key, publisher } => write!(
                f,
                "the key {key:#} is trusted, but not for the publisher `{publisher}`; sign with the key of `{publisher}`, or publish under the name that the key is for"
            ),
            TrustError::WiderThanIssuer { serial, publishers } => write!(
                f,
                "the certificate {serial:016x} speaks for the publishers `{publishers}`, for which its issuer may not speak; have it issued for fewer, or by another"
            ),
            TrustError::MoreRightsThanIssuer { serial, rights } => write!(
                f,
                "the certificate {serial:016x} gives the right `{rights}`, which its issuer does not have; have it issued without, or by a key that has the right"
            ),
            TrustError::NotNative { key, publisher } => write!(
                f,
                "the package is native code, and the key {key:#} has no right to publish native code of `{publisher}`: it would run beside the kernel, with nothing but its compiler to contain it. Give the system a [[domain]] with `each = true` for it, so that it runs in a hardware domain of its own; or have a key with the right `native` build and sign it from its source, have the key certified with --native, or deliver portable code (`wasm` in its manifest), which the machine compiles and proves itself"
            ),
            TrustError::MayNotSign { serial } => write!(
                f,
                "the certificate {serial:016x} allows its key to certify, not to sign packages; sign with a key whose certificate says `sign`"
            ),
            TrustError::MayNotCertify { serial } => write!(
                f,
                "the certificate {serial:016x} allows its key to sign packages, not to certify; have the certificate issued by a key whose own says `certify`"
            ),
            TrustError::BrokenChain { serial } => write!(
                f,
                "the certificate {serial:016x} is not of the key that it should speak for; put the certificates in order, from the signer's to the root's"
            ),
            TrustError::ChainTooLong => write!(
                f,
                "more than {CHAIN_MAX} certificates lie between the package and a root; have the signer certified closer to the root"
            ),
            TrustError::BadCertificate { offset } => write!(
                f,
                "the certificate at offset {offset} of the chain is malformed: a byte was changed; copy or issue it again"
            ),
            TrustError::CertificateSignature { serial } => write!(
                f,
                "the signature of the certificate {serial:016x} is not its issuer's: a byte was changed; copy or issue it again"
            ),
            TrustError::RevokedKey { key } => {
                write!(f, "the key {key:#} has been revoked; have the publisher sign with a new key")
            }
            TrustError::RevokedSerial { serial } => {
                write!(f, "the certificate {serial:016x} has been revoked; have the publisher's key certified anew")
            }
            TrustError::PublisherNotAllowed { publisher } => write!(
                f,
                "the policy of this system does not take packages of `{publisher}`; add the publisher to `allow` in its [trust]"
            ),
            TrustError::NotPublishers { pattern } => write!(
                f,
                "`{pattern}` is no publisher that a certificate can be for; write a name of the form [a-z][a-z0-9-]*, or `name-*` for all whose names begin so"
            ),
            TrustError::NotASystemSigner { key } => write!(
                f,
                "the system image is signed with the key {key:#}, which is no root that may sign systems; sign it with such a root"
            ),
        }
    }
}

impl core::error::Error for TrustError {}
