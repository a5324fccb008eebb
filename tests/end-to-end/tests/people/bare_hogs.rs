//! A small machine and a program that exhausts its memory: the program is ended with a reason; the shell's user
//! notices nothing else, except perhaps a program that is refused memory meanwhile. (The first Singularity hung here,
//! as the paper on ext2 reports.)

use end_to_end::BareMachine;

test_needs::needs!(Qemu);

/// Output of `hash -a crc32` for empty input.
const OF_NOTHING: &str = "00000000  -";
/// Number of checksums; the last one after memory is free again.
const SUMS: usize = 4;

#[track_caller]
fn is_ended(what: &str, held: &str) {
    let machine = BareMachine::new("microvm").with(&["--system", "hog", "--smp", "1", "--mem", "64M"]);
    let commands = format!(
        "hog {what} &\n\
         for n in 1 2 3; do ls / | hash -a crc32; sleep 100ms; end\n\
         wait\n\
         for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 100ms; end\n\
         ls / | hash -a crc32; echo still here; ps; log | cat"
    );
    let run = machine.run(&commands);
    let text = run.text();
    let sums: Vec<&str> = text.lines().filter(|line| line.ends_with("  -")).collect();
    // While memory is low no program gets more: its checksum is of no bytes, or missing. The program or the next in the
    // pipe reports it (who is refused even the memory for a message ends with status 1).
    let reports = ["the machine has no more of it", "standard input ended early"];
    let refused = run.errors.lines().filter(|line| reports.iter().any(|report| line.contains(report))).count();
    let right = sums.last().filter(|sum| **sum != OF_NOTHING);
    let wrong: Vec<&&str> = sums.iter().filter(|sum| Some(sum) != right.as_ref()).collect();
    let missing = SUMS.checked_sub(sums.len());
    let is_explained =
        missing.is_some_and(|missing| missing + wrong.len() <= refused) && wrong.iter().all(|sum| **sum == OF_NOTHING);
    assert!(right.is_some() && is_explained, "the shell has to go on meanwhile:\n{run}");
    assert!(text.contains("still here\n") && run.status == Some(0), "{run}");
    // On the debug output, because the log has only the last epitaphs and each child of the hog leaves one.
    let reason = "ended because memory ran out";
    let ended = run.errors.lines().any(|line| line.starts_with("hog ") && line.contains(reason) && line.contains(held));
    let logged = text.lines().any(|line| line.contains(" hog ") && line.contains("ended because memory ran out"));
    assert!(ended && logged, "the hog has to end, with the reason:\n{run}");
    assert!(!text.lines().any(|line| line.contains(" hog ") && line.contains("running")), "{run}");
    for unaware in ["service-manager", "directory", "serial-console", "shell"] {
        let alive = text.lines().any(|line| line.contains(&format!(" {unaware} ")) && line.contains("running"));
        assert!(alive, "{unaware} does not run any more:\n{run}");
    }
}

#[test]
fn who_allocates_without_end_is_ended() {
    is_ended("memory", "held");
    is_ended("blocks", "held");
}

#[test]
fn who_starts_children_without_end_is_ended_with_them() {
    is_ended("children", "programs that it started held");
}

#[test]
fn who_fills_every_channel_it_can_get_is_ended() {
    is_ended("channels", "held");
}
