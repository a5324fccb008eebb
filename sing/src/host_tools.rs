//! Host programs that some commands and tests need, and how to install them.
//!
//! Nothing is installed silently: the tool, its purpose and the package manager are announced first. `--no-install`
//! forbids it, for this process and all its children ([`forbid_installing`]).

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};

/// Environment variable that forbids installing; set by `--no-install`.
const FORBIDDEN: &str = "SING_NO_INSTALL";

/// Returns the path of a host program, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // File-system tools lie in folders that are not on every user's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// A host program from a package, whose name differs between distributions.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Program name.
    pub program: &'static str,
    /// Purpose, as a noun.
    purpose: &'static str,
    /// Package on Debian and its derivatives.
    apt: &'static str,
    /// Package on Fedora and its relatives.
    dnf: &'static str,
    /// Package on Arch.
    pacman: &'static str,
    /// Package on Alpine.
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
    /// The other debugger.
    pub const LLDB: Tool =
        Tool { program: "lldb", purpose: "debugging", apt: "lldb", dnf: "lldb", pacman: "lldb", apk: "lldb" };
    /// Makes bootable images, with all it needs for BIOS and UEFI.
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
    /// Linux's ext2 tools.
    pub const MKE2FS: Tool = Tool {
        program: "mke2fs",
        purpose: "tests of ext2 disks",
        apt: "e2fsprogs",
        dnf: "e2fsprogs",
        pacman: "e2fsprogs",
        apk: "e2fsprogs",
    };
    /// Linux's FAT tools.
    pub const MKFS_FAT: Tool = Tool {
        program: "mkfs.fat",
        purpose: "tests of FAT disks",
        apt: "dosfstools",
        dnf: "dosfstools",
        pacman: "dosfstools",
        apk: "dosfstools",
    };
    /// Reads and writes FAT without kernel support.
    pub const MCOPY: Tool = Tool {
        program: "mcopy",
        purpose: "tests of FAT disks",
        apt: "mtools",
        dnf: "mtools",
        pacman: "mtools",
        apk: "mtools",
    };
    /// HTTP client.
    pub const CURL: Tool = Tool {
        program: "curl",
        purpose: "tests of the web server",
        apt: "curl",
        dnf: "curl",
        pacman: "curl",
        apk: "curl",
    };
    /// HTTP client.
    pub const WGET: Tool = Tool {
        program: "wget",
        purpose: "tests of the web server",
        apt: "wget",
        dnf: "wget",
        pacman: "wget",
        apk: "wget",
    };
    /// HTTP load generator.
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
    /// Python with its `requests` library.
    pub const REQUESTS: Tool = Tool {
        program: "python3",
        purpose: "tests of the web server",
        apt: "python3 python3-requests",
        dnf: "python3 python3-requests",
        pacman: "python python-requests",
        apk: "python3 py3-requests",
    };
    /// A browser; too large to be installed for a test.
    pub const CHROMIUM: Tool = Tool {
        program: "chromium",
        purpose: "tests of the web server",
        apt: "chromium",
        dnf: "chromium",
        pacman: "chromium",
        apk: "chromium",
    };
    /// Checker of metrics; not installed for a test, because its package starts a server.
    pub const PROMTOOL: Tool = Tool {
        program: "promtool",
        purpose: "tests of the web server",
        apt: "prometheus",
        dnf: "golang-github-prometheus",
        pacman: "prometheus",
        apk: "prometheus",
    };
    /// Packet capture analyser.
    pub const TSHARK: Tool = Tool {
        program: "tshark",
        purpose: "tests of the network stack",
        apt: "tshark",
        dnf: "wireshark-cli",
        pacman: "wireshark-cli",
        apk: "tshark",
    };
    /// DHCP and DNS server.
    pub const DNSMASQ: Tool = Tool {
        program: "dnsmasq",
        purpose: "tests of the network stack",
        apt: "dnsmasq-base",
        dnf: "dnsmasq",
        pacman: "dnsmasq",
        apk: "dnsmasq",
    };
    /// The model checker.
    pub const SPIN: Tool = Tool {
        program: "spin",
        purpose: "tests of the models of contracts",
        apt: "spin",
        dnf: "spin",
        pacman: "spin",
        apk: "spin",
    };
    /// Linux's network configuration tool.
    pub const IP: Tool = Tool {
        program: "ip",
        purpose: "tests of the network stack",
        apt: "iproute2",
        dnf: "iproute",
        pacman: "iproute2",
        apk: "iproute2",
    };
    /// Linux's partition table tool.
    pub const SFDISK: Tool = Tool {
        program: "sfdisk",
        purpose: "tests of partitions",
        apt: "fdisk",
        dnf: "util-linux-core",
        pacman: "util-linux",
        apk: "sfdisk",
    };
}

/// A distribution's package manager.
struct Manager {
    program: &'static str,
    /// Arguments that refresh its package lists; empty if it keeps none.
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

/// Returns the program's path, after trying to install it when run as root.
///
/// # Errors
/// It is missing; the failure contains the command that installs it.
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

/// Returns whether this user may create network namespaces with interfaces, as root may.
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

/// Returns advice on how to get a tool.
pub fn remedy(tool: &Tool) -> String {
    match manager() {
        Some(manager) => format!("type: {}", typed(tool, manager)),
        None => format!("install it; Debian has it in {}", tool.apt),
    }
}

/// Returns the package manager of this host.
fn manager() -> Option<&'static Manager> {
    MANAGERS.iter().find(|manager| find(manager.program).is_some())
}

/// Returns whether the program is installed, after trying to install it when run as root.
pub fn ensure(tool: &Tool) -> bool {
    require(tool).is_ok()
}

/// Returns whether Python has its `requests` library, after trying to install it when run as root.
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

/// Forbids this process and all its children to install anything: it restarts itself with `SING_NO_INSTALL` set.
///
/// # Errors
/// The tool cannot be restarted.
pub fn forbid_installing() -> Outcome<()> {
    if !may_install() {
        return Ok(());
    }
    let tool = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this executable to restart it: {error}")))?;
    let error = Command::new(&tool).args(std::env::args_os().skip(1)).env(FORBIDDEN, "1").exec();
    Err(Failure::file("start", &tool, &error))
}

/// Returns whether installing is permitted.
pub fn may_install() -> bool {
    !is_forbidden(std::env::var_os(FORBIDDEN).as_deref())
}

fn is_forbidden(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Installs a tool if this is root, the host has a known package manager, and installing is permitted. Success shows
/// only in the tool's presence.
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
        // The package lists may be stale or missing.
        run(manager.update, "");
        run(manager.install, packages);
    }
}

/// Returns the announcement before a tool is installed. End-to-end tests match its first words.
fn announcement(tool: &Tool, manager: &Manager) -> String {
    format!(
        "installing {} with {}: {} needs {}, which is missing (--no-install forbids this)",
        (manager.packages)(tool),
        manager.program,
        tool.purpose,
        tool.program
    )
}

/// Returns the shell command that installs a tool.
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
