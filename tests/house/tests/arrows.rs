//! Allowed dependencies between crates.
//!
//! Each line of the table: crates (a folder, or a folder's children with `/*`), and their allowed dependencies. `SIP`
//! is every crate with a manifest.toml beside its Cargo.toml or in its subfolders, `USERLAND` the libraries over
//! contracts. Dev-dependencies may also come from `lib/*`, and from `abi` where tests stand in for the kernel, but
//! from nowhere else. The lines of `lib/` are exact: each crate has one, and every arrow in it is used.

use house::{Crate, Workspace, expect_none};

const LEGAL: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("lang", &["abi", "lib/codes", "lib/diagnostics"]),
    ("lib/arguments", &["lib/manifest-model"]),
    ("lib/block-source", &[]),
    ("lib/boot-image", &[]),
    ("lib/boot-order", &["lib/manifest-model"]),
    ("lib/compose", &["abi", "lib/image-check", "lib/native-verifier", "lib/wasm-record", "lib/wasm-translate"]),
    ("lib/cat", &[]),
    ("lib/codes", &[]),
    ("lib/command-language", &[]),
    ("lib/contract-diagram", &["abi"]),
    ("lib/diagnostics", &[]),
    ("lib/ext2", &["lib/block-source", "lib/volume-kind", "lib/task-sync"]),
    ("lib/fat", &["lib/block-source", "lib/layout", "lib/task-sync"]),
    ("lib/host-service", &[]),
    ("lib/http", &[]),
    ("lib/image-analysis", &["abi", "lib/image-check", "lib/manifest-model"]),
    ("lib/image-check", &["abi"]),
    (
        "lib/install",
        &[
            "abi",
            "lib/boot-order",
            "lib/codes",
            "lib/image-analysis",
            "lib/image-check",
            "lib/manifest-model",
            "lib/package",
            "lib/package-build",
            "lib/package-check",
            "lib/principal",
        ],
    ),
    ("lib/layout", &["lib/layout-macros"]),
    ("lib/layout-macros", &["lib/reflection"]),
    ("lib/line-editor", &[]),
    (
        "lib/manifest",
        &[
            "abi",
            "lib/arguments",
            "lib/codes",
            "lib/diagnostics",
            "lib/install",
            "lib/manifest-model",
            "lib/reflection",
        ],
    ),
    ("lib/manifest-model", &["abi", "lib/principal"]),
    ("lib/memory-functions", &[]),
    ("lib/name-text", &[]),
    ("lib/native-verifier", &["lib/wasm-record"]),
    ("lib/net-stack", &["lib/layout", "lib/tcp"]),
    ("lib/network-rules", &["lib/principal"]),
    ("lib/nine-p", &[]),
    ("lib/package", &["lib/manifest-model"]),
    ("lib/package-build", &["lib/image-check", "lib/manifest-model", "lib/package", "lib/package-check"]),
    ("lib/package-check", &["abi", "lib/image-check", "lib/manifest-model", "lib/package"]),
    ("lib/partition-table", &["lib/layout"]),
    ("lib/path", &[]),
    ("lib/pci", &["lib/layout", "lib/virtio-bus"]),
    ("lib/people", &[]),
    ("lib/principal", &[]),
    ("lib/reflection", &[]),
    ("lib/regalloc2", &[]),
    ("lib/register-allocation", &["lib/regalloc2"]),
    ("lib/simulated-link", &[]),
    ("lib/recording", &["abi"]),
    ("lib/supervision", &["lib/manifest-model"]),
    ("lib/task-sync", &[]),
    ("lib/tcp", &[]),
    ("lib/terminal", &["lib/command-language", "lib/line-editor"]),
    ("lib/test-needs", &[]),
    ("lib/text", &["abi"]),
    ("lib/trace-file", &["abi"]),
    ("lib/uart-16550", &["lib/layout"]),
    ("lib/virtio-bus", &["lib/layout"]),
    ("lib/volume-kind", &[]),
    ("lib/wasm-record", &[]),
    ("lib/wasm-translate", &["lib/wasm-record"]),
    ("lib/web-message", &[]),
    ("hal/api", &["abi"]),
    ("hal/hosted", &["hal/api", "abi", "lib/nine-p", "lib/host-service"]),
    ("hal/simulated", &["hal/api", "hal/hosted", "abi", "lib/simulated-link"]),
    ("hal/x86_64", &["hal/api", "abi", "lib/recording"]),
    ("hal/*", &["hal/api", "abi"]),
    ("kernel", &["hal/api", "abi", "lib/manifest-model", "lib/package", "lib/package-check", "lib/recording"]),
    ("boot/*", &["kernel", "hal/*", "abi", "lib/boot-image", "lib/memory-functions", "lib/recording"]),
    ("sip/macros", &["lang", "lib/manifest", "lib/manifest-model", "lib/reflection", "abi"]),
    ("sip", &["abi", "sip/macros", "lib/memory-functions", "lib/layout"]),
    ("sip/c", &["sip"]),
    ("sip/virtio", &["sip", "lib/layout", "lib/virtio-bus"]),
    ("sip/wasm", &["sip", "lib/wasm-record"]),
    ("contracts", &["sip", "lib/layout"]),
    ("templates/wasm-spec", &["sip", "sip/wasm", "tests/wasm-spec/script"]),
    ("USERLAND", &["contracts", "sip", "lib/*", "USERLAND"]),
    // Before the line of its class: the scripts of a suite are a crate of tests.
    ("templates/wasm-spec", &["sip", "sip/wasm", "tests/wasm-spec/script"]),
    ("SIP", &["contracts", "sip", "sip/virtio", "sip/wasm", "lib/*", "USERLAND", "SHARED"]),
    ("SHARED", &["contracts", "sip", "lib/*"]),
    (
        "sing",
        &[
            "lang",
            "abi",
            "lib/boot-image",
            "lib/boot-order",
            "lib/command-language",
            "lib/manifest",
            "lib/diagnostics",
            "lib/image-check",
            "lib/manifest-model",
            "lib/package",
            "lib/package-build",
            "lib/package-check",
            "lib/install",
            "lib/block-source",
            "lib/ext2",
            "lib/fat",
            "lib/host-service",
            "lib/recording",
            "lib/simulated-link",
            "lib/terminal",
            "lib/volume-kind",
            "sing/start",
        ],
    ),
    ("sing/start", &[]),
    ("sing/wasm", &["lib/compose", "lib/image-check", "lib/native-verifier", "lib/wasm-translate"]),
    (
        "xtask",
        &[
            "sing",
            "lib/ext2",
            "lib/install",
            "lib/manifest-model",
            "lib/package",
            "lib/package-build",
            "lib/package-check",
            "lib/test-needs",
        ],
    ),
    ("benches/linux", &[]),
    ("tests/house", &["abi"]),
    ("tests/wasm-spec", &["lib/*", "tests/wasm-spec/script"]),
    (
        "tests/end-to-end",
        &[
            "lib/boot-image",
            "lib/ext2",
            "lib/image-check",
            "lib/manifest-model",
            "lib/package",
            "lib/package-build",
            "lib/package-check",
        ],
    ),
    ("tests/*", &["contracts", "sip", "lang", "lib/*"]),
];

/// The kind of a crate that is not named in the table by its folder: a SIP, a library over contracts, or a crate
/// without a manifest among SIPs that share it (contracts of an example, counts of a test).
fn class(workspace: &Workspace, member: &Crate) -> Option<&'static str> {
    if member.folder.starts_with("userland/") {
        return Some("USERLAND");
    }
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

/// Returns the allowed dependencies of a crate; the most specific line applies.
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
            // A crate may depend on itself for its tests, to enable features.
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
fn every_arrow_of_a_library_is_used() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for (folder, legal) in LEGAL.iter().filter(|(folder, _)| folder.starts_with("lib/")) {
        let Some(library) = workspace.crates.iter().find(|member| member.folder == *folder) else {
            complaints.push(format!("{folder} is no crate"));
            continue;
        };
        let ours = library.dependencies.iter().filter(|dependency| dependency.is_ours && !dependency.for_tests);
        let used: Vec<&str> = ours
            .filter_map(|dependency| workspace.crates.iter().find(|other| other.name == dependency.name))
            .map(|other| other.folder.as_str())
            .collect();
        let stale = legal.iter().filter(|arrow| !used.contains(*arrow));
        complaints.extend(stale.map(|arrow| format!("{folder} -> {arrow}")));
    }
    expect_none("Nobody uses these arrows of the table; take them out:", &complaints);
}

#[test]
fn the_table_forbids_what_the_design_forbids() {
    let forbidden = [
        ("SIP", "SIP"),
        ("SIP", "kernel"),
        ("USERLAND", "SIP"),
        ("USERLAND", "sip/virtio"),
        ("USERLAND", "sip/wasm"),
        ("contracts", "USERLAND"),
        ("lib/ext2", "contracts"),
        ("kernel", "contracts"),
        ("lang", "kernel"),
        ("sing", "kernel"),
    ];
    for (from, to) in forbidden {
        let legal = legal_for(from, Some(from)).expect("a line");
        assert!(!legal.iter().any(|pattern| covers(pattern, to, Some(to))), "{from} -> {to}");
    }
}
