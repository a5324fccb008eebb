//! Rules on documents, licences and committed output.

use std::collections::BTreeSet;

use house::{Workspace, expect_none};

#[test]
fn both_licences_are_there() {
    let workspace = Workspace::read();
    assert!(workspace.text("LICENSE-MIT").contains("Permission is hereby granted, free of charge"));
    assert!(workspace.text("LICENSE-APACHE").contains("Apache License"));
}

#[test]
fn every_outside_dependency_is_explained() {
    let workspace = Workspace::read();
    let document = workspace.text("docs/dependencies.md");
    let explained: BTreeSet<&str> = document.split('`').skip(1).step_by(2).collect();
    let mut complaints = BTreeSet::new();
    for member in &workspace.crates {
        for dependency in member.dependencies.iter().filter(|dependency| !dependency.is_ours) {
            if !explained.contains(dependency.name.as_str()) {
                complaints.insert(format!("`{}`, used by {}", dependency.name, member.folder));
            }
        }
    }
    let complaints: Vec<String> = complaints.into_iter().collect();
    expect_none("docs/dependencies.md says nothing of:", &complaints);
}

#[test]
fn the_rendered_abi_is_not_stale() {
    let workspace = Workspace::read();
    assert!(
        workspace.text("abi/v1.txt") == abi::render(),
        "abi/v1.txt is stale; run UPDATE_GOLDEN=1 cargo test -p abi and review the difference"
    );
}

#[test]
fn the_readme_has_a_sentence_for_every_folder() {
    let workspace = Workspace::read();
    let readme = workspace.text("README.md");
    let mut complaints = Vec::new();
    for entry in std::fs::read_dir(&workspace.root).expect("the root").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let counts = entry.path().is_dir() && !name.starts_with('.') && name != "target";
        if counts && !readme.contains(&format!("`{name}/`")) && !readme.contains(&format!("`{name}`")) {
            complaints.push(name);
        }
    }
    expect_none("README.md has no sentence on these folders (written `name/`):", &complaints);
}

#[test]
fn the_audited_list_agrees_with_the_lock_file() {
    let workspace = Workspace::read();
    let lock: toml::Table = workspace.text("Cargo.lock").parse().expect("TOML");
    let list: toml::Table = workspace.text("sing/allowed-dependencies.toml").parse().expect("TOML");
    let entries = |table: &toml::Table, key: &str| -> Vec<toml::Value> {
        table.get(key).and_then(|value| value.as_array()).cloned().unwrap_or_default()
    };
    let field = |entry: &toml::Value, key: &str| {
        entry.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_string()
    };
    let identity = |entry: &toml::Value| (field(entry, "name"), field(entry, "version"), field(entry, "checksum"));
    let locked: BTreeSet<_> = entries(&lock, "package").iter().map(identity).collect();
    let complaints: Vec<String> = entries(&list, "dependency")
        .iter()
        .filter(|entry| !locked.contains(&identity(entry)) || field(entry, "why").is_empty())
        .map(|entry| format!("{} {}", field(entry, "name"), field(entry, "version")))
        .collect();
    expect_none(
        "These entries of sing/allowed-dependencies.toml are not in Cargo.lock, or give no reason:",
        &complaints,
    );
}
