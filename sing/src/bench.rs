//! `sing bench`: measures the system's operations and Linux's counterparts in the same run, and shows
//! both beside what Singularity took in 2007 and what is to be reached.
//!
//! The table is of a machine with one processor, and Linux is measured on one: with more, a yield finds
//! nobody to yield to, and costs nothing. The second run, with every processor of the host, shows what is
//! different there. Both sides print lines `bench NAME CYCLES`, medians already. Deliberately not here: the measuring;
//! SIPs in `benches/` measure the system, `benches/linux` measures Linux.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::builder::UnsafeTests;
use crate::cargo;
use crate::command_line::BenchArguments;
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_whole};
use crate::systems::{self, Platform};
use crate::test::run_machine;

const LIMIT: Duration = Duration::from_secs(900);

/// How much dearer an operation may be among many.
const CROWDED_TIMES: f64 = 1.5;

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    /// At most so many cycles.
    Cycles(u64),
    /// At most so many times the figure of another operation.
    Times(f64, &'static str),
}

/// A row of the table.
struct Row {
    name: &'static str,
    operation: &'static str,
    singularity: &'static str,
    target: Target,
}

const fn row(name: &'static str, operation: &'static str, singularity: &'static str, target: Target) -> Row {
    Row { name, operation, singularity, target }
}

/// The costs to reach, beside the figures that the Singularity papers give.
const ROWS: [Row; 11] = [
    row("abi_call", "ABI call", "80-91", Target::Cycles(15)),
    row("thread_yield", "thread yield", "346-365", Target::Cycles(120)),
    row("message_1", "message round trip, 1 byte", "803-1,041", Target::Cycles(400)),
    row("message_64k", "the same, 64 KiB block", "920", Target::Times(1.1, "message_1")),
    row("message_1m", "the same, 1 MiB block", "920", Target::Times(1.1, "message_1")),
    row("select_extra", "switch-receive beyond a receive", "1,600", Target::Cycles(100)),
    row("channel_create", "create and connect a channel", "4,007", Target::Cycles(800)),
    row("name_bind", "bind a name", "39,067", Target::Cycles(8_000)),
    row("thread_create", "create a thread", "16,933", Target::Cycles(3_000)),
    row("process_create", "create, run, end, reap a process", "352,873-388,000", Target::Cycles(60_000)),
    row("message_1_crowded", "round trip among 10,000 SIPs", "-", Target::Times(1.5, "message_1")),
];

/// Figures by name, in cycles.
type Figures = BTreeMap<String, u64>;

/// `sing bench`. Returns 1 when an operation could not be measured; a missed target is no failure, but
/// is shown.
///
/// # Errors
/// The system or the measuring program cannot be built or run.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let ours = measure_system(repository, 1)?;
    let linux = measure_linux(repository)?;
    print!("{}", table(&ours, &linux));
    print!("{}", crowded(&ours, 1));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors > 1 {
        print!("{}", crowded(&measure_system(repository, processors)?, processors));
    }
    if let Some(path) = &arguments.json {
        write_whole(path, json_list(&ours, &linux).as_bytes())?;
    }
    let missing: Vec<&str> = ROWS.iter().map(|row| row.name).filter(|name| !ours.contains_key(*name)).collect();
    if missing.is_empty() {
        return Ok(0);
    }
    eprintln!("sing: not measured: {}", missing.join(", "));
    Ok(1)
}

fn measure_system(repository: &Repository, processors: usize) -> Outcome<Figures> {
    let manifest = repository.system_manifest("bench".as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).args(["--parameter", "commands=bench"]);
    command.arg("--processors").arg(processors.to_string());
    let output = run_machine(command, LIMIT)?;
    let figures = figures(&output.text);
    match output.problem {
        Some(problem) if figures.is_empty() => Err(Failure::new(format!("the benchmark gave no figures: {problem}"))
            .details(output.text)
            .remedy("see what it says with `cargo sing run --system bench -c bench`")),
        Some(problem) => {
            eprintln!("sing: {problem}; the figures are those printed before");
            Ok(figures)
        }
        None => Ok(figures),
    }
}

fn measure_linux(repository: &Repository) -> Outcome<Figures> {
    let mut command = cargo::command();
    command.args(["build", "--release", "--package", "bench-linux", "--manifest-path"]);
    command.arg(repository.root().join("Cargo.toml")).arg("--target-dir").arg(repository.cargo_target());
    let made = cargo::build(command, "the measurements of Linux", 2)?;
    let program = made.get("bench-linux").ok_or_else(|| Failure::new("cargo made no program bench-linux"))?;
    let output = Command::new(program).output().map_err(|error| Failure::file("start", program, &error))?;
    Ok(figures(&String::from_utf8_lossy(&output.stdout)))
}

/// The figures in lines `bench NAME CYCLES`; other lines are not for this program.
fn figures(text: &str) -> Figures {
    let figure = |line: &str| {
        let mut words = line.trim().strip_prefix("bench ")?.split_whitespace();
        Some((words.next()?.to_string(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(figure).collect()
}

impl Row {
    /// The target in cycles; none when the operation it is measured by has no figure.
    fn target_cycles(&self, ours: &Figures) -> Option<u64> {
        match self.target {
            Target::Cycles(cycles) => Some(cycles),
            Target::Times(times, of) => ours.get(of).map(|cycles| (*cycles as f64 * times).round() as u64),
        }
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::Cycles(cycles) => format!("<= {}", grouped(cycles)),
            Target::Times(times, _) => format!("<= {times}x"),
        }
    }

    fn verdict(&self, ours: &Figures) -> &'static str {
        match (ours.get(self.name), self.target_cycles(ours)) {
            (Some(cycles), Some(target)) if *cycles <= target => "ok",
            (Some(_), Some(_)) => "missed",
            _ => "-",
        }
    }
}

fn table(ours: &Figures, linux: &Figures) -> String {
    let mut text = format!(
        "{:<34} {:>16} {:>10} {:>10} {:>10} {:>8}  {}\n",
        "operation (cycles, medians)", "Singularity 2007", "target", "here", "Linux", "faster", "target"
    );
    for row in &ROWS {
        let shown = |figure: Option<&u64>| figure.map_or("-".to_string(), |cycles| grouped(*cycles));
        let faster = match (ours.get(row.name), linux.get(row.name)) {
            (Some(here), Some(there)) if *here > 0 => format!("{:.1}x", *there as f64 / *here as f64),
            _ => "-".to_string(),
        };
        text.push_str(&format!(
            "{:<34} {:>16} {:>10} {:>10} {:>10} {:>8}  {}\n",
            row.operation,
            row.singularity,
            row.target_text(),
            shown(ours.get(row.name)),
            shown(linux.get(row.name)),
            faster,
            row.verdict(ours)
        ));
    }
    text
}

/// Each figure beside the same among many SIPs and channels, which is to be within one and a half times.
fn crowded(figures: &Figures, processors: usize) -> String {
    let mut text = format!(
        "\nwith {processors} processor{}, and among {} SIPs and {} channels (target: within {CROWDED_TIMES}x)\n",
        if processors == 1 { "" } else { "s" },
        grouped(figures.get("crowd_sips").copied().unwrap_or(0)),
        grouped(figures.get("crowd_channels").copied().unwrap_or(0)),
    );
    for (name, crowded) in figures {
        let Some((name, alone)) = name.strip_suffix("_crowded").and_then(|name| figures.get_key_value(name)) else {
            continue;
        };
        if name == "thread_yield" && processors > 1 {
            // The partner runs elsewhere, so this would be the figure of a yield to nobody.
            continue;
        }
        let times = *crowded as f64 / (*alone).max(1) as f64;
        let verdict = if times <= CROWDED_TIMES { "ok" } else { "missed" };
        text.push_str(&format!(
            "{name:<34} {:>16} {:>10} {times:>9.1}x  {verdict}\n",
            grouped(*alone),
            grouped(*crowded)
        ));
    }
    text
}

fn json_list(ours: &Figures, linux: &Figures) -> String {
    let list: Vec<_> = ROWS
        .iter()
        .filter(|row| ours.contains_key(row.name))
        .map(|row| {
            json!({
                "name": row.name,
                "cycles": ours.get(row.name),
                "linux_cycles": linux.get(row.name),
                "target_cycles": row.target_cycles(ours),
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(list))
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_figures_and_other_lines_do_not() {
        let found = figures("hello\nbench abi_call 14\nbench message_1 x\nbench message_1 390\n");
        assert_eq!(found, Figures::from([("abi_call".into(), 14), ("message_1".into(), 390)]));
    }

    #[test]
    fn relative_targets_follow_the_figure_they_are_measured_by() {
        let ours = Figures::from([("message_1".into(), 400), ("message_1m".into(), 441), ("message_64k".into(), 440)]);
        let verdict = |name: &str| ROWS.iter().find(|row| row.name == name).map(|row| row.verdict(&ours));
        assert_eq!(verdict("message_64k"), Some("ok"));
        assert_eq!(verdict("message_1m"), Some("missed"));
        assert_eq!(verdict("abi_call"), Some("-"));
    }

    #[test]
    fn the_json_has_the_agreed_keys() {
        let text = json_list(&Figures::from([("abi_call".into(), 14)]), &Figures::from([("abi_call".into(), 250)]));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let expected = json!([{ "name": "abi_call", "cycles": 14, "linux_cycles": 250, "target_cycles": 15 }]);
        assert_eq!(value, expected);
    }

    #[test]
    fn the_crowd_is_judged_and_a_yield_to_nobody_is_not() {
        let names = ["name_bind", "name_bind_crowded", "thread_yield", "thread_yield_crowded"];
        let figures: Figures = names.map(String::from).into_iter().zip([4_000, 70_000, 1, 1]).collect();
        let text = crowded(&figures, 2);
        assert!(text.contains("17.5x  missed") && !text.contains("thread_yield"), "{text}");
        assert!(crowded(&figures, 1).contains("thread_yield"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([grouped(0), grouped(999), grouped(1000), grouped(1234567)], ["0", "999", "1,000", "1,234,567"]);
    }
}
