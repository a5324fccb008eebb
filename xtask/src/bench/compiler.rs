//! `sing bench compiler`: the compiler of WebAssembly alone, with its register allocator as a child process, and with a
//! checker of allocations as a second one, on one processor and on two. It is table 4 of *Sealing OS Processes*.
//!
//! The sides take turns, so that other load of the host affects all; of each the median counts. All have to make the same
//! image. A bare machine counts instructions on one processor, once, and takes the time on two. Deliberately not here: the measurement, in `benches/wasm`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value};
use sing::build;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::{Repository, read_text, write_whole};
use sing::systems::{self, Platform, Ready};

use super::bare::Machine;
use super::table::figures;
use super::{COUNTING, LIMIT, bare_machine, finish};
use crate::command_line::BenchArguments;
use sing::command_line::MachineName;

/// The system, with the compiler and its extensions, hosted and bare.
const SYSTEM: &str = "bench-compiler";
const BARE_SYSTEM: &str = "bench-compiler-bare";
/// Memory of a bare machine.
const MEBIBYTES: u32 = 3072;
/// What is compiled: 1,467 functions.
const PROGRAM: &str = "sqlite";
/// Compilations of each side in a turn, of which the median counts.
const COMPILATIONS: u32 = 3;
/// Numbers of processors.
const PROCESSORS: [u32; 2] = [1, 2];

/// A side: its name, the compiler's parameters. The first is what the others are compared with.
const SIDES: [(&str, &str); 4] = [
    ("in one process", ""),
    ("allocator as a child, one function at a time", "--threads 1 --allocator register-allocator"),
    ("allocator as a child", "--allocator register-allocator"),
    ("allocator and checker as children", "--allocator register-allocator --checker allocation-checker"),
];

/// What an extension costs in lines, by where they are: files that would not be there without it.
const LINES: [(&str, &[&str]); 4] = [
    ("in the compiler", &["services/compiler/src/extension.rs", "services/compiler/src/parts.rs"]),
    ("contracts", &["contracts/register_allocator.contract", "contracts/allocation_checker.contract"]),
    (
        "functions and allocations as bytes",
        &[
            "lib/register-allocation/src/lib.rs",
            "lib/register-allocation/src/words.rs",
            "lib/register-allocation/src/registers.rs",
            "lib/register-allocation/src/request.rs",
            "lib/register-allocation/src/written.rs",
            "lib/register-allocation/src/answer.rs",
        ],
    ),
    (
        "the seam, and the children",
        &[
            "lib/regalloc2/src/lib.rs",
            "lib/regalloc2/src/seam.rs",
            "services/register-allocator/src/lib.rs",
            "services/allocation-checker/src/lib.rs",
        ],
    ),
];

/// The time of each side on each number of processors, by turn, in nanoseconds.
type Times = [[Vec<u64>; SIDES.len()]; PROCESSORS.len()];

/// `sing bench compiler`.
///
/// # Errors
/// The system cannot be built or run, or two sides made different images.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let machine = Measured::new(repository, arguments.machine)?;
    let (mut times, mut image) = (Times::default(), None);
    for turn in 1..=arguments.rounds {
        for (place, processors) in PROCESSORS.into_iter().enumerate() {
            if turn > 1 && machine.counts(processors) {
                continue;
            }
            eprintln!("sing: turn {turn} of {}, {processors} processors", arguments.rounds);
            for (side, (name, words)) in SIDES.iter().enumerate() {
                let (time, made) = machine.compiled(processors, words)?;
                times[place][side].push(time);
                if *image.get_or_insert(made) != made {
                    return Err(Failure::new(format!("`{name}` makes another image than the others")));
                }
            }
        }
    }
    print!("{}", table(&times, |processors| machine.counts(processors)));
    print!("{}", lines(repository)?);
    finish(arguments, &format!("{:#}\n", json(&times)), &[] as &[&str])
}

/// A folder with the package.
fn folder(repository: &Repository) -> Outcome<PathBuf> {
    let folder = repository.output("bench-compiler");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file("make", &folder, &error))?;
    write_whole(&folder.join(format!("{PROGRAM}.package")), &build::package(repository, PROGRAM, None)?)?;
    Ok(folder)
}

/// A kind of machine, with the package to compile.
struct Measured<'a> {
    repository: &'a Repository,
    kind: MachineName,
    /// The hosted machine.
    ready: Option<Ready>,
    folder: PathBuf,
}

impl<'a> Measured<'a> {
    fn new(repository: &'a Repository, kind: MachineName) -> Outcome<Measured<'a>> {
        let ready = match kind {
            MachineName::Hosted => {
                let manifest = repository.system_manifest(SYSTEM.as_ref())?;
                Some(systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?)
            }
            MachineName::Qemu | MachineName::Microvm => None,
        };
        Ok(Measured { repository, kind, ready, folder: folder(repository)? })
    }

    /// Whether instructions are counted, and not nanoseconds.
    fn counts(&self, processors: u32) -> bool {
        self.kind != MachineName::Hosted && processors == 1
    }

    /// Compiles on a machine of its own; returns the time or the number of instructions, and a hash of the image.
    fn compiled(&self, processors: u32, words: &str) -> Outcome<(u64, u64)> {
        let count = if self.ready.is_some() { COMPILATIONS } else { 1 };
        let line = format!("bench-wasm compile /fs/bench/{PROGRAM}.package --count {count} {words}");
        let output = match &self.ready {
            Some(ready) => {
                let mut command = Command::new(&ready.machine);
                command.arg("--system").arg(&ready.image).arg("--processors").arg(processors.to_string());
                command.arg("--folder").arg(format!("bench={}:ro", self.folder.display()));
                command.arg("--parameter").arg(format!("commands={line}"));
                run_machine(command, LIMIT)?
            }
            None => {
                let qemu: &[&str] = if self.counts(processors) { &COUNTING } else { &[] };
                let machine = Machine {
                    mebibytes: MEBIBYTES,
                    system: BARE_SYSTEM,
                    folder: Some(&self.folder),
                    ..bare_machine(self.kind, processors, qemu, &line)
                };
                machine.run(self.repository)?
            }
        };
        let found = figures(&output.text);
        match (output.problem, found.get("compile_ns"), found.get("image_hash")) {
            (None, Some(time), Some(hash)) => Ok((*time, *hash)),
            (problem, ..) => {
                let why = problem.map_or_else(|| "it printed no figure".to_string(), |problem| problem.to_string());
                Err(Failure::new(format!("`{line}` could not be measured: {why}")).details(output.text))
            }
        }
    }
}

fn median(times: &[u64]) -> u64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// A side's time as a multiple of that of one process, on as many processors.
fn ratio(times: &Times, place: usize, side: usize) -> f64 {
    median(&times[place][side]) as f64 / (median(&times[place][0]) as f64).max(1.0)
}

fn table(times: &Times, counts: impl Fn(u32) -> bool) -> String {
    let mut text = format!("{:<48}", format!("compiling {PROGRAM} (medians)"));
    for processors in PROCESSORS {
        let head = format!("{processors} processor{}", if processors == 1 { "" } else { "s" });
        // Writing to a String cannot fail.
        let _ = write!(text, "{head:>22}");
    }
    text.push('\n');
    for (side, (name, _)) in SIDES.iter().enumerate() {
        let _ = write!(text, "{name:<48}");
        for place in 0..PROCESSORS.len() {
            let seconds = median(&times[place][side]) as f64 / 1e9;
            let unit = if counts(PROCESSORS[place]) { "G instr." } else { "s" };
            let _ = write!(text, "{:>22}", format!("{seconds:.2} {unit}  {:.3}", ratio(times, place, side)));
        }
        text.push('\n');
    }
    text
}

/// Counts the lines of code that the extensions take, without comments and blank ones.
fn lines(repository: &Repository) -> Outcome<String> {
    let mut text = String::from("\nlines of code for the extensions\n");
    for (what, files) in LINES {
        let mut sum = 0;
        for file in files {
            sum += code_lines(&read_text(&repository.base().join(file))?);
        }
        let _ = writeln!(text, "{what:<48}{sum:>20}");
    }
    Ok(text)
}

fn code_lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn json(times: &Times) -> Value {
    let mut all = Map::new();
    for (place, processors) in PROCESSORS.into_iter().enumerate() {
        for (side, (name, _)) in SIDES.iter().enumerate() {
            let key = format!("{name}, {processors} processors");
            all.insert(key, median(&times[place][side]).into());
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compares_with_one_process_and_one_thread() {
        let mut times = Times::default();
        for (place, all) in times.iter_mut().enumerate() {
            for (side, times) in all.iter_mut().enumerate() {
                *times = vec![9, 1_000_000_000 * (place as u64 + 1 + side as u64), u64::MAX];
            }
        }
        assert_eq!(ratio(&times, 0, 1), 2.0);
        let text = table(&times, |_| false);
        assert!(text.contains("1.00 s  1.000") && text.contains("5.00 s  2.500"), "{text}");
        let text = table(&times, |processors| processors == 1);
        assert!(text.contains("1.00 G instr.  1.000") && text.contains("5.00 s  2.500"), "{text}");
        assert_eq!(json(&times)["allocator as a child, 1 processors"], 3_000_000_000u64);
    }

    #[test]
    fn lines_of_code_are_neither_blank_nor_comments() {
        assert_eq!(code_lines("//! a\n\nfn main() {\n    // why\n    0\n}\n"), 3);
    }
}
