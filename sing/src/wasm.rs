//! WebAssembly programs: their templates, and images composed of template and module. The compiler is a program of its
//! own, the crate `sing-wasm`, which is built on first use.
//!
//! Neighbours: `builder` builds the templates like any program. Deliberately not here: the compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use package::Package;
use package_check::sha256;
use sing_start::Program as HostProgram;

use manifest_model::Bounds;

use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::programs::{Body, Program};
use crate::repository::{Repository, write_if_changed};

/// Folder of the templates.
const TEMPLATES: &str = "templates";
/// Folder of composed images, by the digest of what they are made of.
const IMAGES: &str = "wasm";

/// Returns the folder of a template.
///
/// # Errors
/// There is none of this name.
pub fn template_folder(repository: &Repository, name: &str) -> Outcome<PathBuf> {
    let templates = repository.base().join(TEMPLATES);
    let folder = templates.join(name);
    if manifest_model::is_name(name) && folder.join("manifest.toml").is_file() {
        return Ok(folder);
    }
    let entries = std::fs::read_dir(&templates).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Err(Failure::new(format!("there is no template `{name}` of WebAssembly programs"))
        .remedy(format!("name one of {}", names.join(", "))))
}

/// Composes the images of the WebAssembly programs among `selected` from those of their templates, and adds them to
/// `made`, which has the images by name.
///
/// # Errors
/// A module is refused, or the compiler does not build.
pub fn compose(repository: &Repository, selected: &[&Program], made: &mut BTreeMap<String, PathBuf>) -> Outcome<()> {
    for program in selected {
        let Body::Wasm { module, template, bounds, .. } = &program.body else { continue };
        let template = made
            .get(template)
            .ok_or_else(|| Failure::new(format!("cargo produced no image of the template `{template}`")))?;
        let image = compiled(repository, &program.name, module, template, *bounds)?;
        made.insert(program.name.clone(), image);
    }
    Ok(())
}

/// Reads the module of a program.
///
/// # Errors
/// It is not there, or cannot be read.
pub fn read_module(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let failure = Failure::file("read", path, &error);
        let script = path.with_file_name("build.sh");
        if error.kind() == std::io::ErrorKind::NotFound && script.is_file() {
            return failure.remedy(format!("build the module first: sh {}", script.display()));
        }
        failure
    })
}

/// Returns the image of a module with these bounds of memory, compiled unless there is one of the same module, template,
/// compiler and bounds.
fn compiled(repository: &Repository, name: &str, module: &Path, template: &Path, bounds: Bounds) -> Outcome<PathBuf> {
    let compiler = compiler(repository)?;
    let mut inputs = Vec::new();
    for input in [module, template, &compiler] {
        inputs.extend(sha256(&std::fs::read(input).map_err(|error| Failure::file("read", input, &error))?));
    }
    inputs.extend(bounds.word().as_bytes());
    let folder = repository.output(IMAGES);
    let image = folder.join(format!("{name}-{}", &hexadecimal(&sha256(&inputs))[..32]));
    if image.is_file() {
        return Ok(image);
    }
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file("make the folder", &folder, &error))?;
    let unfinished = folder.join(format!("{name}.unfinished"));
    let mut command = Command::new(&compiler);
    command
        .arg("--template")
        .arg(template)
        .arg("--module")
        .arg(module)
        .arg("--out")
        .arg(&unfinished)
        .args(["--bounds", bounds.word()]);
    // It shows its progress, and says itself what is wrong.
    let status = command.status().map_err(|error| Failure::file("start", &compiler, &error))?;
    if !status.success() {
        return Err(Failure::new(format!("the WebAssembly module of `{name}` is refused"))
            .remedy("build it for a host that has what it imports, such as wasm32-wasip1"));
    }
    std::fs::rename(&unfinished, &image).map_err(|error| Failure::file("write", &image, &error))?;
    Ok(image)
}

/// Compiles the module of a package for the template that a system image has, and returns the package with its image; any
/// other package, and what is none, as it is.
///
/// # Errors
/// The system lacks the template, or the compiler does not build or refuses the module.
pub fn delivered(repository: &Repository, system: &[u8], package: Vec<u8>) -> Outcome<Vec<u8>> {
    let Ok(parsed) = Package::parse(&package) else { return Ok(package) };
    let Some(template) = parsed.manifest.code.template() else { return Ok(package) };
    let name = &parsed.manifest.name;
    if !manifest_model::is_name(name) {
        // The check tells.
        return Ok(package);
    }
    let system = package_check::verify_system(system)
        .map_err(|error| Failure::new(format!("the system image is refused: {error}")))?;
    let mut packages = system.packages.iter().filter_map(|bytes| Package::parse(bytes).ok());
    let host = packages.find(|host| host.manifest.name == template && host.manifest.code.is_template());
    let host = host.ok_or_else(|| {
        Failure::new(format!(
            "`{name}` is a WebAssembly program of the template `{template}`, which the system does not have"
        ))
        .remedy(format!("install it first: `cargo sing package {template}`, `cargo sing install {template}.package`"))
    })?;
    let folder = repository.output(IMAGES);
    let files = [("module", parsed.image_bytes), ("template", host.image_bytes)].map(|(what, bytes)| {
        let path = folder.join(format!("{what}-{}", &hexadecimal(&sha256(bytes))[..32]));
        write_if_changed(&path, bytes).map(|_| path)
    });
    let [module, host] = files;
    let path = compiled(repository, name, &module?, &host?, manifest::DEFAULT_BOUNDS)?;
    let image = std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
    package::compiled(&package, &image).ok_or_else(|| Failure::new(format!("the image of `{name}` is too large")))
}

/// The compiler, built if it is missing or out of date.
fn compiler(repository: &Repository) -> Outcome<PathBuf> {
    host_program(repository, "sing-wasm", "the compiler of WebAssembly")
}

/// Returns the path of a program for the host, a crate of the repository, built if it is missing or out of date; messages
/// call it `what`.
///
/// # Errors
/// It does not build.
pub fn host_program(repository: &Repository, name: &str, what: &'static str) -> Outcome<PathBuf> {
    let path = repository.cargo_target().join("release").join(name);
    let program = HostProgram::new(repository.base(), path.clone(), what);
    match program.bring_up_to_date(cargo::command(repository)) {
        Ok(true) => Ok(path),
        Ok(false) => Err(Failure::new(format!("{what} did not build")).remedy("fix the errors above")),
        Err(why) => Err(Failure::new(format!("{what} does not build: {why}"))),
    }
}
