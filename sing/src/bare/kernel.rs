//! The kernel of a bare machine: built, read for its symbols, and stripped. There are two: the standard one, and one that
//! records.
//!
//! Deliberately not here: its address layout; see its linker script.

use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::endian::LittleEndian;

use crate::bare::symbols;
use crate::build_lock;
use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_if_changed};

/// Maximum size of the standard kernel's image without symbols.
const BYTES_MAX: usize = 1 << 20;
const PACKAGE: &str = "boot-x86-64";
const PROGRAM: &str = "singularity-x86_64";
/// Code runs at its link address; frame pointers make back traces possible.
/// Digests of processors without instructions for them are loops instead of unrolled, which are 20 KiB more.
const FLAGS: [&str; 3] =
    ["-Crelocation-model=static", "-Cforce-frame-pointers=yes", "--cfg=sha2_backend_soft=\"compact\""];
/// Offsets of the section header fields in an ELF header.
const SECTION_HEADERS_AT: usize = 40;
const SECTION_COUNT_AT: usize = 60;

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// What every machine starts.
    Standard,
    /// The same with what a recording takes, for the run that is recorded.
    Recording,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Standard => "bare/kernel",
            Variant::Recording => "bare/kernel-recording",
        }
    }

    /// Path of the kernel that machines start: without symbols.
    pub fn stripped(self, repository: &Repository) -> PathBuf {
        repository.output(self.name())
    }

    /// Path of the kernel that debuggers read.
    pub fn with_symbols(self, repository: &Repository) -> PathBuf {
        repository.output(&format!("{}.debug", self.name()))
    }
}

/// Path of the standard kernel without symbols.
pub fn stripped(repository: &Repository) -> PathBuf {
    Variant::Standard.stripped(repository)
}

/// Path of the standard kernel with symbols.
pub fn with_symbols(repository: &Repository) -> PathBuf {
    Variant::Standard.with_symbols(repository)
}

/// Builds the kernel. The caller has the [`build_lock`].
///
/// # Errors
/// It does not build, or cannot be stripped.
pub fn build(repository: &Repository) -> Outcome<()> {
    build_with(repository, &[], &[])
}

/// Builds the kernel that records, with other builds locked out: cargo puts all variants in one place, from which this one
/// is then copied.
///
/// # Errors
/// As for [`build`].
pub fn build_recording(repository: &Repository) -> Outcome<()> {
    let _lock = build_lock::lock(repository)?;
    build_variant(repository, Variant::Recording, &["recording"], &[])
}

/// Builds the kernel with further features and flags for rustc, for a measurement.
///
/// # Errors
/// As for [`build`].
pub fn build_with(repository: &Repository, features: &[&str], flags: &[&str]) -> Outcome<()> {
    build_variant(repository, Variant::Standard, features, flags)
}

fn build_variant(repository: &Repository, variant: Variant, features: &[&str], flags: &[&str]) -> Outcome<()> {
    let mut command = cargo::command(repository);
    let features = [&["image"], features].concat().join(",");
    // The target is given, though it is the host's own, so that the flags do not apply to build scripts.
    command.args(["build", "--release", "--features", &features, "--package", PACKAGE, "--bin", PROGRAM]);
    command.args(["--target", cargo::TARGET, "--manifest-path"]).arg(repository.base().join("Cargo.toml"));
    command.arg("--target-dir").arg(repository.cargo_target());
    let is_limited = flags.is_empty() && variant == Variant::Standard;
    let mut flags: Vec<String> = FLAGS.iter().chain(flags).map(ToString::to_string).collect();
    flags.push(format!("--remap-path-prefix={}/=", repository.base().display()));
    flags.push(format!("--remap-path-prefix={}=cargo", cargo::home().display()));
    command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let made = cargo::build(command, "the bare machine's kernel", 40)?;
    let whole = made.get(PROGRAM).ok_or_else(|| Failure::new(format!("cargo produced no program {PROGRAM}")))?;
    let bytes = std::fs::read(whole).map_err(|error| Failure::file("read", whole, &error))?;
    let small = strip(&bytes).ok_or_else(|| not_a_kernel(whole))?;
    if small.len() > BYTES_MAX && is_limited {
        eprintln!(
            "sing: the kernel has {} KiB without symbols, which exceeds the limit of {} KiB",
            small.len() >> 10,
            BYTES_MAX >> 10
        );
    }
    // Both are copied here, so that a manual build with other flags does not interfere.
    write_if_changed(&variant.with_symbols(repository), &bytes)?;
    write_if_changed(&variant.stripped(repository), &small)
}

fn not_a_kernel(path: &Path) -> Failure {
    Failure::new(format!("{} is not an ELF executable for this architecture", path.display()))
        .remedy("delete it and rebuild")
}

/// Returns the file up to the end of its segments, without the section headers and the sections that only they locate.
fn strip(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
    let headers = file.segments()?;
    let headers_end = file.ehdr.e_phoff + u64::from(file.ehdr.e_phnum) * u64::from(file.ehdr.e_phentsize);
    let end = headers.iter().map(|segment| segment.p_offset.saturating_add(segment.p_filesz)).max()?.max(headers_end);
    let mut small = bytes.get(..usize::try_from(end).ok()?)?.to_vec();
    small.get_mut(SECTION_HEADERS_AT..SECTION_HEADERS_AT + 8)?.fill(0);
    small.get_mut(SECTION_COUNT_AT..SECTION_COUNT_AT + 4)?.fill(0);
    Some(small)
}

/// Returns addresses and names of the kernel's functions, for [`boot_image::BootImage::encode`].
///
/// # Errors
/// The kernel cannot be read.
pub fn symbols(repository: &Repository, variant: Variant) -> Outcome<Vec<(u64, String)>> {
    let (path, bytes) = read_with_symbols(repository, variant)?;
    symbols::functions(&bytes).ok_or_else(|| not_a_kernel(&path))
}

/// Returns the address of a variable of the kernel.
///
/// # Errors
/// The kernel cannot be read, or has no such variable.
pub fn address_of(repository: &Repository, variant: Variant, name: &str) -> Outcome<u64> {
    let (path, bytes) = read_with_symbols(repository, variant)?;
    symbols::address_of(&bytes, name).ok_or_else(|| not_a_kernel(&path))
}

fn read_with_symbols(repository: &Repository, variant: Variant) -> Outcome<(PathBuf, Vec<u8>)> {
    let path = variant.with_symbols(repository);
    let bytes = std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
    Ok((path, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test program is an ELF file with symbols.
    fn sample() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("this program has a path")).expect("and can be read")
    }

    #[test]
    fn a_stripped_program_keeps_its_segments_and_has_no_sections() {
        let bytes = sample();
        let small = strip(&bytes).expect("an ELF program");
        assert!(small.len() < bytes.len());
        let file = ElfBytes::<LittleEndian>::minimal_parse(&small).expect("still an ELF program");
        let whole = ElfBytes::<LittleEndian>::minimal_parse(&bytes).expect("an ELF program");
        let segments =
            |file: &ElfBytes<'_, LittleEndian>| file.segments().expect("segments").iter().collect::<Vec<_>>();
        assert_eq!(segments(&file), segments(&whole));
        assert!(file.section_headers().is_none() && symbols::functions(&small).is_none());
    }

    #[test]
    fn other_files_are_no_kernels() {
        assert_eq!((strip(b""), strip(b"\x7fELF")), (None, None));
    }
}
