//! Every diagnostic has a fixture, with the expected text beside it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p manifest` rewrites the expected texts.

mod known;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use install::Code as Rule;
use known::{Known, automaton};
use manifest::{Code, Diagnostics, Kind, SystemFile};
use manifest_model::Manifest;

/// The rules about manifests of programs and systems that a source can break.
const RULES: &[Rule] = &[
    Rule::AbiVersion,
    Rule::BadProgramName,
    Rule::BadPublisherName,
    Rule::BadAssertion,
    Rule::DuplicateContract,
    Rule::WaitsForOther,
    Rule::SlotSide,
    Rule::SlotState,
    Rule::SlotPath,
    Rule::DuplicateSlot,
    Rule::StandardPipe,
    Rule::SlotBoundOtherEnd,
    Rule::DeviceName,
    Rule::DuplicateDevice,
    Rule::RangeImpossible,
    Rule::RangeTwice,
    Rule::ProvidePath,
    Rule::DuplicateProvide,
    Rule::ProvideContract,
    Rule::ProvideWithoutSlot,
    Rule::RequirementItself,
    Rule::RequirementTwice,
    Rule::ParameterName,
    Rule::DuplicateParameter,
    Rule::ParameterIsEndpoint,
    Rule::DefaultType,
    Rule::DefaultUseless,
    Rule::PositionGap,
    Rule::RepeatedNotLast,
    Rule::RequiredAfterOptional,
    Rule::BadFlag,
    Rule::DuplicateFlag,
    Rule::ControlCharacter,
    Rule::NoSummary,
    Rule::ScriptEmpty,
    Rule::QuotaRange,
    Rule::QuotaHandles,
    Rule::SupervisionRange,
    Rule::SupervisionOrder,
    Rule::SupervisionLimit,
    Rule::SupervisionConsole,
    Rule::DuplicatePermission,
    Rule::ListTooLong,
    Rule::NoProvider,
    Rule::BindRefused,
    Rule::PortsOverlap,
    Rule::MemoryOverlap,
    Rule::InterruptShared,
    Rule::DeviceTaken,
    Rule::PathTaken,
    Rule::ParameterMissing,
    Rule::SettingType,
    Rule::ProgramMissing,
    Rule::PrimaryMissing,
    Rule::InstanceMissing,
    Rule::BootCycle,
    Rule::BadDomain,
    Rule::NoDomain,
    Rule::BadDeny,
    Rule::BadRule,
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Returns the TOML files of a folder with their names without `.toml`.
fn files(name: &str) -> Vec<(String, PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder(name)).expect("the folder of fixtures is there") {
        let path = entry.expect("its entries can be read").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("a fixture can be read");
            let stem = path.file_stem().expect("a fixture has a name").to_string_lossy().into_owned();
            files.push((stem, path, text));
        }
    }
    files.sort();
    files
}

/// Compares the diagnostics with the golden text and the code in the file's name; returns their codes.
fn hold(stem: &str, path: &Path, errors: &Diagnostics) -> Vec<Kind> {
    let rendered = errors.render(manifest::Colours::Never);
    let golden = path.with_extension("txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &rendered).expect("the golden text can be written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(rendered, expected, "{stem}: if this is right, run with UPDATE_GOLDEN=1");
    let code = stem.split('_').next().unwrap_or_default().to_uppercase();
    let codes: Vec<Kind> = errors.items.iter().map(|item| item.code).collect();
    assert!(codes.iter().any(|other| other.text() == code), "{stem} shows {codes:?}");
    for item in &errors.items {
        assert!(!item.remedy.is_empty() && !item.labels.is_empty(), "{stem}: {item:?}");
    }
    codes
}

fn programs() -> Vec<Manifest> {
    let read = |(stem, _, text): (String, PathBuf, String)| match manifest::program(&stem, &text, Some(&Known)) {
        Ok(program) => program.manifest,
        Err(errors) => panic!("{errors}"),
    };
    files("programs").into_iter().map(read).collect()
}

/// A base system manifest of the fixtures.
fn base(name: &str) -> Option<SystemFile> {
    let path = folder("bases").join(name).with_extension("toml");
    Some(SystemFile { file: format!("bases/{name}.toml"), text: fs::read_to_string(path).ok()? })
}

#[test]
fn every_mistake_is_told_and_every_code_has_a_fixture() {
    let mut shown = BTreeSet::new();
    for (stem, path, text) in files("program").into_iter().filter(|(stem, ..)| stem != "good") {
        let errors = manifest::program(&format!("{stem}.toml"), &text, Some(&Known));
        let errors = errors.err().unwrap_or_else(|| panic!("{stem} is not refused"));
        shown.extend(hold(&stem, &path, &errors).iter().map(|code| code.text()));
    }
    let programs = programs();
    let programs: Vec<&Manifest> = programs.iter().collect();
    for (stem, path, text) in files("system").into_iter().filter(|(stem, ..)| stem != "good") {
        let errors = manifest::system(SystemFile { file: format!("{stem}.toml"), text }, &base, &programs);
        let errors = errors.err().unwrap_or_else(|| panic!("{stem} is not refused"));
        shown.extend(hold(&stem, &path, &errors).iter().map(|code| code.text()));
    }
    let all = Code::ALL.iter().map(|code| code.text()).chain(RULES.iter().map(|code| code.text()));
    let missing: Vec<&str> = all.filter(|code| !shown.contains(code)).collect();
    assert!(missing.is_empty(), "no fixture shows {missing:?}");
}

#[test]
fn codes_are_distinct() {
    let all = Code::ALL.iter().map(|code| code.text()).chain(Rule::ALL.iter().map(|code| code.text()));
    let texts: BTreeSet<&str> = all.collect();
    assert_eq!(texts.len(), Code::ALL.len() + Rule::ALL.len());
}

#[test]
fn a_good_manifest_is_read_as_written() {
    let text = fs::read_to_string(folder("program/good.toml")).expect("the fixture is there");
    let program = manifest::program("good.toml", &text, Some(&Known)).unwrap_or_else(|errors| panic!("{errors}"));
    let manifest = &program.manifest;
    assert_eq!((program.crate_path.as_deref(), manifest.principal().as_str()), (Some("."), "example.acme"));
    assert_eq!(program.modules, [Some("echo_contract::echo".into()), None]);
    assert_eq!(manifest.contracts[0].automaton, automaton("Echo").encode());
    let slots: Vec<_> =
        manifest.endpoints.iter().map(|slot| (slot.state, slot.source.to_string(), slot.optional)).collect();
    assert_eq!(slots, [(1, "/service/echo".into(), true), (1, "stdout".into(), false)]);
    assert_eq!(manifest.parameters[1].default, Some(manifest_model::Value::Integer(5)));
    assert_eq!((manifest.quota.threads, manifest.quota.handles), (2, manifest_model::Quota::default().handles));
    assert_eq!(
        (manifest.supervision.restart, manifest.supervision.limit),
        (manifest_model::Restart::OnFailure, Some(3))
    );
    assert_eq!(
        manifest.permissions,
        [manifest_model::Permission::Diagnostics, manifest_model::Permission::Power, manifest_model::Permission::Bus]
    );
    let [disk, serial] = &manifest.devices[..] else { panic!("two devices are listed") };
    assert_eq!((disk.name.as_str(), disk.is_fixed(), serial.is_fixed()), ("disk", false, true));
    assert_eq!(serial.ports, [manifest_model::AddressRange { base: 0x3f8, bytes: 8 }]);
    assert_eq!(serial.memory, [manifest_model::AddressRange { base: 0xfee0_0000, bytes: 4096 }]);
    assert_eq!(serial.interrupts, [4]);
}

#[test]
fn without_contracts_what_depends_on_them_is_left_open() {
    let text = fs::read_to_string(folder("program/good.toml")).expect("the fixture is there");
    let text = text.replace("\"Echo\"", "\"Elsewhere\"");
    let program = manifest::program("good.toml", &text, None).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(program.manifest.endpoints[0].state_name, "READY");
    assert!(program.manifest.contracts[0].automaton.is_empty());
}

fn system(text: String, programs: &[&Manifest]) -> manifest_model::SystemManifest {
    let file = SystemFile { file: "good.toml".into(), text };
    manifest::system(file, &base, programs).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_system_has_all_that_it_is_based_on() {
    let programs = programs();
    let programs: Vec<&Manifest> = programs.iter().collect();
    let text = "[system]\nname = \"extended\"\nbase = \"further\"\ninstalled = [\"right\"]\n";
    let system = system(text.into(), &programs);
    assert_eq!((system.name.as_str(), system.root.as_str()), ("extended", "root"));
    assert_eq!(system.installed, ["left", "right"]);
    let names: Vec<&str> = system.instances.iter().map(|instance| instance.name.as_str()).collect();
    assert_eq!((names.as_slice(), system.primary.as_deref()), (["disk", "files"].as_slice(), Some("files")));
    assert!(system.may_bind("files.singularity", "/dev/disk0"));
}

#[test]
fn a_good_system_is_read_as_written() {
    let programs = programs();
    let programs: Vec<&Manifest> = programs.iter().collect();
    let text = fs::read_to_string(folder("system/good.toml")).expect("the fixture is there");
    let system = system(text, &programs);
    assert_eq!(system.programs(), ["root", "disk", "files", "left", "right"]);
    assert_eq!(system.primary.as_deref(), Some("disk0-files"));
    assert!(system.may_bind("files.singularity", "/dev/disk0") && !system.may_bind("files.acme", "/dev/disk0"));
    let allowed = ["singularity", "acme-*"].map(String::from).into();
    assert_eq!(system.trust.policy, manifest_model::Policy::AllowPublisher(allowed));
    assert_eq!(system.trust.revoked, [manifest_model::Revoked::Serial(0x0123_4567_89ab_cdef)]);
    let [root] = system.trust.roots.as_slice() else { panic!("one root is named: {:?}", system.trust) };
    assert_eq!((root.publishers.as_str(), root.systems), ("acme-*", false));
    let files = system.instance("disk0-files").expect("it has this name");
    assert_eq!((files.provides.as_slice(), files.devices.len()), (["/fs/disk0".to_string()].as_slice(), 0));
}

#[test]
fn devices_of_one_program_may_be_views_of_the_same_registers() {
    let programs = programs();
    let programs: Vec<&Manifest> = programs.iter().collect();
    let text = "[system]\nname = \"one\"\nroot = \"root\"\n\n[[program]]\nname = \"twofold\"\n";
    assert_eq!(system(text.into(), &programs).instances[0].devices, ["whole", "part"]);
    // Another instance has another owner.
    let text = format!("{text}\n[[program]]\nname = \"twofold\"\ninstance = \"other\"\n");
    let file = SystemFile { file: "two.toml".into(), text };
    let errors = manifest::system(file, &base, &programs).expect_err("two have the same registers");
    let codes: Vec<Kind> = errors.items.iter().map(|item| item.code).collect();
    assert!(codes == [Rule::PortsOverlap, Rule::MemoryOverlap, Rule::InterruptShared].map(Kind::from), "{errors}");
}

#[test]
fn colours_are_for_terminals_only() {
    let errors = manifest::program("x.toml", "", None).expect_err("there is nothing in it");
    assert!(errors.render(manifest::Colours::Always).contains('\x1b'));
    assert!(!errors.to_string().contains('\x1b'));
}

#[test]
fn a_count_makes_instances_with_their_numbers() {
    let programs = programs();
    let programs: Vec<&Manifest> = programs.iter().collect();
    let text = r##"
        [system]
        name = "fixture"
        root = "root"

        [[program]]
        name = "disk"
        instance = "disk#"
        count = 12
        optional = true
        devices = { disk = "disk#" }
        provides = { "/dev/disk0" = "/dev/disk#" }

        [[bind]]
        who = "*.singularity"
        path = "/**"
    "##;
    let file = SystemFile { file: "counted.toml".into(), text: text.into() };
    let system = manifest::system(file, &base, &programs).expect("it is right");
    assert_eq!(system.instances.len(), 12);
    for (number, instance) in system.instances.iter().enumerate() {
        assert_eq!(instance.name, format!("disk{number}"));
        assert_eq!(instance.devices[0], format!("disk{number}"));
        assert_eq!(instance.provides[0], format!("/dev/disk{number}"));
        assert!(instance.optional);
    }
}
