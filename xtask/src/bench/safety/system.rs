//! Systems of the same programs with and without their checks, for machines of the bench alone.
//!
//! They are signed by a key that lives as long as the bench, and stay in its folder. A package without checks has been
//! refused by the kernel's own verification before it is used here. Deliberately not here: the machines.

use std::path::Path;

use manifest_model::Trust;
use package::Package;
use package_build::{SecretKey, Signer, build_package, build_system, build_unchecked};
use package_check::{PackageError, verify};
use sing::build_lock;
use sing::builder::{self, BuiltImage, UnsafeTests};
use sing::failure::{Failure, Outcome};
use sing::repository::{Repository, write_whole};
use sing::systems::Catalogue;

use super::checks::Counts;
use super::image::without_checks;

/// What was removed from a program.
pub struct Removed {
    /// Its name.
    pub program: String,
    /// Numbers of checks.
    pub counts: Counts,
    /// Size of its code.
    pub code_bytes: usize,
}

/// Writes the system twice, as built and without the checks of its programs, and returns what was removed.
///
/// # Errors
/// It does not build, or a program without checks would be accepted by other machines.
pub fn write(repository: &Repository, name: &str, checked: &Path, unchecked: &Path) -> Outcome<Vec<Removed>> {
    let catalogue = Catalogue::read(repository)?;
    let mut system = catalogue.system(repository, &repository.system_manifest(name.as_ref())?)?;
    let names = system.programs();
    let selected = names.iter().map(|name| catalogue.programs.get(name)).collect::<Outcome<Vec<_>>>()?;
    let _lock = build_lock::lock(repository)?;
    let built = builder::build_programs(repository, &catalogue.programs, &selected, UnsafeTests::Refused)?;
    let signer = Signer::root(passing_key()?);
    let (mut as_built, mut without, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for one in &built {
        let package = packed(&catalogue, one, &signer)?;
        match unchecked_package(&catalogue, one, &signer)? {
            Some((other, counts)) => {
                without.push(other);
                removed.push(counts);
            }
            None => without.push(package.clone()),
        }
        as_built.push(package);
    }
    system.trust = Trust::in_key(signer.key.public());
    for (path, packages) in [(checked, as_built), (unchecked, without)] {
        let image = build_system(&system, &packages, &signer.key)
            .map_err(|error| Failure::new(format!("cannot create a system image of `{name}`: {error}")))?;
        write_whole(path, &image)?;
    }
    Ok(removed)
}

/// A key of this run alone.
fn passing_key() -> Outcome<SecretKey> {
    const SOURCE: &str = "/dev/urandom";
    let mut seed = [0; 32];
    let read = std::fs::File::open(SOURCE).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut seed));
    read.map_err(|error| Failure::file("read", Path::new(SOURCE), &error))?;
    Ok(SecretKey::from_bytes(&seed))
}

fn image(built: &BuiltImage<'_>) -> Outcome<Vec<u8>> {
    built
        .image
        .as_ref()
        .map_or(Ok(Vec::new()), |path| std::fs::read(path).map_err(|error| Failure::file("read", path, &error)))
}

fn packed(catalogue: &Catalogue, built: &BuiltImage<'_>, signer: &Signer) -> Outcome<Vec<u8>> {
    let manifest = catalogue.manifest(&built.program.name)?.clone();
    build_package(manifest, built.bill.as_bytes(), &image(built)?, signer).map_err(|error| refused(built, &error))
}

/// The package of a program without its checks; `None` for one without any.
fn unchecked_package(
    catalogue: &Catalogue,
    built: &BuiltImage<'_>,
    signer: &Signer,
) -> Outcome<Option<(Vec<u8>, Removed)>> {
    let image = image(built)?;
    if image.is_empty() {
        return Ok(None);
    }
    let name = &built.program.name;
    let unchecked = without_checks(name, &image)?;
    let manifest = catalogue.manifest(name)?.clone();
    let package = build_unchecked(manifest, built.bill.as_bytes(), &unchecked.image, signer)
        .map_err(|error| refused(built, &error))?;
    if unchecked.counts.all_removed() > 0 {
        expect_refused(name, &package, signer)?;
    }
    let removed = Removed { program: name.clone(), counts: unchecked.counts, code_bytes: unchecked.code_bytes };
    Ok(Some((package, removed)))
}

/// Holds the package to what every kernel, installer and host tool checks, in a trust in which its key may sign all.
fn expect_refused(name: &str, package: &[u8], signer: &Signer) -> Outcome<()> {
    let trust = Trust::in_key(signer.key.public());
    match Package::parse(package).map_err(PackageError::from).and_then(|package| verify(&package, &trust).map(drop)) {
        Err(PackageError::Image(_)) => Ok(()),
        Err(other) => Err(Failure::new(format!("`{name}` without its checks is refused, but for this: {other}"))),
        Ok(()) => Err(Failure::new(format!("`{name}` without its checks would be accepted by every machine"))),
    }
}

fn refused(built: &BuiltImage<'_>, error: &PackageError) -> Failure {
    Failure::new(format!("the image of `{}` is refused: {error}", built.program.name))
}
