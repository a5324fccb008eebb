//! Entry stubs: for each program a generated crate with the entry code, which links the program's
//! library and the runtime into an image. All of them form one generated workspace, built at once.
//!
//! Deliberately not here: what the entry code does; that is the macro `sip::entry!`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::cargo::TARGET;
use crate::failure::{Failure, Outcome};
use crate::programs::{Body, Program};
use crate::repository::{Repository, write_if_changed};

/// Compiler and linker flags of an image beside its link script: position-independent, nothing of the
/// host's C library, relative relocations only, no unwind tables. And no arguments pushed one by one: in a function that
/// does so, LLVM makes room for other calls' large arguments where the calls are, without touching each page of it, so
/// that safe code would write past the guard page of its stack.
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
/// The link script, in the repository.
const LINK_SCRIPT: &str = "sip/image.ld";

/// The profile of images: whole-program optimisation, so that only what a program uses is in it. Every key is here that
/// changes an image, so that none comes from the builder's configuration. What runs while building is small and soon
/// compiled, which beats fast.
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
/// What variables begin with that change profiles.
const PROFILE_VARIABLES: &str = "CARGO_PROFILE_";

/// The generated workspace.
pub struct EntryStubs {
    folder: PathBuf,
    target: PathBuf,
    link_script: PathBuf,
    /// The system's sources.
    base: PathBuf,
    /// Where crates come from that are the system's or one's own.
    workspaces: Vec<PathBuf>,
}

impl EntryStubs {
    /// Writes the workspace for these programs; files that would not change are left alone.
    ///
    /// # Errors
    /// A file cannot be written or the repository's Cargo.lock not be read.
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
            if let Body::Crate { folder, package } = &program.body {
                stubs.write_stub(repository, program, folder, package)?;
                members.insert(program.name.as_str());
            }
        }
        let mut workspace = String::from("[workspace]\nresolver = \"3\"\nmembers = [\n");
        for member in &members {
            // Writing to a String cannot fail.
            let _ = writeln!(workspace, "    {member:?},");
        }
        workspace.push_str("]\n");
        write_if_changed(&stubs.manifest(), workspace.as_bytes())?;
        stubs.copy_lock(repository)?;
        Ok(stubs)
    }

    /// The workspace's Cargo.toml.
    pub fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }

    /// Its Cargo.lock.
    pub fn lock(&self) -> PathBuf {
        self.folder.join("Cargo.lock")
    }

    /// The cargo command that builds the images of these programs, and compiles no crate but those in folders that the
    /// file `judged` lists.
    pub fn build_command<'a>(
        &self,
        programs: impl Iterator<Item = &'a Program>,
        judged: &Path,
    ) -> std::process::Command {
        let mut command = crate::cargo::command_for_others();
        command.args(["build", "--release", "--target", TARGET, "--manifest-path"]).arg(self.manifest());
        command.arg("--target-dir").arg(&self.target);
        // On the command line, as that alone goes before variables and the builder's configuration files.
        for setting in PROFILE {
            command.arg("--config").arg(profile_setting(setting));
        }
        for program in programs.filter(|program| matches!(program.body, Body::Crate { .. })) {
            command.arg("--package").arg(stub_name(program));
        }
        // Takes the place of whatever flags the user has: an image is made with exactly these.
        command.env("CARGO_ENCODED_RUSTFLAGS", self.encoded_flags()).env_remove("RUSTFLAGS");
        command.env("CARGO_INCREMENTAL", "0");
        // There are variables for settings of single crates too, which are not among ours.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_profiles(name)) {
            command.env_remove(name);
        }
        crate::compiler::stand_in(&mut command, &self.workspaces, judged);
        command
    }

    /// The flags that rustc is given, as cargo takes them. Paths in panic messages begin at the repository or at cargo's
    /// folder, and marks of crates do not depend on those, so that the same sources give the same image wherever they are
    /// built.
    pub fn encoded_flags(&self) -> String {
        format!(
            "{}\x1f-Clink-arg=-Wl,-T,{}\x1f--remap-path-prefix={}=\x1f--remap-path-prefix={}=",
            FLAGS.join("\x1f"),
            self.link_script.display(),
            with_slash(&self.base),
            with_slash(&crate::cargo::home()),
        )
    }

    fn write_stub(&self, repository: &Repository, program: &Program, folder: &Path, package: &str) -> Outcome<()> {
        let name = &program.name;
        let stub = self.folder.join(name);
        let folder = toml_text(&absolute(folder)?);
        let sip = toml_text(&repository.base().join("sip"));
        let manifest = format!(
            "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [[bin]]\nname = {name:?}\npath = \"main.rs\"\ntest = false\nbench = false\n\n\
             [dependencies]\nprogram = {{ package = {package}, path = {folder} }}\n\
             sip = {{ path = {sip} }}\n",
            stub_name(program),
            package = toml_text(Path::new(package)),
        );
        let main = "#![no_std]\n#![no_main]\n\nsip::entry!(program::main);\n";
        write_if_changed(&stub.join("Cargo.toml"), manifest.as_bytes())?;
        write_if_changed(&stub.join("main.rs"), main.as_bytes())
    }

    /// Gives the stubs the repository's Cargo.lock when that has changed, so that an image holds the
    /// versions that were audited and tested. Cargo then adds the stubs themselves to its copy.
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

/// How images are compiled, in words for a bill of materials: flags and profile, but for what names folders of the
/// builder.
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

/// A folder as a prefix of the paths in it.
fn with_slash(folder: &Path) -> String {
    format!("{}/", folder.display())
}

/// The package name of a program's stub.
pub fn stub_name(program: &Program) -> String {
    format!("stub-{}", program.name)
}

fn absolute(path: &Path) -> Outcome<PathBuf> {
    path.canonicalize().map_err(|error| Failure::file("find", path, &error))
}

/// A path as a TOML string.
fn toml_text(path: &Path) -> String {
    // A basic string of TOML escapes like a string of JSON.
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
