//! The audited list: external crates that may take part in building an image, and their permitted users.
//!
//! The list is `sing/allowed-dependencies.toml`: name, version, checksum (as in Cargo.lock), which crates may use it,
//! with which features, whether it may run code during the build (build script, procedural macro), and why it is
//! trusted. An audit for one user does not cover arbitrary hostile use, so each entry names its users. Neighbour:
//! `source_rules` has the rules for the repository's own crates. Deliberately not here: the audit itself; a person
//! reads a crate and then adds its entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use crate::cargo::{Metadata, Package};
use crate::failure::{Failure, Outcome};
use crate::programs::{Body, Program};
use crate::repository::{Repository, read_text};
use crate::source_rules::{self, Code};

/// The file `sing/allowed-dependencies.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowList {
    /// The audited crates.
    #[serde(default)]
    pub dependency: Vec<Allowed>,
}

/// One audited crate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Allowed {
    /// Name on crates.io.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// SHA-256 of the crate file, as in Cargo.lock.
    pub checksum: String,
    /// Whether it may run a build script.
    #[serde(default)]
    pub build_script: bool,
    /// Whether it may be a procedural macro.
    #[serde(default)]
    pub proc_macro: bool,
    /// Packages that may use it: crates of this repository as `./` and their folder, others by name.
    pub used_by: Vec<String>,
    /// Features that may be enabled.
    #[serde(default)]
    pub features: Vec<String>,
    /// Reason for trusting it.
    pub why: String,
}

/// Source of the listed crates, as cargo writes it, whatever mirror it downloads from. A crate of the same name and
/// version from another registry or git is a different one.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Path of the list in the repository.
pub const LIST: &str = "sing/allowed-dependencies.toml";

impl AllowList {
    /// Reads the repository's list.
    ///
    /// # Errors
    /// The file is missing or malformed.
    pub fn read(repository: &Repository) -> Outcome<AllowList> {
        let path = repository.base().join(LIST);
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
    /// The file is missing or malformed.
    pub fn read(lock: &Path) -> Outcome<Checksums> {
        let file: LockFile = toml::from_str(&read_text(lock)?).map_err(|error| {
            Failure::new(format!("{} is not a Cargo lock file", lock.display())).details(error.to_string())
        })?;
        let with_checksum = file
            .package
            .into_iter()
            .filter_map(|package| package.checksum.map(|checksum| ((package.name, package.version), checksum)));
        Ok(Checksums(with_checksum.collect()))
    }

    /// Returns the checksum of a package from a registry.
    pub fn of(&self, package: &Package) -> Option<&str> {
        self.0.get(&(package.name.clone(), package.version.clone())).map(String::as_str)
    }
}

/// Returns the packages that these program stubs are built from, by id, each with the strictest of its users' rules: the
/// crate of a program with unsafe code is judged like any other once a safe program uses it.
pub fn codes<'m, 'p>(
    metadata: &'m Metadata,
    stubs: impl Iterator<Item = (&'m Package, &'p Program)>,
) -> BTreeMap<&'m str, (&'m Package, Code)> {
    let mut codes: BTreeMap<&str, (&Package, Code)> = BTreeMap::new();
    for (stub, program) in stubs {
        let own = match &program.body {
            Body::Crate { folder, .. } if program.may_be_unsafe() => folder.canonicalize().ok(),
            _ => None,
        };
        for package in metadata.closure(&stub.id).into_iter().filter(|package| package.id != stub.id) {
            let is_own = own.as_deref() == Some(package.folder());
            let code = if is_own { Code::Unsafe } else { Code::Safe };
            let (_, strictest) = codes.entry(&package.id).or_insert((package, code));
            *strictest = (*strictest).min(code);
        }
    }
    codes
}

/// Inputs of the dependency check.
pub struct Rules<'a> {
    /// Metadata of the stubs' workspace.
    pub metadata: &'a Metadata,
    /// The audited list.
    pub list: &'a AllowList,
    /// The checksums of Cargo.lock.
    pub checksums: &'a Checksums,
    /// Location of the trusted base's crates.
    pub repository: &'a Repository,
}

impl<'a> Rules<'a> {
    /// Checks everything that building these program stubs compiles or runs. Returns the complaints, one sentence
    /// each; empty if there are none.
    pub fn complaints<'p>(&self, stubs: impl Iterator<Item = (&'a Package, &'p Program)>) -> Vec<String> {
        let judged = codes(self.metadata, stubs);
        judged.values().flat_map(|(package, code)| self.package_complaints(package, *code)).collect()
    }

    fn package_complaints(&self, package: &Package, code: Code) -> Vec<String> {
        let complaint = match package.source {
            Some(_) => outside_complaint(package, self.list, self.checksums),
            None => source_rules::complaint(package, self.metadata, self.repository, code),
        };
        complaint.into_iter().chain(self.use_complaints(package)).collect()
    }

    /// Checks a package's dependencies and enabled features.
    fn use_complaints(&self, user: &Package) -> Vec<String> {
        let Some(node) = self.metadata.node(&user.id) else {
            return vec![format!("cargo reports no dependencies of {} {}", user.name, user.version)];
        };
        let mut complaints = match user.source {
            Some(_) => feature_complaint(user, &node.features, self.list).into_iter().collect(),
            None => source_rules::edge_complaints(user, node, self.metadata, self.repository),
        };
        let called = self.user_name(user);
        for edge in node.deps.iter().filter(|edge| edge.is_built()) {
            let used = self.metadata.packages.iter().find(|package| package.id == edge.pkg);
            let Some(used) = used.filter(|used| used.source.is_some()) else { continue };
            // A crate without an entry has its own complaint.
            if self.list.entry(used).is_some_and(|entry| !entry.used_by.contains(&called)) {
                complaints.push(format!("{LIST} does not allow {called} to use {} {}", used.name, used.version));
            }
        }
        complaints
    }

    /// Returns the name of a package in `used-by`.
    fn user_name(&self, user: &Package) -> String {
        match user.source {
            Some(_) => user.name.clone(),
            None => format!("./{}", self.repository.shown(user.folder())),
        }
    }

    /// Renders the external crates used by building these programs as entries of the list: audited ones with their
    /// reasons, others with an empty reason for the auditor to fill in.
    pub fn rendered_closure<'p>(&self, programs: impl Iterator<Item = &'p Package>) -> String {
        let stubs: BTreeSet<&str> = programs.map(|program| program.id.as_str()).collect();
        let closure: BTreeSet<&str> =
            stubs.iter().flat_map(|stub| self.metadata.closure(stub)).map(|package| package.id.as_str()).collect();
        let used = self.metadata.packages.iter().filter(|package| closure.contains(package.id.as_str()));
        let mut packages: Vec<&Package> = used.clone().filter(|package| package.source.is_some()).collect();
        packages.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
        let users: Vec<&Package> = used.filter(|package| !stubs.contains(package.id.as_str())).collect();
        packages.into_iter().map(|package| self.rendered(package, &users)).collect()
    }

    fn rendered(&self, package: &Package, users: &[&Package]) -> String {
        let uses = |user: &Package| {
            let node = self.metadata.node(&user.id);
            node.is_some_and(|node| node.deps.iter().any(|edge| edge.is_built() && edge.pkg == package.id))
        };
        let mut used_by: Vec<String> =
            users.iter().filter(|user| uses(user)).map(|user| self.user_name(user)).collect();
        used_by.sort();
        used_by.dedup();
        let features = self.metadata.node(&package.id).map_or(&[][..], |node| &node.features);
        let why = self.list.entry(package).map_or("", |entry| entry.why.as_str());
        let checksum = self.checksums.of(package).unwrap_or("");
        let mut text = format!("[[dependency]]\nname = {:?}\nversion = {:?}\n", package.name, package.version);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "checksum = {checksum:?}");
        if package.has_target("custom-build") {
            text.push_str("build-script = true\n");
        }
        if package.has_target("proc-macro") {
            text.push_str("proc-macro = true\n");
        }
        let _ = writeln!(text, "used-by = {used_by:?}");
        if !features.is_empty() {
            let _ = writeln!(text, "features = {features:?}");
        }
        let _ = writeln!(text, "why = {why:?}\n");
        text
    }
}

/// Checks a crate from outside the repository.
fn outside_complaint(package: &Package, list: &AllowList, checksums: &Checksums) -> Option<String> {
    let crate_name = format!("crate {} {}", package.name, package.version);
    let Some(entry) = list.entry(package) else {
        return Some(format!("{crate_name} is not on the audited list {LIST}"));
    };
    if package.source.as_deref() != Some(REGISTRY) {
        return Some(format!("{crate_name} does not come from crates.io, unlike the listed crate"));
    }
    if checksums.of(package) != Some(entry.checksum.as_str()) {
        return Some(format!("{crate_name}: checksum mismatch between Cargo.lock and {LIST}"));
    }
    if package.has_target("custom-build") && !entry.build_script {
        return Some(format!("{crate_name} runs a build script, which {LIST} does not allow"));
    }
    if package.has_target("proc-macro") && !entry.proc_macro {
        return Some(format!("{crate_name} is a procedural macro, which {LIST} does not allow"));
    }
    None
}

/// Checks the enabled features of an external crate.
fn feature_complaint(package: &Package, features: &[String], list: &AllowList) -> Option<String> {
    let entry = list.entry(package)?;
    let feature = features.iter().find(|feature| !entry.features.contains(feature))?;
    Some(format!(
        "crate {} {} enables the feature `{feature}`, which {LIST} does not allow",
        package.name, package.version
    ))
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
            edition: "2021".into(),
            targets: vec![Target { name: "leaf".into(), kind: vec![kind.into()], src_path: PathBuf::new() }],
            dependencies: Vec::new(),
        }
    }

    fn list(checksum: &str) -> AllowList {
        let text = format!(
            "[[dependency]]\nname = \"leaf\"\nversion = \"1.2.3\"\nchecksum = \"{checksum}\"\n\
             used-by = [\"./lib/fat\"]\nfeatures = [\"alloc\"]\nwhy = \"a test\"\n"
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
            (package("lib"), "abd", "checksum mismatch"),
            (package("custom-build"), "abc", "runs a build script"),
            (package("proc-macro"), "abc", "is a procedural macro"),
        ];
        for (package, checksum, expected) in cases {
            let complaint = outside_complaint(&package, &list(checksum), &checksums()).expect("a complaint");
            assert!(complaint.contains(expected), "{complaint}");
        }
    }

    #[test]
    fn features_that_nobody_read_are_refused() {
        let on = |features: &[&str]| {
            let features: Vec<String> = features.iter().map(|feature| feature.to_string()).collect();
            feature_complaint(&package("lib"), &features, &list("abc"))
        };
        assert_eq!(on(&[]), None);
        assert_eq!(on(&["alloc"]), None);
        assert!(on(&["alloc", "std"]).is_some_and(|complaint| complaint.contains("enables the feature `std`")));
    }

    #[test]
    fn a_list_without_users_is_refused() {
        let text = "[[dependency]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"b\"\nwhy = \"c\"\n";
        let error = toml::from_str::<AllowList>(text).expect_err("nobody may use it").to_string();
        assert!(error.contains("used-by"), "{error}");
    }

    #[test]
    fn a_crate_from_git_or_another_registry_is_refused() {
        for source in ["git+https://example.org/leaf", "registry+https://example.org/index", "sparse+https://a.b/"] {
            let mut other = package("lib");
            other.source = Some(source.into());
            let complaint = outside_complaint(&other, &list("abc"), &checksums()).expect("a complaint");
            assert!(complaint.contains("does not come from crates.io"), "{complaint}");
        }
    }

    #[test]
    fn a_list_with_an_unknown_key_is_refused() {
        assert!(toml::from_str::<AllowList>("[[dependency]]\nname = \"a\"\nsurprise = 1\n").is_err());
    }
}
