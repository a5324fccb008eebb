//! Packages that the conformance suite installs into the running system. They are scripts, so no compiler is needed,
//! and their secret keys are public: only the suite's own system trusts them.
//!
//! `UPDATE_GOLDEN=1 cargo test -p package-check --test guests` rewrites them.

use std::path::{Path, PathBuf};

use manifest_model::{Category, Code, Manifest, PublicKey, Rights, Version};
use package::{Certificate, May};
use package_build::{Grant, SecretKey, Signer};

const ROOT: [u8; 32] = *b"the root of conformance guests..";
const STRANGER: [u8; 32] = *b"a key that no system trusts.....";
const CERTIFIED: [u8; 32] = *b"a key certified by the root.....";
const REVOKED: u64 = 0x5e1f_5e1f_5e1f_5e1f;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn guest(publisher: &str, minor: u32) -> Manifest {
    let code = Code::Script { text: "echo a guest".into() };
    Manifest {
        version: Version { major: 1, minor, patch: 0 },
        summary: format!("guest 1.{minor} of {publisher}"),
        ..Manifest::plain("conformance-guest", publisher, Category::Console, code)
    }
}

fn public(seed: [u8; 32]) -> PublicKey {
    SecretKey::from_bytes(&seed).public()
}

fn signed(manifest: Manifest, seed: [u8; 32], chain: Vec<Certificate>) -> Vec<u8> {
    let signer = Signer { key: SecretKey::from_bytes(&seed), chain };
    package_build::build_unchecked(manifest, b"", &[], &signer).expect("it is short")
}

fn certified(serial: u64) -> Vec<Certificate> {
    let root = SecretKey::from_bytes(&ROOT);
    let grant = Grant { publishers: "conformance-guests", may: May::Sign, rights: Rights::NONE };
    let issued = package_build::issue_certificate(&root, public(CERTIFIED), grant, serial);
    vec![issued.expect("a name")]
}

fn guests() -> Vec<(&'static str, Vec<u8>)> {
    let mut changed = signed(guest("conformance-guests", 9), ROOT, Vec::new());
    let place = changed.windows(4).position(|window| window == b"echo").expect("it is a script");
    changed[place] = b'E';
    let oneself = Manifest { name: "conformance".into(), ..guest("conformance-guests", 9) };
    let native = Manifest { code: Code::Image { digest: [0; 32] }, ..guest("conformance-guests", 9) };
    // Rejected for the signer's missing right, before the image is checked.
    let signer = Signer::root(SecretKey::from_bytes(&ROOT));
    let native = package_build::build_unchecked(native, b"", b"machine code", &signer).expect("it is short");
    vec![
        ("first", signed(guest("conformance-guests", 0), ROOT, Vec::new())),
        ("second", signed(guest("conformance-guests", 1), CERTIFIED, certified(1))),
        ("other-publisher", signed(guest("conformance-others", 9), ROOT, Vec::new())),
        ("not-its-publisher", signed(guest("singularity", 9), ROOT, Vec::new())),
        ("stranger", signed(guest("conformance-guests", 9), STRANGER, Vec::new())),
        ("revoked", signed(guest("conformance-guests", 9), CERTIFIED, certified(REVOKED))),
        ("unsigned", package_build::build_unsigned(guest("conformance-guests", 9), b"", &[]).expect("it is short")),
        ("changed", changed),
        ("native", native),
        ("root", signed(oneself, ROOT, Vec::new())),
    ]
}

#[test]
fn the_guests_of_the_conformance_suite_are_as_they_are_made() {
    let folder = repository().join("tests/conformance/runner/guests");
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (name, bytes) in guests() {
        let path = folder.join(name).with_extension("package");
        if is_update {
            std::fs::create_dir_all(&folder).expect("the folder can be made");
            std::fs::write(&path, &bytes).expect("the package can be written");
        }
        let there = std::fs::read(&path).unwrap_or_default();
        assert!(there == bytes, "{}: if the format was changed, run with UPDATE_GOLDEN=1", path.display());
    }
    let system = std::fs::read_to_string(repository().join("systems/conformance.toml")).expect("the system is there");
    assert!(system.contains(&public(ROOT).to_string()), "systems/conformance.toml must trust {}", public(ROOT));
    assert!(system.contains(&format!("{REVOKED:016x}")), "systems/conformance.toml must revoke {REVOKED:016x}");
}
