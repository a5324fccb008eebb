//! Programs that do not fit into the system, and invalid systems.

use install::{Code, Installed, Program};
use manifest_model::ContractSide::{Both, Export, Import};
use manifest_model::{
    AddressRange, Bind, Code as ProgramCode, Deny, DeviceNeed, Domain, Instance, Manifest, Parameter, ParameterKind,
    ParameterSetting, Permission, Requirement, Setting, Side, Source, Value, Version,
};
use package_build::{SecretKey, Signer};

use crate::common::*;
use crate::{Case, Deed, packed};

fn version(major: u32) -> Version {
    Version { major, minor: 0, patch: 0 }
}

pub fn requires(program: &str, major: u32) -> Requirement {
    Requirement { program: program.into(), least: version(major) }
}

fn fixed(ports: u64, memory: u64, interrupt: u32) -> DeviceNeed {
    let range = |base, bytes| AddressRange { base, bytes };
    DeviceNeed {
        name: "card".into(),
        ports: vec![range(ports, 4)],
        memory: vec![range(memory, 0x100)],
        interrupts: vec![interrupt],
    }
}

fn case(name: &'static str, code: Code, manifest: &Manifest) -> Case {
    Case { name, code, package: packed(manifest), system: installed(), at_boot: false }
}

pub fn with_program(mut system: Installed, manifest: Manifest) -> Installed {
    system.system.installed.push(manifest.name.clone());
    system.programs.push(Program { manifest, key: key().public() });
    system
}

pub fn change(mut system: Installed, program: &str, change: impl Fn(&mut Manifest)) -> Installed {
    let place = system.programs.iter().position(|other| other.manifest.name == program).expect("it is there");
    change(&mut system.programs[place].manifest);
    system
}

/// Requirements of a program that a system does not meet, for installs and upgrades.
pub fn cases(deed: Deed) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut bad = |name: &'static str, code: Code, spoil: &dyn Fn(&mut Manifest)| {
        let mut manifest = deed.good();
        spoil(&mut manifest);
        cases.push(case(name, code, &manifest));
    };
    bad("a contract that nobody exports", Code::NoExporter, &|manifest| {
        manifest.contracts.push(contract("Unheard", Import));
    });
    bad("another version of a contract", Code::OtherContractVersion, &|manifest| {
        manifest.contracts[2] = other_contract("File", Import);
    });
    bad("another contract under a name, exported", Code::TwoContracts, &|manifest| {
        manifest.contracts.push(other_contract("TcpConnection", Export));
    });
    // A promise about the name would conflict: it exports what it imports.
    bad("another contract under a name, for both ends", Code::TwoContracts, &|manifest| {
        manifest.contracts.push(other_contract("Tcp", Both));
    });
    bad("a path that no rule gives it", Code::BindRefused, &|manifest| {
        manifest.contracts.push(contract("Tcp", Import));
        let slot = slot(manifest, "tcp", "Tcp", Side::Importer, path("/service/tcp"));
        manifest.endpoints.push(slot);
    });
    bad("an endpoint that nobody can give", Code::NoParent, &|manifest| {
        manifest.contracts.push(contract("Lonely", Both));
        let slot = slot(manifest, "lonely", "Lonely", Side::Exporter, Source::Parent);
        manifest.endpoints.push(slot);
    });
    bad("a driver's ports", Code::PortsOverlap, &|manifest| manifest.devices.push(fixed(0x3fc, 0x1000, 9)));
    bad("a driver's memory", Code::MemoryOverlap, &|manifest| manifest.devices.push(fixed(0x60, 0xfee0_0ff0, 9)));
    bad("a driver's interrupt", Code::InterruptShared, &|manifest| manifest.devices.push(fixed(0x60, 0x1000, 4)));
    bad("a hardware domain that the system does not have", Code::NoDomain, &|manifest| manifest.domain = Domain::Ring3);
    bad("unsafe code beside others", Code::UnsafeNotApart, &|manifest| {
        manifest.code = ProgramCode::Unsafe { digest: [0; 32] };
    });
    bad("a program that is not there", Code::RequirementMissing, &|manifest| {
        manifest.requires.push(requires("python", 3));
    });
    bad("a program that is too old", Code::RequirementTooOld, &|manifest| manifest.requires.push(requires("shell", 2)));
    cases.push(no_provider(deed));
    cases.push(requirement_cycle(deed));
    cases.push(promise(deed));
    cases.push(no_shell(deed));
    cases
}

fn no_provider(deed: Deed) -> Case {
    let mut manifest = deed.good();
    manifest.contracts.push(contract("Console", Import));
    let manifest = with_slot(manifest, "other", "Console", Side::Importer, path("/dev/console2"));
    let mut case = case("a path that nobody provides", Code::NoProvider, &manifest);
    case.system.system.binds.push(Bind { who: "..*.singularity".into(), path: "/dev/console*".into() });
    case
}

fn requirement_cycle(deed: Deed) -> Case {
    let mut manifest = deed.good();
    manifest.requires.push(requires("shell", 1));
    let name = manifest.name.clone();
    let mut case = case("programs that require each other", Code::RequirementCycle, &manifest);
    case.system = change(installed(), "shell", |shell| shell.requires.push(requires(&name, 0)));
    if deed == Deed::Install {
        // The installed version already requires the new one; the cycle closes with it.
        manifest.requires = vec![requires("cat", 1), requires("fetch", 1)];
        case.package = packed(&manifest);
        case.system = change(installed(), "fetch", |fetch| fetch.requires.push(requires(&name, 0)));
    }
    case
}

/// A promise that the program does not reach the network.
fn promise(deed: Deed) -> Case {
    let mut manifest = deed.good();
    manifest.quota.children = 1;
    let mut case = case("a way to what was promised to be out of reach", Code::DenyBroken, &manifest);
    let who = format!("..{}.singularity", manifest.name);
    case.system.system.denies.push(Deny { who, reach: "/service/*".into() });
    if deed == Deed::Upgrade {
        // The older version already could by starting others; only the promise is new, and the package violates it.
        case.package = packed(&Manifest {
            contracts: [manifest.contracts, vec![contract("Tcp", Import)]].concat(),
            ..deed.good()
        });
        case.system.system.binds.push(Bind { who: "..cat.singularity".into(), path: "/service/tcp".into() });
    }
    case
}

fn no_shell(deed: Deed) -> Case {
    let code = ProgramCode::Script { text: "echo hello".into() };
    let manifest = Manifest { code, contracts: Vec::new(), endpoints: Vec::new(), ..deed.good() };
    let mut case = case("a script without a shell", Code::ScriptWithoutShell, &manifest);
    case.system.programs.retain(|program| program.manifest.name != "shell");
    case.system.system.instances.retain(|instance| instance.program != "shell");
    case.system.system.primary = None;
    case
}

/// Cases for installs only.
pub fn installs() -> Vec<Case> {
    let good = Deed::Install.good();
    let at_boot = |case: Case| Case { at_boot: true, ..case };
    let named = |name: &str| Manifest { name: name.into(), ..good.clone() };
    let mut look_alike = case("a publisher that looks like another", Code::LookAlikePublisher, &good);
    look_alike.system.system.trust.roots.push(manifest_model::Root {
        key: public(31),
        publishers: "*".into(),
        systems: false,
        rights: manifest_model::Rights::NATIVE,
    });
    let by_other = |publisher: &str, name: &str| {
        let manifest = Manifest { publisher: publisher.into(), ..named(name) };
        let signer = Signer::root(SecretKey::from_bytes(&[31; 32]));
        package_build::build_unchecked(manifest.clone(), b"", &image(&manifest).write(), &signer).expect("it is short")
    };
    look_alike.package = by_other("singu1arity", "extra");
    let other = |name, publisher: &str, program: &str| Case {
        name,
        code: Code::LookAlikePublisher,
        package: by_other(publisher, program),
        system: look_alike.system.clone(),
        at_boot: false,
    };
    let mut of_root = case("a publisher that looks like one whom a root is for", Code::LookAlikePublisher, &{
        Manifest { publisher: "acrne".into(), ..good.clone() }
    });
    of_root.system.system.trust.roots.push(manifest_model::Root {
        key: public(33),
        publishers: "acme".into(),
        systems: false,
        rights: manifest_model::Rights::NATIVE,
    });
    let paired = other("a publisher with digits for letters", "s1ngu1ar1ty", "extra");
    let swapped = other("a publisher with two letters swapped", "signularity", "extra");
    let program =
        Case { code: Code::LookAlikeProgram, ..other("a program that looks like another's", "acme", "she1l") };
    let mut taken_path = service("twin", "/service/tcp", "Tcp", &[]);
    taken_path.category = manifest_model::Category::Service;
    let mut taken_device = service("twin", "/dev/twin", "Disk", &[]);
    taken_device.devices.push(DeviceNeed::named("disk0"));
    let mut required = service("twin", "/dev/twin", "Disk", &[]);
    required.parameters.push(Parameter { required: true, ..parameter("needed") });
    // Its endpoint is bound to its own path, so that it waits for itself through another program.
    let needy = with_slot(
        service("needy", "/service/needy", "Needy", &[("Stacked", Import)]),
        "below",
        "Stacked",
        Side::Importer,
        path("/service/stacked"),
    );
    let mut cycle = at_boot(case("instances that wait for each other", Code::BootCycle, &needy));
    cycle.system = with_stacked(cycle.system);
    cycle.system.system.binds.push(Bind { who: "..*.singularity".into(), path: "/service/*".into() });
    cycle.system.system.denies.clear();
    vec![
        case("a name that is taken", Code::AlreadyInstalled, &named("cat")),
        look_alike,
        swapped,
        paired,
        of_root,
        program,
        at_boot(case("another's path", Code::PathTaken, &taken_path)),
        at_boot(case("another's device", Code::DeviceTaken, &taken_device)),
        at_boot(case("an instance without a value", Code::ParameterMissing, &required)),
        cycle,
    ]
}

/// A service that requires a path provided by `needy`.
fn with_stacked(mut system: Installed) -> Installed {
    let manifest = with_slot(
        service("stacked", "/service/stacked", "Stacked", &[("Needy", Import)]),
        "above",
        "Needy",
        Side::Importer,
        path("/service/needy"),
    );
    system.system.instances.push(Instance::of(&manifest));
    system.programs.push(Program { manifest, key: key().public() });
    system
}

fn with_bad_rule(mut system: Installed) -> Installed {
    system.system.binds.push(Bind { who: "(".into(), path: "/x".into() });
    system
}

/// Cases for upgrades only.
pub fn upgrades() -> Vec<Case> {
    let newer = |program: &str, spoil: &dyn Fn(&mut Manifest)| {
        let system = installed();
        let mut manifest = system.manifest(program).expect("it is there").clone();
        manifest.version.minor += 1;
        spoil(&mut manifest);
        manifest
    };
    let case_of = |name, code, program: &str, spoil: &dyn Fn(&mut Manifest)| case(name, code, &newer(program, spoil));
    let stranger = |manifest: &mut Manifest| manifest.publisher = "acme".into();
    vec![
        case_of("no such program", Code::NotInstalled, "cat", &|manifest| manifest.name = "dog".into()),
        case_of("an older version", Code::OlderVersion, "cat", &|manifest| manifest.version = version(0)),
        case_of("another program of the same version", Code::SameVersion, "cat", &|manifest| {
            manifest.version = version(1);
            manifest.summary = "is another".into();
        }),
        case_of("another publisher's", Code::OtherPublisher, "cat", &stranger),
        unsigned("nobody's package in a signed one's place", &newer("cat", &|_| ())),
        unsigned("nobody's package in the root program's place", &newer("manager", &|_| ())),
        unsigned("nobody's package of the same version", &newer("cat", &|manifest| manifest.version = version(1))),
        case_of("another permission", Code::MorePermissions, "cat", &|manifest| {
            manifest.permissions.push(Permission::Power);
        }),
        case_of("children", Code::MorePermissions, "cat", &|manifest| manifest.quota.children = 3),
        case_of("a new device", Code::MorePermissions, "cat", &|manifest| {
            manifest.devices.push(DeviceNeed::named("gpu0"));
        }),
        case_of("a contract more that it can use", Code::MorePermissions, "cat", &|manifest| {
            manifest.contracts.push(contract("Console", Import));
        }),
        case_of("a parameter that the system sets", Code::SettingLost, "shell", &|manifest| {
            manifest.parameters.clear()
        }),
        case_of("another type of a parameter that the system sets", Code::SettingType, "shell", &|manifest| {
            manifest.parameters[0].kind = ParameterKind::Integer;
            manifest.parameters[0].default = None;
        }),
        moved(
            "a device that the system names",
            Code::DeviceLost,
            "disk",
            &|instance| {
                instance.devices[0] = "disk7".into();
            },
            &newer("disk", &|manifest| manifest.devices.clear()),
        ),
        moved(
            "a path that the system moves",
            Code::ProvideLost,
            "volumes",
            &|instance| {
                instance.provides[0] = "/dev/others".into();
            },
            &newer("volumes", &|manifest| manifest.provides[0].path = "/dev/sets".into()),
        ),
        moved(
            "an endpoint that the system binds",
            Code::EndpointLost,
            "shell",
            &|instance| {
                instance.endpoints[2] = Some("/dev/console".into());
            },
            &newer("shell", &|manifest| manifest.endpoints[2].name = "screen".into()),
        ),
        case_of("another version of a contract that others import", Code::OtherContractVersion, "files", &|manifest| {
            manifest.contracts[0] = other_contract("File", Export);
        }),
        case_of("a contract that others import and it no longer exports", Code::NoExporter, "stack", &|manifest| {
            manifest.contracts[0] = contract("Spare", Export);
        }),
        case_of("a requirement that comes later", Code::RequirementMissing, "fetch", &|manifest| {
            manifest.requires.push(requires("resolver", 1));
        }),
    ]
}

/// An unsigned package, in a system that accepts these.
fn unsigned(name: &'static str, manifest: &Manifest) -> Case {
    let mut case = case(name, Code::SignatureLost, manifest);
    case.package = package_build::build_unsigned(manifest.clone(), b"", &image(manifest).write())
        .expect("it is good but for that");
    case.system.system.trust.policy = manifest_model::Policy::QuarantineUnsigned;
    case
}

fn moved(name: &'static str, code: Code, program: &str, set: &dyn Fn(&mut Instance), manifest: &Manifest) -> Case {
    let mut case = case(name, code, manifest);
    let instances = &mut case.system.system.instances;
    set(instances.iter_mut().find(|instance| instance.program == program).expect("it runs"));
    case
}

/// Invalid system images, or modified ones.
pub fn broken_images() -> Vec<(&'static str, Code, Vec<u8>)> {
    let good = system_image();
    let changed = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        spoil(&mut bytes);
        bytes
    };
    let manifest = good.windows(4).position(|window| window == b"SGY2").expect("it has a manifest");
    let image = package_check::verify_system(&good).expect("it is one");
    let signature = good.windows(32).position(|window| window == image.measurement).expect("it is there") + 32;
    vec![
        ("a package", Code::NotASystemImage, signed(&Deed::Install.good())),
        ("an image of an older format", Code::NotASystemImage, changed(&|bytes| bytes[7] = b'1')),
        ("half an image", Code::Truncated, changed(&|bytes| bytes.truncate(bytes.len() / 2))),
        ("a changed rule", Code::SystemDamaged, changed(&|bytes| bytes[manifest + 8] ^= 1)),
        ("a changed signature", Code::SystemSignature, changed(&|bytes| bytes[signature] ^= 1)),
        ("another version of a package", Code::OtherIdentity, other_package()),
        ("a signer that may not", Code::NotASystemSigner, {
            // The root's right to sign systems is one byte of the head; with it the head differs.
            let mut system = installed();
            system.system.trust.roots.push(manifest_model::Root {
                key: public(9),
                publishers: "*".into(),
                systems: true,
                rights: manifest_model::Rights::ALL,
            });
            let packages: Vec<Vec<u8>> = system.programs.iter().map(|program| signed(&program.manifest)).collect();
            let mut bytes =
                package_build::build_system(&system.system, &packages, &SecretKey::from_bytes(&[9; 32])).expect("one");
            let old = system.system.encode();
            system.system.trust.roots[1].systems = false;
            let new = system.system.encode();
            assert_eq!(old.len(), new.len());
            let place = bytes.windows(old.len()).position(|window| window == old).expect("it is there");
            bytes[place..place + new.len()].copy_from_slice(&new);
            repaired(bytes, place + new.len(), packages.len())
        }),
    ]
}

/// The image with a corrected SHA-256 of its head.
fn repaired(mut bytes: Vec<u8>, manifest_end: usize, packages: usize) -> Vec<u8> {
    let end = manifest_end + packages * 36 + 32;
    let measurement = package_check::sha256(&bytes[..end]);
    bytes[end..end + 32].copy_from_slice(&measurement);
    bytes
}

/// An image in which a validly signed package of the same length replaces another.
fn other_package() -> Vec<u8> {
    let good = system_image();
    let mut manifest = installed().manifest("cat").expect("it is there").clone();
    let old = signed(&manifest);
    manifest.summary = "is part of the other system".chars().take(manifest.summary.len()).collect();
    let new = signed(&manifest);
    assert_eq!(old.len(), new.len());
    let place = good.windows(old.len()).position(|window| window == old).expect("it is there");
    let mut bytes = good;
    bytes[place..place + new.len()].copy_from_slice(&new);
    bytes
}

/// Signed systems that are invalid.
pub fn broken_systems() -> Vec<(&'static str, Code, Installed)> {
    let broken = |spoil: &dyn Fn(&mut Installed)| {
        let mut system = installed();
        spoil(&mut system);
        system
    };
    vec![
        (
            "a program without its package",
            Code::ProgramMissing,
            broken(&|system| system.system.installed.push("dog".into())),
        ),
        (
            "a package that nobody named",
            Code::ProgramUnnamed,
            broken(&|system| {
                let manifest = Deed::Install.good();
                system.programs.push(Program { manifest, key: key().public() });
            }),
        ),
        (
            "a template that starts with the system",
            Code::TemplateRuns,
            broken(&|system| {
                let console = system.programs.iter_mut().find(|program| program.manifest.name == "console");
                console.expect("it is there").manifest.code = ProgramCode::Template { digest: [0; 32] };
            }),
        ),
        (
            "two packages of one program",
            Code::ProgramTwice,
            broken(&|system| {
                let twin = system.programs[0].clone();
                system.programs.push(twin);
            }),
        ),
        ("a rule that cannot be read", Code::BadRule, with_bad_rule(installed())),
        (
            "a rule about no path",
            Code::BadRule,
            broken(&|system| {
                system.system.binds.push(Bind { who: "**".into(), path: "x".into() });
            }),
        ),
        (
            "a hardware domain for no programs",
            Code::BadDomain,
            broken(&|system| system.system.domains.push(apart("apart", &["cat"]))),
        ),
        (
            "a promise that cannot be read",
            Code::BadDeny,
            broken(&|system| {
                system.system.denies.push(Deny { who: "(".into(), reach: "/x".into() });
            }),
        ),
        (
            "a promise about no path",
            Code::BadDeny,
            broken(&|system| {
                system.system.denies.push(Deny { who: "**".into(), reach: "the network".into() });
            }),
        ),
        (
            "a promise that is broken",
            Code::DenyBroken,
            broken(&|system| {
                system.system.denies.push(Deny { who: "..fetch.singularity".into(), reach: "/service/tcp".into() });
            }),
        ),
        (
            "settings of another program",
            Code::InstanceMalformed,
            broken(&|system| system.system.instances[0].provides.clear()),
        ),
        (
            "a parameter by a number that there is not",
            Code::InstanceMalformed,
            broken(&|system| {
                let setting = Setting::Values(vec![Value::Boolean(true)]);
                system.system.instances[1].parameters.push(ParameterSetting { index: 9, setting });
            }),
        ),
        (
            "a primary instance that is not there",
            Code::PrimaryMissing,
            broken(&|system| system.system.primary = Some("dog".into())),
        ),
    ]
}
