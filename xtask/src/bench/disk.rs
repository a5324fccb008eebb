//! `sing bench disk`: throughput and latency of files on ext2, beside Linux's ext2 with the same image in the same run.
//!
//! In each round a freshly started machine and a freshly mounted Linux volume run each task, in alternating order, so
//! that other load of the host affects both. The image is read once in advance to warm caches below the host, and
//! dropped from the host's page cache before each turn: a task's first run is cold, the others are warm. Both sides
//! print lines `bench NAME NANOSECONDS`. Deliberately not here: the tasks, in `benches/disk` and `benches/linux`.

mod charts;
mod image;
mod linux;
mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::bench::table::Figures;
use crate::bench::{LIMIT, linux_program, printed_figures};
use crate::command_line::BenchArguments;
use sing::builder::UnsafeTests;
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::{Repository, write_whole};
use sing::spelling;
use sing::systems::{self, Platform, Ready};

use linux::Linux;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Buffer sizes for reading the large file, in bytes.
const READ_BLOCKS: [u64; 7] = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB, 96 * MIB];
const WRITE_BLOCKS: [u64; 5] = [4 * KIB, 16 * KIB, 64 * KIB, MIB, 16 * MIB];
const WRITTEN_MIB: u64 = 256;
const RANDOM_READS: u64 = 5_000;
const SMALL_FILES: u64 = 10_000;
/// As in the paper's figure 4.
const TIMED_READS: u64 = 2_000;
const TIMED_BLOCK: u64 = 16 * KIB;
/// Once cold, then warm.
const READ_ROUNDS: u64 = 10;
/// Target ratio: as fast as Linux.
const AS_FAST: f64 = 1.0;
/// Target ratio: half as fast.
const HALF: f64 = 0.5;
/// Minimum buffer size, in bytes, from which the target is Linux's speed.
const AS_FAST_FROM: u64 = 16 * KIB;

/// A task that both systems run.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// The benchmark programs' name of it.
    pub name: &'static str,
    /// Relative to the root of the volume.
    pub path: &'static str,
    /// Bytes per request.
    pub block_bytes: u64,
    /// MiB to write.
    pub size_mib: u64,
    /// Number of requests or files.
    pub count: u64,
    /// Repetitions.
    pub rounds: u64,
}

impl Task {
    /// Display name.
    pub fn label(&self) -> String {
        match self.name {
            "read" => format!("read {}", size_text(self.block_bytes)),
            "write" => format!("write {}", size_text(self.block_bytes)),
            other => other.to_string(),
        }
    }
}

/// Nanoseconds of each turn, by name; the median if a turn measured a figure several times.
pub type Samples = BTreeMap<String, Vec<u64>>;

/// Times of both systems.
#[derive(Default)]
pub struct Measured {
    here: Samples,
    linux: Samples,
}

/// `sing bench disk`. Returns 1 if something could not be measured; a missed target is shown, but is not a failure.
///
/// # Errors
/// The image or the system cannot be built or run.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    if arguments.machine != MachineName::Hosted {
        return Err(Failure::new("the disk benchmark runs on the hosted machine only").remedy("remove --machine"));
    }
    let tasks = tasks_named(arguments.only.as_deref().unwrap_or(""))?;
    let image = image::path(repository)?;
    let manifest = repository.system_manifest("bench-disk".as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    // An earlier run may have been interrupted.
    repair(&image)?;
    let program = linux_program(repository)?;
    let linux = Linux::new(program.clone(), &image, repository.output("bench-disk.mount"))?;
    let mut measured = Measured::default();
    read_once(&image)?;
    for round in 1..=arguments.rounds {
        for task in &tasks {
            eprintln!("sing: round {round} of {}: {}", arguments.rounds, task.label());
            // Caches below the host favour the second reader.
            for is_here in [round % 2 == 1, round % 2 == 0] {
                linux::forget(&program, &image)?;
                if is_here {
                    add(&mut measured.here, task, &measure_here(&ready, &image, task)?);
                } else if let Some(linux) = &linux {
                    add(&mut measured.linux, task, &linux.measure(&image, task)?);
                }
            }
        }
    }
    let rows = report::rows(&tasks, &measured);
    print!("{}", report::table(&rows, linux.is_some()));
    if let Some(path) = &arguments.json {
        write_whole(path, report::json_list(&rows).as_bytes())?;
    }
    if let Some(folder) = &arguments.charts {
        charts::write(folder, &measured)?;
    }
    Ok(u8::from(rows.iter().any(|row| row.here.is_none())))
}

/// Warms caches below the host (disk cache, hypervisor) with the image.
fn read_once(image: &Path) -> Outcome<()> {
    let copied = std::fs::File::open(image).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
    copied.map(drop).map_err(|error| Failure::file("read", image, &error))
}

fn task(name: &'static str, path: &'static str) -> Task {
    Task { name, path, block_bytes: 64 * KIB, size_mib: WRITTEN_MIB, count: 1, rounds: 1 }
}

/// Returns the tasks whose names contain `part`.
///
/// # Errors
/// None matches.
fn tasks_named(part: &str) -> Outcome<Vec<Task>> {
    let (named, others): (Vec<Task>, Vec<Task>) = tasks().into_iter().partition(|task| task.label().contains(part));
    if named.is_empty() {
        let labels: Vec<String> = others.iter().map(Task::label).collect();
        return Err(Failure::new(format!("no disk measurement name contains `{part}`")).remedy(spelling::part_meant(
            part,
            labels.iter().map(String::as_str),
            format!("use a part of one of: {}", labels.join(", ")),
        )));
    }
    Ok(named)
}

fn tasks() -> Vec<Task> {
    let large = |name| Task { rounds: READ_ROUNDS, ..task(name, image::LARGE_FILE) };
    let mut tasks: Vec<Task> = READ_BLOCKS.map(|block_bytes| Task { block_bytes, ..large("read") }).into();
    tasks.push(Task { count: RANDOM_READS, rounds: 2, ..large("random") });
    tasks.push(Task { block_bytes: TIMED_BLOCK, count: TIMED_READS, rounds: 2, ..large("latency") });
    tasks.extend(WRITE_BLOCKS.map(|block_bytes| Task { block_bytes, rounds: 2, ..task("write", "scratch/written") }));
    tasks.push(Task { count: SMALL_FILES, ..task("files", image::SCRATCH) });
    tasks.push(Task { rounds: 2, ..task("tree", image::SMALL_FILES) });
    tasks
}

/// Runs the task on a machine.
fn measure_here(ready: &Ready, image: &Path, task: &Task) -> Outcome<Figures> {
    let commands = format!(
        "bench-disk /fs/disk0/{} --task {} --block-bytes {} --size-mib {} --count {} --rounds {} --figures",
        task.path, task.name, task.block_bytes, task.size_mib, task.count, task.rounds
    );
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).arg("--disk").arg(image);
    // Client and server alternate, as Linux's side is one thread.
    command.args(["--processors", "1"]);
    command.arg("--parameter").arg(format!("commands={commands}"));
    let way = format!("run --system bench-disk --disk {} -c '{commands}'", image.display());
    let figures = printed_figures(run_machine(command, LIMIT)?, &way)?;
    repair(image)?;
    Ok(figures)
}

/// Repairs the volume of a machine that ended without unmounting: our mount does so automatically, Linux's ext2 needs
/// e2fsck.
fn repair(image: &Path) -> Outcome<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("e2fsck");
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).arg("-p").arg(image);
    // If e2fsck is missing, Linux's mount fails with a message.
    let Ok(output) = command.output() else { return Ok(()) };
    match output.status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(Failure::new("the disk that the system left behind cannot be repaired")
            .details(String::from_utf8_lossy(&output.stdout).into_owned())),
    }
}

/// Adds the figures of a turn; those of the first round are cold.
fn add(samples: &mut Samples, task: &Task, figures: &Figures) {
    let mut rounds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (name, nanoseconds) in figures {
        let Some((name, round)) = name.rsplit_once('_') else { continue };
        rounds.entry(key(task, name, round == "0")).or_default().push(*nanoseconds);
    }
    for (key, mut all) in rounds {
        all.sort_unstable();
        samples.entry(key).or_default().push(all[all.len() / 2]);
    }
}

/// Returns the key of a figure.
fn key(task: &Task, figure: &str, first: bool) -> String {
    match task.name {
        "read" => format!("read {} {}", task.block_bytes, temperature(first)),
        // Writing is never warm: the file is truncated first.
        "write" => format!("write {}", task.block_bytes),
        "files" => figure.to_string(),
        _ => format!("{figure} {}", temperature(first)),
    }
}

fn temperature(first: bool) -> &'static str {
    if first { "cold" } else { "warm" }
}

/// Formats an amount of bytes.
fn size_text(bytes: u64) -> String {
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{} KiB", bytes / KIB) }
}

/// Median.
fn median(samples: &Samples, key: &str) -> Option<u64> {
    let mut all = samples.get(key)?.clone();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

/// Speed relative to Linux: the median of the ratios of adjacent turns, since the host's other load varies.
fn ratio(measured: &Measured, key: &str) -> Option<f64> {
    let pairs = measured.here.get(key)?.iter().zip(measured.linux.get(key)?);
    let mut all: Vec<f64> = pairs.map(|(here, linux)| *linux as f64 / (*here).max(1) as f64).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_is_cold_and_the_others_are_warm() {
        let mut samples = Samples::new();
        let task = Task { block_bytes: 4096, ..task("read", "large") };
        let figures = ["read_0", "read_1", "read_2"].map(String::from).into_iter().zip([9, 3, 5]).collect();
        add(&mut samples, &task, &figures);
        assert_eq!(samples["read 4096 cold"], [9]);
        assert_eq!(samples["read 4096 warm"], [5]);
        assert_eq!(median(&samples, "read 4096 warm"), Some(5));
    }

    #[test]
    fn turns_that_followed_one_another_are_compared() {
        let of = |turns: [u64; 3]| Samples::from([("tree warm".to_string(), turns.into())]);
        // The host was busy in the second turn of both, and idle in the third of ours.
        let measured = Measured { here: of([10, 100, 90]), linux: of([20, 200, 30]) };
        assert_eq!(ratio(&measured, "tree warm"), Some(2.0));
        assert_eq!(ratio(&measured, "tree cold"), None);
    }

    #[test]
    fn a_name_that_no_task_has_measures_nothing() {
        let refused = tasks_named("raed").expect_err("there is none").to_string();
        assert_eq!(refused, "no disk measurement name contains `raed`; did you mean `read`?");
        let refused = tasks_named("x").expect_err("there is none").to_string();
        assert!(refused.contains("`x`") && refused.contains("read 4 KiB, "), "{refused}");
        assert!(tasks_named("read").is_ok_and(|named| !named.is_empty() && named.len() < tasks().len()));
        assert!(tasks_named("").is_ok_and(|named| named.len() == tasks().len()));
    }

    #[test]
    fn sizes_are_said_in_the_largest_unit() {
        assert_eq!([size_text(4096), size_text(96 << 20)], ["4 KiB", "96 MiB"]);
    }
}
