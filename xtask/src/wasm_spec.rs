//! The part of `sing test` that runs WebAssembly's test suite: `tests/wasm-spec` compiles it for the template
//! `templates/wasm-spec`, which runs it in the system `wasm-spec`.
//!
//! Deliberately not here: which files there are, and how each must end.

use std::path::{Path, PathBuf};
use std::process::Command;

use manifest_model::{Code, Manifest, Trust};
use package_build::{build_package, build_system};
use package_check::sha256;
use sing::build_lock;
use sing::builder::{self, UnsafeTests};
use sing::failure::{Failure, Outcome};
use sing::repository::{Repository, write_whole};
use sing::systems::{self, Catalogue, Platform};
use sing::test::{Selection, skipped};
use sing::test_output::Counts;
use sing::wasm;

use crate::test::{conformance_run, this_tool};

const SUITE: &str = "wasm";
const PROGRAM: &str = "wasm-spec";
const COMPILER: &str = "wasm-spec";
const PROCESSORS: u32 = 2;
/// Memory of the bare machine: one linear memory grows to 50 MiB, and its growth copies.
const BARE_MEMORY: &str = "512M";

/// Runs the suite, hosted and, if there is QEMU, on a bare machine.
///
/// # Errors
/// It does not build, or a machine cannot be started.
pub fn check(repository: &Repository, selection: &Selection<'_>, no_qemu: Option<&Failure>) -> Outcome<Counts> {
    if selection.name.is_some_and(|name| !name.contains(SUITE)) {
        return Ok(Counts::default());
    }
    let image = system(repository)?;
    let machine = systems::prepare(repository, &image, Platform::Hosted, UnsafeTests::Refused)?.machine;
    let mut command = Command::new(machine);
    command.arg("--system").arg(&image).args(["--processors", &PROCESSORS.to_string()]);
    command.arg("--parameter").arg(format!("only={}", selection.name.unwrap_or_default()));
    let counts = conformance_run(command, SUITE, selection, PROCESSORS)?;
    if let Some(failure) = no_qemu {
        return Ok(counts + skipped("WebAssembly's test suite on bare machines", &failure.to_string()));
    }
    let mut command = Command::new(this_tool()?);
    command.args(["run", "--machine", "microvm", "--mem", BARE_MEMORY, "--smp", &PROCESSORS.to_string()]);
    command.arg("--system").arg(&image);
    command.arg("--parameter").arg(format!("only={}", selection.name.unwrap_or_default()));
    Ok(counts + conformance_run(command, &format!("{SUITE} on microvm"), selection, PROCESSORS)?)
}

/// Returns the image of the system, built unless there is one of the same template and compiler.
fn system(repository: &Repository) -> Outcome<PathBuf> {
    let catalogue = Catalogue::read(repository)?;
    let mut system = catalogue.system(repository, &repository.system_manifest(PROGRAM.as_ref())?)?;
    let _lock = build_lock::lock(repository)?;
    let selected = [catalogue.programs.get(PROGRAM)?];
    let built = builder::build_programs(repository, &catalogue.programs, &selected, UnsafeTests::Refused)?;
    let (bill, template) = match built.as_slice() {
        [built] => (built.bill.as_str(), built.image.as_deref()),
        _ => ("", None),
    };
    let template = template.ok_or_else(|| Failure::new(format!("cargo produced no image of `{PROGRAM}`")))?;
    let compiler = wasm::host_program(repository, COMPILER, "the compiler of WebAssembly's test suite")?;
    let folder = repository.output(PROGRAM);
    let image = folder.join(format!("{}.system", digest(&[template, &compiler])?));
    if image.is_file() {
        return Ok(image);
    }
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file("make the folder", &folder, &error))?;
    let composed = compose(&compiler, template, &folder)?;
    let signer = systems::signer(repository)?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("the image of `{PROGRAM}` is refused: {error}"));
    // The template with the suite in it is a program.
    let manifest = Manifest { code: Code::Image { digest: [0; 32] }, ..catalogue.manifest(PROGRAM)?.clone() };
    let package = build_package(manifest, bill.as_bytes(), &composed, &signer).map_err(|error| failed(&error))?;
    system.trust = Trust::in_key(signer.key.public());
    let bytes = build_system(&system, &[package], &signer.key).map_err(|error| failed(&error))?;
    write_whole(&image, &bytes)?;
    Ok(image)
}

/// The first digits of the digest of files.
fn digest(files: &[&Path]) -> Outcome<String> {
    let mut digests = Vec::new();
    for file in files {
        digests.extend(sha256(&std::fs::read(file).map_err(|error| Failure::file("read", file, &error))?));
    }
    Ok(sha256(&digests).iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// Compiles the suite, and returns its image.
fn compose(compiler: &Path, template: &Path, folder: &Path) -> Outcome<Vec<u8>> {
    let out = folder.join("image");
    let mut command = Command::new(compiler);
    command.arg("--template").arg(template).arg("--out").arg(&out);
    let output = command.output().map_err(|error| Failure::file("start", compiler, &error))?;
    if !output.status.success() {
        let details = String::from_utf8_lossy(&output.stderr).trim_end().to_string();
        return Err(Failure::new("WebAssembly's test suite does not compile").details(details));
    }
    std::fs::read(&out).map_err(|error| Failure::file("read", &out, &error))
}
