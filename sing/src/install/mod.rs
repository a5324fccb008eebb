//! `sing install`, `upgrade`, `uninstall`, `verify`, `explain` and `package`: changes to system images, checked before
//! they are made.
//!
//! The checks are the crate `install`'s. Changes to a system that is given by its name or manifest are kept apart from
//! the build ([`changes`]) and reapplied after every build; every command uses the result as the system. Key type:
//! [`Image`] (the file of a system). Deliberately not here: installing into a running system.

pub mod changes;
mod folder;
mod revoked;
pub mod sample;
mod view;

use std::fs::File;
use std::path::{Path, PathBuf};

use install::{Finding, ImageError, Installed, Map, Report, Request};
use package::{Package, SystemImage};
use serde_json::json;

use crate::build;
use crate::build_lock;
use crate::builder::UnsafeTests;
use crate::command_line::{
    ExplainArguments, InstallArguments, PackageArguments, UninstallArguments, UpgradeArguments, VerifyArguments,
};
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_whole};
use crate::spelling;
use crate::systems::{self, Platform};
use crate::wasm;

use changes::Changes;
pub use folder::Folder;

/// `sing package`: writes the package file of a program of the repository, for others to install.
///
/// # Errors
/// There is no such program, it does not build, or the file cannot be written.
pub fn package(repository: &Repository, arguments: &PackageArguments) -> Outcome<u8> {
    let unsafe_tests = if arguments.allow_unsafe_tests { UnsafeTests::Allowed } else { UnsafeTests::Refused };
    let bytes = build::package_with(repository, &arguments.name, arguments.key.as_deref(), unsafe_tests)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}.package", arguments.name)),
    };
    write_whole(&path, &bytes)?;
    println!("{:>8} bytes  {}", bytes.len(), path.display());
    Ok(0)
}

/// `sing install`.
///
/// # Errors
/// The change is refused, or a file cannot be read or written.
pub fn install(repository: &Repository, arguments: &InstallArguments) -> Outcome<u8> {
    let package = delivered(repository, &arguments.change, &arguments.package)?;
    let request = Request::Install { package: &package, at_boot: arguments.at_boot, allow: &arguments.allow };
    change(repository, &arguments.change, &request)
}

/// `sing upgrade`.
///
/// # Errors
/// As for [`install`].
pub fn upgrade(repository: &Repository, arguments: &UpgradeArguments) -> Outcome<u8> {
    let package = delivered(repository, &arguments.change, &arguments.package)?;
    change(repository, &arguments.change, &Request::Upgrade { package: &package, more: arguments.more })
}

/// Reads a package; one of a WebAssembly program is compiled for the template of the system.
fn delivered(repository: &Repository, arguments: &ChangeArguments, path: &Path) -> Outcome<Vec<u8>> {
    let package = read(path)?;
    let is_module = Package::parse(&package).is_ok_and(|package| package.manifest.code.template().is_some());
    if !is_module {
        return Ok(package);
    }
    let system = read(&Image::find(repository, &arguments.system)?.path(repository)?)?;
    wasm::delivered(repository, &system, package)
}

/// `sing uninstall`.
///
/// # Errors
/// As for [`install`].
pub fn uninstall(repository: &Repository, arguments: &UninstallArguments) -> Outcome<u8> {
    change(repository, &arguments.change, &Request::Uninstall { name: &arguments.name })
}

/// `sing verify`: checks the whole system again.
///
/// # Errors
/// The system has an error, or cannot be read.
pub fn verify(repository: &Repository, arguments: &VerifyArguments) -> Outcome<u8> {
    let image = Image::find(repository, &arguments.system)?;
    let path = &image.path(repository)?;
    let bytes = read(path)?;
    let (system, installed) = opened(&bytes, path, &image)?;
    let mut report = install::verify(&installed);
    report.lines.extend(revoked::lines(&system.packages, &revoked::of_user()?));
    if arguments.json {
        println!("{:#}", view::report_json(&report));
    } else {
        view::print(&report, true);
    }
    let count = report.refused().count();
    if count == 0 {
        return Ok(0);
    }
    Err(Failure::new(format!("{} is invalid: {} of the checks failed", path.display(), count))
        .remedy(format!("fix the problems above, and {}", image.remedy())))
}

/// `sing explain`.
///
/// # Errors
/// There is no such program, or the system cannot be read.
pub fn explain(repository: &Repository, arguments: &ExplainArguments) -> Outcome<u8> {
    let image = Image::find(repository, &arguments.system)?;
    let path = &image.path(repository)?;
    let bytes = read(path)?;
    let (_, installed) = opened(&bytes, path, &image)?;
    let Some(program) = installed.program(&arguments.name) else {
        let mut names: Vec<&str> = installed.programs.iter().map(|program| program.manifest.name.as_str()).collect();
        names.sort_unstable();
        return Err(Failure::new(format!("program `{}` is not installed in {}", arguments.name, path.display()))
            .remedy(spelling::meant(
                &arguments.name,
                names.iter().copied(),
                format!("name one of: {}", names.join(", ")),
            )));
    };
    let map = Map::of(&installed);
    let rows = install::explanation(&installed, program, &map);
    let reach = map.reach(&arguments.name);
    if arguments.json {
        let rows: serde_json::Map<String, serde_json::Value> =
            rows.into_iter().map(|(word, text)| (word.to_string(), text.into())).collect();
        println!("{:#}", json!({ "program": rows, "reach": reach.as_ref().map(view::reach_json) }));
        return Ok(0);
    }
    for (word, text) in rows {
        println!("{word:<12} {text}");
    }
    if let Some(reach) = reach {
        print!("{reach}");
    }
    Ok(0)
}

/// What of a change is asked for on the command line whatever is changed.
#[derive(Debug, clap::Args)]
pub struct ChangeArguments {
    /// System image to change, or the name of a system in systems/
    #[arg(long, value_name = "FILE|NAME", default_value = "hosted")]
    pub system: PathBuf,
    /// Dry run: show the verdict and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

fn change(repository: &Repository, arguments: &ChangeArguments, request: &Request<'_>) -> Outcome<u8> {
    // Before the lock, which building takes itself.
    let image = Image::find(repository, &arguments.system)?;
    let _lock = build_lock::lock(repository)?;
    let _other = image.lock()?;
    let key = systems::signer(repository)?.key;
    let write = if arguments.dry_run { Write::Nothing } else { Write::Change };
    let result = match revoked::against(request, &revoked::of_user()?) {
        Some(report) => Err(report),
        None => image.change(repository, request, &key, write)?,
    };
    let report = result.as_ref().unwrap_or_else(|report| report);
    if arguments.json {
        println!("{:#}", view::report_json(report));
    } else {
        view::print(report, true);
    }
    let count = report.refused().count();
    if result.is_err() {
        let reasons = if count == 1 { "1 reason".into() } else { format!("{count} reasons") };
        return Err(
            Failure::new(format!("nothing was changed, for {reasons}")).remedy("see the lines that say `refused`")
        );
    }
    if !arguments.json && !arguments.dry_run {
        println!("\n{}", image.told());
    }
    Ok(0)
}

/// Whether a change is made or only checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Nothing,
    Change,
}

/// Changes a system image file; the inner error is the report of why the change is refused.
///
/// # Errors
/// The file cannot be read or written; it is unchanged.
pub fn change_file(
    path: &Path,
    request: &Request<'_>,
    key: &package_build::SecretKey,
) -> Outcome<Result<Report, Report>> {
    change_to(path, &read(path)?, request, key)
}

/// Replaces the file at `path` by the image `old` with the request applied.
fn change_to(
    path: &Path,
    old: &[u8],
    request: &Request<'_>,
    key: &package_build::SecretKey,
) -> Outcome<Result<Report, Report>> {
    let folder = folder_of(path);
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| {
        Failure::new(format!("{} has a name that is not UTF-8", path.display())).remedy("rename the file")
    })?;
    match install::change_file(&mut Folder::at(folder), name, old, request, key) {
        Ok(report) => Ok(Ok(report)),
        Err(ImageError::Refused(report)) => Ok(Err(report)),
        Err(ImageError::Medium(error)) => Err(Failure::file("write", path, &error)),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file("read", path, &error))
}

/// The image file of a system.
#[derive(Debug)]
enum Image {
    /// A file given by path.
    Given(PathBuf),
    /// The image of a named system, already built.
    Named {
        /// The name given.
        name: PathBuf,
        /// Its manifest.
        manifest: PathBuf,
        /// The image as built.
        built: PathBuf,
    },
}

impl Image {
    /// Finds the image of a system given by name or path; builds it if necessary.
    fn find(repository: &Repository, given: &Path) -> Outcome<Image> {
        if systems::is_image(given) {
            // A symbolic link stays and keeps pointing to the changed file.
            return Ok(Image::Given(given.canonicalize().unwrap_or_else(|_| given.to_path_buf())));
        }
        let manifest = repository.system_manifest(given)?;
        let built = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?.image;
        Ok(Image::Named { name: given.to_path_buf(), manifest, built })
    }

    /// Locks the file against concurrent changes until the guard is dropped. Within this output folder the builder's
    /// lock does that; a file given by path may be shared with other output folders.
    fn lock(&self) -> Outcome<Option<File>> {
        let Image::Given(path) = self else { return Ok(None) };
        let folder = folder_of(path);
        let locked = File::open(folder).and_then(|file| {
            file.lock()?;
            Ok(file)
        });
        locked.map(Some).map_err(|error| Failure::file("lock the folder", folder, &error))
    }

    /// Returns the file to read: for a named system, with its changes applied.
    fn path(&self, repository: &Repository) -> Outcome<PathBuf> {
        match self {
            Image::Given(path) => Ok(path.clone()),
            Image::Named { manifest, built, .. } => Changes::of(repository, manifest)?.image(repository, built),
        }
    }

    /// Changes the image if `write` is set; the inner error is the report of a refused change, which changes nothing.
    /// The caller holds the builder's lock.
    fn change(
        &self,
        repository: &Repository,
        request: &Request<'_>,
        key: &package_build::SecretKey,
        write: Write,
    ) -> Outcome<Result<Report, Report>> {
        match self {
            Image::Given(path) if write == Write::Nothing => {
                Ok(install::changed(&read(path)?, request, key).map(|(_, report)| report))
            }
            Image::Given(path) => change_file(path, request, key),
            Image::Named { manifest, built, .. } => {
                change_named(&Changes::of(repository, manifest)?, built, request, key, write)
            }
        }
    }

    /// Returns the message after a change.
    fn told(&self) -> String {
        match self {
            Image::Given(path) => {
                let path = path.display();
                format!("{path} is changed; `cargo sing run --system {path}` starts it")
            }
            Image::Named { name, .. } => {
                let name = name.display();
                format!(
                    "the system {name} is changed; `cargo sing run --system {name}` starts it, `cargo sing systems {name}` shows it"
                )
            }
        }
    }

    /// Returns advice on how to get an intact image.
    fn remedy(&self) -> String {
        match self {
            Image::Given(_) => "rebuild it with `cargo sing build --system NAME` or `cargo sing install`".into(),
            Image::Named { name, .. } => {
                let name = name.display();
                format!("revert all changes with `cargo sing systems {name} --as-built`, which rebuilds it")
            }
        }
    }
}

/// Changes a named system: stores the change, and remakes the image with it.
fn change_named(
    changes: &Changes,
    built: &Path,
    request: &Request<'_>,
    key: &package_build::SecretKey,
    write: Write,
) -> Outcome<Result<Report, Report>> {
    let as_built = read(built)?;
    let report = match (changes.applied(as_built.clone(), key)?, request) {
        (Ok(now), _) => match install::changed(&now, request, key) {
            Ok((_, report)) => report,
            Err(report) => return Ok(Err(report)),
        },
        // Uninstalling a change that no longer fits is the way out.
        (Err(misfit), Request::Uninstall { name }) if misfit.program == *name => Report::default(),
        (Err(misfit), _) => return Err(misfit.into()),
    };
    let is_built = |name: &str| {
        let system = install::system_of(&as_built);
        system.is_ok_and(|(_, installed)| installed.program(name).is_some())
    };
    if write == Write::Change {
        let after = changes.with(request, is_built)?;
        // A list that does not fit as a whole is not stored.
        after.applied(as_built.clone(), key)??;
        after.keep()?;
        if !after.is_empty() {
            after.make(key, built)?;
        }
    }
    Ok(Ok(report))
}

fn opened<'a>(bytes: &'a [u8], path: &Path, image: &Image) -> Outcome<(SystemImage<'a>, Installed)> {
    match install::system_of(bytes) {
        Ok(opened) => Ok(opened),
        Err(findings) => {
            let lines = findings.iter().map(|finding: &Finding| {
                format!("refused {} {}; {}", finding.code.text(), finding.what, finding.remedy)
            });
            Err(Failure::new(format!("untrusted or invalid system image {}", path.display()))
                .details(lines.collect::<Vec<_>>().join("\n"))
                .remedy(image.remedy()))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use manifest_model::{PublicKey, SystemManifest, Trust};
    use package_build::{SecretKey, Signer};

    use super::*;
    use crate::install::sample::package;
    use crate::promises;
    use crate::systems::Catalogue;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn signer() -> Signer {
        Signer::root(SecretKey::from_bytes(&[5; 32]))
    }

    /// Returns the image of a system without programs.
    pub(crate) fn empty(signer: &Signer) -> Vec<u8> {
        let system = SystemManifest {
            name: "empty".into(),
            root: "nobody".into(),
            primary: None,
            instances: Vec::new(),
            installed: Vec::new(),
            binds: Vec::new(),
            denies: Vec::new(),
            domains: Vec::new(),
            trust: Trust::in_key(signer.key.public()),
        };
        package_build::build_system(&system, &[], &signer.key).expect("an image")
    }

    #[test]
    fn a_system_image_is_changed_whole_or_not_at_all() {
        let signer = signer();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.system");
        let old = empty(&signer);
        std::fs::write(&path, &old).expect("a file");
        let good = package(&signer).expect("a package");
        let mut bad = good.clone();
        *bad.last_mut().expect("a byte") ^= 1;
        let install = |package: &[u8]| {
            change_file(&path, &Request::Install { package, at_boot: false, allow: &[] }, &signer.key).expect("a disk")
        };
        assert!(install(&bad).is_err());
        assert_eq!((std::fs::read(&path).expect("the file"), names(folder.path())), (old, vec!["empty.system".into()]));
        let report = install(&good).expect("it is good");
        assert!(report.is_accepted(), "{report}");
        let bytes = std::fs::read(&path).expect("the file");
        assert_eq!(package_check::verify_system(&bytes).expect("an image").packages, [good.as_slice()]);
        assert_eq!(names(folder.path()), ["empty.system"]);
    }

    /// Returns a repository with a built, unchanged system.
    fn built(folder: &Path, signer: &Signer) -> (Repository, Image) {
        let built = folder.join("built.system");
        std::fs::write(&built, empty(signer)).expect("a file");
        let image = Image::Named { name: "empty".into(), manifest: folder.join("empty.toml"), built };
        (Repository::of_tests(folder), image)
    }

    #[test]
    fn a_refused_first_install_leaves_nothing_and_an_accepted_one_is_the_system() {
        let signer = signer();
        let folder = tempfile::tempdir().expect("a folder");
        let (repository, image) = built(folder.path(), &signer);
        let good = package(&signer).expect("a package");
        let mut bad = good.clone();
        *bad.last_mut().expect("a byte") ^= 1;
        let install = |package: &[u8], write| {
            let request = Request::Install { package, at_boot: false, allow: &[] };
            image.change(&repository, &request, &signer.key, write).expect("a disk")
        };
        assert!(install(&bad, Write::Change).is_err());
        assert!(install(&good, Write::Nothing).is_ok());
        assert_eq!(names(folder.path()), ["built.system"]);
        let before = image.path(&repository).expect("it is built");
        assert!(install(&good, Write::Change).is_ok());
        let after = image.path(&repository).expect("it is changed");
        assert_ne!(before, after);
        let bytes = std::fs::read(after).expect("the image");
        assert_eq!(package_check::verify_system(&bytes).expect("an image").packages, [good.as_slice()]);
        assert_eq!(std::fs::read(before).expect("the built one"), empty(&signer));
        // The second request sees the first one's result and reports it.
        let report = install(&good, Write::Change).expect_err("it is there already");
        assert!(report.to_string().contains("bench-install"), "{report}");
        let request = Request::Uninstall { name: "bench-install" };
        assert!(image.change(&repository, &request, &signer.key, Write::Change).expect("a disk").is_ok());
        assert_eq!(image.path(&repository).expect("as built"), folder.path().join("built.system"));
    }

    #[test]
    fn of_two_who_change_a_file_that_was_given_one_waits() {
        let signer = signer();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.system");
        std::fs::write(&path, empty(&signer)).expect("a file");
        let link = folder.path().join("link.system");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let repository = Repository::find().expect("tests run inside the repository");
        let image = Image::find(&repository, &link).expect("it was given");
        let change = |request: &Request<'_>| image.change(&repository, request, &signer.key, Write::Change);
        let held = image.lock().expect("a folder").expect("a lock");
        let other = File::open(folder.path()).expect("the folder");
        assert!(other.try_lock().is_err());
        drop(held);
        assert!(other.try_lock().is_ok());
        drop(other);
        let good = package(&signer).expect("a package");
        let request = Request::Install { package: &good, at_boot: false, allow: &[] };
        assert!(change(&request).expect("a disk").is_ok());
        assert!(std::fs::symlink_metadata(&link).expect("the link").is_symlink());
        assert_ne!(std::fs::read(&path).expect("the file"), empty(&signer));
    }

    #[test]
    fn what_to_do_about_a_damaged_image_can_be_done() {
        let built = Image::Named { name: "web".into(), manifest: "web.toml".into(), built: "b.system".into() };
        let damaged =
            |image: &Image| opened(b"damaged", "b.system".as_ref(), image).expect_err("it is none").to_string();
        let text = damaged(&built);
        assert!(
            text.contains("invalid system image b.system") && text.contains("`cargo sing systems web --as-built`"),
            "{text}"
        );
        let text = damaged(&Image::Given("mine.system".into()));
        assert!(text.contains("`cargo sing build --system NAME`"), "{text}");
        assert!(built.told().contains("`cargo sing run --system web` starts it"));
    }

    #[test]
    fn every_system_of_the_repository_keeps_what_is_checked() {
        let repository = Repository::find().expect("tests run inside the repository");
        let catalogue = Catalogue::read(&repository).expect("the manifests are right");
        let mut judged = 0;
        for name in repository.system_names() {
            let path = repository.system_manifest(name.as_ref()).expect("there is one");
            // Without a primary instance it cannot run; it is only a base of others.
            let system = catalogue.system(&repository, &path).unwrap_or_else(|error| panic!("{name}: {error}"));
            if system.primary.is_none() {
                continue;
            }
            let installed =
                promises::as_built(&catalogue, system, PublicKey([1; 32])).expect("the manifests are right");
            let report = install::verify(&installed);
            assert!(report.is_accepted(), "{name}:\n{report}");
            judged += 1;
        }
        assert!(judged > 10, "{judged} systems");
    }
}
