//! The audited list: which crates from outside this repository may take part in making an image.
//!
//! The list is `sing/allowed-dependencies.toml`: name, version, checksum (as in Cargo.lock), whether
//! it may run code while building (build script, procedural macro), and why it is trusted.
//! Deliberately not here: the judgement itself; a person reads a crate and then adds its entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use crate::attributes;
use crate::cargo::{Metadata, Package};
use crate::failure::{Failure, Outcome};
use crate::programs::{Body, Program};
use crate::repository::{Repository, read_text};
use crate::source_words;

/// Crates of this repository that an image may contain although they hold unsafe code or run while it is built: the
/// runtime, its adapter for virtio, and the procedural macros. They are part of the trusted base.
const TRUSTED: [&str; 4] = ["sip", "sip-macros", "sip-virtio", "layout-macros"];

/// The file `sing/allowed-dependencies.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowList {
    /// The crates on it.
    #[serde(default)]
    pub dependency: Vec<Allowed>,
}

/// One audited crate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Allowed {
    /// Name on crates.io.
    pub name: String,
    /// The exact version.
    pub version: String,
    /// SHA-256 of the crate file, as Cargo.lock has it.
    pub checksum: String,
    /// Whether it may run a build script.
    #[serde(default)]
    pub build_script: bool,
    /// Whether it may be a procedural macro.
    #[serde(default)]
    pub proc_macro: bool,
    /// Why it is there.
    pub why: String,
}

/// Where the list lies in the repository.
pub const LIST: &str = "sing/allowed-dependencies.toml";

impl AllowList {
    /// Reads the repository's list.
    ///
    /// # Errors
    /// The file is missing or not of this form.
    pub fn read(repository: &Repository) -> Outcome<AllowList> {
        let path = repository.root().join(LIST);
        toml::from_str(&read_text(&path)?)
            .map_err(|error| Failure::new(format!("{LIST} cannot be read")).details(error.to_string()))
    }

    fn entry(&self, package: &Package) -> Option<&Allowed> {
        self.dependency.iter().find(|entry| entry.name == package.name && entry.version == package.version)
    }
}

/// Checksums of Cargo.lock by name and version.
#[derive(Debug, Default)]
pub struct Checksums(BTreeMap<(String, String), String>);

#[derive(Deserialize)]
struct LockFile {
    #[serde(default)]
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Checksums {
    /// Reads a Cargo.lock.
    ///
    /// # Errors
    /// The file is missing or not of cargo's form.
    pub fn read(lock: &Path) -> Outcome<Checksums> {
        let file: LockFile = toml::from_str(&read_text(lock)?).map_err(|error| {
            Failure::new(format!("{} is not a lock file of cargo", lock.display())).details(error.to_string())
        })?;
        let with_checksum = file
            .package
            .into_iter()
            .filter_map(|package| package.checksum.map(|checksum| ((package.name, package.version), checksum)));
        Ok(Checksums(with_checksum.collect()))
    }

    /// The checksum of a package from a registry.
    pub fn of(&self, package: &Package) -> Option<&str> {
        self.0.get(&(package.name.clone(), package.version.clone())).map(String::as_str)
    }
}

/// Checks everything that building the package `door` compiles or runs. The crate of the program
/// `exempt` may hold unsafe code. Returns the complaints, each one sentence; none when all is well.
pub fn complaints(
    metadata: &Metadata,
    door: &Package,
    exempt: Option<&Program>,
    list: &AllowList,
    checksums: &Checksums,
    repository: &Repository,
) -> Vec<String> {
    let exempt = exempt.and_then(|program| match &program.body {
        Body::Crate { package, .. } => Some(package.as_str()),
        Body::Script => None,
    });
    let is_trusted = |package: &Package| exempt == Some(&package.name) || TRUSTED.contains(&package.name.as_str());
    let used = metadata.closure(&door.id).into_iter().filter(|package| package.id != door.id);
    used.filter_map(|package| match package.source {
        Some(_) => outside_complaint(package, list, checksums),
        None => inside_complaint(package, repository, is_trusted(package)),
    })
    .collect()
}

/// What is wrong with a crate from outside the repository.
fn outside_complaint(package: &Package, list: &AllowList, checksums: &Checksums) -> Option<String> {
    let crate_name = format!("crate {} {}", package.name, package.version);
    let Some(entry) = list.entry(package) else {
        return Some(format!("{crate_name} is not on the audited list {LIST}"));
    };
    if !package.source.as_deref().is_some_and(|source| source.starts_with("registry+")) {
        return Some(format!("{crate_name} does not come from a registry, so its content has no checksum"));
    }
    if checksums.of(package) != Some(entry.checksum.as_str()) {
        return Some(format!("{crate_name} has another checksum in Cargo.lock than in {LIST}"));
    }
    if package.has_target("custom-build") && !entry.build_script {
        return Some(format!("{crate_name} runs a build script, which {LIST} does not allow it"));
    }
    if package.has_target("proc-macro") && !entry.proc_macro {
        return Some(format!("{crate_name} is a procedural macro, which {LIST} does not allow it"));
    }
    None
}

/// What is wrong with a crate that lies in a folder.
fn inside_complaint(package: &Package, repository: &Repository, is_trusted: bool) -> Option<String> {
    let place = repository.shown(package.folder());
    if !package.folder().starts_with(repository.root()) {
        return Some(format!("crate {} lies outside the repository, in {place}", package.name));
    }
    if package.has_target("custom-build") {
        return Some(format!("{place} has a build script, which a crate of an image may not have"));
    }
    if is_trusted {
        return None;
    }
    if package.has_target("proc-macro") {
        return Some(format!("{place} is a procedural macro, which a crate of an image may not be"));
    }
    let library = package.target("lib")?;
    let source = std::fs::read_to_string(&library.src_path).unwrap_or_default();
    let forbids = attributes::forbids_unsafe(&attributes::inner_attributes(&source));
    if !forbids {
        return Some(format!("{} lacks #![forbid(unsafe_code)]", repository.shown(&library.src_path)));
    }
    source_words::complaint(library.src_path.parent()?)
}

/// The crates from outside that building these programs uses, as entries of the list: those on it
/// with their reasons, others with an empty reason for the auditor to fill in.
pub fn rendered_closure<'a>(
    metadata: &Metadata,
    programs: impl Iterator<Item = &'a Package>,
    list: &AllowList,
    checksums: &Checksums,
) -> String {
    let ids: BTreeSet<&str> = programs
        .flat_map(|program| metadata.closure(&program.id))
        .filter(|package| package.source.is_some())
        .map(|package| package.id.as_str())
        .collect();
    let mut packages: Vec<&Package> =
        metadata.packages.iter().filter(|package| ids.contains(package.id.as_str())).collect();
    packages.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
    let mut text = String::new();
    for package in packages {
        let why = list.entry(package).map_or("", |entry| entry.why.as_str());
        let checksum = checksums.of(package).unwrap_or("");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[[dependency]]\nname = {:?}\nversion = {:?}", package.name, package.version);
        let _ = writeln!(text, "checksum = {checksum:?}");
        if package.has_target("custom-build") {
            text.push_str("build-script = true\n");
        }
        if package.has_target("proc-macro") {
            text.push_str("proc-macro = true\n");
        }
        let _ = writeln!(text, "why = {why:?}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::Target;
    use std::path::PathBuf;

    fn package(kind: &str) -> Package {
        Package {
            id: "x".into(),
            name: "leaf".into(),
            version: "1.2.3".into(),
            license: None,
            source: Some("registry+https://github.com/rust-lang/crates.io-index".into()),
            manifest_path: PathBuf::from("/registry/leaf/Cargo.toml"),
            targets: vec![Target { name: "leaf".into(), kind: vec![kind.into()], src_path: PathBuf::new() }],
            dependencies: Vec::new(),
        }
    }

    fn list(checksum: &str) -> AllowList {
        let text = format!(
            "[[dependency]]\nname = \"leaf\"\nversion = \"1.2.3\"\nchecksum = \"{checksum}\"\nwhy = \"a test\"\n"
        );
        toml::from_str(&text).expect("a list")
    }

    fn checksums() -> Checksums {
        Checksums([(("leaf".to_string(), "1.2.3".to_string()), "abc".to_string())].into())
    }

    #[test]
    fn an_audited_crate_passes() {
        assert_eq!(outside_complaint(&package("lib"), &list("abc"), &checksums()), None);
    }

    #[test]
    fn another_version_a_changed_checksum_a_script_and_a_macro_are_refused() {
        let mut newer = package("lib");
        newer.version = "1.2.4".into();
        let cases = [
            (newer, "abc", "is not on the audited list"),
            (package("lib"), "abd", "has another checksum"),
            (package("custom-build"), "abc", "runs a build script"),
            (package("proc-macro"), "abc", "is a procedural macro"),
        ];
        for (package, checksum, expected) in cases {
            let complaint = outside_complaint(&package, &list(checksum), &checksums()).expect("a complaint");
            assert!(complaint.contains(expected), "{complaint}");
        }
    }

    #[test]
    fn a_crate_from_git_has_no_checksum_and_is_refused() {
        let mut from_git = package("lib");
        from_git.source = Some("git+https://example.org/leaf".into());
        let complaint = outside_complaint(&from_git, &list("abc"), &checksums()).expect("a complaint");
        assert!(complaint.contains("does not come from a registry"), "{complaint}");
    }

    #[test]
    fn a_list_with_an_unknown_key_is_refused() {
        assert!(toml::from_str::<AllowList>("[[dependency]]\nname = \"a\"\nsurprise = 1\n").is_err());
    }
}
