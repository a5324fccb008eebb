//! Paths: the programs and systems that a user works on, the sources of the system itself, and the tool's output
//! folders.
//!
//! In a clone all of this is one tree. A separate workspace, as made by `sing new`, has programs and systems and
//! refers to the sources of the tool's version: those of the clone that the tool was built in, or those bundled with
//! an installed tool ([`sources`]).

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::{sources, spelling, workspace};

/// Folders whose sub-folders with a `manifest.toml` are SIP crates.
pub const PROGRAM_FOLDERS: [&str; 12] = [
    "drivers",
    "services",
    "apps",
    "examples",
    "ports",
    "templates",
    "tests/conformance",
    "tests/hostile",
    "tests/hostile/reach",
    "tests/hostile/run",
    "tests/services-check",
    "benches",
];

/// Folders of a separate workspace that are searched for programs.
pub const OWN_PROGRAM_FOLDERS: [&str; 1] = [workspace::PROGRAMS];

/// The clone or workspace that the tool works on.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
    base: PathBuf,
    cargo_target: PathBuf,
    /// Folder of programs that this run of the tool has made.
    made: Option<PathBuf>,
}

impl Repository {
    /// Finds the clone or workspace around the current folder, or else the sources that belong to the tool.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> Outcome<Repository> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot read the current folder: {error}")))?;
        if let Some(root) = here.ancestors().find(|folder| is_root(folder)) {
            return Ok(Repository::at(root, &here));
        }
        let own = here.ancestors().find(|folder| workspace::is_one(folder));
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent().filter(|folder| is_root(folder));
        let (base, target) = match (sources::unpacked()?, built_in) {
            (Some(unpacked), _) => (unpacked.sources, unpacked.target),
            (None, Some(clone)) => (clone.to_path_buf(), clone.join("target")),
            (None, None) => {
                return Err(Failure::new(format!("{} is not inside a Singularity repository", here.display()))
                    .remedy("run this inside a clone, or run `cargo install --path sing` in one"));
            }
        };
        if let Some(own) = own {
            workspace::refer_to(own, &base)?;
        }
        let root = own.map_or_else(|| base.clone(), Path::to_path_buf);
        Ok(Repository { root, base, cargo_target: given_target(&here).unwrap_or(target), made: None })
    }

    /// The clone at `root`; a relative CARGO_TARGET_DIR is relative to `here`.
    fn at(root: &Path, here: &Path) -> Repository {
        let cargo_target = given_target(here).unwrap_or_else(|| root.join("target"));
        Repository { root: root.to_path_buf(), base: root.to_path_buf(), cargo_target, made: None }
    }

    /// A test's separate workspace.
    #[cfg(test)]
    pub(crate) fn own_of_tests(root: &Path, base: &Path) -> Repository {
        Repository { root: root.to_path_buf(), base: base.to_path_buf(), cargo_target: base.join("target"), made: None }
    }

    /// A test's folder as a repository.
    #[cfg(test)]
    pub(crate) fn of_tests(root: &Path) -> Repository {
        Repository::at(root, root)
    }

    /// Returns the folder with the Cargo.toml of the user's programs.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder with the system's sources: kernel, runtime, contracts and bundled programs.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Returns whether this is a workspace separate from those sources.
    pub fn is_own(&self) -> bool {
        self.root != self.base
    }

    /// Returns the workspaces that crates come from, without duplicates.
    pub fn workspaces(&self) -> Vec<&Path> {
        if self.is_own() { vec![&self.base, &self.root] } else { vec![&self.root] }
    }

    /// Returns the folders that are searched for programs.
    pub fn program_folders(&self) -> Vec<PathBuf> {
        let own = OWN_PROGRAM_FOLDERS.iter().filter(|_| self.is_own()).map(|folder| self.root.join(folder));
        PROGRAM_FOLDERS.iter().map(|folder| self.base.join(folder)).chain(own).chain(self.made.clone()).collect()
    }

    /// Returns cargo's output folder.
    pub fn cargo_target(&self) -> &Path {
        &self.cargo_target
    }

    /// Returns the same sources with another output folder of cargo.
    pub fn with_target(&self, cargo_target: PathBuf) -> Repository {
        Repository { cargo_target, ..self.clone() }
    }

    /// Returns the same with the programs of another folder.
    pub fn with_programs(&self, made: PathBuf) -> Repository {
        Repository { made: Some(made), ..self.clone() }
    }

    /// Returns that folder.
    pub fn made_programs(&self) -> Option<&Path> {
        self.made.as_deref()
    }

    /// Returns a path in the folder of all the tool's output.
    pub fn output(&self, path: &str) -> PathBuf {
        self.cargo_target.join("sing").join(path)
    }

    /// Displays a path relative to the root or to the system's sources, if it lies inside.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).or_else(|_| path.strip_prefix(&self.base)).unwrap_or(path).display()
    }

    /// Resolves a system manifest given by path, or by bare name in `systems/`.
    ///
    /// # Errors
    /// There is no such file.
    pub fn system_manifest(&self, given: &Path) -> Outcome<PathBuf> {
        let is_bare_name = given.components().count() == 1 && given.extension().is_none();
        // The user's own system takes precedence over a bundled one of the same name.
        let folders = [&self.root, &self.base].map(|folder| folder.join("systems").join(given).with_extension("toml"));
        if let Some(by_name) = folders.into_iter().find(|path| is_bare_name && path.is_file()) {
            return Ok(by_name);
        }
        if given.is_file() {
            return Ok(given.to_path_buf());
        }
        let known = self.system_names();
        let otherwise = format!("give a file or one of: {}", known.join(", "));
        // Other folders are not searched for similar names.
        let near = if is_bare_name { known.as_slice() } else { &[] };
        Err(Failure::new(format!("there is no system manifest {}", given.display())).remedy(spelling::meant(
            &given.to_string_lossy(),
            near.iter().map(String::as_str),
            otherwise,
        )))
    }

    /// Returns the base name of the files made from a system manifest. For manifests outside `systems/` it includes a
    /// digest of the path, so that two systems of one name stay distinct.
    pub fn system_outputs(&self, manifest: &Path) -> String {
        let stem = manifest.file_stem().map_or_else(|| "system".into(), |stem| stem.to_string_lossy().into_owned());
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let manifest = whole(manifest);
        if manifest.parent() == Some(whole(&self.base.join("systems")).as_path()) {
            return stem;
        }
        let digest = package_check::sha256(manifest.as_os_str().as_encoded_bytes());
        format!("{stem}-{}", &crate::keys::hexadecimal(&digest)[..16])
    }

    /// Returns the names of the system manifests in `systems/`, sorted.
    pub fn system_names(&self) -> Vec<String> {
        let folders = self.workspaces().into_iter().map(|folder| folder.join("systems"));
        let mut names: Vec<String> = folders
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Returns cargo's output folder as set in the environment.
fn given_target(here: &Path) -> Option<PathBuf> {
    std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()).map(|folder| here.join(folder))
}

fn is_root(folder: &Path) -> bool {
    folder.join("abi/src/table.rs").is_file() && folder.join("Cargo.toml").is_file()
}

/// Writes a file atomically: a reader sees the old content or the new, never a part.
///
/// # Errors
/// The folder cannot be created or the file not written.
pub fn write_whole(path: &Path, content: &[u8]) -> Outcome<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = std::fs::write(&temporary, content).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        Failure::file("write", path, &error)
    })
}

/// Writes a file unless it already has this content, so that cargo sees no change.
///
/// # Errors
/// As for [`write_whole`].
pub fn write_if_changed(path: &Path, content: &[u8]) -> Outcome<()> {
    match std::fs::read(path) {
        Ok(old) if old == content => Ok(()),
        _ => write_whole(path, content),
    }
}

/// Reads a text file.
///
/// # Errors
/// It cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_of_the_tool_is_found() {
        let repository = Repository::find().expect("tests run inside the repository");
        assert!(repository.root().join("sing/Cargo.toml").is_file());
    }

    #[test]
    fn two_systems_of_one_name_do_not_share_what_is_made_of_them() {
        let repository = Repository::find().expect("tests run inside the repository");
        let ours = repository.system_manifest(Path::new("hosted")).expect("there is one");
        assert_eq!(repository.system_outputs(&ours), "hosted");
        let folder = tempfile::tempdir().expect("a folder");
        let others: Vec<String> = ["mine", "yours"]
            .map(|name| {
                let path = folder.path().join(name).join("hosted.toml");
                write_whole(&path, b"").expect("a file");
                // Whatever the spelling of the path.
                let again = folder.path().join(name).join("..").join(name).join("hosted.toml");
                assert_eq!(repository.system_outputs(&path), repository.system_outputs(&again));
                repository.system_outputs(&path)
            })
            .into();
        assert!(others[0] != others[1] && others.iter().all(|name| name.starts_with("hosted-")), "{others:?}");
    }

    #[test]
    fn a_workspace_of_ones_own_has_the_systems_programs_and_its_own() {
        let system = Repository::find().expect("tests run inside the repository");
        let folder = tempfile::tempdir().expect("a folder");
        let own = Repository::own_of_tests(folder.path(), system.root());
        let script = "[program]\nname = \"tea-pot\"\n[code]\nscript = \"\"\n";
        write_whole(&folder.path().join("programs/tea-pot/manifest.toml"), script.as_bytes()).expect("a file");
        write_whole(&folder.path().join("systems/tea-pot.toml"), b"").expect("a file");
        write_whole(&folder.path().join("systems/hosted.toml"), b"").expect("a file");
        let programs = crate::programs::Programs::find(&own);
        assert!(programs.get("tea-pot").is_ok() && programs.get("shell").is_ok());
        let misspelled = programs.get("zzzzzz").expect_err("there is none").to_string();
        assert!(misspelled.contains("name a program with a manifest.toml in programs"), "{misspelled}");
        let names = own.system_names();
        assert!(names.contains(&"tea-pot".into()) && names.contains(&"bare".into()), "{names:?}");
        // The user's own comes first, and its outputs have distinct names.
        let mine = own.system_manifest(Path::new("hosted")).expect("there are two");
        assert_eq!(mine, folder.path().join("systems/hosted.toml"));
        assert_ne!(own.system_outputs(&mine), "hosted");
        let theirs = own.system_manifest(Path::new("bare")).expect("it comes with the system");
        assert_eq!((theirs.starts_with(system.root()), own.system_outputs(&theirs)), (true, "bare".into()));
        assert_eq!(own.shown(&mine).to_string(), "systems/hosted.toml");
        assert_eq!(own.shown(&system.root().join("sip")).to_string(), "sip");
    }

    #[test]
    fn an_unknown_system_is_one_sentence() {
        let repository = Repository::find().expect("tests run inside the repository");
        let failure = repository.system_manifest(Path::new("no-such-system")).expect_err("there is none");
        assert!(failure.to_string().starts_with("there is no system manifest no-such-system; give a file or one of: "));
        let failure = repository.system_manifest(Path::new("hostde")).expect_err("there is none");
        assert_eq!(failure.to_string(), "there is no system manifest hostde; did you mean `hosted`?");
    }
}
