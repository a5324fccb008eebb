//! `sing run`: prepares a system and runs it, hosted or on a bare machine.

use std::ffi::OsString;
use std::io::{IsTerminal, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bare::guest;
use crate::bare::prepared::{self, Person, Prepared};
use crate::bare::qemu::Kind;
use crate::command_line::{MachineName, RunArguments};
use crate::demo_disk;
use crate::failure::{Failure, Outcome};
use crate::folder::{self, Folder};
use crate::repository::Repository;
use crate::service::{self, Service};
use crate::site::{self, Site};
use crate::systems::{self, Platform, Ready};
use crate::{cores, domains, tap, wasm_run};

/// `sing run`. This process becomes the hosted machine, so that signals, the terminal and the exit status are the
/// machine's own; for a machine in QEMU it stays, to carry the console.
///
/// # Errors
/// The system does not build, a disk is missing, or the machine cannot be started.
pub fn run(repository: &Repository, arguments: &RunArguments) -> Outcome<u8> {
    let (repository, arguments) = wasm_run::applied(repository, &tap::with_address(arguments))?;
    let arguments = cores::applied(&repository, &arguments)?;
    let Some(web) = &arguments.web else { return start(&repository, &arguments, None, Process::Becomes) };
    let site = site::prepare(&repository, web, &arguments)?;
    start(&repository, &site.arguments, Some(&site), Process::Becomes)
}

/// The same, but this process stays. Not for a site. Returns the exit status.
///
/// # Errors
/// As of [`run`].
pub fn run_to_end(repository: &Repository, arguments: &RunArguments) -> Outcome<u8> {
    if arguments.web.is_some() {
        return Err(Failure::new("a site has no end that could be waited for").remedy("remove --web"));
    }
    let (repository, arguments) = wasm_run::applied(repository, &tap::with_address(arguments))?;
    let arguments = cores::applied(&repository, &arguments)?;
    start(&repository, &arguments, None, Process::Stays)
}

/// Whether this process becomes the hosted machine or waits for its end.
#[derive(Clone, Copy)]
enum Process {
    Becomes,
    Stays,
}

/// Runs a system; announces the site once everything is built.
fn start(repository: &Repository, arguments: &RunArguments, site: Option<&Site>, process: Process) -> Outcome<u8> {
    match arguments.machine {
        None | Some(MachineName::Hosted) => run_hosted(repository, arguments, site, process),
        Some(MachineName::Qemu) => run_bare(repository, Kind::Q35, &domains::applied(repository, arguments)?, site),
        Some(MachineName::Microvm) => {
            run_bare(repository, Kind::Microvm, &domains::applied(repository, arguments)?, site)
        }
    }
}

/// Announces a site's address; a service does that itself when it serves. The port is checked again, since another
/// process may have taken it during a build of minutes.
fn announce(site: Option<&Site>, service: Option<&Service>) -> Outcome<()> {
    let Some(site) = site else { return Ok(()) };
    site.check_port()?;
    if service.is_none() {
        let end = if std::io::stdin().is_terminal() { "; Ctrl-D at the prompt ends it" } else { "" };
        eprintln!("sing: {}{end}", site.announcement);
    }
    Ok(())
}

fn run_hosted(repository: &Repository, arguments: &RunArguments, site: Option<&Site>, process: Process) -> Outcome<u8> {
    refuse_bare_options(arguments)?;
    let disks = disks(repository, arguments)?;
    let folders = folder::read_all(&arguments.folder)?;
    let usual = if arguments.tap.is_some() { systems::HOSTED_TAP } else { systems::HOSTED };
    let arguments = &domains::applied_hosted(repository, arguments, usual)?;
    let system = arguments.system.as_deref().unwrap_or(Path::new(usual));
    let manifest = repository.system_manifest(system)?;
    let ready = systems::current(repository, &manifest, Platform::Hosted, arguments.unsafe_tests())?;
    let service = service::of(arguments, &ready.image, site)?;
    announce(site, service.as_ref())?;
    let mut command = machine_command(&ready, &disks, &folders, arguments);
    if let Some(service) = &service {
        command.args(service.machine_words());
    }
    let error = match process {
        Process::Becomes => command.exec(),
        Process::Stays => match command.status() {
            // Ended by a signal, as a shell reports it.
            Ok(status) => return Ok(status.code().map_or(128, |code| code as u8)),
            Err(error) => error,
        },
    };
    Err(Failure::file("start", &ready.machine, &error))
}

/// Refuses options that only a bare machine has, instead of ignoring them.
///
/// # Errors
/// One is given.
pub fn refuse_bare_options(arguments: &RunArguments) -> Outcome<()> {
    let given = [
        ("--mem", arguments.mem.is_some()),
        ("--accel", arguments.accel.is_some()),
        ("--pages", arguments.pages.is_some()),
        ("--net", arguments.net),
        ("--qemu", !arguments.qemu.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(format!("{option} applies to bare machines only"))
            .remedy("add --machine qemu or --machine microvm, or remove it")),
    }
}

fn run_bare(repository: &Repository, kind: Kind, arguments: &RunArguments, site: Option<&Site>) -> Outcome<u8> {
    if arguments.unconfined {
        return Err(
            Failure::new("--unconfined applies to the hosted machine only").remedy("remove it, or remove --machine")
        );
    }
    prepared::folders(arguments)?;
    let disks = disks(repository, arguments)?;
    let system = repository.system_manifest(arguments.system.as_deref().unwrap_or(Path::new(systems::BARE)))?;
    let ready = systems::current(repository, &system, Platform::Bare, arguments.unsafe_tests())?;
    let service = service::of(arguments, &ready.image, site)?;
    let mut arguments = arguments.clone();
    arguments.parameter.extend(service.iter().filter_map(|service| service.parameter).map(String::from));
    let person = if service.is_some() { Person::Elsewhere } else { Person::AtConsole };
    let prepared = Prepared::new(repository, kind, &arguments, &disks, person)?;
    announce(site, service.as_ref())?;
    let end = guest::run(&prepared, service.as_ref())?;
    // Removes its files and restores the terminal before this returns or execs.
    drop(prepared);
    match end {
        guest::End::Status(status) => Ok(status),
        guest::End::Restart => Err(begin_again()),
    }
}

/// Re-executes this process with the same arguments, as the hosted machine does; returns the failure if that fails.
fn begin_again() -> Failure {
    match crate::tool::path() {
        Ok(tool) => Failure::file("start", &tool, &Command::new(&tool).args(std::env::args_os().skip(1)).exec()),
        Err(error) => Failure::new(format!("cannot restart the machine: {error}")),
    }
}

/// Returns the given disks, or else the demo disk.
///
/// # Errors
/// A disk is missing, or the demo disk cannot be made.
pub fn disks(repository: &Repository, arguments: &RunArguments) -> Outcome<Vec<PathBuf>> {
    for (number, disk) in arguments.disk.iter().enumerate() {
        check_disk(number, disk)?;
    }
    if arguments.disk.is_empty() { Ok(vec![demo_disk(repository)?]) } else { Ok(arguments.disk.clone()) }
}

/// Returns the demo disk, read-only, so that several machines can run at once.
///
/// # Errors
/// It cannot be made.
pub fn demo_disk(repository: &Repository) -> Outcome<PathBuf> {
    let mut disk = demo_disk::path(repository)?.into_os_string();
    disk.push(":ro");
    Ok(disk.into())
}

/// Returns the command that starts the hosted machine.
pub fn machine_command(ready: &Ready, disks: &[PathBuf], folders: &[Folder], arguments: &RunArguments) -> Command {
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image);
    for disk in disks {
        command.arg("--disk").arg(disk);
    }
    for folder in folders {
        command.arg("--folder").arg(folder.specification());
    }
    if let Some(processors) = arguments.processors {
        command.arg("--processors").arg(processors.to_string());
    }
    if let Some(file) = &arguments.record {
        command.arg("--record").arg(file);
    }
    if let Some(tap) = &arguments.tap {
        command.arg("--tap").arg(tap);
    }
    if arguments.unconfined {
        command.arg("--unconfined");
    }
    if let Some(commands) = &arguments.commands {
        let mut parameter = OsString::from("commands=");
        parameter.push(commands);
        command.arg("--parameter").arg(parameter);
    }
    for parameter in &arguments.parameter {
        command.arg("--parameter").arg(parameter);
    }
    command
}

/// Checks that a disk can be opened before anything is built for it.
fn check_disk(number: usize, disk: &Path) -> Outcome<()> {
    let text = disk.to_string_lossy();
    let path = text.strip_suffix(":ro").map_or(disk, Path::new);
    let metadata = std::fs::metadata(path).map_err(|error| Failure::file("open the disk", path, &error))?;
    if metadata.is_dir() {
        return Err(Failure::new(format!("the disk {} is a folder", path.display()))
            .remedy("use a disk image; `mke2fs -d FOLDER IMAGE 64M` creates one from a folder"));
    }
    let file = std::fs::File::open(path).map_err(|error| Failure::file("open the disk", path, &error))?;
    let is_writable = path == disk;
    let path = path.display();
    match content(&file) {
        Content::Foreign(what) if is_writable => {
            eprintln!("sing: {path} contains {what} and is writable; use {path}:ro for read-only access");
        }
        Content::Empty if is_writable && std::io::stderr().is_terminal() => {
            eprintln!("sing: {path} is empty; `format disk{number} --type ext2 --yes` formats it");
        }
        _ => {}
    }
    Ok(())
}

/// Content of a disk.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// ext2, FAT or partitions.
    Known,
    /// All zeros: to be formatted.
    Empty,
    Foreign(&'static str),
}

/// Classifies a disk. An unreadable one counts as known: its driver reports the error.
fn content(mut disk: &std::fs::File) -> Content {
    // A block device's length is not in its metadata.
    let Ok(bytes) = disk.seek(SeekFrom::End(0)) else { return Content::Known };
    let mut start = [0; 4096];
    let Ok(count) = disk.read_at(&mut start, 0) else { return Content::Known };
    if volume_kind::may_hold("ext2", &start) {
        return Content::Known;
    }
    let mut sector = [0; volume_kind::SECTOR_BYTES];
    let mut foreign = None;
    for probe in volume_kind::probes(bytes) {
        let found = disk.read_exact_at(&mut sector, probe.offset).ok().and_then(|()| probe.finds(&sector));
        match found {
            Some(volume_kind::FAT | volume_kind::MBR | volume_kind::GPT) => return Content::Known,
            other => foreign = foreign.or(other),
        }
    }
    let is_empty = start[..count].iter().all(|byte| *byte == 0);
    match foreign {
        Some(what) => Content::Foreign(what),
        None if is_empty => Content::Empty,
        None => Content::Foreign("unknown data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_something_else_on_it_is_told_from_an_empty_and_a_known_one() {
        let holding = |parts: &[(usize, &[u8])]| {
            let mut content = vec![0; 8192];
            for (place, bytes) in parts {
                content[*place..place + bytes.len()].copy_from_slice(bytes);
            }
            let file = tempfile::tempfile().expect("a file");
            file.write_all_at(&content, 0).expect("a disk");
            super::content(&file)
        };
        assert_eq!(holding(&[(0, b"# A letter\n")]), Content::Foreign("unknown data"));
        assert_eq!(holding(&[(0, b"XFSB")]), Content::Foreign("an XFS file system"));
        assert_eq!(holding(&[]), Content::Empty);
        let partition = [0, 0, 0, 0, 0x83, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0];
        let known: [&[(usize, &[u8])]; 3] = [
            &[(1080, &[0x53, 0xef])],
            &[(11, &[0, 2]), (13, &[8]), (510, &[0x55, 0xaa])],
            &[(0, &[0xeb]), (446, &partition), (510, &[0x55, 0xaa])],
        ];
        for parts in known {
            assert_eq!(holding(parts), Content::Known, "{parts:?}");
        }
        let short = tempfile::tempfile().expect("a file");
        short.write_all_at(b"x", 0).expect("a disk");
        assert!(matches!(super::content(&short), Content::Foreign(_)));
    }

    #[test]
    fn a_missing_disk_and_a_folder_are_one_sentence_each() {
        let missing = check_disk(0, Path::new("/no/such.img")).expect_err("there is none").to_string();
        assert_eq!(
            missing,
            "cannot open the disk /no/such.img: no such file or directory; check the spelling of the path."
        );
        let folder = check_disk(0, Path::new("/")).expect_err("a folder").to_string();
        assert!(folder.starts_with("the disk / is a folder; use a disk image"), "{folder}");
    }
}
