//! Selects the crates that may have a test of a given name by scanning their sources, so that no others are built;
//! and determines which crates cannot be tested when one does not build.
//!
//! Key type: [`TestedCrate`]. A crate matches if the words of the test's name occur in its sources: this may select
//! too many crates, never too few. Deliberately not here: running cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cargo::Metadata;
use crate::failure::Outcome;
use crate::repository::Repository;

use super::needs::{self, Needs};

/// Marks a test.
const TEST: &str = "#[test]";
/// Begins code in documentation.
const CODE: &str = "```";

/// A crate of the workspace, with the sources that its tests' names come from.
#[derive(Debug)]
pub struct TestedCrate {
    /// The name of its package.
    pub name: String,
    /// Path and text of each file, including modules included from other folders.
    files: Vec<(PathBuf, String)>,
}

impl TestedCrate {
    /// Reads all crates of the workspace.
    ///
    /// # Errors
    /// Cargo cannot read the workspace.
    pub fn all(repository: &Repository) -> Outcome<(Vec<TestedCrate>, Metadata)> {
        let metadata = Metadata::of_members(&repository.root().join("Cargo.toml"))?;
        let folders: BTreeSet<&Path> = metadata.packages.iter().map(|package| package.folder()).collect();
        let crates = metadata.packages.iter().map(|package| {
            let mut files = Vec::new();
            collect(package.folder(), &folders, &mut files);
            TestedCrate { name: package.name.clone(), files }
        });
        let crates = crates.collect();
        Ok((crates, metadata))
    }

    /// Returns whether the crate may have tests, other than in its documentation.
    pub fn has_tests(&self) -> bool {
        self.files.iter().any(|(_, text)| text.contains(TEST))
    }

    /// Returns whether the crate's documentation has code, which is a test unless it says otherwise.
    pub fn has_documented_code(&self) -> bool {
        let is_code = |line: &str| line.trim_start().strip_prefix("//").is_some_and(|rest| rest.contains(CODE));
        self.files.iter().any(|(_, text)| text.lines().any(is_code))
    }

    /// Returns whether a test of the crate may have `name` in its name.
    pub fn may_have(&self, name: &str) -> bool {
        words(name).all(|word| self.files.iter().any(|(path, text)| mentions(path, text, word)))
    }

    /// Adds the host requirements of tests that may have `name` in their names.
    pub fn needs(&self, name: Option<&str>, needs: &mut Needs) {
        let may_have =
            |path: &Path, text: &str| name.is_none_or(|name| words(name).all(|word| mentions(path, text, word)));
        for (path, text) in self.files.iter().filter(|(path, text)| may_have(path, text)) {
            needs::read(path, text, needs);
        }
    }
}

/// Returns the identifiers in a test's name. Line numbers, as in names of documentation tests, occur in no source.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split(|letter: char| !letter.is_alphanumeric() && !"_-./".contains(letter));
    parts.filter(|word| *word != "line" && word.contains(char::is_alphabetic))
}

fn mentions(path: &Path, text: &str, word: &str) -> bool {
    text.contains(word) || path.to_string_lossy().contains(word)
}

/// Reads the sources below `folder`, except nested crates.
fn collect(folder: &Path, crates: &BTreeSet<&Path>, files: &mut Vec<(PathBuf, String)>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_dir() && !crates.contains(path.as_path()) && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, crates, files);
        } else if is_source && let Ok(text) = std::fs::read_to_string(&path) {
            let included: Vec<PathBuf> = included(&text).map(|other| folder.join(other)).collect();
            files.push((path, text));
            for path in included {
                files.extend(std::fs::read_to_string(&path).map(|text| (path, text)));
            }
        }
    }
}

/// Returns the paths of modules that lie elsewhere.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"))
}

/// Returns the reasons why crates cannot be tested, by name: their own errors, or those of a library that they use.
pub fn untestable(
    metadata: &Metadata,
    with_errors: &BTreeMap<String, String>,
    without_library: &BTreeSet<String>,
) -> BTreeMap<String, String> {
    let mut reasons = with_errors.clone();
    let mut open: Vec<&str> = without_library.iter().map(String::as_str).collect();
    while let Some(missing) = open.pop() {
        for package in &metadata.packages {
            let mut uses = package.dependencies.iter().filter(|used| used.name == missing && used.path.is_some());
            let Some(first) = uses.next() else { continue };
            if reasons.contains_key(&package.name) {
                continue;
            }
            reasons.insert(package.name.clone(), format!("it uses `{missing}`, which does not build"));
            // The library does not need dev-dependencies.
            if std::iter::once(first).chain(uses).any(|used| used.kind.as_deref() != Some("dev")) {
                open.push(&package.name);
            }
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::{Dependency, Package};

    fn crate_of(files: &[(&str, &str)]) -> TestedCrate {
        let files = files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect();
        TestedCrate { name: "example".into(), files }
    }

    #[test]
    fn a_crate_is_built_only_if_it_may_have_the_test() {
        let tested = crate_of(&[
            ("/r/lang/src/check/flow.rs", "mod tests {\n #[test]\n fn a_cycle_has_both() {}\n}"),
            ("/r/lang/tests/disks.rs", "needs!(E2fsprogs);\n#[test]\nfn are_read() {}"),
        ]);
        for name in ["a_cycle_has_both", "flow::tests::a_cycle", "cycle", "src/check/flow.rs - flow (line 12)"] {
            assert!(tested.may_have(name), "{name}");
        }
        for name in ["a_cycle_has_none", "flow::other", "graph"] {
            assert!(!tested.may_have(name), "{name}");
        }
        let needs = |name| {
            let mut needs = Needs::new();
            tested.needs(name, &mut needs);
            needs.into_keys().collect::<Vec<_>>()
        };
        assert_eq!((needs(None), needs(Some("are_read"))), (vec!["E2fsprogs".into()], vec!["E2fsprogs".into()]));
        assert!(needs(Some("a_cycle")).is_empty());
    }

    #[test]
    fn a_crate_without_tests_is_not_built_for_them() {
        let has = |text: &str| {
            let tested = crate_of(&[("/r/a/src/lib.rs", text)]);
            (tested.has_tests(), tested.has_documented_code())
        };
        assert_eq!(has("//! A library.\nfn test() {}"), (false, false));
        assert_eq!(has("mod tests {\n    #[test]\n    fn it_works() {}\n}"), (true, false));
        assert_eq!(has("/// ```\n/// assert!(true);\n/// ```\nfn documented() {}"), (false, true));
    }

    #[test]
    fn tests_of_this_repository_are_found_where_they_are() {
        let repository = Repository::find().expect("tests run inside the repository");
        let (crates, _) = TestedCrate::all(&repository).expect("cargo reads the workspace");
        let with = |name: &str| -> Vec<&str> {
            crates.iter().filter(|tested| tested.may_have(name)).map(|tested| tested.name.as_str()).collect()
        };
        let own = "tests_of_this_repository_are_found_where_they_are";
        assert_eq!(with(own), ["sing"]);
        assert_eq!(with(&format!("test::packages::tests::{own}")), ["sing"]);
        // From a module that lies in another crate's folder.
        let included = with("double");
        assert!(included.contains(&"sip") && included.contains(&"web-server"), "{included:?}");
    }

    #[test]
    fn what_uses_a_crate_that_does_not_build_is_told_from_what_does_not() {
        let package = |name: &str, uses: &[(&str, Option<&str>)]| Package {
            id: name.into(),
            name: name.into(),
            version: String::new(),
            license: None,
            source: None,
            manifest_path: PathBuf::new(),
            edition: String::new(),
            targets: Vec::new(),
            dependencies: uses
                .iter()
                .map(|(name, kind)| Dependency {
                    name: name.to_string(),
                    kind: kind.map(String::from),
                    path: Some(PathBuf::new()),
                })
                .collect(),
        };
        let packages = vec![
            package("broken", &[]),
            package("user", &[("broken", None)]),
            package("users-user", &[("user", None)]),
            package("tests-only", &[("broken", Some("dev"))]),
            package("after-tests", &[("tests-only", None)]),
            package("bad-tests", &[]),
            package("of-bad-tests", &[("bad-tests", None)]),
        ];
        let metadata = Metadata { packages, resolve: None, workspace_members: Vec::new() };
        let errors = ["broken", "bad-tests"].map(|name| (name.to_string(), "an error".to_string()));
        let reasons = untestable(&metadata, &BTreeMap::from(errors), &BTreeSet::from(["broken".to_string()]));
        let names: Vec<&str> = reasons.keys().map(String::as_str).collect();
        assert_eq!(names, ["bad-tests", "broken", "tests-only", "user", "users-user"]);
        assert_eq!(reasons["users-user"], "it uses `user`, which does not build");
        assert_eq!(reasons["broken"], "an error");
    }
}
