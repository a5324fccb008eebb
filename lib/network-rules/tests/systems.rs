//! The rules of this repository's systems can be read.

use std::fs;
use std::path::Path;

use network_rules::{NamedPort, Rules};
use toml::{Table, Value};

/// The programs whose parameter `rule` is meant.
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
