//! The workloads: ten kernels in Rust, QuickJS with a program, SQLite with statements.

use std::collections::BTreeMap;

use sing::failure::{Failure, Outcome};
use sing::repository::Repository;

use super::host::Host;
use super::machine::Machines;
use super::side::{SIDES, Side};
use super::wasmtime::Wasmtime;
use crate::bench::table::figures;

/// The module of the kernels.
const KERNELS_MODULE: &str = "benches/compute-wasm/bench-compute-wasm.wasm";
/// Ending of the name of what a kernel computed.
const SUM: &str = "_sum";

/// A program of others, with what it is given to do.
pub struct Program {
    /// Name of its figure.
    pub name: &'static str,
    /// The folder with its module and the script that builds it.
    pub port: &'static str,
    /// The module, below `ports/`.
    pub module: &'static str,
    /// Its words.
    pub words: &'static [&'static str],
    /// Name of the file with its work, on the disk.
    pub work: &'static str,
    /// Whether that file is its standard input; else it is its last word.
    pub is_input: bool,
}

/// They are in the tree as modules.
pub const PROGRAMS: [Program; 2] = [
    Program { name: "quickjs", port: "js", module: "js/js.wasm", words: &[], work: "workload.js", is_input: false },
    Program {
        name: "sqlite",
        port: "sqlite",
        module: "sqlite/sqlite.wasm",
        words: &[":memory:"],
        work: "workload.sql",
        is_input: true,
    },
];

impl Program {
    /// The command for a shell.
    fn command(&self, side: Side) -> String {
        let input = if self.is_input { "< " } else { "" };
        let name = installed(self.port, side);
        [&[&*name], self.words, &[&*format!("{input}{}", self.work)]].concat().join(" ")
    }
}

/// Name of a program here: it is installed once more with checks (`benches/*-checked`).
fn installed(name: &str, side: Side) -> String {
    if side == Side::Checks { format!("{name}-checked") } else { name.into() }
}

/// A side's turn: nanoseconds by workload, and what each computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// By kernel, `quickjs`, `sqlite`.
    pub times: BTreeMap<String, u64>,
    /// What came out, by the same names.
    pub results: BTreeMap<String, String>,
}

/// The turns of each round, by side.
pub type Rounds = Vec<BTreeMap<Side, Turn>>;

/// Has all sides do all workloads in turn.
///
/// # Errors
/// A machine cannot be run, or two sides computed different things.
pub fn measure(
    repository: &Repository,
    machines: &Machines,
    wasmtime: Option<&Wasmtime>,
    rounds: usize,
) -> Outcome<Rounds> {
    let host = Host::build(repository);
    let mut all = Rounds::new();
    for round in 0..rounds {
        let mut turns = BTreeMap::new();
        for step in 0..SIDES.len() {
            // None is always the first after a pause.
            let side = SIDES[(round + step) % SIDES.len()];
            if side.is_wasmtime() && wasmtime.is_none() {
                continue;
            }
            eprintln!("sing: round {} of {rounds}: computing, {}", round + 1, side.word().replace('_', " "));
            turns.insert(side, turn(repository, machines, wasmtime, &host, side)?);
        }
        compare(&turns)?;
        all.push(turns);
    }
    Ok(all)
}

fn turn(
    repository: &Repository,
    machines: &Machines,
    wasmtime: Option<&Wasmtime>,
    host: &Host,
    side: Side,
) -> Outcome<Turn> {
    let mut turn = Turn::default();
    match side {
        Side::Native => {
            turn.add_kernels(&machines.compute("bench-compute")?);
            for program in &PROGRAMS {
                if let Some((time, text)) = host.run(repository, program)? {
                    turn.add(program.name, time, &text);
                }
            }
        }
        Side::Guarded | Side::Checks => {
            turn.add_kernels(&machines.compute(&installed("bench-compute-wasm", side))?);
            for program in &PROGRAMS {
                // The first start of a program in a machine checks its image, as wasmtime's side compiles before its turn.
                let once = format!("bench-wasm --folder /fs/disk0 command '{}'", program.command(side));
                let text = machines.compute(&format!("{once}; {once}"))?;
                let second = text.rsplit_once("result").map_or("", |(_, second)| second);
                let time = figures(second).get("command_ns").copied().unwrap_or(0);
                turn.add(program.name, time, &text);
            }
        }
        Side::Wasmtime | Side::WasmtimeChecks => {
            let Some(wasmtime) = wasmtime else { return Ok(turn) };
            let is_checked = side == Side::WasmtimeChecks;
            turn.add_kernels(&wasmtime.run(is_checked, repository.base().join(KERNELS_MODULE).as_ref(), None)?);
            for program in &PROGRAMS {
                let module = repository.base().join("ports").join(program.module);
                let text = wasmtime.run(is_checked, &module, Some(program))?;
                let time = figures(&text).get("run_ns").copied().unwrap_or(0);
                turn.add(program.name, time, &text);
            }
        }
    }
    Ok(turn)
}

impl Turn {
    /// Adds what the kernels printed.
    fn add_kernels(&mut self, text: &str) {
        let printed = figures(text);
        let is_kernel = |name: &&String| printed.contains_key(&format!("{name}{SUM}"));
        for name in printed.keys().filter(is_kernel) {
            self.times.insert(name.clone(), printed[name]);
            self.results.insert(name.clone(), printed[&format!("{name}{SUM}")].to_string());
        }
    }

    /// Adds a program's time, and the line with its result.
    fn add(&mut self, name: &str, time: u64, text: &str) {
        if let (1.., Some(result)) = (time, text.lines().find(|line| line.starts_with("result"))) {
            self.times.insert(name.into(), time);
            self.results.insert(name.into(), result.trim_end().into());
        }
    }
}

/// Sides that computed different things were not measured doing the same.
fn compare(turns: &BTreeMap<Side, Turn>) -> Outcome<()> {
    let mut wanted: BTreeMap<&str, (&str, Side)> = BTreeMap::new();
    for (side, turn) in turns {
        for (name, result) in &turn.results {
            let (known, other) = wanted.entry(name).or_insert((result, *side));
            if *known != result {
                return Err(Failure::new(format!(
                    "`{name}` computed other things: `{known}` in {}, `{result}` in {}",
                    other.word(),
                    side.word()
                ))
                .remedy("build the modules again from their sources (`build.sh` beside them)"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_its_work() {
        assert_eq!(PROGRAMS[0].command(Side::Guarded), "js workload.js");
        assert_eq!(PROGRAMS[1].command(Side::Checks), "sqlite-checked :memory: < workload.sql");
    }

    #[test]
    fn kernels_have_a_time_and_a_sum() {
        let mut turn = Turn::default();
        turn.add_kernels("bench sort 12\nbench sort_sum 7\nbench run_ns 99\n");
        turn.add("sqlite", 5, "noise\nresult|1|2\n");
        turn.add("quickjs", 5, "a trap\n");
        assert_eq!(turn.times, BTreeMap::from([("sort".into(), 12), ("sqlite".into(), 5)]));
        assert_eq!(turn.results["sqlite"], "result|1|2");
    }

    #[test]
    fn sides_that_computed_different_things_are_refused() {
        let with = |sum: &str| Turn { results: BTreeMap::from([("sort".into(), sum.into())]), ..Turn::default() };
        let turns = |other| BTreeMap::from([(Side::Native, with("1")), (Side::Wasmtime, with(other))]);
        assert_eq!(compare(&turns("1")), Ok(()));
        let refused = compare(&turns("2")).expect_err("they differ").to_string();
        assert!(refused.contains("`1` in native, `2` in wasmtime"), "{refused}");
    }
}
