//! Builds and locates the programs under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("this crate lies in tests/")
}

/// Cargo's target folder, below which the tool keeps its own.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) if !folder.is_empty() => repository().join(folder),
        _ => repository().join("target"),
    }
}

/// Path of the tool: the one that runs these tests, or else one built here.
pub fn sing() -> &'static Path {
    static SING: OnceLock<PathBuf> = OnceLock::new();
    SING.get_or_init(|| {
        if let Some(given) = std::env::var_os("SING") {
            return given.into();
        }
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--release", "--no-default-features", "--package", "sing", "--bin", "sing"]);
        cargo.arg("--manifest-path");
        cargo.arg(repository().join("Cargo.toml")).arg("--target-dir").arg(target());
        let status = cargo.stdin(Stdio::null()).status().expect("cargo starts");
        assert!(status.success(), "the tool `sing` does not build");
        target().join("release/sing")
    })
}

/// Builds the hosted system and returns the path of the hosted machine's program.
pub fn machine_program() -> PathBuf {
    prepare();
    target().join("release/singularity-hosted")
}

/// Process id of the machine itself: a confined one is a child of its keeper.
#[track_caller]
pub fn machine_process(started: u32) -> u32 {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        let children = std::fs::read_to_string(format!("/proc/{started}/task/{started}/children")).unwrap_or_default();
        if let Some(machine) = children.split_whitespace().next().and_then(|number| number.parse().ok()) {
            return machine;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("process {started} keeps no machine");
}

/// Builds the hosted system and returns the path of its system image.
pub fn system_image() -> PathBuf {
    prepare();
    target().join("sing/systems/hosted.system")
}

/// Builds another system for the hosted machine and returns the path of its system image.
pub fn built_system(name: &str) -> PathBuf {
    machine_program();
    let output = Command::new(sing())
        .args(["run", "--system", name, "-c", "true"])
        .current_dir(repository())
        .stdin(Stdio::null())
        .output()
        .expect("the tool starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`sing run --system {name} -c true` ended with {}:\n{words}", output.status);
    target().join(format!("sing/systems/{name}.system"))
}

/// Builds the hosted system once for all tests, so that no timeout includes a build.
fn prepare() {
    static PREPARED: OnceLock<()> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let output = Command::new(sing())
            .args(["run", "-c", "true"])
            .current_dir(repository())
            .stdin(Stdio::null())
            .output()
            .expect("the tool starts");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`sing run -c true` ended with {}:\n{words}", output.status);
    });
}

/// The same command, started by `env`, which sets signals: a machine inherits those that are ignored, as under nohup.
pub fn with_signals(option: &str, command: &Command) -> Command {
    let mut through = Command::new("env");
    through.arg(option).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        through.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => through.env(name, value),
            None => through.env_remove(name),
        };
    }
    through
}
