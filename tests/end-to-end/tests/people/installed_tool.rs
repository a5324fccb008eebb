//! The tool as it is installed, in a folder outside of any clone: it has the sources of the system with it.

use std::process::Command;
use std::time::Duration;

use end_to_end::{Run, finish, repository, target};
use tempfile::TempDir;

/// Timeout for building a system from scratch on a busy host.
const LIMIT: Duration = Duration::from_secs(1800);

/// An installed tool with a home of its own.
struct Installed {
    home: TempDir,
    folder: TempDir,
}

impl Installed {
    fn new() -> Installed {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--release", "--package", "sing", "--bin", "cargo-sing"]);
        cargo.current_dir(repository()).arg("--target-dir").arg(target());
        let built = finish(cargo, "cargo build", LIMIT);
        assert_eq!(built.status, Some(0), "{built}");
        let folder = || tempfile::tempdir().expect("a folder");
        Installed { home: folder(), folder: folder() }
    }

    /// Runs `cargo sing` with these words in a folder below its own.
    #[track_caller]
    fn sing(&self, below: &str, words: &[&str]) -> Run {
        let mut command = Command::new(target().join("release/cargo-sing"));
        command.arg("sing").args(words).current_dir(self.folder.path().join(below));
        command.env("SING_HOME", self.home.path()).env_remove("CARGO_TARGET_DIR");
        let run = finish(command, &words.join(" "), LIMIT);
        assert_eq!(run.status, Some(0), "{run}");
        run
    }
}

#[test]
fn an_installed_tool_makes_and_checks_a_workspace() {
    let installed = Installed::new();
    let said = installed.sing("", &["new", "app", "greeter"]).text();
    assert!(said.contains("cargo sing run --system greeter "), "{said}");
    let said = installed.sing("greeter", &["check"]).text();
    assert!(said.contains("all right"), "{said}");
}

#[test]
#[ignore = "takes minutes"]
fn an_installed_tool_runs_a_program_of_a_workspace() {
    let installed = Installed::new();
    installed.sing("", &["new", "app", "greeter"]);
    let said = installed.sing("greeter", &["run", "--system", "greeter", "-c", "greeter Ada"]).text();
    assert!(said.contains("Ada"), "{said}");
}
