//! `sing bench`: measures the system's operations and Linux's counterparts in the same run, and shows both beside
//! Singularity's figures of 2007 and the targets.
//!
//! Hosted figures are cycles, on one processor for both systems: with more, a yield has no other thread to switch to.
//! A second run uses every processor of the host. Figures in QEMU are instructions, each of which advances the guest's
//! time-stamp counter by one. Both sides print medians, as lines `bench NAME FIGURE`. Deliberately not here: the
//! measurements, in `benches/` and, for Linux, `benches/linux`.

pub mod bare;
pub mod boot;
pub mod chart;
pub mod compiler;
pub mod debian_kernel;
pub mod disk;
pub mod domains;
pub mod images;
pub mod initramfs;
pub mod install;
pub mod links;
pub mod linux_guest;
pub mod pairs;
pub mod safety;
pub mod table;
pub mod wasm;
pub mod web;

use std::borrow::Borrow;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;

use crate::command_line::{BenchArguments, BenchSubject, ROUNDS};
use sing::builder::UnsafeTests;
use sing::cargo;
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::process::{MachineOutput, run_machine};
use sing::repository::{Repository, write_whole};
use sing::systems::{self, Platform};

use bare::Machine;
use table::{Figures, Unit, figures};

/// Timeout of a measurement.
const LIMIT: Duration = Duration::from_secs(900);
/// Memory of a machine in QEMU, for both systems.
const MEBIBYTES: u32 = 2048;
/// Other live SIPs or Linux processes during measurements on bare machines.
const BARE_CROWD: u32 = 10_000;
/// Guest time advances by one nanosecond per instruction, and skips idle time; both guests get the same processor
/// model, which copies eight bytes per instruction: with fast string instructions each byte would count as one.
const COUNTING: [&str; 4] = ["-icount", "shift=0,sleep=off", "-cpu", "max,-erms,-fsrm"];

/// `sing bench`. Returns 1 if an operation could not be measured; a missed target is shown, but is not a failure.
///
/// # Errors
/// The system or the measuring program cannot be built or run, or an option does not apply to the subject.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    refuse_options_of_others(arguments)?;
    match arguments.what {
        BenchSubject::Table => bench_table(repository, arguments),
        BenchSubject::Pairs => pairs::bench(repository, arguments),
        BenchSubject::Boot => boot::bench(repository, arguments),
        BenchSubject::Disk => disk::bench(repository, arguments),
        BenchSubject::Web => web::bench(repository, arguments),
        BenchSubject::Links => links::bench(repository, arguments),
        BenchSubject::Install => install::bench(repository, arguments),
        BenchSubject::Domains => domains::bench(repository, arguments),
        BenchSubject::Safety => safety::bench(repository, arguments),
        BenchSubject::Images => images::bench(repository, arguments),
        BenchSubject::Wasm => wasm::bench(repository, arguments),
        BenchSubject::Compiler => compiler::bench(repository, arguments),
    }
}

/// Refuses options that have no effect on the subject.
fn refuse_options_of_others(arguments: &BenchArguments) -> Outcome<()> {
    use BenchSubject::{Boot, Compiler, Disk, Domains, Install, Links, Pairs, Safety, Table, Wasm, Web};
    // `disk` reports its own error for other machines.
    let given: [(&str, bool, &[BenchSubject]); 8] = [
        (
            "--machine",
            arguments.machine != MachineName::Hosted,
            &[Table, Pairs, Boot, Disk, Web, Domains, Safety, Compiler],
        ),
        ("--linux-kernel", arguments.linux_kernel.is_some(), &[Table, Web, Domains]),
        ("--rounds", arguments.rounds != ROUNDS, &[Disk, Web, Links, Safety, Wasm, Compiler]),
        ("--system", arguments.system.is_some(), &[Web, Links, Install]),
        ("--tap", arguments.tap.is_some(), &[Web]),
        ("--only", arguments.only.is_some(), &[Disk, Web, Links]),
        ("--charts", arguments.charts.is_some(), &[Disk, Domains]),
        ("--functions", arguments.functions, &[Web]),
    ];
    let word = |subject: &BenchSubject| {
        subject.to_possible_value().map_or_else(String::new, |value| format!("`{}`", value.get_name()))
    };
    match given.iter().find(|(_, given, subjects)| *given && !subjects.contains(&arguments.what)) {
        None => Ok(()),
        Some((option, _, subjects)) => {
            let subjects: Vec<String> = subjects.iter().map(word).collect();
            Err(Failure::new(format!("{option} does not apply to {}", word(&arguments.what)))
                .remedy(format!("remove it; it applies to {}", subjects.join(", "))))
        }
    }
}

fn bench_table(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let (ours, linux, unit) = match arguments.machine {
        MachineName::Hosted => (measure_hosted(repository, 1)?, measure_linux(repository)?, Unit::Cycles),
        machine => {
            let linux = linux_guest::measure(repository, arguments.linux_kernel.as_deref(), &COUNTING)?;
            (measure_bare(repository, machine)?, linux, Unit::Instructions)
        }
    };
    print!("{}", table::table(unit, &ours, &linux));
    print!("{}", table::crowded(&ours, 1));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors > 1 && unit == Unit::Cycles {
        print!("{}", table::crowded(&measure_hosted(repository, processors)?, processors));
    }
    finish(arguments, &table::json_list(unit, &ours, &linux), &table::missing(&ours))
}

/// Writes the figures to the file that is asked for. Returns 1 if some are missing, which it names.
///
/// # Errors
/// The file cannot be written.
fn finish(arguments: &BenchArguments, json: &str, missing: &[impl Borrow<str>]) -> Outcome<u8> {
    if let Some(path) = &arguments.json {
        write_whole(path, json.as_bytes())?;
    }
    if missing.is_empty() {
        return Ok(0);
    }
    eprintln!("sing: not measured: {}", missing.join(", "));
    Ok(1)
}

fn measure_hosted(repository: &Repository, processors: usize) -> Outcome<Figures> {
    run_hosted(repository, processors as u32, "bench")
}

/// Runs the commands on the hosted machine and returns their figures.
fn run_hosted(repository: &Repository, processors: u32, commands: &str) -> Outcome<Figures> {
    let manifest = repository.system_manifest("bench".as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
    command.arg("--parameter").arg(format!("commands={commands}"));
    printed_figures(run_machine(command, LIMIT)?, &format!("run --system bench -c '{commands}'"))
}

/// The system on a bare machine with one processor, on which each instruction counts.
fn measure_bare(repository: &Repository, kind: MachineName) -> Outcome<Figures> {
    let commands = format!("bench --crowd {BARE_CROWD}");
    let machine = bare_machine(kind, 1, &COUNTING, &commands);
    printed_figures(machine.run(repository)?, &machine.way())
}

/// A machine with the benchmark's system.
fn bare_machine<'a>(kind: MachineName, processors: u32, qemu: &'a [&'a str], commands: &'a str) -> Machine<'a> {
    Machine {
        kind,
        processors,
        mebibytes: MEBIBYTES,
        system: "bench-bare",
        parameters: &[],
        domains: None,
        folder: None,
        qemu,
        commands,
    }
}

/// Returns the figures in a machine's output; `way` is the command that reproduces the run.
fn printed_figures(output: MachineOutput, way: &str) -> Outcome<Figures> {
    let figures = figures(&output.text);
    match output.problem {
        Some(problem) if figures.is_empty() => Err(Failure::new(format!("the benchmark gave no figures: {problem}"))
            .details(output.text)
            .remedy(format!("check the output of `cargo sing {way}`"))),
        Some(problem) => {
            eprintln!("sing: {problem}; using the figures printed before it");
            Ok(figures)
        }
        None => Ok(figures),
    }
}

fn measure_linux(repository: &Repository) -> Outcome<Figures> {
    let program = linux_program(repository)?;
    let output = Command::new(&program).output().map_err(|error| Failure::file("start", &program, &error))?;
    Ok(figures(&String::from_utf8_lossy(&output.stdout)))
}

/// Builds the program that measures Linux.
fn linux_program(repository: &Repository) -> Outcome<PathBuf> {
    let mut command = cargo::command(repository);
    command.args(["build", "--release", "--package", "bench-linux", "--manifest-path"]);
    command.arg(repository.base().join("Cargo.toml")).arg("--target-dir").arg(repository.cargo_target());
    let made = cargo::build(command, "the measurements of Linux", 2)?;
    made.get("bench-linux").map(PathBuf::from).ok_or_else(|| Failure::new("cargo produced no program bench-linux"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{Command, CommandLine};
    use clap::Parser;

    fn arguments(words: &str) -> BenchArguments {
        let parsed = CommandLine::try_parse_from(["sing", "bench"].into_iter().chain(words.split_whitespace()));
        let Command::Bench(arguments) = parsed.expect("a legal command line").command else { panic!("not bench") };
        arguments
    }

    #[test]
    fn an_option_of_something_else_is_refused() {
        for words in [
            "install --machine qemu",
            "install --rounds 5",
            "images --machine qemu",
            "install --only read",
            "install --tap tap0",
            "install --charts folder",
            "install --linux-kernel file",
            "table --system web",
            "pairs --only x",
            "boot --machine qemu --rounds 9",
            "web --charts folder",
            "disk --functions",
            "domains --machine qemu --rounds 5",
            "wasm --machine qemu",
            "compiler --only x",
        ] {
            let refused = refuse_options_of_others(&arguments(words)).expect_err(words).to_string();
            assert!(refused.contains("does not apply to"), "{words}: {refused}");
        }
        for words in [
            "",
            "install --system web --json file",
            "disk --rounds 5 --only read --charts folder",
            "web --functions --system web --tap tap0 --machine qemu --linux-kernel file",
            "--machine qemu --linux-kernel file",
            "domains --machine qemu --linux-kernel file --charts folder --json file",
            "safety --machine qemu --rounds 5 --json file",
            "wasm --rounds 5 --json file",
            "compiler --rounds 5 --json file",
        ] {
            assert_eq!(refuse_options_of_others(&arguments(words)), Ok(()), "{words}");
        }
    }
}
