//! Finds the programs of the repository: folders with a `manifest.toml`, each with a SIP crate, a module of one or a
//! script.
//!
//! Key type: [`Program`]. Neighbours: `builder` builds their images, `check` reads their manifests. Deliberately not
//! here: the manifest format, which is the crate `manifest`'s. Only the keys that locate a program are read here, so
//! that an error in one program does not hide the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use manifest_model::Bounds;

use crate::failure::{Failure, Outcome};
use crate::repository::{OWN_PROGRAM_FOLDERS, PROGRAM_FOLDERS, Repository, read_text};
use crate::{spelling, wasm};

/// A program of the repository.
#[derive(Debug, Clone)]
pub struct Program {
    /// Name in its manifest.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Category in its manifest, such as `console` or `test`.
    pub category: String,
    /// Its code.
    pub body: Body,
    /// Whether it declares unsafe code, to attack the system.
    pub unsafe_for_tests: bool,
    /// Whether it declares unsafe code, which runs in a hardware domain of its own.
    pub unsafe_code: bool,
    /// Whether its image is a template of WebAssembly programs, and no program by itself.
    pub is_template: bool,
    /// Files and folders of its C code, relative to the manifest.
    pub c: Vec<PathBuf>,
    /// Folders of crates that its C code includes files of, as `CRATE:FOLDER`.
    pub c_headers: Vec<String>,
}

/// The code of a program.
#[derive(Debug, Clone)]
pub enum Body {
    /// A library crate.
    Crate {
        /// The folder of its Cargo.toml.
        folder: PathBuf,
        /// The name of the package.
        package: String,
        /// The path of the module with `main`, from the crate's root; none if that is the root. Checked: it may be put
        /// into generated code.
        entry: Option<String>,
    },
    /// A WebAssembly module, which is added to a template.
    Wasm {
        /// The module's file.
        module: PathBuf,
        /// Name of the template, a program too.
        template: String,
        /// How its code keeps to linear memory.
        bounds: Bounds,
        /// The folder of the template.
        folder: PathBuf,
    },
    /// A script in the manifest.
    Script,
}

impl Program {
    /// Whether its crate may contain unsafe code.
    pub fn may_be_unsafe(&self) -> bool {
        self.unsafe_for_tests || self.unsafe_code
    }

    /// Returns the path of its manifest.
    pub fn manifest(&self) -> PathBuf {
        self.folder.join("manifest.toml")
    }

    /// Returns the folder of the crate whose visible contracts its manifest may name.
    pub fn contract_folder(&self) -> &Path {
        match &self.body {
            Body::Crate { folder, .. } | Body::Wasm { folder, .. } => folder,
            Body::Script => &self.folder,
        }
    }
}

#[derive(Deserialize)]
struct Heading {
    program: ProgramHeading,
    #[serde(default)]
    code: CodeHeading,
}

#[derive(Deserialize)]
struct ProgramHeading {
    name: String,
    #[serde(default)]
    category: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct CodeHeading {
    #[serde(rename = "crate")]
    crate_folder: Option<PathBuf>,
    entry: Option<String>,
    script: Option<String>,
    wasm: Option<PathBuf>,
    template: Option<String>,
    bounds: Option<String>,
    #[serde(default)]
    wasm_template: bool,
    #[serde(default)]
    unsafe_for_tests: bool,
    #[serde(default, rename = "unsafe")]
    unsafe_code: bool,
    #[serde(default)]
    c: Vec<PathBuf>,
    #[serde(default)]
    c_headers: Vec<String>,
}

#[derive(Deserialize)]
struct CrateHeading {
    package: PackageHeading,
}

#[derive(Deserialize)]
struct PackageHeading {
    name: String,
}

/// The programs of a repository, and the unreadable manifests.
#[derive(Debug, Default)]
pub struct Programs {
    /// Whether they include a user's own programs.
    is_own: bool,
    found: BTreeMap<String, Program>,
    broken: BTreeMap<PathBuf, Failure>,
}

impl Programs {
    /// Searches the repository's program folders.
    pub fn find(repository: &Repository) -> Programs {
        let mut programs = Programs { is_own: repository.is_own(), ..Programs::default() };
        let mut named: BTreeMap<String, Vec<Program>> = BTreeMap::new();
        for folder in manifest_folders(repository) {
            match read_program(repository, &folder) {
                Ok(program) => named.entry(program.name.clone()).or_default().push(program),
                Err(failure) => {
                    programs.broken.insert(folder, failure);
                }
            }
        }
        for (name, called) in named {
            programs.add(repository, name, called);
        }
        programs
    }

    /// Adds the programs of one name. A name used by several is rejected, so that none replaces another.
    fn add(&mut self, repository: &Repository, name: String, called: Vec<Program>) {
        let called = match <[Program; 1]>::try_from(called) {
            Ok([program]) => {
                self.found.insert(name, program);
                return;
            }
            Err(called) => called,
        };
        let folders: Vec<String> = called.iter().map(|program| repository.shown(&program.folder).to_string()).collect();
        let failure = Failure::new(format!("duplicate program name `{name}`: in {}", folders.join(" and in ")))
            .remedy("rename all but one");
        self.broken.extend(called.into_iter().map(|program| (program.folder, failure.clone())));
    }

    /// Returns all readable programs, by name.
    pub fn all(&self) -> impl Iterator<Item = &Program> {
        self.found.values()
    }

    /// Returns the folders with unreadable manifests, and the errors.
    pub fn broken(&self) -> impl Iterator<Item = (&Path, &Failure)> {
        self.broken.iter().map(|(folder, failure)| (folder.as_path(), failure))
    }

    /// Returns the program with this name.
    ///
    /// # Errors
    /// There is none; it may be one of the broken manifests, so the first of those is named.
    pub fn get(&self, name: &str) -> Outcome<&Program> {
        if let Some(program) = self.found.get(name) {
            return Ok(program);
        }
        let broken = self.broken.iter().find(|(folder, _)| folder.ends_with(name)).or(self.broken.iter().next());
        if let Some((_, failure)) = broken {
            return Err(failure.clone());
        }
        let folders = if self.is_own { &OWN_PROGRAM_FOLDERS[..] } else { &PROGRAM_FOLDERS[..] };
        let otherwise = format!("name a program with a manifest.toml in {}, or add it there", folders.join(", "));
        Err(Failure::new(format!("no program `{name}` in the repository")).remedy(spelling::meant(
            name,
            self.found.keys().map(String::as_str),
            otherwise,
        )))
    }
}

/// Returns every folder with a manifest in the program folders and in their groups: crates without a manifest beside
/// their Cargo.toml, which hold several programs.
pub fn manifest_folders(repository: &Repository) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = repository
        .program_folders()
        .iter()
        .flat_map(|folder| folders_in(folder))
        .flat_map(|folder| if is_group(&folder) { folders_in(&folder) } else { vec![folder] })
        .filter(|folder| has_manifest(folder))
        .collect();
    folders.sort();
    folders
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn is_group(folder: &Path) -> bool {
    !has_manifest(folder) && folder.join("Cargo.toml").is_file()
}

fn has_manifest(folder: &Path) -> bool {
    folder.join("manifest.toml").is_file()
}

fn read_program(repository: &Repository, folder: &Path) -> Outcome<Program> {
    let path = folder.join("manifest.toml");
    let heading: Heading = toml::from_str(&read_text(&path)?).map_err(|error| {
        Failure::new(format!("the manifest {} cannot be read", repository.shown(&path)))
            .details(error.to_string())
            .remedy(format!("see `cargo sing check {}`", repository.shown(&path)))
    })?;
    if !manifest_model::is_name(&heading.program.name) {
        // Folders and crates take its name.
        return Err(Failure::new(format!(
            "invalid program name in the manifest {}: {:?}",
            repository.shown(&path),
            heading.program.name
        ))
        .remedy("use lowercase letters, digits and hyphens, starting with a letter, at most 63"));
    }
    if let Some(entry) = heading.code.entry.as_deref().filter(|entry| !manifest::is_entry(entry)) {
        // It becomes a part of generated code.
        return Err(Failure::new(format!(
            "the manifest {} has the entry {entry:?}, which is not the path of a Rust module",
            repository.shown(&path)
        ))
        .remedy("write the path of the module, such as `wc` or `tools::wc`"));
    }
    let body = match (heading.code.crate_folder, heading.code.script, heading.code.wasm) {
        (_, Some(_), _) => Body::Script,
        (_, None, Some(module)) => {
            let template = heading.code.template.unwrap_or(manifest::DEFAULT_TEMPLATE.into());
            let template_folder = wasm::template_folder(repository, &template)?;
            let bounds = match heading.code.bounds {
                None => manifest::DEFAULT_BOUNDS,
                Some(word) => Bounds::from_word(&word).ok_or_else(|| {
                    Failure::new(format!("the manifest {} has the bounds {word:?}", repository.shown(&path)))
                        .remedy(format!("write one of {}", Bounds::WORDS.join(", ")))
                })?,
            };
            Body::Wasm { module: folder.join(module), template, bounds, folder: template_folder }
        }
        (crate_folder, None, None) => {
            let crate_folder = folder.join(crate_folder.unwrap_or_default());
            let package = package_name(repository, &crate_folder)?;
            Body::Crate { package, folder: crate_folder, entry: heading.code.entry }
        }
    };
    let has_c = !heading.code.c.is_empty() || !heading.code.c_headers.is_empty();
    Ok(Program {
        name: heading.program.name,
        folder: folder.to_path_buf(),
        category: heading.program.category,
        body,
        unsafe_for_tests: heading.code.unsafe_for_tests,
        unsafe_code: heading.code.unsafe_code || has_c,
        is_template: heading.code.wasm_template,
        c: heading.code.c,
        c_headers: heading.code.c_headers,
    })
}

fn package_name(repository: &Repository, folder: &Path) -> Outcome<String> {
    let path = folder.join("Cargo.toml");
    let heading: CrateHeading = toml::from_str(&read_text(&path)?).map_err(|error| {
        Failure::new(format!("{} is not the Cargo.toml of a crate", repository.shown(&path))).details(error.to_string())
    })?;
    Ok(heading.package.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::write_whole;

    #[test]
    fn a_crate_without_a_manifest_is_a_group_of_programs() {
        let root = tempfile::tempdir().expect("a folder");
        let repository = Repository::of_tests(root.path());
        let write = |path: &str, text: &str| write_whole(&root.path().join(path), text.as_bytes()).expect("a file");
        let add = |folder: &str, code: &str| {
            let name = folder.rsplit('/').next().unwrap_or(folder);
            write(&format!("{folder}/manifest.toml"), &format!("[program]\nname = \"{name}\"\n[code]\n{code}\n"));
        };
        write("apps/text/Cargo.toml", "[package]\nname = \"text-apps\"\n");
        write("apps/text/grep/Cargo.toml", "[package]\nname = \"grep\"\n");
        write("apps/echo/Cargo.toml", "[package]\nname = \"echo\"\n");
        add("apps/text/wc", "crate = \"..\"\nentry = \"wc\"");
        add("apps/text/grep", "crate = \".\"");
        add("apps/echo", "crate = \".\"");
        // Neither is a folder below a program, nor one below a folder that is no crate.
        add("apps/echo/inner", "script = \"\"");
        add("apps/folder/lost", "script = \"\"");
        let programs = Programs::find(&repository);
        let found: Vec<(&str, &str, Option<&str>)> = programs
            .all()
            .map(|program| match &program.body {
                Body::Crate { package, entry, .. } => (program.name.as_str(), package.as_str(), entry.as_deref()),
                Body::Wasm { .. } | Body::Script => (program.name.as_str(), "", None),
            })
            .collect();
        assert_eq!(found, [("echo", "echo", None), ("grep", "grep", None), ("wc", "text-apps", Some("wc"))]);
    }

    #[test]
    fn an_entry_cannot_carry_code() {
        let root = tempfile::tempdir().expect("a folder");
        let repository = Repository::of_tests(root.path());
        let cargo = root.path().join("apps/echo/Cargo.toml");
        write_whole(&cargo, b"[package]\nname = \"echo\"\n").expect("a file");
        for entry in ["main); fn injected() {} const _: () = (()", "wc::", "web-hello", "a\\nb", "self", ""] {
            let manifest = format!("[program]\nname = \"echo\"\n[code]\ncrate = \".\"\nentry = \"{entry}\"\n");
            write_whole(&root.path().join("apps/echo/manifest.toml"), manifest.as_bytes()).expect("a file");
            let programs = Programs::find(&repository);
            let refused = programs.get("echo").expect_err(entry).to_string();
            assert!(refused.contains("which is not the path of a Rust module"), "{refused}");
            assert_eq!(programs.all().count(), 0, "{entry}");
        }
    }

    #[test]
    fn a_name_that_two_programs_have_is_nobodys() {
        let root = tempfile::tempdir().expect("a folder");
        let repository = Repository::of_tests(root.path());
        let add = |folder: &str, name: &str| {
            let manifest = format!("[program]\nname = \"{name}\"\n[code]\nscript = \"\"\n");
            write_whole(&root.path().join(folder).join("manifest.toml"), manifest.as_bytes()).expect("a file");
        };
        for (folder, name) in
            [("apps/echo", "echo"), ("drivers/another", "echo"), ("apps/third", "echo"), ("apps/cat", "cat")]
        {
            add(folder, name);
        }
        let programs = Programs::find(&repository);
        assert!(programs.get("cat").is_ok());
        let refused = programs.get("echo").expect_err("which one?").to_string();
        for folder in ["apps/echo", "drivers/another", "apps/third"] {
            assert!(refused.contains("duplicate program name `echo`") && refused.contains(folder), "{refused}");
        }
        assert_eq!(programs.broken().count(), 3);
    }
}
