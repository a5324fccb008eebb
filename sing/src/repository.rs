//! Where things are: the root of the repository, and the folders that the tool writes.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::spelling;

/// Folders whose sub-folders with a `manifest.toml` are SIP crates.
pub const PROGRAM_FOLDERS: [&str; 10] = [
    "drivers",
    "services",
    "apps",
    "examples",
    "tests/conformance",
    "tests/hostile",
    "tests/hostile/reach",
    "tests/hostile/run",
    "tests/services-check",
    "benches",
];

/// The repository that the tool works on.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
    cargo_target: PathBuf,
}

impl Repository {
    /// The repository around the current folder, or else the one that the tool was built in.
    ///
    /// # Errors
    /// Neither is one.
    pub fn find() -> Outcome<Repository> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("the current folder cannot be read: {error}")))?;
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let root = here.ancestors().find(|folder| is_root(folder)).or(built_in.filter(|folder| is_root(folder)));
        let root = root.ok_or_else(|| {
            Failure::new(format!("{} is not inside a Singularity repository", here.display()))
                .remedy("run this inside a clone of it")
        })?;
        Ok(Repository::at(root, &here))
    }

    /// The repository at `root`; `here` is what a relative CARGO_TARGET_DIR is relative to.
    fn at(root: &Path, here: &Path) -> Repository {
        let cargo_target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) if !folder.is_empty() => here.join(folder),
            _ => root.join("target"),
        };
        Repository { root: root.to_path_buf(), cargo_target }
    }

    /// A folder of a test's own as a repository.
    #[cfg(test)]
    pub(crate) fn of_tests(root: &Path) -> Repository {
        Repository::at(root, root)
    }

    /// The folder with the workspace's Cargo.toml.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's own output folder.
    pub fn cargo_target(&self) -> &Path {
        &self.cargo_target
    }

    /// A path in the folder that everything this tool makes lies in.
    pub fn output(&self, path: &str) -> PathBuf {
        self.cargo_target.join("sing").join(path)
    }

    /// A path as people read it: relative to the root when it lies inside.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    /// A system manifest by its path, or by its bare name in `systems/`.
    ///
    /// # Errors
    /// There is no such file.
    pub fn system_manifest(&self, given: &Path) -> Outcome<PathBuf> {
        let by_name = self.root.join("systems").join(given).with_extension("toml");
        let is_bare_name = given.components().count() == 1 && given.extension().is_none();
        if is_bare_name && by_name.is_file() {
            return Ok(by_name);
        }
        if given.is_file() {
            return Ok(given.to_path_buf());
        }
        let known = self.system_names();
        let otherwise = format!("give a file or one of: {}", known.join(", "));
        // Nothing is known of what other folders have.
        let near = if is_bare_name { known.as_slice() } else { &[] };
        Err(Failure::new(format!("there is no system manifest {}", given.display())).remedy(spelling::meant(
            &given.to_string_lossy(),
            near.iter().map(String::as_str),
            otherwise,
        )))
    }

    /// What the files that are made of a system manifest are called. Of those that lie elsewhere than in `systems/`
    /// the path is told apart too, because two systems of one name are two systems.
    pub fn system_outputs(&self, manifest: &Path) -> String {
        let stem = manifest.file_stem().map_or_else(|| "system".into(), |stem| stem.to_string_lossy().into_owned());
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let manifest = whole(manifest);
        if manifest.parent() == Some(whole(&self.root.join("systems")).as_path()) {
            return stem;
        }
        let digest = package::sha256(manifest.as_os_str().as_encoded_bytes());
        format!("{stem}-{}", &crate::keys::hexadecimal(&digest)[..16])
    }

    /// Names of the system manifests in `systems/`, in alphabetical order.
    pub fn system_names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.root.join("systems"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        names
    }
}

fn is_root(folder: &Path) -> bool {
    folder.join("abi/src/table.rs").is_file() && folder.join("Cargo.toml").is_file()
}

/// Writes a file so that a reader sees the old content or the new, never a part.
///
/// # Errors
/// The folder cannot be made or the file not be written.
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

/// Writes a file unless it already holds exactly this, so that cargo does not see a change.
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
                // However it is spelled.
                let again = folder.path().join(name).join("..").join(name).join("hosted.toml");
                assert_eq!(repository.system_outputs(&path), repository.system_outputs(&again));
                repository.system_outputs(&path)
            })
            .into();
        assert!(others[0] != others[1] && others.iter().all(|name| name.starts_with("hosted-")), "{others:?}");
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
