//! Disks with partition tables made by Linux's `sfdisk`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use end_to_end::{Format, Image, Machine, Run};

test_needs::needs!(E2fsprogs, Sfdisk);

const SECTOR_BYTES: u64 = 512;
const MIB: u64 = 1 << 20;

/// A disk of this size, partitioned by an `sfdisk` script.
#[track_caller]
pub(crate) fn disk(mebibytes: u64, script: &str) -> Image {
    let image = Image::empty();
    File::options()
        .write(true)
        .open(image.path())
        .and_then(|file| file.set_len(mebibytes * MIB))
        .expect("a file grows");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = Command::new("sfdisk")
        .args(["--quiet", "--no-reread", "--no-tell-kernel"])
        .arg(image.path())
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("sfdisk does not start ({error}); install fdisk or util-linux"));
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("sfdisk reads");
    assert!(child.wait().expect("sfdisk ends").success(), "sfdisk refuses {script}");
    image
}

/// Writes an ext2 volume with the contents of `folder` at a sector.
#[track_caller]
pub(crate) fn fill(image: &Image, first_sector: u64, folder: &Path) {
    let volume = Image::of(folder, Format { mebibytes: 16, ..Format::default() });
    let bytes = fs::read(volume.path()).expect("the volume can be read");
    let file = File::options().write(true).open(image.path()).expect("the disk can be opened");
    file.write_all_at(&bytes, first_sector * SECTOR_BYTES).expect("the disk can be written");
}

pub(crate) fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fs::write(folder.path().join("text"), format!("{text}\n")).expect("a file can be written");
    folder
}

pub(crate) const GPT: &str =
    "label: gpt\nstart=2048, size=32768, type=L\nstart=40960, size=32768, type=L, name=\"second\"\n";

/// A GPT disk of two volumes, the second with a large file of these bytes.
fn gpt() -> (Image, Vec<u8>) {
    let image = disk(64, GPT);
    fill(&image, 2048, folder("first").path());
    let second = folder("second");
    let mut state = 1_u64;
    let large: Vec<u8> = (0..12 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    fs::write(second.path().join("large"), &large).expect("a file can be written");
    fill(&image, 40_960, second.path());
    (image, large)
}

#[track_caller]
fn devices(run: &Run) -> Vec<String> {
    run.text().lines().filter(|line| line.starts_with("disk")).map(String::from).collect()
}

#[test]
fn files_in_the_partitions_of_a_gpt_are_read() {
    let (image, _) = gpt();
    let run = Machine::new().disk(image.path()).run_by_tool("ls /dev; cat /fs/disk0p1/text /fs/disk0p2/text");
    assert!(run.succeeded().ends_with("first\nsecond\n"), "{run}");
    assert_eq!(devices(&run), ["disk0", "disk0p1", "disk0p2"]);
}

#[test]
fn files_in_logical_partitions_are_read() {
    let image = disk(
        64,
        "label: dos\nstart=2048, size=4096, type=c\nstart=8192, size=100000, type=5\n\
         start=10240, size=2048, type=83\nstart=20480, size=32768, type=83\n",
    );
    fill(&image, 20_480, folder("logical").path());
    let run = Machine::new().disk(image.path()).run("ls /dev; cat /fs/disk0p6/text");
    assert!(run.succeeded().ends_with("logical\n"), "{run}");
    assert_eq!(devices(&run), ["disk0", "disk0p1", "disk0p5", "disk0p6"]);
}

#[test]
fn disks_without_a_table_have_no_partitions_and_nothing_is_said_of_them() {
    let plain = Image::of(folder("plain").path(), Format::default());
    let blank = Image::with_bytes(&[0; 1 << 20]);
    let run = Machine::new().disk(plain.path()).disk(blank.path()).run("ls /dev; cat /fs/disk0/text");
    assert!(run.succeeded().ends_with("plain\n"), "{run}");
    assert_eq!(devices(&run), ["disk0", "disk1"]);
}

#[test]
fn a_damaged_table_is_read_from_its_backup() {
    let (image, _) = gpt();
    let file = File::options().write(true).open(image.path()).expect("the disk can be opened");
    file.write_all_at(&[0; 512], SECTOR_BYTES).expect("the disk can be written");
    let run = Machine::new().disk(image.path()).run("cat /fs/disk0p2/text");
    assert!(run.status == Some(0) && run.text() == "second\n", "{run}");
    assert!(run.errors.contains("/dev/disk0") && run.errors.contains("the partition table is not there"), "{run}");
    // Without the backup table it is unusable.
    file.write_all_at(&[0; 512], 64 * MIB - SECTOR_BYTES).expect("the disk can be written");
    let run = Machine::new().disk(image.path()).run("ls /dev");
    run.orderly();
    assert_eq!(devices(&run), ["disk0"], "{run}");
    assert!(run.errors.contains("the backup of the partition table is not there"), "{run}");
}

#[track_caller]
fn killed_under_a_cat(victim: &str) {
    let (image, large) = gpt();
    let round = format!("cat /fs/disk0p2/large &; sleep 4ms; kill {victim} || echo not killed; wait;");
    let run = Machine::new().disk(image.path()).run(&format!("{} ls /dev", round.repeat(5)));
    run.orderly();
    assert_eq!(run.errors, "", "nobody notices");
    let names = b"disk0\ndisk0p1\ndisk0p2\n";
    assert!(run.output.windows(names.len()).any(|window| window == names), "the names have to be there again");
    assert!(run.output.starts_with(&large.repeat(5)), "what was read is not what is on the disk");
}

#[test]
fn the_service_of_partitions_is_killed_under_a_cat() {
    killed_under_a_cat("partitions");
}

#[test]
fn the_disk_driver_is_killed_under_a_cat_from_a_partition() {
    killed_under_a_cat("file-disk");
}

#[test]
fn a_disk_is_refused_while_one_of_its_partitions_is_mounted() {
    let image = disk(64, GPT);
    fill(&image, 2048, folder("first").path());
    let refused = |commands: &str, parts: &[&str]| Machine::new().disk(image.path()).run(commands).refused(parts);
    let partition = ["/dev/disk0: its partition /dev/disk0p1 is mounted at /fs/disk0p1", "umount /fs/disk0p1"];
    refused("mount disk0 /fs/whole", &partition);
    refused("format disk0 --yes", &partition);
    refused("check disk0", &partition);
}

/// A volume over the whole disk beside a partition table that covers a part of it.
#[test]
fn a_partition_is_refused_while_its_disk_is_mounted() {
    let image = disk(64, "label: dos\nstart=8192, size=8192, type=83\n");
    let table = fs::read(image.path()).expect("the disk can be read")[..512].to_vec();
    fill(&image, 0, folder("whole").path());
    image.overwrite(0, &table);
    let commands = "mount disk0 /fs/whole && cat /fs/whole/text; mount disk0p1 /fs/part || echo refused; \
        format disk0p1 --yes || echo refused; umount /fs/whole && format disk0p1 --yes && mount disk0p1";
    let run = Machine::new().disk(image.path()).run(commands);
    run.orderly();
    let text = run.text();
    assert!(text.starts_with("/dev/disk0 is at /fs/whole (ext2)\nwhole\nrefused\nrefused\n"), "{run}");
    assert!(text.ends_with("/dev/disk0p1 is at /fs/disk0p1 (ext2)\n"), "{run}");
    let whole = "/dev/disk0p1: /dev/disk0, of which it is a partition, is mounted at /fs/whole; \
                 unmount it first (`umount /fs/whole`)";
    assert_eq!(run.errors.matches(whole).count(), 2, "{run}");
}
