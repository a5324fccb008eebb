//! The rules of this repository's systems are valid.

use std::fs;
use std::path::Path;

use network_rules::{NamedPort, Rules};
use toml::{Table, Value};

/// Programs with the parameter `rule`.
const STACKS: [&str; 2] = ["host-sockets", "net-stack"];

fn rules(system: &Table) -> Vec<(String, Vec<String>)> {
    let programs = system.get("program").and_then(Value::as_array).cloned().unwrap_or_default();
    let stacks = programs.iter().filter_map(|program| {
        let name = program.get("name")?.as_str()?;
        let rules = program.get("parameters")?.get("rule")?.as_array()?;
        let texts = rules.iter().map(|rule| rule.as_str().expect("a rule is text").to_string()).collect();
        STACKS.contains(&name).then(|| (name.to_string(), texts))
    });
    stacks.collect()
}

#[test]
fn the_rules_of_all_systems_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    let mut read = 0;
    for entry in fs::read_dir(folder).expect("the systems") {
        let path = entry.expect("a system").path();
        let system: Table = fs::read_to_string(&path).expect("a file").parse().expect("TOML");
        for (stack, lines) in rules(&system) {
            let ports = [NamedPort { name: "web", port: 80 }];
            if let Err(error) = Rules::parse(lines.iter().map(String::as_str), &ports) {
                panic!("{}, {stack}: {error}", path.display());
            }
            read += lines.len();
        }
    }
    assert!(read > 10, "only {read} rules were found");
}

/// The programs of a system, including those of its base, and whether each of its stacks has rules.
fn programs(folder: &Path, system: &Table) -> (Vec<String>, bool) {
    let base = system["system"].get("base").and_then(Value::as_str);
    let (mut names, mut have_rules) = match base {
        Some(base) => {
            let base = fs::read_to_string(folder.join(format!("{base}.toml"))).expect("its base");
            programs(folder, &base.parse().expect("TOML"))
        }
        None => (Vec::new(), true),
    };
    for program in system.get("program").and_then(Value::as_array).into_iter().flatten() {
        let name = program["name"].as_str().expect("a name").to_string();
        let rules = program.get("parameters").and_then(|parameters| parameters.get("rule"));
        have_rules &=
            !STACKS.contains(&name.as_str()) || rules.and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        names.push(name);
    }
    (names, have_rules)
}

/// A stack without rules is open to all, which is for tests only.
#[test]
fn all_systems_with_people_or_a_web_server_have_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the systems") {
        let path = entry.expect("a system").path();
        let system: Table = fs::read_to_string(&path).expect("a file").parse().expect("TOML");
        let (names, have_rules) = programs(&folder, &system);
        let has = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
        if has(&["shell", "login", "web-server"]) && has(&STACKS) {
            assert!(have_rules, "{}: its network stack has no rules", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} such systems were found");
}
