//! Which programs there are: those of the system image, and those that were installed since.
//!
//! The system is sealed: what runs is listed in the signed system manifest, or a program with the permission `install`
//! brought it in, in a package that the system's trust takes. There is no third way.
//!
//! Records of programs are only ever added: running instances, traces and audit lines refer to them, and the images
//! stay mapped. So the memory of an uninstalled program is not freed before the machine restarts; whoever installs the
//! same package again gets the same record back, and how much can be added is bounded ([`INSTALLED_BYTES_MAX`]).
//! Readers take no lock. Locks: `CHANGE`, held by one who installs or uninstalls while the table changes; none inside.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use package::{Digest, Manifest, Package, SystemImage, Trust};

use crate::lock::{AtomicRef, SpinLock};
use crate::program::Program;

/// The most programs between two starts of the machine, uninstalled ones included.
const PROGRAMS_MAX: usize = 1024;

/// Bytes of packages that may be installed between two starts of the machine.
const INSTALLED_BYTES_MAX: usize = 64 << 20;

/// The system that was booted.
pub struct System {
    /// The system manifest's bytes.
    pub manifest_bytes: &'static [u8],
    /// Name of the program that starts all others.
    pub root: String,
    /// Whose packages it takes.
    pub trust: Trust,
    /// SHA-256 of the system image's head.
    pub measurement: Digest,
}

/// What installing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// There was no program of that name.
    New,
    /// A program with an older version was replaced.
    Replaced,
    /// Exactly this program was there already.
    Same,
}

static SYSTEM: AtomicRef<System> = AtomicRef::none();
/// Every program that was ever installed, in order; the first `COUNT` places are taken.
static PROGRAMS: [AtomicRef<Program>; PROGRAMS_MAX] = [const { AtomicRef::none() }; PROGRAMS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static INSTALLED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// How often the table changed since the start.
static CHANGES: AtomicU64 = AtomicU64::new(0);
static CHANGE: SpinLock<()> = SpinLock::new(());

/// The system that was booted.
pub fn system() -> Option<&'static System> {
    SYSTEM.get()
}

/// Every program that was ever installed, those that were uninstalled too; the last first.
pub fn ever() -> impl Iterator<Item = &'static Program> {
    PROGRAMS[..COUNT.load(Ordering::Acquire)].iter().rev().filter_map(AtomicRef::get)
}

/// The programs that processes can be created from, the last first.
fn all() -> impl Iterator<Item = &'static Program> {
    ever().filter(|program| program.installed.load(Ordering::Acquire))
}

/// How many programs are installed.
pub fn count() -> usize {
    all().count()
}

/// How often programs were installed or taken out since the machine started. Raised when a change is there to be seen, so
/// that who has read the number before the table misses nothing.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// The installed program at this index, those of the system image first.
pub fn at(index: usize) -> Option<&'static Program> {
    let mut places = PROGRAMS[..COUNT.load(Ordering::Acquire)].iter().filter_map(AtomicRef::get);
    places.by_ref().filter(|program| program.installed.load(Ordering::Acquire)).nth(index)
}

/// The installed program with this name.
pub fn find(name: &str) -> Option<&'static Program> {
    // While one is replaced both are installed for a moment, so that the name always stands for one.
    all().find(|program| program.manifest.name == name)
}

/// Reads the system image. Packages are held to what its signed head says of them now, and verified when they are first
/// started; scripts, which never are, are thereby what the signer of the system has signed.
///
/// # Errors
/// The image is damaged, or has other programs than its head and its manifest list.
pub fn start(bytes: &'static [u8]) -> Result<(), String> {
    let image = SystemImage::parse(bytes).map_err(|error| format!("the system image: {error}"))?;
    for program in programs_of(&image)? {
        add(program)?;
    }
    SYSTEM.set(Some(Box::leak(Box::new(System {
        manifest_bytes: image.manifest_bytes,
        root: image.manifest.root.clone(),
        trust: image.manifest.trust,
        measurement: image.measurement,
    }))));
    Ok(())
}

fn programs_of(image: &SystemImage<'static>) -> Result<Vec<Program>, String> {
    let listed = image.manifest.programs();
    let mut programs: Vec<Program> = Vec::new();
    for (package, &identity) in image.packages.iter().zip(&image.identities) {
        let parsed = Package::parse(package).map_err(|error| format!("a package of the system image: {error}"))?;
        let name = parsed.manifest.name.as_str();
        if parsed.identity() != identity {
            return Err(format!(
                "program {name}: its package is another than the head of the system image names; build the system again"
            ));
        }
        if !listed.contains(&name) {
            return Err(format!(
                "the system image has the program `{name}`, which its manifest does not list: the system is sealed; list the program or build the system again"
            ));
        }
        if programs.iter().any(|other| other.manifest.name == name) {
            return Err(format!("the system image has the program `{name}` twice; build the system again"));
        }
        programs.push(Program::new(parsed, package, identity));
    }
    Ok(programs)
}

fn add(program: Program) -> Result<(), String> {
    let place = COUNT.load(Ordering::Relaxed);
    let Some(free) = PROGRAMS.get(place) else {
        return Err(format!(
            "{PROGRAMS_MAX} programs have been installed since the machine started, and there is no room for more; restart the machine"
        ));
    };
    free.set(Some(Box::leak(Box::new(program))));
    COUNT.store(place + 1, Ordering::Release);
    Ok(())
}

/// Verifies a package and says what installing it would do.
///
/// # Errors
/// Why it is refused, as a sentence.
pub fn check(bytes: &[u8]) -> Result<Installed, String> {
    let (manifest, identity) = verified(bytes)?;
    judge(&manifest, identity).map(|(would_do, _)| would_do)
}

fn verified(bytes: &[u8]) -> Result<(Manifest, Digest), String> {
    let system = system().ok_or("no system is installed")?;
    let package = Package::parse(bytes).map_err(|error| format!("{error}"))?;
    let verified = package.verify(&system.trust).map_err(|error| format!("{error}"))?;
    Ok((verified.manifest, verified.identity))
}

/// What installing a verified package would do, and the program that has its name.
fn judge(manifest: &Manifest, identity: Digest) -> Result<(Installed, Option<&'static Program>), String> {
    let name = &manifest.name;
    let Some(program) = find(name) else { return Ok((Installed::New, None)) };
    if program.identity == identity {
        return Ok((Installed::Same, Some(program)));
    }
    if system().is_some_and(|system| system.root == *name) {
        return Err(format!(
            "`{name}` is the program that the system started with, and cannot be replaced before it restarts"
        ));
    }
    let there = &program.manifest;
    if there.publisher != manifest.publisher {
        return Err(format!(
            "the name `{name}` is taken by a program of `{}`, and this one is of `{}`; uninstall the other first",
            there.publisher, manifest.publisher
        ));
    }
    if manifest.version <= there.version {
        return Err(format!(
            "version {} of `{name}` is not newer than {}, which is installed; uninstall that first to go back",
            manifest.version, there.version
        ));
    }
    Ok((Installed::Replaced, Some(program)))
}

/// Installs the program of a package, which nobody else can change.
///
/// # Errors
/// Why it is refused, as a sentence.
pub fn install(bytes: Vec<u8>) -> Result<Installed, String> {
    // Verifying takes long, and nobody waits for it.
    let (manifest, identity) = verified(&bytes)?;
    let _guard = CHANGE.lock();
    let (would_do, present) = judge(&manifest, identity)?;
    if would_do == Installed::Same {
        return Ok(would_do);
    }
    match ever().find(|known| known.identity == identity) {
        Some(known) => known.installed.store(true, Ordering::Release),
        None => {
            let sum = INSTALLED_BYTES.load(Ordering::Relaxed).saturating_add(bytes.len());
            if sum > INSTALLED_BYTES_MAX {
                return Err(format!(
                    "{} MiB of packages have been installed since the machine started, and there is no room for more; restart the machine",
                    INSTALLED_BYTES_MAX >> 20
                ));
            }
            let bytes: &'static [u8] = bytes.leak();
            let package = Package::parse(bytes).map_err(|error| format!("{error}"))?;
            add(Program::new(package, bytes, identity))?;
            INSTALLED_BYTES.store(sum, Ordering::Relaxed);
        }
    }
    if let Some(present) = present {
        present.installed.store(false, Ordering::Release);
    }
    CHANGES.fetch_add(1, Ordering::Release);
    Ok(would_do)
}

/// Why a program stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// There is none of that name.
    Unknown,
    /// It is the one that the system started with.
    Root,
}

/// Takes the program of this name out. Instances that run go on.
///
/// # Errors
/// Why it stays.
pub fn uninstall(name: &str) -> Result<(), Stays> {
    let _guard = CHANGE.lock();
    let program = find(name).ok_or(Stays::Unknown)?;
    if system().is_some_and(|system| system.root == name) {
        return Err(Stays::Root);
    }
    program.installed.store(false, Ordering::Release);
    CHANGES.fetch_add(1, Ordering::Release);
    Ok(())
}

impl Program {
    fn new(package: Package<'static>, bytes: &'static [u8], identity: Digest) -> Program {
        Program {
            principal: package.manifest.principal(),
            manifest_bytes: package.manifest_bytes,
            manifest: package.manifest,
            package: bytes,
            key: package.key,
            identity,
            installed: AtomicBool::new(true),
            loaded: AtomicRef::none(),
            loading: SpinLock::new(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::{Category, Code, SecretKey, Signer, SystemManifest};

    const SCRIPT: &str = "echo what its publisher wrote";

    fn key() -> SecretKey {
        SecretKey::from_bytes(b"a key of the kernel's unit tests")
    }

    fn script(name: &str) -> Manifest {
        Manifest::plain(name, "singularity", Category::Console, Code::Script { text: SCRIPT.into() })
    }

    fn signed(manifest: Manifest) -> Vec<u8> {
        Package::build(manifest, b"", &[], &Signer::root(key())).unwrap()
    }

    fn system_image(packages: &[Vec<u8>], installed: &[&str]) -> Vec<u8> {
        let manifest = SystemManifest {
            name: "test".into(),
            root: "first".into(),
            primary: None,
            instances: Vec::new(),
            installed: installed.iter().map(|&name| name.into()).collect(),
            binds: Vec::new(),
            denies: Vec::new(),
            trust: Trust::in_key(key().public()),
        };
        SystemImage::build(&manifest, packages, &key()).unwrap()
    }

    fn read(image: Vec<u8>) -> Result<Vec<Program>, String> {
        programs_of(&SystemImage::parse(image.leak()).unwrap())
    }

    #[test]
    fn a_script_that_is_not_what_the_head_of_the_image_names_is_refused_at_the_start() {
        let image = system_image(&[signed(script("first")), signed(script("second"))], &["second"]);
        assert_eq!(read(image.clone()).unwrap().len(), 2);
        let places = image.windows(SCRIPT.len()).enumerate().filter(|(_, window)| *window == SCRIPT.as_bytes());
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        assert_eq!(places.len(), 2);
        for place in places {
            let mut changed = image.clone();
            changed[place..place + 4].copy_from_slice(b"halt");
            let why = read(changed).err().expect("an altered script is taken");
            assert!(why.contains("its package is another than the head of the system image names"), "{why}");
        }
    }

    #[test]
    fn each_byte_of_a_package_in_the_image_is_held_to_its_head() {
        let package = signed(script("first"));
        let image = system_image(core::slice::from_ref(&package), &[]);
        let signature = image.len() - 64;
        for place in image.len() - package.len()..signature {
            let mut changed = image.clone();
            changed[place] ^= 1;
            assert!(read(changed).is_err(), "byte {place} of {} can be changed", image.len());
        }
    }

    #[test]
    fn a_program_that_is_not_listed_or_there_twice_is_refused() {
        let stranger = system_image(&[signed(script("first")), signed(script("second"))], &[]);
        assert!(read(stranger).err().unwrap().contains("does not list"));
        let twice = system_image(&[signed(script("first")), signed(script("first"))], &[]);
        assert!(read(twice).err().unwrap().contains("twice"));
    }
}
