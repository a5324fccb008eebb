//! The command line, as clap reads it. The help texts are these definitions.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::autopsy::arguments::AutopsyArguments;
use crate::builder::UnsafeTests;
use crate::docs::DocsArguments;
use crate::domains::Configuration;
use crate::install::ChangeArguments;
use crate::process_debug::arguments::DebugArguments;
use crate::replay::ReplayArguments;
use crate::simulate::arguments::SimulateArguments;
use crate::system_list::SystemsArguments;
use crate::trace::TraceArguments;

/// Builds, checks, signs, runs, tests and measures Singularity in Rust.
#[derive(Debug, Parser)]
#[command(name = "sing", bin_name = "cargo sing", version, disable_help_subcommand = true)]
pub struct CommandLine {
    /// Do not install host packages: report what is missing, or skip tests
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
    /// Replay a recording of a run, whole or one process alone, or ask who sent a message
    Replay(ReplayArguments),
    /// Run a system on a simulated machine, whose every run is decided by a seed, with faults
    Simulate(SimulateArguments),
    /// Run a system and write what it does, for Perfetto
    Trace(TraceArguments),
    /// Build, check and sign programs, without running them
    Build(BuildArguments),
    /// Start a machine under a debugger, with the symbols of kernel and programs
    Debug(DebugArguments),
    /// Show how programs died: back traces with function names, last messages, endpoints and blocks held
    Autopsy(AutopsyArguments),
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
    /// Create a program: an app, a service, a driver or a web application
    New(NewArguments),
    /// Print the JSON Schema of manifests, for editors
    Schema(SchemaArguments),
    /// Draw the SIPs and channels of a system as SVG
    Graph(GraphArguments),
    /// Show a contract as a picture or a Promela model, or write its bindings for WebAssembly programs
    Contract(ContractArguments),
    /// Write the package file of a program, for others to install
    Package(PackageArguments),
    /// List systems, their locations and contents, and which is the default
    Systems(SystemsArguments),
    /// Install a package into a system, after all checks
    Install(InstallArguments),
    /// Replace an installed program with a newer version
    Upgrade(UpgradeArguments),
    /// Remove a program from a system
    Uninstall(UninstallArguments),
    /// Verify a system image
    Verify(VerifyArguments),
    /// Show an installed program's version, signer and reach
    Explain(ExplainArguments),
    /// Create, certify, trust and revoke keys; alone: show the key that signs builds here
    Key(KeyArguments),
    /// Print the expected measurements of kernel and system
    Measure(MeasureArguments),
    /// Build the documentation and print its location, or print a page
    Docs(DocsArguments),
    /// List dependencies of the images, in the format of the audited list
    Dependencies,
    /// Count the trusted computing base: lines and uses of `unsafe`, crate by crate
    Base(XtaskArguments),
    /// Execute another program, which ends with its parent
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
    /// Disk image, mounted at /fs/disk0, the next at /fs/disk1; FILE:ro: read only
    #[arg(long, value_name = "FILE")]
    pub disk: Vec<PathBuf>,
    /// Host folder, mounted at /fs/NAME; `:ro`: read only; `:follow`: follows links out of it
    #[arg(long, value_name = "[NAME=]PATH")]
    pub folder: Vec<std::ffi::OsString>,
    /// Write the cores of programs that die to this host folder, for `cargo sing autopsy`
    #[arg(long, value_name = "FOLDER")]
    pub cores: Option<PathBuf>,
    /// Number of processors
    #[arg(long, visible_alias = "smp", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub processors: Option<u16>,
    /// Memory of a bare machine, such as 64M or 1G [default: 256M, and 8M for each folder]
    #[arg(long, value_name = "SIZE")]
    pub mem: Option<MemorySize>,
    /// Accelerator of a bare machine [default: auto]
    #[arg(long, value_enum)]
    pub accel: Option<Acceleration>,
    /// Page size of a bare machine's memory mappings [default: largest]
    #[arg(long, value_enum)]
    pub pages: Option<Pages>,
    /// Hardware domains, as the papers measure them [default: those of the system manifest]
    #[arg(long, value_enum, value_name = "CONFIGURATION", conflicts_with = "pages")]
    pub domains: Option<Configuration>,
    /// Give a bare machine a network card
    #[arg(long)]
    pub net: bool,
    /// Serve this folder or disk image over HTTP
    #[arg(long, value_name = "FOLDER_OR_IMAGE")]
    pub web: Option<PathBuf>,
    /// Host port to listen on [default: 8080]
    #[arg(long, value_name = "N", requires = "web", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Host address to listen on: 0.0.0.0 for all, :: to include IPv6 [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", requires = "web", conflicts_with = "tap")]
    pub listen: Option<IpAddr>,
    /// Access log: a host file in an existing folder [default: a file on the machine's second disk]
    #[arg(long, value_name = "FILE", requires = "web")]
    pub access_log: Option<PathBuf>,
    /// Serve the demo applications, too: /hello, and /spec, which accepts posts
    #[arg(long, requires = "web")]
    pub demo: bool,
    /// Serve a path with a web application, followed by its options: '/shop=my-shop currency=EUR'
    #[arg(long, value_name = "/PATH=PROGRAM", requires = "web")]
    pub app: Vec<String>,
    /// Serve until SIGTERM or Ctrl-C, without a shell; implied without a standard input
    #[arg(long, conflicts_with = "commands")]
    pub service: bool,
    /// Log format of a service [default: text]
    #[arg(long, value_enum, value_name = "FORM")]
    pub log: Option<LogForm>,
    /// Connect the machine's network card to this TAP interface of the host; `:plain` disables offloads. The machine has the address 192.168.77.2/24; `--parameter address=...` or `--parameter
    /// dhcp=true` gives it another
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// Additional QEMU argument
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub qemu: Vec<std::ffi::OsString>,
    /// Run shell commands and shut down, with the exit status of the last one
    #[arg(short = 'c', value_name = "COMMANDS")]
    pub commands: Option<String>,
    /// WebAssembly module without a manifest, which becomes a command of the system; a single one runs with the words after `--`, unless -c is given
    #[arg(long, value_name = "FILE", conflicts_with = "web")]
    pub wasm: Vec<PathBuf>,
    /// Folder of the machine, such as /fs/disk0/x, that the program of --wasm sees; PATH::OTHER: under another path
    #[arg(long, value_name = "PATH", requires = "wasm")]
    pub dir: Vec<String>,
    /// Address at which the program of --wasm listens, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS:PORT", requires = "wasm")]
    pub tcp_listen: Vec<String>,
    /// Address to which the program of --wasm is connected when it starts
    #[arg(long, value_name = "HOST:PORT", requires = "wasm")]
    pub tcp_connect: Vec<String>,
    /// Environment variable of the program of --wasm
    #[arg(long, value_name = "NAME=VALUE", requires = "wasm")]
    pub env: Vec<String>,
    /// Record the run for `cargo sing replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Parameter for the first program
    #[arg(long, value_name = "NAME=VALUE")]
    pub parameter: Vec<String>,
    /// Accept test programs that declare `unsafe-for-tests`
    #[arg(long)]
    pub allow_unsafe_tests: bool,
    /// Do not confine the hosted machine by seccomp and Landlock, for debuggers
    #[arg(long)]
    pub unconfined: bool,
    /// Words for the program of --wasm
    #[arg(last = true, requires = "wasm")]
    pub words: Vec<String>,
}

/// Kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MachineName {
    /// A process of this host
    Hosted,
    /// A PC with PCI, in QEMU
    #[value(alias = "q35")]
    Qemu,
    /// QEMU's minimal machine, which boots fastest
    Microvm,
}

/// Log format of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogForm {
    /// Lines of time, program and text
    Text,
    /// One JSON object per line, with `time`, `program` and `text`
    Json,
}

/// Page size of memory mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Pages {
    /// The largest supported that fit
    Largest,
    /// 4 KiB only
    #[value(name = "4k")]
    Small,
}

/// Accelerator of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Acceleration {
    /// KVM if it works, otherwise TCG
    Auto,
    /// QEMU's translator
    Tcg,
    /// Hardware virtualisation
    Kvm,
}

/// An amount of memory, in whole mebibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySize {
    /// Number of them.
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
            None => Err("use mebibytes or gibibytes, such as 64M or 1G".into()),
        }
    }
}

/// `sing attached`.
#[derive(Debug, Args)]
pub struct AttachedArguments {
    /// The program and its arguments
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
    /// Programs to build; default: all
    #[arg(value_name = "PROGRAM")]
    pub programs: Vec<String>,
    /// Build a system image and the programs in its manifest
    #[arg(long, value_name = "FILE", conflicts_with = "programs")]
    pub system: Option<PathBuf>,
    /// Accept test programs that declare `unsafe-for-tests`
    #[arg(long)]
    pub allow_unsafe_tests: bool,
    /// Print a list as JSON
    #[arg(long)]
    pub json: bool,
}

/// `sing image`.
#[derive(Debug, Args)]
pub struct ImageArguments {
    /// Output file
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: PathBuf,
    /// System manifest: a file, or the name of one in systems/
    #[arg(long, value_name = "FILE", default_value = "bare")]
    pub system: PathBuf,
    /// Boot method
    #[arg(long, value_enum, default_value = "iso")]
    pub format: ImageFormat,
    /// Run shell commands and shut down
    #[arg(short = 'c', value_name = "COMMANDS")]
    pub commands: Option<String>,
    /// Parameter for the first program
    #[arg(long, value_name = "NAME=VALUE")]
    pub parameter: Vec<String>,
}

/// Boot method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ImageFormat {
    /// Optical disc or USB stick
    Iso,
}

/// `sing test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Run long tests, too
    #[arg(long)]
    pub long: bool,
    /// Run only tests whose names contain this, or one tier: unit, conformance, end-to-end, fuzzing; or TIER:NAME
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
}

/// `sing bench` and `sing base`, whose words `xtask` reads.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct XtaskArguments {
    /// Arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}

/// `sing check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// A .contract file or a folder of them, a manifest, or a system's name, manifest or image; default: everything
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Check whether programs of a system can wait for each other for ever; default: of all systems
    #[arg(long)]
    pub deadlock: bool,
    /// Print a list as JSON
    #[arg(long)]
    pub json: bool,
}

/// `sing bill`.
#[derive(Debug, Args)]
pub struct BillArguments {
    /// A program to build, or a package file
    #[arg(value_name = "PROGRAM_OR_FILE")]
    pub program: String,
    /// Print CycloneDX JSON
    #[arg(long)]
    pub cyclonedx: bool,
}

/// `sing new`.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// Kind of program
    #[arg(value_enum)]
    pub kind: crate::new::Kind,
    /// Name
    pub name: String,
    /// Publisher
    #[arg(long, value_name = "NAME", default_value = "singularity")]
    pub publisher: String,
    /// A web application as a WebAssembly module
    #[arg(long)]
    pub wasm: bool,
    /// Language of a native program; default: c
    #[arg(long, value_enum)]
    pub language: Option<crate::new::Language>,
}

/// `sing schema`.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Kind of manifest
    #[arg(value_enum, default_value = "program")]
    pub of: SchemaSubject,
    /// Output file; default: standard output
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
    /// Sign with this key and its certificates [default: the development key]
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,
    /// Accept a test program that declares `unsafe-for-tests`
    #[arg(long)]
    pub allow_unsafe_tests: bool,
    /// Output file [default: PROGRAM.package]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `sing install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    /// The package file
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,
    /// Start an instance of it at boot
    #[arg(long)]
    pub at_boot: bool,
    /// Paths that it may bind: `*` is a name, `**` any path
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
    /// Allow permissions, devices and endpoints that the old version lacks
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
    /// Kind of machine
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
    /// Create a key
    New {
        /// Name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List your keys, trusted roots and revocations
    List,
    /// Show the public half of one of your keys, and its certificates
    Show {
        /// Name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Trust a key in all systems that you build
    Trust {
        /// The name of a key of yours, a key, or a file with one; never a secret half
        #[arg(value_name = "FILE")]
        file: String,
        /// Publisher that it may sign for: a name, `name-*`, or `*`
        #[arg(long = "for", value_name = "PUBLISHERS")]
        publishers: String,
        /// Allow signing systems, too
        #[arg(long)]
        systems: bool,
        /// Allow publishing native code, which runs in the kernel's domain, and certifying others for it
        #[arg(long)]
        native: bool,
    },
    /// Certify with one of your keys that another key may sign for a publisher
    Certify(CertifyArguments),
    /// Import certificates issued for one of your keys
    Import {
        /// Name of the key
        #[arg(value_name = "NAME")]
        name: String,
        /// Output of `sing key certify`
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Revoke a certificate or key in all systems that you build
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
    /// Your key that signs the certificate
    #[arg(long, value_name = "NAME")]
    pub with: String,
    /// Publisher that it may sign for: a name, or `name-*`
    #[arg(long = "for", value_name = "PUBLISHERS")]
    pub publishers: String,
    /// Allow certifying others instead of signing packages
    #[arg(long)]
    pub certifier: bool,
    /// Allow publishing native code, which runs in the kernel's domain; default: scripts only
    #[arg(long)]
    pub native: bool,
    /// Output file; default: standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `sing graph`.
#[derive(Debug, Args)]
pub struct GraphArguments {
    /// Output file; default: standard output
    #[arg(short = 'o', long = "output", value_name = "FILE.svg")]
    pub output: Option<PathBuf>,
    /// System: its manifest or image, or the name of one in systems/
    #[arg(long, value_name = "FILE|NAME", default_value = "hosted")]
    pub system: PathBuf,
    /// Start the system and draw its SIPs and channels
    #[arg(long)]
    pub running: bool,
    /// Draw the output of `channels --json` of a running system; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "running")]
    pub from: Option<PathBuf>,
}

/// `sing contract`.
#[derive(Debug, Args)]
pub struct ContractArguments {
    /// Name of the contract, such as Directory
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Output format
    #[arg(long, value_enum, default_value = "svg")]
    pub format: ContractFormat,
    /// Output file; default: standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What `sing contract` makes of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ContractFormat {
    /// A picture
    Svg,
    /// A model for the checker `spin`
    Promela,
    /// Bindings for WebAssembly programs in Rust, over the crate sip/guest
    WasmRust,
    /// Bindings for WebAssembly programs in C: a header over sip/guest/include/sing_guest.h
    WasmC,
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
