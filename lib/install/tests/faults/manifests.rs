//! Manifests with one fault, validly signed.

use install::Code;
use manifest_model::ContractSide::{Both, Export, Import};
use manifest_model::{
    AddressRange, Awaited, Category, Code as ProgramCode, DeviceNeed, Manifest, Parameter, ParameterKind, Permission,
    Provide, Requirement, Restart, Side, Source, Value, Version, Whose,
};
use package_check::sha256;

use crate::common::*;
use crate::{Case, Deed, packed};

fn placed(name: &str, position: u16) -> Parameter {
    Parameter { position: Some(position), ..parameter(name) }
}

fn device(name: &str, base: u64) -> DeviceNeed {
    DeviceNeed { name: name.into(), ports: vec![AddressRange { base, bytes: 8 }], ..DeviceNeed::default() }
}

pub fn cases(deed: Deed) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut bad = |name: &'static str, code: Code, spoil: &dyn Fn(&mut Manifest)| {
        let mut manifest = deed.good();
        spoil(&mut manifest);
        cases.push(Case { name, code, package: packed(&manifest), system: installed(), at_boot: false });
    };
    names_and_lists(&mut bad, deed);
    contracts_and_endpoints(&mut bad);
    devices_and_paths(&mut bad);
    parameters(&mut bad);
    limits(&mut bad);
    cases
}

type Bad<'a> = dyn FnMut(&'static str, Code, &dyn Fn(&mut Manifest)) + 'a;

fn names_and_lists(bad: &mut Bad<'_>, deed: Deed) {
    if deed == Deed::Install {
        bad("a name in capitals", Code::BadProgramName, &|manifest| manifest.name = "Extra".into());
        bad("a name that leaves its folder", Code::BadProgramName, &|manifest| manifest.name = "../extra".into());
        bad("the system's name", Code::BadProgramName, &|manifest| manifest.name = "singularity".into());
        bad("no name", Code::BadProgramName, &|manifest| manifest.name = String::new());
        bad("a publisher with a dot", Code::BadPublisherName, &|manifest| manifest.publisher = "a.b".into());
        bad("a long publisher", Code::BadPublisherName, &|manifest| manifest.publisher = "p".repeat(64));
    }
    bad("many parameters", Code::ListTooLong, &|manifest| {
        manifest.parameters = (0..257).map(|number| parameter(&format!("p{number}"))).collect();
    });
    bad("many devices", Code::ListTooLong, &|manifest| {
        manifest.devices = (0..257).map(|number| DeviceNeed::named(&format!("d{number}"))).collect();
    });
    bad("many permissions", Code::ListTooLong, &|manifest| {
        manifest.permissions = vec![Permission::Power; 257];
        manifest.permissions.truncate(257);
    });
    bad("two that are one permission", Code::DuplicatePermission, &|manifest| {
        manifest.permissions = vec![Permission::Power, Permission::Power];
    });
    bad("it requires itself", Code::RequirementItself, &|manifest| {
        let program = manifest.name.clone();
        manifest.requires.push(Requirement { program, least: manifest.version });
    });
    bad("it requires one twice", Code::RequirementTwice, &|manifest| {
        let requirement = Requirement { program: "shell".into(), least: Version { major: 1, minor: 0, patch: 0 } };
        manifest.requires = vec![requirement.clone(), requirement];
    });
}

fn contracts_and_endpoints(bad: &mut Bad<'_>) {
    bad("a contract twice", Code::DuplicateContract, &|manifest| manifest.contracts.push(contract("File", Import)));
    bad("a contract that moves the cursor", Code::ContractName, &|manifest| {
        manifest.contracts.push(contract("\u{1b}[2K", Import));
    });
    bad("an automaton cut short", Code::BadAutomaton, &|manifest| {
        let automaton = &mut manifest.contracts[2].automaton;
        automaton.pop();
        manifest.contracts[2].fingerprint = sha256(automaton);
    });
    bad("another contract's automaton", Code::BadAutomaton, &|manifest| {
        manifest.contracts[2].automaton = automaton("Disk").encode();
    });
    bad("an automaton that is not the fingerprint's", Code::AutomatonFingerprint, &|manifest| {
        manifest.contracts[2].fingerprint[0] ^= 1;
    });
    bad("an answer that waits for nothing that is there", Code::WaitsForOther, &|manifest| {
        manifest.contracts.push(contract("Echo", Both));
        let awaited = Awaited { contract: 77, whose: Whose::Anyone };
        manifest.contracts[3].waits_for = Some(vec![awaited]);
    });
    bad("a wait of a client", Code::WaitsForOther, &|manifest| manifest.contracts[2].waits_for = Some(Vec::new()));
    bad("an assertion about no function", Code::BadAssertion, &|manifest| {
        manifest.assertions.no_panic = vec![String::new()];
    });
    bad("many assertions", Code::ListTooLong, &|manifest| {
        manifest.assertions.no_float = vec!["f".into(); 257];
    });
    bad("an endpoint of no contract", Code::SlotContract, &|manifest| manifest.endpoints[0].contract = 77);
    bad("an end that is not handled", Code::SlotSide, &|manifest| {
        let slot = slot(manifest, "file", "File", Side::Exporter, Source::Parent);
        manifest.endpoints.push(slot);
    });
    bad("a conversation that is over", Code::SlotState, &|manifest| manifest.endpoints[0].state = 2);
    bad("a state that there is not", Code::SlotState, &|manifest| manifest.endpoints[1].state = 99);
    bad("an endpoint's path with dots", Code::SlotPath, &|manifest| manifest.endpoints[0].source = path("/a/../b"));
    bad("an endpoint's path from nowhere", Code::SlotPath, &|manifest| manifest.endpoints[0].source = path("fs"));
    bad("two endpoints of one name", Code::DuplicateSlot, &|manifest| manifest.endpoints[1].name = "namespace".into());
    bad("standard input that is written to", Code::StandardPipe, &|manifest| {
        manifest.endpoints[1].source = Source::StandardInput;
    });
    bad("standard output that is a file", Code::StandardPipe, &|manifest| {
        manifest.endpoints[1].contract = 2;
    });
    bad("a server that binds a path", Code::SlotBoundOtherEnd, &|manifest| {
        manifest.contracts.push(contract("Echo", Both));
        let slot = slot(manifest, "echo", "Echo", Side::Exporter, path("/service/echo"));
        manifest.endpoints.push(slot);
    });
}

fn devices_and_paths(bad: &mut Bad<'_>) {
    bad("a device in capitals", Code::DeviceName, &|manifest| manifest.devices.push(DeviceNeed::named("Disk")));
    bad("a device twice", Code::DuplicateDevice, &|manifest| {
        manifest.devices = vec![DeviceNeed::named("disk9"), DeviceNeed::named("disk9")];
    });
    bad("ports beyond the last", Code::RangeImpossible, &|manifest| manifest.devices.push(device("far", 0xfffc)));
    bad("an empty range", Code::RangeImpossible, &|manifest| {
        let ports = vec![AddressRange { base: 0x60, bytes: 0 }];
        manifest.devices.push(DeviceNeed { name: "nothing".into(), ports, ..DeviceNeed::default() });
    });
    bad("the same ports twice", Code::RangeTwice, &|manifest| {
        let ports = vec![AddressRange { base: 0x60, bytes: 8 }, AddressRange { base: 0x64, bytes: 8 }];
        manifest.devices.push(DeviceNeed { name: "twice".into(), ports, ..DeviceNeed::default() });
    });
    let provide = |manifest: &mut Manifest, path: &str, side| {
        manifest.contracts.push(contract("Echo", side));
        manifest.contracts.push(contract("ServiceProvider", Export));
        let contract = manifest.contract("Echo").expect("it is listed") as u16;
        manifest.provides.push(Provide { path: path.into(), contract });
        let slot = slot(manifest, "clients", "ServiceProvider", Side::Exporter, Source::Parent);
        manifest.endpoints.push(slot);
    };
    bad("a provided path from nowhere", Code::ProvidePath, &|manifest| provide(manifest, "service/echo", Export));
    bad("a provided path twice", Code::DuplicateProvide, &|manifest| {
        provide(manifest, "/service/echo", Export);
        let again = manifest.provides[0].clone();
        manifest.provides.push(again);
        let slot = slot(manifest, "others", "ServiceProvider", Side::Exporter, Source::Parent);
        manifest.endpoints.push(slot);
    });
    bad("a path of a contract that is only imported", Code::ProvideContract, &|manifest| {
        provide(manifest, "/service/echo", Import);
    });
    bad("a path whose clients nobody takes", Code::ProvideWithoutSlot, &|manifest| {
        provide(manifest, "/service/echo", Export);
        manifest.endpoints.pop();
    });
}

fn parameters(bad: &mut Bad<'_>) {
    let number = Some(Value::Integer(1));
    bad("a parameter with blanks", Code::ParameterName, &|manifest| manifest.parameters.push(parameter("two words")));
    bad("two parameters of one name", Code::DuplicateParameter, &|manifest| {
        manifest.parameters = vec![parameter("same"), parameter("same")];
    });
    bad("a parameter called as an endpoint", Code::ParameterIsEndpoint, &|manifest| {
        manifest.parameters.push(parameter("namespace"));
    });
    bad("a number for a text", Code::DefaultType, &|manifest| {
        manifest.parameters.push(Parameter { default: number.clone(), ..parameter("text") });
    });
    bad("a default that is never used", Code::DefaultUseless, &|manifest| {
        let default = Some(Value::Text("x".into()));
        manifest.parameters.push(Parameter { default, required: true, ..parameter("text") });
    });
    bad("a default for any number", Code::DefaultUseless, &|manifest| {
        let kind = ParameterKind::Integer;
        manifest.parameters.push(Parameter { default: number.clone(), kind, repeated: true, ..parameter("numbers") });
    });
    bad("a position left out", Code::PositionGap, &|manifest| {
        manifest.parameters = vec![placed("first", 0), placed("third", 2)];
    });
    bad("words behind all words", Code::RepeatedNotLast, &|manifest| {
        manifest.parameters = vec![Parameter { repeated: true, ..placed("all", 0) }, placed("last", 1)];
    });
    bad("a must behind a may", Code::RequiredAfterOptional, &|manifest| {
        manifest.parameters = vec![placed("may", 0), Parameter { required: true, ..placed("must", 1) }];
    });
    for (name, flag) in [("a flag of two letters", "-xy"), ("no flag", "--"), ("a flag with a blank", "--a b")] {
        bad(name, Code::BadFlag, &|manifest| {
            manifest.parameters.push(Parameter { flag: Some(flag.into()), ..parameter("flagged") });
        });
    }
    bad("a flag with two meanings", Code::DuplicateFlag, &|manifest| {
        let flagged = |name| Parameter { flag: Some("-v".into()), ..parameter(name) };
        manifest.parameters = vec![flagged("verbose"), flagged("version")];
    });
    bad("a summary that moves the cursor", Code::ControlCharacter, &|manifest| {
        manifest.summary = "harmless\u{1b}[2Kroot".into();
    });
    bad("help of two lines", Code::ControlCharacter, &|manifest| {
        manifest.parameters.push(Parameter { help: "one\ntwo".into(), ..parameter("text") });
    });
    bad("no summary", Code::NoSummary, &|manifest| manifest.summary = "  ".into());
    bad("a long summary", Code::NoSummary, &|manifest| manifest.summary = "x".repeat(201));
    let script = |manifest: &mut Manifest, text: &str| {
        manifest.code = ProgramCode::Script { text: text.into() };
        manifest.endpoints.clear();
        manifest.contracts.clear();
    };
    bad("a script without commands", Code::ScriptEmpty, &|manifest| script(manifest, " \n"));
    bad("a script that rings", Code::ControlCharacter, &|manifest| script(manifest, "echo \u{7}"));
}

fn limits(bad: &mut Bad<'_>) {
    bad("no memory", Code::QuotaRange, &|manifest| manifest.quota.memory_kib = 0);
    bad("no thread", Code::QuotaRange, &|manifest| manifest.quota.threads = 0);
    bad("all memory", Code::QuotaRange, &|manifest| manifest.quota.memory_kib = u32::MAX);
    bad("many handles", Code::QuotaRange, &|manifest| manifest.quota.handles = (1 << 20) + 1);
    bad("no stack", Code::QuotaRange, &|manifest| manifest.quota.stack_kib = 0);
    bad("a stack of an odd size", Code::QuotaRange, &|manifest| manifest.quota.stack_kib = 300);
    bad("a stack of 16 MiB", Code::QuotaRange, &|manifest| {
        (manifest.quota.stack_kib, manifest.quota.memory_kib) = (16_384, 65_536);
    });
    bad("a stack that is more than all memory", Code::QuotaRange, &|manifest| {
        (manifest.quota.stack_kib, manifest.quota.memory_kib) = (1024, 768);
    });
    bad("handles for no endpoint", Code::QuotaHandles, &|manifest| manifest.quota.handles = 1);
    bad("a wait of days", Code::SupervisionRange, &|manifest| manifest.supervision.backoff_max_ms = u32::MAX);
    bad("waits that shrink", Code::SupervisionOrder, &|manifest| {
        (manifest.supervision.backoff_ms, manifest.supervision.backoff_max_ms) = (500, 100);
    });
    bad("no restart at all", Code::SupervisionLimit, &|manifest| manifest.supervision.limit = Some(0));
    bad("a command that comes again", Code::SupervisionConsole, &|manifest| {
        manifest.supervision.restart = Restart::Always;
        manifest.category = Category::Console;
    });
    bad("another ABI", Code::AbiVersion, &|manifest| manifest.abi += 1);
}
