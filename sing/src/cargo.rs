//! Runs cargo: builds with a progress line, and `cargo metadata` as typed data.
//!
//! Deliberately not here: the selection of packages to build; see `builder` and `test`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use serde::Deserialize;

use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, TICK};
use crate::repository::Repository;

/// Target triple of images and of the hosted machine.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Returns a cargo command for untrusted sources: it ignores the `.cargo/config.toml` of their folders (which may
/// name programs to run, other crate sources and settings), and no unstable feature is enabled.
pub fn command_for_others() -> Command {
    let mut command = plain();
    // Cargo searches for its configuration in the current folder, its ancestors and its own home.
    command.current_dir("/").env_remove("RUSTC_BOOTSTRAP");
    if let Ok(home) = std::path::absolute(home()) {
        command.env("CARGO_HOME", home);
    }
    command
}

/// Returns a cargo command for the system's own crates. It uses the configuration of their sources, not that of the
/// current folder, which may be unrelated.
pub fn command(repository: &Repository) -> Command {
    let mut command = plain();
    command.current_dir(repository.base()).env("CARGO_TARGET_DIR", repository.cargo_target());
    command
}

/// Returns a cargo command without the environment that an outer `cargo run` sets.
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

/// Returns cargo's home, where downloads are kept.
pub fn home() -> PathBuf {
    let by_variable = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    by_variable.or_else(usual).unwrap_or_else(|| PathBuf::from(".cargo"))
}

/// Runs a `cargo build` to completion and returns the programs it built, by package name.
///
/// Compiler messages are shown only on failure. `expected` is the approximate number of packages to build.
///
/// # Errors
/// Cargo cannot be started, or the build fails; the failure holds the compiler's messages.
pub fn build(command: Command, what: &str, expected: usize) -> Outcome<BTreeMap<String, PathBuf>> {
    build_with_artifacts(command, what, expected).map(|built| built.programs)
}

/// Output of a build, fresh or up to date.
#[derive(Debug, Default)]
pub struct Built {
    /// Programs by package name.
    pub programs: BTreeMap<String, PathBuf>,
    /// All artifacts.
    pub artifacts: Vec<Artifact>,
}

/// A compiled crate, from this build or an earlier one.
#[derive(Debug)]
pub struct Artifact {
    /// Cargo's package id.
    pub package_id: String,
    /// Files that the compiler produced.
    pub files: Vec<PathBuf>,
}

/// Like [`build`], but also returns the intermediate artifacts.
///
/// # Errors
/// As for [`build`].
pub fn build_with_artifacts(mut command: Command, what: &str, expected: usize) -> Outcome<Built> {
    command.args(["--quiet", "--message-format=json-render-diagnostics"]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_start)?;
    let errors = child.stderr.take();
    let collector = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            // A broken pipe only truncates the text shown.
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
    Err(Failure::new(format!("{what} did not build")).details(messages).remedy("fix the errors above"))
}

/// Passes each line of cargo's messages to `take`; the progress line keeps updating between them.
pub fn follow(output: impl Read + Send + 'static, progress: &mut Progress, mut take: impl FnMut(&str, &mut Progress)) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // The receiver drains the channel.
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
    Failure::new(format!("cannot start cargo: {error}"))
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

/// `cargo metadata` of a workspace and its dependencies.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Every package of the closure.
    pub packages: Vec<Package>,
    /// The resolved graph; `None` for the workspace alone.
    pub resolve: Option<Resolve>,
    /// Ids of the workspace members.
    pub workspace_members: Vec<String>,
}

/// A package.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Cargo's package id.
    pub id: String,
    /// Package name.
    pub name: String,
    /// Package version.
    pub version: String,
    /// Licence, as an SPDX expression.
    pub license: Option<String>,
    /// Source registry; `None` for a crate of this repository.
    pub source: Option<String>,
    /// Path of its Cargo.toml.
    pub manifest_path: PathBuf,
    /// Rust edition.
    pub edition: String,
    /// Build targets.
    pub targets: Vec<Target>,
    /// Declared dependencies.
    pub dependencies: Vec<Dependency>,
}

/// A build target of a package.
#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    /// Target name.
    pub name: String,
    /// `lib`, `bin`, `proc-macro`, `custom-build`, `test` and so on.
    pub kind: Vec<String>,
    /// Root source file.
    pub src_path: PathBuf,
}

/// A dependency as declared in a Cargo.toml.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// Package name.
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
    /// Folder of a path dependency.
    pub path: Option<PathBuf>,
}

/// The resolved dependency graph.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// One node per package.
    pub nodes: Vec<Node>,
}

/// A package in the resolved graph.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// Cargo's package id.
    pub id: String,
    /// Resolved dependencies.
    pub deps: Vec<NodeDependency>,
    /// Enabled features, unified over all dependents.
    pub features: Vec<String>,
}

/// An edge of the resolved graph.
#[derive(Debug, Deserialize)]
pub struct NodeDependency {
    /// Name by which the dependent's source refers to it.
    pub name: String,
    /// Id of the dependency.
    pub pkg: String,
    /// Kinds of the dependency.
    pub dep_kinds: Vec<DependencyKind>,
}

/// The kind of a dependency edge.
#[derive(Debug, Deserialize)]
pub struct DependencyKind {
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
}

impl Package {
    /// Returns whether the package has a target of this kind.
    pub fn has_target(&self, kind: &str) -> bool {
        self.target(kind).is_some()
    }

    /// Returns the first target of this kind.
    pub fn target(&self, kind: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.kind.iter().any(|each| each == kind))
    }

    /// Returns the target that dependents link: a library of any kind, or a procedural macro.
    pub fn library(&self) -> Option<&Target> {
        const OTHERS: [&str; 5] = ["bin", "example", "test", "bench", "custom-build"];
        self.targets.iter().find(|target| !target.kind.iter().any(|kind| OTHERS.contains(&kind.as_str())))
    }

    /// Returns the folder of its Cargo.toml.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }
}

impl Metadata {
    /// Runs `cargo metadata` on the workspace of `manifest` and its dependencies, with these rustc flags: some of
    /// them decide which `[target.'cfg(...)'.dependencies]` apply.
    ///
    /// # Errors
    /// Cargo cannot be started or cannot resolve the dependencies.
    pub fn of_workspace(manifest: &Path, encoded_flags: &str) -> Outcome<Metadata> {
        let mut command = command_for_others();
        command.env("CARGO_ENCODED_RUSTFLAGS", encoded_flags).env_remove("RUSTFLAGS");
        Metadata::query(command, manifest, &["--filter-platform", TARGET])
    }

    /// Runs `cargo metadata` on the workspace members alone.
    ///
    /// # Errors
    /// Cargo cannot be started or cannot read the workspace.
    pub fn of_members(manifest: &Path) -> Outcome<Metadata> {
        Metadata::query(command_for_others(), manifest, &["--no-deps"])
    }

    /// Runs `cargo metadata` on the workspace of a crate and its dependencies, among them those that its feature adds.
    ///
    /// # Errors
    /// As for [`of_workspace`](Self::of_workspace), or the crate has no such feature.
    pub fn with_feature(manifest: &Path, feature: &str) -> Outcome<Metadata> {
        Metadata::query(command_for_others(), manifest, &["--filter-platform", TARGET, "--features", feature])
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
            return Err(Failure::new(format!("cargo cannot resolve the dependencies of {}", manifest.display()))
                .details(String::from_utf8_lossy(&output.stderr))
                .remedy("fix the Cargo.toml that cargo names above"));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| {
            Failure::new(format!("unexpected output of cargo metadata: {error}"))
                .remedy("use a stable toolchain of 1.90 or later")
        })
    }

    /// Returns the workspace member with this name.
    pub fn member(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name && self.workspace_members.contains(&package.id))
    }

    /// Returns every package that building `id` compiles or runs, itself included.
    pub fn closure(&self, id: &str) -> Vec<&Package> {
        self.reached(id, |edge, _| edge.is_built())
    }

    /// Returns the part of the closure that is linked into the result: without procedural macros, build scripts and
    /// their dependencies.
    pub fn linked(&self, id: &str) -> Vec<&Package> {
        self.reached(id, |edge, used| edge.is_linked() && !used.has_target("proc-macro"))
    }

    /// Returns a package's node in the resolved graph.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.resolve.iter().flat_map(|resolve| &resolve.nodes).find(|node| node.id == id)
    }

    /// Returns the packages reachable from `id` along the edges that `is_followed` accepts, itself included.
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
    /// Returns whether the edge is a normal dependency.
    fn is_linked(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.is_none())
    }

    /// Returns whether the edge is more than a dev-dependency.
    pub fn is_built(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
    }
}
