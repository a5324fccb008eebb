//! What the fuzz target `certificates` does, without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p package --test fuzzed` writes the inputs anew that it begins with.

mod body;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use package::{Certificate, May};

/// What a fuzzer begins with, its findings among it.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs")
}

/// Chains that lead to a root, by the numbers of the keys; see [`body::secret`].
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let issue = |issuer, key, publishers: &str, may, serial| {
        let key = body::secret(key).public();
        Certificate::issue(&body::secret(issuer), key, publishers, may, serial).expect("a pattern of publishers")
    };
    let by_root = issue(body::ROOT, 1, "acme-*", May::Certify, 1);
    let one = [issue(body::ROOT, 3, "acme-tools", May::Sign, 2)];
    let two = [issue(1, 3, "acme-tools", May::Sign, 3), by_root.clone()];
    let three =
        [issue(2, 3, "acme-tools-x", May::Sign, 4), issue(1, 2, "acme-tools-*", May::Certify, 5), by_root.clone()];
    [("one", &one[..]), ("two", &two), ("three", &three), ("certifier", &[by_root])]
        .map(|(name, chain)| (name, Certificate::encode_chain(chain)))
        .into()
}

#[test]
fn damaged_chains_make_nobody_believed() {
    replay::replay(&inputs(), 200, body::run);
}

/// Else a fuzzer would see little.
#[test]
fn the_seeds_lead_to_a_root() {
    replay::hold_seeds(&inputs(), &seeds());
    for (name, bytes) in seeds() {
        let chain = Certificate::chain(&bytes).expect("a chain");
        assert_eq!(body::is_believed(&chain, &body::trust()), name != "certifier", "{name}");
    }
}
