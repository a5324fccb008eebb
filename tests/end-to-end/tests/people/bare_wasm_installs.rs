//! A WebAssembly package in a bare machine: packed by the tool, compiled, proven and run by the machine.

use std::process::Command;
use std::time::Duration;

use end_to_end::{BareMachine, Format, Image, finish, repository, sing};

test_needs::needs!(E2fsprogs, Qemu);

/// Time of a run whose system is built first, and which compiles without the host's help.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn a_bare_machine_compiles_what_it_installs() {
    let files = tempfile::tempdir().expect("a folder");
    let mut tool = Command::new(sing());
    tool.args(["package", "wasm-hello", "-o"]).arg(files.path().join("hello.package")).current_dir(repository());
    let packed = finish(tool, "sing package wasm-hello", LIMIT);
    // The first time it says that it builds the compiler.
    assert_eq!(packed.status, Some(0), "{packed}");
    let disk = Image::of(files.path(), Format { mebibytes: 32, ..Format::default() });
    let path = disk.path().display().to_string();
    let run = |commands: &str| {
        let machine = BareMachine::new("microvm").with(&["--system", "wasm-bare", "--disk", &path]);
        let run = finish(machine.command(Some(commands)), commands, LIMIT);
        run.orderly();
        run
    };
    // The system's own program of this name was compiled by the host.
    let installed = run("uninstall wasm-hello; install /fs/disk0/hello.package; wasm-hello; explain wasm-hello");
    let text = installed.text();
    for part in ["kept in /fs/disk0/system", "\nhello from wasm\n", "a WebAssembly module of the template `wasi`"] {
        assert!(text.contains(part), "`{part}` is not in:\n{installed}");
    }
    // It answers when all that is kept was proven, which a slow host may not do before the shell starts.
    let wait = "for n in $(seq 1 12); do ls /service | grep installer || sleep 10s; end";
    let restarted = run(&format!("{wait}; explain wasm-hello; wasm-hello; uninstall wasm-hello; wasm-hello"));
    let text = restarted.text();
    assert!(text.contains("a WebAssembly module of the template `wasi`"), "{restarted}");
    assert_eq!(text.matches("hello from wasm").count(), 1, "it was taken out:\n{restarted}");
    disk.check();
}
