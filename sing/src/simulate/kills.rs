//! The workload `kills`: programs end at any ABI call, while commands use files, names and random bytes.
//!
//! After [`CALM_AFTER_S`] seconds nothing more is ended; then every service must be running again, files must be usable,
//! and the kernel's objects must be no more than in a run without kills. Deliberately not here: the machine.

use std::collections::BTreeMap;

use super::machine::{End, Report};

/// Virtual time in seconds after which no program is ended.
pub const CALM_AFTER_S: u64 = 20;

/// Counters of `sysinfo` that kills must not raise, and by how much they differ with the order of events alone: programs
/// make some mutexes and buffers when they first need them.
const COUNTERS: [(&str, u64); 6] = [
    ("processes", 0),
    ("threads", 0),
    ("channels", 0),
    ("quarantined blocks", 0),
    ("blocks", 4),
    ("synchronization objects", 8),
];

/// A program that no fault ends: with it the time for the services to come back would be over too soon.
pub const SPARED: &[&str] = &["sleep"];

/// Separates what is used under kills from what is judged.
const CALM: &str = "calm now";

/// Returns the shell's commands.
pub fn commands() -> String {
    let busy = "write /fs/disk0/kills one two three; cat /fs/disk0/kills | wc; ls /fs/disk0; cp /fs/disk0/large /fs/disk0/copy; \
                random 8; sync; sleep 2";
    let calm = calm_commands();
    let rounds = std::iter::repeat_n(busy, 7);
    rounds.chain([calm.as_str()]).collect::<Vec<_>>().join("; ")
}

/// Returns the commands that show what is to be judged, once the services had time to come back.
pub fn calm_commands() -> String {
    format!(
        "sleep 40; echo {CALM}; write /fs/disk0/last it works; cat /fs/disk0/last; knock; services --json; sysinfo --json"
    )
}

/// Returns what a run violates, compared with one of the same seed without kills.
///
/// # Errors
/// What is violated.
pub fn judge(report: &Report, console: &str, without: &str) -> Result<(), String> {
    if report.end != End::Off {
        return Err(format!("the machine ended by {:?}", report.end));
    }
    let (_, calm) = console.split_once(&format!("{CALM}\n")).ok_or("the shell did not get through its commands")?;
    let (_, expected) = without.split_once(&format!("{CALM}\n")).ok_or("a run without kills did not get through")?;
    if !calm.contains("it works\n") {
        return Err("a file cannot be written and read".into());
    }
    services_run(calm)?;
    let (found, expected) = (counters(calm)?, counters(expected)?);
    for (name, slack) in COUNTERS {
        let (found, expected) = (found.get(name).copied(), expected.get(name).copied());
        match (found, expected) {
            (Some(found), Some(expected)) if found > expected + slack => {
                return Err(format!("{found} {name} are left, {expected} without kills"));
            }
            (Some(_), Some(_)) => {}
            _ => return Err(format!("sysinfo does not tell the number of {name}")),
        }
    }
    Ok(())
}

/// Returns the JSON value that begins with this bracket on a line of its own.
fn json(console: &str, bracket: &str) -> Result<serde_json::Value, String> {
    let missing = || format!("no JSON in {bracket} on the console");
    let at = console.find(&format!("\n{bracket}\n")).ok_or_else(missing)?;
    let value = serde_json::Deserializer::from_str(&console[at..]).into_iter().next();
    value.and_then(Result::ok).ok_or_else(missing)
}

fn services_run(console: &str) -> Result<(), String> {
    let value = json(console, "[")?;
    let services = value.as_array().filter(|services| !services.is_empty()).ok_or("there are no services")?;
    match services.iter().find(|service| service["state"] != "running") {
        None => Ok(()),
        Some(service) => {
            let [name, state, reason] = ["name", "state", "reason"].map(|key| service[key].as_str().unwrap_or("?"));
            Err(format!("the service {name} is {state}, not running ({reason})"))
        }
    }
}

fn counters(console: &str) -> Result<BTreeMap<String, u64>, String> {
    let value = json(console, "{")?;
    let counters = value.as_object().ok_or("no counters")?;
    Ok(counters.iter().filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(state: &str, threads: u64) -> String {
        let counters = COUNTERS.map(|(name, _)| format!("\"{name}\": {}", if name == "threads" { threads } else { 5 }));
        format!(
            "x\n{CALM}\nit works\n[\n{{\"name\": \"a\", \"state\": \"{state}\"}}\n]\n{{\n{}\n}}\n",
            counters.join(",")
        )
    }

    #[test]
    fn a_service_that_is_not_back_and_a_leak_are_found() {
        let (hash, faults) = (String::new(), Vec::new());
        let report =
            Report { hash, virtual_ns: 0, calls: 0, events: 0, end: End::Off, status: 0, faults, killed: Vec::new() };
        let judged = |state, threads| judge(&report, &console(state, threads), &console("running", 3));
        assert_eq!(judged("running", 3), Ok(()));
        assert!(judged("stopped", 3).is_err_and(|what| what.contains("the service a is stopped")));
        assert!(judged("running", 4).is_err_and(|what| what.contains("4 threads are left, 3 without kills")));
        let stuck = Report { end: End::Stuck, ..report.clone() };
        assert!(super::judge(&stuck, "", "").is_err());
    }
}
