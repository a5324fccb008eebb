//! `sing bench boot`: time from kernel entry to the shell's prompt and first command, by step, and memory use of a
//! small system.
//!
//! A boot parameter makes kernel and shell print marks in guest time (`boot-mark NAME NANOSECONDS`). Guest time
//! advances while the host is busy, so the fastest of several starts is shown, beside a start that counts
//! instructions, which is deterministic. Deliberately not here: the meaning of the marks.

use std::collections::BTreeMap;

use serde_json::json;

use crate::bench::COUNTING;
use crate::bench::bare::Machine;
use crate::bench::table::grouped;
use crate::command_line::BenchArguments;
use sing::bare::kernel;
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::repository::{Repository, write_whole};

/// Number of starts; the fastest counts.
const STARTS: usize = 7;
/// The shell sets two marks with the program's name: at its prompt, and at its first command, after which all services
/// run.
const SHELL: &str = "shell";
const PROMPT: &str = "prompt";
const FIRST_COMMAND: &str = "first-command";
const PROMPT_NS_MAX: u64 = 150_000_000;
/// The same until all services have been started.
const COMMAND_NS_MAX: u64 = 300_000_000;
const KERNEL_BYTES_MAX: u64 = 1 << 20;
const MEMORY_BYTES_MAX: u64 = 24 << 20;
/// Counter of memory in use.
const MEMORY: &str = "memory bytes in use";
const MEBIBYTES: u32 = 256;

/// Marks in order, in nanoseconds since kernel entry.
type Marks = Vec<(String, u64)>;

/// A start: its marks, and the system's counters at the first command.
struct Start {
    marks: Marks,
    counters: BTreeMap<String, u64>,
}

/// `sing bench boot`. Returns 1 if a limit is exceeded.
///
/// # Errors
/// The machine is the hosted one, cannot be built or run, or does not reach its first command.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    if arguments.machine == MachineName::Hosted {
        return Err(Failure::new("the boot benchmark requires a bare machine")
            .remedy("add --machine microvm or --machine qemu"));
    }
    let counted = start(repository, arguments.machine, &COUNTING)?;
    let timed: Outcome<Vec<Start>> = (0..STARTS).map(|_| start(repository, arguments.machine, &[])).collect();
    let mut timed = timed?;
    timed.sort_by_key(|start| start.at(PROMPT));
    let slowest = timed.last().and_then(|start| start.at(PROMPT)).unwrap_or(0);
    let timed = timed.swap_remove(0);
    let kernel = kernel::stripped(repository);
    let kernel_bytes = std::fs::metadata(&kernel).map_err(|error| Failure::file("read", &kernel, &error))?.len();
    let needs = [
        Need { what: "entry to prompt, counted", unit: "ns", is: counted.at(PROMPT), at_most: PROMPT_NS_MAX },
        Need { what: "entry to prompt, timed", unit: "ns", is: timed.at(PROMPT), at_most: PROMPT_NS_MAX },
        Need {
            what: "entry to first command, counted",
            unit: "ns",
            is: counted.at(FIRST_COMMAND),
            at_most: COMMAND_NS_MAX,
        },
        Need {
            what: "entry to first command, timed",
            unit: "ns",
            is: timed.at(FIRST_COMMAND),
            at_most: COMMAND_NS_MAX,
        },
        Need { what: "kernel without symbols", unit: "bytes", is: Some(kernel_bytes), at_most: KERNEL_BYTES_MAX },
        Need { what: "memory at the prompt", unit: "bytes", is: timed.memory(), at_most: MEMORY_BYTES_MAX },
    ];
    print!("{}", table(&timed.marks, &counted.marks));
    println!("\nthe fastest of {STARTS} starts; the slowest took {:.1} ms\n", slowest as f64 / 1e6);
    for need in &needs {
        println!("{}", need.line());
    }
    if let Some(path) = &arguments.json {
        let list = |marks: &Marks| marks.iter().map(|(name, at)| json!({ "name": name, "at": at })).collect::<Vec<_>>();
        let needs: Vec<_> = needs
            .iter()
            .map(|need| json!({ "name": need.what, "unit": need.unit, "is": need.is, "at_most": need.at_most }))
            .collect();
        let text = json!({ "nanoseconds": list(&timed.marks), "instructions": list(&counted.marks), "needs": needs });
        write_whole(path, format!("{text:#}\n").as_bytes())?;
    }
    Ok(u8::from(needs.iter().any(|need| !need.is_met())))
}

fn start(repository: &Repository, kind: MachineName, qemu: &[&str]) -> Outcome<Start> {
    let parameters = ["boot-marks=1"];
    let machine = Machine {
        kind,
        processors: 1,
        mebibytes: MEBIBYTES,
        system: "bare",
        parameters: &parameters,
        domains: None,
        folder: None,
        qemu,
        commands: "sysinfo --json",
    };
    let output = machine.run(repository)?;
    let start = Start { marks: marks(&output.text), counters: counters(&output.text) };
    match output.problem {
        None if start.at(FIRST_COMMAND).is_some() => Ok(start),
        problem => Err(Failure::new(format!(
            "the machine did not reach its first command: {}",
            problem.unwrap_or_else(|| format!("no `{FIRST_COMMAND}` mark in its output"))
        ))
        .details(output.text)
        .remedy(format!("check the output of `cargo sing {}`", machine.way()))),
    }
}

/// The marks up to the first command.
fn marks(text: &str) -> Marks {
    let mark = |line: &str| {
        let mut words = line.split_once("boot-mark ")?.1.split_whitespace();
        Some((words.next()?.to_string(), words.next()?.parse().ok()?))
    };
    let mut marks: Marks = text.lines().filter_map(mark).collect();
    marks.sort_by_key(|(_, at)| *at);
    let shell = marks.iter_mut().map(|(name, _)| name).filter(|name| *name == SHELL);
    for (name, moment) in shell.zip([PROMPT, FIRST_COMMAND]) {
        *name = moment.to_string();
    }
    if let Some(last) = marks.iter().position(|(name, _)| name == FIRST_COMMAND) {
        marks.truncate(last + 1);
    }
    marks
}

/// Returns the system's counters in the output of `sysinfo --json`.
fn counters(text: &str) -> BTreeMap<String, u64> {
    let counter = |line: &str| {
        let (name, value) = line.trim().trim_end_matches(',').rsplit_once(": ")?;
        Some((name.trim_matches('"').to_string(), value.parse().ok()?))
    };
    text.lines().filter_map(counter).collect()
}

impl Start {
    fn at(&self, moment: &str) -> Option<u64> {
        self.marks.iter().find(|(name, _)| name == moment).map(|(_, at)| *at)
    }

    fn memory(&self) -> Option<u64> {
        self.counters.get(MEMORY).copied()
    }
}

/// A measured value with an upper limit.
struct Need {
    what: &'static str,
    unit: &'static str,
    is: Option<u64>,
    at_most: u64,
}

impl Need {
    fn is_met(&self) -> bool {
        self.is.is_some_and(|is| is <= self.at_most)
    }

    fn line(&self) -> String {
        let is = self.is.map_or("-".to_string(), grouped);
        let verdict = if self.is_met() { "ok" } else { "missed" };
        format!("{:<32} {is:>14} {:<6} <= {:>12}  {verdict}", self.what, self.unit, grouped(self.at_most))
    }
}

/// A line for each step: end, duration and instructions.
fn table(timed: &Marks, counted: &Marks) -> String {
    let mut text =
        format!("{:<34} {:>10} {:>10} {:>14}\n", "from the kernel's entry to", "at, ms", "took, ms", "instructions");
    let steps = |marks: &Marks| -> Vec<u64> {
        let before = std::iter::once(0).chain(marks.iter().map(|(_, at)| *at));
        marks.iter().zip(before).map(|((_, at), before)| at.saturating_sub(before)).collect()
    };
    let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    // Both starts have the same steps, up to the order of concurrent SIPs.
    let instructions: BTreeMap<&str, u64> = counted.iter().map(|(name, _)| name.as_str()).zip(steps(counted)).collect();
    for ((name, at), took) in timed.iter().zip(steps(timed)) {
        let counted = instructions.get(name.as_str()).map_or("-".to_string(), |count| grouped(*count));
        text.push_str(&format!("{name:<34} {:>10.2} {:>10.2} {counted:>14}\n", milliseconds(*at), milliseconds(took)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "kernel: boot-mark page-tables 1000000\n{\n  \"uptime_ns\": 5,\n  \"memory bytes in use\": 4096\n}\n\
                        boot-mark shell 3500000\nboot-mark entry 0\nboot-mark end 9000000\n\
                        boot-mark shell 4000000\n";

    #[test]
    fn moments_are_in_order_and_end_with_the_first_command() {
        let marks = marks(TEXT);
        let names: Vec<&str> = marks.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["entry", "page-tables", "prompt", "first-command"]);
        let shown = table(&marks, &marks);
        assert!(shown.contains("prompt") && shown.contains("2.50") && shown.contains("2,500,000"), "{shown}");
    }

    #[test]
    fn counters_are_read_from_the_json() {
        assert_eq!(counters(TEXT).get(MEMORY), Some(&4096));
    }

    #[test]
    fn what_is_not_known_is_not_met() {
        let need = |is| Need { what: "memory", unit: "bytes", is, at_most: 10 };
        assert_eq!([need(None), need(Some(11)), need(Some(10))].map(|need| need.is_met()), [false, false, true]);
    }
}
