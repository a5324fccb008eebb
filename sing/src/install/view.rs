//! Reports as people and programs read them.

use install::{Installed, Map, Program, Reach, Report, Verdict};
use serde_json::{Value, json};

/// The report as JSON.
pub fn report_json(report: &Report) -> Value {
    let lines: Vec<Value> = report
        .lines
        .iter()
        .map(|line| {
            json!({
                "verdict": line.verdict.word(),
                "topic": line.topic.word(),
                "code": line.code.map(|code| code.text()),
                "what": line.what,
                "remedy": line.remedy,
            })
        })
        .collect();
    json!({
        "accepted": report.is_accepted(),
        "lines": lines,
        "reach": report.reach.as_deref().map(reach_json),
    })
}

/// What a program can reach, as JSON.
pub fn reach_json(reach: &Reach) -> Value {
    let reached: Vec<Value> = reach
        .reached
        .iter()
        .map(|one| json!({ "path": one.path, "contract": one.contract, "provider": one.provider, "chain": one.chain }))
        .collect();
    let groups: Vec<Value> = reach
        .groups
        .iter()
        .map(|group| json!({ "name": group.name, "in_reach": group.chain.is_some(), "chain": group.chain, "places": group.places }))
        .collect();
    let permissions: Vec<&str> = reach.permissions.iter().map(|permission| permission.word()).collect();
    json!({
        "program": reach.program,
        "reached": reached,
        "groups": groups,
        "clients": reach.clients,
        "devices": reach.devices,
        "permissions": permissions,
        "children": reach.children,
    })
}

/// The lines of a report, those that prove something only where they are wanted.
pub fn print(report: &Report, proofs: bool) {
    for line in report.lines.iter().filter(|line| proofs || line.verdict != Verdict::Proved) {
        println!("{line}");
    }
    if let Some(reach) = &report.reach {
        print!("{reach}");
    }
}

/// Everything that is known of an installed program: pairs of a word and a text.
pub fn explanation(installed: &Installed, program: &Program, map: &Map<'_>) -> Vec<(&'static str, String)> {
    let manifest = &program.manifest;
    let name = &manifest.name;
    let mut rows = vec![
        ("program", format!("{} {}", manifest.principal(), manifest.version)),
        ("category", manifest.category.to_string()),
        ("summary", manifest.summary.clone()),
        ("signed by", if program.is_unsigned() { "nobody".into() } else { format!("the key {:#}", program.key) }),
    ];
    let instances = installed.system.instances.iter().filter(|instance| instance.program == *name);
    let instances: Vec<&str> = instances.map(|instance| instance.name.as_str()).collect();
    let runs = if installed.system.root == *name {
        "the kernel starts it, and it starts all others".into()
    } else if instances.is_empty() {
        "others start it".into()
    } else {
        format!("starts with the system as {}", instances.join(", "))
    };
    rows.push(("runs", runs));
    let requires: Vec<String> = manifest.requires.iter().map(ToString::to_string).collect();
    rows.extend((!requires.is_empty()).then(|| ("requires", requires.join(", "))));
    let users = installed
        .programs
        .iter()
        .filter(|other| other.manifest.requires.iter().any(|requirement| requirement.program == *name));
    let users: Vec<&str> = users.map(|other| other.manifest.name.as_str()).collect();
    rows.extend((!users.is_empty()).then(|| ("required by", users.join(", "))));
    let provides: Vec<&str> = manifest.provides.iter().map(|provide| provide.path.as_str()).collect();
    rows.extend((!provides.is_empty()).then(|| ("provides", provides.join(", "))));
    if let Some(reach) = map.reach(name) {
        rows.push(("used by", if reach.clients.is_empty() { "nobody".into() } else { reach.clients.join(", ") }));
    }
    rows
}
