//! Who may depend on whom.
//!
//! Each line of the table: crates (a folder, or a folder's children with `/*`), and what they may use.
//! `SIP` stands for every crate with a manifest.toml beside its Cargo.toml. What is only for a crate's
//! own tests may come from `lib/*` as well, and from `abi` where they stand in for the kernel, but from nowhere else.

use house::{Crate, Workspace, expect_none};

const LEGAL: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("lang", &["abi", "lib/codes", "lib/diagnostics"]),
    ("lib/*", &["abi", "lib/*"]),
    ("hal/api", &["abi"]),
    ("hal/hosted", &["hal/api", "abi", "lib/nine-p", "lib/host-service"]),
    ("hal/*", &["hal/api", "abi"]),
    ("kernel", &["hal/api", "abi", "lib/package"]),
    ("boot/*", &["kernel", "hal/*", "abi", "lib/package", "lib/memory-functions"]),
    ("sip/macros", &["lang", "lib/manifest", "lib/package", "lib/reflection", "abi"]),
    ("sip", &["abi", "sip/macros", "lib/memory-functions", "lib/layout"]),
    ("sip/virtio", &["sip", "lib/layout", "lib/virtio-bus"]),
    ("contracts", &["sip", "lib/layout"]),
    ("SIP", &["contracts", "sip", "sip/virtio", "lib/*", "SHARED"]),
    ("drivers/folder-server", &["contracts", "sip", "lib/*", "services/mount-permit"]),
    ("SHARED", &["contracts", "sip", "lib/*"]),
    (
        "sing",
        &[
            "lang",
            "abi",
            "lib/package",
            "lib/manifest",
            "lib/diagnostics",
            "lib/install",
            "lib/block-source",
            "lib/ext2",
            "lib/fat",
            "lib/host-service",
            "lib/terminal",
            "lib/volume-kind",
        ],
    ),
    ("sing/start", &[]),
    ("benches/linux", &[]),
    ("tests/house", &["abi"]),
    ("tests/end-to-end", &["lib/ext2", "lib/package"]),
    ("tests/*", &["contracts", "sip", "lang", "lib/*"]),
];

/// The kind of a crate that is not named in the table by its folder: a SIP, or a crate without a
/// manifest that SIPs share (contracts of an example).
fn class(workspace: &Workspace, member: &Crate) -> Option<&'static str> {
    let in_program_folder = [
        "drivers/",
        "services/",
        "apps/",
        "examples/",
        "tests/conformance/",
        "tests/hostile/",
        "tests/services-check/",
        "benches/",
    ]
    .iter()
    .any(|folder| member.folder.starts_with(folder));
    match (member.is_sip(&workspace.root), in_program_folder && member.folder != "benches/linux") {
        (true, _) => Some("SIP"),
        (false, true) => Some("SHARED"),
        (false, false) => None,
    }
}

fn covers(pattern: &str, folder: &str, class: Option<&str>) -> bool {
    match pattern.strip_suffix("/*") {
        _ if class == Some(pattern) => true,
        Some(parent) => folder.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/')),
        None => pattern == folder,
    }
}

/// What a crate may use; the most particular line counts.
fn legal_for(folder: &str, class: Option<&str>) -> Option<&'static [&'static str]> {
    let exact = LEGAL.iter().find(|(pattern, _)| *pattern == folder || class == Some(*pattern));
    exact.or_else(|| LEGAL.iter().find(|(pattern, _)| covers(pattern, folder, class))).map(|(_, legal)| *legal)
}

#[test]
fn every_arrow_between_crates_is_legal() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for member in &workspace.crates {
        let Some(legal) = legal_for(&member.folder, class(&workspace, member)) else {
            complaints.push(format!("{} is in no line of the table of arrows", member.folder));
            continue;
        };
        for dependency in member.dependencies.iter().filter(|dependency| dependency.is_ours) {
            let Some(used) = workspace.crates.iter().find(|other| other.name == dependency.name) else { continue };
            let used_class = class(&workspace, used);
            let is_legal = legal.iter().any(|pattern| covers(pattern, &used.folder, used_class));
            let of_tests = ["lib/*", "abi"].iter().any(|pattern| covers(pattern, &used.folder, used_class));
            let is_legal_test = dependency.for_tests && of_tests;
            // A crate may name itself for its tests, to turn features on.
            if !is_legal && !is_legal_test && used.name != member.name {
                complaints.push(format!("{} -> {}", member.folder, used.folder));
            }
        }
    }
    expect_none(
        "These dependencies are against the architecture; move the code or, after thought, extend the table:",
        &complaints,
    );
}

#[test]
fn the_table_forbids_what_the_design_forbids() {
    let forbidden =
        [("SIP", "SIP"), ("SIP", "kernel"), ("kernel", "contracts"), ("lang", "kernel"), ("sing", "kernel")];
    for (from, to) in forbidden {
        let legal = legal_for(from, Some(from)).expect("a line");
        assert!(!legal.iter().any(|pattern| covers(pattern, to, Some(to))), "{from} -> {to}");
    }
}
