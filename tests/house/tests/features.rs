//! Features that leave out checks are of measurements alone.

use house::{Workspace, expect_none};

/// Features of kernels that `cargo sing bench safety` builds.
const UNCHECKED: [&str; 2] = ["bench-unchecked-images", "bench-without-monitor"];
/// The crates that have them: the kernel, what it checks images with, and the machines with the kernel in them.
const DECLARE: [&str; 5] = ["boot/hosted", "boot/x86_64", "kernel", "lib/image-check", "lib/package-check"];
/// The folder of the only source outside of those crates that may name them.
const BENCH: &str = "xtask/src/bench/safety/";

fn names_one(text: &str) -> bool {
    UNCHECKED.iter().any(|unchecked| text.contains(unchecked))
}

#[test]
fn no_build_but_that_of_a_measurement_leaves_checks_out() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for member in &workspace.crates {
        let path = format!("{}/Cargo.toml", member.folder);
        let manifest: toml::Table = workspace.text(&path).parse().expect("TOML");
        let features = manifest.get("features").and_then(|value| value.as_table()).cloned().unwrap_or_default();
        for (feature, enabled) in &features {
            let is_own = UNCHECKED.contains(&feature.as_str());
            if is_own && !DECLARE.contains(&member.folder.as_str()) {
                complaints.push(format!("{path}: declares {feature}"));
            }
            if !is_own && names_one(&format!("{enabled:?}")) {
                complaints.push(format!("{path}: the feature {feature} enables one"));
            }
        }
        let rest = manifest.iter().filter(|(key, _)| *key != "features");
        if rest.map(|(_, value)| format!("{value:?}")).any(|text| names_one(&text)) {
            complaints.push(format!("{path}: a dependency enables one"));
        }
    }
    for path in workspace.files("rs") {
        let is_known = path.starts_with(BENCH)
            || path.starts_with("tests/house/")
            || DECLARE.iter().any(|folder| path.starts_with(&format!("{folder}/")));
        if !is_known && names_one(&workspace.text(&path)) {
            complaints.push(path);
        }
    }
    expect_none(
        "These may enable features that leave checks out, which only `cargo sing bench safety` does:",
        &complaints,
    );
}
