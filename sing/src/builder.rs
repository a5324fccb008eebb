//! The source door: checks SIP crates, builds their images, has them packed and signed.
//!
//! Order of work: manifests and contracts, source rules, dependencies, one cargo build for all
//! images, the image check and the signature. Nothing is built that would be refused anyway.
//! Deliberately not here: what makes an image legal; `package` checks that here and in the kernel.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::bill::Materials;
use crate::cargo::Metadata;
use crate::dependencies::{self, AllowList, Checksums};
use crate::doors::{Doors, door_name};
use crate::failure::{Failure, Outcome};
use crate::programs::{Body, Program, Programs};
use crate::repository::Repository;
use crate::{attributes, cargo};

/// Whether test programs may hold unsafe code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsafeTests {
    /// A test program that declares `unsafe-for-tests` is refused.
    Refused,
    /// It is built.
    Allowed,
}

/// `sing dependencies`: prints the closure of all images as entries of the audited list.
///
/// # Errors
/// Cargo cannot resolve the dependencies.
pub fn print_dependencies(repository: &Repository) -> Outcome<u8> {
    let programs = Programs::find(repository);
    let _lock = lock(repository)?;
    let doors = Doors::generate(repository, programs.all())?;
    let metadata = Metadata::of_workspace(&doors.manifest())?;
    let list = AllowList::read(repository)?;
    let checksums = Checksums::read(&doors.lock())?;
    let members = metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id));
    print!("{}", dependencies::rendered_closure(&metadata, members, &list, &checksums));
    Ok(0)
}

/// Keeps other builds of this output folder out until the lock is dropped.
///
/// # Errors
/// The lock file cannot be made.
pub fn lock(repository: &Repository) -> Outcome<File> {
    let path = repository.output("lock");
    let folder = repository.output("");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file("make the folder", &folder, &error))?;
    let file = File::create(&path).map_err(|error| Failure::file("make", &path, &error))?;
    file.lock().map_err(|error| Failure::file("lock", &path, &error))?;
    Ok(file)
}

/// A program whose image is ready to be packed.
pub struct BuiltImage<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its image file; none for a script.
    pub image: Option<PathBuf>,
    /// Its bill of materials.
    pub bill: String,
}

/// Checks and builds the selected programs.
///
/// # Errors
/// A program is refused or does not build; the failure names all that were found at that stage.
pub fn build_programs<'a>(
    repository: &Repository,
    programs: &Programs,
    selected: &[&'a Program],
    unsafe_tests: UnsafeTests,
) -> Outcome<Vec<BuiltImage<'a>>> {
    refuse_any(selected.iter().flat_map(|program| source_complaints(repository, program, unsafe_tests)).collect())?;
    let doors = Doors::generate(repository, programs.all())?;
    let metadata = Metadata::of_workspace(&doors.manifest())?;
    let checksums = Checksums::read(&doors.lock())?;
    let expected = check_dependencies(repository, &metadata, &checksums, selected)?;
    // Before the build, so that a source that changes during it does not belong to the bill.
    let materials = Materials::new(repository, &metadata, &checksums)?;
    let bills: Vec<String> = selected.iter().map(|program| materials.bill(program)).collect::<Outcome<_>>()?;
    let made = cargo::build(doors.build_command(selected.iter().copied()), "programs", expected)?;
    selected
        .iter()
        .zip(bills)
        .map(|(program, bill)| match program.body {
            Body::Script => Ok(BuiltImage { program, image: None, bill }),
            Body::Crate { .. } => match made.get(&program.name) {
                Some(image) => Ok(BuiltImage { program, image: Some(image.clone()), bill }),
                None => Err(Failure::new(format!("cargo made no image of `{}`", program.name))
                    .remedy(format!("delete {} and build again", repository.output("doors").display()))),
            },
        })
        .collect()
}

/// What is wrong with a program's own source, each one sentence.
fn source_complaints(repository: &Repository, program: &Program, unsafe_tests: UnsafeTests) -> Vec<String> {
    let manifest = program.manifest();
    let manifest = repository.shown(&manifest);
    let Body::Crate { folder, .. } = &program.body else { return Vec::new() };
    let mut complaints = Vec::new();
    if program.unsafe_for_tests && program.category != "test" {
        complaints.push(format!(
            "{manifest}: only a program of category \"test\" may set unsafe-for-tests, and `{}` is of category {:?}",
            program.name, program.category
        ));
    } else if program.unsafe_for_tests && unsafe_tests == UnsafeTests::Refused {
        complaints.push(format!(
            "{manifest}: `{}` holds unsafe code to attack the system with, so it is built only with --allow-unsafe-tests",
            program.name
        ));
    }
    let library = folder.join("src/lib.rs");
    match std::fs::read_to_string(&library) {
        Ok(source) => complaints.extend(attribute_complaints(repository, program, &library, &source)),
        Err(error) => complaints.push(Failure::file("read", &library, &error).to_string()),
    }
    complaints
}

fn attribute_complaints(repository: &Repository, program: &Program, library: &Path, source: &str) -> Vec<String> {
    let attributes = attributes::inner_attributes(source);
    let library = repository.shown(library);
    let mut complaints = Vec::new();
    if !attributes::is_no_std(&attributes) {
        complaints.push(format!("{library} lacks #![no_std]: a SIP has no host operating system under it"));
    }
    if !attributes::forbids_unsafe(&attributes) && !program.unsafe_for_tests {
        complaints.push(format!(
            "{library} lacks #![forbid(unsafe_code)]: a SIP is isolated by the types its code was checked against"
        ));
    }
    complaints
}

/// Checks what the programs depend on, and returns how many packages building them compiles.
fn check_dependencies(
    repository: &Repository,
    metadata: &Metadata,
    checksums: &Checksums,
    selected: &[&Program],
) -> Outcome<usize> {
    let list = AllowList::read(repository)?;
    let mut complaints = Vec::new();
    let mut compiled = std::collections::BTreeSet::new();
    for program in selected {
        let Some(door) = metadata.member(&door_name(program)) else { continue };
        compiled.extend(metadata.closure(&door.id).into_iter().map(|package| package.id.clone()));
        let exempt = program.unsafe_for_tests.then_some(*program);
        complaints.extend(dependencies::complaints(metadata, door, exempt, &list, checksums, repository));
    }
    complaints.sort();
    complaints.dedup();
    refuse_any(complaints)?;
    Ok(compiled.len())
}

/// A failure that lists the complaints, if there are any.
fn refuse_any(complaints: Vec<String>) -> Outcome<()> {
    match complaints.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::new(one.clone())),
        many => Err(Failure::new(format!("{} rules of the builder are broken", many.len()))
            .details(many.join("\n"))
            .remedy("mend what is listed above")),
    }
}
