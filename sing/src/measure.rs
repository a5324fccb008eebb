//! `sing measure`: expected measurement of a system started from here.
//!
//! Deliberately not here: measuring a running system, which its kernel does.

use std::path::Path;

use elf::ElfBytes;
use elf::abi::{PF_W, PT_LOAD};
use elf::endian::LittleEndian;
use manifest_model::Digest;
use package_check::{sha256, sha256_of};

use crate::builder::UnsafeTests;
use crate::command_line::{MachineName, MeasureArguments};
use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::repository::Repository;
use crate::systems::{self, Platform};

/// Prints the measurements of a kernel and of a system, built if necessary.
///
/// # Errors
/// They do not build or cannot be read.
pub fn print(repository: &Repository, arguments: &MeasureArguments) -> Outcome<u8> {
    let (platform, default) = match arguments.machine {
        MachineName::Hosted => (Platform::Hosted, systems::HOSTED),
        MachineName::Qemu | MachineName::Microvm => (Platform::Bare, systems::BARE),
    };
    let system = arguments.system.as_deref().unwrap_or(Path::new(default));
    let manifest = repository.system_manifest(system)?;
    let ready = systems::current(repository, &manifest, platform, UnsafeTests::Refused)?;
    let read = |path: &Path| std::fs::read(path).map_err(|error| Failure::file("read", path, &error));
    let machine = read(&ready.machine)?;
    let kernel = match platform {
        Platform::Hosted | Platform::Simulated => Some(sha256(&machine)),
        Platform::Bare => of_bare_kernel(&machine),
    };
    let kernel = kernel.ok_or_else(|| {
        Failure::new(format!("{} is not a kernel", ready.machine.display())).remedy("delete it and rebuild")
    })?;
    let image = read(&ready.image)?;
    let image = package_check::verify_system(&image)
        .map_err(|error| Failure::new(format!("{}: {error}", ready.image.display())))?;
    println!("kernel  {}", hexadecimal(&kernel));
    println!("system  {}", hexadecimal(&image.measurement));
    Ok(0)
}

/// Measures the loaded read-only segments, concatenated.
fn of_bare_kernel(bytes: &[u8]) -> Option<Digest> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
    let constant = file.segments()?.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_W == 0);
    let pieces: Option<Vec<&[u8]>> = constant.map(|segment| file.segment_data(&segment).ok()).collect();
    let pieces = pieces.filter(|pieces| !pieces.is_empty())?;
    Some(sha256_of(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_measured_without_what_it_writes() {
        // This test program is an ELF file with segments of every kind.
        let mut bytes =
            std::fs::read(std::env::current_exe().expect("this program has a path")).expect("it can be read");
        let before = of_bare_kernel(&bytes).expect("an ELF program");
        let file = ElfBytes::<LittleEndian>::minimal_parse(&bytes).expect("an ELF program");
        let all: Vec<_> = file.segments().expect("segments").iter().filter(|one| one.p_type == PT_LOAD).collect();
        let place = |written: bool| {
            let found = all.iter().find(|one| (one.p_flags & PF_W != 0) == written && one.p_filesz > 100);
            found.map(|one| one.p_offset as usize + one.p_filesz as usize - 1).expect("there is one")
        };
        let (data, code) = (place(true), place(false));
        bytes[data] ^= 1;
        assert_eq!(of_bare_kernel(&bytes), Some(before));
        bytes[code] ^= 1;
        assert_ne!(of_bare_kernel(&bytes), Some(before));
        assert_eq!(of_bare_kernel(b"no program"), None);
    }
}
