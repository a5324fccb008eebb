//! System manifests with one fault each: every one is refused with its code and the faulty part of the manifest, from
//! the compiled form alone.

mod common;

use common::*;
use install::{Code, Installed, system_findings};
use manifest_model::{
    Apart, Bind, Deny, DeviceNeed, Domain, Instance, Manifest, ParameterKind, ParameterSetting, Setting, Side, Source,
    SystemManifest, Value,
};

type Spoil = &'static dyn Fn(&mut Installed);

/// The instance of a program of the small system.
fn of<'s>(installed: &'s mut Installed, program: &str) -> &'s mut Instance {
    installed.system.instances.iter_mut().find(|instance| instance.program == program).expect("it runs")
}

fn program<'s>(installed: &'s mut Installed, name: &str) -> &'s mut Manifest {
    let mut programs = installed.programs.iter_mut().map(|program| &mut program.manifest);
    programs.find(|manifest| manifest.name == name).expect("it is there")
}

fn set(installed: &mut Installed, values: Vec<Value>) {
    of(installed, "shell").parameters[0].setting = Setting::Values(values);
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// A second instance of the console's driver, whose manifest fixes registers and an interrupt.
fn twin(installed: &mut Installed) -> &mut Instance {
    let mut twin = of(installed, "console").clone();
    twin.name = "twin".into();
    twin.provides[0] = "/dev/twin".into();
    installed.system.instances.push(twin);
    installed.system.instances.last_mut().expect("it was pushed")
}

/// Binds an optional endpoint of the shell to a path without a rule.
fn bind_optional(installed: &mut Installed) {
    let shell = program(installed, "shell");
    shell.contracts.push(contract("Tcp", manifest_model::ContractSide::Import));
    let mut slot = slot(shell, "network", "Tcp", Side::Importer, Source::Path("/service/tcp".into()));
    slot.optional = true;
    shell.endpoints.push(slot);
    of(installed, "shell").endpoints.push(None);
}

const FAULTS: &[(Code, &str, Spoil)] = &[
    (Code::ProgramMissing, "system.installed[4]", &|small| small.system.installed.push("dog".into())),
    (Code::ProgramMissing, "system.root", &|small| small.system.root = "dog".into()),
    (Code::ProgramMissing, "program[6].name", &|small| of(small, "host").program = "dog".into()),
    (Code::PrimaryMissing, "system.primary", &|small| small.system.primary = Some("dog".into())),
    (Code::InstanceMissing, "program[1].requires[1]", &|small| of(small, "shell").requires.push("dog".into())),
    (Code::InstanceMissing, "program[2].after[0]", &|small| of(small, "stack").after.push("dog".into())),
    (Code::BootCycle, "program[1].instance", &|small| of(small, "console").requires.push("shell".into())),
    (Code::BootCycle, "program[2].instance", &|small| of(small, "stack").after.push("stack".into())),
    (Code::NoProvider, "program[1].endpoints[2]", &|small| {
        of(small, "shell").endpoints[2] = Some("/service/tcp".into());
        small.system.binds.push(Bind { who: "shell.singularity".into(), path: "/service/tcp".into() });
    }),
    // The volume manager registers it, which is too late for instances started at boot.
    (Code::NoProvider, "program[1].endpoints[2]", &|small| {
        of(small, "shell").endpoints[2] = Some("/fs/disk0".into());
    }),
    (Code::BindRefused, "program[1].endpoints[2]", &|small| {
        small.system.binds.retain(|bind| bind.path != "/dev/console");
    }),
    (Code::BindRefused, "program[1].endpoints[3]", &bind_optional),
    (Code::InstanceMalformed, "program[2].name", &|small| {
        of(small, "stack").endpoints[0] = Some("/dev/console".into());
        program(small, "stack").endpoints[0].optional = true;
    }),
    (Code::InstanceMalformed, "program[2].name", &|small| of(small, "stack").provides.clear()),
    (Code::InstanceMalformed, "program[1].name", &|small| {
        let twice = of(small, "shell").parameters[0].clone();
        of(small, "shell").parameters.push(twice);
    }),
    (Code::InstanceMalformed, "program[1].name", &|small| {
        let setting = Setting::Values(vec![text("x")]);
        of(small, "shell").parameters.push(ParameterSetting { index: 1, setting });
    }),
    (Code::ParameterMissing, "program[1].parameters[0]", &|small| {
        of(small, "shell").parameters.clear();
        program(small, "shell").parameters[0].required = true;
    }),
    (Code::SettingType, "program[1].parameters[0]", &|small| set(small, vec![Value::Integer(5)])),
    (Code::SettingType, "program[1].parameters[0]", &|small| set(small, vec![text("a\0b")])),
    (Code::SettingType, "program[1].parameters[0]", &|small| set(small, vec![text("a"), text("b")])),
    (Code::SettingType, "program[1].parameters[0]", &|small| set(small, Vec::new())),
    (Code::SettingType, "program[1].parameters[0]", &|small| {
        program(small, "shell").parameters[0].kind = ParameterKind::DurationMs;
    }),
    (Code::ListTooLong, "program[0].parameters[0]", &|small| {
        of(small, "directory").parameters[0].setting = Setting::Values(vec![text("volumes.singularity /fs/**"); 257]);
    }),
    (Code::ListTooLong, "program[2].requires", &|small| {
        of(small, "stack").requires = vec!["directory".into(); 257];
    }),
    (Code::DeviceTaken, "program[4].devices[0]", &|small| {
        program(small, "console").devices.push(DeviceNeed::named("card"));
        of(small, "console").devices.push("disk0".into());
    }),
    (Code::PathTaken, "program[4].provides[0]", &|small| of(small, "disk").provides[0] = "/dev/console".into()),
    (Code::PathTaken, "program[4].provides[0]", &|small| {
        let provide = program(small, "stack").provides[0].clone();
        program(small, "manager").provides.push(manifest_model::Provide { path: "/dev/disk0".into(), ..provide });
    }),
    (Code::BadRule, "bind[5].who", &|small| {
        small.system.binds.push(Bind { who: "(".into(), path: "/x".into() });
    }),
    (Code::BadRule, "bind[5].path", &|small| {
        small.system.binds.push(Bind { who: "**".into(), path: "x".into() });
    }),
    (Code::BadDeny, "deny[1].who", &|small| {
        small.system.denies.push(Deny { who: "(".into(), reach: "/x".into() });
    }),
    (Code::BadDomain, "domain[0].who[0]", &|small| small.system.domains.push(apart("apart", &["left"]))),
    (Code::BadDomain, "domain[0].name", &|small| small.system.domains.push(apart("no name", &[]))),
    (Code::BadDomain, "domain[0].name", &|small| {
        small.system.domains.push(Apart { kind: Domain::Kernel, each: true, ..apart("kernel", &[]) });
    }),
    (Code::BadDomain, "domain[1].name", &|small| {
        small.system.domains.extend([apart("twice", &[]), apart("twice", &[])]);
    }),
    (Code::NoDomain, "program[3].name", &|small| program(small, "console").domain = Domain::Ring3),
    (Code::BadDeny, "deny[1].reach", &|small| {
        small.system.denies.push(Deny { who: "**".into(), reach: "the network".into() });
    }),
];

/// Returns the codes and the first places of the system manifest's faults.
fn found(installed: &Installed) -> Vec<(Code, String)> {
    let programs: Vec<&Manifest> = installed.programs.iter().map(|program| &program.manifest).collect();
    let findings = system_findings(&installed.system, &programs);
    findings.iter().map(|finding| (finding.code, finding.places[0].field.to_string())).collect()
}

#[test]
fn a_system_manifest_with_a_fault_is_refused() {
    assert_eq!(found(&installed()), []);
    let mut wrong = Vec::new();
    for (index, (code, field, spoil)) in FAULTS.iter().enumerate() {
        let mut small = installed();
        spoil(&mut small);
        // As in an installer: decoded from the bytes of an image.
        let decoded = SystemManifest::decode(&small.system.encode());
        small.system = decoded.expect("it was encoded");
        if found(&small) != [(*code, field.to_string())] || !install::verify(&small).codes().contains(code) {
            wrong.push((index, *code, *field, found(&small)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Registers and interrupts of one program have one owner, but two instances are two owners.
#[test]
fn two_instances_have_no_registers_in_common() {
    let mut small = installed();
    twin(&mut small);
    let place = "program[7].instance".to_string();
    let codes = [Code::PortsOverlap, Code::MemoryOverlap, Code::InterruptShared];
    assert_eq!(found(&small), codes.map(|code| (code, place.clone())));
    let report = install::verify(&small);
    assert!(codes.iter().all(|code| report.codes().contains(code)), "{report}");
    // Rows of the merged system are in no file.
    assert!(!report.to_string().contains("program["), "{report}");
}

/// Existing faults do not count against a change, even if they move.
#[test]
fn a_fault_that_moves_is_no_new_one() {
    let mut small = installed();
    of(&mut small, "host").after.push("dog".into());
    small.system.instances.rotate_right(1);
    small.system.installed.retain(|name| name != "cat");
    let cat = program(&mut small, "cat").clone();
    small.system.instances.insert(0, Instance { name: "cat".into(), ..Instance::of(&cat) });
    let report = install::check(&small, &install::Change::Uninstall { name: "cat" });
    assert!(report.is_accepted(), "{report}");
}
