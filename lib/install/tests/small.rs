//! The small system by itself: it is valid, and its programs have the expected reach.

mod common;

use common::*;
use install::{Change, Map, Program, Verdict};
use manifest_model::ContractSide::{Both, Export, Import};
use manifest_model::{Manifest, Side, Source};

fn reach(name: &str) -> install::Reach {
    let installed = installed();
    Map::of(&installed).reach(name).expect("it is there")
}

fn is_in_reach(reach: &install::Reach, contract: &str, provider: &str) -> bool {
    reach.reached.iter().any(|one| one.contract == contract && one.provider == format!("{provider}.singularity"))
}

#[test]
fn the_small_system_holds() {
    let report = install::verify(&installed());
    let said: Vec<String> =
        report.lines.iter().filter(|line| line.verdict != Verdict::Proved).map(ToString::to_string).collect();
    assert_eq!(said, Vec::<String>::new());
    let image = system_image();
    let (_, read) = install::system_of(&image).expect("the image holds too");
    assert_eq!(read.programs.len(), installed().programs.len());
}

#[test]
fn a_command_reaches_what_rules_and_its_contracts_give() {
    let cat = reach("cat");
    assert!(is_in_reach(&cat, "Directory", "directory") && is_in_reach(&cat, "File", "files"));
    assert!(!is_in_reach(&cat, "Tcp", "stack"));
    assert_eq!(cat.group("the network").expect("a group").chain, None);
    assert!(cat.to_string().contains("cannot reach: the network (no way to /service/tcp)"), "{cat}");
    let fetch = reach("fetch");
    assert!(is_in_reach(&fetch, "Tcp", "stack") && is_in_reach(&fetch, "TcpConnection", "stack"));
    let chain = fetch.group("the network").and_then(|group| group.chain.clone()).expect("a way");
    assert_eq!(chain, ["`fetch` binds /service/tcp (Tcp of `stack`), as a rule allows"]);
    let connection = fetch.reached.iter().find(|one| one.contract == "TcpConnection").expect("it is there");
    assert_eq!(
        connection.chain,
        [
            "`fetch` binds /service/tcp (Tcp of `stack`), as a rule allows",
            "`stack` sends `fetch` the importing end of TcpConnection, a new one, with Tcp.Connected"
        ]
    );
}

#[test]
fn a_plug_in_reaches_its_parent_alone() {
    let plugin = reach("plugin");
    assert_eq!(plugin.reached.len(), 1, "{plugin}");
    assert!(is_in_reach(&plugin, "Exchange", "host"));
    assert!(plugin.groups.iter().all(|group| group.chain.is_none()), "{plugin}");
    assert_eq!(plugin.clients, ["host.singularity"]);
}

/// Report of an install of the program.
fn installing(manifest: Manifest, allow: &[&str]) -> install::Report {
    let program = Program { manifest, key: key().public() };
    let allow: Vec<String> = allow.iter().map(|path| path.to_string()).collect();
    install::check(&installed(), &Change::Install { program: &program, at_boot: false, allow: &allow })
}

#[test]
fn who_lacks_a_rule_reaches_through_others_what_it_can_create_channels_of() {
    let report = installing(command("spy", &[("Tcp", Import), ("TcpConnection", Import)]), &[]);
    assert!(report.is_accepted(), "{report}");
    let reach = report.reach.expect("it would be there");
    let by_itself = |reach: &install::Reach| {
        let mut tcp = reach.reached.iter().filter(|one| one.contract == "Tcp" && one.provider == "stack.singularity");
        tcp.any(|one| one.path.as_deref() == Some("/service/tcp") && one.helpers.is_empty())
    };
    // Its provider or its parent can hand its client on to a program that may bind.
    assert!(is_in_reach(&reach, "Tcp", "stack") && !by_itself(&reach), "{reach}");
    assert!(reach.to_string().contains("can reach: Tcp of stack.singularity, through "), "{reach}");
    let allowed = installing(command("spy", &[("Tcp", Import), ("TcpConnection", Import)]), &["/service/tcp"]);
    assert!(by_itself(&allowed.reach.expect("it would be there")));
    // Without the contract it cannot reach it even with help.
    let reach = installing(command("spy", &[("File", Import)]), &[]).reach.expect("it would be there");
    assert!(!is_in_reach(&reach, "Tcp", "stack") && !is_in_reach(&reach, "TcpConnection", "stack"), "{reach}");
}

/// Returns the small system with further programs.
fn with(programs: Vec<Manifest>) -> install::Installed {
    let mut installed = installed();
    for manifest in programs {
        installed.system.installed.push(manifest.name.clone());
        installed.programs.push(Program { manifest, key: key().public() });
    }
    installed
}

/// Returns the refusals of a promise that the program does not reach the network.
fn promised(mut installed: install::Installed, who: &str) -> Vec<String> {
    installed.system.denies =
        vec![manifest_model::Deny { who: format!("..{who}.singularity"), reach: "/service/tcp".into() }];
    install::promises(&installed).into_iter().map(|finding| finding.what).collect()
}

#[test]
fn a_parent_joins_two_children_by_one_channel() {
    let mut parent = program("joiner", &[("Lender", Both)]);
    parent.quota.children = 2;
    let mut giver = command("giver", &[("Lender", Export), ("Tcp", Import), ("TcpConnection", Import)]);
    giver = with_slot(giver, "loans", "Lender", Side::Exporter, Source::Parent);
    let taker = program("taker", &[("Lender", Import), ("TcpConnection", Import)]);
    let taker = with_slot(taker, "loans", "Lender", Side::Importer, Source::Parent);
    let mut joined = with(vec![parent, giver, taker]);
    joined.system.binds.push(manifest_model::Bind { who: "..giver.singularity".into(), path: "/service/tcp".into() });
    assert_eq!(
        promised(joined, "taker"),
        ["`taker.singularity` must not reach /service/tcp (promised for `..taker.singularity`), and could: \
          `giver` binds /service/tcp (Tcp of `stack`), as a rule allows; \
          `stack` sends `giver` the importing end of TcpConnection, a new one, with Tcp.Connected; \
          `joiner` can start `giver` with its endpoint `loans` (Lender); \
          `joiner` can start `taker` with its endpoint `loans` (Lender); \
          `giver` sends `taker` the importing end of TcpConnection, one that it has, with Lender.Lend"]
    );
}

#[test]
fn an_endpoint_that_is_held_is_passed_on_at_a_start() {
    let mut parent = command("holder", &[("Tcp", Import)]);
    // No other program hands on its network endpoints.
    let others = ["host", "fetch"];
    parent.quota.children = 1;
    let heir = with_slot(program("heir", &[("Tcp", Import)]), "net", "Tcp", Side::Importer, Source::Parent);
    let mut passed = with(vec![parent, heir]);
    passed.programs.retain(|program| !others.contains(&program.manifest.name.as_str()));
    passed.system.binds.push(manifest_model::Bind { who: "..holder.singularity".into(), path: "/service/tcp".into() });
    assert_eq!(
        promised(passed, "heir"),
        ["`heir.singularity` must not reach /service/tcp (promised for `..heir.singularity`), and could: \
          `holder` binds /service/tcp (Tcp of `stack`), as a rule allows; \
          `holder` can start `heir` with its endpoint `net` (Tcp)"]
    );
}

#[test]
fn an_endpoint_that_a_parent_has_can_come_to_its_child() {
    // The parent has connections, and its contract with the child can carry them.
    let lender = |name: &str, side, quota| {
        let mut manifest = command(name, &[("Lender", side), ("TcpConnection", Import)]);
        manifest.quota.children = quota;
        manifest
    };
    let mut installed = installed();
    let mut parent = lender("fetch", Export, 1);
    parent.contracts.push(contract("Tcp", Import));
    let place = installed.programs.iter().position(|program| program.manifest.name == "fetch").expect("it is there");
    installed.programs[place].manifest = parent;
    let child = with_slot(lender("child", Import, 0), "loans", "Lender", Side::Importer, Source::Parent);
    installed.programs.push(Program { manifest: child, key: key().public() });
    let map = Map::of(&installed);
    let reach = map.reach("child").expect("it is there");
    let way = reach.reached.iter().find(|one| one.contract == "TcpConnection" && one.provider == "stack.singularity");
    let chain = &way.unwrap_or_else(|| panic!("{reach}")).chain;
    assert!(chain.iter().any(|step| step.contains("one that it has, with Lender.Lend")), "{chain:?}");
    assert!(reach.group("the network").is_some_and(|group| group.chain.is_some()));
}

#[test]
fn an_endpoint_of_any_contract_may_be_of_every_contract_that_its_sender_has() {
    let mut installed = installed();
    let place = installed.programs.iter().position(|program| program.manifest.name == "fetch").expect("it is there");
    installed.programs[place].manifest.contracts.push(contract("Anything", Export));
    installed.programs[place].manifest.quota.children = 1;
    let child = program("child", &[("Anything", Import), ("TcpConnection", Import)]);
    let child = with_slot(child, "all", "Anything", Side::Importer, Source::Parent);
    installed.programs.push(Program { manifest: child, key: key().public() });
    let reach = Map::of(&installed).reach("child").expect("it is there");
    assert!(is_in_reach(&reach, "TcpConnection", "stack"), "{reach}");
    assert!(is_in_reach(&reach, "Tcp", "stack"), "the kernel does not ask what it lists: {reach}");
}

#[test]
fn who_passes_on_what_it_cannot_use_is_on_the_way() {
    let mut installed = installed();
    let place = installed.programs.iter().position(|program| program.manifest.name == "fetch").expect("it is there");
    installed.programs[place].manifest.contracts.push(contract("Anything", Export));
    installed.programs[place].manifest.quota.children = 1;
    let mut courier = program("courier", &[("Anything", Both)]);
    courier = with_slot(courier, "all", "Anything", Side::Importer, Source::Parent);
    courier.quota.children = 1;
    let last = program("last", &[("Anything", Import), ("TcpConnection", Import)]);
    let last = with_slot(last, "all", "Anything", Side::Importer, Source::Parent);
    // Without `fetch` as its own parent, the connection comes through the courier.
    for manifest in [courier, last] {
        installed.programs.push(Program { manifest, key: key().public() });
    }
    let reach = Map::of(&installed).reach("last").expect("it is there");
    assert!(is_in_reach(&reach, "TcpConnection", "stack"), "{reach}");
    let courier = Map::of(&installed).reach("courier").expect("it is there");
    assert!(is_in_reach(&courier, "TcpConnection", "stack"), "it carries what it does not list: {courier}");
}

#[test]
fn who_starts_others_reaches_through_them() {
    let mut manifest = command("starter", &[]);
    manifest.quota.children = 1;
    let reach = installing(manifest, &[]).reach.expect("it would be there");
    assert!(!is_in_reach(&reach, "Tcp", "stack"));
    let chain = reach.group("the network").and_then(|group| group.chain.clone()).expect("a way");
    assert!(chain[0].starts_with("`starter` can start programs (quota `children` 1), such as `"), "{chain:?}");
}

#[test]
fn a_report_proves_each_topic_and_shows_the_reach() {
    let installed = installed();
    let bytes = signed(&command("hello", &[("File", Import)]));
    let request = install::Request::Install { package: &bytes, at_boot: false, allow: &[] };
    let (report, after) = install::examine(&installed, Some(&[]), &request);
    assert!(report.is_accepted(), "{report}");
    for topic in install::Topic::ALL {
        assert!(report.lines.iter().any(|line| line.topic == *topic), "{} in {report}", topic.word());
    }
    assert!(report.to_string().contains("can reach: /fs/** (File of files.singularity)"), "{report}");
    let after = after.expect("it is accepted");
    assert!(after.system.installed.contains(&"hello".to_string()) && after.program("hello").is_some());
    assert!(install::verify(&after).is_accepted());
}

#[test]
fn an_instance_starts_with_the_system_where_that_is_wanted() {
    let bytes = signed(&service("clock", "/service/clock", "Clock", &[]));
    let old = system_image();
    let request = install::Request::Install { package: &bytes, at_boot: true, allow: &[] };
    let (new, report) = install::changed(&old, &request, &key()).unwrap_or_else(|report| panic!("{report}"));
    let (_, after) = install::system_of(&new).expect("the new image is one");
    assert!(after.system.instance("clock").is_some(), "{report}");
    let request = install::Request::Uninstall { name: "clock" };
    let (again, _) = install::changed(&new, &request, &key()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(again, old, "what was installed and taken out leaves nothing behind");
}

#[test]
fn an_upgrade_keeps_what_the_system_says_of_instances() {
    let installed = installed();
    // Parameters, endpoints, devices and paths are referenced by number; here all numbers change.
    let mut manifest = installed.manifest("shell").expect("it is there").clone();
    manifest.version.minor += 1;
    manifest.parameters.insert(0, parameter("first"));
    manifest.endpoints.reverse();
    manifest.contracts.push(contract("File", Both));
    let program = Program { manifest, key: key().public() };
    let change = Change::Upgrade { program: &program, more: true };
    let report = install::check(&installed, &change);
    assert!(report.is_accepted(), "{report}");
    let (after, findings) = change.apply(&installed);
    assert_eq!(findings, []);
    let shell = after.system.instance("shell").expect("it is there");
    assert_eq!(shell.parameters.iter().map(|setting| setting.index).collect::<Vec<_>>(), [1]);
    assert_eq!((shell.endpoints.len(), &shell.requires), (3, &vec!["console".to_string()]));
}

/// Shows why a removal is never refused for a promise, device, path or cycle.
#[test]
fn taking_a_program_out_brings_nothing_into_reach_and_gives_nothing_a_second_owner() {
    use install::Topic;
    let installed = installed();
    let before = Map::of(&installed);
    for gone in &installed.programs {
        let name = &gone.manifest.name;
        let (after, findings) = Change::Uninstall { name }.apply(&installed);
        assert_eq!(findings, [], "{name}");
        let map = Map::of(&after);
        for other in &after.programs {
            let other = &other.manifest.name;
            let (old, new) = (before.reach(other).expect("it was there"), map.reach(other).expect("it is there"));
            assert_eq!(new.beyond(&old), Vec::<String>::new(), "{other} without {name}");
        }
        let report = install::check(&installed, &Change::Uninstall { name });
        let topics = [Topic::Policy, Topic::Devices, Topic::Paths, Topic::Permissions, Topic::Quotas];
        assert!(report.codes().iter().all(|code| !topics.contains(&code.topic())), "{name}:\n{report}");
    }
}
