//! `sing bench domains` on the hosted machine: cycles in the configurations that it has, beside Linux's own.

use serde_json::{Map, Value, json};
use sing::builder::UnsafeTests;
use sing::domains::{self, Configuration};
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::Repository;
use sing::systems::{self, Platform};
use std::process::Command;

use super::files::{self, DRIVER_ROWS, WEB_FILES};
use super::rows::{ROWS, Row, row_without_paper};
use crate::bench::table::{Figures, grouped};
use crate::bench::{LIMIT, finish, measure_linux, printed_figures};
use crate::command_line::BenchArguments;

const CONFIGURATIONS: [Configuration; 3] = [Configuration::SipPhys, Configuration::HipR3, Configuration::HipR3S];
const HIP_R3_S: usize = 2;
const COMMANDS: &str = "bench --crowd 0";
const FILES: Row = row_without_paper(WEB_FILES, "WebFiles, an access");

/// Operations across domains, and what of Linux they are to be below: a round trip over a pair of sockets, a program
/// started by posix_spawn.
const TARGETS: [(&str, &str, &str); 3] = [
    ("abi_call", "message_1", "ABI call from a domain, below a round trip over Linux's sockets"),
    ("message_1", "message_1", "1 byte across two domains, below the same"),
    ("process_create", "process_create", "process in a domain of its own, below posix_spawn"),
];

/// Measures, and prints the table. Returns 1 if an operation could not be measured.
///
/// # Errors
/// The system or the measuring program cannot be built or run; charts are asked for.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    if arguments.charts.is_some() {
        return Err(Failure::new("the charts are of bare machines").remedy("add --machine qemu, or remove --charts"));
    }
    let mut here: [Figures; CONFIGURATIONS.len()] = Default::default();
    for (figures, configuration) in here.iter_mut().zip(CONFIGURATIONS) {
        *figures = measure(repository, configuration)?;
    }
    let measured = Measured { here, linux: measure_linux(repository)? };
    print!("{}", measured.table());
    finish(arguments, &measured.json(), &measured.missing())
}

fn measure(repository: &Repository, configuration: Configuration) -> Outcome<Figures> {
    let mut figures = run(repository, "bench", configuration, COMMANDS)?;
    figures.extend(files::figures(&run(repository, "bench-files-hosted", configuration, &files::commands())?));
    Ok(figures)
}

/// Runs commands in a system and returns the figures that they print.
fn run(repository: &Repository, system: &str, configuration: Configuration, commands: &str) -> Outcome<Figures> {
    let manifest = domains::system_in(repository, &repository.system_manifest(system.as_ref())?, configuration)?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).args(["--processors", "1"]);
    command.arg("--parameter").arg(format!("commands={commands}"));
    let way = format!("run --system {system} --domains {} -c '{commands}'", configuration.word());
    printed_figures(run_machine(command, LIMIT)?, &way)
}

struct Measured {
    here: [Figures; CONFIGURATIONS.len()],
    linux: Figures,
}

impl Measured {
    fn missing(&self) -> Vec<String> {
        let missing = |(configuration, figures): (Configuration, &Figures)| {
            let all = ROWS.iter().chain([&FILES]).chain(&DRIVER_ROWS);
            let rows = all.filter(|row| !figures.contains_key(row.name));
            rows.map(|row| format!("{} in {}", row.name, configuration.word())).collect::<Vec<_>>()
        };
        CONFIGURATIONS.into_iter().zip(&self.here).flat_map(missing).collect()
    }

    fn table(&self) -> String {
        let words = CONFIGURATIONS.map(Configuration::word);
        let mut text = line("operation (cycles, medians)", words, "Linux");
        for row in &ROWS {
            let shown = |figures: &Figures| figures.get(row.name).map_or("-".into(), |figure| grouped(*figure));
            let cells = self.here.each_ref().map(shown);
            text.push_str(&line(row.label, cells.each_ref().map(String::as_str), &shown(&self.linux)));
        }
        text.push_str(&line("\nfiles and disk (ns)", words, ""));
        for row in [&FILES].into_iter().chain(&DRIVER_ROWS) {
            let shown = |figures: &Figures| figures.get(row.name).map_or("-".into(), |figure| grouped(*figure));
            let cells = self.here.each_ref().map(shown);
            text.push_str(&line(row.label, cells.each_ref().map(String::as_str), ""));
        }
        text.push_str(&format!("\n{:<66} {:>10} {:>10}\n", "target (cycles)", "at most", "is"));
        for (what, is, at_most) in self.targets() {
            let verdict = match (is, at_most) {
                (Some(is), Some(at_most)) if is <= at_most => "ok",
                (Some(_), Some(_)) => "missed",
                _ => "-",
            };
            let shown = |figure: Option<u64>| figure.map_or("-".into(), grouped);
            text.push_str(&format!("{what:<66} {:>10} {:>10}  {verdict}\n", shown(at_most), shown(is)));
        }
        text
    }

    /// The targets: what, its figure, the largest that is allowed.
    fn targets(&self) -> [(&'static str, Option<u64>, Option<u64>); TARGETS.len()] {
        TARGETS
            .map(|(ours, linux, what)| (what, self.here[HIP_R3_S].get(ours).copied(), self.linux.get(linux).copied()))
    }

    fn json(&self) -> String {
        let each = |name: &str| -> Value {
            let pairs = CONFIGURATIONS.iter().zip(&self.here);
            pairs.map(|(one, figures)| (one.word().to_string(), json!(figures.get(name)))).collect::<Map<_, _>>().into()
        };
        let rows = ROWS
            .iter()
            .map(|row| json!({ "name": row.name, "cycles": each(row.name), "linux_cycles": self.linux.get(row.name) }));
        let files = [&FILES]
            .into_iter()
            .chain(&DRIVER_ROWS)
            .map(|row| json!({ "name": row.name, "nanoseconds": each(row.name) }));
        let targets =
            self.targets().map(|(what, is, at_most)| json!({ "what": what, "cycles": is, "target_cycles": at_most }));
        format!(
            "{:#}\n",
            json!({ "operations": rows.collect::<Vec<_>>(), "files": files.collect::<Vec<_>>(), "targets": targets })
        )
    }
}

fn line(operation: &str, cells: [&str; CONFIGURATIONS.len()], linux: &str) -> String {
    let [phys, r3, r3_s] = cells;
    format!("{operation:<28} {phys:>11} {r3:>11} {r3_s:>11} {linux:>11}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_held_against_linux_and_missing_ones_named() {
        let figures = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, figure)| (name.to_string(), *figure)).collect();
        let ours = || figures(&[("abi_call", 600), ("message_1", 30_000)]);
        let linux = figures(&[("message_1", 25_000), ("process_create", 300_000)]);
        let measured = Measured { here: [ours(), ours(), ours()], linux };
        let table = measured.table();
        let verdicts: Vec<&str> =
            table.lines().rev().take(3).filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(verdicts, ["-", "missed", "ok"], "{table}");
        assert!(measured.missing().contains(&"process_create in hip-r3-s".to_string()));
        let json: Value = serde_json::from_str(&measured.json()).expect("JSON");
        assert_eq!(json["operations"][0]["cycles"]["hip-r3-s"], 600);
    }
}
