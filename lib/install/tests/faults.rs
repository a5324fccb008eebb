//! Packages with one fault each: every one is refused with its own code and message, and nothing is written.

mod common;
#[path = "faults/files.rs"]
mod files;
#[path = "faults/manifests.rs"]
mod manifests;
#[path = "faults/medium.rs"]
mod medium;
#[path = "faults/removals.rs"]
mod removals;
#[path = "faults/systems.rs"]
mod systems;

use std::collections::BTreeSet;

use common::*;
use install::{Code, ImageError, Installed, Report, Request};
use manifest_model::{Code as ProgramCode, Manifest, Version};
use medium::Memory;
use package_build::{SecretKey, Signer};

/// A package with one fault.
pub struct Case {
    /// Description of the fault, for failed tests.
    pub name: &'static str,
    /// Expected code.
    pub code: Code,
    /// The package file.
    pub package: Vec<u8>,
    /// The system for the package.
    pub system: Installed,
    /// Whether an instance starts at boot.
    pub at_boot: bool,
}

/// How a table is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The program is new.
    Install,
    /// A good package of an older version is installed.
    Upgrade,
}

impl Deed {
    /// A valid program for this operation.
    pub fn good(self) -> Manifest {
        use manifest_model::ContractSide::Import;
        match self {
            Deed::Install => command("extra", &[("File", Import)]),
            Deed::Upgrade => {
                Manifest { version: Version { major: 1, minor: 1, patch: 0 }, ..command("cat", &[("File", Import)]) }
            }
        }
    }

    fn request(self, case: &Case) -> Request<'_> {
        match self {
            Deed::Install => Request::Install { package: &case.package, at_boot: case.at_boot, allow: &[] },
            Deed::Upgrade => Request::Upgrade { package: &case.package, more: case.code != Code::MorePermissions },
        }
    }
}

/// Packs the manifest, valid or not.
pub fn packed(manifest: &Manifest) -> Vec<u8> {
    let image = match &manifest.code {
        ProgramCode::Script { .. } => Vec::new(),
        ProgramCode::Wasm { .. } => MODULE.to_vec(),
        _ => image(manifest).write(),
    };
    package_build::build_unchecked(manifest.clone(), b"", &image, &Signer::root(key())).expect("it is short")
}

/// Returns the refusal of the request; an error if it was accepted, or if anything was written.
fn refusal(old: &[u8], request: &Request<'_>, key: &SecretKey) -> Result<Report, String> {
    let mut disk = Memory::with("small.system", old);
    match install::change_file(&mut disk, "small.system", old, request, key) {
        Err(ImageError::Refused(report)) if disk.touched == 0 && disk.file("small.system") == Some(old) => Ok(report),
        Err(ImageError::Refused(_)) => Err("it was refused, but something was written".into()),
        Err(ImageError::Medium(error)) => match error {},
        Ok(report) => Err(format!("it was not refused:\n{report}")),
    }
}

/// Compares a refusal with the expected codes; returns its message, or the deviation.
fn hold(name: &str, expected: &[Code], report: &Report) -> Result<String, String> {
    let (mut codes, mut expected) = (report.codes(), expected.to_vec());
    codes.sort();
    codes.dedup();
    expected.sort();
    if codes != expected {
        return Err(format!("{name}: {expected:?} was to be\n{report}"));
    }
    let lines: Vec<String> = report.refused().map(ToString::to_string).collect();
    let is_told = |line: &install::Line| {
        line.what.len() > 15 && line.remedy.len() > 4 && !line.what.ends_with('.') && !line.remedy.ends_with('.')
    };
    let text = lines.first().cloned().unwrap_or_default();
    if lines.iter().any(|line| line.contains('\n')) || !report.refused().all(is_told) {
        return Err(format!("{name}: this is not one sentence with a remedy: {text}"));
    }
    Ok(text)
}

/// Tests a table; returns the messages. Faults of one kind may have the same message, which begins with the code.
fn go_through(deed: Deed, cases: Vec<Case>) -> BTreeSet<String> {
    let mut messages = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in cases {
        let refused = refusal(&image_of(&case.system), &deed.request(&case), &key());
        match refused.and_then(|report| hold(case.name, &[case.code], &report)) {
            Ok(text) => {
                messages.insert(text);
            }
            Err(problem) => wrong.push(format!("{}: {problem}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    messages
}

#[test]
fn what_the_tables_begin_with_is_good() {
    for deed in [Deed::Install, Deed::Upgrade] {
        let case = Case {
            name: "good",
            code: Code::NotAPackage,
            package: packed(&deed.good()),
            system: installed(),
            at_boot: false,
        };
        let old = image_of(&case.system);
        let mut disk = Memory::with("small.system", &old);
        let result = install::change_file(&mut disk, "small.system", &old, &deed.request(&case), &key());
        assert!(result.is_ok(), "{deed:?}: {result:?}");
        assert_ne!(disk.file("small.system"), Some(old.as_slice()));
    }
}

#[test]
fn bad_packages_are_not_installed() {
    let cases: Vec<Case> = [
        files::cases(Deed::Install),
        manifests::cases(Deed::Install),
        systems::cases(Deed::Install),
        systems::installs(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let messages = go_through(Deed::Install, cases);
    assert!(messages.len() >= 60, "{} messages", messages.len());
}

#[test]
fn bad_packages_take_nobodys_place() {
    let cases: Vec<Case> = [
        files::cases(Deed::Upgrade),
        manifests::cases(Deed::Upgrade),
        systems::cases(Deed::Upgrade),
        systems::upgrades(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let messages = go_through(Deed::Upgrade, cases);
    assert!(messages.len() >= 60, "{} messages", messages.len());
}

#[test]
fn what_others_need_is_not_taken_out() {
    let mut messages = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in removals::removals() {
        let refused = refusal(&case.image, &Request::Uninstall { name: &case.program }, &case.key);
        match refused.and_then(|report| Ok((hold(case.fault, &case.codes, &report)?, report))) {
            Ok((_, report)) => {
                let lines: Vec<String> = report.refused().map(ToString::to_string).collect();
                messages.insert(lines);
            }
            Err(problem) => wrong.push(format!("{}: {problem}", case.fault)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(messages.len() >= 60, "{} messages", messages.len());
}

/// The base systems of the cases accept a valid change: each case is refused for its fault alone.
#[test]
fn what_nobody_needs_is_taken_out() {
    for name in ["cat", "fetch"] {
        let (old, request) = (system_image(), Request::Uninstall { name });
        let mut disk = Memory::with("small.system", &old);
        let result = install::change_file(&mut disk, "small.system", &old, &request, &key());
        assert!(result.is_ok(), "{name}: {result:?}");
        let (_, after) = install::system_of(disk.file("small.system").expect("it is there")).expect("it is whole");
        assert_eq!(after.program(name), None);
    }
}

/// Codes of system images, with which a package cannot be refused.
const OF_SYSTEMS: [Code; 12] = [
    Code::TemplateRuns,
    Code::NotASystemImage,
    Code::SystemDamaged,
    Code::SystemSignature,
    Code::NotASystemSigner,
    Code::OtherIdentity,
    Code::ProgramMissing,
    Code::ProgramUnnamed,
    Code::ProgramTwice,
    Code::InstanceMalformed,
    Code::BadDomain,
    Code::BadDeny,
];

/// Catch-all codes, for which no case is known.
const LEFT_OVER: [Code; 2] = [Code::ManifestInvalid, Code::OtherReason];

/// Codes of the service that installs into a running system, which has its own tests.
const OF_RUNNING_SYSTEMS: [Code; 4] = [Code::NeedsRestart, Code::KernelRefuses, Code::NotAsKept, Code::NotProven];

#[test]
fn every_code_is_in_a_table() {
    let mut seen: Vec<Code> = Vec::new();
    for deed in [Deed::Install, Deed::Upgrade] {
        let tables = [files::cases(deed), manifests::cases(deed), systems::cases(deed)];
        seen.extend(tables.iter().flatten().map(|case| case.code));
    }
    seen.extend(systems::installs().iter().chain(&systems::upgrades()).map(|case| case.code));
    seen.extend(removals::removals().iter().flat_map(|case| case.codes.clone()));
    seen.extend(systems::broken_images().iter().map(|(_, code, _)| *code));
    seen.extend(systems::broken_systems().iter().map(|(_, code, _)| *code));
    let elsewhere = [&LEFT_OVER[..], &OF_RUNNING_SYSTEMS].concat();
    let missing: Vec<Code> =
        Code::ALL.iter().filter(|code| !seen.contains(code) && !elsewhere.contains(code)).copied().collect();
    assert_eq!(missing, Vec::<Code>::new());
    let texts: std::collections::BTreeSet<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    assert_eq!(texts.len(), Code::ALL.len(), "no two codes have one text");
}

#[test]
fn broken_system_images_are_told_apart() {
    for (name, code, bytes) in systems::broken_images() {
        let findings = install::system_of(&bytes).err().unwrap_or_else(|| panic!("{name} must be refused"));
        assert_eq!(findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), [code], "{name}: {findings:?}");
        assert!(OF_SYSTEMS.contains(&code) || code == Code::Truncated, "{name}");
    }
    for (name, code, system) in systems::broken_systems() {
        let report = install::verify(&system);
        assert!(report.codes().contains(&code), "{name}:\n{report}");
    }
}
