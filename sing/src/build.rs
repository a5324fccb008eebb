//! `sing build`: builds programs into signed packages, without running them.

use std::path::Path;

use serde_json::json;

use crate::build_lock;
use crate::builder::{self, UnsafeTests};
use crate::command_line::BuildArguments;
use crate::failure::Outcome;
use crate::keys::store::Store;
use crate::programs::{Body, Program};
use crate::repository::Repository;
use crate::systems::{self, Catalogue, Packed, Platform};

/// `sing build`.
///
/// # Errors
/// A program is refused or does not build.
pub fn build(repository: &Repository, arguments: &BuildArguments) -> Outcome<u8> {
    let unsafe_tests = if arguments.allow_unsafe_tests { UnsafeTests::Allowed } else { UnsafeTests::Refused };
    if let Some(system) = &arguments.system {
        let manifest = repository.system_manifest(system)?;
        let ready = systems::prepare(repository, &manifest, Platform::Hosted, unsafe_tests)?;
        print_system(&ready.image, arguments.json);
        return Ok(0);
    }
    let packed = build_programs(repository, arguments, unsafe_tests)?;
    print_programs(&packed, arguments.json);
    Ok(0)
}

fn build_programs(
    repository: &Repository,
    arguments: &BuildArguments,
    unsafe_tests: UnsafeTests,
) -> Outcome<Vec<Packed>> {
    let _lock = build_lock::lock(repository)?;
    let catalogue = Catalogue::read(repository)?;
    let selected: Vec<&Program> = if arguments.programs.is_empty() {
        if let Some(failure) = catalogue.failures().next() {
            return Err(failure.clone());
        }
        catalogue.programs.all().filter(|program| !program.unsafe_for_tests || arguments.allow_unsafe_tests).collect()
    } else {
        arguments.programs.iter().map(|name| catalogue.programs.get(name)).collect::<Outcome<_>>()?
    };
    for program in &selected {
        catalogue.manifest(&program.name)?;
    }
    let signer = systems::signer(repository)?;
    let built = builder::build_programs(repository, &catalogue.programs, &selected, unsafe_tests)?;
    built.iter().map(|image| systems::pack(repository, &catalogue, image, &signer)).collect()
}

/// Builds the package of a program without unsafe code; signed as by [`package_with`].
pub fn package(repository: &Repository, name: &str, key: Option<&str>) -> Outcome<Vec<u8>> {
    package_with(repository, name, key, UnsafeTests::Refused)
}

/// The package of a program, after it was built; that of a WebAssembly program has its module. Signed with the person's key of that name, or else with the
/// development key.
///
/// # Errors
/// There is no such program or key, the program is refused or does not build, or the key may not sign for its
/// publisher.
pub fn package_with(
    repository: &Repository,
    name: &str,
    key: Option<&str>,
    unsafe_tests: UnsafeTests,
) -> Outcome<Vec<u8>> {
    let signer = match key {
        Some(key) => Store::of_user().signer(key)?,
        None => systems::signer(repository)?,
    };
    let _lock = build_lock::lock(repository)?;
    let catalogue = Catalogue::read(repository)?;
    catalogue.manifest(name)?;
    let program = catalogue.programs.get(name)?;
    let built = builder::build_programs(repository, &catalogue.programs, &[program], unsafe_tests)?;
    if let Body::Wasm { module, template, bounds, .. } = &program.body {
        return systems::pack_module(&catalogue, program, (module, template, *bounds), &signer);
    }
    let packed = built.iter().map(|image| systems::pack(repository, &catalogue, image, &signer));
    packed.map(|packed| packed.map(|packed| packed.bytes)).collect::<Outcome<Vec<_>>>().map(|all| all.concat())
}

fn print_system(image: &Path, as_json: bool) {
    if as_json {
        println!("{}", json!({ "system": image }));
    } else {
        println!("{}", image.display());
    }
}

fn print_programs(packed: &[Packed], as_json: bool) {
    if as_json {
        let list: Vec<_> = packed
            .iter()
            .map(|one| json!({ "name": one.name, "package": one.path, "image_bytes": one.image_bytes }))
            .collect();
        println!("{}", serde_json::Value::from(list));
        return;
    }
    for one in packed {
        println!("{:<20} {:>8} bytes  {}", one.name, one.image_bytes, one.path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_attacks_is_packed_only_when_that_is_asked_for() {
        let repository = Repository::find().expect("tests run inside the repository");
        let programs = crate::programs::Programs::find(&repository);
        let attacker = programs.all().find(|program| program.unsafe_for_tests).expect("the suite has one");
        let refused = package(&repository, &attacker.name, None).expect_err("nobody has asked for it").to_string();
        assert!(refused.contains("pass --allow-unsafe-tests to build it"), "{refused}");
    }
}
