//! Hostile sources for the builder: `tests/hostile/build`, one folder for each attempt.
//!
//! A folder holds files to overlay on a copy of the repository with the program `hostile` of `innocent`, and
//! `expect.toml`: the attempt, and a part of the expected error. `innocent` must build. None may execute code on the
//! builder's machine, which would leave a file `ran`. Most are refused before anything is compiled; the copy and its
//! build output are kept for the next run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use end_to_end::{Run, finish, repository, sing, target};

/// Timeout for building the runtime from scratch on a small host.
const LIMIT: Duration = Duration::from_secs(1800);
/// The program that all cases modify.
const INNOCENT: &str = "innocent";
/// Its folder in the repository.
const PROGRAM: &str = "apps/hostile";

/// An attempt to get past the builder.
struct Case {
    name: String,
    files: Vec<PathBuf>,
    expected: toml::Table,
}

impl Case {
    fn read(folder: &Path) -> Case {
        let text = std::fs::read_to_string(folder.join("expect.toml")).expect("each has one");
        let expected: toml::Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        assert!(
            expected.get("tries").is_some_and(toml::Value::is_str),
            "{} does not say what it tries",
            folder.display()
        );
        let mut files = Vec::new();
        list(folder, Path::new(""), &mut files);
        files.retain(|file| file != Path::new("expect.toml"));
        Case { name: folder.file_name().expect("a name").to_string_lossy().into_owned(), files, expected }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.expected.get(key).and_then(toml::Value::as_str)
    }
}

/// Tracked files below a folder, relative to it.
fn list(folder: &Path, within: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder.join(within)).expect("a folder can be read").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_wanted = name != ".git" && name != "target";
        if is_wanted && path.is_dir() {
            list(folder, &within.join(name), files);
        } else if is_wanted {
            files.push(within.join(name));
        }
    }
}

/// A copy of the repository, locked by one test run at a time.
struct Tree {
    root: PathBuf,
    output: PathBuf,
    _lock: File,
}

impl Tree {
    /// Updates the copy of an earlier run.
    fn new() -> Tree {
        let folder = target().join("hostile");
        std::fs::create_dir_all(folder.join("tree")).expect("a folder");
        let lock = File::create(folder.join("lock")).expect("a file");
        lock.lock().expect("it can be locked");
        let tree = Tree { root: folder.join("tree"), output: folder.join("output"), _lock: lock };
        let (mut wanted, mut there) = (Vec::new(), Vec::new());
        list(repository(), Path::new(""), &mut wanted);
        list(&tree.root, Path::new(""), &mut there);
        wanted.sort();
        for file in there.iter().filter(|file| wanted.binary_search(file).is_err()) {
            std::fs::remove_file(tree.root.join(file)).expect("it can be removed");
            // Cargo takes an empty folder for a member of the workspace.
            let emptied = file.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty());
            emptied.take_while(|folder| std::fs::remove_dir(tree.root.join(folder)).is_ok()).for_each(drop);
        }
        for file in &wanted {
            tree.lay(repository(), file);
        }
        tree
    }

    /// Copies a file unless it is unchanged.
    fn lay(&self, folder: &Path, file: &Path) {
        let content = std::fs::read(folder.join(file)).expect("a file can be read");
        let place = self.root.join(file);
        if std::fs::read(&place).is_ok_and(|there| there == content) {
            return;
        }
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("a folder");
        std::fs::write(&place, content).expect("a file can be written");
    }

    /// Builds the program with the files of a case.
    fn build(&self, cases: &Path, case: &Case) -> Run {
        let program = self.root.join(PROGRAM);
        if program.exists() {
            std::fs::remove_dir_all(&program).expect("it can be removed");
        }
        for file in &Case::read(&cases.join(INNOCENT)).files {
            self.lay(&cases.join(INNOCENT), file);
        }
        for file in &case.files {
            self.lay(&cases.join(&case.name), file);
        }
        let mut command = Command::new(sing());
        command.args(["build", "hostile"]).current_dir(self.root.join(case.text("from").unwrap_or(".")));
        command.env("CARGO_TARGET_DIR", &self.output);
        // As from a shell: with these variables rustup ignores toolchain files.
        command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
        let run = finish(command, &format!("sing build hostile, as in {}", case.name), LIMIT);
        let mut files = Vec::new();
        list(&self.root, Path::new(""), &mut files);
        assert!(
            !files.iter().any(|file| file.ends_with("ran")),
            "{} ran on the machine of the builder:\n{run}",
            case.name
        );
        run
    }
}

/// Returns how the builder's result differs from the expected one.
fn mistake(case: &Case, run: &Run) -> Option<String> {
    let message = case.text("message");
    let is_right = match message {
        None => run.status == Some(0),
        Some(message) => run.status == Some(1) && run.errors.contains(message),
    };
    (!is_right).then(|| format!("{}: wanted {message:?}\n{run}", case.name))
}

#[test]
fn what_an_enemy_sends_is_refused_before_anything_of_it_runs() {
    let cases = repository().join("tests/hostile/build");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(&cases).expect("there are cases").flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    assert!(folders.len() > 30, "{}", folders.len());
    let tree = Tree::new();
    let mistakes: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let case = Case::read(folder);
            mistake(&case, &tree.build(&cases, &case))
        })
        .collect();
    assert!(mistakes.is_empty(), "{} of {}:\n{}", mistakes.len(), folders.len(), mistakes.join("\n"));
}
