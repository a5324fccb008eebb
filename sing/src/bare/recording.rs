//! Recordings of bare machines, which QEMU makes: a folder with the kernel, the boot image, what the machine consists of, and
//! QEMU's log. Disks stay where they are; what a recorded machine writes to them is dropped.
//!
//! Deliberately not here: recordings of the hosted machine, which its kernel makes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bare::disk::Disk;
use crate::bare::guest;
use crate::bare::qemu::{self, Hardware, Kind, Mode, Network, Recording};
use crate::failure::{Failure, Outcome};

const PARTS: &str = "machine.json";
const LOG: &str = "qemu.log";
const KERNEL: &str = "kernel";
const BOOT_IMAGE: &str = "boot";
/// Exit status of a machine that restarts.
const RESTARTED: u8 = 0;

/// What a recorded machine consists of.
#[derive(Debug, Serialize, Deserialize)]
struct Parts {
    is_pc: bool,
    mebibytes: u32,
    disks: Vec<PathBuf>,
    has_network: bool,
    /// As QEMU's versions do not read each other's logs.
    qemu: String,
}

/// Makes a machine one that is recorded in a folder, which is created.
///
/// # Errors
/// QEMU cannot record such a machine, or the folder cannot be written.
pub fn begin(hardware: &mut Hardware, folder: &Path) -> Outcome<()> {
    let refused = |what: &str, remedy: &str| Err(Failure::new(what).remedy(remedy));
    if hardware.processors != 1 {
        return refused("QEMU records machines with one processor only", "add `--processors 1`");
    }
    if !hardware.folders.is_empty() {
        return refused("QEMU does not record host folders", "remove --folder, or use a disk");
    }
    if matches!(hardware.network, Some(Network::Tap(_))) {
        return refused("a recorded machine has QEMU's own network", "use --net instead of --tap");
    }
    hardware.kvm = false;
    std::fs::create_dir(folder).map_err(|error| Failure::file("create the folder", folder, &error))?;
    let copy = |from: &Path, name: &str| {
        let to = folder.join(name);
        std::fs::copy(from, &to).map(|_| to).map_err(|error| Failure::file("copy", from, &error))
    };
    hardware.kernel = copy(&hardware.kernel, KERNEL)?;
    hardware.boot_image = copy(&hardware.boot_image, BOOT_IMAGE)?;
    let whole =
        |disk: &Disk| disk.path.canonicalize().map_err(|error| Failure::file("open the disk", &disk.path, &error));
    let parts = Parts {
        is_pc: hardware.kind == Kind::Q35,
        mebibytes: hardware.mebibytes,
        disks: hardware.disks.iter().map(whole).collect::<Outcome<_>>()?,
        has_network: hardware.network.is_some(),
        qemu: version()?,
    };
    let text =
        serde_json::to_string_pretty(&parts).map_err(|error| Failure::new(format!("cannot write it: {error}")))?;
    let path = folder.join(PARTS);
    std::fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
    hardware.recording = Some(Recording { file: folder.join(LOG), mode: Mode::Record });
    Ok(())
}

/// Replays the machine recorded in a folder; `more` are further QEMU arguments.
///
/// # Errors
/// The folder is no recording, or not of this QEMU.
pub fn replay(folder: &Path, more: &[std::ffi::OsString]) -> Outcome<u8> {
    let path = folder.join(PARTS);
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    let parts: Parts = serde_json::from_str(&text).map_err(|error| {
        Failure::new(format!("{} is damaged: {error}", path.display())).remedy("record the machine again")
    })?;
    let here = version()?;
    if parts.qemu != here {
        return Err(Failure::new(format!("the recording is of {}, and this is {here}", parts.qemu))
            .remedy("replay it with the same version of QEMU"));
    }
    let file = folder.join(LOG);
    if std::fs::metadata(&file).map_or(0, |log| log.len()) == 0 {
        return Err(Failure::new(format!("{} is missing or empty", file.display())).remedy("record the machine again"));
    }
    let hardware = Hardware {
        kind: if parts.is_pc { Kind::Q35 } else { Kind::Microvm },
        processors: 1,
        mebibytes: parts.mebibytes,
        kvm: false,
        disks: parts.disks.into_iter().map(|path| Disk { path, read_only: true }).collect(),
        folders: Vec::new(),
        network: parts.has_network.then_some(Network::User),
        kernel: folder.join(KERNEL),
        boot_image: folder.join(BOOT_IMAGE),
        recording: Some(Recording { file, mode: Mode::Replay }),
        more: more.to_vec(),
    };
    match guest::run(&hardware, None)? {
        guest::End::Status(status) => Ok(status),
        guest::End::Restart => Ok(RESTARTED),
    }
}

/// The first line of `qemu-system-x86_64 --version`.
fn version() -> Outcome<String> {
    let program = qemu::find()?;
    let output = std::process::Command::new(&program).arg("--version").output();
    let output = output.map_err(|error| Failure::file("start", &program, &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().into())
}
