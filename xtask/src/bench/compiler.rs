//! `sing bench compiler`: the compiler of WebAssembly alone, with its register allocator as a child process, and with a
//! checker of allocations as a second one, on one processor and on two. It is table 4 of *Sealing OS Processes*.
//!
//! The sides take turns, so that other load of the host affects all; of each the median counts. All have to make the same
//! image. Deliberately not here: the measurement, in `benches/wasm`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};
use sing::build;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::{Repository, read_text, write_whole};
use sing::systems::{self, Platform, Ready};

use super::table::figures;
use super::{LIMIT, finish};
use crate::command_line::BenchArguments;

/// The system, with the compiler and its extensions.
const SYSTEM: &str = "bench-compiler";
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
    let manifest = repository.system_manifest(SYSTEM.as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let folder = folder(repository)?;
    let (mut times, mut image) = (Times::default(), None);
    for turn in 1..=arguments.rounds {
        for (place, processors) in PROCESSORS.into_iter().enumerate() {
            eprintln!("sing: turn {turn} of {}, {processors} processors", arguments.rounds);
            for (side, (name, words)) in SIDES.iter().enumerate() {
                let (time, made) = compiled(&ready, &folder, processors, words)?;
                times[place][side].push(time);
                if *image.get_or_insert(made) != made {
                    return Err(Failure::new(format!("`{name}` makes another image than the others")));
                }
            }
        }
    }
    print!("{}", table(&times));
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

/// Compiles on a machine of its own; returns the time, and a hash of the image.
fn compiled(ready: &Ready, folder: &Path, processors: u32, words: &str) -> Outcome<(u64, u64)> {
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).arg("--processors").arg(processors.to_string());
    command.arg("--folder").arg(format!("bench={}:ro", folder.display()));
    let line = format!("bench-wasm compile /fs/bench/{PROGRAM}.package --count {COMPILATIONS} {words}");
    command.arg("--parameter").arg(format!("commands={line}"));
    let output = run_machine(command, LIMIT)?;
    let found = figures(&output.text);
    match (output.problem, found.get("compile_ns"), found.get("image_hash")) {
        (None, Some(time), Some(hash)) => Ok((*time, *hash)),
        (problem, ..) => {
            let why = problem.map_or_else(|| "it printed no figure".to_string(), |problem| problem.to_string());
            Err(Failure::new(format!("`{line}` could not be measured: {why}")).details(output.text))
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

fn table(times: &Times) -> String {
    let mut text = format!("{:<48}", format!("compiling {PROGRAM} (medians)"));
    for processors in PROCESSORS {
        let head = format!("{processors} processor{}", if processors == 1 { "" } else { "s" });
        // Writing to a String cannot fail.
        let _ = write!(text, "{head:>20}");
    }
    text.push('\n');
    for (side, (name, _)) in SIDES.iter().enumerate() {
        let _ = write!(text, "{name:<48}");
        for place in 0..PROCESSORS.len() {
            let seconds = median(&times[place][side]) as f64 / 1e9;
            let _ = write!(text, "{:>20}", format!("{seconds:.2} s  {:.3}", ratio(times, place, side)));
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
        let table = table(&times);
        assert!(table.contains("1.00 s  1.000") && table.contains("5.00 s  2.500"), "{table}");
        assert_eq!(json(&times)["allocator as a child, 1 processors"], 3_000_000_000u64);
    }

    #[test]
    fn lines_of_code_are_neither_blank_nor_comments() {
        assert_eq!(code_lines("//! a\n\nfn main() {\n    // why\n    0\n}\n"), 3);
    }
}
