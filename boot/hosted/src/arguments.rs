//! The command line. The documentation of its fields is the text of `--help`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Parser;
use clap::builder::{OsStringValueParser, TypedValueParser};
use hal_hosted::{
    Confinement, DiskAccess, DiskSpecification, FolderAccess, FolderSpecification, LinkPolicy, LogFormat, Service,
    TapSpecification,
};

/// Runs a Singularity system as one process of this host.
#[derive(Debug, Parser)]
#[command(name = "singularity-hosted", version)]
pub struct Arguments {
    /// The system image, made by `cargo sing build`
    #[arg(long, value_name = "FILE", required_unless_present = "replay")]
    pub system: Option<PathBuf>,

    /// Records what enters each program, for a replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Replays a recording, with the system image in it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["system", "record"])]
    pub replay: Option<PathBuf>,

    /// Replays this process alone
    #[arg(long, value_name = "ID", requires = "replay")]
    pub process: Option<u64>,

    /// Replays silently, and writes the recording with the arguments and messages of all calls
    #[arg(long, value_name = "FILE", requires = "replay", conflicts_with = "process")]
    pub complete: Option<PathBuf>,

    /// A disk image or block device; the suffix `:ro` makes it read-only
    #[arg(long = "disk", value_name = "FILE[:ro]", value_parser = OsStringValueParser::new().map(disk))]
    pub disks: Vec<DiskSpecification>,

    /// A folder of the host; the suffix `:ro` makes it read-only, `:follow` resolves symbolic links on the host
    #[arg(long = "folder", value_name = "NAME=PATH[:ro][:follow]", value_parser = OsStringValueParser::new().try_map(folder))]
    pub folders: Vec<FolderSpecification>,

    /// A TAP interface of the host, created if missing; the suffix `:plain` disables offloads
    #[arg(long, value_name = "NAME[:plain]", value_parser = tap)]
    pub tap: Option<TapSpecification>,

    /// Number of processors [default: that of the host]
    #[arg(long, value_name = "N")]
    pub processors: Option<usize>,

    /// Memory of the system in MiB [default: as much as the host allows]
    #[arg(long, value_name = "N", value_parser = parse_mebibytes)]
    pub memory_mib: Option<usize>,

    /// Adds a bus with simulated devices, for tests of drivers
    #[arg(long)]
    pub simulated_device: bool,

    /// Fault injection: fails one of this many requests to the host's sockets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub failing_sockets: Option<u32>,

    /// Keeps all privileges of the process, for debuggers: no seccomp, no Landlock, no second process
    #[arg(long)]
    pub unconfined: bool,

    /// Runs as a service of the host, and announces TEXT when the system is up: log lines have timestamps, and a system
    /// shut down by a signal ends with its own exit status
    #[arg(long, value_name = "TEXT")]
    pub service: Option<String>,

    /// Writes the log of a service as one JSON object per line
    #[arg(long, requires = "service")]
    pub json_log: bool,

    /// A parameter of the system's first program
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, String)>,
}

impl Arguments {
    /// Returns the service's configuration, if the process runs as a service.
    pub fn service(&self) -> Option<Service> {
        let log = if self.json_log { LogFormat::Json } else { LogFormat::Text };
        self.service.clone().map(|announcement| Service { log, announcement })
    }

    /// Returns whether the process is confined.
    pub fn confinement(&self) -> Confinement {
        if self.unconfined { Confinement::Unconfined } else { Confinement::Confined }
    }
}

fn parse_mebibytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(mebibytes @ 8..=131_072) => Ok(mebibytes),
        _ => Err("write a number of MiB from 8 to 131072".to_owned()),
    }
}

fn disk(text: OsString) -> DiskSpecification {
    match text.as_bytes().strip_suffix(b":ro") {
        Some(path) => DiskSpecification { path: OsStr::from_bytes(path).into(), access: DiskAccess::ReadOnly },
        None => DiskSpecification { path: text.into(), access: DiskAccess::WriteIfAllowed },
    }
}

fn folder(text: OsString) -> Result<FolderSpecification, String> {
    let wanted = || "write it as NAME=PATH".to_owned();
    let equals = text.as_bytes().iter().position(|&byte| byte == b'=').ok_or_else(wanted)?;
    let (name, mut path) = (&text.as_bytes()[..equals], &text.as_bytes()[equals + 1..]);
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty()).ok_or_else(wanted)?.to_owned();
    let (mut access, mut links) = (FolderAccess::Write, LinkPolicy::StayInside);
    loop {
        if let Some(rest) = path.strip_suffix(b":ro") {
            (path, access) = (rest, FolderAccess::ReadOnly);
        } else if let Some(rest) = path.strip_suffix(b":follow") {
            (path, links) = (rest, LinkPolicy::Follow);
        } else {
            return Ok(FolderSpecification { name, path: OsStr::from_bytes(path).into(), access, links });
        }
    }
}

fn tap(text: &str) -> Result<TapSpecification, String> {
    let (name, plain) = text.strip_suffix(":plain").map_or((text, false), |name| (name, true));
    if name.is_empty() {
        return Err("write the name of an interface, such as sing0".to_owned());
    }
    Ok(TapSpecification { name: name.to_owned(), plain })
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_is_read() {
        let words = ["x", "--system", "s", "--disk", "a", "--disk", "b:ro", "--parameter", "commands=echo a=b"];
        let arguments = Arguments::try_parse_from(words).expect("a good command line");
        assert_eq!(arguments.system, Some(PathBuf::from("s")));
        assert_eq!(arguments.disks[0].access, DiskAccess::WriteIfAllowed);
        assert_eq!((arguments.disks[1].path.to_str(), arguments.disks[1].access), (Some("b"), DiskAccess::ReadOnly));
        assert_eq!(arguments.parameters, [("commands".to_owned(), "echo a=b".to_owned())]);
    }

    #[test]
    fn a_folder_has_a_name_and_may_have_options() {
        let folder = |text: &str| {
            let read = Arguments::try_parse_from(["x", "--system", "s", "--folder", text]).ok()?.folders.pop()?;
            Some((read.name, read.path.to_str()?.to_owned(), read.access, read.links))
        };
        let expected = |path: &str, access, links| Some(("n".to_owned(), path.to_owned(), access, links));
        assert_eq!(folder("n=/a=b"), expected("/a=b", FolderAccess::Write, LinkPolicy::StayInside));
        assert_eq!(folder("n=/a:ro"), expected("/a", FolderAccess::ReadOnly, LinkPolicy::StayInside));
        assert_eq!(folder("n=/a:follow:ro"), expected("/a", FolderAccess::ReadOnly, LinkPolicy::Follow));
        assert_eq!((folder("/a"), folder("=/a")), (None, None));
    }

    #[test]
    fn a_tap_interface_may_be_plain() {
        let tap = |text: &str| Arguments::try_parse_from(["x", "--system", "s", "--tap", text]).ok()?.tap;
        assert_eq!(tap("sing0"), Some(TapSpecification { name: "sing0".to_owned(), plain: false }));
        assert_eq!(tap("sing0:plain"), Some(TapSpecification { name: "sing0".to_owned(), plain: true }));
        assert_eq!((tap(""), tap(":plain")), (None, None));
    }

    #[test]
    fn a_parameter_without_a_name_is_refused() {
        for bad in ["=x", "x", ""] {
            assert!(Arguments::try_parse_from(["x", "--system", "s", "--parameter", bad]).is_err());
        }
    }
}
