//! Changes to a system after it was built: packages installed or upgraded, and programs removed. The list of changes is
//! kept, not its result: it is replayed whenever the system is rebuilt, so that both a changed source and an installed
//! package are in the image that every command uses.
//!
//! Key type: [`Changes`]. They are stored in `installed/NAME` of the tool's output folder: `changes.json` and one file
//! per package; the resulting image is `installed/NAME.system`. Deliberately not here: the verdict on a change, which
//! is the crate `install`'s.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use install::{Installed, Report, Request, examine};
use package::Delivery;
use package_build::SecretKey;
use serde::{Deserialize, Serialize};

use super::Folder;
use crate::build_lock;
use crate::failure::{Failure, Outcome};
use crate::fingerprint::Fingerprint;
use crate::repository::{Repository, write_whole};
use crate::{keys, systems};

const LIST: &str = "changes.json";

/// Changes to a system, in the order in which they were made.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The system's name among the tool's files.
    name: String,
    folder: PathBuf,
    image: PathBuf,
    list: List,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct List {
    /// Path of the system manifest.
    manifest: PathBuf,
    changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The program it affects.
    pub program: String,
    /// The operation.
    #[serde(flatten)]
    pub what: What,
}

/// An operation on a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum What {
    /// Installs the program.
    Install {
        /// Its version.
        version: String,
        /// File name of the package beside the list.
        package: String,
        /// See [`Request::Install`].
        at_boot: bool,
        /// See [`Request::Install`].
        allow: Vec<String>,
    },
    /// Replaces an older version with a newer one.
    Upgrade {
        /// The newer version.
        version: String,
        /// File name of the package beside the list.
        package: String,
        /// See [`Request::Upgrade`].
        more: bool,
    },
    /// Removes the program from the system.
    Uninstall,
}

/// A change that no longer fits the system as built.
#[derive(Debug)]
pub struct Misfit {
    system: String,
    /// The program that the change affects.
    pub program: String,
    /// Reasons why it does not fit.
    pub report: Report,
}

impl From<Misfit> for Failure {
    fn from(misfit: Misfit) -> Failure {
        let Misfit { system, program, report } = misfit;
        let lines: Vec<String> = report.refused().map(ToString::to_string).collect();
        Failure::new(format!("the changes to `{program}` conflict with the current build of the system `{system}`"))
            .details(lines.join("\n"))
            .remedy(format!(
                "revert the change with `cargo sing uninstall {program} --system {system}`, or all changes \
                 with `cargo sing systems {system} --as-built`"
            ))
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            What::Install { version, at_boot, .. } => {
                let at_boot = if *at_boot { ", starts with the system" } else { "" };
                write!(out, "installed {} {version}{at_boot}", self.program)
            }
            What::Upgrade { version, .. } => write!(out, "upgraded {} to {version}", self.program),
            What::Uninstall => write!(out, "uninstalled {}", self.program),
        }
    }
}

impl Changes {
    /// Reads the changes to the system with this manifest; empty if there are none.
    ///
    /// # Errors
    /// The list exists but cannot be read.
    pub fn of(repository: &Repository, manifest: &Path) -> Outcome<Changes> {
        let name = repository.system_outputs(manifest);
        let all = repository.output("installed");
        Changes::at(&all, &name, manifest)
    }

    fn at(all: &Path, name: &str, manifest: &Path) -> Outcome<Changes> {
        let folder = all.join(name);
        let path = folder.join(LIST);
        let manifest = manifest.canonicalize().unwrap_or_else(|_| manifest.to_path_buf());
        let list = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Failure::new(format!("the list of changes {} is damaged: {error}", path.display()))
                    .remedy(format!("delete {} to revert the system to its build", folder.display()))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => List { manifest, changes: Vec::new() },
            Err(error) => return Err(Failure::file("read", &path, &error)),
        };
        Ok(Changes { name: name.into(), folder, image: all.join(format!("{name}.system")), list })
    }

    /// Like [`Changes::of`], but tolerates a damaged list, so that it can be discarded.
    pub fn of_damaged(repository: &Repository, manifest: &Path) -> Changes {
        let (all, name) = (repository.output("installed"), repository.system_outputs(manifest));
        let image = all.join(format!("{name}.system"));
        Changes { folder: all.join(&name), image, name, list: List::default() }
    }

    /// Returns the path of the image with the changes applied.
    pub fn path(&self) -> &Path {
        &self.image
    }

    /// Returns the manifests of all systems that have changes.
    pub fn manifests(repository: &Repository) -> BTreeSet<PathBuf> {
        let folders = std::fs::read_dir(repository.output("installed")).into_iter().flatten().flatten();
        let lists = folders.filter_map(|entry| std::fs::read(entry.path().join(LIST)).ok());
        lists.filter_map(|bytes| serde_json::from_slice::<List>(&bytes).ok()).map(|list| list.manifest).collect()
    }

    /// Returns the changes in order.
    pub fn all(&self) -> &[Change] {
        &self.list.changes
    }

    /// Returns whether the system is unchanged since its build.
    pub fn is_empty(&self) -> bool {
        self.list.changes.is_empty()
    }

    /// Returns whether a change affects this program.
    pub fn has(&self, program: &str) -> bool {
        self.list.changes.iter().any(|change| change.program == program)
    }

    /// Returns the image that every command takes for the system: the built one if there are no changes, else the
    /// changed one, remade if the built one is newer.
    ///
    /// # Errors
    /// A change no longer fits the built system, or a file cannot be read or written.
    pub fn image(&self, repository: &Repository, built: &Path) -> Outcome<PathBuf> {
        if self.is_empty() {
            return Ok(built.to_path_buf());
        }
        let is_current = || {
            let inputs = Fingerprint::of_files(&[built.to_path_buf(), self.folder.join(LIST)]);
            inputs.with_outputs(std::slice::from_ref(&self.image)).is_kept_at(&self.stamp())
        };
        if !is_current() {
            let _lock = build_lock::lock(repository)?;
            // Another run may have made it while this one waited for the lock.
            if !is_current() {
                self.make(&systems::signer(repository)?.key, built)?;
            }
        }
        Ok(self.image.clone())
    }

    /// Applies the changes to the built image and writes the result; the caller holds the builder's lock.
    ///
    /// # Errors
    /// As for [`Changes::image`].
    pub fn make(&self, key: &SecretKey, built: &Path) -> Outcome<()> {
        // Taken first, so that a file that changes meanwhile is noticed.
        let inputs = Fingerprint::of_files(&[built.to_path_buf(), self.folder.join(LIST)]);
        let bytes = std::fs::read(built).map_err(|error| Failure::file("read", built, &error))?;
        write_whole(&self.image, &self.applied(bytes, key)??)?;
        inputs.with_outputs(std::slice::from_ref(&self.image)).keep(&self.stamp())
    }

    /// Returns the bytes of a built system image with the changes applied.
    ///
    /// # Errors
    /// A package cannot be read; the inner error: a change does not fit.
    pub fn applied(&self, built: Vec<u8>, key: &SecretKey) -> Outcome<Result<Vec<u8>, Misfit>> {
        let mut bytes = built;
        for change in self.all() {
            let package = self.package(change)?;
            match install::changed(&bytes, &change.request(&package), key) {
                Ok((changed, _)) => bytes = changed,
                Err(report) => return Ok(Err(self.misfit(change, report))),
            }
        }
        Ok(Ok(bytes))
    }

    /// Like [`Changes::applied`], but on the manifests of a system that is not built yet.
    ///
    /// # Errors
    /// A package cannot be read, or a change does not fit.
    pub fn examined(&self, built: Installed) -> Outcome<Installed> {
        let mut installed = built;
        for change in self.all() {
            let package = self.package(change)?;
            let (report, after) = examine(&installed, None, &change.request(&package));
            installed = after.ok_or_else(|| Failure::from(self.misfit(change, report)))?;
        }
        Ok(installed)
    }

    fn misfit(&self, change: &Change, report: Report) -> Misfit {
        Misfit { system: self.name.clone(), program: change.program.clone(), report }
    }

    /// Returns the changes with an accepted request appended; `is_built` returns whether the built system has a
    /// program. Uninstalling what was installed leaves no change behind.
    ///
    /// # Errors
    /// The package cannot be stored.
    pub fn with(&self, request: &Request<'_>, is_built: impl Fn(&str) -> bool) -> Outcome<Changes> {
        let mut after = self.clone();
        let change = match request {
            Request::Uninstall { name } => {
                after.list.changes.retain(|change| change.program != *name);
                if !is_built(name) {
                    return Ok(after);
                }
                Change { program: name.to_string(), what: What::Uninstall }
            }
            Request::Install { package, at_boot, allow } => {
                let (program, version, package) = self.keep_package(package)?;
                Change { program, what: What::Install { version, package, at_boot: *at_boot, allow: allow.to_vec() } }
            }
            Request::Upgrade { package, more } => {
                let (program, version, package) = self.keep_package(package)?;
                Change { program, what: What::Upgrade { version, package, more: *more } }
            }
        };
        after.list.changes.push(change);
        Ok(after)
    }

    /// Writes the list, which makes these the system's changes.
    ///
    /// # Errors
    /// A file cannot be written; the old list stays in force.
    pub fn keep(&self) -> Outcome<()> {
        let path = self.folder.join(LIST);
        if self.is_empty() {
            return self.remove();
        }
        let text = format!("{:#}\n", serde_json::json!(self.list));
        install::replace(&mut Folder::at(&self.folder), LIST, text.as_bytes())
            .map_err(|error| Failure::file("write", &path, &error))?;
        self.remove_unused();
        Ok(())
    }

    /// Removes packages that no change refers to. A leftover only takes up disk space.
    fn remove_unused(&self) {
        let used: BTreeSet<&str> = self.all().iter().filter_map(Change::file).collect();
        for path in std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let is_package = path.extension().is_some_and(|extension| extension == "package");
            let is_used = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| used.contains(name));
            if is_package && !is_used {
                let _ = std::fs::remove_file(&path);
            }
        }
    }

    /// Discards all changes.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self) -> Outcome<()> {
        // The list goes first: without it the remaining files have no effect.
        let removals = [self.folder.join(LIST), self.image.clone()].map(|path| (std::fs::remove_file(&path), path));
        let folder = (std::fs::remove_dir_all(&self.folder), self.folder.clone());
        for (removed, path) in removals.into_iter().chain([folder]) {
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::file("remove", &path, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("stamp")
    }

    /// Stores a package under its digest; returns its program's name and version, and the file name.
    fn keep_package(&self, bytes: &[u8]) -> Outcome<(String, String, String)> {
        let delivery = Delivery::parse(bytes).map_err(|error| Failure::new(format!("invalid package: {error}")))?;
        let package = delivery.package;
        let file = format!("{}.package", keys::hexadecimal(&package_check::sha256(bytes)));
        let path = self.folder.join(&file);
        install::replace(&mut Folder::at(&self.folder), &file, bytes)
            .map_err(|error| Failure::file("write", &path, &error))?;
        Ok((package.manifest.name.to_string(), package.manifest.version.to_string(), file))
    }

    fn package(&self, change: &Change) -> Outcome<Vec<u8>> {
        let Some(file) = change.file() else { return Ok(Vec::new()) };
        let path = self.folder.join(file);
        std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))
    }
}

impl Change {
    /// Returns the file name of the change's package, if it has one.
    fn file(&self) -> Option<&str> {
        match &self.what {
            What::Install { package, .. } | What::Upgrade { package, .. } => Some(package),
            What::Uninstall => None,
        }
    }

    fn request<'a>(&'a self, package: &'a [u8]) -> Request<'a> {
        match &self.what {
            What::Install { at_boot, allow, .. } => Request::Install { package, at_boot: *at_boot, allow },
            What::Upgrade { more, .. } => Request::Upgrade { package, more: *more },
            What::Uninstall => Request::Uninstall { name: &self.program },
        }
    }
}

#[cfg(test)]
mod tests {
    use package_build::{SecretKey, Signer};

    use super::*;
    use crate::install::sample::package;
    use crate::install::tests::empty;

    fn signer() -> Signer {
        Signer::root(SecretKey::from_bytes(&[5; 32]))
    }

    fn programs(image: &[u8]) -> Vec<String> {
        let (_, installed) = install::system_of(image).expect("a system image");
        installed.programs.iter().map(|program| program.manifest.name.to_string()).collect()
    }

    #[test]
    fn what_was_installed_is_in_the_system_however_often_it_is_built() {
        let signer = signer();
        let folder = tempfile::tempdir().expect("a folder");
        let at = || Changes::at(folder.path(), "mine", Path::new("mine.toml")).expect("a list or none");
        assert!(at().is_empty());
        let built = folder.path().join("built.system");
        std::fs::write(&built, empty(&signer)).expect("a file");
        let good = package(&signer).expect("a package");
        let install = Request::Install { package: &good, at_boot: false, allow: &[] };
        let changed = at().with(&install, |_| false).expect("it is kept");
        changed.keep().expect("it is written");
        let again = at();
        assert_eq!(again.all().iter().map(ToString::to_string).collect::<Vec<_>>(), ["installed bench-install 0.1.0"]);
        for _ in 0..2 {
            again.make(&signer.key, &built).expect("it fits");
            assert_eq!(programs(&std::fs::read(&again.image).expect("the image")), ["bench-install"]);
        }
        // Uninstalling what was installed leaves no change.
        let none = again.with(&Request::Uninstall { name: "bench-install" }, |_| false).expect("a list");
        none.keep().expect("it is removed");
        assert!(at().is_empty() && !again.image.exists() && !again.folder.exists());
    }

    #[test]
    fn a_change_that_does_not_fit_any_more_says_how_to_take_it_back() {
        let signer = signer();
        let folder = tempfile::tempdir().expect("a folder");
        let changes = Changes::at(folder.path(), "mine", Path::new("mine.toml")).expect("none");
        let good = package(&signer).expect("a package");
        let install = Request::Install { package: &good, at_boot: false, allow: &[] };
        let changed = changes.with(&install, |_| false).expect("it is kept");
        // Case: the built system has gained the program meanwhile.
        let (with_it, _) = install::changed(&empty(&signer), &install, &signer.key).expect("it fits");
        let misfit = changed.applied(with_it.clone(), &signer.key).expect("files").expect_err("it is there already");
        let text = Failure::from(misfit).to_string();
        assert!(
            text.contains("the changes to `bench-install` conflict with the current build of the system `mine`"),
            "{text}"
        );
        assert!(text.contains("`cargo sing uninstall bench-install --system mine`"), "{text}");
        // Uninstalling a built program is kept as a change.
        let without = changes.with(&Request::Uninstall { name: "bench-install" }, |_| true).expect("a list");
        let image = without.applied(with_it, &signer.key).expect("files").expect("it fits");
        assert!(package_check::verify_system(&image).expect("an image").packages.is_empty());
    }
}
