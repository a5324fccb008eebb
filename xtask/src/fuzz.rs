//! The tier `fuzzing` of `sing test`: runs libFuzzer on each target of the workspace `fuzz` for a time.
//!
//! Instrumentation uses flags of the stable compiler; no nightly and no further tool is needed. The corpus is kept in
//! the tool's output folder for the next run. Deliberately not here: the properties that are tested.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sing::cargo;
use sing::failure::{Failure, Outcome};
use sing::host_tools;
use sing::process::run_machine;
use sing::repository::Repository;
use sing::test_output::Counts;

/// A fuzz target with its seeds.
struct Target {
    name: &'static str,
    /// Folder of seeds and findings, which unit tests replay.
    inputs: &'static str,
    /// Maximum input length in bytes.
    max_bytes: u32,
    /// Maximum inputs per fuzzer process, for subjects that leak memory by design.
    max_runs: Option<u32>,
}

const TARGETS: [Target; 17] = [
    Target { max_bytes: 2048, ..target("allocations", "lib/register-allocation/tests/fuzzed/inputs") },
    target("automaton", "lib/contract-diagram/tests/fuzzed/inputs"),
    target("boot_image", "lib/boot-image/tests/fuzzed/inputs/boot_image"),
    target("certificates", "lib/package-check/tests/fuzzed/inputs/certificates"),
    Target { max_bytes: 2048, ..target("contract", "lang/tests/fuzzed/inputs") },
    target("ext2_check", "lib/ext2/tests/fuzzed/inputs/check"),
    target("ext2_volume", "lib/ext2/tests/fuzzed/inputs/volume"),
    target("fat_volume", "lib/fat/tests/volumes/inputs"),
    target("http_requests", "lib/http/tests/conformance/inputs"),
    target("manifest", "lib/manifest/tests/fuzzed/inputs"),
    target("net_stack", "lib/net-stack/tests/fuzzed/inputs"),
    // An image with a head, code, data and a table of relocations takes some.
    Target { max_bytes: 4096, ..target("package", "lib/install/tests/fuzzed/inputs/package") },
    target("principal", "lib/principal/tests/fuzzed/inputs"),
    Target { max_bytes: 2048, ..target("system_image", "lib/install/tests/fuzzed/inputs/system_image") },
    // Memory still accessible to a device is never freed during the life of the process.
    Target { max_runs: Some(50_000), ..target("virtio_blk", "drivers/virtio-blk/tests/fuzzed/inputs") },
    Target { max_runs: Some(50_000), ..target("virtio_net", "drivers/virtio-net/tests/fuzzed/inputs") },
    // A module of some size, and the choices that one is made by.
    Target { max_bytes: 4096, ..target("wasm_module", "lib/wasm-translate/tests/fuzzed/inputs") },
];
/// Duration for each target.
const SHORT: Duration = Duration::from_secs(10);
/// The same with `--long`.
const LONG: Duration = Duration::from_secs(600);
/// Minimum duration of a fuzzer process: libFuzzer takes 0 as unlimited.
const SHORTEST: Duration = Duration::from_secs(1);
/// Timeout of one input, after which it is a finding.
const TIMEOUT_S: u32 = 20;
/// Maximum input length of most targets.
const MAX_BYTES: u32 = 1024;
/// Allowance for start and end of a fuzzer.
const GRACE: Duration = Duration::from_secs(120);
/// Grow inputs faster than by default: most targets need some tens of bytes to do anything.
const GROWTH: u32 = 20;
/// Compiler flags: coverage for libFuzzer, debug checks.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cdebug-assertions=on",
    "-Ccodegen-units=1",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Makes the allocator keep memory of large images between inputs; returning it would dominate the run time.
const ALLOCATOR: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "1073741824"), ("MALLOC_TRIM_THRESHOLD_", "4294967296")];

/// A target with the default input length.
const fn target(name: &'static str, inputs: &'static str) -> Target {
    Target { name, inputs, max_bytes: MAX_BYTES, max_runs: None }
}

/// The names of all targets.
pub fn targets() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|target| target.name)
}

/// Fuzzes every target, or those whose names contain `name`.
///
/// # Errors
/// The targets do not build, or a folder cannot be created.
pub fn fuzz(repository: &Repository, name: Option<&str>, long: bool) -> Outcome<Counts> {
    let chosen = TARGETS.iter().filter(|target| name.is_none_or(|name| target.name.contains(name)));
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        return Ok(Counts::default());
    }
    if host_tools::find("c++").is_none() {
        println!("skipped fuzzing: install a C++ compiler to run it");
        return Ok(Counts { skipped: chosen.len() as u64, ..Counts::default() });
    }
    let programs = build(repository, &chosen)?;
    let mut counts = Counts::default();
    for target in chosen {
        match drive(repository, &programs.join(target.name), target, if long { LONG } else { SHORT })? {
            None => counts.passed += 1,
            Some(finding) => {
                println!("  FAILED fuzzing: {}: {finding}", target.name);
                let again = format!("cargo sing test fuzzing:{}", target.name);
                counts += Counts::failed((format!("fuzzing: {}", target.name), again));
            }
        }
    }
    Ok(counts)
}

/// Builds the targets; returns their folder.
fn build(repository: &Repository, chosen: &[&Target]) -> Outcome<PathBuf> {
    let folder = repository.output("fuzz/target");
    let mut command = cargo::command(repository);
    command.args(["build", "--release", "--target", cargo::TARGET, "--manifest-path"]);
    command.arg(repository.base().join("fuzz/Cargo.toml")).arg("--target-dir").arg(&folder);
    for target in chosen {
        command.args(["--bin", target.name]);
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    cargo::build(command, "fuzz targets", chosen.len() + 60)?;
    Ok(folder.join(cargo::TARGET).join("release"))
}

/// Fuzzes one target. Returns the finding, if any.
fn drive(repository: &Repository, program: &Path, target: &Target, time: Duration) -> Outcome<Option<String>> {
    let learned = repository.output("fuzz/learned").join(target.name);
    let findings = repository.output("fuzz/findings").join(target.name);
    for folder in [&learned, &findings] {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    let inputs = repository.base().join(target.inputs);
    let started = Instant::now();
    let mut runs = 0;
    let output = loop {
        let left = time.saturating_sub(started.elapsed()).max(SHORTEST);
        let output = run_machine(command(program, target, left, [&learned, &findings, &inputs]), left + GRACE)?;
        runs += done(&output.text);
        if output.problem.is_some() || target.max_runs.is_none() || started.elapsed() >= time {
            break output;
        }
    };
    let Some(problem) = output.problem else {
        println!("  {}: {runs} runs in {} s", target.name, started.elapsed().as_secs());
        return Ok(None);
    };
    let kept = format!("after the fix, keep the input in {}, which unit tests replay", target.inputs);
    Ok(Some(format!("{}\n    {kept}", account(&output.text, &problem))))
}

/// Number of inputs that a fuzzer reports.
fn done(text: &str) -> u64 {
    let last = text.lines().rev().find_map(|line| line.strip_prefix("Done "));
    last.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Returns the command of a fuzzer: the first folder is the corpus; earlier findings are retried until fixed.
fn command(program: &Path, target: &Target, time: Duration, [learned, findings, inputs]: [&Path; 3]) -> Command {
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={}", time.as_secs()));
    command.args(target.max_runs.map(|runs| format!("-runs={runs}")));
    command.args([
        format!("-timeout={TIMEOUT_S}"),
        format!("-max_len={}", target.max_bytes),
        format!("-len_control={GROWTH}"),
    ]);
    command.arg(format!("-artifact_prefix={}/", findings.display()));
    command.args([learned, findings, inputs]).envs(ALLOCATOR).stdin(Stdio::null());
    command
}

/// Returns the fuzzer's description of a finding.
fn account(text: &str, problem: &str) -> String {
    let is_telling = |line: &&str| {
        let marks = ["panicked at", "ERROR: libFuzzer", "Test unit written to"];
        marks.iter().any(|mark| line.contains(mark))
    };
    // A panic's message is on the line after its location.
    let lines: Vec<&str> = text.lines().collect();
    let telling = lines.iter().enumerate().filter(|(_, line)| is_telling(line));
    let mut told: Vec<&str> = Vec::new();
    for (index, line) in telling {
        told.push(line);
        if line.contains("panicked at") {
            told.extend(lines.get(index + 1));
        }
    }
    if told.is_empty() { problem.to_string() } else { told.join("\n    ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_driven() {
        let repository = Repository::find().expect("this is one");
        let folder = std::fs::read_dir(repository.base().join("fuzz/fuzz_targets")).expect("a folder of targets");
        let mut found: Vec<String> = folder
            .map(|entry| entry.expect("a target").path().file_stem().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        found.sort();
        assert_eq!(found, TARGETS.map(|target| target.name.to_string()));
    }

    #[test]
    fn bodies_are_those_of_unit_tests() {
        let repository = Repository::find().expect("this is one");
        for target in TARGETS {
            let path = repository.base().join("fuzz/fuzz_targets").join(target.name).with_extension("rs");
            let text = std::fs::read_to_string(path).expect("a target");
            // The target contains only the fuzzer's glue; the body is in the crate of the inputs.
            let tests = target.inputs.split_once("/tests/").expect("a folder of tests").0;
            assert!(text.contains(&format!("#[path = \"../../{tests}/tests/")), "{} of {tests}", target.name);
            assert!(!text.contains("fn ") && text.contains("::run(bytes)"), "{}", target.name);
        }
    }

    #[test]
    fn no_input_is_cut_off() {
        let repository = Repository::find().expect("this is one");
        for target in TARGETS {
            let inputs = target.inputs;
            let folder = std::fs::read_dir(repository.base().join(inputs)).expect("a folder of inputs");
            let lengths: Vec<u64> =
                folder.map(|entry| entry.and_then(|entry| entry.metadata()).expect("an input").len()).collect();
            assert!(!lengths.is_empty(), "{inputs} is empty");
            let whole = lengths.iter().all(|length| *length <= u64::from(target.max_bytes));
            assert!(whole, "an input of {} is longer than {} bytes: {lengths:?}", target.name, target.max_bytes);
        }
    }

    #[test]
    fn what_was_found_is_tried_again() {
        let folders = ["learned", "findings", "inputs"].map(Path::new);
        let command = command(Path::new("target"), &target("some", "inputs"), SHORT, folders);
        let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.contains(&"-artifact_prefix=findings/".to_string()), "{words:?}");
        // The first folder is the output.
        let read: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
        assert_eq!(read, ["learned", "findings", "inputs"]);
        assert!(!words.iter().any(|word| word.starts_with("-runs")), "{words:?}");
        let limited = Target { max_runs: Some(7), ..target("some", "inputs") };
        let limited = super::command(Path::new("target"), &limited, SHORT, folders);
        assert!(limited.get_args().any(|word| word == "-runs=7"));
    }

    #[test]
    fn what_a_fuzzer_has_done_is_counted() {
        assert_eq!(done("#1 INITED\nDone 50000 runs in 7 second(s)\n"), 50_000);
        assert_eq!(done("==7== ERROR: libFuzzer: timeout\n"), 0);
    }

    #[test]
    fn a_finding_is_told_with_the_words_of_the_panic() {
        let text = "INFO: seed\nthread '<unnamed>' panicked at lib.rs:1:2:\nout of range\nnote: trace\n\
                    ==7== ERROR: libFuzzer: deadly signal\nartifact; Test unit written to findings/crash-1\n";
        let told = account(text, "the machine ended with 77");
        let parts = ["lib.rs:1:2", "out of range", "deadly signal", "findings/crash-1"];
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        assert_eq!(account("", "no end after 5 seconds"), "no end after 5 seconds");
    }
}
