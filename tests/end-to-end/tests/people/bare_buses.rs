//! The buses and the clock of bare machines.

use end_to_end::{BareMachine, Format, Image, KINDS, Run};

test_needs::needs!(Qemu, E2fsprogs);

/// Arguments for QEMU, as options of the tool.
fn qemu<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().flat_map(|word| ["--qemu", *word]).collect()
}

fn disk(name: &str) -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::write(folder.path().join(name), vec![b'x'; 100_000]).expect("a file can be written");
    Image::of(folder.path(), Format::default())
}

fn path(disk: &Image) -> String {
    disk.path().display().to_string()
}

/// Device keys that `devices` prints, in bus order; virtio devices only.
fn names(run: &Run) -> Vec<String> {
    let text = run.text();
    let of_virtio = text.lines().filter(|line| line.contains("virtio ") && !line.starts_with("BUS"));
    of_virtio.map(|line| line.rsplit("  ").next().unwrap_or_default().to_string()).collect()
}

#[test]
fn devices_are_counted_in_the_order_of_the_command_line() {
    let (first, second) = (disk("first"), disk("second"));
    let paths = [path(&first), path(&second)];
    for kind in KINDS {
        let run = BareMachine::new(kind).with(&["--disk", &paths[0], "--disk", &paths[1]]);
        let run = run.run("devices; ls /fs/disk0; ls /fs/disk1");
        run.orderly();
        assert_eq!(names(&run), ["virtio-blk0", "virtio-blk1", "virtio-rng0"], "on {kind}:\n{run}");
        let text = run.text();
        let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} on {kind}:\n{run}"));
        assert!(at("first\n") < at("second\n"), "on {kind}:\n{run}");
    }
}

#[test]
fn devices_that_the_firmware_gave_no_addresses_get_some() {
    let disk = disk("file");
    let path = path(&disk);
    // This firmware only boots the kernel.
    let machine = BareMachine::new("qemu").with(&["--disk", &path]).with(&qemu(&["-bios", "qboot.rom"]));
    let run = machine.run("devices --ranges; hash -a crc32 /fs/disk0/file; kill pci-bus; hash -a crc32 /fs/disk0/file");
    run.orderly();
    assert!(run.text().contains("  0x0 ports"), "the firmware has given addresses:\n{run}");
    let sums: Vec<String> = run.text().lines().filter(|line| line.contains("disk0/file")).map(String::from).collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{run}");
}

#[test]
fn devices_that_cannot_be_used_say_why_and_the_others_work() {
    let words = [
        ["-device", "virtio-rng-pci,vectors=0"],
        ["-device", "virtio-rng-pci,disable-modern=on,disable-legacy=off"],
        ["-device", "pcie-root-port,id=below,chassis=1,slot=1"],
        ["-device", "virtio-rng-pci,bus=below"],
    ];
    let run = BareMachine::new("qemu").with(&qemu(words.as_flattened())).run("devices; random 4");
    let said = ["does not support MSI-X", "is a legacy virtio device"];
    for error in said {
        assert!(run.text().contains(error) && run.errors.contains(error), "{error}:\n{run}");
    }
    // The last is behind the bridge; numbers of unusable devices are not reused.
    let names = names(&run);
    assert_eq!(
        [names.first(), names.last()].map(|name| name.map(String::as_str)),
        [Some("virtio-blk0"), Some("virtio-rng3")],
        "{run}"
    );
    assert_eq!(run.status, Some(0), "{run}");
}

#[test]
fn a_bus_that_is_restarted_leaves_drivers_at_work_alone() {
    let disk = disk("file");
    let path = path(&disk);
    for (kind, bus) in [("microvm", "virtio-mmio-bus"), ("qemu", "pci-bus")] {
        let rounds = 10;
        // The driver outlives the bus; the restarted bus then quiesces the device that the driver leaves: once after its
        // restart, and once because the driver ended while there was no bus.
        let commands = format!(
            "i=0; while test $i '<' {rounds}; do kill {bus}; cat /fs/disk0/file | hash -a crc32; \
             kill virtio-blk; kill {bus}; sleep 300ms; cat /fs/disk0/file | hash -a crc32; i=$((i + 1)); end; \
             devices; sysinfo"
        );
        let run = BareMachine::new(kind).with(&["--disk", &path, "--smp", "2"]).run(&commands);
        let text = run.text();
        let sums: Vec<&str> =
            text.lines().filter(|line| line.len() == "01234567  -".len() && line.ends_with("  -")).collect();
        assert_eq!(sums.len(), 2 * rounds, "on {kind}:\n{run}");
        assert!(sums.iter().all(|sum| *sum == sums[0]), "on {kind}:\n{run}");
        assert_eq!(names(&run), ["virtio-blk0", "virtio-rng0"], "on {kind}:\n{run}");
        let quarantined = text.lines().find(|line| line.starts_with("quarantined blocks"));
        assert!(quarantined.is_some_and(|line| line.ends_with(" 0")), "on {kind}:\n{run}");
    }
}

#[test]
fn the_clock_is_read_at_start_and_can_be_set() {
    for kind in KINDS {
        let machine = BareMachine::new(kind).with(&qemu(&["-rtc", "base=2038-01-19T03:14:07"]));
        let run = machine.run(
            "date; date --clock; date --set '2099-12-31 23:59:59'; sleep 2s; date --clock; date; \
             date --set '2000-02-29 12:34:56'; date --clock; date --set 2026-02-29",
        );
        run.refused(&["2026-02-29", "not a time"]);
        let text = run.text();
        let lines: Vec<&str> = text.lines().collect();
        let starts = [
            "Tuesday 2038-01-19 03:14:",
            "Tuesday 2038-01-19 03:14:",
            "Thursday 2099-12-31 23:59:59 UTC",
            "Friday 2100-01-01 00:00:0",
            "Friday 2100-01-01 00:00:0",
            "Tuesday 2000-02-29 12:34:56 UTC",
            "Tuesday 2000-02-29 12:34:5",
        ];
        assert_eq!(lines.len(), starts.len(), "on {kind}:\n{run}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line} on {kind}:\n{run}");
        }
    }
}
