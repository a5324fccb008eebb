//! The fuzz target `certificates` without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p package-check --test fuzzed` rewrites its seed inputs.

mod certificates;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use manifest_model::Rights;
use package::{Certificate, May};
use package_build::Grant;

/// Seed inputs, findings among them.
fn inputs(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs").join(target)
}

/// Chains up to a root, as numbers of keys; see [`certificates::secret`].
fn chains() -> Vec<(&'static str, Vec<u8>)> {
    let issue = |issuer, key, publishers: &str, may, serial| {
        let key = certificates::secret(key).public();
        let grant = Grant { publishers, may, rights: Rights::NATIVE };
        package_build::issue_certificate(&certificates::secret(issuer), key, grant, serial)
            .expect("a pattern of publishers")
    };
    let by_root = issue(certificates::ROOT, 1, "acme-*", May::Certify, 1);
    let one = [issue(certificates::ROOT, 3, "acme-tools", May::Sign, 2)];
    let two = [issue(1, 3, "acme-tools", May::Sign, 3), by_root.clone()];
    let three =
        [issue(2, 3, "acme-tools-x", May::Sign, 4), issue(1, 2, "acme-tools-*", May::Certify, 5), by_root.clone()];
    [("one", &one[..]), ("two", &two), ("three", &three), ("certifier", &[by_root])]
        .map(|(name, chain)| (name, Certificate::encode_chain(chain)))
        .into()
}

#[test]
fn damaged_chains_make_nobody_believed() {
    replay::replay(&inputs("certificates"), 200, certificates::run);
}

/// Otherwise the fuzzer would reach little.
#[test]
fn the_chains_lead_to_a_root() {
    replay::hold_seeds(&inputs("certificates"), &chains());
    for (name, bytes) in chains() {
        let chain = Certificate::chain(&bytes).expect("a chain");
        assert_eq!(certificates::is_believed(&chain, &certificates::trust()), name != "certifier", "{name}");
    }
}
