//! Whether a key may sign for a publisher: verification of the certificate chain up to a root.

use ed25519_dalek::{Signature, VerifyingKey};
use manifest_model::trust::is_within;
use manifest_model::{PublicKey, Rights, Root, Trust};
use package::{CHAIN_MAX, Certificate, May, TrustError};

use crate::sha256;

/// Checks that `key` may sign packages of the publisher: it is a root or certified by one, nothing in the chain is
/// revoked, the policy accepts the publisher, and all certificates have valid signatures. Not for unsigned packages.
/// Returns the key's rights for the publisher.
///
/// # Errors
/// The first violation; the most expensive checks come last.
pub fn check_signer(
    trust: &Trust,
    publisher: &str,
    key: PublicKey,
    chain: &[Certificate],
) -> Result<Rights, TrustError> {
    if chain.len() > CHAIN_MAX {
        return Err(TrustError::ChainTooLong);
    }
    let rights = check_chain(trust, publisher, key, chain)?;
    if !trust.takes(publisher) {
        return Err(TrustError::PublisherNotAllowed { publisher: publisher.into() });
    }
    chain.iter().try_for_each(check_signature)?;
    Ok(rights)
}

fn check_chain(trust: &Trust, publisher: &str, key: PublicKey, chain: &[Certificate]) -> Result<Rights, TrustError> {
    let mut speaker = key;
    let mut spoken_for = publisher;
    // The certificate issued by `speaker`, unless that signed the package.
    let mut issued: Option<&Certificate> = None;
    let too_wide = |issued: Option<&Certificate>| match issued {
        None => TrustError::NotItsPublisher { key, publisher: publisher.into() },
        Some(issued) => TrustError::WiderThanIssuer { serial: issued.serial, publishers: issued.publishers.clone() },
    };
    for certificate in chain {
        let serial = certificate.serial;
        if certificate.key != speaker {
            return Err(TrustError::BrokenChain { serial });
        }
        check_not_revoked(trust, speaker)?;
        if trust.is_revoked_serial(serial) {
            return Err(TrustError::RevokedSerial { serial });
        }
        match (issued, certificate.may) {
            (None, May::Certify) => return Err(TrustError::MayNotSign { serial }),
            (Some(_), May::Sign) => return Err(TrustError::MayNotCertify { serial }),
            (None, May::Sign) | (Some(_), May::Certify) => {}
        }
        if !is_within(spoken_for, &certificate.publishers) {
            return Err(too_wide(issued));
        }
        if let Some(issued) = issued {
            check_rights(issued, certificate.rights)?;
        }
        (speaker, spoken_for, issued) = (certificate.issuer, &certificate.publishers, Some(certificate));
    }
    check_not_revoked(trust, speaker)?;
    if !trust.roots.iter().any(|root| root.key == speaker) {
        return Err(match issued {
            None => TrustError::UntrustedKey { key: speaker },
            Some(_) => TrustError::UntrustedIssuer { issuer: speaker },
        });
    }
    let covering = trust.roots.iter().filter(|root| root.key == speaker && is_within(spoken_for, &root.publishers));
    let of_root = covering.map(Root::effective_rights).reduce(Rights::union).ok_or_else(|| too_wide(issued))?;
    if let Some(issued) = issued {
        check_rights(issued, of_root)?;
    }
    Ok(chain.first().map_or(of_root, |certificate| certificate.rights))
}

fn check_not_revoked(trust: &Trust, key: PublicKey) -> Result<(), TrustError> {
    if trust.is_revoked_key(key) { Err(TrustError::RevokedKey { key }) } else { Ok(()) }
}

/// A certificate grants no right that its issuer lacks.
fn check_rights(issued: &Certificate, of_issuer: Rights) -> Result<(), TrustError> {
    let Certificate { serial, rights, .. } = *issued;
    if of_issuer.contains(rights) { Ok(()) } else { Err(TrustError::MoreRightsThanIssuer { serial, rights }) }
}

fn check_signature(certificate: &Certificate) -> Result<(), TrustError> {
    let digest = sha256(&certificate.signed_bytes());
    if is_signature(certificate.issuer, &digest, &certificate.signature) == Some(true) {
        return Ok(());
    }
    Err(TrustError::CertificateSignature { serial: certificate.serial })
}

/// Whether it is the key's signature over the digest; `None` if the key is not a curve point.
pub(crate) fn is_signature(key: PublicKey, digest: &[u8; 32], signature: &[u8; 64]) -> Option<bool> {
    let key = VerifyingKey::from_bytes(&key.0).ok()?;
    Some(key.verify_strict(digest, &Signature::from_bytes(signature)).is_ok())
}
