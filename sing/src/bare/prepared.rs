//! A bare machine as requested, with everything it needs built.
//!
//! Deliberately not here: starting it (`guest`, `debug`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::bare::boot;
use crate::bare::disk::{Disk, DiskLock};
use crate::bare::kernel::{self, Variant};
use crate::bare::qemu::{self, Hardware, Kind, Network};
use crate::bare::recording::{self, Recording};
use crate::bare::{acceleration, terminal};
use crate::command_line::{Acceleration, Pages, RunArguments};
use crate::failure::{Failure, Outcome};
use crate::folder::{self, Folder};
use crate::repository::Repository;
use crate::site;
use crate::systems::{self, Platform};
use crate::tap;

/// Default memory, in MiB.
const MEBIBYTES: u32 = 256;
/// Memory added per host folder: its driver, with its response blocks.
const FOLDER_MEBIBYTES: u32 = 8;
/// Minimum memory beside the boot image and the space in which its programs are mapped: the kernel's initial memory,
/// its code and its tables. More processors take more, which the kernel reports.
const KERNEL_MEBIBYTES: u32 = 22;
/// Maximum processors by default; more only on request.
const PROCESSORS_MAX: usize = 4;

/// A machine that can start.
pub struct Prepared {
    /// The machine.
    pub hardware: Hardware,
    /// The recording of its run, if there is one.
    pub recording: Option<Recording>,
    /// The system image, as built.
    pub system: PathBuf,
    /// The machine's boot image; deleted on drop.
    _boot_image: NamedTempFile,
    _disks: Vec<DiskLock>,
}

/// Whether keyboard input goes to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// The machine's console is this program's terminal, or its standard streams in general.
    AtConsole,
    /// The machine's console is output only.
    Elsewhere,
}

impl Prepared {
    /// Builds what the machine needs.
    ///
    /// # Errors
    /// The system does not build, or the host cannot provide the machine.
    pub fn new(
        repository: &Repository,
        kind: Kind,
        arguments: &RunArguments,
        disks: &[PathBuf],
        person: Person,
    ) -> Outcome<Prepared> {
        let given = boot::parameters(&arguments.parameter)?;
        let kvm = acceleration::uses_kvm(arguments.accel.unwrap_or(Acceleration::Auto))?;
        qemu::find()?;
        let folders = folders(arguments)?;
        let disks: Vec<Disk> = disks.iter().map(|disk| Disk::parse(disk)).collect();
        let locks = disks.iter().map(Disk::lock).collect::<Outcome<_>>()?;
        let system = arguments.system.as_deref().unwrap_or(Path::new(systems::BARE));
        let manifest = repository.system_manifest(system)?;
        let ready = systems::current(repository, &manifest, Platform::Bare, arguments.unsafe_tests())?;
        let variant = if arguments.record.is_some() { Variant::Recording } else { Variant::Standard };
        let for_recording = if variant == Variant::Recording { recording::MEBIBYTES } else { 0 };
        let usual = MEBIBYTES + FOLDER_MEBIBYTES * folders.len() as u32 + for_recording;
        let mebibytes = arguments.mem.map_or(usual, |size| size.mebibytes);
        let mut offered = match person {
            Person::AtConsole => terminal::parameters(),
            Person::Elsewhere => vec![("terminal", "none".into())],
        };
        offered.extend(arguments.commands.iter().map(|commands| ("commands", commands.clone())));
        let boot_image = NamedTempFile::new().map_err(cannot_write)?;
        if variant == Variant::Recording {
            kernel::build_recording(repository)?;
        }
        let boot_bytes = boot::image(repository, (&ready.image, variant), &given, &offered)?;
        refuse_too_little(mebibytes, boot_bytes.len(), for_recording)?;
        std::fs::write(&boot_image, boot_bytes).map_err(cannot_write)?;
        let recording =
            arguments.record.as_deref().map(|path| Recording::new(repository, path, mebibytes)).transpose()?;
        let hardware = Hardware {
            kind,
            processors: arguments.processors.unwrap_or_else(processors),
            mebibytes,
            kvm,
            disks,
            folders,
            network: network(arguments)?,
            memory_path: recording.as_ref().map(Recording::memory_path),
            kernel: variant.stripped(repository),
            boot_image: boot_image.path().into(),
            more: more_words(arguments),
        };
        hardware.refuse_too_many_devices()?;
        Ok(Prepared { hardware, recording, system: ready.image, _boot_image: boot_image, _disks: locks })
    }
}

/// Returns the machine's host folders.
///
/// # Errors
/// One is not a folder, or QEMU cannot serve it as requested.
pub fn folders(arguments: &RunArguments) -> Outcome<Vec<Folder>> {
    let folders = folder::read_all(&arguments.folder)?;
    match folders.iter().find(|folder| folder.follows_links) {
        None => Ok(folders),
        Some(folder) => {
            Err(Failure::new(format!("QEMU does not follow links that lead out of {}", folder.path.display()))
                .remedy("remove `:follow`, or remove --machine"))
        }
    }
}

/// Refuses less memory than a machine with this boot image needs to start.
fn refuse_too_little(mebibytes: u32, boot_image_bytes: usize, for_recording: u32) -> Outcome<()> {
    let image_mebibytes = u32::try_from(boot_image_bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
    let least = image_mebibytes.saturating_mul(2).saturating_add(KERNEL_MEBIBYTES + for_recording);
    if mebibytes >= least {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{mebibytes} MiB of memory are not enough: the system image alone takes {image_mebibytes} MiB"
    ))
    .remedy(format!("use at least `--mem {least}M`")))
}

fn cannot_write(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot write the boot image: {error}")).remedy("check that the disk is not full")
}

fn network(arguments: &RunArguments) -> Outcome<Option<Network>> {
    Ok(match (&arguments.tap, arguments.port) {
        (Some(name), _) => Some(Network::Tap(tap::existing(name)?.into())),
        (None, Some(port)) => Some(site::forwarded(arguments, port)?),
        (None, None) => arguments.net.then_some(Network::User),
    })
}

/// Returns the host's processor count, up to the default maximum.
fn processors() -> u16 {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(PROCESSORS_MAX) as u16)
}

/// Returns further QEMU arguments. The kernel reads its command line before the boot image, because page tables come
/// first.
fn more_words(arguments: &RunArguments) -> Vec<OsString> {
    let pages: &[&str] = if arguments.pages == Some(Pages::Small) { &["-append", "pages=4k"] } else { &[] };
    pages.iter().map(OsString::from).chain(arguments.qemu.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_refused_with_what_would_do() {
        let refused = refuse_too_little(4, 12_169_211, 0).expect_err("the image is larger").to_string();
        assert_eq!(
            refused,
            "4 MiB of memory are not enough: the system image alone takes 12 MiB; use at least `--mem 46M`."
        );
        assert_eq!(refuse_too_little(46, 12_169_211, 0), Ok(()));
        refuse_too_little(46, 12_169_211, recording::MEBIBYTES).expect_err("a recording needs more");
    }
}
