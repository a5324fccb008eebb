//! The command line, as clap reads it. The help texts are these definitions.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::builder::UnsafeTests;
use crate::docs::DocsArguments;
use crate::install::ChangeArguments;
use crate::system_list::SystemsArguments;

/// Builds, checks, signs, runs, tests and measures Singularity in Rust.
#[derive(Debug, Parser)]
#[command(name = "sing", bin_name = "cargo sing", version, disable_help_subcommand = true)]
pub struct CommandLine {
    /// Install no packages of this host: say what is missing instead, or leave tests out
    #[arg(long, global = true)]
    pub no_install: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the system on a machine, building what it needs
    Run(RunArguments),
    /// Build, check and sign programs, without running them
    Build(BuildArguments),
    /// Start a bare machine under gdb, with the symbols of kernel and programs
    Debug(DebugArguments),
    /// Write an image that BIOS and UEFI boot
    Image(ImageArguments),
    /// Run every tier of tests
    Test(TestArguments),
    /// Measure the operations of the system beside Linux's
    Bench(XtaskArguments),
    /// Check contracts, manifests and system manifests, without building
    Check(CheckArguments),
    /// Show what a program's package was made of
    Bill(BillArguments),
    /// Begin a program: the files of an app, a service, a driver or a web application
    New(NewArguments),
    /// Print the JSON Schema of manifests, for editors
    Schema(SchemaArguments),
    /// Draw the SIPs and channels of a system as SVG
    Graph(GraphArguments),
    /// Show a contract as a picture or a Promela model
    Contract(ContractArguments),
    /// Write the package file of a program, for others to install
    Package(PackageArguments),
    /// List the systems there are: where they lie, which is the default, and what is in them
    Systems(SystemsArguments),
    /// Install a package into a system, if everything that is checked holds
    Install(InstallArguments),
    /// Let a newer version take the place of an installed program
    Upgrade(UpgradeArguments),
    /// Take a program out of a system
    Uninstall(UninstallArguments),
    /// Check a whole system image again
    Verify(VerifyArguments),
    /// Say what an installed program is, who signed it and what it can reach
    Explain(ExplainArguments),
    /// Make, certify, trust and revoke keys; alone: show the key that what is built here is signed with
    Key(KeyArguments),
    /// Print what kernel and system should be measured as
    Measure(MeasureArguments),
    /// Say where the documentation is, building that of the crates; or print a page of it
    Docs(DocsArguments),
    /// List what the images depend on, in the form of the audited list
    Dependencies,
    /// Count the trusted computing base: lines and uses of `unsafe`, crate by crate
    Base(XtaskArguments),
    /// Become another program, which ends when the one that started it does
    #[command(hide = true)]
    Attached(AttachedArguments),
}

/// `sing run`.
#[derive(Debug, Clone, Args)]
pub struct RunArguments {
    /// System manifest: a file, or the name of one in systems/ [default: hosted, or bare on a bare machine]
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// What to run it on [default: hosted, or qemu for a debugger]
    #[arg(long, value_enum)]
    pub machine: Option<MachineName>,
    /// Disk image, mounted at /fs/disk0, the next at /fs/disk1; FILE:ro for read only
    #[arg(long, value_name = "FILE")]
    pub disk: Vec<PathBuf>,
    /// Folder of this host, found at /fs/ and its name; with `:ro` at its end it is never changed, with `:follow` links
    /// in it are followed wherever they lead
    #[arg(long, value_name = "[NAME=]PATH")]
    pub folder: Vec<std::ffi::OsString>,
    /// Processors of the machine
    #[arg(long, visible_alias = "smp", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub processors: Option<u16>,
    /// Memory of a bare machine, such as 64M or 1G [default: 256M, and 8M for each folder]
    #[arg(long, value_name = "SIZE")]
    pub mem: Option<MemorySize>,
    /// What executes a bare machine's instructions [default: auto]
    #[arg(long, value_enum)]
    pub accel: Option<Acceleration>,
    /// Pages that a bare machine's memory is mapped with [default: largest]
    #[arg(long, value_enum)]
    pub pages: Option<Pages>,
    /// Give a bare machine a network card
    #[arg(long)]
    pub net: bool,
    /// Serve this folder, or what is on this disk image, over HTTP
    #[arg(long, value_name = "FOLDER_OR_IMAGE")]
    pub web: Option<PathBuf>,
    /// Port of this host that is served [default: 8080]
    #[arg(long, value_name = "N", requires = "web", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Address of this host that is served at: 0.0.0.0 for all, :: for those of IPv6 as well [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", requires = "web", conflicts_with = "tap")]
    pub listen: Option<IpAddr>,
    /// Log each answer to this file of the host, in a folder that is there [default: a file on the machine's second disk]
    #[arg(long, value_name = "FILE", requires = "web")]
    pub access_log: Option<PathBuf>,
    /// Let the demo applications answer, too: at /hello, and at /spec, where visitors can post
    #[arg(long, requires = "web")]
    pub demo: bool,
    /// Let a web application answer for a path; options for it behind a space, as in '/shop=my-shop currency=EUR'
    #[arg(long, value_name = "/PATH=PROGRAM", requires = "web")]
    pub app: Vec<String>,
    /// Serve until SIGTERM or Ctrl-C, without a shell; so it is, too, where there is no standard input
    #[arg(long, conflicts_with = "commands")]
    pub service: bool,
    /// How the log of a service is written [default: text]
    #[arg(long, value_enum, value_name = "FORM")]
    pub log: Option<LogForm>,
    /// Connect the machine's network card to this TAP interface of the host; with `:plain` at its end the host does
    /// nothing to packets. The machine has the address 192.168.77.2/24; `--parameter address=...` or `--parameter
    /// dhcp=true` gives it another
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// A further argument for QEMU, which runs bare machines
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub qemu: Vec<std::ffi::OsString>,
    /// Run these shell commands and shut down; the exit status is the last command's
    #[arg(short = 'c', value_name = "COMMANDS")]
    pub commands: Option<String>,
    /// Parameter for the first program
    #[arg(long, value_name = "NAME=VALUE")]
    pub parameter: Vec<String>,
    /// Accept test programs that declare `unsafe-for-tests`
    #[arg(long)]
    pub allow_unsafe_tests: bool,
    /// Let the hosted machine's process keep all that Linux gives it, for debuggers: no seccomp, no Landlock
    #[arg(long)]
    pub unconfined: bool,
}

/// What a system runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MachineName {
    /// A process of this host
    Hosted,
    /// A PC with PCI, in QEMU
    #[value(alias = "q35")]
    Qemu,
    /// QEMU's machine of few devices, which starts fastest
    Microvm,
}

/// How the log of a service is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogForm {
    /// Lines with time, program and text
    Text,
    /// A JSON object a line, with `time`, `program` and `text`
    Json,
}

/// Pages that memory is mapped with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Pages {
    /// The largest that the processor has and that fit
    Largest,
    /// 4 KiB pages alone
    #[value(name = "4k")]
    Small,
}

/// What executes the instructions of a machine in QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Acceleration {
    /// KVM where it works, else TCG
    Auto,
    /// QEMU itself
    Tcg,
    /// The processor
    Kvm,
}

/// An amount of memory, in whole mebibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySize {
    /// How many.
    pub mebibytes: u32,
}

impl std::str::FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<MemorySize, String> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let times = match &text[digits.len()..] {
            "" | "M" | "m" | "MiB" => 1,
            "G" | "g" | "GiB" => 1024,
            _ => 0,
        };
        let mebibytes = digits.parse().ok().and_then(|number: u32| number.checked_mul(times));
        match mebibytes.filter(|mebibytes| (1..=1 << 20).contains(mebibytes)) {
            Some(mebibytes) => Ok(MemorySize { mebibytes }),
            None => Err("give mebibytes or gibibytes, such as 64M or 1G".into()),
        }
    }
}

/// `sing attached`.
#[derive(Debug, Args)]
pub struct AttachedArguments {
    /// The program and what it is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

impl RunArguments {
    /// Whether test programs may hold unsafe code.
    pub fn unsafe_tests(&self) -> UnsafeTests {
        if self.allow_unsafe_tests { UnsafeTests::Allowed } else { UnsafeTests::Refused }
    }
}

/// `sing build`.
#[derive(Debug, Args)]
pub struct BuildArguments {
    /// Programs to build; all of them when none is named
    #[arg(value_name = "PROGRAM")]
    pub programs: Vec<String>,
    /// Build what this system manifest needs, and its system image
    #[arg(long, value_name = "FILE", conflicts_with = "programs")]
    pub system: Option<PathBuf>,
    /// Accept test programs that declare `unsafe-for-tests`
    #[arg(long)]
    pub allow_unsafe_tests: bool,
    /// List what was built as JSON
    #[arg(long)]
    pub json: bool,
}

/// `sing debug`.
#[derive(Debug, Args)]
pub struct DebugArguments {
    /// The machine and what runs on it.
    #[command(flatten)]
    pub run: RunArguments,
    /// With the source lines of this program, which is built once more for them; any number of times
    #[arg(long, value_name = "PROGRAM")]
    pub lines: Vec<String>,
    /// A command for gdb, or several on lines; gdb then asks nothing and ends after the last one
    #[arg(long, value_name = "COMMANDS")]
    pub batch: Vec<String>,
}

/// `sing image`.
#[derive(Debug, Args)]
pub struct ImageArguments {
    /// Write the image here
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: PathBuf,
    /// System manifest: a file, or the name of one in systems/
    #[arg(long, value_name = "FILE", default_value = "bare")]
    pub system: PathBuf,
    /// How the image is to be booted
    #[arg(long, value_enum, default_value = "iso")]
    pub format: ImageFormat,
    /// Run these shell commands and shut down
    #[arg(short = 'c', value_name = "COMMANDS")]
    pub commands: Option<String>,
    /// Parameter for the first program
    #[arg(long, value_name = "NAME=VALUE")]
    pub parameter: Vec<String>,
}

/// How an image is booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImageFormat {
    /// As an optical disc, or written to a memory stick
    Iso,
}

/// `sing test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Run the tests that take minutes too
    #[arg(long)]
    pub long: bool,
    /// Run only tests whose name contains this; or one tier: unit, conformance, end-to-end, fuzzing; or TIER:NAME
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
}

/// `sing bench` and `sing base`, whose words `xtask` reads.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct XtaskArguments {
    /// All that follows
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}

/// `sing check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// A .contract file, a folder of them, a manifest, or a system: its manifest, name or image; everything when not given
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// List what was checked as JSON
    #[arg(long)]
    pub json: bool,
}

/// `sing bill`.
#[derive(Debug, Args)]
pub struct BillArguments {
    /// A program of the repository, which is built, or a package file
    #[arg(value_name = "PROGRAM_OR_FILE")]
    pub program: String,
    /// As a CycloneDX document, in JSON
    #[arg(long)]
    pub cyclonedx: bool,
}

/// `sing new`.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// What the program is
    #[arg(value_enum)]
    pub kind: crate::new::Kind,
    /// What it is called
    pub name: String,
    /// Who makes it
    #[arg(long, value_name = "NAME", default_value = "singularity")]
    pub publisher: String,
}

/// `sing schema`.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Of which manifests
    #[arg(value_enum, default_value = "program")]
    pub of: SchemaSubject,
    /// Write it here; standard output when not given
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What `sing schema` describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SchemaSubject {
    /// A program's manifest
    Program,
    /// A system manifest
    System,
}

/// `sing package`.
#[derive(Debug, Args)]
pub struct PackageArguments {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub name: String,
    /// Sign it with this key of yours and its certificates [default: the development key]
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,
    /// Accept a test program that declares `unsafe-for-tests`
    #[arg(long)]
    pub allow_unsafe_tests: bool,
    /// Write it here [default: PROGRAM.package]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `sing install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    /// The package file
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,
    /// Start an instance of it with the system
    #[arg(long)]
    pub at_boot: bool,
    /// Let it bind these paths: `*` stands for a name, `**` for any path
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<String>,
    /// The system, and how to tell.
    #[command(flatten)]
    pub change: ChangeArguments,
}

/// `sing upgrade`.
#[derive(Debug, Args)]
pub struct UpgradeArguments {
    /// The package file of the newer version
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,
    /// Agree to permissions, devices and endpoints that the older version has not
    #[arg(long)]
    pub more: bool,
    /// The system, and how to tell.
    #[command(flatten)]
    pub change: ChangeArguments,
}

/// `sing uninstall`.
#[derive(Debug, Args)]
pub struct UninstallArguments {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub name: String,
    /// The system, and how to tell.
    #[command(flatten)]
    pub change: ChangeArguments,
}

/// `sing verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// System image, or the name of a system in systems/
    #[arg(long, value_name = "FILE|NAME", default_value = "hosted")]
    pub system: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `sing explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub name: String,
    /// System image, or the name of a system in systems/
    #[arg(long, value_name = "FILE|NAME", default_value = "hosted")]
    pub system: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `sing measure`.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// System manifest: a file, or the name of one in systems/ [default: hosted, or bare on a bare machine]
    #[arg(value_name = "SYSTEM")]
    pub system: Option<PathBuf>,
    /// What it runs on
    #[arg(long, value_enum, default_value = "hosted")]
    pub machine: MachineName,
}

/// `sing key`.
#[derive(Debug, Args)]
pub struct KeyArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<KeyCommand>,
}

/// The commands of `sing key`. Keys are in ~/.config/singularity/keys, or where SING_KEYS says.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key of your own
    New {
        /// What you call it
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List the keys there are, the roots you trust, and what you have revoked
    List,
    /// Show the public half of a key of yours, and its certificates
    Show {
        /// What you call it
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Trust a key from now on, in all systems that you build
    Trust {
        /// The name of a key of yours, a key, or a file with one; never a secret half
        #[arg(value_name = "FILE")]
        file: String,
        /// For whose programs: a publisher, `name-*`, or `*`
        #[arg(long = "for", value_name = "PUBLISHERS")]
        publishers: String,
        /// It may sign whole systems too
        #[arg(long)]
        systems: bool,
        /// It may publish native code, which runs in the kernel's own domain, and certify others for that
        #[arg(long)]
        native: bool,
    },
    /// Say with a key of yours that another key may sign for a publisher
    Certify(CertifyArguments),
    /// Keep the certificates that somebody issued for a key of yours
    Import {
        /// What you call the key
        #[arg(value_name = "NAME")]
        name: String,
        /// What `sing key certify` wrote
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Take nothing any more that a certificate or key stands for, in all systems that you build
    Revoke {
        /// Serial number of the certificate, or the key
        #[arg(value_name = "SERIAL_OR_KEY")]
        what: String,
    },
}

/// `sing key certify`.
#[derive(Debug, Args)]
pub struct CertifyArguments {
    /// The key to certify: the name of one of yours, a key, or a file with one; never a secret half
    #[arg(value_name = "KEY")]
    pub key: String,
    /// The key of yours that says so
    #[arg(long, value_name = "NAME")]
    pub with: String,
    /// For whose programs: a publisher, or `name-*` for all whose names begin so
    #[arg(long = "for", value_name = "PUBLISHERS")]
    pub publishers: String,
    /// It may certify others, and signs no packages itself
    #[arg(long)]
    pub certifier: bool,
    /// It may publish native code, which runs in the kernel's own domain; without this, scripts only
    #[arg(long)]
    pub native: bool,
    /// Write the certificates here; standard output when not given
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `sing graph`.
#[derive(Debug, Args)]
pub struct GraphArguments {
    /// Write the SVG here; standard output when not given
    #[arg(short = 'o', long = "output", value_name = "FILE.svg")]
    pub output: Option<PathBuf>,
    /// System: its manifest or image, or the name of one in systems/
    #[arg(long, value_name = "FILE|NAME", default_value = "hosted")]
    pub system: PathBuf,
    /// Start the system and draw the SIPs and channels it then has
    #[arg(long)]
    pub running: bool,
    /// Draw what `channels --json` printed in a running system; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "running")]
    pub from: Option<PathBuf>,
}

/// `sing contract`.
#[derive(Debug, Args)]
pub struct ContractArguments {
    /// Name of the contract, such as Directory
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How to show it
    #[arg(long, value_enum, default_value = "svg")]
    pub format: ContractFormat,
    /// Write it here; standard output when not given
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How `sing contract` shows a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ContractFormat {
    /// A picture
    Svg,
    /// A model for the checker `spin`
    Promela,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn run_takes_several_disks_and_commands() {
        let parsed = CommandLine::try_parse_from(["sing", "run", "--disk", "a", "--disk", "b", "-c", "ls; cat x"])
            .expect("a legal command line");
        let Command::Run(run) = parsed.command else { panic!("not run") };
        assert_eq!(run.disk.len(), 2);
        assert_eq!(run.commands.as_deref(), Some("ls; cat x"));
    }

    #[test]
    fn run_takes_a_bare_machine() {
        let words = ["sing", "run", "--machine", "microvm", "--smp", "4", "--mem", "1G", "--accel", "tcg", "--net"];
        let Command::Run(run) = CommandLine::try_parse_from(words).expect("a legal command line").command else {
            panic!("not run")
        };
        assert_eq!(
            (run.machine, run.processors, run.accel),
            (Some(MachineName::Microvm), Some(4), Some(Acceleration::Tcg))
        );
        assert_eq!(run.mem.map(|size| size.mebibytes), Some(1024));
    }

    #[test]
    fn memory_is_in_mebibytes_or_gibibytes() {
        let size = |text: &str| text.parse::<MemorySize>().ok().map(|size| size.mebibytes);
        assert_eq!([size("64"), size("64M"), size("2G")], [Some(64), Some(64), Some(2048)]);
        for bad in ["", "M", "0", "-1", "64K", "64MB", "9999999999", "9999999G", "6 4"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}
