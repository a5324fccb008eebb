//! One program of the repository, `cat`, built in both ways from one source: natively and as WebAssembly.

use package::Package;
use sing::build;
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;

use super::disk::{LARGE_BYTES, LARGE_FILE, SMALL_FILE};
use super::machine::Machines;
use crate::bench::table::{Figures, figures};

/// The programs, natively and as WebAssembly.
pub const PROGRAMS: [&str; 2] = ["cat", "wasm-cat"];
/// Starts with the small file, and turns with the large one.
const COUNTS: [u32; 2] = [501, 7];

/// Measures both with a small and a large file.
///
/// # Errors
/// A machine fails, or a program does not print what is in the file.
pub fn turn(machines: &Machines) -> Outcome<Figures> {
    let files = [("small", SMALL_FILE), ("large", LARGE_FILE)];
    let commands = files.iter().zip(COUNTS).flat_map(|((size, file), count)| {
        PROGRAMS.map(|program| {
            format!("bench-wasm --name {program}_{size} --count {count} --folder /fs/disk0 start {program} {file}")
        })
    });
    let all = figures(&machines.compute(&commands.collect::<Vec<_>>().join("; "))?);
    for program in PROGRAMS {
        if all.get(&format!("{program}_large_bytes")) != Some(&(LARGE_BYTES as u64)) {
            return Err(Failure::new(format!("`{program}` did not print all of {LARGE_FILE}")));
        }
    }
    Ok(all)
}

/// Bytes of package and image of both.
///
/// # Errors
/// One cannot be built, or is not in the system.
pub fn sizes(repository: &Repository, machines: &Machines) -> Outcome<Figures> {
    let image = machines.image();
    let bytes = std::fs::read(image).map_err(|error| Failure::file("read", image, &error))?;
    let system = package_check::verify_system(&bytes)
        .map_err(|error| Failure::new(format!("{} is not a system image: {error}", image.display())))?;
    let mut all = Figures::new();
    for name in PROGRAMS {
        let mut packages = system.packages.iter().filter_map(|bytes| Package::parse(bytes).ok());
        let found = packages.find(|package| package.manifest.name == name);
        let found = found.ok_or_else(|| Failure::new(format!("the system of the benchmark lacks `{name}`")))?;
        all.insert(format!("{name}_image"), found.image_bytes.len() as u64);
        all.insert(format!("{name}_package"), build::package(repository, name, None)?.len() as u64);
    }
    Ok(all)
}
