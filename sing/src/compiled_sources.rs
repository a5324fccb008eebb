//! Checks the files that the compiler read for the crates of this repository in an image, after compilation and before
//! packing.
//!
//! Before the build, the files that a crate is expected to have are checked. This checks those that rustc reports to
//! have read: the output of the build is used only if all of them are in the crate's own folder and in its bill, and
//! contain nothing that is refused, whatever their suffix. Neighbours: `readings` parses rustc's reports,
//! `source_words` checks a text. Deliberately not here: crates of the trusted base and external crates, which are
//! audited by a person.

use std::path::{Path, PathBuf};

use crate::bill;
use crate::cargo::{Artifact, Metadata, Package};
use crate::failure::Outcome;
use crate::readings::{DepInfo, Record};
use crate::repository::Repository;
use crate::source_rules::{self, Code};
use crate::source_words;

/// Environment variables that a crate may use: those of its own Cargo.toml, and its place in the repository for tests.
const VARIABLES: &str = "CARGO_PKG_";

/// A compiled crate of the repository.
pub struct Compiled<'a> {
    package: &'a Package,
    code: Code,
    files: &'a [PathBuf],
    dep_info: PathBuf,
}

impl<'a> Compiled<'a> {
    /// Returns the crates of the repository among cargo's new and cached artifacts. `code` determines whether one must
    /// be safe.
    pub fn among(
        artifacts: &'a [Artifact],
        metadata: &'a Metadata,
        code: impl Fn(&Package) -> Code,
    ) -> Vec<Compiled<'a>> {
        artifacts
            .iter()
            .filter_map(|artifact| {
                let package = metadata.packages.iter().find(|package| package.id == artifact.package_id)?;
                let is_door = metadata.workspace_members.contains(&package.id);
                let dep_info = artifact.files.iter().find_map(|file| dep_info_of(file))?;
                let code = code(package);
                (package.source.is_none() && !is_door).then_some(Compiled {
                    package,
                    code,
                    files: &artifact.files,
                    dep_info,
                })
            })
            .collect()
    }

    /// Returns whether it was compiled from the current content of its files, as far as there is a record.
    pub fn is_current(&self) -> bool {
        let info = DepInfo::read(&self.dep_info);
        info.and_then(|info| Record::of(&info)).is_ok_and(|record| record.is_kept(&self.dep_info))
    }

    /// Removes the artifacts, so that cargo rebuilds them.
    pub fn remove(&self) {
        for file in self.files {
            // If removal fails, it is again found to be outdated.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Returns complaints about the files that rustc read.
    ///
    /// # Errors
    /// A report of rustc cannot be read.
    pub fn complaints(&self, repository: &Repository) -> Outcome<Vec<String>> {
        if self.code == Code::Unsafe || source_rules::trusted(repository, self.package.folder()).is_some() {
            return Ok(Vec::new());
        }
        let info = DepInfo::read(&self.dep_info)?;
        let shown = repository.shown(self.package.folder());
        let variables = info.variables.iter().filter(|name| !name.starts_with(VARIABLES));
        let mut complaints: Vec<String> =
            variables.map(|name| format!("{shown} reads the environment variable {name} at build time")).collect();
        complaints.extend(info.files.iter().filter_map(|file| file_complaint(file, self.package, repository)));
        Ok(complaints)
    }
}

/// The dep-info file beside a library or procedural macro.
fn dep_info_of(file: &Path) -> Option<PathBuf> {
    let is_library = file.extension().is_some_and(|extension| extension == "rlib" || extension == "so");
    let name = file.file_stem()?.to_str()?.strip_prefix("lib")?;
    is_library.then(|| file.with_file_name(format!("{name}.d")))
}

/// Returns the complaint about a file that rustc read for a crate.
fn file_complaint(file: &Path, package: &Package, repository: &Repository) -> Option<String> {
    let shown = repository.shown(file);
    let Some(place) = source_rules::place_in(file, package.folder()) else {
        return Some(format!("{shown} is read for {}, but is in another folder", package.name));
    };
    if !bill::covers(&place) {
        return Some(format!(
            "{shown} is read for {}, but files of its kind are not in the bill of materials",
            package.name
        ));
    }
    if let Some(inner) = bill::inner_crate(package.folder(), &place) {
        return Some(format!(
            "{shown} is read for {}, but belongs to another crate, in {}, and is not in the bill of materials",
            package.name,
            repository.shown(&inner)
        ));
    }
    if file.extension().is_some_and(|extension| extension == "rs") {
        return source_rules::file_complaint(file, repository);
    }
    match std::fs::read(file).map(String::from_utf8) {
        Ok(Ok(text)) => source_words::data_complaint(&text).map(|(line, what)| format!("{shown}:{line} {what}")),
        // A file that is not text is not source.
        Ok(Err(_)) => None,
        Err(error) => Some(format!("{shown} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dep_info_lies_beside_libraries() {
        assert_eq!(dep_info_of(Path::new("/d/libx-1.rlib")), Some(PathBuf::from("/d/x-1.d")));
        assert_eq!(dep_info_of(Path::new("/d/libx-1.so")), Some(PathBuf::from("/d/x-1.d")));
        assert_eq!(dep_info_of(Path::new("/d/libx-1.rmeta")), None);
        assert_eq!(dep_info_of(Path::new("/d/x")), None);
    }
}
