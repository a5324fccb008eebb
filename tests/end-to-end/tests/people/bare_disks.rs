//! Disks of bare machines: a driver killed during reads, and failing disks.

use std::collections::BTreeMap;
use std::time::Duration;

use end_to_end::{BUILD_LIMIT, BareMachine, Format, Image, Run, finish, sparse};

test_needs::needs!(Qemu, E2fsprogs);

/// A disk with a large file, which is slow to read, and a small one.
fn disk() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    sparse(&folder.path().join("sparse"), 1 << 30).expect("a sparse file can be made");
    let large: Vec<u8> = (0..24u32 << 18).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    std::fs::write(folder.path().join("large"), large).expect("a file can be written");
    std::fs::write(folder.path().join("small"), "small\n").expect("a file can be written");
    Image::of(folder.path(), Format { mebibytes: 48, ..Format::default() })
}

/// Process ids by program, from each `ps` in the output.
fn processes(text: &str) -> Vec<BTreeMap<String, Vec<u64>>> {
    let mut all = Vec::new();
    let mut listing = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.trim_start().starts_with("ID ") {
            all.push(BTreeMap::<String, Vec<u64>>::new());
            listing = true;
        } else if let (true, Some(current), [id, name, ..]) = (listing, all.last_mut(), words.as_slice())
            && let Ok(id) = id.parse()
        {
            current.entry(name.to_string()).or_default().push(id);
        } else {
            listing = false;
        }
    }
    all
}

fn run(kind: &str, disk: &str, limit: Duration, commands: &str) -> Run {
    let machine = BareMachine::new(kind).with(&["--smp", "1", "--disk", disk]);
    finish(machine.command(Some(commands)), commands, limit)
}

/// Kills the disk's driver during reads, repeatedly: the next read always works, no other process ends, and all
/// counters return to their baseline.
#[track_caller]
fn loop_of_kills(kind: &str, kills: usize, limit: Duration) {
    let disk = disk();
    // Reading the whole file fills the file system's caches before counting. The ids of all other processes must stay the
    // same.
    let commands = format!(
        "function round\n\
         cat /fs/disk0/large | hash -a crc32 &\n\
         sleep 5ms\n\
         kill virtio-blk || echo not killed\n\
         wait\n\
         cat /fs/disk0/small || echo not again\n\
         end\n\
         cat /fs/disk0/large | hash -a crc32; round; round; sleep 500ms; sysinfo; ps\n\
         i=0; while test $i '<' {kills}; do round; i=$((i + 1)); end\n\
         sleep 500ms; sysinfo; ps"
    );
    let run = run(kind, &disk.path().display().to_string(), limit, &commands);
    run.orderly();
    let text = run.text();
    assert!(!text.contains("not "), "a kill or the read after one failed:\n{run}");
    assert_eq!(text.lines().filter(|line| *line == "small").count(), kills + 2, "{run}");
    let sums: Vec<&str> = text.lines().filter(|line| line.ends_with("  -")).collect();
    assert!(
        sums.len() == kills + 3 && sums.iter().all(|sum| *sum == sums[0]),
        "what was read is not what is there:\n{run}"
    );
    let counters = run.counters();
    assert_eq!(counters.len(), 2, "{run}");
    let steady = [
        "processes",
        "threads",
        "channels",
        "blocks",
        "quarantined blocks",
        "synchronization objects",
        "exchange bytes",
        "stacks",
    ];
    for name in steady {
        let [before, after] = [0, 1].map(|index| counters[index].get(name));
        // A mutex allocates its event at the first contention: far fewer events than kills.
        let slack = if name == "synchronization objects" { kills as u64 / 8 } else { 0 };
        let steady = before.zip(after).is_some_and(|(before, after)| *after <= before + slack);
        assert!(steady, "{name}: {before:?} before {kills} kills, {after:?} after\n{run}");
    }
    // The file system retries its read, so there are no errors.
    assert_eq!(run.errors.trim(), "", "{run}");
    let [before, after] = processes(&text).try_into().expect("two lists of processes");
    for (name, ids) in &before {
        let unchanged = ["virtio-blk", "ps"].contains(&name.as_str()) || after.get(name) == Some(ids);
        assert!(unchanged, "{name} was process {ids:?} before {kills} kills and {:?} after\n{run}", after.get(name));
    }
    println!("{kills} kills on {kind} took {:?}", run.took);
}

#[test]
fn the_driver_is_killed_40_times_in_the_middle_of_a_read() {
    loop_of_kills("microvm", 40, Duration::from_secs(240));
}

#[test]
#[ignore = "long: the same 200 times"]
fn the_driver_is_killed_200_times_in_the_middle_of_a_read() {
    loop_of_kills("microvm", 200, Duration::from_secs(600));
}

#[test]
fn the_driver_of_a_pci_disk_is_killed_25_times() {
    loop_of_kills("qemu", 25, Duration::from_secs(240));
}

/// A disk on which QEMU fails some reads in the middle of the file.
#[test]
fn a_disk_that_returns_errors_is_told_and_harms_nobody_else() {
    let disk = disk();
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "[inject-error]\nevent = \"read_aio\"\nerrno = \"5\"\nsector = \"40000\"\n")
        .expect("a file can be written");
    let path = disk.path().display().to_string();
    let faulty = format!("drive.disk0.file=blkdebug:{}:{path}", rules.display());
    let words = ["--smp", "1", "--disk", &path, "--qemu=-set", &format!("--qemu={faulty}")];
    let machine = BareMachine::new("microvm").with(&words);
    let commands = "hash /fs/disk0/large; echo $?; cat /fs/disk0/small; ps";
    let run = finish(machine.command(Some(commands)), commands, BUILD_LIMIT);
    assert!(run.errors.contains("/fs/disk0/large"), "{run}");
    let text = run.text();
    assert!(text.contains("small\n") && text.contains("virtio-blk"), "{run}");
}

/// A disk smaller than its file system.
#[test]
fn a_disk_that_is_too_short_is_told() {
    let disk = disk();
    let bytes = std::fs::read(disk.path()).expect("the image can be read");
    let short = Image::with_bytes(&bytes[..8 << 20]);
    let commands = "cat /fs/disk0/small || echo not there; echo still here";
    let run = run("microvm", &short.path().display().to_string(), BUILD_LIMIT, commands);
    assert!(run.text().contains("still here"), "{run}");
    assert!(run.errors.contains("disk"), "somebody has to say what is wrong with the disk:\n{run}");
}
