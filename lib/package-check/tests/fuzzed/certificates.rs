//! The body of the fuzz target `certificates`: the input is a chain of certificates, in a package signed by the key of
//! the first one. Acceptance is compared with a trivial model.

use std::sync::OnceLock;

use manifest_model::trust::{covers, is_within};
use manifest_model::{Category, Code, Manifest, PublicKey, Revoked, Rights, Root, Trust};
use package::{Certificate, May, Package};
use package_build::{Grant, SecretKey, Signer};
use package_check::verify;

/// Number of the root's key.
pub const ROOT: u8 = 0;
/// Number of keys.
const KEYS: u8 = 4;

/// The key with a number.
pub fn secret(number: u8) -> SecretKey {
    SecretKey::from_bytes(&[number % KEYS + 1; 32])
}

/// All public keys.
fn public_keys() -> &'static [PublicKey] {
    static MADE: OnceLock<Vec<PublicKey>> = OnceLock::new();
    MADE.get_or_init(|| (0..KEYS).map(|number| secret(number).public()).collect())
}

/// The number of a key; for an unknown one, its first byte.
fn number_of(key: PublicKey) -> u8 {
    let known = (0..KEYS).zip(public_keys()).find(|(_, known)| **known == key);
    known.map_or(key.0[0] % KEYS, |(number, _)| number)
}

/// Trust in one root, for a family of publishers.
pub fn trust() -> Trust {
    let root = Root {
        key: public_keys()[usize::from(ROOT)],
        publishers: "acme-*".into(),
        systems: false,
        rights: Rights::NATIVE,
    };
    Trust { roots: vec![root], ..Trust::default() }
}

/// A publisher covered by the first certificate.
fn publisher(chain: &[Certificate]) -> String {
    let pattern = chain.first().map_or("acme-a", |certificate| certificate.publishers.as_str());
    pattern.strip_suffix('*').map_or(pattern.into(), |beginning| format!("{beginning}b"))
}

/// The signing key.
fn signer(chain: &[Certificate]) -> u8 {
    chain.first().map_or(ROOT, |certificate| number_of(certificate.key))
}

/// Whether a package with these certificates is accepted.
pub fn is_believed(chain: &[Certificate], trust: &Trust) -> bool {
    let code = Code::Script { text: "help\n".into() };
    let manifest = Manifest::plain("fuzzed", &publisher(chain), Category::Console, code);
    let signer = Signer { key: secret(signer(chain)), chain: chain.to_vec() };
    let bytes = package_build::build_unchecked(manifest, b"", b"", &signer).expect("it is short");
    let package = Package::parse(&bytes).expect("it was just made");
    assert_eq!(package.chain, chain);
    verify(&package, trust).is_ok()
}

/// Whether each certificate has the right subject and permissions, ignoring signatures.
fn fits(chain: &[Certificate], trust: &Trust) -> bool {
    let signer = public_keys()[usize::from(signer(chain))];
    let publisher = publisher(chain);
    let starts = chain
        .first()
        .is_none_or(|first| first.key == signer && first.may == May::Sign && covers(&first.publishers, &publisher));
    let goes_on = chain.windows(2).all(|pair| {
        let [lower, upper] = pair else { return false };
        upper.key == lower.issuer
            && upper.may == May::Certify
            && upper.rights.contains(lower.rights)
            && is_within(&lower.publishers, &upper.publishers)
    });
    let (top, spoken_for) = chain.last().map_or((signer, &publisher), |last| (last.issuer, &last.publishers));
    let ends = trust.roots.iter().any(|root| root.key == top && is_within(spoken_for, &root.publishers));
    starts && goes_on && ends
}

/// The certificate with the keys of those numbers, validly signed.
fn issued_anew(certificate: &Certificate) -> Certificate {
    let (issuer, key) = (secret(number_of(certificate.issuer)), public_keys()[usize::from(number_of(certificate.key))]);
    let Certificate { publishers, may, rights, serial, .. } = certificate;
    let grant = Grant { publishers, may: *may, rights: *rights };
    package_build::issue_certificate(&issuer, key, grant, *serial).expect("a pattern that was read")
}

/// Runs one input; a panic is a finding.
pub fn run(bytes: &[u8]) {
    if let Ok(chain) = Certificate::chain(bytes) {
        assert_eq!(Certificate::encode_chain(&chain), bytes, "what is read is what was written");
        let anew: Vec<Certificate> = chain.iter().map(issued_anew).collect();
        let believed = is_believed(&anew, &trust());
        assert_eq!(believed, fits(&anew, &trust()), "{anew:?}");
        // Ed25519 signatures are deterministic: any other is a forgery.
        assert_eq!(is_believed(&chain, &trust()), believed && chain == anew, "{chain:?}");
        if believed {
            let keys = anew.iter().flat_map(|certificate| [certificate.key, certificate.issuer]).map(Revoked::Key);
            let serials = anew.iter().map(|certificate| Revoked::Serial(certificate.serial));
            for revoked in keys.chain(serials) {
                let without = Trust { revoked: vec![revoked], ..trust() };
                assert!(!is_believed(&anew, &without), "{revoked} no longer counts: {anew:?}");
            }
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(key) = PublicKey::parse(text) {
        assert_eq!(PublicKey::parse(&key.to_string()), Some(key));
    }
    if let Some(revoked) = Revoked::parse(text) {
        assert_eq!(Revoked::parse(&revoked.to_string()), Some(revoked));
    }
}
