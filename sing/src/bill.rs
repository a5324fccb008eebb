//! Bills of materials: what a package was built from, recorded in the package itself.
//!
//! A bill lists every crate compiled for an image, with its licence and a checksum of its source, and the compiler.
//! It names no time, place or person, so that the same sources give the same bill. Key types: [`Materials`] (writes
//! bills), [`Bill`] (a parsed one). Deliberately not here: which crates are allowed, which `dependencies` decides.

mod cyclonedx;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use package::Package as PackageFile;
use package_check::sha256;
use serde::Deserialize;

use crate::cargo::{Metadata, Package, TARGET};
use crate::command_line::BillArguments;
use crate::dependencies::Checksums;
use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::native::{self, CCrates};
use crate::programs::{Body, Program};
use crate::repository::Repository;
use crate::stubs::{flags_in_words, stub_name, stub_of};
use crate::wasm;

/// Input shared by all bills of a build.
pub struct Materials<'a> {
    repository: &'a Repository,
    metadata: &'a Metadata,
    checksums: &'a Checksums,
    included: &'a CCrates,
    compiler: String,
    /// Checksums of the repository's crates by folder, computed once each.
    folders: RefCell<BTreeMap<PathBuf, String>>,
}

/// Purpose of compiling a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Linked into the image.
    Image,
    /// Runs during the build: a procedural macro, or a dependency of one.
    Build,
}

/// A crate of a bill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Material {
    /// Crate name.
    pub name: String,
    /// Crate version.
    pub version: String,
    /// Purpose of compiling it.
    pub part: Part,
    /// Folder in the repository; `None` for a crate from the registry.
    pub folder: Option<String>,
    /// Licence as an SPDX expression; empty if undeclared.
    pub licence: String,
    /// SHA-256: of the crate file for a registry crate, else of all files of the folder with their names.
    pub sha256: String,
}

/// The compiler of an image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    /// Output of `rustc --version`.
    pub rustc: String,
    /// Target triple.
    pub target: String,
    /// Flags and profile, without those that name the builder's folders.
    pub flags: String,
}

/// A bill of materials.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bill {
    /// SHA-256 of all sources of the image. Equal sources and equal compilers give equal images.
    pub source: String,
    /// The compiler; `None` for a script.
    pub compiler: Option<Compiler>,
    /// The crates, by name and version.
    #[serde(default)]
    pub crates: Vec<Material>,
}

impl<'a> Materials<'a> {
    /// Collects the materials of the stubs' workspace.
    ///
    /// # Errors
    /// The compiler does not report its version.
    pub fn new(
        repository: &'a Repository,
        metadata: &'a Metadata,
        checksums: &'a Checksums,
        included: &'a CCrates,
    ) -> Outcome<Materials<'a>> {
        let compiler = rustc_version()?;
        Ok(Materials { repository, metadata, checksums, included, compiler, folders: RefCell::default() })
    }

    /// Returns the bill of a program, in the form stored in its package.
    ///
    /// # Errors
    /// A source file cannot be read.
    pub fn bill(&self, program: &Program) -> Outcome<String> {
        let manifest = program.manifest();
        match &program.body {
            Body::Script => {
                let text = std::fs::read(&manifest).map_err(|error| Failure::file("read", &manifest, &error))?;
                Ok(rendered(&Bill { source: hexadecimal(&sha256(&text)), compiler: None, crates: Vec::new() }))
            }
            Body::Wasm { module, template, .. } => {
                let bytes = wasm::read_module(module)?;
                let module = hexadecimal(&sha256(&bytes));
                let crates = self.crates(&stub_of(template))?;
                let lines: String = crates.iter().map(line).collect();
                let source = hexadecimal(&sha256(format!("{lines}wasm {module}\n").as_bytes()));
                let flags = format!("{}; WebAssembly module: sha256 {module}", flags_in_words());
                let compiler = Compiler { rustc: self.compiler.clone(), target: TARGET.into(), flags };
                Ok(rendered(&Bill { source, compiler: Some(compiler), crates }))
            }
            Body::Crate { .. } => {
                let mut crates = self.crates(&stub_name(program))?;
                for included in self.included.of(program) {
                    crates.push(self.material(&included.package, Part::Image)?);
                }
                let lines: String = crates.iter().map(line).collect();
                let mut flags = flags_in_words();
                if !program.c.is_empty() {
                    let _ = write!(flags, "; C code: {}", native::compiler_in_words()?);
                }
                let compiler = Compiler { rustc: self.compiler.clone(), target: TARGET.into(), flags };
                let source = hexadecimal(&sha256(lines.as_bytes()));
                Ok(rendered(&Bill { source, compiler: Some(compiler), crates }))
            }
        }
    }

    /// Returns the bill of a module alone, as it is packed for other machines: of what it was made is not known.
    pub fn of_module(module: &[u8]) -> String {
        rendered(&Bill { source: hexadecimal(&sha256(module)), compiler: None, crates: Vec::new() })
    }

    fn crates(&self, stub: &str) -> Outcome<Vec<Material>> {
        let Some(stub) = self.metadata.member(stub) else { return Ok(Vec::new()) };
        let image: BTreeSet<&str> = self.metadata.linked(&stub.id).iter().map(|package| package.id.as_str()).collect();
        let used = self.metadata.closure(&stub.id).into_iter().filter(|package| package.id != stub.id);
        let mut crates: Vec<Material> = used
            .map(|package| {
                let part = if image.contains(package.id.as_str()) { Part::Image } else { Part::Build };
                self.material(package, part)
            })
            .collect::<Outcome<_>>()?;
        crates.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
        Ok(crates)
    }

    fn material(&self, package: &Package, part: Part) -> Outcome<Material> {
        let folder = package.source.is_none().then(|| self.repository.shown(package.folder()).to_string());
        let sha256 = match folder {
            Some(_) => self.folder_checksum(package.folder())?,
            // The builder refuses a crate without a checksum.
            None => self.checksums.of(package).unwrap_or_default().into(),
        };
        let licence = package.license.clone().unwrap_or_default();
        Ok(Material { name: package.name.clone(), version: package.version.clone(), part, folder, licence, sha256 })
    }

    fn folder_checksum(&self, folder: &Path) -> Outcome<String> {
        if let Some(known) = self.folders.borrow().get(folder) {
            return Ok(known.clone());
        }
        let mut bytes = Vec::new();
        collect(folder, Path::new(""), &mut bytes)?;
        let checksum = hexadecimal(&sha256(&bytes));
        self.folders.borrow_mut().insert(folder.to_path_buf(), checksum.clone());
        Ok(checksum)
    }
}

/// Returns whether a crate's checksum covers the file at `within`, relative to the crate's folder.
pub fn covers(within: &Path) -> bool {
    let mut parts = within.iter().map(OsStr::to_string_lossy);
    parts.next().is_some_and(|first| !is_no_source(&first) && !OUTSIDE.contains(&&*first))
        && parts.all(|part| !is_no_source(&part))
}

/// Returns the innermost other crate nested in a crate's folder that contains the file `within`, relative to the
/// folder. A crate's checksum leaves nested crates out; they have their own.
pub fn inner_crate(folder: &Path, within: &Path) -> Option<PathBuf> {
    let above = within.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.map(|above| folder.join(above)).find(|above| above.join("Cargo.toml").is_file())
}

/// Appends name, length and content of each source file below `folder`, in the order of names.
fn collect(folder: &Path, shown: &Path, bytes: &mut Vec<u8>) -> Outcome<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file("read", folder, &error))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let shown = shown.join(path.file_name().unwrap_or_default());
        if !covers(&shown) {
            continue;
        }
        if path.is_dir() {
            // A nested crate has its own line.
            if !path.join("Cargo.toml").is_file() {
                collect(&path, &shown, bytes)?;
            }
            continue;
        }
        let content = std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
        bytes.extend_from_slice(shown.to_string_lossy().as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&content);
    }
    Ok(())
}

/// Folders beside a crate's sources that take no part in an image: build output, tests.
const OUTSIDE: [&str; 4] = ["target", "tests", "benches", "examples"];

/// Returns whether a name is an editor's file, which takes no part in an image anywhere.
fn is_no_source(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~')
}

fn rustc_version() -> Outcome<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(&compiler)
        .arg("--version")
        // As for images: rustup chooses the toolchain by the current folder.
        .current_dir("/")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        _ => Err(Failure::new(format!("{} --version prints nothing", compiler.to_string_lossy()))
            .remedy("install a stable Rust toolchain, for instance with rustup")),
    }
}

/// Formats a crate as a line of the bill.
fn line(material: &Material) -> String {
    let Material { name, version, part, folder, licence, sha256 } = material;
    let part = match part {
        Part::Image => "image",
        Part::Build => "build",
    };
    let folder = folder.as_ref().map_or(String::new(), |folder| format!(", folder = {folder:?}"));
    format!(
        "  {{ name = {name:?}, version = {version:?}, part = {part:?}{folder}, licence = {licence:?}, sha256 = {sha256:?} }},\n"
    )
}

fn rendered(bill: &Bill) -> String {
    let mut text = format!("# What the package was made of.\nsource = {:?}\n", bill.source);
    if let Some(Compiler { rustc, target, flags }) = &bill.compiler {
        let lines: String = bill.crates.iter().map(line).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "crates = [\n{lines}]\n\n[compiler]\nrustc = {rustc:?}\ntarget = {target:?}");
        let _ = writeln!(text, "flags = {flags:?}");
    }
    text
}

impl Bill {
    /// Reads the bill of a package.
    ///
    /// # Errors
    /// The package has none, or it is malformed.
    pub fn of(package: &PackageFile<'_>) -> Outcome<Bill> {
        let name = &package.manifest.name;
        if package.bill.is_empty() {
            return Err(Failure::new(format!("the package of `{name}` has no bill of materials"))
                .remedy("build it with `cargo sing build`"));
        }
        let text = String::from_utf8_lossy(package.bill);
        toml::from_str(&text).map_err(|error| {
            Failure::new(format!("cannot read the bill of materials of `{name}`")).details(error.to_string())
        })
    }
}

/// `sing bill`: prints the bill of a package, or of a program of the repository, which is built first.
///
/// # Errors
/// There is no such program or package, it has no bill, or it does not build.
pub fn print(repository: &Repository, arguments: &BillArguments) -> Outcome<u8> {
    let path = Path::new(&arguments.program);
    let is_file = path.extension().is_some() || path.components().count() > 1;
    let bytes = match is_file {
        true => std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?,
        false => crate::build::package(repository, &arguments.program, None)?,
    };
    let package = PackageFile::parse(&bytes)
        .map_err(|error| Failure::new(format!("{} is not a package: {error}", arguments.program)))?;
    let bill = Bill::of(&package)?;
    if arguments.cyclonedx {
        println!("{:#}", cyclonedx::document(&package.manifest, &bill));
    } else {
        print!("{}", String::from_utf8_lossy(package.bill));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn material(name: &str, folder: Option<&str>) -> Material {
        Material {
            name: name.into(),
            version: "1.2.3".into(),
            part: if folder.is_some() { Part::Image } else { Part::Build },
            folder: folder.map(String::from),
            licence: "MIT OR Apache-2.0".into(),
            sha256: "ab".repeat(32),
        }
    }

    #[test]
    fn a_bill_is_read_as_it_was_written() {
        let compiler = Compiler { rustc: "rustc 1.95.0".into(), target: TARGET.into(), flags: flags_in_words() };
        let crates = vec![material("cat", Some("apps/cat")), material("syn", None)];
        let bill = Bill { source: "cd".repeat(32), compiler: Some(compiler), crates };
        assert_eq!(toml::from_str::<Bill>(&rendered(&bill)).expect("a bill"), bill);
        let script = Bill { source: "ef".repeat(32), compiler: None, crates: Vec::new() };
        assert_eq!(toml::from_str::<Bill>(&rendered(&script)).expect("a bill"), script);
    }

    #[test]
    fn a_checksum_tells_changed_moved_and_new_files_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let checksum = || {
            let mut bytes = Vec::new();
            collect(folder.path(), Path::new(""), &mut bytes).expect("it can be read");
            bytes
        };
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("src/lib.rs", "a");
        let first = checksum();
        for path in [
            "tests/t.rs",
            "src/.hidden/x.rs",
            "target/x",
            ".swap",
            "src/lib.rs~",
            "inner/Cargo.toml",
            "inner/src/lib.rs",
        ] {
            write(path, "b");
            assert_eq!(checksum(), first, "{path}");
        }
        write("src/lib.rs", "b");
        let second = checksum();
        // A module may have such a name.
        write("src/tests/mod.rs", "");
        assert_ne!(checksum(), second);
        write("src/more.rs", "");
        let third = checksum();
        std::fs::rename(folder.path().join("src/more.rs"), folder.path().join("src/else.rs")).expect("renamed");
        let all = BTreeSet::from([first, second, third, checksum()]);
        assert_eq!(all.len(), 4);
    }
}
