//! Assembles systems: reads every manifest, builds and packs the programs that a system manifest names, and writes
//! the system image that a machine starts from.
//!
//! Key types: [`Catalogue`] (all manifests of the repository), [`Ready`] (a system that can start). Deliberately not
//! here: how images are built (`builder`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use install::{Installed, Line};
use manifest::{Program as ProgramManifest, SystemFile};
use manifest_model::{
    Bounds, Category, Code as ProgramCode, Domain, Manifest, PublicKey, Rights, Root, SystemManifest, Trust,
};
use package_build::{SecretKey, Signer};
use package_check::PackageError;

use crate::bare::kernel;
use crate::bill::Materials;
use crate::build_lock;
use crate::builder::{self, BuiltImage, UnsafeTests};
use crate::cargo;
use crate::contracts::ContractUnits;
use crate::failure::{Failure, Outcome};
use crate::fingerprint::Fingerprint;
use crate::install::changes::Changes;
use crate::keys::store::Store;
use crate::programs::{Program, Programs};
use crate::repository::{Repository, read_text, write_if_changed};
use crate::{keys, promises, terminal, wasm};

/// Default systems, each with its purpose.
pub const DEFAULTS: [(&str, &str); 3] =
    [(HOSTED, "of the hosted machine"), (HOSTED_TAP, "of it with --tap"), (BARE, "of bare machines")];
/// Default system of the hosted machine.
pub const HOSTED: &str = "hosted";
/// Default of the hosted machine with its own network stack.
pub const HOSTED_TAP: &str = "hosted-tap";
/// Default system of bare machines.
pub const BARE: &str = "bare";

/// Every program of the repository with its checked manifest.
pub struct Catalogue {
    /// The programs found.
    pub programs: Programs,
    manifests: BTreeMap<String, ProgramManifest>,
    broken: BTreeMap<String, Failure>,
}

impl Catalogue {
    /// Reads and checks all manifests; broken ones are kept separately.
    ///
    /// # Errors
    /// The contracts have errors, or cargo cannot read the workspace.
    pub fn read(repository: &Repository) -> Outcome<Catalogue> {
        let units = ContractUnits::compile(repository)?;
        units.refuse_errors()?;
        let programs = Programs::find(repository);
        let mut catalogue = Catalogue { programs, manifests: BTreeMap::new(), broken: BTreeMap::new() };
        for program in catalogue.programs.all() {
            match units.manifest(repository, &program.manifest(), program.contract_folder()) {
                Ok(manifest) => {
                    catalogue.manifests.insert(program.name.clone(), manifest);
                }
                Err(failure) => {
                    catalogue.broken.insert(program.name.clone(), failure);
                }
            }
        }
        Ok(catalogue)
    }

    /// Returns the manifest of a program.
    ///
    /// # Errors
    /// There is no such program, or its manifest is broken.
    pub fn manifest(&self, name: &str) -> Outcome<&Manifest> {
        if let Some(failure) = self.broken.get(name) {
            return Err(failure.clone());
        }
        match self.manifests.get(name) {
            Some(manifest) => Ok(&manifest.manifest),
            None => {
                Err(self.programs.get(name).err().unwrap_or_else(|| Failure::new(format!("no manifest of {name}"))))
            }
        }
    }

    /// Returns the valid manifests.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.values().map(|manifest| &manifest.manifest)
    }

    /// Returns the errors of the broken manifests.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.programs.broken().map(|(_, failure)| failure).chain(self.broken.values())
    }

    /// Reads and checks a system manifest.
    ///
    /// # Errors
    /// It cannot be read or has errors.
    pub fn system(&self, repository: &Repository, path: &Path) -> Outcome<SystemManifest> {
        let manifests: Vec<&Manifest> = self.manifests().collect();
        let shown = repository.shown(path).to_string();
        let read = |path: &Path| -> Outcome<SystemFile> {
            Ok(SystemFile { file: repository.shown(path).to_string(), text: read_text(path)? })
        };
        // The base is looked up in the same folder, then (for a manifest that this tool wrote) in `systems/` of the
        // workspace, then among the bundled systems.
        let is_written = path.starts_with(repository.output(""));
        let own = is_written.then(|| repository.root().join("systems"));
        let folders: Vec<PathBuf> =
            [path.with_file_name("")].into_iter().chain(own).chain([repository.base().join("systems")]).collect();
        let base = |name: &str| folders.iter().find_map(|folder| read(&folder.join(format!("{name}.toml"))).ok());
        manifest::system(read(path)?, &base, &manifests).map_err(|diagnostics| {
            let mut details: Vec<String> = self.failures().map(Failure::to_string).collect();
            details.push(diagnostics.render(terminal::colours(&std::io::stderr())));
            Failure::new(format!("the system manifest {shown} has errors"))
                .details(details.join("\n\n"))
                .remedy("fix the errors above")
        })
    }
}

/// Packs and signs a built program, and writes the package.
///
/// # Errors
/// The image is refused, or the package cannot be written.
pub fn pack(
    repository: &Repository,
    catalogue: &Catalogue,
    built: &BuiltImage<'_>,
    signer: &Signer,
) -> Outcome<Packed> {
    let name = &built.program.name;
    let image = match &built.image {
        Some(path) => std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?,
        None => Vec::new(),
    };
    let manifest = catalogue.manifest(name)?.clone();
    // The rules for the code and the mark on the image come from two readings of one file.
    if manifest.code.is_unsafe() != built.program.unsafe_code {
        return Err(Failure::new(format!("the manifest of `{name}` changed during the build")).remedy("build again"));
    }
    let bytes = package_build::build_package(manifest.clone(), built.bill.as_bytes(), &image, signer)
        .map_err(|error| refused(repository, built.program, &error))?;
    let path = repository.output(&format!("packages/{name}.package"));
    // A package that is there was analysed when it was written.
    if !image.is_empty() && std::fs::read(&path).ok().as_ref() != Some(&bytes) {
        hold(repository, built.program, &manifest, &image)?;
    }
    write_if_changed(&path, &bytes)?;
    Ok(Packed { name: name.clone(), path, image_bytes: image.len(), bytes })
}

/// Packs and signs the module of a WebAssembly program, for any machine that has its template. It was compiled here, so that
/// what no machine takes is told now.
///
/// # Errors
/// The module is refused, or cannot be read.
pub fn pack_module(
    catalogue: &Catalogue,
    program: &Program,
    (module, template, bounds): (&Path, &str, Bounds),
    signer: &Signer,
) -> Outcome<Vec<u8>> {
    let bytes = wasm::read_module(module)?;
    let mut manifest = catalogue.manifest(&program.name)?.clone();
    manifest.code = ProgramCode::Wasm { digest: [0; 32], template: template.into(), bounds };
    let packed = package_build::build_package(manifest, Materials::of_module(&bytes).as_bytes(), &bytes, signer);
    packed.map_err(|error| Failure::new(format!("the package of `{}` is refused: {error}", program.name)))
}

/// Refuses an image that sends messages of which its manifest knows nothing, or is not as its manifest asserts.
fn hold(repository: &Repository, program: &Program, manifest: &Manifest, image: &[u8]) -> Outcome<()> {
    let Err(mut findings) = install::analysed(manifest, image) else { return Ok(()) };
    if manifest.category == Category::Test {
        // Tests of the kernel send what no contract allows.
        findings.retain(|finding| finding.code != install::Code::UndeclaredMessage);
    }
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.into_iter().map(|finding| Line::refused(finding).to_string()).collect();
    let path = program.manifest();
    Err(Failure::new(format!("the image of `{}` is not as {} says", program.name, repository.shown(&path)))
        .details(lines.join("\n"))
        .remedy("fix the errors above"))
}

/// Reports a refused image. Images hold contract tags only; the message adds the contracts' names.
fn refused(repository: &Repository, program: &Program, error: &PackageError) -> Failure {
    let name = &program.name;
    let contract = match error {
        PackageError::UndeclaredContract { name_tag } => ContractUnits::compile(repository)
            .ok()
            .and_then(|units| units.names().into_iter().find(|name| abi::name_tag(name) == *name_tag)),
        _ => None,
    };
    match contract {
        Some(contract) => {
            let manifest = repository.shown(&program.manifest()).to_string();
            Failure::new(format!("`{name}` uses the contract `{contract}`, which its manifest does not list")).remedy(
                format!("add to {manifest}:\n\n[[contract]]\nname = \"{contract}\"\nuse = \"import\"   # or \"export\", or \"both\""),
            )
        }
        None => Failure::new(format!("the image of `{name}` is refused: {error}")),
    }
}

/// A written package.
pub struct Packed {
    /// Program name.
    pub name: String,
    /// Path of the package.
    pub path: PathBuf,
    /// Size of the image file in the package, in bytes; 0 for a script.
    pub image_bytes: usize,
    /// Content of the package.
    pub bytes: Vec<u8>,
}

/// Returns the signer of everything built here: the development key, a root.
///
/// # Errors
/// The key file cannot be read or created.
pub fn signer(repository: &Repository) -> Outcome<Signer> {
    Ok(Signer::root(SecretKey::from_bytes(&keys::development_seed(repository)?)))
}

/// The platform that a system runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// A process of this host.
    Hosted,
    /// A bare machine, without another operating system.
    Bare,
    /// The simulated machine, a process of this host.
    Simulated,
}

impl Platform {
    /// Returns the path of the program that contains the kernel.
    pub fn program(self, repository: &Repository) -> PathBuf {
        match self {
            Platform::Hosted => repository.cargo_target().join("release/singularity-hosted"),
            Platform::Bare => kernel::stripped(repository),
            Platform::Simulated => repository.cargo_target().join("release/singularity-simulated"),
        }
    }

    fn build(self, repository: &Repository) -> Outcome<()> {
        match self {
            Platform::Hosted => build_process(repository, "boot-hosted", "the hosted machine"),
            Platform::Bare => kernel::build(repository),
            Platform::Simulated => build_process(repository, "boot-simulated", "the simulated machine"),
        }
    }
}

/// A system that can start.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Path of the system image.
    pub image: PathBuf,
    /// Path of the hosted machine, or of a bare machine's kernel.
    pub machine: PathBuf,
}

/// Returns the path of a machine, built.
///
/// # Errors
/// It does not build.
pub fn machine(repository: &Repository, platform: Platform) -> Outcome<PathBuf> {
    let _lock = build_lock::lock(repository)?;
    platform.build(repository)?;
    Ok(platform.program(repository))
}

/// Returns whether a system was given as an image rather than by its manifest.
pub fn is_image(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "system")
}

/// Returns the system at `path` as used by every command: built as by [`prepare`], with later changes applied.
///
/// # Errors
/// As for [`prepare`], or a change no longer fits.
pub fn current(repository: &Repository, path: &Path, platform: Platform, unsafe_tests: UnsafeTests) -> Outcome<Ready> {
    let ready = prepare(repository, path, platform, unsafe_tests)?;
    if is_image(path) {
        return Ok(ready);
    }
    let image = Changes::of(repository, path)?.image(repository, &ready.image)?;
    Ok(Ready { image, ..ready })
}

/// Returns the same system as its manifests describe it, without building it.
///
/// # Errors
/// The system has an error, or a change does not fit.
pub fn described(repository: &Repository, catalogue: &Catalogue, path: &Path) -> Outcome<Installed> {
    if is_image(path) {
        let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
        return install::system_of(&bytes).map(|(_, installed)| installed).map_err(|findings| {
            let lines: Vec<String> = findings.into_iter().map(|finding| Line::refused(finding).to_string()).collect();
            Failure::new(format!("untrusted or invalid system image {}", path.display()))
                .details(lines.join("\n"))
                .remedy("rebuild it with `cargo sing build --system NAME`")
        });
    }
    let mut system = catalogue.system(repository, path)?;
    let changes = Changes::of(repository, path)?;
    if changes.is_empty() {
        return promises::as_built(catalogue, system, PublicKey::NONE);
    }
    let key = signer(repository)?.key.public();
    add_trust(catalogue, &mut system, key)?;
    changes.examined(promises::as_built(catalogue, system, key)?)
}

/// Builds the system manifest at `path`, without later changes, unless it is up to date. For a system image only the
/// machine is built.
///
/// # Errors
/// The system has an error, or does not build.
pub fn prepare(repository: &Repository, path: &Path, platform: Platform, unsafe_tests: UnsafeTests) -> Outcome<Ready> {
    if is_image(path) {
        let _lock = build_lock::lock(repository)?;
        platform.build(repository)?;
        return Ok(Ready { image: path.to_path_buf(), machine: platform.program(repository) });
    }
    let name = repository.system_outputs(path);
    let ready =
        Ready { image: repository.output(&format!("systems/{name}.system")), machine: platform.program(repository) };
    let stamp = repository.output(&match platform {
        Platform::Hosted => format!("systems/{name}.stamp"),
        Platform::Bare => format!("systems/{name}.bare.stamp"),
        Platform::Simulated => format!("systems/{name}.simulated.stamp"),
    });
    // The user's trusted roots and revocations are part of the system too.
    let mut own = Trust::default();
    Store::of_user().add_to(&mut own)?;
    let settings = format!("{} {unsafe_tests:?} {own:?}", path.display());
    let is_current = || {
        let sources = Fingerprint::of_sources(repository, &settings);
        let outputs = [ready.image.clone(), ready.machine.clone(), path.to_path_buf()];
        let current = sources.with_outputs(&outputs).is_kept_at(&stamp);
        (sources, outputs, current)
    };
    if is_current().2 {
        return Ok(ready);
    }
    let _lock = build_lock::lock(repository)?;
    // Another run may have built it while this one waited for the lock.
    let (sources, outputs, current) = is_current();
    if !current {
        build_system(repository, path, &ready, platform, unsafe_tests)?;
        sources.with_outputs(&outputs).keep(&stamp)?;
    }
    Ok(ready)
}

fn build_system(
    repository: &Repository,
    path: &Path,
    ready: &Ready,
    platform: Platform,
    unsafe_tests: UnsafeTests,
) -> Outcome<()> {
    let catalogue = Catalogue::read(repository)?;
    let mut system = catalogue.system(repository, path)?;
    let privileged = system.domains.iter().find(|domain| domain.kind == Domain::Ring0);
    if let Some(domain) = privileged.filter(|_| platform == Platform::Hosted) {
        return Err(Failure::new(format!(
            "the system `{}` has the hardware domain `{}` in ring 0, and the hosted machine's are in ring 3",
            system.name, domain.name
        ))
        .remedy("add --machine qemu, or change its kind to \"ring-3\""));
    }
    promises::hold(&catalogue, &system)?;
    let names = system.programs();
    let selected: Vec<&Program> = names.iter().map(|name| catalogue.programs.get(name)).collect::<Outcome<_>>()?;
    // Programs and machines have separate output folders, so both builds can run at once. The crates that every
    // program uses compile one after the other, which leaves processors for the machine.
    let (built, machine) = std::thread::scope(|scope| {
        let machine = scope.spawn(|| platform.build(repository));
        let built = builder::build_programs(repository, &catalogue.programs, &selected, unsafe_tests);
        (built, machine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let built = built?;
    machine?;
    let signer = signer(repository)?;
    let packages: Vec<Vec<u8>> = built
        .iter()
        .map(|image| pack(repository, &catalogue, image, &signer).map(|packed| packed.bytes))
        .collect::<Outcome<_>>()?;
    add_trust(&catalogue, &mut system, signer.key.public())?;
    let image = package_build::build_system(&system, &packages, &signer.key)
        .map_err(|error| Failure::new(format!("cannot create the system image of `{}`: {error}", system.name)))?;
    write_if_changed(&ready.image, &image)
}

/// Adds the trusted keys of a system built here: the builder of the repository's programs is their publisher, under
/// every name; and the user's own roots.
fn add_trust(catalogue: &Catalogue, system: &mut SystemManifest, key: PublicKey) -> Outcome<()> {
    let mut publishers = vec!["singularity"];
    for name in system.programs() {
        let publisher = catalogue.manifest(name)?.publisher.as_str();
        if !publishers.contains(&publisher) {
            publishers.push(publisher);
        }
    }
    let root = |publisher: &str| Root { key, publishers: publisher.into(), systems: true, rights: Rights::ALL };
    let roots: Vec<Root> = publishers.into_iter().map(root).collect();
    system.trust.roots.extend(roots);
    Store::of_user().add_to(&mut system.trust)
}

/// Builds the hosted machine with further features, for a measurement.
///
/// # Errors
/// It does not build.
pub fn build_hosted_with(repository: &Repository, features: &[&str]) -> Outcome<()> {
    build_process_with(repository, "boot-hosted", "the hosted machine", features)
}

/// Builds a machine that is a process of this host, kernel included.
fn build_process(repository: &Repository, package: &str, what: &str) -> Outcome<()> {
    build_process_with(repository, package, what, &[])
}

fn build_process_with(repository: &Repository, package: &str, what: &str, features: &[&str]) -> Outcome<()> {
    let mut command = cargo::command(repository);
    command.args(["build", "--release", "--package", package, "--manifest-path"]);
    command.arg(repository.base().join("Cargo.toml"));
    command.arg("--target-dir").arg(repository.cargo_target()).args(["--features", &features.join(",")]);
    cargo::build(command, what, 30).map(|_| ())
}
