//! Signing authority: a certificate chain for each reason to accept or reject it.

mod common;

use common::{BILL, elf::Elf, key, manifest};
use manifest_model::{Category, Code, Manifest, Policy, PublicKey, Revoked, Rights, Root, Trust};
use package::{Certificate, May, Package, TrustError};
use package_build::{Grant, SecretKey, Signer};
use package_check::{Isolation, PackageError};
use proptest::prelude::*;

const ACME: [u8; 32] = [21; 32];
const TOOLS: [u8; 32] = [22; 32];
const DAILY: [u8; 32] = [23; 32];
const STRANGER: [u8; 32] = [24; 32];

fn secret(seed: [u8; 32]) -> SecretKey {
    SecretKey::from_bytes(&seed)
}

fn public(seed: [u8; 32]) -> PublicKey {
    secret(seed).public()
}

fn issue(issuer: [u8; 32], key: [u8; 32], publishers: &str, may: May, serial: u64) -> Certificate {
    package_build::issue_certificate(
        &secret(issuer),
        public(key),
        Grant { publishers, may, rights: Rights::NATIVE },
        serial,
    )
    .expect("a pattern of publishers")
}

/// ACME certifies TOOLS for `acme-*`, TOOLS certifies DAILY for `acme-tools`.
fn chain() -> Vec<Certificate> {
    Vec::from([issue(TOOLS, DAILY, "acme-tools", May::Sign, 2), issue(ACME, TOOLS, "acme-*", May::Certify, 1)])
}

fn trust() -> Trust {
    let root = Root { key: public(ACME), publishers: "acme-*".into(), systems: false, rights: Rights::NATIVE };
    Trust { roots: Vec::from([root]), ..Trust::default() }
}

fn package(publisher: &str, seed: [u8; 32], chain: Vec<Certificate>) -> Vec<u8> {
    let manifest = Manifest { publisher: publisher.into(), ..manifest() };
    let signer = Signer { key: secret(seed), chain };
    package_build::build_unchecked(manifest, BILL, &Elf::good().write(), &signer).expect("it is short")
}

fn verify(bytes: &[u8], trust: &Trust) -> Result<bool, PackageError> {
    package_check::verify(&Package::parse(bytes)?, trust).map(|verified| verified.quarantined)
}

#[track_caller]
fn refused(bytes: &[u8], trust: &Trust, expected: TrustError) {
    let error = verify(bytes, trust).expect_err("it must be refused");
    let text = error.to_string();
    assert!(text.contains([';', ':']) && text.len() > 40 && !text.contains('\n'), "{text}");
    assert_eq!(error, PackageError::Trust(expected));
}

#[test]
fn a_root_signs_for_its_publishers() {
    assert_eq!(verify(&package("acme-tools", ACME, Vec::new()), &trust()), Ok(false));
    let twice = Root { key: public(ACME), publishers: "acme".into(), systems: false, rights: Rights::NATIVE };
    let more = Trust { roots: [trust().roots, Vec::from([twice])].concat(), ..trust() };
    for publisher in ["acme", "acme-tools"] {
        assert_eq!(verify(&package(publisher, ACME, Vec::new()), &more), Ok(false));
    }
}

#[test]
fn a_root_signs_for_nobody_else() {
    for publisher in ["acme", "singularity", "acmeevil"] {
        let expected = TrustError::NotItsPublisher { key: public(ACME), publisher: publisher.into() };
        refused(&package(publisher, ACME, Vec::new()), &trust(), expected);
    }
}

#[test]
fn a_stranger_signs_for_nobody() {
    let bytes = package("acme-tools", STRANGER, Vec::new());
    refused(&bytes, &trust(), TrustError::UntrustedKey { key: public(STRANGER) });
    refused(&bytes, &Trust::default(), TrustError::UntrustedKey { key: public(STRANGER) });
}

#[test]
fn a_chain_leads_to_a_root() {
    assert_eq!(verify(&package("acme-tools", DAILY, chain()), &trust()), Ok(false));
    let one = Vec::from([issue(ACME, DAILY, "acme-tools-*", May::Sign, 3)]);
    assert_eq!(verify(&package("acme-tools-x", DAILY, one), &trust()), Ok(false));
    let longest = Vec::from([
        issue(TOOLS, DAILY, "acme-a", May::Sign, 3),
        issue(STRANGER, TOOLS, "acme-*", May::Certify, 2),
        issue(ACME, STRANGER, "acme-*", May::Certify, 1),
    ]);
    assert_eq!(verify(&package("acme-a", DAILY, longest), &trust()), Ok(false));
}

#[test]
fn a_chain_that_leads_to_no_root() {
    let strange = Vec::from([issue(STRANGER, DAILY, "acme-tools", May::Sign, 9)]);
    refused(&package("acme-tools", DAILY, strange), &trust(), TrustError::UntrustedIssuer { issuer: public(STRANGER) });
    // Certifying oneself does not help.
    let own = Vec::from([issue(DAILY, DAILY, "acme-tools", May::Sign, 9)]);
    refused(&package("acme-tools", DAILY, own), &trust(), TrustError::UntrustedIssuer { issuer: public(DAILY) });
}

#[test]
fn a_certificate_for_another_publisher() {
    let expected = TrustError::NotItsPublisher { key: public(DAILY), publisher: "acme-web".into() };
    refused(&package("acme-web", DAILY, chain()), &trust(), expected);
}

#[test]
fn a_certificate_that_is_wider_than_its_issuer() {
    let beyond_root = Vec::from([issue(ACME, DAILY, "singularity", May::Sign, 5)]);
    let expected = TrustError::WiderThanIssuer { serial: 5, publishers: "singularity".into() };
    refused(&package("singularity", DAILY, beyond_root), &trust(), expected);

    let beyond_certificate =
        Vec::from([issue(TOOLS, DAILY, "acme-*", May::Sign, 6), issue(ACME, TOOLS, "acme-tools-*", May::Certify, 1)]);
    let expected = TrustError::WiderThanIssuer { serial: 6, publishers: "acme-*".into() };
    refused(&package("acme-tools-x", DAILY, beyond_certificate), &trust(), expected);
}

/// Removes the right `native` from the root, or from the certificate at that position of the chain.
fn without_native(place: Option<usize>) -> (Trust, Vec<Certificate>) {
    let weak = |at: usize| if place == Some(at) { Rights::NONE } else { Rights::NATIVE };
    let grant = |publishers, may, at| Grant { publishers, may, rights: weak(at) };
    let lower = package_build::issue_certificate(&secret(TOOLS), public(DAILY), grant("acme-tools", May::Sign, 0), 2);
    let upper = package_build::issue_certificate(&secret(ACME), public(TOOLS), grant("acme-*", May::Certify, 1), 1);
    let mut trust = trust();
    if place.is_none() {
        trust.roots[0].rights = Rights::NONE;
    }
    (trust, Vec::from([lower.expect("a pattern"), upper.expect("a pattern")]))
}

#[test]
fn native_code_of_a_key_without_the_right_is_refused() {
    let (without, _) = without_native(None);
    let expected = |seed| TrustError::NotNative { key: public(seed), publisher: "acme-tools".into() };
    refused(&package("acme-tools", ACME, Vec::new()), &without, expected(ACME));
    let (trust, chain) = without_native(Some(0));
    refused(&package("acme-tools", DAILY, chain), &trust, expected(DAILY));
    let text = expected(DAILY).to_string();
    assert!(text.contains("portable code") && text.contains("a hardware domain of its own"), "{text}");
}

#[test]
fn native_code_in_a_hardware_domain_of_its_own_needs_no_right() {
    let (without, _) = without_native(None);
    let bytes = package("acme-tools", ACME, Vec::new());
    let parsed = Package::parse(&bytes).expect("a package");
    let apart = |trust| package_check::verify_in(&parsed, trust, Isolation::Apart).map(|verified| verified.quarantined);
    assert_eq!(apart(&without), Ok(false));
    // Everything else is asked as before.
    assert!(apart(&Trust::default()).is_err());
    let plain = package_check::verify_in(&parsed, &without, Isolation::Software);
    assert!(plain.is_err_and(|error| matches!(error, PackageError::Trust(TrustError::NotNative { .. }))));
}

#[test]
fn unsafe_code_needs_a_hardware_domain_of_its_own_whoever_signed_it() {
    let bytes = package("acme-tools", ACME, Vec::new());
    let parsed = Package::parse(&bytes).expect("a package");
    let code = Code::Unsafe { digest: [0; 32] };
    let manifest = Manifest { code, ..parsed.manifest.clone() };
    let signer = Signer::root(secret(ACME));
    let bytes = package_build::build_unchecked(manifest, BILL, parsed.image_bytes, &signer).expect("it is short");
    let parsed = Package::parse(&bytes).expect("a package");
    for (trust, is_trusted) in [(trust(), true), (without_native(None).0, false)] {
        let software = package_check::verify_in(&parsed, &trust, Isolation::Software);
        assert_eq!(matches!(software, Err(PackageError::NotApart)), is_trusted, "{software:?}");
        assert!(software.is_err());
        let apart = package_check::verify_in(&parsed, &trust, Isolation::Apart).map(|verified| verified.quarantined);
        assert_eq!(apart, Ok(false));
    }
    assert!(PackageError::NotApart.to_string().contains("each = true"));
}

#[test]
fn a_right_that_the_issuer_lacks_is_not_passed_on() {
    for (place, serial) in [(None, 1), (Some(1), 2)] {
        let (trust, chain) = without_native(place);
        let expected = TrustError::MoreRightsThanIssuer { serial, rights: Rights::NATIVE };
        refused(&package("acme-tools", DAILY, chain), &trust, expected);
    }
}

#[test]
fn scripts_need_no_right() {
    let script = Code::Script { text: "echo hello\n".into() };
    let plain = Manifest::plain("greeter", "acme-tools", Category::Console, script);
    let (without, _) = without_native(None);
    let by_root = package_build::build_unchecked(plain.clone(), BILL, b"", &Signer::root(secret(ACME))).expect("short");
    assert_eq!(verify(&by_root, &without), Ok(false));
    let (trust, chain) = without_native(Some(0));
    let certified =
        package_build::build_unchecked(plain, BILL, b"", &Signer { key: secret(DAILY), chain }).expect("short");
    assert_eq!(verify(&certified, &trust), Ok(false));
}

#[test]
fn who_signs_whole_systems_has_every_right() {
    let (mut trust, _) = without_native(None);
    trust.roots[0].systems = true;
    assert_eq!(verify(&package("acme-tools", ACME, Vec::new()), &trust), Ok(false));
    // If a key is a root twice, only the entry that covers the publisher counts.
    trust.roots.push(Root { publishers: "other".into(), ..trust.roots[0].clone() });
    trust.roots[0].systems = false;
    let expected = TrustError::NotNative { key: public(ACME), publisher: "acme-tools".into() };
    refused(&package("acme-tools", ACME, Vec::new()), &trust, expected);
}

#[test]
fn a_certificate_that_does_not_allow_what_was_done() {
    let certifier = Vec::from([issue(ACME, TOOLS, "acme-*", May::Certify, 1)]);
    refused(&package("acme-tools", TOOLS, certifier), &trust(), TrustError::MayNotSign { serial: 1 });
    let signer =
        Vec::from([issue(TOOLS, DAILY, "acme-tools", May::Sign, 2), issue(ACME, TOOLS, "acme-*", May::Sign, 1)]);
    refused(&package("acme-tools", DAILY, signer), &trust(), TrustError::MayNotCertify { serial: 1 });
}

#[test]
fn a_chain_in_disorder() {
    let mut turned = chain();
    turned.reverse();
    refused(&package("acme-tools", DAILY, turned), &trust(), TrustError::BrokenChain { serial: 1 });
    let missing = Vec::from([chain().remove(1)]);
    refused(&package("acme-tools", DAILY, missing), &trust(), TrustError::BrokenChain { serial: 1 });
    // A certificate for another key.
    refused(&package("acme-tools", STRANGER, chain()), &trust(), TrustError::BrokenChain { serial: 2 });
}

#[test]
fn a_chain_that_is_too_long() {
    let mut long = chain();
    long.extend([issue(ACME, ACME, "acme-*", May::Certify, 7), issue(ACME, ACME, "acme-*", May::Certify, 8)]);
    refused(&package("acme-tools", DAILY, long), &trust(), TrustError::ChainTooLong);
    let many = vec![issue(ACME, ACME, "acme-*", May::Certify, 7); 200];
    refused(&package("acme-tools", DAILY, many), &trust(), TrustError::ChainTooLong);
}

#[test]
fn a_changed_certificate() {
    let bytes = chain()[0].encode();
    for offset in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[offset] ^= 1;
        // The package's signature covers the changed chain, so only the certificate's own signature can detect the
        // change.
        let Ok(mut changed) = Certificate::chain(&changed) else { continue };
        changed.push(chain().remove(1));
        verify(&package("acme-tools", DAILY, changed), &trust()).expect_err("a changed certificate");
    }
    let mut forged = chain();
    forged[0].serial = 99;
    refused(&package("acme-tools", DAILY, forged), &trust(), TrustError::CertificateSignature { serial: 99 });
}

#[test]
fn a_malformed_certificate() {
    let bytes = Certificate::encode_chain(&chain());
    assert_eq!(Certificate::chain(&bytes), Ok(chain()));
    let second = chain()[0].encode().len();
    for (change, offset) in [(0, 0), (second, second)] {
        let mut changed = bytes.clone();
        changed[change] ^= 1;
        assert_eq!(Certificate::chain(&changed), Err(TrustError::BadCertificate { offset }));
    }
    for length in (1..bytes.len()).filter(|&length| length != second) {
        assert!(Certificate::chain(&bytes[..length]).is_err(), "cut at {length}");
    }
    for publishers in ["", "*", "A", "a.b", "acme*", "-*"] {
        let forged = Certificate { publishers: publishers.into(), ..chain().remove(0) };
        let error = Certificate::chain(&forged.encode());
        assert_eq!(error, Err(TrustError::BadCertificate { offset: 0 }), "{publishers}");
        let issued = package_build::issue_certificate(
            &secret(ACME),
            public(DAILY),
            Grant { publishers, may: May::Sign, rights: Rights::NATIVE },
            1,
        );
        assert_eq!(issued, Err(TrustError::NotPublishers { pattern: publishers.into() }));
    }
}

#[test]
fn the_chain_of_another_package() {
    // The chain is signed too: a package keeps its signer's certificates.
    let bytes = package("acme-tools", DAILY, chain());
    let other = Vec::from([issue(ACME, DAILY, "acme-tools", May::Sign, 3), issue(ACME, ACME, "acme-*", May::Sign, 4)]);
    let place = bytes.windows(8).position(|window| window == b"SINGCRT2").expect("it has certificates");
    let length = Certificate::encode_chain(&chain()).len();
    let mut swapped = bytes[..place].to_vec();
    let other = Certificate::encode_chain(&other[..1]);
    swapped[20..24].copy_from_slice(&(other.len() as u32).to_le_bytes());
    swapped.extend_from_slice(&other);
    swapped.extend_from_slice(&bytes[place + length..]);
    assert_eq!(verify(&swapped, &trust()), Err(PackageError::BadSignature));
}

#[test]
fn what_was_revoked() {
    let bytes = package("acme-tools", DAILY, chain());
    let revoking = |revoked| Trust { revoked: Vec::from([revoked]), ..trust() };
    for serial in [1, 2] {
        refused(&bytes, &revoking(Revoked::Serial(serial)), TrustError::RevokedSerial { serial });
    }
    for key in [ACME, TOOLS, DAILY].map(public) {
        refused(&bytes, &revoking(Revoked::Key(key)), TrustError::RevokedKey { key });
    }
    assert_eq!(verify(&bytes, &revoking(Revoked::Serial(3))), Ok(false));
    let signed_by_root = package("acme-tools", ACME, Vec::new());
    let key = public(ACME);
    refused(&signed_by_root, &revoking(Revoked::Key(key)), TrustError::RevokedKey { key });
    let mut systems = Trust::in_key(key);
    assert!(systems.may_sign_systems(key));
    systems.revoked.push(Revoked::Key(key));
    assert!(!systems.may_sign_systems(key));
}

#[test]
fn policies() {
    let signed = package("acme-tools", DAILY, chain());
    let unsigned = package_build::build_unsigned(manifest(), BILL, &Elf::good().write()).expect("it is good");
    let with = |policy| Trust { policy, ..trust() };
    refused(&unsigned, &with(Policy::SignedOnly), TrustError::Unsigned);
    assert_eq!(verify(&signed, &with(Policy::QuarantineUnsigned)), Ok(false));
    assert_eq!(verify(&unsigned, &with(Policy::QuarantineUnsigned)), Ok(true));
    let allow = |patterns: &[&str]| with(Policy::AllowPublisher(patterns.iter().map(|&text| text.into()).collect()));
    refused(&unsigned, &allow(&["*"]), TrustError::Unsigned);
    assert_eq!(verify(&signed, &allow(&["other", "acme-tools"])), Ok(false));
    assert_eq!(verify(&signed, &allow(&["acme-*"])), Ok(false));
    let expected = TrustError::PublisherNotAllowed { publisher: "acme-tools".into() };
    refused(&signed, &allow(&["other", "acme"]), expected.clone());
    refused(&signed, &allow(&[]), expected);
}

#[test]
fn an_unsigned_package_with_a_signature() {
    let quarantine = Trust { policy: Policy::QuarantineUnsigned, ..trust() };
    let mut bytes = package_build::build_unsigned(manifest(), BILL, &Elf::good().write()).expect("it is good");
    *bytes.last_mut().expect("it has bytes") = 1;
    refused(&bytes, &quarantine, TrustError::HalfSigned);
    // Removing the key does not make a package unsigned either.
    let mut bytes = package("acme-tools", DAILY, chain());
    let key = bytes.len() - 96;
    bytes[key..key + 32].fill(0);
    refused(&bytes, &quarantine, TrustError::HalfSigned);
    bytes[key..].fill(0);
    refused(&bytes, &quarantine, TrustError::HalfSigned);
}

#[test]
fn an_unsigned_package_is_checked_all_the_same() {
    let quarantine = Trust { policy: Policy::QuarantineUnsigned, ..Trust::default() };
    let mut bytes = package_build::build_unsigned(manifest(), BILL, &Elf::good().write()).expect("it is good");
    let image = bytes.windows(4).position(|window| window == b"\x7FELF").expect("it has an image");
    bytes[image + 80] ^= 1;
    assert_eq!(verify(&bytes, &quarantine), Err(PackageError::ImageHash));
    let syscall = Elf::with_code(&[0x0F, 0x05]).write();
    let error = package_build::build_unsigned(manifest(), BILL, &syscall).expect_err("a forbidden instruction");
    assert!(matches!(error, PackageError::Image(image_check::ImageError::ForbiddenInstruction { .. })));
}

#[test]
fn a_signer_that_may_not_sign_for_the_publisher_builds_nothing() {
    let signer = Signer { key: secret(DAILY), chain: chain() };
    let error =
        package_build::build_package(manifest(), BILL, &Elf::good().write(), &signer).expect_err("another publisher");
    let expected = TrustError::NotItsPublisher { key: public(DAILY), publisher: "singularity".into() };
    assert_eq!(error, PackageError::Trust(expected));
    assert!(Trust::in_key(key().public()).may_sign_systems(key().public()));
}

proptest! {
    #[test]
    fn no_bytes_of_a_chain_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = Certificate::chain(&bytes);
        let _ = Certificate::chain(&[b"SINGCRT2".as_slice(), &bytes].concat());
    }

    #[test]
    fn certificates_read_back(key: [u8; 32], serial: u64, certify: bool, rights in 0u8..=1, name in "[a-z][a-z0-9-]{0,60}", star: bool) {
        let may = if certify { May::Certify } else { May::Sign };
        let rights = Rights::from_byte(rights).expect("a known right");
        let publishers = if star { format!("{name}-*") } else { name };
        let issued = package_build::issue_certificate(&secret(ACME), PublicKey(key), Grant { publishers: &publishers, may, rights }, serial).expect("a pattern");
        prop_assert_eq!(Certificate::chain(&issued.encode()), Ok(Vec::from([issued])));
    }
}
