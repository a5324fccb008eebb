//! An analysis as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::deadlock::waits::Claim;
use crate::deadlock::{Analysis, Circle, Verdict};

/// Returns what a program says of its waits.
pub fn claim(claim: &Claim) -> String {
    let awaited: Vec<String> =
        claim.awaited.iter().map(|(contract, whose)| format!("{contract}{}", whose.suffix())).collect();
    let awaited = if awaited.is_empty() { "nothing".into() } else { awaited.join(", ") };
    format!("`{}`: answers of {} wait for {awaited}", claim.program, claim.contract)
}

/// Returns the lines for people.
pub fn text(analysis: &Analysis) -> String {
    let mut out = String::new();
    let verdict = match (analysis.circles.len(), analysis.is_free()) {
        (0, _) => "nobody waits in a circle".to_string(),
        (_, true) => "there are circles of waits, and none of them is a deadlock".to_string(),
        (_, false) => "a deadlock is possible, or not excluded".to_string(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "system {}: {verdict}", analysis.system);
    for (layer, tasks) in analysis.layers.iter().enumerate() {
        let _ = writeln!(out, "  {layer:>2}  {}", tasks.join(", "));
    }
    let _ = writeln!(out, "      and {} programs that nobody waits for", analysis.clients.len());
    for circle in &analysis.circles {
        out.push_str(&circle_text(circle));
    }
    if !analysis.claims.is_empty() {
        out.push_str("  relies on what manifests say (`waits-for`):\n");
        for claim in &analysis.claims {
            let _ = writeln!(out, "      {claim}");
        }
    }
    out
}

fn circle_text(circle: &Circle) -> String {
    let mut out = format!("  circle of {}:\n", circle.tasks.join(", "));
    for (from, to, contract) in &circle.waits {
        let _ = writeln!(out, "      `{from}` waits for `{to}` on {contract}");
    }
    match &circle.verdict {
        Verdict::Cleared => out.push_str("    no deadlock: in no state of its channels do all wait\n"),
        Verdict::Undecided(why) => {
            let _ = writeln!(out, "    not decided: {why}");
        }
        Verdict::Deadlock(story) => {
            out.push_str("    deadlock:\n");
            for (number, line) in story.iter().enumerate() {
                let _ = writeln!(out, "    {:>4}. {line}", number + 1);
            }
            out.push_str(
                "    let one of them answer without waiting, and say so in its manifest (`waits-for`); or change who asks whom\n",
            );
        }
    }
    out
}

/// Returns the object for programs.
pub fn json(analysis: &Analysis) -> Value {
    let circles: Vec<Value> = analysis.circles.iter().map(circle_json).collect();
    json!({
        "system": analysis.system, "ok": analysis.is_free(), "layers": analysis.layers, "clients": analysis.clients,
        "circles": circles, "claims": analysis.claims,
    })
}

fn circle_json(circle: &Circle) -> Value {
    let (verdict, story, why) = match &circle.verdict {
        Verdict::Cleared => ("cleared", Value::Null, Value::Null),
        Verdict::Deadlock(story) => ("deadlock", json!(story), Value::Null),
        Verdict::Undecided(why) => ("undecided", Value::Null, json!(why)),
    };
    let waits: Vec<Value> = circle
        .waits
        .iter()
        .map(|(from, to, contract)| json!({ "from": from, "to": to, "contract": contract }))
        .collect();
    json!({ "tasks": circle.tasks, "waits": waits, "verdict": verdict, "story": story, "reason": why })
}
