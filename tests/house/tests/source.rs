//! Rules on source files.

use house::{Crate, Workspace, expect_none};

/// Maximum lines of a file before it should be split.
const LONGEST_FILE: usize = 700;

/// Crates with unsafe code, in modules of their own: the trusted base, and benchmarks of Linux.
fn may_be_unsafe(workspace: &Workspace, member: &Crate) -> bool {
    let trusted = ["kernel", "sip", "sip/c", "sip/virtio", "sip/wasm", "benches/linux"]
        .contains(&member.folder.as_str())
        || ["hal/", "boot/"].iter().any(|folder| member.folder.starts_with(folder));
    trusted || declares_unsafe_tests(workspace, member)
}

/// Programs with unsafe code are marked in their manifests: those that attack the system in a test, and those that run
/// in a hardware domain of their own.
fn declares_unsafe_tests(workspace: &Workspace, member: &Crate) -> bool {
    let path = workspace.root.join(&member.folder).join("manifest.toml");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let is_set =
        |key| manifest.get("code").and_then(|code| code.get(key)).and_then(|value| value.as_bool()) == Some(true);
    is_set("unsafe-for-tests") || is_set("unsafe")
}

#[test]
fn every_crate_opts_into_the_workspace_lints() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for member in &workspace.crates {
        let manifest: toml::Table = workspace.text(&format!("{}/Cargo.toml", member.folder)).parse().expect("TOML");
        let opted = manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(|value| value.as_bool());
        if opted != Some(true) {
            complaints.push(format!("{}/Cargo.toml", member.folder));
        }
    }
    expect_none("These lack `[lints] workspace = true`:", &complaints);
}

#[test]
fn unsafe_code_is_forbidden_outside_the_trusted_base() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for member in workspace.crates.iter().filter(|member| !may_be_unsafe(&workspace, member)) {
        for root in &member.roots {
            let forbids = workspace.text(root).lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
            if !forbids {
                complaints.push(root.clone());
            }
        }
    }
    expect_none("These lack a line `#![forbid(unsafe_code)]`:", &complaints);
}

#[test]
fn every_sip_is_no_std() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for member in workspace.crates.iter().filter(|member| member.is_sip(&workspace.root)) {
        for root in &member.roots {
            if !workspace.text(root).lines().any(|line| line.trim() == "#![no_std]") {
                complaints.push(root.clone());
            }
        }
    }
    expect_none("These lack a line `#![no_std]`:", &complaints);
}

#[test]
fn no_source_file_is_too_long() {
    let workspace = Workspace::read();
    let complaints: Vec<String> = workspace
        .files("rs")
        .into_iter()
        .filter(|path| !path.contains("/golden") && !path.contains("/fixtures/"))
        .map(|path| (workspace.text(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LONGEST_FILE)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    expect_none(&format!("These have more than {LONGEST_FILE} lines; divide them:"), &complaints);
}

#[test]
fn nothing_is_left_for_later() {
    let workspace = Workspace::read();
    // Concatenated so that this file does not match.
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X:"].concat(), ["To be ", "written."].concat()];
    let mut complaints = Vec::new();
    for path in workspace.files("rs").into_iter().chain(workspace.files("toml")) {
        for (number, line) in workspace.text(&path).lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                complaints.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    expect_none("These promise something for later; do it, or write an issue:", &complaints);
}

/// Libraries whose requests need timeouts: those through which programs call services.
const CLIENT_LIBRARIES: [&str; 5] =
    ["userland/client/", "userland/file-tools/", "userland/network/", "userland/provider/", "userland/stdio/"];

/// Exempt waits of these without a timeout, because they wait for a user, a peer or an event: the file, and the text
/// before the call.
const ENDLESS_WAITS: [(&str, &str); 7] = [
    ("userland/network/src/lib.rs", "match endpoint.accept()"),
    ("userland/client/src/terminal.rs", "console.write(block)"),
    ("userland/stdio/src/lib.rs", "match self.ready()?.end()"),
    ("userland/stdio/src/lib.rs", "Writer::Waiting(endpoint) => match endpoint"),
    ("userland/stdio/src/lib.rs", "match endpoint"),
    // Its own channel, whose peer has already sent.
    ("userland/stdio/src/lib.rs", "match importer"),
    ("userland/provider/src/lib.rs", "provider = match provider"),
];

#[test]
fn requests_of_the_client_libraries_have_limits() {
    let workspace = Workspace::read();
    let mut complaints = Vec::new();
    for file in
        workspace.files("rs").into_iter().filter(|file| CLIENT_LIBRARIES.iter().any(|folder| file.starts_with(folder)))
    {
        for (number, line) in (1..).zip(workspace.text(&file).lines()) {
            let waits = [".receive()", ".receive_async()"].iter().find_map(|call| line.split_once(call));
            if let Some((before, _)) = waits
                && !ENDLESS_WAITS.contains(&(file.as_str(), before.trim()))
            {
                complaints.push(format!("{file}:{number}: {}", line.trim()));
            }
        }
    }
    expect_none("Use `answer::wait` with a limit, or say why these may wait for ever:", &complaints);
}
