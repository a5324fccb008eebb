//! Bare machines in QEMU: started through the tool, as users do, or with a test's own boot image.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use boot_image::BootImage;
use tempfile::TempDir;

use crate::run::{BUILD_LIMIT, Run, finish};
use crate::tool::{repository, sing, target};

/// Timeout for a run on a busy host, when nothing is built.
const LIMIT: Duration = Duration::from_secs(90);
/// QEMU device to which the machine writes its debug text and finally its exit status.
const DEBUG_PORT: &str = "isa-debugcon,iobase=0xe9,chardev=debug";
const EXIT_PORT: &str = "isa-debug-exit,iobase=0x501,iosize=0x04";

/// Kinds of machine, as named by the tool.
pub const KINDS: [&str; 2] = ["microvm", "qemu"];

/// A bare machine started by the tool.
#[derive(Debug, Clone)]
pub struct BareMachine {
    words: Vec<String>,
}

impl BareMachine {
    /// A machine of one of the [`KINDS`].
    pub fn new(kind: &str) -> BareMachine {
        BareMachine { words: vec!["run".into(), "--machine".into(), kind.into()] }
    }

    /// Adds options of `sing run`.
    pub fn with(mut self, words: &[&str]) -> BareMachine {
        self.words.extend(words.iter().map(|word| word.to_string()));
        self
    }

    /// Runs shell commands in it.
    #[track_caller]
    pub fn run(&self, commands: &str) -> Run {
        finish(self.command(Some(commands)), commands, BUILD_LIMIT)
    }

    /// Returns the command that starts the machine; without shell commands, for interactive use.
    pub fn command(&self, commands: Option<&str>) -> Command {
        bare_system();
        let mut command = Command::new(sing());
        command.args(&self.words).current_dir(repository());
        if let Some(commands) = commands {
            command.args(["-c", commands]);
        }
        command
    }
}

/// Builds the bare system and its kernel, and returns the path of its system image.
pub fn bare_system() -> PathBuf {
    static PREPARED: OnceLock<()> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let output = Command::new(sing())
            .args(["run", "--machine", "microvm", "-c", "true"])
            .current_dir(repository())
            .output()
            .expect("the tool starts");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`sing run --machine microvm -c true` ended with {}:\n{words}", output.status);
    });
    target().join("sing/systems/bare.system")
}

/// Builds the kernel of bare machines and returns its path.
pub fn bare_kernel() -> PathBuf {
    bare_system();
    target().join("sing/bare/kernel")
}

/// Makes a boot image that runs shell commands in a system.
pub fn boot_image(system: &[u8], commands: &str) -> Vec<u8> {
    let parameters = [("commands".to_string(), commands.to_string())];
    BootImage::encode(&parameters, system, &[(0x10_0000, "a symbol".to_string())])
}

/// Starts a small machine with the kernel and this boot image, bypassing the tool.
#[track_caller]
pub fn boot_kernel(boot_image: &[u8], mebibytes: u32) -> Run {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("boot-image");
    std::fs::write(&path, boot_image).expect("a file can be written");
    let mut qemu = qemu(&folder, mebibytes);
    qemu.args(["-M", "microvm,x-option-roms=off,pit=on,pic=on,rtc=on,isa-serial=on,acpi=on", "-bios", "qboot.rom"]);
    qemu.arg("-kernel").arg(bare_kernel()).arg("-initrd").arg(path);
    ended(qemu, &folder, "a boot image")
}

/// Starts a PC whose firmware boots from an optical disc; without `firmware`, QEMU's BIOS.
#[track_caller]
pub fn boot_disc(disc: &Path, firmware: Option<&Path>) -> Run {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut qemu = qemu(&folder, 256);
    qemu.args(["-M", "q35"]);
    if let Some(firmware) = firmware {
        qemu.arg("-bios").arg(firmware);
    }
    qemu.arg("-drive").arg(format!("if=none,id=disc,format=raw,readonly=on,file={}", disc.display()));
    qemu.args(["-device", "ide-cd,drive=disc,bootindex=0"]);
    ended(qemu, &folder, "an optical disc")
}

fn qemu(folder: &TempDir, mebibytes: u32) -> Command {
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-accel", "tcg", "-cpu", "max"]);
    qemu.args(["-smp", "2", "-m", &format!("{mebibytes}M"), "-serial", "stdio"]);
    qemu.arg("-chardev").arg(format!("file,id=debug,path={}", debug_file(folder).display()));
    qemu.args(["-device", DEBUG_PORT, "-device", EXIT_PORT]);
    qemu
}

fn debug_file(folder: &TempDir) -> PathBuf {
    folder.path().join("debug")
}

/// Runs QEMU until it exits: standard error is the machine's debug text, and the exit status is its own.
#[track_caller]
fn ended(qemu: Command, folder: &TempDir, asked: &str) -> Run {
    let mut run = finish(qemu, asked, LIMIT);
    let mut debug = std::fs::read(debug_file(folder)).unwrap_or_default();
    assert_eq!(run.status, Some(33), "the machine has not ended by itself, but said {debug:?}:\n{run}");
    run.status = debug.pop().map(i32::from);
    run.errors.push_str(&String::from_utf8_lossy(&debug));
    run
}
