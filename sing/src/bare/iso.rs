//! `sing image`: a system as an image that firmware boots, from an optical disc or a memory stick, by way of
//! the boot loader GRUB.
//!
//! Deliberately not here: the boot loader; the host's `grub-mkrescue` puts it in, for BIOS and for UEFI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bare::boot;
use crate::bare::kernel::Variant;
use crate::builder::UnsafeTests;
use crate::command_line::{ImageArguments, ImageFormat};
use crate::failure::{Failure, Outcome};
use crate::host_tools::{self, Tool};
use crate::repository::Repository;
use crate::systems::{self, Platform, Ready};

/// GRUB's folders for each kind of firmware.
const FIRMWARE_FOLDERS: [&str; 2] = ["i386-pc", "x86_64-efi"];
const GRUB_FOLDERS: [&str; 2] = ["/usr/lib/grub", "/usr/share/grub"];
/// GRUB modules that the menu uses, and those for each partition table that GRUB probes for; all modules would triple
/// the size of the image.
const MODULES: &str = "multiboot2 normal echo iso9660 serial terminal configfile search search_fs_file part_acorn part_amiga \
                       part_apple part_bsd part_dfly part_dvh part_gpt part_msdos part_plan part_sun part_sunpc";

/// The menu: one entry, which starts at once, shown on the screen and on the first serial line. What is shown last
/// stays on the screen, which the system does not use.
const MENU: &str = "\
set timeout=0
set gfxpayload=text
serial --unit=0 --speed=115200
terminal_input console serial
terminal_output console serial
menuentry \"Singularity\" {
    terminal_output console
    echo \"Singularity starts. Its console is the first serial line (COM1, 115200 baud), not this screen.\"
    multiboot2 /boot/kernel
    module2 /boot/system
}
";

/// `sing image`.
///
/// # Errors
/// The system does not build, a program of the host is missing, or the image cannot be written.
pub fn write(repository: &Repository, arguments: &ImageArguments) -> Outcome<u8> {
    let ImageFormat::Iso = arguments.format;
    let given = boot::parameters(&arguments.parameter)?;
    let maker = require_grub()?;
    let manifest = repository.system_manifest(&arguments.system)?;
    let ready = systems::current(repository, &manifest, Platform::Bare, UnsafeTests::Refused)?;
    let boot_image = boot::image(repository, (&ready.image, Variant::Standard), &given, &offered(arguments))?;
    make(&maker, &ready, &boot_image, &arguments.output)?;
    println!("{}", arguments.output.display());
    Ok(0)
}

/// Boot parameters. The type of the terminal at the serial line is unknown, so only common sequences are used.
fn offered(arguments: &ImageArguments) -> Vec<(&'static str, String)> {
    match &arguments.commands {
        Some(commands) => vec![("commands", commands.clone()), ("terminal", "none".into())],
        None => {
            [("terminal", "vt100"), ("columns", "80"), ("rows", "24")].map(|(name, value)| (name, value.into())).into()
        }
    }
}

/// Finds the program that builds images, with its dependencies.
fn require_grub() -> Outcome<PathBuf> {
    // Fedora and its derivatives use another name.
    let maker = match host_tools::find("grub2-mkrescue") {
        Some(maker) => maker,
        None => host_tools::require(&Tool::GRUB)?,
    };
    host_tools::require(&Tool::XORRISO)?;
    host_tools::require(&Tool::MTOOLS)?;
    let has =
        |kind: &str| GRUB_FOLDERS.iter().any(|folder| Path::new(folder).join(kind).join("multiboot2.mod").is_file());
    if !FIRMWARE_FOLDERS.iter().all(|kind| has(kind)) {
        host_tools::install(&Tool::GRUB);
    }
    match FIRMWARE_FOLDERS.iter().find(|kind| !has(kind)) {
        None => Ok(maker),
        Some(kind) => Err(Failure::new(format!("GRUB's part for the firmware {kind} is not installed"))
            .remedy(host_tools::remedy(&Tool::GRUB))),
    }
}

fn make(maker: &Path, ready: &Ready, boot_image: &[u8], output: &Path) -> Outcome<()> {
    let cannot = |error: std::io::Error| Failure::file("write", output, &error);
    let folder = tempfile::Builder::new().prefix("sing-image-").tempdir().map_err(cannot)?;
    let content = folder.path().join("content");
    let boot = content.join("boot");
    std::fs::create_dir_all(boot.join("grub")).map_err(cannot)?;
    std::fs::write(boot.join("grub/grub.cfg"), MENU).map_err(cannot)?;
    std::fs::write(boot.join("system"), boot_image).map_err(cannot)?;
    std::fs::copy(&ready.machine, boot.join("kernel")).map_err(cannot)?;
    let whole = folder.path().join("image.iso");
    let run = Command::new(maker)
        .arg(format!("--install-modules={MODULES}"))
        .args(["--locales=", "--fonts=", "--themes=", "-o"])
        .args([&whole, &content])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::file("start", maker, &error))?;
    if !run.status.success() {
        return Err(Failure::new(format!("{} failed to create the image", maker.display()))
            .details(String::from_utf8_lossy(&run.stderr))
            .remedy("see its output above"));
    }
    // The output may be on another disk, where a rename fails.
    std::fs::copy(&whole, output).map(drop).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grub_finds_each_part_that_it_looks_for() {
        let has = |part: &str| MODULES.split_whitespace().any(|module| module == part);
        for folder in GRUB_FOLDERS.iter().flat_map(|folder| FIRMWARE_FOLDERS.map(|kind| Path::new(folder).join(kind))) {
            // Hosts without GRUB have no list.
            let list = std::fs::read_to_string(folder.join("partmap.lst")).unwrap_or_default();
            assert_eq!(list.lines().find(|part| !has(part)), None, "{}", folder.display());
        }
        for command in ["echo", "serial", "multiboot2"] {
            assert!(MENU.contains(command) && has(command), "{command}");
        }
    }

    #[test]
    fn a_script_gets_a_stream_and_a_person_a_terminal() {
        let arguments = |commands: Option<&str>| ImageArguments {
            output: "x.iso".into(),
            system: "bare".into(),
            format: ImageFormat::Iso,
            commands: commands.map(String::from),
            parameter: Vec::new(),
        };
        let script = offered(&arguments(Some("ls")));
        assert!(script.contains(&("commands", "ls".into())) && script.contains(&("terminal", "none".into())));
        assert!(offered(&arguments(None)).contains(&("terminal", "vt100".into())));
    }
}
