//! Table of programs: those of the system image, and those installed since boot.
//!
//! The system is sealed: a program that runs is either listed in the signed system manifest, or was installed by a
//! program with the permission `install`, in a package that the system's trust accepts. There is no third way.
//!
//! Records of programs are only ever added: running instances, traces and audit lines refer to them, and the images
//! stay mapped. So the memory of an uninstalled program is not freed before a reboot; installing the same package
//! again returns the same record, and the total is bounded ([`INSTALLED_BYTES_MAX`]). Readers take no lock, except
//! after a miss. Locks: `CHANGE`, held for an installation or removal while the table changes; a leaf.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use manifest_model::{Apart, Digest, Manifest, PublicKey, Trust};
use package::{COMPILED_MAGIC, Delivery, Package, SystemImage};
use package_check::{Isolation, PackageError, Verified, verify_compiled_in_steps, verify_in_steps};

use crate::lock::{AtomicRef, SpinLock};
use crate::preempt;
use crate::program::{Loaded, Program};

/// Maximum programs per boot, uninstalled ones included.
const PROGRAMS_MAX: usize = 1024;

/// Hash table slots, enough to find most names at the first probe.
const NAME_PLACES: usize = 4 * PROGRAMS_MAX;

/// Maximum bytes of packages installed per boot.
const INSTALLED_BYTES_MAX: usize = 64 << 20;

/// The system that was booted.
pub struct System {
    /// The system manifest's bytes.
    pub manifest_bytes: &'static [u8],
    /// Name of the program that starts all others.
    pub root: String,
    /// Publishers whose packages it accepts.
    pub trust: Trust,
    /// Its hardware domains.
    pub domains: Vec<Apart>,
    /// SHA-256 of the system image's head.
    pub measurement: Digest,
}

/// Result of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// No program had that name.
    New,
    /// Replaced an older version of the program.
    Replaced,
    /// Exactly this program was already installed.
    Same,
}

static SYSTEM: AtomicRef<System> = AtomicRef::none();
static TABLE: Table = Table::new();
static INSTALLED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Number of changes of the table since boot.
static CHANGES: AtomicU64 = AtomicU64::new(0);
static CHANGE: SpinLock<()> = SpinLock::new(());

/// The system that was booted.
pub fn system() -> Option<&'static System> {
    SYSTEM.get()
}

/// Every program ever installed.
struct Table {
    /// In order of installation; the first `count` entries are used.
    programs: [AtomicRef<Program>; PROGRAMS_MAX],
    count: AtomicUsize,
    /// Hash table of indices into `programs` plus one, with linear probing; 0 is empty.
    by_name: [AtomicU16; NAME_PLACES],
}

impl Table {
    const fn new() -> Table {
        Table {
            programs: [const { AtomicRef::none() }; PROGRAMS_MAX],
            count: AtomicUsize::new(0),
            by_name: [const { AtomicU16::new(0) }; NAME_PLACES],
        }
    }

    /// All programs ever installed, in order.
    fn ever(&self) -> impl DoubleEndedIterator<Item = &'static Program> {
        self.programs[..self.count.load(Ordering::Acquire)].iter().filter_map(AtomicRef::get)
    }

    /// The most recently installed program with this name.
    fn look(&self, name: &str) -> Option<&'static Program> {
        let mut found = None;
        let mut last = 0;
        for place in name_places(name) {
            let number = self.by_name[place].load(Ordering::Acquire);
            if number == 0 {
                break;
            }
            let program = self.programs.get(usize::from(number) - 1).and_then(AtomicRef::get);
            let good = |program: &&Program| program.manifest.name == name && program.installed.load(Ordering::Acquire);
            if let Some(program) = program.filter(good)
                && number > last
            {
                (found, last) = (Some(program), number);
            }
        }
        found
    }

    /// Whether the table is full.
    fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) == PROGRAMS_MAX
    }

    /// Adds a program. Callers are serialized.
    fn add(&self, program: Program) -> Result<(), String> {
        let place = self.count.load(Ordering::Relaxed);
        let Some(free) = self.programs.get(place) else { return Err(no_place()) };
        let program: &'static Program = Box::leak(Box::new(program));
        free.set(Some(program));
        self.count.store(place + 1, Ordering::Release);
        // The hash table is larger than the program table, so one slot is free.
        let is_free = |&at: &usize| self.by_name[at].load(Ordering::Relaxed) == 0;
        if let Some(at) = name_places(&program.manifest.name).find(is_free) {
            self.by_name[at].store(place as u16 + 1, Ordering::Release);
        }
        Ok(())
    }
}

fn no_place() -> String {
    format!(
        "{PROGRAMS_MAX} programs have been installed since the machine started, and there is no room for more; restart the machine"
    )
}

/// The probe sequence of a name in the hash table.
fn name_places(name: &str) -> impl Iterator<Item = usize> {
    let first = abi::name_tag(name) as usize;
    (0..NAME_PLACES).map(move |next| first.wrapping_add(next) % NAME_PLACES)
}

/// Returns a program of the system image, verified and mapped on first use.
#[cold]
pub fn load(program: &'static Program) -> Result<&'static Loaded, String> {
    program.load(&system().ok_or("no system is installed")?.trust, isolation(&program.manifest))
}

/// Returns the index of the hardware domain of a program, and the domain; `None` for the kernel's own.
pub fn domain_of(program: &Manifest) -> Option<(usize, &'static Apart)> {
    let system = system()?;
    let index = manifest_model::domain_of(&system.domains, &system.root, program)?;
    Some((index, system.domains.get(index)?))
}

/// Returns what contains each SIP of a program.
fn isolation(program: &Manifest) -> Isolation {
    match domain_of(program) {
        Some((_, domain)) if domain.contains_any_code() => Isolation::Apart,
        _ => Isolation::Software,
    }
}

/// Resolves an instruction address to a program and the offset from its first code.
pub fn locate(address: usize) -> Option<(String, usize)> {
    ever().find_map(|program| {
        let loaded = program.loaded.get()?;
        let start = loaded.code_at(address)?;
        Some((program.manifest.name.clone(), address - start))
    })
}

/// Returns what the image at an instruction address says of a fault there: the function, and the kind of the trap.
pub fn fault_at(address: usize) -> Option<(&'static str, &'static str)> {
    ever().find_map(|program| program.loaded.get()?.fault_at(address))
}

/// Every program ever installed, uninstalled ones included; the most recent first.
pub fn ever() -> impl Iterator<Item = &'static Program> {
    TABLE.ever().rev()
}

/// Programs that processes can be created from, in order.
fn all() -> impl Iterator<Item = &'static Program> {
    TABLE.ever().filter(|program| program.installed.load(Ordering::Acquire))
}

/// Number of installed programs.
pub fn count() -> usize {
    all().count()
}

/// Number of installations and removals since boot. Incremented after the change is visible, so a reader that reads it
/// before the table misses nothing.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// The installed program at this index, those of the system image first.
pub fn at(index: usize) -> Option<&'static Program> {
    all().nth(index)
}

/// The installed program with this name.
pub fn find(name: &str) -> Option<&'static Program> {
    // During a replacement both are briefly installed. A reader that passed the new one before that moment and the old
    // one after it has seen neither, so a miss is retried when nothing changes.
    TABLE.look(name).or_else(|| {
        let _guard = CHANGE.lock();
        TABLE.look(name)
    })
}

/// Reads the system image. Packages are checked against its signed head here, and verified when they are first
/// started; scripts never are, and are covered by the system's signature through that head.
///
/// # Errors
/// The image is damaged, or its programs differ from those in its head and its manifest.
pub fn start(bytes: &'static [u8]) -> Result<(), String> {
    let image = package_check::verify_system(bytes).map_err(|error| format!("the system image: {error}"))?;
    for program in programs_of(&image)? {
        TABLE.add(program)?;
    }
    SYSTEM.set(Some(Box::leak(Box::new(System {
        manifest_bytes: image.manifest_bytes,
        root: image.manifest.root.clone(),
        trust: image.manifest.trust,
        domains: image.manifest.domains,
        measurement: image.measurement,
    }))));
    Ok(())
}

fn programs_of(image: &SystemImage<'static>) -> Result<Vec<Program>, String> {
    let listed = image.manifest.programs();
    let mut programs: Vec<Program> = Vec::new();
    for (package, &identity) in image.packages.iter().zip(&image.identities) {
        let parsed = Delivery::parse(package).map_err(|error| format!("a package of the system image: {error}"))?;
        let is_named = package_check::identity_of_delivery(&parsed) == identity;
        let parsed = parsed.package;
        let name = parsed.manifest.name.as_str();
        if !is_named {
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

/// Verifies a package and returns the effect of installing it.
///
/// # Errors
/// The reason of the refusal, as a sentence.
pub fn check(bytes: &[u8]) -> Result<Installed, String> {
    judge(&verified(bytes)?).map(|(would_do, _)| would_do)
}

/// The checks that a verified package must pass to be installed.
struct Candidate {
    manifest: Manifest,
    identity: Digest,
    key: PublicKey,
}

fn verified(bytes: &[u8]) -> Result<Candidate, String> {
    let system = system().ok_or("no system is installed")?;
    let delivery = Delivery::parse(bytes).map_err(|error| format!("{error}"))?;
    let isolation = isolation(&delivery.package.manifest);
    let verified = verify(&delivery, &system.trust, isolation).map_err(|error| format!("{error}"))?;
    Ok(Candidate { manifest: verified.manifest, identity: verified.identity, key: delivery.package.key })
}

/// Verifies a package. The compiled image that comes with a module is compared with its template, which is installed.
///
/// # Errors
/// The first violation.
pub fn verify<'a>(delivery: &Delivery<'a>, trust: &Trust, isolation: Isolation) -> Result<Verified<'a>, PackageError> {
    let package = &delivery.package;
    let (Some(name), Some(_)) = (package.manifest.code.template(), delivery.compiled) else {
        return verify_in_steps(package, trust, isolation, &preempt::pause);
    };
    match find(name).map(|program| Package::parse(program.package)) {
        Some(Ok(template)) => verify_compiled_in_steps(delivery, &template, trust, isolation, &preempt::pause),
        _ => Err(PackageError::NoTemplate { template: name.into() }),
    }
}

/// Returns the effect of installing a verified package, and the program that has its name.
fn judge(candidate: &Candidate) -> Result<(Installed, Option<&'static Program>), String> {
    let name = candidate.manifest.name.as_str();
    let Some(program) = TABLE.look(name) else { return Ok((Installed::New, None)) };
    let is_root = system().is_some_and(|system| system.root == name);
    Ok((replaces(candidate, program, is_root)?, Some(program)))
}

/// Returns the effect of installing it over an existing program.
fn replaces(candidate: &Candidate, program: &Program, is_root: bool) -> Result<Installed, String> {
    let (new, there) = (&candidate.manifest, &program.manifest);
    let name = &new.name;
    if program.identity == candidate.identity {
        return Ok(Installed::Same);
    }
    if is_root {
        return Err(format!(
            "`{name}` is the program that the system started with, and cannot be replaced before it restarts"
        ));
    }
    if candidate.key == PublicKey::NONE && program.key != PublicKey::NONE {
        return Err(format!(
            "`{name}` is signed, and nobody has signed what is to take its place; have `{}` sign it, or uninstall the other first",
            there.publisher
        ));
    }
    if there.publisher != new.publisher {
        return Err(format!(
            "the name `{name}` is taken by a program of `{}`, and this one is of `{}`; uninstall the other first",
            there.publisher, new.publisher
        ));
    }
    if new.version <= there.version {
        return Err(format!(
            "version {} of `{name}` is not newer than {}, which is installed; uninstall that first to go back",
            new.version, there.version
        ));
    }
    Ok(Installed::Replaced)
}

/// Checks that this many more bytes, in one more program, can be kept for ever. Returns the new total.
fn room(table: &Table, kept: usize, bytes: usize) -> Result<usize, String> {
    if table.is_full() {
        return Err(no_place());
    }
    let sum = kept.saturating_add(bytes);
    if sum > INSTALLED_BYTES_MAX {
        return Err(format!(
            "{} MiB of packages have been installed since the machine started, and there is no room for more; restart the machine",
            INSTALLED_BYTES_MAX >> 20
        ));
    }
    Ok(sum)
}

/// Installs the program in a package. The bytes must not be writable by anyone else.
///
/// # Errors
/// The reason of the refusal, as a sentence.
pub fn install(bytes: Vec<u8>) -> Result<Installed, String> {
    // Verifying takes long; no lock is held meanwhile.
    let candidate = verified(&bytes)?;
    if candidate.manifest.code.template().is_some() && !bytes.starts_with(COMPILED_MAGIC) {
        return Err(format!("{}", PackageError::NotCompiled));
    }
    let _guard = CHANGE.lock();
    let (would_do, present) = judge(&candidate)?;
    if would_do == Installed::Same {
        return Ok(would_do);
    }
    let identity = candidate.identity;
    match ever().find(|known| known.identity == identity) {
        Some(known) => known.installed.store(true, Ordering::Release),
        None => {
            // Checked before anything is leaked: that memory stays, installed or not.
            let sum = room(&TABLE, INSTALLED_BYTES.load(Ordering::Relaxed), bytes.len())?;
            let bytes: &'static [u8] = bytes.leak();
            let delivery = Delivery::parse(bytes).map_err(|error| format!("{error}"))?;
            TABLE.add(Program::new(delivery.package, bytes, identity))?;
            INSTALLED_BYTES.store(sum, Ordering::Relaxed);
        }
    }
    if let Some(present) = present {
        present.installed.store(false, Ordering::Release);
    }
    CHANGES.fetch_add(1, Ordering::Release);
    Ok(would_do)
}

/// Why a program cannot be uninstalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// No program has that name.
    Unknown,
    /// It is the root program.
    Root,
}

/// Uninstalls the program of this name. Running instances continue.
///
/// # Errors
/// The reason it cannot be uninstalled.
pub fn uninstall(name: &str) -> Result<(), Stays> {
    let _guard = CHANGE.lock();
    let program = TABLE.look(name).ok_or(Stays::Unknown)?;
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
            loading: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest_model::{Category, Code, SystemManifest};
    use package_build::{SecretKey, Signer};

    const SCRIPT: &str = "echo what its publisher wrote";

    fn key() -> SecretKey {
        SecretKey::from_bytes(b"a key of the kernel's unit tests")
    }

    fn script(name: &str) -> Manifest {
        Manifest::plain(name, "singularity", Category::Console, Code::Script { text: SCRIPT.into() })
    }

    fn signed(manifest: Manifest) -> Vec<u8> {
        package_build::build_package(manifest, b"", &[], &Signer::root(key())).unwrap()
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
            domains: Vec::new(),
            trust: Trust::in_key(key().public()),
        };
        package_build::build_system(&manifest, packages, &key()).unwrap()
    }

    fn read(image: Vec<u8>) -> Result<Vec<Program>, String> {
        programs_of(&package_check::verify_system(image.leak()).unwrap())
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

    fn program(manifest: Manifest) -> Program {
        read(system_image(&[signed(manifest)], &[])).unwrap().pop().unwrap()
    }

    fn candidate(key: PublicKey, publisher: &str, minor: u32) -> Candidate {
        let manifest = Manifest { publisher: publisher.into(), ..script("first") };
        let version = manifest_model::Version { minor, ..manifest.version };
        Candidate { manifest: Manifest { version, ..manifest }, identity: [7; 32], key }
    }

    #[test]
    fn what_nobody_signed_takes_no_signed_programs_name() {
        let there = program(script("first"));
        let refusal = |candidate, is_root| replaces(&candidate, &there, is_root).err().unwrap();
        assert_eq!(replaces(&candidate(key().public(), "singularity", 9), &there, false), Ok(Installed::Replaced));
        let why = refusal(candidate(PublicKey::NONE, "singularity", 9), false);
        assert!(why.contains("nobody has signed what is to take its place"), "{why}");
        assert!(refusal(candidate(PublicKey::NONE, "singularity", 9), true).contains("cannot be replaced"));
        assert!(refusal(candidate(key().public(), "singularity", 9), true).contains("cannot be replaced"));
        assert!(refusal(candidate(key().public(), "other", 9), false).contains("is taken by a program of"));
        assert!(refusal(candidate(key().public(), "singularity", 0), false).contains("is not newer than"));
        let unsigned = crate::test_machine::unloaded(script("first"));
        let newer = candidate(PublicKey::NONE, "singularity", 9);
        assert_eq!(replaces(&newer, &unsigned, false), Ok(Installed::Replaced));
        let signed = candidate(key().public(), "singularity", 9);
        assert_eq!(replaces(&signed, &unsigned, false), Ok(Installed::Replaced));
    }

    #[test]
    fn a_name_finds_its_last_installed_program_among_as_many_as_there_can_be() {
        let table = Table::new();
        let name = |number: usize| format!("program-{}", number % (PROGRAMS_MAX / 2));
        let numbered =
            |number| Program { principal: format!("{number}"), ..crate::test_machine::unloaded(script(&name(number))) };
        for number in 0..PROGRAMS_MAX {
            assert!(room(&table, 0, 1).is_ok());
            table.add(numbered(number)).unwrap();
        }
        // Refused before anything is leaked.
        assert_eq!(room(&table, 0, 1), Err(no_place()));
        assert_eq!(table.add(numbered(0)), Err(no_place()));
        let found = |number| table.look(&name(number)).map(|program: &Program| program.principal.clone());
        for number in 0..PROGRAMS_MAX / 2 {
            let last = table.look(&name(number)).unwrap();
            assert_eq!(last.principal, format!("{}", number + PROGRAMS_MAX / 2));
            last.installed.store(false, Ordering::Release);
            assert_eq!(found(number), Some(format!("{number}")));
            table.look(&name(number)).unwrap().installed.store(false, Ordering::Release);
            assert_eq!(found(number), None);
        }
        assert!(table.look("another").is_none());
    }

    #[test]
    fn bytes_that_are_kept_for_ever_are_bounded() {
        let table = Table::new();
        assert_eq!(room(&table, 5, INSTALLED_BYTES_MAX - 5), Ok(INSTALLED_BYTES_MAX));
        assert!(room(&table, 5, INSTALLED_BYTES_MAX - 4).err().unwrap().contains("MiB of packages"));
        assert!(room(&table, 5, usize::MAX).is_err());
    }

    #[test]
    fn a_program_that_is_not_listed_or_there_twice_is_refused() {
        let stranger = system_image(&[signed(script("first")), signed(script("second"))], &[]);
        assert!(read(stranger).err().unwrap().contains("does not list"));
        let twice = system_image(&[signed(script("first")), signed(script("first"))], &[]);
        assert!(read(twice).err().unwrap().contains("twice"));
    }
}
