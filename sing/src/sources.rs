//! Sources of the system bundled with an installed tool: unpacked once for each version into the user's data folder.
//!
//! They are in `$XDG_DATA_HOME/singularity`, `~/.local/share/singularity` or `SING_HOME`, as `sources`; build output is
//! beside them, as `target`. A tool built in a clone for that clone has none. Deliberately not here: the selection of
//! sources, which is in `build.rs`.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::repository::write_whole;

/// Archive written by `build.rs`.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sources"));
/// Changes with the archive.
const EDITION: &str = env!("SING_SOURCES");
/// File with the unpacked edition.
const MARK: &str = "edition";

/// Folders of an installed tool outside of any clone.
pub struct Unpacked {
    /// The sources.
    pub sources: PathBuf,
    /// Build output.
    pub target: PathBuf,
}

/// Returns the bundled sources, unpacked now if they are missing; `None` if the tool has none.
///
/// # Errors
/// They cannot be written.
pub fn unpacked() -> Outcome<Option<Unpacked>> {
    if ARCHIVE.is_empty() {
        return Ok(None);
    }
    let home = home().ok_or_else(|| {
        Failure::new("cannot determine the folder for the system's sources").remedy("set SING_HOME or HOME")
    })?;
    unpack(&home, ARCHIVE, EDITION)?;
    Ok(Some(Unpacked { sources: home.join("sources"), target: home.join("target") }))
}

fn home() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    variable("SING_HOME").or_else(|| data.map(|data| data.join("singularity")))
}

/// Unpacks an archive into `home/sources` atomically, unless it is present.
fn unpack(home: &Path, archive: &[u8], edition: &str) -> Outcome<()> {
    let sources = home.join("sources");
    let is_there = || std::fs::read_to_string(sources.join(MARK)).is_ok_and(|kept| kept == edition);
    if is_there() {
        return Ok(());
    }
    let failed = |doing: &'static str, path: &Path| {
        let path = path.to_path_buf();
        move |error: std::io::Error| Failure::file(doing, &path, &error)
    };
    std::fs::create_dir_all(home).map_err(failed("make the folder", home))?;
    let lock = home.join("lock");
    let file = File::create(&lock).map_err(failed("make", &lock))?;
    file.lock().map_err(failed("lock", &lock))?;
    // Another process may have done so meanwhile.
    if is_there() {
        return Ok(());
    }
    eprintln!("sing: extracting the system's sources to {}", sources.display());
    let [new, old] = ["sources.new", "sources.old"].map(|name| home.join(name));
    for folder in [&new, &old] {
        remove(folder).map_err(failed("remove", folder))?;
    }
    for (path, bytes) in files(archive)? {
        write_whole(&new.join(path), bytes)?;
    }
    write_whole(&new.join(MARK), edition.as_bytes())?;
    if sources.exists() {
        std::fs::rename(&sources, &old).map_err(failed("rename", &sources))?;
    }
    std::fs::rename(&new, &sources).map_err(failed("rename", &new))?;
    remove(&old).map_err(failed("remove", &old))
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The files of an archive: path and content of each.
fn files(archive: &[u8]) -> Outcome<Vec<(&Path, &[u8])>> {
    let damaged = || Failure::new("the sources in this tool are damaged").remedy("reinstall it");
    let mut files = Vec::new();
    let mut rest = archive;
    let mut next = || -> Option<&[u8]> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (part, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some(part)
    };
    while let Some(name) = next() {
        let path = std::str::from_utf8(name).map(Path::new).map_err(|_| damaged())?;
        let is_within = path.components().all(|part| matches!(part, Component::Normal(_)));
        files.push((path, next().filter(|_| is_within).ok_or_else(damaged)?));
    }
    if rest.is_empty() { Ok(files) } else { Err(damaged()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let part = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        files.iter().flat_map(|(path, text)| [part(path), part(text)].concat()).collect()
    }

    #[test]
    fn sources_are_unpacked_once_for_each_edition() {
        let home = tempfile::tempdir().expect("a folder");
        let read = |path: &str| std::fs::read_to_string(home.path().join("sources").join(path)).ok();
        unpack(home.path(), &archive(&[("Cargo.toml", "one"), ("sip/src/lib.rs", "two")]), "1").expect("a disk");
        assert_eq!([read("Cargo.toml"), read("sip/src/lib.rs")], [Some("one".into()), Some("two".into())]);
        // The same edition is not replaced.
        unpack(home.path(), &archive(&[("Cargo.toml", "other")]), "1").expect("a disk");
        assert_eq!(read("Cargo.toml"), Some("one".into()));
        unpack(home.path(), &archive(&[("Cargo.toml", "other")]), "2").expect("a disk");
        assert_eq!([read("Cargo.toml"), read("sip/src/lib.rs")], [Some("other".into()), None]);
        assert!(!home.path().join("sources.old").exists() && !home.path().join("sources.new").exists());
    }

    #[test]
    fn a_damaged_archive_writes_nothing_elsewhere() {
        let whole = archive(&[("a", "text")]);
        assert!(files(&whole).is_ok());
        for bad in [archive(&[("../a", "text")]), archive(&[("/a", "text")]), whole[..whole.len() - 1].to_vec()] {
            assert!(files(&bad).is_err());
        }
    }
}
