//! Programs of the host that some commands and tests need, and how they are installed.
//!
//! Nothing is installed in silence: what, with which package manager and for what is said before. `--no-install`
//! forbids it, for this process and all that it starts ([`forbid_installing`]).

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};

/// The variable that forbids installing; the option `--no-install` sets it.
const FORBIDDEN: &str = "SING_NO_INSTALL";

/// Where a program of the host is, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The tools of file systems lie in folders that are not on every user's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// A program of the host that comes in a package, whose name differs between systems.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The program.
    pub program: &'static str,
    /// What it is needed for, as a noun.
    purpose: &'static str,
    /// Debian and its children.
    apt: &'static str,
    /// Fedora and its relatives.
    dnf: &'static str,
    /// Arch.
    pacman: &'static str,
    /// Alpine.
    apk: &'static str,
}

impl Tool {
    /// The machine emulator.
    pub const QEMU: Tool = Tool {
        program: "qemu-system-x86_64",
        purpose: "a bare machine",
        apt: "qemu-system-x86",
        dnf: "qemu-system-x86-core",
        pacman: "qemu-system-x86",
        apk: "qemu-system-x86_64",
    };
    /// The debugger.
    pub const GDB: Tool =
        Tool { program: "gdb", purpose: "debugging", apt: "gdb", dnf: "gdb", pacman: "gdb", apk: "gdb" };
    /// What makes bootable images, and all that it needs for both kinds of firmware.
    pub const GRUB: Tool = Tool {
        program: "grub-mkrescue",
        purpose: "a bootable image",
        apt: "grub-common grub-pc-bin grub-efi-amd64-bin xorriso mtools",
        dnf: "grub2-tools-extra grub2-pc-modules grub2-efi-x64-modules xorriso mtools",
        pacman: "grub xorriso mtools",
        apk: "grub grub-bios grub-efi xorriso mtools",
    };
    /// Reads and writes ISO images.
    pub const XORRISO: Tool = Tool { program: "xorriso", ..Tool::GRUB };
    /// Makes the file system that UEFI boots from.
    pub const MTOOLS: Tool = Tool { program: "mformat", ..Tool::GRUB };
    /// Linux's own tools for ext2.
    pub const MKE2FS: Tool = Tool {
        program: "mke2fs",
        purpose: "tests of ext2 disks",
        apt: "e2fsprogs",
        dnf: "e2fsprogs",
        pacman: "e2fsprogs",
        apk: "e2fsprogs",
    };
    /// Linux's own tools for FAT.
    pub const MKFS_FAT: Tool = Tool {
        program: "mkfs.fat",
        purpose: "tests of FAT disks",
        apt: "dosfstools",
        dnf: "dosfstools",
        pacman: "dosfstools",
        apk: "dosfstools",
    };
    /// Reads and writes FAT without a kernel that knows it.
    pub const MCOPY: Tool = Tool {
        program: "mcopy",
        purpose: "tests of FAT disks",
        apt: "mtools",
        dnf: "mtools",
        pacman: "mtools",
        apk: "mtools",
    };
    /// A client of web servers.
    pub const CURL: Tool = Tool {
        program: "curl",
        purpose: "tests of the web server",
        apt: "curl",
        dnf: "curl",
        pacman: "curl",
        apk: "curl",
    };
    /// A client of web servers.
    pub const WGET: Tool = Tool {
        program: "wget",
        purpose: "tests of the web server",
        apt: "wget",
        dnf: "wget",
        pacman: "wget",
        apk: "wget",
    };
    /// A client that asks web servers as fast as it can.
    pub const WRK: Tool =
        Tool { program: "wrk", purpose: "tests of the web server", apt: "wrk", dnf: "wrk", pacman: "wrk", apk: "wrk" };
    /// Python, for its web server.
    pub const PYTHON: Tool = Tool {
        program: "python3",
        purpose: "tests of the web server",
        apt: "python3",
        dnf: "python3",
        pacman: "python",
        apk: "python3",
    };
    /// Python with its library for clients of web servers.
    pub const REQUESTS: Tool = Tool {
        program: "python3",
        purpose: "tests of the web server",
        apt: "python3 python3-requests",
        dnf: "python3 python3-requests",
        pacman: "python python-requests",
        apk: "python3 py3-requests",
    };
    /// A browser; too big to be installed for a test.
    pub const CHROMIUM: Tool = Tool {
        program: "chromium",
        purpose: "tests of the web server",
        apt: "chromium",
        dnf: "chromium",
        pacman: "chromium",
        apk: "chromium",
    };
    /// What looks at captured packets.
    pub const TSHARK: Tool = Tool {
        program: "tshark",
        purpose: "tests of the network stack",
        apt: "tshark",
        dnf: "wireshark-cli",
        pacman: "wireshark-cli",
        apk: "tshark",
    };
    /// What gives addresses and tells of names in a network.
    pub const DNSMASQ: Tool = Tool {
        program: "dnsmasq",
        purpose: "tests of the network stack",
        apt: "dnsmasq-base",
        dnf: "dnsmasq",
        pacman: "dnsmasq",
        apk: "dnsmasq",
    };
    /// Linux's own tool for networks.
    pub const IP: Tool = Tool {
        program: "ip",
        purpose: "tests of the network stack",
        apt: "iproute2",
        dnf: "iproute",
        pacman: "iproute2",
        apk: "iproute2",
    };
    /// Linux's own tool for partition tables.
    pub const SFDISK: Tool = Tool {
        program: "sfdisk",
        purpose: "tests of partitions",
        apt: "fdisk",
        dnf: "util-linux-core",
        pacman: "util-linux",
        apk: "sfdisk",
    };
}

/// A system's package manager.
struct Manager {
    program: &'static str,
    /// Brings its lists up to date, for managers that keep some.
    update: &'static [&'static str],
    install: &'static [&'static str],
    packages: fn(&Tool) -> &'static str,
}

const MANAGERS: [Manager; 4] = [
    Manager {
        program: "apt-get",
        update: &["-qq", "update"],
        install: &["-qq", "install", "-y", "--no-install-recommends"],
        packages: |tool| tool.apt,
    },
    Manager { program: "dnf", update: &[], install: &["-q", "install", "-y"], packages: |tool| tool.dnf },
    Manager { program: "pacman", update: &[], install: &["-Sy", "--noconfirm"], packages: |tool| tool.pacman },
    Manager { program: "apk", update: &[], install: &["add", "-q"], packages: |tool| tool.apk },
];

/// Where the program is, after an attempt to install it when this is root.
///
/// # Errors
/// It is not there; the failure says what to type.
pub fn require(tool: &Tool) -> Outcome<PathBuf> {
    if let Some(path) = find(tool.program) {
        return Ok(path);
    }
    install(tool);
    find(tool.program).ok_or_else(|| {
        Failure::new(format!("{} needs the program {}, which is not installed", tool.purpose, tool.program))
            .remedy(remedy(tool))
    })
}

/// Whether this user may make network namespaces with interfaces in them, as root may.
pub fn can_make_networks() -> bool {
    let name = format!("sing-{}", std::process::id());
    let ip = |words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !ensure(&Tool::IP) || !ip(&["netns", "add", &name]) {
        return false;
    }
    let can = ip(&["-n", &name, "tuntap", "add", "dev", "t0", "mode", "tap"])
        && ip(&["-n", &name, "link", "add", "b0", "type", "bridge"]);
    ip(&["netns", "delete", &name]) && can
}

/// What a person can do to have a tool.
pub fn remedy(tool: &Tool) -> String {
    match manager() {
        Some(manager) => format!("type: {}", typed(tool, manager)),
        None => format!("install it; Debian has it in {}", tool.apt),
    }
}

/// The package manager of this host.
fn manager() -> Option<&'static Manager> {
    MANAGERS.iter().find(|manager| find(manager.program).is_some())
}

/// Whether the program is there, after an attempt to install it when this is root.
pub fn ensure(tool: &Tool) -> bool {
    require(tool).is_ok()
}

/// Whether Python has its library for clients of web servers, after an attempt to install it when this is root.
pub fn ensure_requests() -> bool {
    let is_there = || {
        let mut command = Command::new("python3");
        command.args(["-c", "import requests"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if is_there() {
        return true;
    }
    install(&Tool::REQUESTS);
    is_there()
}

/// Forbids this process and all that it starts to install anything: it begins anew with a variable that says so.
///
/// # Errors
/// The tool cannot be started again.
pub fn forbid_installing() -> Outcome<()> {
    if !may_install() {
        return Ok(());
    }
    let tool = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the tool cannot be found to start it again: {error}")))?;
    let error = Command::new(&tool).args(std::env::args_os().skip(1)).env(FORBIDDEN, "1").exec();
    Err(Failure::file("start", &tool, &error))
}

/// Whether installing is not forbidden.
pub fn may_install() -> bool {
    !is_forbidden(std::env::var_os(FORBIDDEN).as_deref())
}

fn is_forbidden(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Installs a tool when this is root, the host has a package manager that is known, and it is not forbidden. Whether it
/// worked shows in that the tool is there.
pub fn install(tool: &Tool) {
    let may = rustix::process::geteuid().is_root() && may_install();
    let Some(manager) = manager().filter(|_| may) else { return };
    eprintln!("sing: {}", announcement(tool, manager));
    let packages = (manager.packages)(tool);
    let run = |words: &[&str], packages: &str| {
        Command::new(manager.program)
            .args(words)
            .args(packages.split_whitespace())
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !run(manager.install, packages) && !manager.update.is_empty() {
        // The lists of packages may be old or missing.
        run(manager.update, "");
        run(manager.install, packages);
    }
}

/// What is said before a tool is installed. End-to-end tests know its first words.
fn announcement(tool: &Tool, manager: &Manager) -> String {
    format!(
        "installing {} with {}: {} needs {}, which is missing (--no-install forbids this)",
        (manager.packages)(tool),
        manager.program,
        tool.purpose,
        tool.program
    )
}

/// The command that a person types to install a tool.
fn typed(tool: &Tool, manager: &Manager) -> String {
    let words: Vec<&str> = manager.install.iter().copied().filter(|word| !matches!(*word, "-qq" | "-q")).collect();
    format!("sudo {} {} {}", manager.program, words.join(" "), (manager.packages)(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_type_is_whole() {
        assert_eq!(typed(&Tool::QEMU, &MANAGERS[0]), "sudo apt-get install -y --no-install-recommends qemu-system-x86");
        assert_eq!(typed(&Tool::GDB, &MANAGERS[3]), "sudo apk add gdb");
    }

    #[test]
    fn what_is_installed_and_why_is_said_before() {
        assert_eq!(
            announcement(&Tool::QEMU, &MANAGERS[0]),
            "installing qemu-system-x86 with apt-get: a bare machine needs qemu-system-x86_64, which is missing \
             (--no-install forbids this)"
        );
        assert!(announcement(&Tool::GRUB, &MANAGERS[2]).starts_with("installing grub xorriso mtools with pacman: "));
    }

    #[test]
    fn a_variable_forbids_installing() {
        let values = [None, Some(""), Some("0"), Some("1"), Some("yes")];
        assert_eq!(values.map(|value| is_forbidden(value.map(OsStr::new))), [false, false, false, true, true]);
    }

    #[test]
    fn what_is_there_is_not_installed() {
        let shell = Tool { program: "sh", ..Tool::GDB };
        assert!(require(&shell).expect("every host has a shell").ends_with("sh"));
    }
}
