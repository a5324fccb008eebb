//! Packages of an impostor, which the suite `adversary-check` tries to install in the running system.
//!
//! They are files, as no program of the system builds packages. `UPDATE_GOLDEN=1` rewrites them.

mod common;

use std::path::Path;

use common::trust;
use manifest_model::{Category, Code, Manifest, Permission, Rights, Version};
use package::{May, Package, TrustError};
use package_build::{Grant, SecretKey, Signer};
use package_check::{PackageError, verify};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/services-check/adversary/src/packages");

fn own_key() -> SecretKey {
    SecretKey::from_bytes(&[66; 32])
}

/// A script, so that only its signer is wrong.
fn script(name: &str, publisher: &str, permissions: &[Permission]) -> Manifest {
    let code = Code::Script { text: "echo it runs".into() };
    Manifest {
        version: Version { major: 9, minor: 0, patch: 0 },
        summary: "writes its arguments".into(),
        permissions: permissions.to_vec(),
        ..Manifest::plain(name, publisher, Category::Console, code)
    }
}

/// The intruder, with more rights.
fn grown() -> Manifest {
    script("intruder", "singularity", &[Permission::Diagnostics, Permission::Install, Permission::Power])
}

fn signed(manifest: Manifest, signer: &Signer) -> Vec<u8> {
    package_build::build_unchecked(manifest, &[], &[], signer).expect("a package")
}

/// Each package by file name, and whether an error is the expected one.
type Case = (&'static str, Vec<u8>, fn(&TrustError) -> bool);

fn all() -> Vec<Case> {
    let grant = Grant { publishers: "singularity", may: May::Sign, rights: Rights::NATIVE };
    let by_itself = package_build::issue_certificate(&own_key(), own_key().public(), grant, 1).expect("issued");
    let unsigned = |manifest| {
        let mut bytes = signed(manifest, &Signer::root(own_key()));
        let ends = bytes.len() - 96;
        bytes[ends..].fill(0);
        bytes
    };
    let alone = || Signer::root(own_key());
    let certified = Signer { key: own_key(), chain: vec![by_itself] };
    vec![
        ("look-alike", signed(script("cat", "singu1arity", &[]), &alone()), |error| {
            matches!(error, TrustError::UntrustedKey { .. })
        }),
        ("own-key", signed(grown(), &alone()), |error| matches!(error, TrustError::UntrustedKey { .. })),
        ("own-certificate", signed(grown(), &certified), |error| matches!(error, TrustError::UntrustedIssuer { .. })),
        ("unsigned", unsigned(grown()), |error| matches!(error, TrustError::Unsigned)),
    ]
}

#[test]
fn the_suite_has_the_packages_that_are_made_here_and_nobody_trusts_them() {
    for (name, bytes, is_meant) in all() {
        let refused = verify(&Package::parse(&bytes).expect(name), &trust()).map(|_| ());
        match refused {
            Err(PackageError::Trust(error)) => assert!(is_meant(&error), "{name}: {error}"),
            other => panic!("{name}: {other:?}, and not that nobody trusts it"),
        }
        let path = Path::new(FOLDER).join(format!("{name}.package"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &bytes).expect("the file is written");
        }
        let there = std::fs::read(&path).expect("the file; UPDATE_GOLDEN=1 makes it");
        assert!(there == bytes, "{name}: the format has changed; UPDATE_GOLDEN=1 makes the files anew");
    }
}
