//! Reads the workspace for the repository rules, which are the tests of this crate.
//!
//! Key type: [`Workspace`]; [`public_items`] and [`modules`] read sources. Deliberately not here: the rules
//! themselves; each file in `tests/` holds those on one subject.
#![forbid(unsafe_code)]

pub mod modules;
pub mod public_items;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates of the repository, from `cargo metadata`.
pub struct Workspace {
    /// The folder with the workspace's Cargo.toml.
    pub root: PathBuf,
    /// Its crates.
    pub crates: Vec<Crate>,
}

/// One crate of the repository.
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its folder relative to the root, such as `lib/ext2`.
    pub folder: String,
    /// The first source file of its library, procedural macro or program, relative to the root.
    pub roots: Vec<String>,
    /// Its dependencies, from Cargo.toml.
    pub dependencies: Vec<Dependency>,
}

/// A dependency in a Cargo.toml.
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// Whether it lies in this repository.
    pub is_ours: bool,
    /// Whether it is a dev-dependency.
    pub for_tests: bool,
}

impl Workspace {
    /// Reads the workspace that this crate is a member of.
    ///
    /// # Panics
    /// If Cargo cannot be run or its output is not understood.
    pub fn read() -> Workspace {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(&root)
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let crates = list(&metadata["packages"]).iter().map(|package| read_crate(package, &root)).collect();
        Workspace { root, crates }
    }

    /// Text of a file, by its path relative to the root.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns every file of the repository with this extension, relative to the root, excluding build output and
    /// hidden folders.
    pub fn files(&self, extension: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if path.is_dir() && name != "target" && !name.starts_with('.') {
                    open.push(path);
                } else if path.extension().is_some_and(|found| found == extension) {
                    found.push(relative(&path, &self.root));
                }
            }
        }
        found.sort();
        found
    }
}

impl Crate {
    /// Whether it is a program of the system or a group of programs: it or its subfolders have a manifest.
    pub fn is_sip(&self, root: &Path) -> bool {
        let folder = root.join(&self.folder);
        let has_manifest = |folder: &Path| folder.join("manifest.toml").is_file();
        let is_program = |folder: &Path| has_manifest(folder) && !folder.join("Cargo.toml").is_file();
        has_manifest(&folder)
            || std::fs::read_dir(&folder).into_iter().flatten().flatten().any(|entry| is_program(&entry.path()))
    }
}

fn read_crate(package: &Value, root: &Path) -> Crate {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let roots = list(&package["targets"])
        .iter()
        .filter(|target| {
            list(&target["kind"]).iter().any(|kind| ["lib", "bin", "proc-macro"].contains(&text(kind).as_str()))
        })
        .map(|target| relative(Path::new(&text(&target["src_path"])), root))
        .collect();
    let dependencies = list(&package["dependencies"])
        .iter()
        .map(|dependency| Dependency {
            name: text(&dependency["name"]),
            is_ours: dependency["path"].is_string(),
            for_tests: dependency["kind"] == "dev",
        })
        .collect();
    let folder = relative(manifest.parent().expect("a Cargo.toml lies in a folder"), root);
    Crate { name: text(&package["name"]), folder, roots, dependencies }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// Fails with all complaints.
///
/// # Panics
/// If there is a complaint.
pub fn expect_none(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}\n  {}\n", complaints.join("\n  "));
}
