//! Reports as text and JSON.

use install::{Reach, Report, Verdict};
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

/// Returns the reach of a program, as JSON.
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

/// Prints the lines of a report; proofs only if `proofs` is set.
pub fn print(report: &Report, proofs: bool) {
    for line in report.lines.iter().filter(|line| proofs || line.verdict != Verdict::Proved) {
        println!("{line}");
    }
    if let Some(reach) = &report.reach {
        print!("{reach}");
    }
}
