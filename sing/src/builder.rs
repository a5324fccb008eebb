//! Checks SIP crates, builds their images, and has them packed and signed.
//!
//! Order: manifests and contracts, source rules, dependencies, one cargo build for all images, the files that the
//! compiler read, the image check and the signature. No untrusted code is compiled or run before it has been checked as
//! far as possible at that point. Deliberately not here: validity of images, which `image-check` decides here and in
//! the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::bill::Materials;
use crate::build_lock::lock;
use crate::cargo::{Built, Metadata, Package};
use crate::compiled_sources::Compiled;
use crate::dependencies::{AllowList, Checksums, Rules};
use crate::failure::{Failure, Outcome};
use crate::native::CCrates;
use crate::programs::{Body, Program, Programs};
use crate::repository::{Repository, write_if_changed};
use crate::source_rules::{self, Code};
use crate::stubs::{EntryStubs, stub_name};
use crate::{attributes, cargo, dependencies, image_symbols, native, wasm};

/// Whether test programs may contain unsafe code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsafeTests {
    /// A test program that declares `unsafe-for-tests` is refused.
    Refused,
    /// Such a program is accepted.
    Allowed,
}

/// `sing dependencies`: prints the closure of all images as entries of the audited list.
///
/// # Errors
/// Cargo cannot resolve the dependencies.
pub fn print_dependencies(repository: &Repository) -> Outcome<u8> {
    let programs = Programs::find(repository);
    let _lock = lock(repository)?;
    let stubs = EntryStubs::generate(repository, programs.all())?;
    let metadata = Metadata::of_workspace(&stubs.manifest(), &stubs.encoded_flags())?;
    let list = AllowList::read(repository)?;
    let checksums = Checksums::read(&stubs.lock())?;
    let members = metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id));
    let rules = Rules { metadata: &metadata, list: &list, checksums: &checksums, repository };
    print!("{}", rules.rendered_closure(members));
    Ok(0)
}

/// A program with a built image, ready to be packed.
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
/// A program is refused or does not build; the failure lists all problems found at that stage.
pub fn build_programs<'a>(
    repository: &Repository,
    programs: &Programs,
    selected: &[&'a Program],
    unsafe_tests: UnsafeTests,
) -> Outcome<Vec<BuiltImage<'a>>> {
    refuse_any(selected.iter().filter_map(|program| manifest_complaint(repository, program, unsafe_tests)).collect())?;
    let stubs = EntryStubs::generate(repository, programs.all())?;
    let metadata = Metadata::of_workspace(&stubs.manifest(), &stubs.encoded_flags())?;
    let checksums = Checksums::read(&stubs.lock())?;
    let built = with_templates(programs, selected)?;
    let judged = check_dependencies(repository, &metadata, &checksums, &built)?;
    let included = CCrates::find(repository, selected)?;
    let bills = || -> Outcome<Vec<String>> {
        let materials = Materials::new(repository, &metadata, &checksums, &included)?;
        selected.iter().map(|program| materials.bill(program)).collect()
    };
    let before = bills()?;
    let mut made = compile(repository, &stubs, &metadata, &included, &built, &judged)?;
    wasm::compose(repository, selected, &mut made)?;
    let bills = bills()?;
    if bills != before {
        return Err(Failure::new("sources changed during the build").remedy("build again"));
    }
    selected
        .iter()
        .zip(bills)
        .map(|(program, bill)| match program.body {
            Body::Script => Ok(BuiltImage { program, image: None, bill }),
            Body::Crate { .. } | Body::Wasm { .. } => match made.get(&program.name) {
                Some(image) => {
                    judge_symbols(program, image)?;
                    Ok(BuiltImage { program, image: Some(image.clone()), bill })
                }
                None => Err(Failure::new(format!("cargo produced no image of `{}`", program.name))
                    .remedy(format!("delete {} and rebuild", repository.output("stubs").display()))),
            },
        })
        .collect()
}

/// The programs, with the templates of those that are WebAssembly modules.
fn with_templates<'a>(programs: &'a Programs, selected: &[&'a Program]) -> Outcome<Vec<&'a Program>> {
    let mut all: Vec<&Program> = selected.to_vec();
    for program in selected {
        let Body::Wasm { template, .. } = &program.body else { continue };
        if !all.iter().any(|one| one.name == *template) {
            all.push(programs.get(template)?);
        }
    }
    Ok(all)
}

/// Builds the images from crates in the folders `judged` only, and checks the files that the compiler read.
fn compile(
    repository: &Repository,
    stubs: &EntryStubs,
    metadata: &Metadata,
    included: &CCrates,
    selected: &[&Program],
    judged: &BTreeSet<PathBuf>,
) -> Outcome<BTreeMap<String, PathBuf>> {
    // Without a package on its command line, cargo would build them all.
    if stubs_of(metadata, selected).next().is_none() {
        return Ok(BTreeMap::new());
    }
    let list = keep_judged(repository, judged)?;
    for (program, library) in native::compile(repository, selected, included)? {
        stubs.link(program, &library)?;
    }
    let build = || {
        let command = stubs.build_command(selected.iter().copied(), &list);
        cargo::build_with_artifacts(command, "programs", judged.len())
    };
    let codes = dependencies::codes(metadata, stubs_of(metadata, selected));
    let code = |package: &Package| codes.get(package.id.as_str()).map_or(Code::Safe, |(_, code)| *code);
    let mut built = build()?;
    let stale = remove_stale(&built, metadata, code);
    if stale > 0 {
        built = build()?;
        if remove_stale(&built, metadata, code) > 0 {
            return Err(Failure::new("sources changed during the build").remedy("build again"));
        }
    }
    let mut complaints = Vec::new();
    for compiled in Compiled::among(&built.artifacts, metadata, code) {
        complaints.extend(compiled.complaints(repository)?);
    }
    complaints.sort();
    complaints.dedup();
    refuse_any(complaints)?;
    Ok(built.programs)
}

/// Writes the list of permitted crates, for the runs of this tool that wrap the compiler.
fn keep_judged(repository: &Repository, judged: &BTreeSet<PathBuf>) -> Outcome<PathBuf> {
    let list = repository.output("judged");
    let folders: String = judged.iter().map(|folder| format!("{}\n", folder.display())).collect();
    write_if_changed(&list, folders.as_bytes())?;
    Ok(list)
}

/// Checks the programs' dependencies; returns the file that lists the crates permitted in their build.
///
/// # Errors
/// A crate is refused, or a file cannot be read or written.
pub fn judge(
    repository: &Repository,
    stubs: &EntryStubs,
    metadata: &Metadata,
    selected: &[&Program],
) -> Outcome<PathBuf> {
    let checksums = Checksums::read(&stubs.lock())?;
    keep_judged(repository, &check_dependencies(repository, metadata, &checksums, selected)?)
}

/// Refuses an image with symbols or sections that come from neither the runtime nor the compiler.
fn judge_symbols(program: &Program, image: &Path) -> Outcome<()> {
    // The names in a module are its own; its template has been judged.
    if matches!(program.body, Body::Wasm { .. }) {
        return Ok(());
    }
    let bytes = std::fs::read(image).map_err(|error| Failure::file("read", image, &error))?;
    match image_symbols::complaint(&bytes, &program.name).filter(|_| !program.may_be_unsafe()) {
        None => Ok(()),
        Some(complaint) => Err(Failure::new(format!("the image of `{}` is refused: {complaint}", program.name))
            .remedy("remove the definition; only the runtime may define symbols")),
    }
}

/// Removes artifacts compiled from sources that have changed since; returns their number.
fn remove_stale(built: &Built, metadata: &Metadata, code: impl Fn(&Package) -> Code) -> usize {
    let mut stale = Compiled::among(&built.artifacts, metadata, code);
    stale.retain(|compiled| !compiled.is_current());
    stale.iter().for_each(Compiled::remove);
    stale.len()
}

/// The programs with a crate, each with its entry stub.
fn stubs_of<'m, 'p>(
    metadata: &'m Metadata,
    selected: &'p [&'p Program],
) -> impl Iterator<Item = (&'m Package, &'p Program)> {
    selected.iter().filter_map(|program| metadata.member(&stub_name(program)).map(|stub| (stub, *program)))
}

/// Returns the folder of a program's crate, in cargo's spelling.
fn crate_folder(program: &Program) -> Option<PathBuf> {
    match &program.body {
        Body::Crate { folder, .. } => folder.canonicalize().ok(),
        Body::Wasm { .. } | Body::Script => None,
    }
}

/// Checks what a program's manifest declares about its code; one sentence per complaint.
fn manifest_complaint(repository: &Repository, program: &Program, unsafe_tests: UnsafeTests) -> Option<String> {
    let manifest = program.manifest();
    let manifest = repository.shown(&manifest);
    if program.unsafe_for_tests && program.category != "test" {
        return Some(format!(
            "{manifest}: only a program of category \"test\" may set unsafe-for-tests, and `{}` is of category {:?}",
            program.name, program.category
        ));
    }
    (program.unsafe_for_tests && unsafe_tests == UnsafeTests::Refused).then(|| {
        format!(
            "{manifest}: `{}` contains deliberately hostile unsafe code; \
             pass --allow-unsafe-tests to build it",
            program.name
        )
    })
}

/// Checks a program's library, beyond the rules for every crate of an image.
fn library_complaint(repository: &Repository, metadata: &Metadata, program: &Program) -> Option<String> {
    let folder = crate_folder(program)?;
    // A crate outside the closure, or without a library, is refused by the general rules.
    let package = metadata.packages.iter().find(|package| package.source.is_none() && package.folder() == folder)?;
    let library = &package.library()?.src_path;
    // A library elsewhere is refused by the general rules; reading it might never end, since it may be a device.
    if !source_rules::lies_in(library, package.folder()) {
        return None;
    }
    let source = std::fs::read_to_string(library).ok()?;
    let attributes = attributes::inner_attributes(&source);
    (!attributes::is_no_std(&attributes))
        .then(|| format!("{} lacks #![no_std]: SIPs have no std", repository.shown(library)))
}

/// Checks the programs' dependencies, and returns the folders of all packages that the build compiles.
fn check_dependencies(
    repository: &Repository,
    metadata: &Metadata,
    checksums: &Checksums,
    selected: &[&Program],
) -> Outcome<BTreeSet<PathBuf>> {
    let list = AllowList::read(repository)?;
    let rules = Rules { metadata, list: &list, checksums, repository };
    let mut compiled = BTreeSet::new();
    for (stub, _) in stubs_of(metadata, selected) {
        compiled.extend(metadata.closure(&stub.id).into_iter().map(|package| package.folder().to_path_buf()));
    }
    let mut complaints = rules.complaints(stubs_of(metadata, selected));
    complaints.extend(selected.iter().filter_map(|program| library_complaint(repository, metadata, program)));
    complaints.sort();
    complaints.dedup();
    refuse_any(complaints)?;
    Ok(compiled)
}

/// Returns a failure that lists the complaints, if any.
fn refuse_any(complaints: Vec<String>) -> Outcome<()> {
    match complaints.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::new(one.clone())),
        many => Err(Failure::new(format!("{} violations of the builder's rules", many.len()))
            .details(many.join("\n"))
            .remedy("fix the problems above")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// The stubs of all programs, as cargo sees them; no other build writes them until the file is closed.
    fn resolved(programs: &Programs, repository: &Repository) -> (EntryStubs, Metadata, File) {
        let lock = lock(repository).expect("it can be locked");
        let stubs = EntryStubs::generate(repository, programs.all()).expect("there are stubs");
        let metadata = Metadata::of_workspace(&stubs.manifest(), &stubs.encoded_flags()).expect("cargo resolves them");
        (stubs, metadata, lock)
    }

    #[test]
    fn a_crate_of_unsafe_code_is_safe_code_once_a_safe_program_uses_it() {
        let repository = Repository::find().expect("tests run inside the repository");
        let programs = Programs::find(&repository);
        let (_, metadata, _lock) = resolved(&programs, &repository);
        let mut shared = programs.get("careless-decoder").expect("there is one").clone();
        assert!(shared.may_be_unsafe());
        let folder = repository.base().join("examples/decoder-contract");
        shared.body = Body::Crate { folder, package: "decoder-contract".into(), entry: None };
        let user = programs.get("decode").expect("there is one");
        assert!(!user.may_be_unsafe());
        for (selected, code) in [
            (&[&shared][..], Code::Unsafe),
            (&[user], Code::Safe),
            (&[&shared, user], Code::Safe),
            (&[user, &shared], Code::Safe),
        ] {
            let codes = dependencies::codes(&metadata, stubs_of(&metadata, selected));
            let found = codes.values().find(|(package, _)| package.name == "decoder-contract");
            assert_eq!(found.map(|(_, code)| *code), Some(code), "{} programs", selected.len());
        }
    }

    #[test]
    fn every_program_of_the_repository_keeps_the_rules() {
        let repository = Repository::find().expect("tests run inside the repository");
        let programs = Programs::find(&repository);
        let (stubs, metadata, _lock) = resolved(&programs, &repository);
        let checksums = Checksums::read(&stubs.lock()).expect("there is a lock file");
        let selected: Vec<&Program> = programs.all().collect();
        assert!(selected.len() > 50, "{}", selected.len());
        let compiled = check_dependencies(&repository, &metadata, &checksums, &selected).expect("no complaint");
        assert!(compiled.len() > selected.len());
    }
}
