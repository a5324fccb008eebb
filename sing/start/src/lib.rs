//! Builds programs of the repository on first use: the host tool behind `cargo sing`, and `xtask` behind its developer
//! commands.
//!
//! Whether a program is up to date is decided as by `make`, from the dep-info file that cargo leaves beside it
//! ([`Sources`]), so that a start costs a few hundred `stat` calls and no second cargo. It has no dependencies, so that
//! a fresh clone builds it in a second. Deliberately not here: the programs' functions.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// A program of the repository, named like its package.
#[derive(Debug)]
pub struct Program {
    root: PathBuf,
    path: PathBuf,
    /// Its description in messages.
    what: &'static str,
}

impl Program {
    /// The program at `path`, where cargo puts it, with its sources in the repository at `root`; messages call it
    /// `what`.
    pub fn new(root: &Path, path: PathBuf, what: &'static str) -> Program {
        Program { root: root.to_path_buf(), path, what }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Builds it with `cargo`, a command without arguments, if it is missing or out of date. Returns false if the
    /// build fails; cargo has printed why.
    ///
    /// # Errors
    /// Cargo cannot be started.
    pub fn bring_up_to_date(&self, cargo: Command) -> Result<bool, String> {
        if self.is_current() {
            return Ok(true);
        }
        let began = SystemTime::now();
        let is_built = self.build(cargo)?;
        if is_built {
            // Without the stamp the next start runs cargo again: slower, but correct.
            let _ = fs::File::create(self.stamp()).and_then(|file| file.set_modified(began));
        }
        Ok(is_built)
    }

    /// Path of the stamp, whose modification time is the start of the last successful build.
    fn stamp(&self) -> PathBuf {
        self.path.with_extension("built")
    }

    /// Builds it, with cargo's progress on standard error; returns whether that succeeded.
    fn build(&self, mut cargo: Command) -> Result<bool, String> {
        if self.path.is_file() {
            eprintln!("sing: bringing {} up to date", self.what);
        } else {
            eprintln!("sing: building {} first; this takes a minute or two, once", self.what);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_outer_cargo(name)) {
            cargo.env_remove(name);
        }
        let package = self.path.file_name().unwrap_or_default();
        // It works on its own repository, and needs no bundled copy of the sources.
        cargo.args(["build", "--release", "--no-default-features", "--package"]).arg(package).arg("--bin").arg(package);
        cargo.arg("--manifest-path").arg(self.root.join("Cargo.toml"));
        // Standard output is the program's; cargo's progress goes to standard error.
        let status = cargo.stdin(Stdio::null()).status();
        status
            .map(|status| status.success())
            .map_err(|error| format!("cannot start cargo: {error}; install a stable Rust toolchain."))
    }

    /// Returns whether no source has changed since the start of the build that left the stamp.
    fn is_current(&self) -> bool {
        let (Some(built), Some(_)) = (modified(&self.stamp()), modified(&self.path)) else { return false };
        let Ok(list) = fs::read_to_string(self.path.with_extension("d")) else { return false };
        let sources = Sources::of(&list);
        let settings = ["Cargo.toml", "Cargo.lock", ".cargo/config.toml", "rust-toolchain.toml"];
        let settings = settings.iter().map(|name| self.root.join(name)).filter(|path| path.exists());
        let manifests = sources.manifests(&self.root);
        !sources.0.is_empty()
            && sources
                .0
                .into_iter()
                .chain(settings)
                .chain(manifests)
                .all(|path| modified(&path).is_some_and(|at| at < built))
    }
}

/// Returns whether `cargo run` sets this variable for its child; build scripts must not take it for theirs.
fn is_of_outer_cargo(variable: &OsStr) -> bool {
    let variable = variable.to_string_lossy();
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Source files of a program and of the repository's crates that it uses.
struct Sources(Vec<PathBuf>);

impl Sources {
    /// Parses cargo's dep-info, a `make` rule: `PROGRAM: FILE FILE`, with a backslash before each space of a name.
    fn of(list: &str) -> Sources {
        let files = list.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, files)| files);
        let mut sources = Vec::new();
        let mut name = String::new();
        for part in files.split(' ').filter(|part| !part.is_empty()) {
            match part.strip_suffix('\\') {
                Some(start) => name = name + start + " ",
                None => sources.push(PathBuf::from(std::mem::take(&mut name) + part)),
            }
        }
        Sources(sources)
    }

    /// Returns the Cargo.toml of each crate that the sources belong to.
    fn manifests(&self, root: &Path) -> Vec<PathBuf> {
        let nearest = |source: &PathBuf| {
            let folders = source.ancestors().skip(1).take_while(|folder| *folder != root);
            folders.map(|folder| folder.join("Cargo.toml")).find(|manifest| manifest.is_file())
        };
        let mut folders: Vec<PathBuf> =
            self.0.iter().filter_map(|source| source.parent().map(Path::to_path_buf)).collect();
        folders.sort();
        folders.dedup();
        let mut manifests: Vec<PathBuf> = folders.iter().filter_map(|folder| nearest(&folder.join("source"))).collect();
        manifests.sort();
        manifests.dedup();
        manifests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A repository of two crates whose tool is built and up to date; removed on drop.
    struct Example {
        root: PathBuf,
        built: SystemTime,
    }

    impl Example {
        fn new(name: &str) -> Example {
            let root = std::env::temp_dir().join(format!("sing-start-{}-{name}", std::process::id()));
            let built = SystemTime::now() - Duration::from_secs(100);
            let example = Example { root, built };
            let old = Duration::from_secs(50);
            for file in
                ["Cargo.toml", "Cargo.lock", "a b/Cargo.toml", "a b/src/lib.rs", "sing/Cargo.toml", "sing/src/main.rs"]
            {
                example.write(file, "", built - old);
            }
            let list = |file: &str| example.path(file).display().to_string().replace(' ', "\\ ");
            let list = format!("{}: {} {}\n", list("target/sing"), list("a b/src/lib.rs"), list("sing/src/main.rs"));
            example.write("target/sing", "", built + old);
            example.write("target/sing.d", &list, built + old);
            example.write("target/sing.built", "", built);
            example
        }

        fn path(&self, file: &str) -> PathBuf {
            self.root.join(file)
        }

        fn write(&self, file: &str, text: &str, at: SystemTime) {
            let path = self.path(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
            fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(at)).expect("a time");
        }

        fn is_current(&self) -> bool {
            Program::new(&self.root, self.path("target/sing"), "the tool").is_current()
        }
    }

    impl Drop for Example {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn names_with_spaces_are_read() {
        let sources = Sources::of("/t/sing: /a/b.rs /a\\ folder/with\\ spaces.rs /c.rs\n\n/a/b.rs:\n");
        assert_eq!(sources.0, ["/a/b.rs", "/a folder/with spaces.rs", "/c.rs"].map(PathBuf::from));
        assert!(Sources::of("").0.is_empty());
    }

    #[test]
    fn each_kind_of_change_has_the_tool_built_again() {
        let example = Example::new("changes");
        assert!(example.is_current());
        let later = example.built + Duration::from_secs(1);
        for file in ["a b/src/lib.rs", "a b/Cargo.toml", "sing/src/main.rs", "Cargo.lock", ".cargo/config.toml"] {
            example.write(file, "changed", later);
            assert!(!example.is_current(), "{file}");
            example.write(file, "changed", example.built - Duration::from_secs(1));
            assert!(example.is_current(), "{file}");
        }
        for file in ["a b/src/lib.rs", "target/sing.built", "target/sing.d", "target/sing"] {
            let whole = Example::new("removals");
            fs::remove_file(whole.path(file)).expect("it is there");
            assert!(!whole.is_current(), "{file}");
        }
    }

    #[test]
    fn a_source_that_changes_during_the_build_is_seen() {
        let example = Example::new("during");
        // After the build began and before it ended.
        example.write("sing/src/main.rs", "changed", example.built + Duration::from_secs(10));
        assert!(!example.is_current());
    }

    #[test]
    fn a_build_is_told_nothing_of_the_outer_cargo() {
        assert!(is_of_outer_cargo("CARGO_PKG_NAME".as_ref()) && is_of_outer_cargo("CARGO_MANIFEST_DIR".as_ref()));
        assert!(!is_of_outer_cargo("CARGO_HOME".as_ref()) && !is_of_outer_cargo("CARGO_TARGET_DIR".as_ref()));
    }
}
