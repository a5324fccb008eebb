//! QEMU's command line for the machines that the system knows: `microvm`, whose devices are at fixed
//! addresses, and `q35`, a PC with PCI.
//!
//! Deliberately not here: running it, and what the machine does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::bare::boot::Disk;
use crate::failure::{Failure, Outcome};
use crate::host_tools::{self, Tool};

/// The kinds of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Few devices, no PCI; starts fastest.
    Microvm,
    /// A PC with PCI Express.
    Q35,
}

/// What a machine is started from.
#[derive(Debug, Clone)]
pub enum Start {
    /// QEMU loads the kernel and the boot image itself.
    Kernel {
        /// The kernel, without symbols.
        kernel: PathBuf,
        /// The boot image.
        boot_image: PathBuf,
    },
    /// The firmware boots from a disk that can be removed.
    Iso {
        /// Image of the disk.
        image: PathBuf,
        /// Image of the firmware; QEMU's own BIOS when not given.
        firmware: Option<PathBuf>,
    },
}

/// A machine to be started.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// Its kind.
    pub kind: Kind,
    /// Its processors.
    pub processors: u16,
    /// Its memory.
    pub mebibytes: u32,
    /// Whether the host's processor executes its instructions.
    pub kvm: bool,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// Whether it has a network card.
    pub network: bool,
    /// What it starts from.
    pub start: Start,
    /// Further arguments for QEMU.
    pub more: Vec<OsString>,
}

/// Where QEMU is, after an attempt to install it.
///
/// # Errors
/// It is not there; the failure says what to type.
pub fn find() -> Outcome<PathBuf> {
    host_tools::require(&Tool::QEMU)
}

impl Hardware {
    /// QEMU's arguments. Console and debug text go to the two sockets.
    ///
    /// # Errors
    /// A path cannot be written as an argument.
    pub fn arguments(&self, console: &Path, debug: &Path) -> Outcome<Vec<OsString>> {
        let mut words = Words::default();
        words.add("-nodefaults -no-user-config -no-reboot -display none");
        match self.kind {
            Kind::Microvm => {
                words.add("-M microvm,x-option-roms=off,pit=on,pic=on,rtc=on,isa-serial=on,acpi=on");
                // The small firmware starts in half the time of the other one.
                words.add("-bios qboot.rom -global virtio-mmio.force-legacy=false");
            }
            Kind::Q35 => words.add("-M q35"),
        }
        words.add(if self.kvm { "-accel kvm -cpu host" } else { "-accel tcg -cpu max" });
        words.add(&format!("-smp {} -m {}M", self.processors, self.mebibytes));
        words.with_file("-chardev", "socket,id=console,path=", console, "")?;
        words.with_file("-chardev", "socket,id=debug,path=", debug, "")?;
        words.add("-serial chardev:console -device isa-debugcon,iobase=0xe9,chardev=debug");
        words.add("-device isa-debug-exit,iobase=0x501,iosize=0x04");
        self.add_start(&mut words)?;
        self.add_devices(&mut words)?;
        words.0.extend_from_slice(&self.more);
        Ok(words.0)
    }

    fn add_start(&self, words: &mut Words) -> Outcome<()> {
        match &self.start {
            Start::Kernel { kernel, boot_image } => {
                words.0.extend(["-kernel".into(), kernel.into()]);
                // QEMU reads several modules from this argument, with commas between them.
                words.with_file("-initrd", "", boot_image, "")
            }
            Start::Iso { image, firmware } => {
                if let Some(firmware) = firmware {
                    words.0.extend(["-bios".into(), firmware.into()]);
                }
                words.with_file("-drive", "if=none,id=boot,format=raw,readonly=on,file=", image, "")?;
                words.add("-device ide-cd,drive=boot,bootindex=0");
                Ok(())
            }
        }
    }

    fn add_devices(&self, words: &mut Words) -> Outcome<()> {
        let bus = match self.kind {
            Kind::Microvm => "device",
            Kind::Q35 => "pci",
        };
        let modern = match self.kind {
            Kind::Microvm => "",
            Kind::Q35 => ",disable-legacy=on",
        };
        for (number, disk) in self.disks.iter().enumerate() {
            let access = if disk.read_only { ",readonly=on" } else { "" };
            words.with_file("-drive", &format!("if=none,id=disk{number},format=raw,file="), &disk.path, access)?;
            words.add(&format!("-device virtio-blk-{bus},drive=disk{number}{modern}"));
        }
        words.add(&format!("-device virtio-rng-{bus}{modern}"));
        if self.network {
            words.add(&format!("-netdev user,id=net0 -device virtio-net-{bus},netdev=net0{modern}"));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(OsString::from));
    }

    /// An option whose value has a path in it.
    fn with_file(&mut self, option: &str, before: &str, path: &Path, after: &str) -> Outcome<()> {
        self.0.push(option.into());
        self.0.push(with_path(before, path, after)?);
        Ok(())
    }
}

/// A value with a path in it, whose commas are doubled, as QEMU wants it.
///
/// # Errors
/// The path is not text.
pub fn with_path(before: &str, path: &Path, after: &str) -> Outcome<OsString> {
    let text = path.to_str().ok_or_else(|| {
        Failure::new(format!("the path {} is not text", path.display())).remedy("give the file another name")
    })?;
    Ok(format!("{before}{}{after}", text.replace(',', ",,")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: Kind, network: bool) -> String {
        let hardware = Hardware {
            kind,
            processors: 3,
            mebibytes: 64,
            kvm: false,
            disks: vec![
                Disk { path: "a,b.img".into(), read_only: true },
                Disk { path: "c.img".into(), read_only: false },
            ],
            network,
            start: Start::Kernel { kernel: "k".into(), boot_image: "b".into() },
            more: vec!["-s".into()],
        };
        let words = hardware.arguments(Path::new("/t/console"), Path::new("/t/debug")).expect("plain paths");
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn disks_are_in_order_and_commas_in_their_names_are_doubled() {
        let line = line(Kind::Q35, false);
        assert!(line.contains("-drive if=none,id=disk0,format=raw,file=a,,b.img,readonly=on -device virtio-blk-pci,drive=disk0,disable-legacy=on"), "{line}");
        assert!(line.contains("file=c.img -device virtio-blk-pci,drive=disk1"), "{line}");
        assert!(line.contains("-smp 3 -m 64M") && line.ends_with(" -s"), "{line}");
    }

    #[test]
    fn a_network_card_is_there_only_when_asked_for() {
        assert!(!line(Kind::Microvm, false).contains("net"));
        assert!(line(Kind::Microvm, true).contains("-device virtio-net-device,netdev=net0"));
        assert!(line(Kind::Q35, true).contains("-device virtio-net-pci,netdev=net0,disable-legacy=on"));
    }
}
