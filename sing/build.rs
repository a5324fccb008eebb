//! Bundles the sources of the system with an installed tool, so that it builds programs in any folder.
//!
//! Writes `sources` to `OUT_DIR`: for each file its path, its length and its bytes. It is empty in debug builds and
//! without the feature `sources`, where the tool works on its own clone, so that changing a file of the repository does
//! not rebuild the tool.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Sources of the system and the documentation, as paths in the repository.
const PARTS: [&str; 24] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "SECURITY.md",
    "abi",
    "apps",
    "benches",
    "boot",
    "contracts",
    "docs",
    "drivers",
    "examples",
    "hal",
    "kernel",
    "lang",
    "lib",
    "ports",
    "services",
    "sip",
    "systems",
    "templates",
    "userland",
];
/// Workspace members that cargo requires, and the audited list.
const MORE: [&str; 3] = ["sing", "tests", "xtask"];
/// Large folders that no build uses.
const LEFT_OUT: [&str; 3] = ["target", "inputs", "golden"];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| env::var_os(name).ok_or_else(|| io::Error::other(format!("cargo sets no {name}")));
    let mut archive = Vec::new();
    if env::var_os("CARGO_FEATURE_SOURCES").is_some() && variable("PROFILE")? == "release" {
        let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
        let root = folder.parent().unwrap_or(&folder).to_path_buf();
        for part in PARTS.into_iter().chain(MORE) {
            println!("cargo:rerun-if-changed={}", root.join(part).display());
            add(&root, &root.join(part), &mut archive)?;
        }
    }
    let mut hasher = DefaultHasher::new();
    archive.hash(&mut hasher);
    println!("cargo:rustc-env=SING_SOURCES={:016x}", hasher.finish());
    fs::write(Path::new(&variable("OUT_DIR")?).join("sources"), archive)
}

/// Adds a file, or all files below a folder in the order of their names.
fn add(root: &Path, path: &Path, archive: &mut Vec<u8>) -> io::Result<()> {
    if path.is_dir() {
        let mut entries =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        return entries.iter().filter(|path| is_wanted(path)).try_for_each(|path| add(root, path, archive));
    }
    let bytes = fs::read(path)?;
    let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    archive.extend((name.len() as u32).to_le_bytes());
    archive.extend(name.as_bytes());
    archive.extend((bytes.len() as u32).to_le_bytes());
    archive.extend(bytes);
    Ok(())
}

fn is_wanted(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !LEFT_OUT.contains(&&*name) && !path.is_symlink()
}
