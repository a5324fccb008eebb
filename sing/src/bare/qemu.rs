//! QEMU command lines for the supported machines: `microvm`, whose devices are at fixed addresses, and `q35`, a PC with
//! PCI.
//!
//! Deliberately not here: running QEMU.

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use crate::bare::disk::Disk;
use crate::failure::{Failure, Outcome};
use crate::folder::Folder;
use crate::host_tools::{self, Tool};

/// Machine types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Few devices, no PCI; starts fastest.
    Microvm,
    /// A PC with PCI Express.
    Q35,
}

/// Maximum virtio devices of QEMU's microvm: 32 I/O APIC lines, less those of a PC's own devices.
pub const MAX_MICROVM_DEVICES: usize = 24;
/// Functions of a PCI device.
const FUNCTIONS: usize = 8;
/// First PCI device number for host folders; QEMU puts disks and everything else below it.
const FIRST_FOLDER_DEVICE: usize = 0x10;

/// Firmware that starts a microvm in half the time of the default.
const SMALL_FIRMWARE: &str = "qboot.rom";

/// Returns whether the small firmware is in QEMU's data folder beside its programs.
fn has_small_firmware() -> bool {
    let program = host_tools::find(Tool::QEMU.program).and_then(|program| program.canonicalize().ok());
    let prefix = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    prefix.is_some_and(|prefix| prefix.join("share/qemu").join(SMALL_FIRMWARE).is_file())
}

/// Backend of a machine's network card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// QEMU's user-mode network, from which the host's can be reached.
    User,
    /// The same, with a host port forwarded to the machine.
    Forwarded {
        /// Host address and port.
        host: SocketAddrV4,
        /// Guest port.
        guest_port: u16,
    },
    /// A TAP interface of the host.
    Tap(String),
}

impl Network {
    /// Returns the QEMU `-netdev` option.
    fn backend(&self) -> String {
        match self {
            Network::User => "user,id=net0".into(),
            Network::Forwarded { host, guest_port } => format!("user,id=net0,hostfwd=tcp:{host}-:{guest_port}"),
            Network::Tap(name) => format!("tap,id=net0,ifname={name},script=no,downscript=no"),
        }
    }
}

/// A machine's configuration.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// Machine type.
    pub kind: Kind,
    /// Number of processors.
    pub processors: u16,
    /// Memory, in MiB.
    pub mebibytes: u32,
    /// File that is its memory, if it is shared.
    pub memory_path: Option<PathBuf>,
    /// Whether KVM executes its instructions.
    pub kvm: bool,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Host folders.
    pub folders: Vec<Folder>,
    /// Network card, if any.
    pub network: Option<Network>,
    /// The kernel, without symbols.
    pub kernel: PathBuf,
    /// The boot image handed to the kernel.
    pub boot_image: PathBuf,
    /// Further QEMU arguments.
    pub more: Vec<OsString>,
}

/// Returns the path of QEMU, after trying to install it.
///
/// # Errors
/// It is missing; the failure contains the command that installs it.
pub fn find() -> Outcome<PathBuf> {
    host_tools::require(&Tool::QEMU)
}

impl Hardware {
    /// Refuses a microvm with too many devices; a PC has room for all that a system drives.
    ///
    /// # Errors
    /// There are too many; the failure names the maximum.
    pub fn refuse_too_many_devices(&self) -> Outcome<()> {
        // The entropy device is always present.
        let others = self.disks.len() + usize::from(self.network.is_some()) + 1;
        let devices = others + self.folders.len();
        if self.kind != Kind::Microvm || devices <= MAX_MICROVM_DEVICES {
            return Ok(());
        }
        let room = MAX_MICROVM_DEVICES.saturating_sub(others);
        Err(Failure::new(format!(
            "too many microvm devices: {devices}, at most {MAX_MICROVM_DEVICES}: {} folders beside \
             {others} others",
            self.folders.len()
        ))
        .remedy(format!("use at most {room} folders, or a PC with `--machine qemu`")))
    }

    /// Returns QEMU's arguments. The first two sockets carry console and debug output; the third is the control
    /// channel.
    ///
    /// # Errors
    /// A path cannot be written as an argument.
    pub fn arguments(&self, [console, debug, control]: [&Path; 3]) -> Outcome<Vec<OsString>> {
        let mut words = Words::default();
        words.add("-nodefaults -no-user-config -no-reboot -display none");
        match self.kind {
            Kind::Microvm => {
                words.add("-M microvm,x-option-roms=off,pit=on,pic=on,rtc=on,isa-serial=on,acpi=on");
                words.add("-global virtio-mmio.force-legacy=false");
                if has_small_firmware() {
                    words.add(&format!("-bios {SMALL_FIRMWARE}"));
                }
            }
            Kind::Q35 => words.add("-M q35"),
        }
        words.add(if self.kvm { "-accel kvm -cpu host" } else { "-accel tcg -cpu max" });
        words.add(&format!("-smp {} -m {}M", self.processors, self.mebibytes));
        if let Some(path) = &self.memory_path {
            let after = format!(",id=memory,size={}M,share=on", self.mebibytes);
            words.with_file("-object", "memory-backend-file,mem-path=", path, &after)?;
            words.add("-machine memory-backend=memory");
        }
        words.with_file("-chardev", "socket,id=console,path=", console, "")?;
        words.with_file("-chardev", "socket,id=debug,path=", debug, "")?;
        words.with_file("-chardev", "socket,id=control,path=", control, "")?;
        words.add("-mon chardev=control,mode=control");
        words.add("-serial chardev:console -device isa-debugcon,iobase=0xe9,chardev=debug");
        words.add("-device isa-debug-exit,iobase=0x501,iosize=0x04");
        words.0.extend(["-kernel".into(), self.kernel.clone().into()]);
        // QEMU splits this argument at commas into several modules.
        words.with_file("-initrd", "", &self.boot_image, "")?;
        self.add_devices(&mut words)?;
        words.0.extend_from_slice(&self.more);
        Ok(words.0)
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
        for (number, folder) in self.folders.iter().enumerate() {
            let access = if folder.is_read_only { ",readonly=on" } else { "" };
            // Owners and permissions are the host's; changes that the user may not make are ignored.
            let after = format!(",security_model=none,multidevs=remap{access}");
            words.with_file("-fsdev", &format!("local,id=folder{number},path="), &folder.path, &after)?;
            let name = &folder.name;
            let place = match self.kind {
                Kind::Microvm => String::new(),
                Kind::Q35 => format!(
                    ",multifunction=on,addr={:x}.{}",
                    FIRST_FOLDER_DEVICE + number / FUNCTIONS,
                    number % FUNCTIONS
                ),
            };
            words.add(&format!("-device virtio-9p-{bus},fsdev=folder{number},mount_tag={name}{modern}{place}"));
        }
        words.add(&format!("-device virtio-rng-{bus}{modern}"));
        if let Some(network) = &self.network {
            words.add(&format!("-netdev {} -device virtio-net-{bus},netdev=net0{modern}", network.backend()));
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

    /// Appends an option whose value contains a path.
    fn with_file(&mut self, option: &str, before: &str, path: &Path, after: &str) -> Outcome<()> {
        self.0.push(option.into());
        self.0.push(with_path(before, path, after)?);
        Ok(())
    }
}

/// Returns a value that contains a path, with commas doubled, as QEMU requires.
///
/// # Errors
/// The path is not UTF-8.
pub fn with_path(before: &str, path: &Path, after: &str) -> Outcome<OsString> {
    let text = path
        .to_str()
        .ok_or_else(|| Failure::new(format!("the path {} is not UTF-8", path.display())).remedy("rename the file"))?;
    Ok(format!("{before}{}{after}", text.replace(',', ",,")).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    use super::*;

    fn hardware(kind: Kind, network: Option<Network>) -> Hardware {
        Hardware {
            kind,
            processors: 3,
            mebibytes: 64,
            memory_path: None,
            kvm: false,
            disks: vec![
                Disk { path: "a,b.img".into(), read_only: true },
                Disk { path: "c.img".into(), read_only: false },
            ],
            folders: vec![Folder { name: "work".into(), path: "d,e".into(), is_read_only: true, follows_links: false }],
            network,
            kernel: "k".into(),
            boot_image: "b".into(),
            more: vec!["-s".into()],
        }
    }

    fn line(kind: Kind, network: Option<Network>) -> String {
        let words = hardware(kind, network)
            .arguments(["/t/console", "/t/debug", "/t/control"].map(Path::new))
            .expect("plain paths");
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn disks_are_in_order_and_commas_in_their_names_are_doubled() {
        let line = line(Kind::Q35, None);
        assert!(line.contains("-drive if=none,id=disk0,format=raw,file=a,,b.img,readonly=on -device virtio-blk-pci,drive=disk0,disable-legacy=on"), "{line}");
        assert!(line.contains("file=c.img -device virtio-blk-pci,drive=disk1"), "{line}");
        assert!(line.contains("-smp 3 -m 64M") && line.ends_with(" -s"), "{line}");
    }

    #[test]
    fn shared_memory_is_a_file_of_the_same_size() {
        let hardware = Hardware { memory_path: Some("/m,1".into()), ..hardware(Kind::Q35, None) };
        let words = hardware.arguments(["/t/console", "/t/debug", "/t/control"].map(Path::new)).expect("plain paths");
        let line = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let shared = "-m 64M -object memory-backend-file,mem-path=/m,,1,id=memory,size=64M,share=on -machine memory-backend=memory";
        assert!(line.contains(shared), "{line}");
    }

    #[test]
    fn folders_are_tagged_with_their_names() {
        let line = line(Kind::Microvm, None);
        assert!(line.contains("-fsdev local,id=folder0,path=d,,e,security_model=none,multidevs=remap,readonly=on -device virtio-9p-device,fsdev=folder0,mount_tag=work"), "{line}");
    }

    #[test]
    fn folders_of_a_pc_are_functions_of_a_few_devices() {
        let folder =
            |number| Folder { name: format!("f{number}"), path: "d".into(), is_read_only: false, follows_links: false };
        let hardware = Hardware { folders: (0..64).map(folder).collect(), ..hardware(Kind::Q35, None) };
        let words = hardware.arguments(["/t/console", "/t/debug", "/t/control"].map(Path::new)).expect("plain paths");
        let places: BTreeSet<&str> = words
            .iter()
            .filter_map(|word| word.to_str()?.split_once("multifunction=on,addr="))
            .map(|at| at.1)
            .collect();
        assert_eq!((places.len(), places.first(), places.last()), (64, Some(&"10.0"), Some(&"17.7")));
        hardware.refuse_too_many_devices().expect("a PC has room");
    }

    #[test]
    fn a_microvm_with_too_many_devices_is_refused() {
        let folder = Folder { name: "f".into(), path: "d".into(), is_read_only: false, follows_links: false };
        // With two disks, a card and the entropy device.
        let with =
            |count| Hardware { folders: vec![folder.clone(); count], ..hardware(Kind::Microvm, Some(Network::User)) };
        with(20).refuse_too_many_devices().expect("there is room for them");
        let refused = with(21).refuse_too_many_devices().expect_err("too many").to_string();
        assert!(refused.contains("at most 24") && refused.contains("at most 20 folders"), "{refused}");
    }

    #[test]
    fn a_network_card_is_there_only_when_asked_for() {
        assert!(!line(Kind::Microvm, None).contains("net"));
        assert!(line(Kind::Microvm, Some(Network::User)).contains("-device virtio-net-device,netdev=net0"));
        assert!(line(Kind::Q35, Some(Network::User)).contains("-device virtio-net-pci,netdev=net0,disable-legacy=on"));
        let forwarded = line(
            Kind::Q35,
            Some(Network::Forwarded { host: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080), guest_port: 80 }),
        );
        assert!(forwarded.contains("-netdev user,id=net0,hostfwd=tcp:127.0.0.1:8080-:80 -device"), "{forwarded}");
        let tap = line(Kind::Microvm, Some(Network::Tap("tap7".into())));
        assert!(tap.contains("-netdev tap,id=net0,ifname=tap7,script=no,downscript=no -device"), "{tap}");
    }
}
