//! Entry stubs: a generated crate per program with the entry code, which links the program's library and the runtime
//! into an image. All stubs form one generated workspace and are built together.
//!
//! Deliberately not here: the entry code itself, which is the macro `sip::entry!`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::cargo::TARGET;
use crate::failure::{Failure, Outcome};
use crate::programs::{Body, Program};
use crate::repository::{Repository, write_if_changed};

/// Compiler and linker flags of an image beside its link script: position-independent code, without the host's C
/// library, relative relocations only, no unwind tables, and no arguments pushed one by one: in a function that pushes,
/// LLVM allocates the large arguments of other calls at the call sites without touching each page, so that safe code
/// could write past its stack's guard page.
const FLAGS: [&str; 16] = [
    "-Crelocation-model=pie",
    "-Cllvm-args=-no-x86-call-frame-opt",
    "-Ctarget-feature=+crt-static",
    "-Cforce-unwind-tables=no",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-static-pie",
    "-Clink-arg=-Wl,--gc-sections",
    "-Clink-arg=-Wl,-z,noexecstack",
    "-Clink-arg=-Wl,-z,relro",
    "-Clink-arg=-Wl,-z,now",
    "-Clink-arg=-Wl,-z,max-page-size=4096",
    "-Clink-arg=-Wl,--build-id=none",
    "-Clink-arg=-Wl,--no-dynamic-linker",
    "-Clink-arg=-Wl,--no-eh-frame-hdr",
    "-Clink-arg=-Wl,--hash-style=gnu",
];
/// Folder of the libraries with C code, beside the stubs.
pub const C_LIBRARIES: &str = "c";
/// Path of the link script in the repository.
const LINK_SCRIPT: &str = "sip/image.ld";

/// The crate that stands for the register allocator of WebAssembly's compiler, as in the repository's own workspace.
const SEAM: &str = "lib/regalloc2";

/// Profile of images: whole-program optimisation, so that an image holds only what the program uses. Every key that
/// affects an image is set, so that none comes from the builder's configuration. Code that runs during the build is
/// small; compiling it quickly matters more than its speed.
const PROFILE: [&str; 13] = [
    "opt-level=2",
    "lto=\"fat\"",
    "codegen-units=1",
    "panic=\"abort\"",
    "debug=false",
    "split-debuginfo=\"off\"",
    "debug-assertions=false",
    "overflow-checks=false",
    "strip=\"debuginfo\"",
    "incremental=false",
    "rpath=false",
    "build-override.opt-level=0",
    "build-override.codegen-units=16",
];
/// Prefix of the variables that change profiles.
const PROFILE_VARIABLES: &str = "CARGO_PROFILE_";

/// The generated workspace.
pub struct EntryStubs {
    folder: PathBuf,
    target: PathBuf,
    link_script: PathBuf,
    /// Folder of the system's sources.
    base: PathBuf,
    /// Workspaces of the system's and the user's crates.
    workspaces: Vec<PathBuf>,
}

impl EntryStubs {
    /// Writes the workspace for these programs; unchanged files are left alone.
    ///
    /// # Errors
    /// A file cannot be written, or the repository's Cargo.lock cannot be read.
    pub fn generate<'a>(repository: &Repository, programs: impl Iterator<Item = &'a Program>) -> Outcome<EntryStubs> {
        let stubs = EntryStubs {
            folder: repository.output("stubs"),
            target: repository.output("build"),
            link_script: repository.base().join(LINK_SCRIPT),
            base: repository.base().to_path_buf(),
            workspaces: repository.workspaces().into_iter().map(Path::to_path_buf).collect(),
        };
        let mut members = BTreeSet::new();
        for program in programs {
            if let Body::Crate { folder, package, entry } = &program.body {
                stubs.write_stub(repository, program, folder, package)?;
                // That of C code names its library, which is built later.
                if program.c.is_empty() || !stubs.main(program).is_file() {
                    let text = if program.is_template { template_text() } else { main_text(entry.as_deref()) };
                    write_if_changed(&stubs.main(program), text.as_bytes())?;
                }
                members.insert(program.name.as_str());
            }
        }
        let mut workspace = String::from("[workspace]\nresolver = \"3\"\nmembers = [\n");
        for member in &members {
            // Writing to a String cannot fail.
            let _ = writeln!(workspace, "    {member:?},");
        }
        workspace.push_str("]\n");
        let _ = write!(
            workspace,
            "\n[patch.crates-io]\nregalloc2 = {{ path = {} }}\n",
            toml_text(&repository.base().join(SEAM))
        );
        write_if_changed(&stubs.manifest(), workspace.as_bytes())?;
        stubs.copy_lock(repository)?;
        Ok(stubs)
    }

    /// Returns the workspace's Cargo.toml.
    pub fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }

    /// Returns the workspace's Cargo.lock.
    pub fn lock(&self) -> PathBuf {
        self.folder.join("Cargo.lock")
    }

    /// Returns the cargo command that builds the images of these programs, and compiles only crates in the folders
    /// listed in the file `judged`.
    pub fn build_command<'a>(
        &self,
        programs: impl Iterator<Item = &'a Program>,
        judged: &Path,
    ) -> std::process::Command {
        let mut command = crate::cargo::command_for_others();
        command.args(["build", "--release", "--target", TARGET, "--manifest-path"]).arg(self.manifest());
        command.arg("--target-dir").arg(&self.target);
        // Only the command line overrides both variables and the builder's configuration files.
        for setting in PROFILE {
            command.arg("--config").arg(profile_setting(setting));
        }
        for program in programs.filter(|program| matches!(program.body, Body::Crate { .. })) {
            command.arg("--package").arg(stub_name(program));
        }
        // Replaces any flags of the user's: an image is made with exactly these.
        command.env("CARGO_ENCODED_RUSTFLAGS", self.encoded_flags()).env_remove("RUSTFLAGS");
        command.env("CARGO_INCREMENTAL", "0");
        // Variables can also set profiles of single crates, which the settings above do not cover.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_profiles(name)) {
            command.env_remove(name);
        }
        crate::compiler::stand_in(&mut command, &self.workspaces, judged);
        command
    }

    /// Returns the rustc flags in cargo's encoding. Paths in panic messages are relative to the repository or to
    /// cargo's home, and crate hashes do not depend on either, so that the same sources give the same image wherever
    /// they are built.
    pub fn encoded_flags(&self) -> String {
        format!(
            "{}\x1f-Lnative=../{C_LIBRARIES}\x1f-Clink-arg=-Wl,-T,{}\x1f--remap-path-prefix={}=\x1f--remap-path-prefix={}=",
            FLAGS.join("\x1f"),
            self.link_script.display(),
            with_slash(&self.base),
            with_slash(&crate::cargo::home()),
        )
    }

    /// Lets the stub of a program run the C code in the static library of this name in [`C_LIBRARIES`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn link(&self, program: &Program, library: &str) -> Outcome<()> {
        write_if_changed(&self.main(program), c_main_text(library).as_bytes()).map(drop)
    }

    fn write_stub(&self, repository: &Repository, program: &Program, folder: &Path, package: &str) -> Outcome<()> {
        let name = &program.name;
        let stub = self.folder.join(name);
        let folder = toml_text(&absolute(folder)?);
        let sip = toml_text(&repository.base().join("sip"));
        let runtime =
            |name: &str, path: &str| format!("{name} = {{ path = {} }}\n", toml_text(&repository.base().join(path)));
        let mut c = if program.c.is_empty() { String::new() } else { runtime("sip-c", "sip/c") };
        if program.is_template {
            c.push_str(&runtime("sip-wasm", "sip/wasm"));
        }
        let manifest = format!(
            "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [[bin]]\nname = {name:?}\npath = \"main.rs\"\ntest = false\nbench = false\n\n\
             [dependencies]\nprogram = {{ package = {package}, path = {folder} }}\n\
             sip = {{ path = {sip} }}\n{c}",
            stub_name(program),
            package = toml_text(Path::new(package)),
        );
        write_if_changed(&stub.join("Cargo.toml"), manifest.as_bytes())
    }

    /// Returns the path of a stub's source.
    fn main(&self, program: &Program) -> PathBuf {
        self.folder.join(&program.name).join("main.rs")
    }

    /// Copies the repository's Cargo.lock if it has changed, so that an image holds the audited and tested versions.
    /// Cargo then adds the stubs themselves to the copy.
    fn copy_lock(&self, repository: &Repository) -> Outcome<()> {
        let original = repository.base().join("Cargo.lock");
        let content = std::fs::read(&original).map_err(|error| Failure::file("read", &original, &error))?;
        let seen = self.folder.join("Cargo.lock.seen");
        if self.lock().is_file() && std::fs::read(&seen).is_ok_and(|old| old == content) {
            return Ok(());
        }
        write_if_changed(&self.lock(), &content)?;
        write_if_changed(&seen, &content)
    }
}

/// Returns the source of an entry stub, which runs `main` of the module `entry` of the program's crate, or of its root.
fn main_text(entry: Option<&str>) -> String {
    let module = entry.map_or(String::new(), |entry| format!("::{entry}"));
    format!("#![no_std]\n#![no_main]\n\nsip::entry!(program{module}::main);\n")
}

/// Returns the source of the entry stub of a template.
fn template_text() -> String {
    String::from("#![no_std]\n#![no_main]\n\nsip_wasm::template!(program);\n")
}

/// Returns the source of the entry stub of C code. The crate is linked for the contracts that it depends on.
fn c_main_text(library: &str) -> String {
    format!("#![no_std]\n#![no_main]\n\nuse program as _;\n\nsip_c::program!({library:?});\n")
}

/// Describes flags and profile for a bill of materials, without the flags that name the builder's folders.
pub fn flags_in_words() -> String {
    let profile = PROFILE.iter().map(|setting| profile_setting(setting));
    FLAGS.iter().map(|flag| flag.to_string()).chain(profile).collect::<Vec<_>>().join(" ")
}

fn profile_setting(setting: &str) -> String {
    format!("profile.release.{setting}")
}

fn is_of_profiles(variable: &OsStr) -> bool {
    variable.as_encoded_bytes().starts_with(PROFILE_VARIABLES.as_bytes())
}

/// Returns a folder as a path prefix, with a trailing slash.
fn with_slash(folder: &Path) -> String {
    format!("{}/", folder.display())
}

/// Returns the package name of a program's stub.
pub fn stub_name(program: &Program) -> String {
    stub_of(&program.name)
}

/// Returns the package name of the stub of the program with this name.
pub fn stub_of(name: &str) -> String {
    format!("stub-{name}")
}

fn absolute(path: &Path) -> Outcome<PathBuf> {
    path.canonicalize().map_err(|error| Failure::file("find", path, &error))
}

/// Formats a path as a TOML string.
fn toml_text(path: &Path) -> String {
    // A TOML basic string has the escapes of a JSON string.
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_runs_main_of_its_module() {
        assert!(main_text(None).ends_with("\nsip::entry!(program::main);\n"));
        assert!(main_text(Some("wc")).ends_with("\nsip::entry!(program::wc::main);\n"));
    }

    #[test]
    fn the_profile_of_images_is_on_the_command_line_and_in_the_bill() {
        let repository = Repository::find().expect("this is one");
        let stubs = EntryStubs {
            folder: repository.output("stubs"),
            target: repository.output("build"),
            link_script: repository.base().join(LINK_SCRIPT),
            base: repository.base().to_path_buf(),
            workspaces: repository.workspaces().into_iter().map(Path::to_path_buf).collect(),
        };
        let command = stubs.build_command(std::iter::empty(), Path::new("/judged"));
        let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        for setting in ["profile.release.opt-level=2", "profile.release.lto=\"fat\"", "profile.release.debug=false"] {
            assert!(words.windows(2).any(|pair| pair[0] == "--config" && pair[1] == setting), "{setting}: {words:?}");
            assert!(flags_in_words().contains(setting), "{setting}");
        }
        assert!(is_of_profiles("CARGO_PROFILE_RELEASE_LTO".as_ref()) && !is_of_profiles("CARGO_HOME".as_ref()));
    }
}
