//! The file system or the disk driver is killed during a `cat`.

use std::time::Duration;

use end_to_end::{Format, Image, Machine, Run, sparse};

test_needs::needs!(E2fsprogs);

/// A disk with a large file, which is slow to read, and a small one.
fn disk() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    sparse(&folder.path().join("large"), 2 << 30).expect("a sparse file can be made");
    std::fs::write(folder.path().join("small"), "small\n").expect("a file can be written");
    Image::of(folder.path(), Format { mebibytes: 16, ..Format::default() })
}

/// Long enough for a `cat` to start on a busy host, and far too short for it to finish.
const WELL_UNDER_WAY: &str = "60ms";

/// A shell function `round PROGRAM`: kills it during a `cat`, the shell's job `number`, after a time `after`, then
/// reads the other file.
fn round(number: &str, after: &str) -> String {
    format!(
        "function round\n\
         cat /fs/disk0/large | hash -a crc32 &\n\
         sleep {after}\n\
         kill $1 || echo not killed\n\
         wait {number}\n\
         cat /fs/disk0/small || echo not again\n\
         end\n"
    )
}

/// Number of lines on standard error with this prefix.
fn said_by<'a>(run: &'a Run, program: &str) -> Vec<&'a str> {
    run.errors.lines().filter(|line| line.starts_with(&format!("{program}: "))).collect()
}

#[track_caller]
fn one_clear_error(victim: &str) {
    let run = Machine::new()
        .disk(disk().path())
        .run(&format!("{}sleep 30 &\nround {victim}\nps", round("2", WELL_UNDER_WAY)));
    run.orderly();
    let said = said_by(&run, "cat");
    assert_eq!(said.len(), 1, "one error of `cat` was to be expected:\n{run}");
    assert!(said[0].contains("/fs/disk0/large") && said[0].contains("ended during the request"), "{run}");
    let text = run.text();
    assert!(text.contains("small\n") && !text.contains("not "), "the next `cat` has to work:\n{run}");
    for unaware in ["directory", "console", "service-manager", "sleep", "answer"] {
        assert!(said_by(&run, unaware).is_empty(), "{unaware} has no part in this:\n{run}");
        let alive = text.lines().any(|line| line.split_whitespace().nth(1) == Some(unaware));
        assert!(alive, "{unaware} does not run any more:\n{run}");
    }
}

#[test]
fn the_file_system_is_killed_under_a_cat() {
    one_clear_error("ext2-fs");
}

/// The file system retries reads at the restarted driver, so that clients notice nothing.
#[test]
fn the_disk_driver_is_killed_under_a_cat() {
    let commands = format!("{}hash -a crc32 /fs/disk0/large\nround file-disk\nps", round("1", "5ms"));
    let run = Machine::new().disk(disk().path()).run(&commands);
    run.orderly();
    let text = run.text();
    let sums: Vec<&str> =
        text.lines().filter(|line| line.contains("  ")).filter_map(|line| line.split("  ").next()).collect();
    assert!(sums.len() > 2 && sums[0] == sums[1] && text.contains("small\n"), "{run}");
    assert_eq!(run.errors.trim(), "", "{run}");
    assert!(text.lines().any(|line| line.split_whitespace().nth(1) == Some("ext2-fs")), "{run}");
}

#[test]
fn a_cat_to_the_terminal_says_the_same() {
    let commands = format!("cat /fs/disk0/large &; sleep {WELL_UNDER_WAY}; kill ext2-fs; wait; cat /fs/disk0/small");
    let run = Machine::new().disk(disk().path()).run(&commands);
    assert_eq!(said_by(&run, "cat").len(), 1, "status {:?}, standard error:\n{}", run.status, run.errors);
    assert!(run.output.ends_with(b"small\n") && run.status == Some(0), "standard error:\n{}", run.errors);
}

#[track_caller]
fn loop_of_kills(kills: usize, limit: Duration) {
    let rounds = kills.div_ceil(2);
    let commands = format!(
        "{}\
         round ext2-fs; round file-disk; sleep 500ms; sysinfo\n\
         i=0; while test $i '<' {rounds}; do round ext2-fs; round file-disk; i=$((i + 1)); end\n\
         sleep 500ms; sysinfo",
        round("", "5ms")
    );
    let run = Machine::new().disk(disk().path()).limit(limit).run(&commands);
    run.orderly();
    let text = run.text();
    assert!(!text.contains("not "), "a kill or the `cat` after one failed:\n{run}");
    assert_eq!(text.lines().filter(|line| *line == "small").count(), 2 * rounds + 2, "{run}");
    let counters = run.counters();
    assert_eq!(counters.len(), 2, "{run}");
    let steady = ["processes", "threads", "channels", "blocks", "synchronization objects", "exchange bytes", "stacks"];
    for name in steady {
        let [before, after] = [0, 1].map(|index| counters[index].get(name));
        assert!(before.is_some() && before == after, "{name}: {before:?} before {kills} kills, {after:?} after");
    }
    // The shell's heap keeps a few pages for its list of jobs.
    let [before, after] = [0, 1].map(|index| counters[index].get("pages").copied().unwrap_or(0));
    assert!(before > 0 && after <= before + 16, "pages: {before} before {kills} kills, {after} after");
    println!("{kills} kills took {:?}", run.took);
}

#[test]
fn after_25_kills_all_counters_are_as_before() {
    loop_of_kills(25, Duration::from_secs(120));
}

#[test]
#[ignore = "takes about a minute"]
fn after_1000_kills_all_counters_are_as_before() {
    loop_of_kills(1000, Duration::from_secs(900));
}
