//! `sing bench safety`: what safety by software costs, as in section 4.4 of *Deconstructing Process Isolation*.
//!
//! The same programs run as they are built and without their checks of bounds, divisions and missing values, on kernels
//! with and without the monitor that holds each message to its contract. In each round the four follow one another, so
//! that other load of the host affects all. Nothing of it runs elsewhere: images without checks are refused by every
//! other kernel and tool, kernels without checks start for this bench only, and both stay in its own folder.
//! Deliberately not here: the measurements, in `benches/suite` and `benches/disk`.

mod checks;
mod code;
mod flags;
mod image;
mod machines;
mod report;
mod system;

use std::path::PathBuf;

use crate::bench::domains::files;
use crate::bench::finish;
use crate::bench::table::Figures;
use crate::command_line::BenchArguments;
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;

use machines::{Machine, Monitor};
use report::{Measured, VARIANTS};

/// Output folder, with the kernels; systems last for one run.
const FOLDER: &str = "bench-safety";
/// The first line of a bare machine follows what its firmware wrote.
const OPERATIONS: &str = "echo; bench --crowd 0";

/// `sing bench safety`. Returns 1 if an operation could not be measured.
///
/// # Errors
/// The systems or the machines cannot be built or run.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let kind = arguments.machine;
    let (names, units, rounds) = match kind {
        MachineName::Hosted => (["bench", "bench-files-hosted"], ("cycles", "ns"), arguments.rounds),
        // Instruction counts hardly vary.
        MachineName::Qemu => (["bench-bare", "bench-files"], ("instructions", "instructions"), 1),
        MachineName::Microvm => {
            return Err(Failure::new("safety is measured hosted or on a PC in QEMU").remedy("use --machine qemu"));
        }
    };
    let folder = repository.output(FOLDER);
    let machines = [Monitor::On, Monitor::Off].map(|monitor| Machine::build(repository, &folder, kind, monitor));
    let [monitored, unmonitored] = machines;
    let (monitored, unmonitored) = (monitored?, unmonitored?);
    let systems = Systems { folder: tempfile::tempdir_in(&folder).map_err(|error| cannot_write(&error))?, names };
    let removed =
        names.map(|name| system::write(repository, name, &systems.path(name, false), &systems.path(name, true)));
    let removed = report::joined(removed.into_iter().collect::<Outcome<Vec<_>>>()?);
    let mut measured = Measured { removed, units, rounds: Vec::new() };
    for round in 0..usize::from(rounds) {
        let mut figures: [Figures; VARIANTS.len()] = Default::default();
        for step in 0..VARIANTS.len() {
            // None is always the first after a pause.
            let variant = (round + step) % VARIANTS.len();
            eprintln!("sing: round {} of {rounds}: {}", round + 1, VARIANTS[variant].0);
            let machine = if variant < 2 { &monitored } else { &unmonitored };
            figures[variant] = systems.measure(machine, variant % 2 == 1)?;
        }
        measured.rounds.push(figures);
    }
    print!("{}", measured.table());
    finish(arguments, &measured.json(), &measured.missing())
}

fn cannot_write(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write the systems to measure: {error}")).remedy("check that the disk is not full")
}

/// The systems of a run, which end with it.
struct Systems {
    folder: tempfile::TempDir,
    /// That of the operations, and that of the files.
    names: [&'static str; 2],
}

impl Systems {
    fn path(&self, name: &str, is_unchecked: bool) -> PathBuf {
        let end = if is_unchecked { "unchecked" } else { "checked" };
        self.folder.path().join(format!("{name}-{end}.system"))
    }

    /// Runs all workloads.
    fn measure(&self, machine: &Machine, is_unchecked: bool) -> Outcome<Figures> {
        let [operations, on_disk] = self.names.map(|name| self.path(name, is_unchecked));
        let mut figures = machine.run(&operations, OPERATIONS)?;
        figures.extend(files::figures(&machine.run(&on_disk, &files::commands())?));
        Ok(figures)
    }
}
