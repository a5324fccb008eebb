//! Start order, and omitted instances.

use boot_order::{OrderError, Provider, boot_order, can_run, provider_of};
use manifest_model::{
    Category, Code, ContractSide, ContractUse, DeviceNeed, EndpointSlot, Instance, Manifest, Provide, Side, Source,
    SystemManifest,
};

/// A contract by name; no order depends on more of it.
fn contract(name: &str) -> ContractUse {
    ContractUse {
        name: name.into(),
        side: ContractSide::Both,
        fingerprint: [0; 32],
        automaton: Vec::new(),
        waits_for: None,
    }
}

/// A program that provides and needs paths; `?` before a needed path makes it optional.
fn program(name: &str, provides: &[(&str, &str)], needs: &[(&str, &str)]) -> Manifest {
    let mut contracts: Vec<String> = provides.iter().chain(needs).map(|(_, contract)| contract.to_string()).collect();
    contracts.dedup();
    let index = |name: &str| contracts.iter().position(|other| other == name).unwrap_or(0) as u16;
    let endpoints = needs.iter().enumerate().map(|(number, (path, contract))| EndpointSlot {
        name: format!("need-{number}"),
        contract: index(contract),
        side: Side::Importer,
        state: 0,
        state_name: "READY".into(),
        source: Source::Path(path.trim_start_matches('?').into()),
        optional: path.starts_with('?'),
    });
    Manifest {
        name: name.into(),
        endpoints: endpoints.collect(),
        provides: provides
            .iter()
            .map(|(path, name)| Provide { path: path.to_string(), contract: index(name) })
            .collect(),
        contracts: contracts.iter().map(|name| contract(name)).collect(),
        ..Manifest::plain(name, "singularity", Category::Console, Code::Script { text: String::new() })
    }
}

struct Case {
    system: SystemManifest,
    programs: Vec<Manifest>,
}

impl Case {
    fn new(programs: Vec<Manifest>) -> Case {
        let root = program("root", &[("/service/manager", "ServiceManager")], &[]);
        let instances = programs.iter().map(Instance::of).collect();
        let system = SystemManifest {
            name: "test".into(),
            root: "root".into(),
            primary: None,
            instances,
            installed: Vec::new(),
            binds: Vec::new(),
            denies: Vec::new(),
            domains: Vec::new(),
            trust: manifest_model::Trust::default(),
        };
        Case { system, programs: [programs, vec![root]].concat() }
    }

    fn find<'c>(&'c self) -> impl Fn(&str) -> Option<&'c Manifest> {
        move |name| self.programs.iter().find(|program| program.name == name)
    }

    fn order(&self) -> Result<Vec<&str>, OrderError> {
        let order = boot_order(&self.system, self.find())?;
        Ok(order.into_iter().map(|index| self.system.instances[index].name.as_str()).collect())
    }
}

fn usual() -> Case {
    Case::new(vec![
        program(
            "shell",
            &[],
            &[("/", "Directory"), ("/dev/console", "Console"), ("/service/manager", "ServiceManager")],
        ),
        program("ext2", &[("/fs/disk0", "Directory")], &[("/dev/disk0", "Disk")]),
        program("disk", &[("/dev/disk0", "Disk")], &[]),
        program("console", &[("/dev/console", "Console")], &[]),
        program("directory", &[("/", "Directory")], &[]),
    ])
}

#[test]
fn providers_start_first_otherwise_the_order_of_the_file_stays() {
    assert_eq!(usual().order(), Ok(vec!["disk", "ext2", "console", "directory", "shell"]));
}

#[test]
fn the_primary_instance_and_what_it_needs_start_first() {
    let mut case = usual();
    case.system.primary = Some("shell".into());
    assert_eq!(case.order(), Ok(vec!["console", "directory", "shell", "disk", "ext2"]));
    case.system.instances[0].after.push("ext2".into());
    assert_eq!(case.order(), Ok(vec!["disk", "ext2", "console", "directory", "shell"]));
}

#[test]
fn a_requirement_counts_like_an_endpoint() {
    let mut case = usual();
    case.system.instances[2].requires.push("console".into());
    assert_eq!(case.order(), Ok(vec!["console", "disk", "ext2", "directory", "shell"]));
    case.system.instances[2].requires.push("nobody".into());
    assert_eq!(case.order(), Err(OrderError::UnknownRequirement { instance: 2, name: "nobody".into() }));
}

#[test]
fn one_that_comes_after_another_runs_without_it() {
    let mut case = usual();
    case.system.instances[2].after.push("console".into());
    assert_eq!(case.order(), Ok(vec!["console", "disk", "ext2", "directory", "shell"]));
    case.system.instances[2].optional = true;
    assert!(can_run(&case.system, case.find(), 2, |_| true, |index| index == 3));
    case.system.instances[2].requires.push("console".into());
    assert!(!can_run(&case.system, case.find(), 2, |_| true, |index| index == 3));
}

#[test]
fn a_device_that_the_manifest_fixes_is_not_looked_for() {
    let mut case = usual();
    let interrupts = vec![4];
    case.programs[2].devices.push(DeviceNeed { interrupts, ..DeviceNeed::named("serial") });
    case.system.instances[2].devices.push("serial".into());
    case.system.instances[2].optional = true;
    assert!(can_run(&case.system, case.find(), 2, |_| false, |_| false));
}

#[test]
fn a_path_below_a_folder_is_served_by_the_folders_provider_under_its_contract_only() {
    let case = usual();
    let who = |path, contract| provider_of(&case.system, case.find(), path, contract);
    assert_eq!(who("/fs/disk0/a/b", "Directory"), Some(Provider::Instance(1)));
    assert_eq!(who("/fs/disk01", "Directory"), Some(Provider::Instance(4)));
    assert_eq!(who("/dev/disk1", "Disk"), None);
    assert_eq!(who("/dev/disk0", "Console"), None);
    assert_eq!(who("/service/manager", "ServiceManager"), Some(Provider::Root));
}

#[test]
fn a_missing_provider_is_an_error_unless_the_endpoint_is_optional() {
    let case = Case::new(vec![program("ext2", &[], &[("/dev/disk0", "Disk")])]);
    let expected = OrderError::NoProvider { instance: 0, slot: 0, path: "/dev/disk0".into() };
    assert_eq!(case.order(), Err(expected));
    let case = Case::new(vec![program("ext2", &[], &[("?/dev/disk0", "Disk")])]);
    assert_eq!(case.order(), Ok(vec!["ext2"]));
}

#[test]
fn an_endpoint_can_be_bound_elsewhere() {
    let mut case = Case::new(vec![
        program("ext2", &[], &[("/dev/disk0", "Disk")]),
        program("disk", &[("/dev/disk0", "Disk")], &[]),
    ]);
    case.system.instances[1].provides[0] = "/dev/disk7".into();
    assert!(case.order().is_err());
    case.system.instances[0].endpoints[0] = Some("/dev/disk7".into());
    assert_eq!(case.order(), Ok(vec!["disk", "ext2"]));
}

#[test]
fn a_cycle_is_named_without_those_that_only_wait_for_it() {
    let case = Case::new(vec![
        program("outside", &[], &[("/b", "B")]),
        program("a", &[("/a", "A")], &[("/c", "C")]),
        program("b", &[("/b", "B")], &[("/a", "A")]),
        program("c", &[("/c", "C")], &[("/b", "B")]),
    ]);
    assert_eq!(case.order(), Err(OrderError::Cycle { instances: vec![2, 1, 3] }));
}

#[test]
fn an_optional_endpoint_waits_but_makes_no_cycle() {
    let case = Case::new(vec![program("a", &[("/a", "A")], &[("?/b", "B")]), program("b", &[("/b", "B")], &[])]);
    assert_eq!(case.order(), Ok(vec!["b", "a"]));
    let case =
        Case::new(vec![program("a", &[("/a", "A")], &[("/b", "B")]), program("b", &[("/b", "B")], &[("?/a", "A")])]);
    assert_eq!(case.order(), Ok(vec!["b", "a"]));
}

#[test]
fn what_a_machine_lacks_is_left_out_with_those_that_need_it() {
    let mut case = usual();
    case.programs[2].devices.push(DeviceNeed::named("disk0"));
    case.system.instances[2].devices.push("disk0".into());
    for index in [1, 2] {
        case.system.instances[index].optional = true;
    }
    let runs = |device: &str| {
        let mut runs = vec![true; case.system.instances.len()];
        for index in boot_order(&case.system, case.find()).expect("there is an order") {
            runs[index] = can_run(&case.system, case.find(), index, |name| name == device, |other| !runs[other]);
        }
        runs
    };
    assert_eq!(runs("disk0"), [true; 5]);
    assert_eq!(runs("other"), [true, false, false, true, true]);
}
