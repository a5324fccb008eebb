//! Calls cargo: builds with a progress line, and `cargo metadata` as typed data.
//!
//! Deliberately not here: what is built and why; `builder` and `tests` know that.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use serde::Deserialize;

use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, TICK};
use crate::repository::Repository;

/// The triple that images and the hosted machine are built for.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A cargo command for what others wrote: it reads no configuration of the folders that they come in (`.cargo/config.toml`
/// may name programs to run, other sources of crates, and settings), and nothing turns on what is not stable.
pub fn command_for_others() -> Command {
    let mut command = plain();
    // Cargo looks for its configuration in the folder that it is started in, in those above, and in its own.
    command.current_dir("/").env_remove("RUSTC_BOOTSTRAP");
    if let Ok(home) = std::path::absolute(home()) {
        command.env("CARGO_HOME", home);
    }
    command
}

/// A cargo command for the system's own crates, with the configuration that its sources have: not that of the folder in
/// which this tool was started, which may be somebody else's.
pub fn command(repository: &Repository) -> Command {
    let mut command = plain();
    command.current_dir(repository.base()).env("CARGO_TARGET_DIR", repository.cargo_target());
    command
}

/// A cargo command without what an outer `cargo run` left in the environment.
fn plain() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The folder in which cargo keeps what it downloads.
pub fn home() -> PathBuf {
    let by_variable = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    by_variable.or_else(usual).unwrap_or_else(|| PathBuf::from(".cargo"))
}

/// Runs a `cargo build` to its end and returns the programs it made, by package name.
///
/// Messages of the compiler are shown only when it fails. `expected` is about how many packages
/// there are to build.
///
/// # Errors
/// Cargo cannot be started, or the build fails; the compiler's messages are in the failure.
pub fn build(command: Command, what: &str, expected: usize) -> Outcome<BTreeMap<String, PathBuf>> {
    build_with_artifacts(command, what, expected).map(|built| built.programs)
}

/// What a build made, or found made.
#[derive(Debug, Default)]
pub struct Built {
    /// The programs by package name.
    pub programs: BTreeMap<String, PathBuf>,
    /// Everything.
    pub artifacts: Vec<Artifact>,
}

/// A crate that was compiled, now or at an earlier build.
#[derive(Debug)]
pub struct Artifact {
    /// Cargo's id of its package.
    pub package_id: String,
    /// What the compiler made of it.
    pub files: Vec<PathBuf>,
}

/// As [`build`], with all that was made on the way.
///
/// # Errors
/// As for that.
pub fn build_with_artifacts(mut command: Command, what: &str, expected: usize) -> Outcome<Built> {
    command.args(["--quiet", "--message-format=json-render-diagnostics"]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_start)?;
    let errors = child.stderr.take();
    let collector = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            // A pipe that breaks only shortens the text that is shown.
            let _ = errors.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut progress = Progress::new(what, expected);
    let mut built = Built::default();
    if let Some(output) = child.stdout.take() {
        follow(output, &mut progress, |line, progress| {
            let Ok(message) = serde_json::from_str::<Message>(line) else { return };
            let (Some(target), Some(package_id)) = (message.target, message.package_id) else { return };
            progress.step(&package_id, &target.name);
            if let (Some(executable), true) = (message.executable, target.kind.iter().any(|kind| kind == "bin")) {
                built.programs.insert(target.name, executable);
            }
            built.artifacts.push(Artifact { package_id, files: message.filenames });
        });
    }
    let status = child.wait().map_err(cannot_start)?;
    drop(progress);
    let messages = collector.join().unwrap_or_default();
    if status.success() {
        return Ok(built);
    }
    Err(Failure::new(format!("{what} did not build")).details(messages).remedy("correct the errors shown above"))
}

/// Hands each line of cargo's messages to `take`. While there is none, the progress is shown.
pub fn follow(output: impl Read + Send + 'static, progress: &mut Progress, mut take: impl FnMut(&str, &mut Progress)) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // The receiver takes all of them.
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(line) => take(&line, progress),
            Err(mpsc::RecvTimeoutError::Timeout) => progress.tick(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("cargo cannot be started: {error}"))
        .remedy("install a stable Rust toolchain, for instance with rustup")
}

#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    target: Option<MessageTarget>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct MessageTarget {
    name: String,
    kind: Vec<String>,
}

/// What `cargo metadata` says of a workspace and all it depends on.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Every package of the closure.
    pub packages: Vec<Package>,
    /// Who uses whom; there is none when asked for the workspace alone.
    pub resolve: Option<Resolve>,
    /// Ids of the workspace's own packages.
    pub workspace_members: Vec<String>,
}

/// One package.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Cargo's id of it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Under which licences it may be used, as an SPDX expression.
    pub license: Option<String>,
    /// Where it came from; none for one in this repository.
    pub source: Option<String>,
    /// Its Cargo.toml.
    pub manifest_path: PathBuf,
    /// The edition of the language that it is written in.
    pub edition: String,
    /// What it builds.
    pub targets: Vec<Target>,
    /// What it says it depends on.
    pub dependencies: Vec<Dependency>,
}

/// Something a package builds.
#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// `lib`, `bin`, `proc-macro`, `custom-build`, `test` and so on.
    pub kind: Vec<String>,
    /// Its first source file.
    pub src_path: PathBuf,
}

/// A dependency as a Cargo.toml states it.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// None for a normal one, `dev` or `build`.
    pub kind: Option<String>,
    /// The folder, when it is given by path.
    pub path: Option<PathBuf>,
}

/// The resolved graph.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// One node for each package.
    pub nodes: Vec<Node>,
}

/// A package in the resolved graph.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// Cargo's id of the package.
    pub id: String,
    /// What it uses.
    pub deps: Vec<NodeDependency>,
    /// Which of its features are on, for whichever packages.
    pub features: Vec<String>,
}

/// An edge of the resolved graph.
#[derive(Debug, Deserialize)]
pub struct NodeDependency {
    /// Under which name its source knows it.
    pub name: String,
    /// The id of the package that is used.
    pub pkg: String,
    /// For what it is used.
    pub dep_kinds: Vec<DependencyKind>,
}

/// For what a package is used.
#[derive(Debug, Deserialize)]
pub struct DependencyKind {
    /// None for a normal dependency, `dev` or `build`.
    pub kind: Option<String>,
}

impl Package {
    /// Whether it has a target of this kind.
    pub fn has_target(&self, kind: &str) -> bool {
        self.target(kind).is_some()
    }

    /// The first target of this kind.
    pub fn target(&self, kind: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.kind.iter().any(|each| each == kind))
    }

    /// What others link: its library of whatever kind, or procedural macro.
    pub fn library(&self) -> Option<&Target> {
        const OTHERS: [&str; 5] = ["bin", "example", "test", "bench", "custom-build"];
        self.targets.iter().find(|target| !target.kind.iter().any(|kind| OTHERS.contains(&kind.as_str())))
    }

    /// The folder of its Cargo.toml.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }
}

impl Metadata {
    /// Asks cargo about the workspace with this Cargo.toml and all it depends on, where rustc is given these flags: some
    /// of them decide what `[target.'cfg(...)'.dependencies]` hold.
    ///
    /// # Errors
    /// Cargo cannot be started or cannot resolve the dependencies.
    pub fn of_workspace(manifest: &Path, encoded_flags: &str) -> Outcome<Metadata> {
        let mut command = command_for_others();
        command.env("CARGO_ENCODED_RUSTFLAGS", encoded_flags).env_remove("RUSTFLAGS");
        Metadata::query(command, manifest, &["--filter-platform", TARGET])
    }

    /// Asks cargo about the packages of the workspace alone.
    ///
    /// # Errors
    /// Cargo cannot be started or cannot read the workspace.
    pub fn of_members(manifest: &Path) -> Outcome<Metadata> {
        Metadata::query(command_for_others(), manifest, &["--no-deps"])
    }

    fn query(mut command: Command, manifest: &Path, options: &[&str]) -> Outcome<Metadata> {
        let output = command
            .args(["metadata", "--quiet", "--format-version", "1", "--manifest-path"])
            .arg(manifest)
            .args(options)
            .stdin(Stdio::null())
            .output()
            .map_err(cannot_start)?;
        if !output.status.success() {
            return Err(Failure::new(format!("cargo cannot work out the dependencies of {}", manifest.display()))
                .details(String::from_utf8_lossy(&output.stderr))
                .remedy("mend the Cargo.toml that cargo names above"));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| {
            Failure::new(format!("cargo metadata gave something that is not its format 1: {error}"))
                .remedy("use a stable toolchain of 1.90 or later")
        })
    }

    /// The package with this name among the workspace's own.
    pub fn member(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name && self.workspace_members.contains(&package.id))
    }

    /// Everything that building the package `id` compiles or runs, itself included.
    pub fn closure(&self, id: &str) -> Vec<&Package> {
        self.reached(id, |edge, _| edge.is_built())
    }

    /// What of that is linked into what is built: not procedural macros and build scripts, nor what only they use.
    pub fn linked(&self, id: &str) -> Vec<&Package> {
        self.reached(id, |edge, used| edge.is_linked() && !used.has_target("proc-macro"))
    }

    /// A package in the resolved graph.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.resolve.iter().flat_map(|resolve| &resolve.nodes).find(|node| node.id == id)
    }

    /// The packages that are reached from `id` by edges that are followed, itself included.
    fn reached(&self, id: &str, is_followed: impl Fn(&NodeDependency, &Package) -> bool) -> Vec<&Package> {
        let packages: BTreeMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.iter().flat_map(|resolve| &resolve.nodes).map(|node| (node.id.as_str(), node)).collect();
        let mut seen = BTreeSet::new();
        let mut open = vec![id];
        while let Some(current) = open.pop() {
            if !seen.insert(current) {
                continue;
            }
            let used = nodes.get(current).into_iter().flat_map(|node| &node.deps);
            let followed =
                used.filter(|edge| packages.get(edge.pkg.as_str()).is_some_and(|used| is_followed(edge, used)));
            open.extend(followed.map(|edge| edge.pkg.as_str()));
        }
        self.packages.iter().filter(|package| seen.contains(package.id.as_str())).collect()
    }
}

impl NodeDependency {
    /// Whether the edge is a normal dependency.
    fn is_linked(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.is_none())
    }

    /// Whether the edge is more than a dev-dependency.
    pub fn is_built(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
    }
}
