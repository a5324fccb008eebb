//! Programs that cannot be removed, and images from which nothing can be removed.
//!
//! Removal never extends the reach of other programs, adds an owner of a resource or closes a cycle. So it violates no
//! promise, device or order, and no such case is here.

use install::{Code, Installed, Program};
use manifest_model::ContractSide::{Both, Export, Import};
use manifest_model::{
    Code as ProgramCode, ContractSide, Instance, Manifest, Parameter, ParameterSetting, Setting, Side, Source, Value,
};
use package_build::SecretKey;

use crate::Deed;
use crate::common::*;
use crate::systems::{broken_images, change, requires, with_program};

/// A removal that must be refused.
pub struct Removal {
    /// Description of the fault, for failed tests.
    pub fault: &'static str,
    /// Complete list of expected codes.
    pub codes: Vec<Code>,
    /// Program to remove.
    pub program: String,
    /// System image.
    pub image: Vec<u8>,
    /// Signing key of the new image.
    pub key: SecretKey,
}

/// The whole table.
pub fn removals() -> Vec<Removal> {
    let tables = [no_names(), nobody(), needed_by_programs(), needed_by_instances(), named(), several(), bad_images()];
    tables.into_iter().flatten().collect()
}

fn removal(fault: &'static str, codes: &[Code], program: &str, system: &Installed) -> Removal {
    Removal { fault, codes: codes.to_vec(), program: program.into(), image: image_of(system), key: key() }
}

/// Invalid names.
fn no_names() -> Vec<Removal> {
    let long = "a".repeat(64);
    let page = "cat/".repeat(1024);
    let texts = [
        ("nothing", ""),
        ("a name that is too long", &long),
        ("a page", &page),
        ("a path", "/program/cat"),
        ("a path from here", "./cat"),
        ("a way up", "../cat"),
        ("the folder above", ".."),
        ("an upper case letter", "Cat"),
        ("upper case", "CAT"),
        ("a blank before", " cat"),
        ("a blank behind", "cat "),
        ("two names", "cat fetch"),
        ("a line's end", "cat\n"),
        ("a zero byte", "c\0at"),
        ("what moves a cursor", "\u{1b}[2Jcat"),
        ("a deletion", "cart\u{7f}"),
        ("a letter of another alphabet", "c\u{430}t"),
        ("a wide letter", "\u{ff43}at"),
        ("what turns the text round", "\u{202e}tac"),
        ("a letter that is not seen", "cat\u{200b}"),
        ("a principal", "cat.singularity"),
        ("a role", "cat@admin"),
        ("a pattern", "*"),
        ("a pattern of names", "cat*"),
        ("a digit first", "1cat"),
        ("a hyphen first", "-cat"),
        ("a flag", "--all"),
        ("a low line", "cat_2"),
        ("a package file", "cat-1.0.0.package"),
    ];
    let system = installed();
    texts.map(|(fault, text)| removal(fault, &[Code::BadProgramName], text, &system)).into()
}

/// Names that are not installed.
fn nobody() -> Vec<Removal> {
    let mut renamed = installed();
    renamed.system.instances[5].name = "mounts".into();
    let longest = "b".repeat(63);
    let cases = [
        ("no such program", "dog", installed()),
        ("the longest name", longest.as_str(), installed()),
        ("a program that looks the same", "she1l", installed()),
        ("another that looks the same", "direct0ry", installed()),
        ("a letter too many", "fetchh", installed()),
        ("a letter too few", "consle", installed()),
        ("two letters swapped", "voulmes", installed()),
        ("an instance of another name", "mounts", renamed),
        ("a contract", "tcp", installed()),
        ("the system", "small", installed()),
        ("a publisher", "singularity", installed()),
        ("a program with its version", "cat-1-0-0", installed()),
    ];
    cases.map(|(fault, name, system)| removal(fault, &[Code::NotInstalled], name, &system)).into()
}

/// The small system with a service `clock` without clients.
fn with_clock() -> Installed {
    let mut system = installed();
    let clock = service("clock", "/service/clock", "Clock", &[]);
    system.system.instances.push(Instance::of(&clock));
    system.programs.push(Program { manifest: clock, key: key().public() });
    system.system.binds.push(manifest_model::Bind { who: "..*.singularity".into(), path: "/service/clock".into() });
    system
}

/// As `with_clock`, with another program that exports the same.
fn with_spare_clock() -> Installed {
    with_program(with_clock(), program("spare", &[("Clock", Export)]))
}

fn user(name: &str, contracts: &[(&str, ContractSide)]) -> Manifest {
    command(name, contracts)
}

fn bound_to_clock(name: &str) -> Manifest {
    with_slot(user(name, &[("Clock", Import)]), "time", "Clock", Side::Importer, path("/service/clock"))
}

/// A program that other programs need in one way.
fn needed_by_programs() -> Vec<Removal> {
    let requiring = |name: &str, wanted: &str| Manifest { requires: vec![requires(wanted, 1)], ..user(name, &[]) };
    let script = Manifest {
        code: ProgramCode::Script { text: "echo hello".into() },
        contracts: Vec::new(),
        endpoints: Vec::new(),
        ..Deed::Install.good()
    };
    let mut no_primary = with_program(installed(), script);
    no_primary.system.primary = None;
    let child = |source| with_slot(program("child", &[("Lonely", Import)]), "all", "Lonely", Side::Importer, source);
    let family = |children| {
        let mut parent = program("parent", &[("Lonely", Export)]);
        parent.quota.children = children;
        // It is exported there by another program, which starts none.
        with_program(with_program(installed(), parent), program("other", &[("Lonely", Export)]))
    };
    let two_versions = {
        let system = with_program(
            with_clock(),
            Manifest { contracts: vec![other_contract("Clock", Export)], ..program("spare", &[]) },
        );
        with_program(system, user("extra", &[("Clock", Import)]))
    };
    let piped = |side, source| {
        let child = with_slot(program("child", &[("Stream", Both)]), "data", "Stream", side, source);
        let mut parent = program("parent", &[("Stream", Both)]);
        parent.quota.children = 1;
        with_program(with_program(installed(), parent), child)
    };
    vec![
        removal("what a program requires", &[Code::RequirementMissing], "cat", &{
            with_program(installed(), requiring("extra", "cat"))
        }),
        removal("what two programs require", &[Code::RequirementMissing], "fetch", &{
            with_program(with_program(installed(), requiring("extra", "fetch")), requiring("more", "fetch"))
        }),
        removal("what the shell requires", &[Code::RequirementMissing], "cat", &{
            change(installed(), "shell", |shell| shell.requires.push(requires("cat", 1)))
        }),
        removal("what the root requires", &[Code::RequirementMissing], "fetch", &{
            change(installed(), "manager", |root| root.requires.push(requires("fetch", 0)))
        }),
        removal("a service that a program requires", &[Code::RequirementMissing], "clock", &{
            with_program(with_clock(), requiring("extra", "clock"))
        }),
        removal("the middle of a chain", &[Code::RequirementMissing], "extra", &{
            with_program(with_program(installed(), requiring("extra", "cat")), requiring("more", "extra"))
        }),
        removal("the only exporter of a contract", &[Code::NoExporter], "clock", &{
            with_program(with_clock(), user("extra", &[("Clock", Import)]))
        }),
        removal("the only exporter, for a service", &[Code::NoExporter], "clock", &{
            change(with_clock(), "stack", |stack| stack.contracts.push(contract("Clock", Import)))
        }),
        removal("the network, which plug-ins' hosts use", &[Code::NoExporter], "stack", &installed()),
        removal("who exports to a parent", &[Code::NoExporter], "plugin", &installed()),
        removal("the only exporter of a contract's version", &[Code::OtherContractVersion], "clock", &two_versions),
        removal("who provides a bound path", &[Code::NoProvider], "clock", &{
            with_program(with_spare_clock(), bound_to_clock("extra"))
        }),
        removal("who provides what two are bound to", &[Code::NoProvider], "clock", &{
            with_program(with_program(with_spare_clock(), bound_to_clock("extra")), bound_to_clock("more"))
        }),
        removal("who provides what an instance is bound to", &[Code::NoProvider], "clock", &{
            let mut system = with_program(with_spare_clock(), bound_to_clock("extra"));
            let extra = system.system.installed.pop().expect("it is there");
            let instance = Instance::of(system.manifest(&extra).expect("it is there"));
            system.system.instances.push(instance);
            system
        }),
        removal("who mounts what a path is below", &[Code::NoProvider], "volumes", &{
            let notes =
                with_slot(user("extra", &[("File", Import)]), "notes", "File", Side::Importer, path("/fs/notes"));
            with_program(installed(), notes)
        }),
        removal("the shell that runs a script", &[Code::ScriptWithoutShell], "shell", &no_primary),
        removal("the shell that runs two scripts", &[Code::ScriptWithoutShell], "shell", &{
            let mut second = no_primary.programs.last().expect("the script").manifest.clone();
            second.name = "second".into();
            with_program(no_primary.clone(), second)
        }),
        removal("the parent of a program", &[Code::NoParent], "parent", &{
            with_program(family(1), child(Source::Parent))
        }),
        removal("the parent of two programs", &[Code::NoParent], "parent", &{
            let second = Manifest { name: "second".into(), ..child(Source::Parent) };
            with_program(with_program(family(1), child(Source::Parent)), second)
        }),
        removal("who reads what a program writes", &[Code::NoParent], "parent", &{
            piped(Side::Importer, Source::Parent)
        }),
        removal("who writes what a program reads", &[Code::NoParent], "parent", &{
            piped(Side::Exporter, Source::Parent)
        }),
    ]
}

/// A program that instances need in one way.
fn needed_by_instances() -> Vec<Removal> {
    let with = |spoil: &dyn Fn(&mut Installed)| {
        let mut system = with_clock();
        spoil(&mut system);
        system
    };
    let renamed = |system: &mut Installed| {
        system.system.instances.last_mut().expect("the clock's").name = "time".into();
    };
    vec![
        removal("the root program", &[Code::RootProgram], "manager", &installed()),
        removal("another system's root program", &[Code::RootProgram], "clock", &{
            with(&|system| {
                system.system.instances.pop();
                system.system.root = "clock".into();
            })
        }),
        removal("the primary instance", &[Code::PrimaryMissing], "shell", &installed()),
        removal("a service that is the primary instance", &[Code::PrimaryMissing], "clock", &{
            with(&|system| system.system.primary = Some("clock".into()))
        }),
        removal("the program of the primary instance", &[Code::PrimaryMissing], "clock", &{
            with(&|system| {
                renamed(system);
                system.system.primary = Some("time".into());
            })
        }),
        removal("what an instance requires", &[Code::InstanceMissing], "clock", &{
            with(&|system| system.system.instances[1].requires.push("clock".into()))
        }),
        removal("what an instance comes after", &[Code::InstanceMissing], "clock", &{
            with(&|system| system.system.instances[2].after.push("clock".into()))
        }),
        removal("what two instances require", &[Code::InstanceMissing], "clock", &{
            with(&|system| {
                system.system.instances[2].requires.push("clock".into());
                system.system.instances[6].requires.push("clock".into());
            })
        }),
        removal("the program of an instance that another requires", &[Code::InstanceMissing], "clock", &{
            with(&|system| {
                renamed(system);
                system.system.instances[4].requires.push("time".into());
            })
        }),
        removal("one of two instances that another comes after", &[Code::InstanceMissing], "clock", &{
            with(&|system| {
                let mut second = system.system.instances.last().expect("the clock's").clone();
                (second.name, second.provides[0]) = ("second".into(), "/service/second".into());
                system.system.instances.push(second);
                system.system.instances[3].after.push("second".into());
            })
        }),
    ]
}

/// Programs that others start by name.
fn named() -> Vec<Removal> {
    let starter = |name: &str, default: &str, children| {
        let mut manifest = user(name, &[]);
        manifest.quota.children = children;
        manifest.parameters.push(Parameter { default: Some(Value::Text(default.into())), ..parameter("starts") });
        manifest
    };
    let told = |values: &[&str]| {
        let mut system = with_clock();
        let values = values.iter().map(|value| Value::Text((*value).into())).collect();
        let setting = ParameterSetting { index: 0, setting: Setting::Values(values) };
        let volumes = system.system.instances.iter_mut().find(|instance| instance.program == "volumes");
        volumes.expect("it runs").parameters.push(setting);
        system
    };
    vec![
        removal("what a default names", &[Code::NamedInParameter], "cat", &{
            with_program(installed(), starter("extra", "cat", 1))
        }),
        removal("what a second word names", &[Code::NamedInParameter], "cat", &{
            with_program(installed(), starter("extra", "fast cat", 1))
        }),
        removal("what stands behind a sign", &[Code::NamedInParameter], "clock", &{
            with_program(with_clock(), starter("extra", "time=clock", 3))
        }),
        removal("what stands before a sign", &[Code::NamedInParameter], "fetch", &{
            with_program(installed(), starter("extra", "fetch=slow", 3))
        }),
        removal("what an instance's setting names", &[Code::NamedInParameter], "clock", &told(&["clock"])),
        removal("what the second of an instance's values names", &[Code::NamedInParameter], "clock", &{
            told(&["ext2=files", "fat=clock"])
        }),
        removal("what two programs name", &[Code::NamedInParameter], "cat", &{
            with_program(with_program(installed(), starter("extra", "cat", 1)), starter("more", "cat", 2))
        }),
    ]
}

/// Programs needed in several ways: all of them are reported.
fn several() -> Vec<Removal> {
    vec![
        removal("the namespace", &[Code::NoExporter, Code::NoProvider], "directory", &installed()),
        removal("the console", &[Code::NoExporter, Code::NoProvider, Code::InstanceMissing], "console", &installed()),
        removal("a file system", &[Code::NoExporter, Code::NamedInParameter], "files", &installed()),
        removal("the host of a plug-in", &[Code::NoExporter, Code::NoParent], "host", &installed()),
        removal("a disk that another comes after", &[Code::NoExporter, Code::InstanceMissing], "disk", &{
            let mut after = installed();
            after.system.instances[2].after.push("disk".into());
            after
        }),
        removal("the primary shell, for a script", &[Code::ScriptWithoutShell, Code::PrimaryMissing], "shell", &{
            let code = ProgramCode::Script { text: "echo hello".into() };
            let script = Manifest { code, contracts: Vec::new(), endpoints: Vec::new(), ..Deed::Install.good() };
            with_program(installed(), script)
        }),
        removal(
            "a service that is bound to, required and waited for",
            &[Code::NoExporter, Code::NoProvider, Code::RequirementMissing, Code::InstanceMissing],
            "clock",
            &{
                let extra = Manifest { requires: vec![requires("clock", 1)], ..bound_to_clock("extra") };
                let mut system = with_program(with_clock(), extra);
                system.system.instances[1].after.push("clock".into());
                system
            },
        ),
    ]
}

/// Modified images, and signers without permission.
fn bad_images() -> Vec<Removal> {
    let good = system_image();
    let removal =
        |fault, code, image: Vec<u8>| Removal { fault, codes: vec![code], program: "plugin".into(), image, key: key() };
    let changed = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        spoil(&mut bytes);
        bytes
    };
    let mut cases: Vec<Removal> =
        broken_images().into_iter().map(|(fault, code, bytes)| removal(fault, code, bytes)).collect();
    cases.extend([
        removal("no image at all", Code::Truncated, Vec::new()),
        removal("a text", Code::NotASystemImage, b"this is no system image, but a text of some length".to_vec()),
        removal("an image without its last byte", Code::Truncated, changed(&|bytes| bytes.truncate(bytes.len() - 1))),
        removal("an image that goes on", Code::TrailingBytes, changed(&|bytes| bytes.push(0))),
        Removal {
            key: SecretKey::from_bytes(&[99; 32]),
            ..removal("a signer whom nobody knows", Code::NotASystemSigner, good.clone())
        },
        Removal {
            key: SecretKey::from_bytes(&[9; 32]),
            ..removal("a signer for packages alone", Code::NotASystemSigner, {
                let mut system = installed();
                let root = manifest_model::Root {
                    key: public(9),
                    publishers: "*".into(),
                    systems: false,
                    rights: manifest_model::Rights::NATIVE,
                };
                system.system.trust.roots.push(root);
                image_of(&system)
            })
        },
    ]);
    cases
}
