//! Builds in copies of the repository: reproducible packages, and programs made from templates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use end_to_end::{Run, finish, free_port, repository, sing};
use package::Package;

/// Timeout for building from scratch on a small host.
const LIMIT: Duration = Duration::from_secs(1800);

/// A copy of the repository's sources, with an output folder of its own.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn new(root: PathBuf) -> Copy {
        copy(repository(), &root);
        Copy { root }
    }

    #[track_caller]
    fn finish(&self, mut command: Command, asked: &str) -> Run {
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", self.root.join("target"));
        finish(command, asked, LIMIT)
    }

    /// Runs the tool in the copy.
    #[track_caller]
    fn sing(&self, words: &[&str]) -> Run {
        let mut command = Command::new(sing());
        command.args(words);
        let run = self.finish(command, &format!("sing {}", words.join(" ")));
        assert_eq!(run.status, Some(0), "{run}");
        run
    }

    #[track_caller]
    fn cargo(&self, words: &[&str]) {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(words);
        let run = self.finish(command, &format!("cargo {}", words.join(" ")));
        assert_eq!(run.status, Some(0), "{run}");
    }

    fn package(&self, name: &str) -> Vec<u8> {
        self.sing(&["build", name]);
        let path = self.root.join(format!("target/sing/packages/{name}.package"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Builds a module by its script. Without the compiler's target for it, a kept module that does the same takes its
    /// place.
    fn module(&self, program: &str, name: &str) {
        let mut command = Command::new("sh");
        command.arg(format!("{program}/build.sh"));
        let run = self.finish(command, "build.sh");
        if run.errors.contains("target may not be installed") {
            let kept = self.root.join("examples/wasm-web-hello/wasm-web-hello.wasm");
            std::fs::copy(kept, self.root.join(program).join(name)).expect("a file can be copied");
        } else {
            assert_eq!(run.status, Some(0), "{run}");
        }
    }

    fn change(&self, path: &str, change: impl Fn(&str) -> String) {
        let path = self.root.join(path);
        let text = std::fs::read_to_string(&path).expect("a file of the repository");
        std::fs::write(&path, change(&text)).expect("it can be written");
    }
}

/// Copies sources, without build output and files of editors and tools.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder can be read").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_wanted = name == ".cargo" || !name.to_string_lossy().starts_with('.') && name != "target";
        if is_wanted && path.is_dir() {
            copy(&path, &to.join(name));
        } else if is_wanted {
            std::fs::copy(&path, to.join(name)).expect("a file can be copied");
        }
    }
}

/// Copies the keys, since packages depend on their signer.
fn share_keys(from: &Copy, to: &Copy) {
    let keys = "target/sing/keys";
    std::fs::create_dir_all(to.root.join(keys)).expect("a folder");
    for entry in std::fs::read_dir(from.root.join(keys)).expect("there are keys").flatten() {
        std::fs::copy(entry.path(), to.root.join(keys).join(entry.file_name())).expect("a key can be copied");
    }
}

#[test]
#[ignore = "takes minutes"]
fn the_same_source_gives_the_same_package_in_every_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Copy::new(folder.path().join("a"));
    let second = Copy::new(folder.path().join("another place/further down"));
    let package = first.package("echo");
    share_keys(&first, &second);
    assert!(package == second.package("echo"), "the packages differ: {}", folder.keep().display());

    // A comment changes only the bill of materials, which hashes the source.
    second.change("apps/text/src/echo.rs", |text| format!("{text}// The end.\n"));
    let changed = second.package("echo");
    assert!(package != changed);
    let parsed = [&package, &changed].map(|bytes| Package::parse(bytes).expect("a package"));
    assert!(parsed[0].image_bytes == parsed[1].image_bytes && parsed[0].bill != parsed[1].bill);
}

/// A small system with the new programs and their dependencies.
const SYSTEM: &str = r#"
[system]
name = "few"
root = "service-manager"
primary = "shell"
installed = ["tea-cup", "ask-counter", "tea-page", "tea-leaf", "fetch"]

[[program]]
name = "directory"

[[program]]
name = "console"

[[program]]
name = "host-sockets"
devices = { sockets = "sockets0" }

[[program]]
name = "counter"

[[program]]
name = "web-server"
after = ["host-sockets"]
parameters = { port = { root = "web-port" }, applications = ["/=tea-page", "/leaf=tea-leaf greeting=Servus"] }

[[program]]
name = "shell"
requires = ["console", "directory"]
parameters = { commands = { root = "commands" } }

[[bind]]
who = "..*.singularity"
path = "/"

[[bind]]
who = "..*.singularity"
path = "/dev/console"

[[bind]]
who = "..*.singularity"
path = "/service/**"
"#;

#[test]
#[ignore = "takes minutes"]
fn programs_from_templates_build_pass_clippy_are_tested_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = Copy::new(folder.path().join("copy"));
    for (kind, name) in [
        ("app", "tea-cup"),
        ("service", "counter"),
        ("driver", "lamp"),
        ("webapp", "tea-page"),
        ("native --language c", "tea-pot"),
        ("native --language rust", "tea-spoon"),
        ("webapp --wasm", "tea-leaf"),
    ] {
        let words: Vec<&str> = kind.split(' ').collect();
        let said = copy.sing(&[&["new"], words.as_slice(), &[name]].concat()).text();
        assert!(said.contains(&format!("cargo sing run --system {name} ")), "{said}");
    }
    // Manifests, contracts, and their new systems.
    assert!(copy.sing(&["check"]).text().contains("all right"));
    let crates = [
        "tea-cup",
        "counter",
        "counter-contract",
        "ask-counter",
        "lamp",
        "lamp-contract",
        "ask-lamp",
        "tea-page",
        "tea-pot",
        "tea-spoon",
        "tea-leaf",
    ];
    let packages: Vec<&str> = crates.iter().flat_map(|name| ["--package", name]).collect();
    copy.cargo(&[&["fmt", "--check"], packages.as_slice()].concat());
    let lints = ["--quiet", "--all-targets", "--", "-D", "warnings"];
    copy.cargo(&[&["clippy"], packages.as_slice(), &lints].concat());
    copy.cargo(&[&["test", "--quiet"], packages.as_slice()].concat());
    copy.sing(&["build", "lamp", "ask-lamp"]);
    copy.module("apps/tea-leaf", "tea-leaf.wasm");

    std::fs::write(copy.root.join("systems/few.toml"), SYSTEM).expect("a file can be written");
    let port = free_port();
    let commands = format!(
        "tea-cup Ada; tea-cup -l; tea-cup -?; ask-counter 2; ask-counter; fetch 'http://127.0.0.1:{port}/?name=Ada'; \
         fetch 'http://127.0.0.1:{port}/leaf/?name=Eve'"
    );
    let parameter = format!("web-port={port}");
    let said = copy.sing(&["run", "--system", "few", "--parameter", &parameter, "-c", &commands]).text();
    for part in [
        "Hello, Ada.\nHello, world!\n",
        "usage: tea-cup [-l] [NAMES...]",
        "\n1\n2\n3\n",
        "<h1>Hello, Ada!</h1>",
        "<h1>Servus, Eve!</h1>",
    ] {
        assert!(said.contains(part), "nothing is said of {part:?}:\n{said}");
    }
}

#[test]
#[ignore = "takes minutes"]
fn native_programs_from_templates_run_in_domains_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = Copy::new(folder.path().join("copy"));
    for (language, name) in [("c", "tea-pot"), ("rust", "tea-spoon")] {
        copy.sing(&["new", "native", name, "--language", language]);
        let commands = format!("{name} drawer; {name}; sysinfo");
        let run = copy.sing(&["run", "--system", name, "-c", &commands]);
        assert!(run.text().contains("reward\nytiralugniS\n"), "{run}");
    }
}
