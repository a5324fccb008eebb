//! Determines whether the sources of an output have changed, by their paths, sizes and modification times, so that a
//! run with nothing to build does not even start cargo.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::failure::Outcome;
use crate::repository::{Repository, write_whole};

/// Source folders and files of the repository.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    ".cargo",
    "rust-toolchain.toml",
    "abi",
    "lang",
    "contracts",
    "kernel",
    "hal",
    "boot",
    "sip",
    "lib",
    "userland",
    "drivers",
    "services",
    "userland",
    "apps",
    "examples",
    "templates",
    "ports",
    "sing/wasm",
    "tests/conformance",
    "tests/hostile",
    "tests/services-check",
    "benches",
    "systems",
];

/// A text that changes when a source does.
#[derive(Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Fingerprint of the repository's sources, this tool and `settings`. Taken before a build, so that changes during
    /// it are detected.
    pub fn of_sources(repository: &Repository, settings: &str) -> Fingerprint {
        let mut lines = Vec::new();
        for source in SOURCES {
            add(&repository.base().join(source), &mut lines);
        }
        add(&repository.base().join(crate::dependencies::LIST), &mut lines);
        if repository.is_own() {
            // Other files of the workspace are the user's.
            for source in ["Cargo.toml", crate::workspace::PROGRAMS, "systems"] {
                add(&repository.root().join(source), &mut lines);
            }
        }
        if let Some(made) = repository.made_programs() {
            add(made, &mut lines);
        }
        if let Ok(tool) = crate::tool::path() {
            add(&tool, &mut lines);
        }
        let mut text = format!("settings {settings}\n");
        for variable in ["RUSTFLAGS", "RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS"] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{variable} {:?}", std::env::var_os(variable));
        }
        text.push_str(&lines.concat());
        Fingerprint(text)
    }

    /// Of these files alone.
    pub fn of_files(files: &[PathBuf]) -> Fingerprint {
        Fingerprint(String::new()).with_outputs(files)
    }

    /// Adds these outputs. Taken after a build.
    pub fn with_outputs(&self, outputs: &[PathBuf]) -> Fingerprint {
        let mut lines = Vec::new();
        for output in outputs {
            add(output, &mut lines);
        }
        Fingerprint(format!("{}{}", self.0, lines.concat()))
    }

    /// Returns whether the fingerprint stored at `path` equals this one.
    pub fn is_kept_at(&self, path: &Path) -> bool {
        std::fs::read_to_string(path).is_ok_and(|kept| kept == self.0)
    }

    /// Stores it at `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, path: &Path) -> Outcome<()> {
        write_whole(path, self.0.as_bytes())
    }
}

/// Adds a line for each file at or below `path`, sorted by name; none if it does not exist.
fn add(path: &Path, lines: &mut Vec<String>) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    // A link to a folder is not followed, as it could be cyclic.
    if !metadata.is_dir() || path.is_symlink() {
        let line = format!("{} {} {}.{}\n", path.display(), metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        lines.push(line);
        return;
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries.iter().filter(|entry| is_source(entry)) {
        add(entry, lines);
    }
}

/// Hidden files (an editor's) and build folders are not sources.
fn is_source(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name != "target" && !name.to_string_lossy().starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(folder: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        add(folder, &mut lines);
        lines
    }

    #[test]
    fn a_changed_a_new_and_a_removed_file_show() {
        let folder = std::env::temp_dir().join(format!("sing-fingerprint-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).expect("a folder");
        std::fs::write(folder.join("inner/a"), "1").expect("a file");
        let first = lines_of(&folder);
        assert_eq!(first, lines_of(&folder));
        std::fs::write(folder.join("inner/a"), "22").expect("a file");
        let second = lines_of(&folder);
        assert_ne!(first, second);
        std::fs::write(folder.join("b"), "1").expect("a file");
        assert_eq!(lines_of(&folder).len(), 2);
        std::fs::write(folder.join(".swap"), "1").expect("a file");
        assert_eq!(lines_of(&folder).len(), 2);
        std::fs::remove_dir_all(&folder).expect("cleaning up");
    }
}
