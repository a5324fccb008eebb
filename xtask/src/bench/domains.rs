//! `sing bench domains`: what hardware protection costs, in the configurations of *Deconstructing Process Isolation*.
//!
//! The same system with the same images starts in each configuration under a QEMU that counts instructions, and Linux
//! in the same QEMU, in the same run. Instruction counts do not show the cost of translation, so that SIP-Phys and
//! SIP-Page differ only by the work of mapping; on a machine with KVM or on metal they would. The hosted machine is
//! measured in cycles (`hosted`). Deliberately not here: the measurements, in `benches/suite`.

mod charts;
pub mod files;
mod hosted;
mod rows;

use crate::bench::bare::Machine;
use crate::bench::table::Figures;
use crate::bench::{COUNTING, bare_machine, finish, linux_guest, printed_figures};
use crate::command_line::BenchArguments;
use sing::command_line::MachineName;
use sing::domains::Configuration;
use sing::failure::Outcome;
use sing::repository::Repository;

use rows::{CONFIGURATIONS, Measured};

/// Instruction counts hardly vary.
const COMMANDS: &str = "bench --crowd 0 --rounds 5";

/// `sing bench domains`. Returns 1 if an operation could not be measured; a missed target is shown, but is not a
/// failure.
///
/// # Errors
/// The system or Linux cannot be built or run.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    if arguments.machine == MachineName::Hosted {
        return hosted::bench(repository, arguments);
    }
    let mut here: [Figures; CONFIGURATIONS.len()] = Default::default();
    for (figures, configuration) in here.iter_mut().zip(CONFIGURATIONS) {
        *figures = measure(repository, arguments.machine, configuration)?;
    }
    let linux = linux_guest::measure(repository, arguments.linux_kernel.as_deref(), &COUNTING)?;
    let measured = Measured { here, linux };
    print!("{}", measured.table());
    if let Some(folder) = &arguments.charts {
        charts::write(folder, &measured)?;
    }
    finish(arguments, &measured.json(), &measured.missing())
}

fn measure(repository: &Repository, kind: MachineName, configuration: Configuration) -> Outcome<Figures> {
    let machine = Machine { domains: Some(configuration), ..bare_machine(kind, 1, &COUNTING, COMMANDS) };
    let mut figures = printed_figures(machine.run(repository)?, &machine.way())?;
    let commands = files::commands();
    let machine = Machine { system: "bench-files", commands: &commands, ..machine };
    // A nanosecond is an instruction, and nothing waits.
    figures.extend(files::figures(&printed_figures(machine.run(repository)?, &machine.way())?));
    Ok(figures)
}
