//! Extensions of the compiler of WebAssembly, as its children: the same image with them and without, and one sentence
//! when one does not do what it is asked for.

use std::time::Duration;

use end_to_end::{Machine, Run, built_system, key};
use manifest_model::{Bounds, Code, Manifest};
use package::Package;
use package_build::Signer;
use tempfile::TempDir;

use crate::wasm_installs::program_of;

/// Time of a run that compiles, on a busy host.
const LIMIT: Duration = Duration::from_secs(300);

/// A folder with a package of Lua.
pub(crate) fn packages(system: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let module = std::fs::read(end_to_end::repository().join("ports/lua/lua.wasm")).expect("a module");
    let template = program_of(system, "wasi");
    let code = Code::Wasm { digest: [0; 32], template: "wasi".into(), bounds: Bounds::Guarded };
    let manifest = Manifest { name: "lua".into(), code, ..template };
    let package = package_build::build_unchecked(manifest, b"", &module, &Signer::root(key())).expect("a package");
    std::fs::write(folder.path().join("lua.package"), &package).expect("a file");
    Package::parse(&package).expect("it is one");
    folder
}

/// Compiles with these words for the compiler, and looks at what is left.
fn compiled(words: &[&str]) -> Run {
    let system = built_system("compiler-check");
    let folder = packages(&std::fs::read(&system).expect("a system image"));
    let one = |words: &&str| format!("bench-wasm compile /fs/m/lua.package {words}; ");
    let commands: String = words.iter().map(one).collect();
    // The first ones load the images.
    let commands = format!("{commands} {0}; {commands} {0};", Run::LOOKS);
    let mapped = format!("m={}", folder.path().display());
    Machine::new().system(system).folder(&mapped).limit(LIMIT).run(&format!("{commands} ps"))
}

pub(crate) fn hashes(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("bench image_hash ")).collect()
}

/// Counters that are back where they were.
const COUNTERS: [&str; 4] = ["channels", "processes", "threads", "blocks"];

/// None of them is left, nor anything that was theirs.
fn ended(run: &Run, counters: &[&str]) {
    run.orderly();
    let looks = run.steady_counters();
    assert_eq!(looks.len(), 2, "{run}");
    for name in counters {
        let counts: Vec<_> = looks.iter().map(|look| look.get(*name)).collect();
        assert!(counts.windows(2).all(|pair| pair[0].is_some() && pair[0] == pair[1]), "{name}: {counts:?}\n{run}");
    }
    let list = run.text();
    for name in ["compiler", "register-allocator", "allocation-checker", "allocator-"] {
        let is_left = |line: &str| line.split_whitespace().any(|word| word.starts_with(name));
        assert!(!list.lines().any(is_left), "{name}:\n{run}");
    }
}

#[test]
fn an_image_is_the_same_whoever_allocates() {
    let run = compiled(&[
        "",
        "--allocator register-allocator --threads 1",
        "--allocator register-allocator",
        "--allocator register-allocator --checker allocation-checker",
    ]);
    ended(&run, &COUNTERS);
    let text = run.text();
    let hashes = hashes(&text);
    assert!(hashes.len() == 8 && hashes.iter().all(|hash| *hash == hashes[0]), "{run}");
}

#[test]
fn an_extension_that_does_not_do_its_work_is_refused_in_a_sentence() {
    let cases = [
        (
            "--allocator allocator-astray",
            "the answer of the extension `allocator-astray` does not fit its function: it names a register that there is \
             not; compile without it",
        ),
        (
            "--allocator allocator-crash",
            "the extension `allocator-crash` ended: exited with status 7; compile without it",
        ),
        (
            "--allocator allocator-mute --answer-ms 3000",
            "the extension `allocator-mute` takes more than 3000 ms for a function; compile without it",
        ),
        (
            "--allocator allocator-swaps --checker allocation-checker",
            "the extension `allocation-checker` refuses what `allocator-swaps` allocated: ",
        ),
        // A limit in bytes would cut it within a letter.
        (
            "--allocator allocator-wordy --threads 1",
            "the extension `allocator-wordy` refuses a function: a\u{1d11e}\u{1d11e}",
        ),
        ("--allocator nobody", "the extension `nobody` does not start: "),
        ("--checker allocation-checker", "`allocation-checker` has no allocator to check; name one, or neither"),
        ("--allocator verifier", "the extension `verifier` does not start: "),
    ];
    let words: Vec<&str> = cases.iter().map(|(words, _)| *words).collect();
    let run = compiled(&words);
    ended(&run, &COUNTERS);
    for (words, sentence) in cases {
        assert!(run.errors.contains(&format!("bench-wasm: {sentence}")), "{words}: {sentence}\n{run}");
    }
    assert!(hashes(&run.text()).is_empty(), "{run}");
}

/// An allocator that is killed while it works.
#[test]
fn an_extension_that_is_killed_ends_the_compilation() {
    let system = built_system("compiler-check");
    let folder = packages(&std::fs::read(&system).expect("a system image"));
    // The moment at which it is there depends on the host.
    let tries = "kill register-allocator 2> /fs/m/errors || sleep 5ms; ".repeat(400);
    let compile = "bench-wasm compile /fs/m/lua.package --allocator register-allocator";
    let mapped = format!("m={}", folder.path().display());
    let machine = Machine::new().system(system).folder(&mapped).limit(LIMIT);
    let looks = Run::LOOKS;
    let run = machine.run(&format!("{compile}; {looks}; {compile} 2> /fs/m/report & {tries} wait; {looks}; ps"));
    // The folder keeps blocks for as many requests as it had at once.
    ended(&run, &COUNTERS[..3]);
    let report = std::fs::read_to_string(folder.path().join("report")).expect("a report");
    assert!(report.contains("the extension `register-allocator` ended: "), "{report}\n{run}");
}
