//! A small system that covers every check: a root, a namespace, a shell, a network stack, a driver, a file system that
//! registers its names at run time, and a plug-in that its parent starts.
#![allow(dead_code)]

#[path = "../../../image-check/tests/common/elf.rs"]
pub mod elf;

use std::sync::OnceLock;

use abi::{Automaton, Direction, EndpointShape, MessageShape, NO_TRANSITION, StateRow, name_tag};
use install::{Installed, Program};
use manifest_model::{
    AddressRange, Apart, Bind, Category, Code, ContractSide, ContractUse, Deny, DeviceNeed, Domain, EndpointSlot,
    Instance, Manifest, Parameter, ParameterKind, ParameterSetting, Provide, PublicKey, Setting, Side, Source,
    SystemManifest, Trust, Value, Version,
};
use package_build::{SecretKey, Signer};
use package_check::sha256;

pub fn key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32])
}

/// Endpoints in messages of the small system's contracts: message, receiver, contract (empty: any), end.
fn carried(contract: &str) -> &'static [(&'static str, Direction, &'static str, Side)] {
    match contract {
        "Directory" => &[
            ("Bind", Direction::ToExporter, "", Side::Exporter),
            ("NotBound", Direction::ToImporter, "", Side::Exporter),
            ("Register", Direction::ToExporter, "ServiceProvider", Side::Importer),
        ],
        "ServiceProvider" => &[("Connect", Direction::ToExporter, "", Side::Exporter)],
        "Tcp" => &[("Connected", Direction::ToImporter, "TcpConnection", Side::Importer)],
        "Plugin" => &[("Serve", Direction::ToExporter, "Exchange", Side::Importer)],
        "Lender" => &[("Lend", Direction::ToImporter, "TcpConnection", Side::Importer)],
        "Anything" => &[("Take", Direction::ToImporter, "", Side::Importer)],
        _ => &[],
    }
}

/// `state READY: one { Say? -> Said! -> READY; }` and a state OVER; endpoints are carried by further messages.
pub fn automaton(name: &str) -> Automaton {
    let message = |name: &str, direction, endpoints| MessageShape {
        name: name.into(),
        direction,
        scalar_words: 0,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints,
    };
    let mut messages =
        vec![message("Say", Direction::ToExporter, Vec::new()), message("Said", Direction::ToImporter, Vec::new())];
    for (text, direction, contract, side) in carried(name) {
        let contract = if contract.is_empty() { 0 } else { name_tag(contract) };
        let shape = EndpointShape { contract, importer: *side == Side::Importer, state: 0 };
        messages.push(message(text, *direction, vec![shape]));
    }
    let row = |name: &str, direction: Option<Direction>, target: u16| {
        let next =
            messages.iter().map(|message| if Some(message.direction) == direction { target } else { NO_TRANSITION });
        StateRow { name: name.into(), next: next.collect() }
    };
    let states = vec![
        row("READY", Some(Direction::ToExporter), 1),
        row("READY after Say", Some(Direction::ToImporter), 0),
        row("OVER", None, 0),
    ];
    Automaton { name: name.into(), queue_to_importer: 1, queue_to_exporter: 1, messages, states }
}

/// Fingerprint in code generated with [`automaton`].
pub fn fingerprint(name: &str) -> [u8; 32] {
    sha256(&automaton(name).encode())
}

pub fn contract(name: &str, side: ContractSide) -> ContractUse {
    let automaton = automaton(name).encode();
    ContractUse { name: name.into(), side, fingerprint: sha256(&automaton), automaton, waits_for: None }
}

/// A contract of this name with another protocol.
pub fn other_contract(name: &str, side: ContractSide) -> ContractUse {
    let mut automaton = automaton(name);
    automaton.queue_to_importer = 2;
    let automaton = automaton.encode();
    ContractUse { name: name.into(), side, fingerprint: sha256(&automaton), automaton, waits_for: None }
}

pub fn slot(manifest: &Manifest, name: &str, contract: &str, side: Side, source: Source) -> EndpointSlot {
    let contract = manifest.contract(contract).expect("it is listed") as u16;
    EndpointSlot { name: name.into(), contract, side, state: 0, state_name: "READY".into(), source, optional: false }
}

pub fn parameter(name: &str) -> Parameter {
    Parameter { help: "says something".into(), ..Parameter::plain(name, ParameterKind::Text) }
}

/// A program that lists these contracts and is given no endpoints.
pub fn program(name: &str, contracts: &[(&str, ContractSide)]) -> Manifest {
    let code = Code::Image { digest: [0; 32] };
    let contracts = contracts.iter().map(|(name, side)| contract(name, *side)).collect();
    let version = Version { major: 1, minor: 0, patch: 0 };
    let summary = "is part of the small system".into();
    Manifest { version, summary, contracts, ..Manifest::plain(name, "singularity", Category::Service, code) }
}

pub fn with_slot(mut manifest: Manifest, name: &str, contract: &str, side: Side, source: Source) -> Manifest {
    let slot = slot(&manifest, name, contract, side, source);
    manifest.endpoints.push(slot);
    manifest
}

/// A program that serves a path under a contract, through the directory.
pub fn service(name: &str, path: &str, contract: &str, contracts: &[(&str, ContractSide)]) -> Manifest {
    let all = [contracts, &[(contract, ContractSide::Export), ("ServiceProvider", ContractSide::Export)]].concat();
    let mut manifest = with_slot(program(name, &all), "clients", "ServiceProvider", Side::Exporter, Source::Parent);
    let contract = manifest.contract(contract).expect("it is listed") as u16;
    manifest.provides.push(Provide { path: path.into(), contract });
    manifest
}

pub fn path(path: &str) -> Source {
    Source::Path(path.into())
}

/// A command with the namespace and an output.
pub fn command(name: &str, contracts: &[(&str, ContractSide)]) -> Manifest {
    let all = [&[("Directory", ContractSide::Import), ("Pipe", ContractSide::Both)], contracts].concat();
    let manifest = Manifest { category: Category::Console, ..program(name, &all) };
    let manifest = with_slot(manifest, "namespace", "Directory", Side::Importer, path("/"));
    with_slot(manifest, "output", "Pipe", Side::Importer, Source::StandardOutput)
}

/// The programs of the small system.
pub fn manifests() -> Vec<Manifest> {
    use ContractSide::{Both, Export, Import};
    let mut manager = program("manager", &[("Directory", Import), ("ServiceProvider", Both), ("FileSystem", Import)]);
    manager.quota.children = 64;
    let mut directory = program("directory", &[("Directory", Export), ("ServiceProvider", Import)]);
    directory = with_slot(directory, "root", "Directory", Side::Exporter, Source::Parent);
    let contract = directory.contract("Directory").expect("it is listed") as u16;
    directory.provides.push(Provide { path: "/".into(), contract });
    directory.parameters.push(Parameter { repeated: true, ..parameter("register") });
    let mut shell = command("shell", &[("Console", Import)]);
    shell.quota.children = 16;
    shell.endpoints[1].optional = true;
    shell = with_slot(shell, "console", "Console", Side::Importer, path("/dev/console"));
    shell.parameters.push(Parameter { default: Some(Value::Text("/".into())), ..parameter("folder") });
    let stack = service("stack", "/service/tcp", "Tcp", &[("TcpConnection", Export)]);
    let mut console = service("console", "/dev/console", "Console", &[]);
    let range = |base, bytes| AddressRange { base, bytes };
    console.devices.push(DeviceNeed {
        name: "uart".into(),
        ports: vec![range(0x3f8, 8)],
        memory: vec![range(0xfee0_0000, 0x1000)],
        interrupts: vec![4],
    });
    let mut disk = service("disk", "/dev/disk0", "Disk", &[]);
    disk.devices.push(DeviceNeed::named("disk0"));
    let mut volumes =
        service("volumes", "/dev/volumes", "Volumes", &[("FileSystem", Import), ("ServiceProvider", Both)]);
    volumes.contracts.remove(3);
    volumes.quota.children = 8;
    volumes = with_slot(
        Manifest { contracts: [volumes.contracts.clone(), vec![contract_import("Directory")]].concat(), ..volumes },
        "namespace",
        "Directory",
        Side::Importer,
        path("/"),
    );
    volumes.parameters.push(Parameter { default: Some(Value::Text("files".into())), ..parameter("file-system") });
    let mut files = with_slot(
        program("files", &[("File", Export), ("FileSystem", Export), ("ServiceProvider", Export), ("Disk", Import)]),
        "control",
        "FileSystem",
        Side::Exporter,
        Source::Parent,
    );
    files = with_slot(files, "clients", "ServiceProvider", Side::Exporter, Source::Parent);
    let mut host =
        command("host", &[("Plugin", Import), ("Exchange", Export), ("Tcp", Import), ("TcpConnection", Import)]);
    host.category = Category::Service;
    host.endpoints.pop();
    host.quota.children = 4;
    let plugin = with_slot(
        program("plugin", &[("Plugin", Export), ("Exchange", Import)]),
        "application",
        "Plugin",
        Side::Exporter,
        Source::Parent,
    );
    let cat = command("cat", &[("File", Import)]);
    let fetch = command("fetch", &[("Tcp", Import), ("TcpConnection", Import)]);
    vec![manager, directory, shell, stack, console, disk, volumes, files, host, plugin, cat, fetch]
}

fn contract_import(name: &str) -> ContractUse {
    contract(name, ContractSide::Import)
}

fn instance(manifests: &[Manifest], program: &str) -> Instance {
    Instance::of(manifests.iter().find(|manifest| manifest.name == program).expect("it is there"))
}

pub fn system() -> SystemManifest {
    let manifests = manifests();
    let instance = |program| instance(&manifests, program);
    let mut directory = instance("directory");
    let lines = vec![Value::Text("volumes.singularity /fs/**".into())];
    directory.parameters.push(ParameterSetting { index: 0, setting: Setting::Values(lines) });
    let mut shell = instance("shell");
    shell.requires.push("console".into());
    shell.parameters.push(ParameterSetting { index: 0, setting: Setting::Values(vec![Value::Text("/fs".into())]) });
    let bind = |who: &str, path: &str| Bind { who: who.into(), path: path.into() };
    SystemManifest {
        name: "small".into(),
        root: "manager".into(),
        primary: Some("shell".into()),
        instances: vec![
            directory,
            shell,
            instance("stack"),
            instance("console"),
            instance("disk"),
            instance("volumes"),
            instance("host"),
        ],
        installed: ["files", "plugin", "cat", "fetch"].map(String::from).into(),
        binds: vec![
            bind("..*.singularity", "/"),
            bind("..*.singularity", "/fs/**"),
            bind("..*.singularity", "/dev/console"),
            bind("..(fetch|host).singularity", "/service/tcp"),
            bind("..files.singularity", "/dev/disk*"),
        ],
        denies: vec![Deny { who: "..plugin*.singularity".into(), reach: "/service/tcp".into() }],
        domains: Vec::new(),
        trust: Trust::in_key(key().public()),
    }
}

/// The small system, treated as completely signed.
pub fn installed() -> Installed {
    let programs = manifests().into_iter().map(|manifest| Program { manifest, key: key().public() }).collect();
    Installed { system: system(), programs }
}

/// A WebAssembly module.
pub const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// An image with the contracts of the manifest.
pub fn image(manifest: &Manifest) -> elf::Elf {
    let mut image = elf::Elf::good();
    let records: Vec<u8> = manifest
        .contracts
        .iter()
        .take(8)
        .flat_map(|contract| elf::contract_record(&contract.name, contract.fingerprint))
        .collect();
    let section = image.sections.last_mut().expect("it has one");
    section.size = records.len() as u64;
    section.bytes = records;
    image
}

pub fn signed(manifest: &Manifest) -> Vec<u8> {
    let image = match &manifest.code {
        Code::Image { .. } | Code::Unsafe { .. } | Code::Template { .. } => image(manifest).write(),
        Code::Wasm { .. } => MODULE.to_vec(),
        Code::Script { .. } => Vec::new(),
    };
    package_build::build_unchecked(manifest.clone(), b"", &image, &Signer::root(key())).expect("a package")
}

/// The small system as an image file.
pub fn system_image() -> Vec<u8> {
    image_of(&installed())
}

pub fn image_of(installed: &Installed) -> Vec<u8> {
    static SMALL: OnceLock<Vec<u8>> = OnceLock::new();
    if *installed == self::installed() {
        return SMALL.get_or_init(|| built(installed)).clone();
    }
    built(installed)
}

fn built(installed: &Installed) -> Vec<u8> {
    let packages: Vec<Vec<u8>> = installed.programs.iter().map(|program| signed(&program.manifest)).collect();
    package_build::build_system(&installed.system, &packages, &key()).expect("a system image")
}

pub fn public(byte: u8) -> PublicKey {
    SecretKey::from_bytes(&[byte; 32]).public()
}

/// A hardware domain for the programs of these patterns.
pub fn apart(name: &str, who: &[&str]) -> Apart {
    let who = who.iter().map(|&who| who.into()).collect();
    Apart { name: name.into(), kind: Domain::Ring3, who, categories: Vec::new(), each: false }
}
