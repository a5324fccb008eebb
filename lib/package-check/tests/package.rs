//! A bad package for each reason to reject one, and arbitrary bytes.

mod common;

use common::{BILL, contract, elf::Elf, good_package, key, manifest, signer, trust, verify};
use image_check::ImageError;
use manifest_model::{Code, Manifest, Parameter, ParameterKind, PublicKey, Rights, Root, SystemManifest, Trust, Value};
use package::{FormatError, Package, TrustError};
use package_build::SecretKey;
use package_check::{PackageError, identity};
use proptest::prelude::*;

fn refused(result: Result<(), PackageError>) -> PackageError {
    let error = result.expect_err("the package must be refused");
    let text = error.to_string();
    assert!(text.contains([';', ':']) && text.len() > 40 && !text.contains('\n'), "{text}");
    error
}

fn build(manifest: Manifest, image: &Elf) -> Result<(), PackageError> {
    package_build::build_package(manifest, BILL, &image.write(), &signer()).map(|_| ())
}

#[test]
fn a_good_package_verifies_and_says_what_was_put_in() {
    let bytes = good_package();
    let package = Package::parse(&bytes).expect("it is a package");
    let verified = package_check::verify(&package, &trust()).expect("it is good");
    let expected = Code::Image { digest: package_check::image_digest(package.image_bytes) };
    assert_eq!(verified.manifest, Manifest { code: expected, ..manifest() });
    assert_eq!(verified.image.map(|image| image.entry), Some(0x1000));
    assert_eq!((package.bill, verified.quarantined, verified.identity), (BILL, false, identity(&package)));
}

#[test]
fn the_digest_of_an_image_is_blake3() {
    let hex = |bytes: &[u8]| package_check::image_digest(bytes).map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(hex(b""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    assert_eq!(hex(&[0]), "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213");
}

#[test]
fn not_a_package() {
    assert_eq!(refused(verify(b"\x7FELF is no package")), PackageError::Format(FormatError::NotAPackage));
}

#[test]
fn every_truncation() {
    let bytes = good_package();
    for length in 0..bytes.len() {
        assert!(verify(&bytes[..length]).is_err(), "cut at {length}");
    }
    assert!(matches!(refused(verify(&bytes[..bytes.len() - 1])), PackageError::Format(FormatError::Truncated { .. })));
}

#[test]
fn something_behind_the_end() {
    let bytes = [good_package(), vec![0]].concat();
    assert!(matches!(refused(verify(&bytes)), PackageError::Format(FormatError::TrailingBytes { count: 1, .. })));
}

#[test]
fn every_changed_byte() {
    let bytes = good_package();
    let image = bytes.windows(4).position(|window| window == b"\x7FELF").expect("it has an image");
    let end = bytes.len() - 96;
    // The whole image has one hash, and each case takes a verification, so a sample suffices.
    for offset in (0..image).chain((image..end).step_by(61)).chain(end..bytes.len()) {
        let mut changed = bytes.clone();
        changed[offset] ^= 0x10;
        assert!(verify(&changed).is_err(), "changed at {offset}");
    }
}

#[test]
fn a_changed_byte_of_the_image() {
    let mut bytes = good_package();
    let length = Package::parse(&bytes).expect("it is a package").image_bytes.len();
    let last = bytes.len() - 97;
    bytes[last - length / 2] ^= 1;
    assert_eq!(refused(verify(&bytes)), PackageError::ImageHash);
}

#[test]
fn a_changed_byte_of_the_manifest() {
    let mut bytes = good_package();
    let place = bytes.windows(6).position(|window| window == b"writes").expect("the summary is in it");
    bytes[place] = b'W';
    assert_eq!(refused(verify(&bytes)), PackageError::BadSignature);
}

#[test]
fn a_wrong_signature() {
    let mut bytes = good_package();
    let last = bytes.len() - 1;
    bytes[last - 40] ^= 1;
    assert_eq!(refused(verify(&bytes)), PackageError::BadSignature);
}

#[test]
fn a_changed_byte_of_the_bill() {
    let mut bytes = good_package();
    let place = bytes.windows(6).position(|window| window == b"'none'").expect("the bill is in it");
    bytes[place + 1] ^= 1;
    assert_eq!(refused(verify(&bytes)), PackageError::BillHash);
}

#[test]
fn a_bill_that_is_too_long() {
    let bill = vec![b'#'; package::BILL_BYTES_MAX + 1];
    let error = refused(package_build::build_package(manifest(), &bill, &Elf::good().write(), &signer()).map(|_| ()));
    assert_eq!(error, PackageError::Format(FormatError::BillTooLarge { bytes: package::BILL_BYTES_MAX as u64 + 1 }));
}

#[test]
fn a_key_that_is_none() {
    let mut bytes = good_package();
    let place = bytes.len() - 96;
    // No curve point has this encoding.
    let no_point: [u8; 32] = core::array::from_fn(|index| if index == 0 { 2 } else { 0 });
    bytes[place..place + 32].copy_from_slice(&no_point);
    let package = Package::parse(&bytes).expect("it is a package");
    assert_eq!(
        refused(package_check::verify(&package, &Trust::in_key(PublicKey(no_point))).map(|_| ())),
        PackageError::BadKey
    );
}

#[test]
fn an_abi_version_that_the_kernel_lacks() {
    let error = refused(build(Manifest { abi: 2, ..manifest() }, &Elf::good()));
    assert_eq!(error, PackageError::AbiVersion { wanted: 2, present: 1 });
}

#[test]
fn an_undeclared_contract() {
    let error = refused(build(Manifest { contracts: vec![contract("Other")], ..manifest() }, &Elf::good()));
    assert_eq!(error, PackageError::UndeclaredContract { name_tag: abi::name_tag("Echo") });
}

#[test]
fn another_version_of_a_contract() {
    let mut other = manifest();
    let mut automaton = common::automaton("Echo");
    automaton.queue_to_importer = 2;
    other.contracts[0].automaton = automaton.encode();
    other.contracts[0].fingerprint = package_check::sha256(&other.contracts[0].automaton);
    assert_eq!(refused(build(other, &Elf::good())), PackageError::ContractFingerprint { contract: "Echo".into() });
}

#[test]
fn a_script_with_an_image() {
    let script = Manifest { code: Code::Script { text: "echo hello".into() }, ..manifest() };
    assert_eq!(refused(build(script.clone(), &Elf::good())), PackageError::ScriptWithImage);
    let bytes = package_build::build_package(script, &[], &[], &signer()).expect("a script needs no image");
    let package = Package::parse(&bytes).expect("it is a package");
    assert!(package_check::verify(&package, &trust()).expect("it is good").image.is_none());
}

#[test]
fn a_bad_image() {
    let error = refused(build(manifest(), &Elf::with_code(&[0x0F, 0x05])));
    assert!(matches!(error, PackageError::Image(ImageError::ForbiddenInstruction { .. })), "{error:?}");
}

#[test]
fn manifests_that_are_not_sound() {
    type Change = fn(&mut Manifest);
    let changes: &[(&str, Change)] = &[
        ("name", |m| m.name = "../echo".into()),
        ("publisher", |m| m.publisher = String::new()),
        ("256 entries", |m| m.parameters = vec![Parameter::plain("a", ParameterKind::Text); 300]),
        ("automaton", |m| m.contracts[0].automaton.truncate(9)),
        ("fingerprint", |m| m.contracts[0].fingerprint[0] ^= 1),
        ("listed twice", |m| m.contracts.push(contract("Echo"))),
        ("names no contract", |m| m.endpoints[0].contract = 1),
        ("cannot be given away", |m| m.endpoints[0].state = 2),
        ("cannot be given away", |m| m.endpoints[0].state = 99),
        ("not absolute", |m| m.endpoints[0].source = manifest_model::Source::Path("dev".into())),
        ("same name", |m| m.endpoints.push(m.endpoints[0].clone())),
        ("same name", |m| m.parameters.push(m.parameters[0].clone())),
        ("not absolute", |m| m.provides.push(manifest_model::Provide { path: "x".into(), contract: 0 })),
        ("names no contract", |m| m.provides.push(manifest_model::Provide { path: "/x".into(), contract: 7 })),
        ("of its type", |m| m.parameters[0].default = Some(Value::Integer(1))),
        ("threads", |m| m.quota.threads = 0),
        ("memory_kib", |m| m.quota.memory_kib = u32::MAX),
        ("stack_kib", |m| m.quota.stack_kib = 0),
        ("stack_kib", |m| m.quota.stack_kib = 1 << 31),
        ("counts as memory", |m| (m.quota.stack_kib, m.quota.memory_kib) = (8192, 7936)),
    ];
    for (phrase, change) in changes {
        let mut bad = manifest();
        change(&mut bad);
        let error = refused(build(bad, &Elf::good()));
        let text = error.to_string();
        assert!(matches!(error, PackageError::ManifestInvalid { .. }) && text.contains(phrase), "{phrase}: {text}");
    }
}

fn system() -> SystemManifest {
    SystemManifest {
        name: "test".into(),
        root: "echo".into(),
        primary: None,
        instances: Vec::new(),
        installed: Vec::new(),
        binds: Vec::new(),
        denies: Vec::new(),
        domains: Vec::new(),
        trust: trust(),
    }
}

#[test]
fn a_system_image_gives_back_what_was_put_in() {
    let script = Manifest { name: "other".into(), code: Code::Script { text: "echo".into() }, ..manifest() };
    let script = package_build::build_package(script, &[], &[], &signer()).expect("it is good");
    let bytes = package_build::build_system(&system(), &[good_package(), script.clone()], &key()).expect("it fits");
    let image = package_check::verify_system(&bytes).expect("it is a system image");
    assert_eq!((image.manifest, image.signer), (system(), key().public()));
    assert_eq!(image.manifest_bytes, system().encode());
    assert_eq!(image.packages, [good_package(), script.clone()]);
    let identity_in = |bytes: &[u8]| identity(&Package::parse(bytes).expect("it is a package"));
    assert_eq!(image.identities, [identity_in(&good_package()), identity_in(&script)]);
    let head = bytes.len() - good_package().len() - script.len() - 96;
    assert_eq!(image.measurement, package_check::sha256(&bytes[..head]));
}

#[test]
fn bad_system_images() {
    let bytes = package_build::build_system(&system(), &[good_package()], &key()).expect("it fits");
    let parse = |bytes: &[u8]| package_check::verify_system(bytes).map(|_| ());
    assert_eq!(refused(parse(b"no system")), PackageError::Format(FormatError::NotASystemImage));
    for length in 0..bytes.len() {
        assert!(parse(&bytes[..length]).is_err(), "cut at {length}");
    }
    let head = bytes.len() - good_package().len();
    for offset in 0..head {
        let mut changed = bytes.clone();
        changed[offset] ^= 4;
        assert!(parse(&changed).is_err(), "changed at {offset}");
    }
    let mut changed = bytes.clone();
    changed[24] ^= 1;
    assert_eq!(refused(parse(&changed)), PackageError::SystemChecksum);
    let mut changed = bytes.clone();
    changed[head - 1] ^= 1;
    assert_eq!(refused(parse(&changed)), PackageError::SystemSignature);
    let longer = [bytes, vec![0]].concat();
    assert!(matches!(refused(parse(&longer)), PackageError::Format(FormatError::TrailingBytes { .. })));
}

/// A changed head can have the right SHA-256, but not the signature.
#[test]
fn a_changed_head_with_the_right_checksum() {
    let mut bytes = package_build::build_system(&system(), &[good_package()], &key()).expect("it fits");
    let head = bytes.len() - good_package().len() - 96;
    let name = bytes.windows(4).position(|window| window == b"echo").expect("the root's name is in it");
    bytes[name..name + 4].copy_from_slice(b"evil");
    let checksum = package_check::sha256(&bytes[..head]);
    bytes[head..head + 32].copy_from_slice(&checksum);
    assert_eq!(refused(package_check::verify_system(&bytes).map(|_| ())), PackageError::SystemSignature);
}

#[test]
fn a_system_signed_by_whom_may_not_sign_systems() {
    let other = SecretKey::from_bytes(&[8; 32]);
    let error = package_build::build_system(&system(), &[good_package()], &other).map(|_| ());
    let expected = TrustError::NotASystemSigner { key: other.public() };
    assert_eq!(refused(error), PackageError::Trust(expected.clone()));
    let mut narrow = system();
    narrow.trust.roots.push(Root {
        key: other.public(),
        publishers: "*".into(),
        systems: false,
        rights: Rights::NATIVE,
    });
    let error = package_build::build_system(&narrow, &[good_package()], &other).map(|_| ());
    assert_eq!(refused(error), PackageError::Trust(expected));
    // The signer is part of the head, so another key means another head.
    let mut bytes = package_build::build_system(&narrow, &[good_package()], &key()).expect("it fits");
    let head = bytes.len() - good_package().len() - 96;
    bytes[head - 32..head].copy_from_slice(&other.public().0);
    let checksum = package_check::sha256(&bytes[..head]);
    bytes[head..head + 32].copy_from_slice(&checksum);
    let expected = TrustError::NotASystemSigner { key: other.public() };
    assert_eq!(refused(package_check::verify_system(&bytes).map(|_| ())), PackageError::Trust(expected));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = verify(&bytes);
        let _ = package_check::verify_system(&bytes);
        let _ = Manifest::decode(&bytes);
        let _ = SystemManifest::decode(&bytes);
        let _ = image_check::Image::check(&bytes);
        for magic in ["SINGPKG3", "SINGSYS3", "SGM3", "SGY2", "\x7FELF\x02\x01"] {
            let with_magic = [magic.as_bytes(), &bytes].concat();
            let _ = verify(&with_magic);
            let _ = package_check::verify_system(&with_magic);
            let _ = Manifest::decode(&with_magic);
            let _ = SystemManifest::decode(&with_magic);
            let _ = image_check::Image::check(&with_magic);
        }
    }

    #[test]
    fn no_changed_image_panics(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = Elf::good().write();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Ok(image) = image_check::Image::check(&bytes) {
            let pages = image.relocate(0x7000_0000_0000);
            prop_assert!(pages.iter().all(|page| page.bytes.len() % 4096 == 0));
        }
    }

    #[test]
    fn no_changed_header_panics(word in 0usize..((64 + 56 * 5) / 8), value in any::<u64>(), small in 0u64..0x4000) {
        for value in [value, small, u64::MAX - small] {
            let mut bytes = Elf::good().write();
            bytes[word * 8..word * 8 + 8].copy_from_slice(&value.to_le_bytes());
            if let Ok(image) = image_check::Image::check(&bytes) {
                let _ = image.relocate(0x7000_0000_0000);
            }
        }
    }

    #[test]
    fn manifests_survive_encoding(name in "[a-z]{1,9}", number in any::<i64>(), position in any::<Option<u16>>()) {
        let mut before = manifest();
        before.parameters[0] = Parameter {
            default: Some(Value::Integer(number)),
            position,
            ..Parameter::plain(&name, ParameterKind::Integer)
        };
        prop_assert_eq!(Manifest::decode(&before.encode()), Ok(before));
    }
}
