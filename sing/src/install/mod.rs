//! `sing install`, `upgrade`, `uninstall`, `verify`, `explain` and `package`: changes of system images, judged before
//! they are made.
//!
//! The judging is the crate `install`'s. A system that is named and not given as a file has an image of its own for
//! what is installed into it, which begins as the built one: building the system again does not take anything out.
//! Deliberately not here: installing into a running system.

mod folder;
mod view;

use std::path::{Path, PathBuf};

use install::{Finding, ImageError, Installed, Map, Report, Request};
use serde_json::json;

use crate::build;
use crate::builder::{self, UnsafeTests};
use crate::command_line::{
    ExplainArguments, InstallArguments, PackageArguments, UninstallArguments, UpgradeArguments, VerifyArguments,
};
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_whole};
use crate::systems::{self, Platform};

pub use folder::Folder;

/// `sing package`: the package file of a program of the repository, for others to install.
///
/// # Errors
/// There is no such program, it does not build, or the file cannot be written.
pub fn package(repository: &Repository, arguments: &PackageArguments) -> Outcome<u8> {
    let bytes = build::package(repository, &arguments.name, arguments.key.as_deref())?;
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
/// Something speaks against it, or a file cannot be read or written.
pub fn install(repository: &Repository, arguments: &InstallArguments) -> Outcome<u8> {
    let package = read(&arguments.package)?;
    let request = Request::Install { package: &package, at_boot: arguments.at_boot, allow: &arguments.allow };
    change(repository, &arguments.change, &request)
}

/// `sing upgrade`.
///
/// # Errors
/// As for [`install`].
pub fn upgrade(repository: &Repository, arguments: &UpgradeArguments) -> Outcome<u8> {
    let package = read(&arguments.package)?;
    change(repository, &arguments.change, &Request::Upgrade { package: &package, more: arguments.more })
}

/// `sing uninstall`.
///
/// # Errors
/// As for [`install`].
pub fn uninstall(repository: &Repository, arguments: &UninstallArguments) -> Outcome<u8> {
    change(repository, &arguments.change, &Request::Uninstall { name: &arguments.name })
}

/// `sing verify`: the whole system again.
///
/// # Errors
/// Something in it is wrong, or it cannot be read.
pub fn verify(repository: &Repository, arguments: &VerifyArguments) -> Outcome<u8> {
    let path = existing(repository, &arguments.system)?;
    let bytes = read(&path)?;
    let installed = opened(&bytes, &path)?;
    let report = install::verify(&installed);
    if arguments.json {
        println!("{:#}", view::report_json(&report));
    } else {
        view::print(&report, true);
    }
    let count = report.refused().count();
    if count == 0 {
        return Ok(0);
    }
    Err(Failure::new(format!("{} is not sound: {} of what is checked does not hold", path.display(), count))
        .remedy("mend what is listed above, and build or install again"))
}

/// `sing explain`.
///
/// # Errors
/// There is no such program, or the system cannot be read.
pub fn explain(repository: &Repository, arguments: &ExplainArguments) -> Outcome<u8> {
    let path = existing(repository, &arguments.system)?;
    let bytes = read(&path)?;
    let installed = opened(&bytes, &path)?;
    let Some(program) = installed.program(&arguments.name) else {
        let mut names: Vec<&str> = installed.programs.iter().map(|program| program.manifest.name.as_str()).collect();
        names.sort_unstable();
        return Err(Failure::new(format!("no program `{}` is installed in {}", arguments.name, path.display()))
            .remedy(format!("name one of: {}", names.join(", "))));
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
    /// Say what there is to be said, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

fn change(repository: &Repository, arguments: &ChangeArguments, request: &Request<'_>) -> Outcome<u8> {
    let path = if arguments.dry_run {
        existing(repository, &arguments.system)?
    } else {
        to_change(repository, &arguments.system)?
    };
    let _lock = builder::lock(repository)?;
    let key = systems::signer(repository)?.key;
    let result = if arguments.dry_run {
        install::changed(&read(&path)?, request, &key).map(|(_, report)| report)
    } else {
        change_file(&path, request, &key)?
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
        println!("\n{} is changed; `cargo sing run --system {}` starts it", path.display(), path.display());
    }
    Ok(0)
}

/// Changes a system image file; the inner error is a report of what speaks against it.
///
/// # Errors
/// The file cannot be read or written; it is as it was.
pub fn change_file(path: &Path, request: &Request<'_>, key: &package::SecretKey) -> Outcome<Result<Report, Report>> {
    let old = read(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| {
        Failure::new(format!("{} has a name that is not UTF-8", path.display())).remedy("rename the file")
    })?;
    match install::change_file(&mut Folder::at(folder), name, &old, request, key) {
        Ok(report) => Ok(Ok(report)),
        Err(ImageError::Refused(report)) => Ok(Err(report)),
        Err(ImageError::Medium(error)) => Err(Failure::file("write", path, &error)),
    }
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file("read", path, &error))
}

fn is_image(given: &Path) -> bool {
    given.extension().is_some_and(|extension| extension == "system")
}

/// The image of a system that is named: the one that was installed into, or the built one.
fn existing(repository: &Repository, given: &Path) -> Outcome<PathBuf> {
    if is_image(given) {
        return Ok(given.to_path_buf());
    }
    let own = own_image(repository, given)?;
    if own.is_file() { Ok(own) } else { built(repository, given) }
}

/// The image to change of a system that is named, made of the built one now if there is none.
fn to_change(repository: &Repository, given: &Path) -> Outcome<PathBuf> {
    if is_image(given) {
        return Ok(given.to_path_buf());
    }
    let own = own_image(repository, given)?;
    if !own.is_file() {
        write_whole(&own, &read(&built(repository, given)?)?)?;
    }
    Ok(own)
}

fn own_image(repository: &Repository, given: &Path) -> Outcome<PathBuf> {
    let manifest = repository.system_manifest(given)?;
    let stem = manifest.file_stem().map_or_else(|| "system".into(), |stem| stem.to_string_lossy().into_owned());
    Ok(repository.output(&format!("installed/{stem}.system")))
}

fn built(repository: &Repository, given: &Path) -> Outcome<PathBuf> {
    let manifest = repository.system_manifest(given)?;
    Ok(systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?.image)
}

fn opened(bytes: &[u8], path: &Path) -> Outcome<Installed> {
    match install::system_of(bytes) {
        Ok((_, installed)) => Ok(installed),
        Err(findings) => {
            let lines = findings.iter().map(|finding: &Finding| {
                format!("refused {} {}; {}", finding.code.text(), finding.what, finding.remedy)
            });
            Err(Failure::new(format!("{} is no system image that can be trusted", path.display()))
                .details(lines.collect::<Vec<_>>().join("\n"))
                .remedy("build it again with `cargo sing build --system`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use install::{Installed, Program, Request};
    use package::{PublicKey, SecretKey, Signer, SystemImage, SystemManifest, Trust};

    use super::change_file;
    use crate::bench::install::package;
    use crate::repository::Repository;
    use crate::systems::Catalogue;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_system_image_is_changed_whole_or_not_at_all() {
        let signer = Signer::root(SecretKey::from_bytes(&[5; 32]));
        let system = SystemManifest {
            name: "empty".into(),
            root: "nobody".into(),
            primary: None,
            instances: Vec::new(),
            installed: Vec::new(),
            binds: Vec::new(),
            denies: Vec::new(),
            trust: Trust::in_key(signer.key.public()),
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.system");
        let old = SystemImage::build(&system, &[], &signer.key).expect("an image");
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
        assert_eq!(SystemImage::parse(&bytes).expect("an image").packages, [good.as_slice()]);
        assert_eq!(names(folder.path()), ["empty.system"]);
    }

    #[test]
    fn every_system_of_the_repository_keeps_what_is_checked() {
        let repository = Repository::find().expect("tests run inside the repository");
        let catalogue = Catalogue::read(&repository).expect("the manifests are right");
        let mut judged = 0;
        for name in repository.system_names() {
            let path = repository.system_manifest(name.as_ref()).expect("there is one");
            // What others are based on need not be a system by itself.
            let Ok(system) = catalogue.system(&repository, &path) else { continue };
            let program = |name: &&str| {
                let manifest = catalogue.manifest(name).expect("a manifest").clone();
                Program { manifest, key: PublicKey([1; 32]) }
            };
            let programs = system.programs().iter().map(program).collect();
            let report = install::verify(&Installed { system, programs });
            assert!(report.is_accepted(), "{name}:\n{report}");
            judged += 1;
        }
        assert!(judged > 10, "{judged} systems");
    }
}
