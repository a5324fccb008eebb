//! Many concurrent readers and writers while their file system or its driver is killed.

use std::time::Duration;

use end_to_end::{Format, Image, Machine, built_system};

test_needs::needs!(E2fsprogs);

/// Kills `victims` round-robin, periodically, under a load of clients, then checks results, counters and disk.
#[track_caller]
fn storm(victims: &[&str], clients: u32, seconds: u64, kill_every_ms: u64) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let image = Image::of(folder.path(), Format { mebibytes: 128, ..Format::default() });
    let kills: String = victims.iter().map(|victim| format!("sleep {kill_every_ms}ms; kill {victim}; ")).collect();
    let rounds = seconds * 1000 / (kill_every_ms * victims.len() as u64);
    let commands = format!(
        "mkdir /fs/disk0/s; sync; sleep 200ms; {kills} sleep 1s; ls /fs/disk0/s; sysinfo\n\
         i=0; while test $i '<' {clients}; do storm /fs/disk0/s $i --seconds {seconds} &; i=$((i + 1)); end\n\
         i=0; while test $i '<' {rounds}; do {kills} i=$((i + 1)); end\n\
         wait; sleep 1s; ls /fs/disk0/s | wc -l; sync; sleep 200ms; sysinfo; umount /fs/disk0",
    );
    let system = built_system("storm");
    let limit = Duration::from_secs(seconds * 3 + 180);
    let run = Machine::new().system(system).disk(image.path()).limit(limit).run(&commands);
    run.orderly();
    let text = run.text();
    let good = text.lines().filter(|line| line.ends_with("all as it must be")).count();
    assert_eq!(good, clients as usize, "each client has to say that all was right:\n{run}");
    let crashes = text.lines().filter(|line| line.contains("crashes: all") && !line.contains(" 0 crashes")).count();
    if victims.contains(&"ext2-fs") {
        assert!(crashes > 0, "no client noticed that its file system was killed:\n{run}");
    } else {
        assert_eq!(crashes, 0, "a client noticed that the driver was killed:\n{run}");
    }
    let counters = run.counters();
    assert_eq!(counters.len(), 2, "{run}");
    for name in ["processes", "threads", "channels", "stacks"] {
        let [before, after] = [0, 1].map(|index| counters[index].get(name));
        assert!(before.is_some() && before == after, "{name}: {before:?} before the storm, {after:?} after\n{run}");
    }
    // Two exist temporarily while a client waits; a leak would be one for each kill.
    let [before, after] = [0, 1].map(|index| counters[index].get("synchronization objects").copied().unwrap_or(0));
    assert!(
        before > 0 && after <= before + 2,
        "synchronization objects: {before} before the storm, {after} after\n{run}"
    );
    image.check();
}

#[test]
fn clients_of_a_file_system_that_is_killed_see_no_wrong_data() {
    storm(&["ext2-fs"], 16, 8, 700);
}

#[test]
fn clients_do_not_notice_that_the_driver_of_the_disk_is_killed() {
    storm(&["file-disk"], 16, 5, 300);
}

#[test]
#[ignore = "takes more than ten minutes"]
fn clients_of_a_file_system_that_is_killed_for_ten_minutes_see_no_wrong_data() {
    storm(&["ext2-fs", "ext2-fs", "file-disk"], 64, 600, 2000);
}
