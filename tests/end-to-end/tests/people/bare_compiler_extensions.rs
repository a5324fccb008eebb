//! Extensions of the compiler of WebAssembly on a bare machine, each in a hardware domain of its own.

use std::time::Duration;

use end_to_end::{BareMachine, built_system, finish};

use crate::compiler_extensions::{hashes, packages};

test_needs::needs!(Qemu);

/// Time of a run whose system is built first.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn an_image_is_the_same_whoever_allocates_on_a_bare_machine() {
    let hosted = built_system("compiler-check");
    let folder = packages(&std::fs::read(hosted).expect("a system image"));
    let mapped = format!("m={}:ro", folder.path().display());
    let machine =
        BareMachine::new("qemu").with(&["--system", "bench-compiler-bare", "--mem", "2G", "--folder", &mapped]);
    let words = [
        "",
        "--allocator register-allocator --threads 1",
        "--allocator register-allocator --checker allocation-checker",
        "--allocator nobody",
    ];
    let one = |words: &&str| format!("bench-wasm compile /fs/m/lua.package {words}; ");
    let commands: String = words.iter().map(one).collect();
    let run = finish(machine.command(Some(&format!("{commands} ps"))), "compiling with extensions", LIMIT);
    run.orderly();
    let text = run.text();
    let hashes = hashes(&text);
    assert!(hashes.len() == 3 && hashes.iter().all(|hash| *hash == hashes[0]), "{run}");
    assert!(run.errors.contains("the extension `nobody` does not start: "), "{run}");
    let is_left = |line: &str| line.split_whitespace().any(|word| word.starts_with("register-") || word == "compiler");
    assert!(!text.lines().any(is_left), "{run}");
}
