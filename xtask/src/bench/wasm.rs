//! `sing bench wasm`: WebAssembly programs beside native ones and wasmtime, in the same run and with the same modules.
//!
//! Sides take turns, so that other load of the host affects all. Of what is computed, which is the same work each time, the
//! shortest turn counts, of everything else the median. What a side computed is compared, too.
//! [`compute`] has the workloads, [`life`] start, memory and installation, [`doors`] one program built in both ways.
//! Deliberately not here: the measurements, in `benches/` and, for wasmtime, `benches/wasmtime`.

mod compute;
mod disk;
mod doors;
mod host;
mod life;
mod machine;
mod report;
mod side;
mod wasmtime;

use sing::failure::Outcome;
use sing::repository::Repository;

use crate::bench::finish;
use crate::command_line::BenchArguments;

use machine::Machines;
use report::Measured;
use wasmtime::Wasmtime;

/// Rounds at most of what is measured often within each.
const MAX_LONG_ROUNDS: usize = 3;

/// `sing bench wasm`. Returns 1 if something could not be measured; a missed target is shown, but is not a failure.
///
/// # Errors
/// The systems cannot be built or run, or two sides computed different things.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let wasmtime = Wasmtime::build(repository);
    let machines = Machines::prepare(repository)?;
    let rounds = usize::from(arguments.rounds);
    let mut measured = Measured {
        compute: compute::measure(repository, &machines, wasmtime.as_ref(), rounds)?,
        ..Measured::default()
    };
    let rounds = rounds.min(MAX_LONG_ROUNDS);
    for round in 1..=rounds {
        eprintln!("sing: round {round} of {rounds}: start, installation, one program in both ways");
        measured.life.push(life::turn(&machines, wasmtime.as_ref())?);
        measured.doors.push(doors::turn(&machines)?);
    }
    eprintln!("sing: {} instances alive", life::ALIVE);
    measured.alive = life::alive(&machines, wasmtime.as_ref())?;
    measured.sizes = doors::sizes(repository, &machines)?;
    print!("{}", measured.table());
    finish(arguments, &measured.json(), &measured.missing())
}
