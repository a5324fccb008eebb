//! Processor time of processes and all they started (Linux, proc(5)).

use std::path::Path;

/// Ticks per second of the times in /proc (USER_HZ, constant on this architecture).
const TICKS_PER_S: f64 = 100.0;

/// A process, from /proc.
struct Process {
    number: u32,
    parent: u32,
    ticks: u64,
}

/// Processor time in seconds of a process and its descendants, alive or reaped.
pub fn processor_seconds(root: u32) -> f64 {
    family(root).iter().map(|process| process.ticks).sum::<u64>() as f64 / TICKS_PER_S
}

/// Ids of a process and its live descendants.
pub fn family_of(root: u32) -> Vec<u32> {
    family(root).iter().map(|process| process.number).collect()
}

fn family(root: u32) -> Vec<Process> {
    let mut others = processes(Path::new("/proc"));
    let mut family: Vec<Process> = others.extract_if(.., |process| process.number == root).collect();
    let mut next = 0;
    while let Some(number) = family.get(next).map(|process| process.number) {
        family.extend(others.extract_if(.., |process| process.parent == number));
        next += 1;
    }
    family
}

fn processes(folder: &Path) -> Vec<Process> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            process(number, &std::fs::read_to_string(entry.path().join("stat")).ok()?)
        })
        .collect()
}

/// The parenthesised name may contain anything, so fields are parsed after the last parenthesis.
fn process(number: u32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let own = ticks(11)? + ticks(12)?;
    let of_ended_children = ticks(13)? + ticks(14)?;
    Some(Process { number, parent, ticks: own + of_ended_children })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a b) c) S 3 7 7 0 -1 4194560 1 0 0 0 25 17 3 2 20 0 1 0 5 6 7";
        let process = process(7, stat).expect("a process");
        assert_eq!((process.number, process.parent, process.ticks), (7, 3, 47));
    }

    #[test]
    fn the_time_of_this_process_is_known() {
        assert!(processor_seconds(std::process::id()) >= 0.0);
        assert_eq!(processor_seconds(0x7fff_ffff), 0.0);
        assert!(family_of(std::process::id()).contains(&std::process::id()));
    }
}
