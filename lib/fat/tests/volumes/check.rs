//! Formatting, and detection and repair of damage, judged by fsck.fat.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::support::{Faults, MemoryDisk, TEST_TIME_S, complaints, expect_clean, made_by_linux, mount, run};
use fat::{
    BlockSource, CheckMode, CheckReport, CreateMode, DiskError, Error, Folder, FormatOptions, Volume, check, format,
};
use proptest::prelude::*;

test_needs::needs!(Dosfstools);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// A disk in a sparse file, for volumes too large for memory.
struct FileDisk(File);

impl BlockSource for FileDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.0.metadata().expect("a file").len()
    }

    fn sector_bytes(&self) -> usize {
        512
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.0.read_exact_at(&mut buffer[..bytes], offset).expect("it is read");
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.0.write_all_at(&buffer[..bytes], offset).expect("it is written");
        (Some(buffer), Ok(()))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        run(task);
    }

    fn now_s(&self) -> u32 {
        TEST_TIME_S as u32
    }
}

fn options(label: &str) -> FormatOptions<'_> {
    FormatOptions { cluster_bytes: None, label, time_s: TEST_TIME_S, serial: 0x1234_5678 }
}

fn empty(bytes: u64) -> MemoryDisk {
    MemoryDisk::new(vec![0x5A; bytes as usize])
}

#[test]
fn new_volumes_pass_fsck_fat() {
    for (bytes, bits) in [(360 * KIB, 12), (5 * MIB + 512, 12), (16 * MIB, 16), (100 * MIB, 16)] {
        let disk = empty(bytes);
        let made = run(format(disk.clone(), options("My Volume"))).expect("it is made");
        assert_eq!(made.bits, bits, "{bytes}");
        expect_clean(&disk);
        assert!(run(check(disk.clone(), CheckMode::Report)).expect("it is checked").is_clean());
        let volume = mount(&disk).expect("it mounts");
        assert_eq!(run(volume.statistics()).expect("numbers").label, "MY VOLUME");
    }
}

#[test]
fn large_volumes_are_fat32() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).expect("a file");
    open().set_len(600 * MIB).expect("a size");
    let made = run(format(FileDisk(open()), options(""))).expect("it is made");
    assert_eq!((made.bits, made.cluster_bytes), (32, 4096));
    assert!(run(check(FileDisk(open()), CheckMode::Report)).expect("it is checked").is_clean());
    let volume =
        run(Volume::mount(FileDisk(open()), crate::support::options(fat::Access::WriteIfPossible))).expect("mounted");
    let root = run(volume.root()).expect("a root");
    let file = run(root.create("large", 0o644, CreateMode::New)).expect("made");
    run(file.set_size(100 * MIB)).expect("it has room");
    run(file.close()).expect("closed");
    run(volume.unmount()).expect("it unmounts");
    let output = std::process::Command::new("/usr/sbin/fsck.fat").arg("-n").arg(&path).output().expect("fsck.fat runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn volumes_of_every_cluster_size_are_made() {
    let sizes = [(512, 8, 16), (1024, 8, 16), (2048, 8, 12), (4096, 20, 16), (8192, 20, 12)];
    let large = [(16 * 1024, 40, 12), (32 * 1024, 140, 16), (512, 40, 32)];
    for (cluster_bytes, mebibytes, bits) in sizes.into_iter().chain(large) {
        let disk = MemoryDisk::zeros(mebibytes * MIB);
        let wanted = FormatOptions { cluster_bytes: Some(cluster_bytes), ..options("") };
        let made = run(format(disk.clone(), wanted)).unwrap_or_else(|error| panic!("{cluster_bytes}: {error}"));
        assert_eq!((made.cluster_bytes, made.bits), (cluster_bytes, bits), "{mebibytes} MiB");
        expect_clean(&disk);
        assert!(run(check(disk.clone(), CheckMode::Report)).expect("it is checked").is_clean());
    }
}

#[test]
fn invalid_format_options_are_refused() {
    assert_eq!(run(format(empty(MIB).read_only(), options(""))).unwrap_err(), Error::ReadOnly);
    assert_eq!(run(format(empty(MIB), options("much too long a name"))).unwrap_err(), Error::BadName);
    assert_eq!(run(format(empty(1024), options(""))).unwrap_err(), Error::NoSpace);
    let odd = FormatOptions { cluster_bytes: Some(1000), ..options("") };
    assert!(run(format(empty(MIB), odd)).is_err());
    let large = FormatOptions { cluster_bytes: Some(16 * 1024), ..options("") };
    assert_eq!(run(format(empty(8 * MIB), large)).expect("it is made").cluster_bytes, 16 * 1024);
}

#[test]
fn other_formats_are_not_recognised() {
    for bytes in [vec![0; MIB as usize], vec![0x5A; MIB as usize], vec![0; 100], Vec::new()] {
        let disk = MemoryDisk::new(bytes);
        assert_eq!(run(check(disk.clone(), CheckMode::Report)).unwrap_err(), Error::NotRecognised);
        assert_eq!(mount(&disk).err(), Some(Error::NotRecognised));
    }
    // NTFS resembles FAT at first sight.
    let mut bytes = vec![0; MIB as usize];
    bytes[..16].copy_from_slice(b"\xEB\x52\x90NTFS    \x00\x02\x08\x00\x00");
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    assert_eq!(mount(&MemoryDisk::new(bytes)).err(), Some(Error::NotRecognised));
}

/// A volume with some content: FAT32 with one-sector clusters, so that chains are long.
fn filled() -> MemoryDisk {
    let disk = made_by_linux(4 * MIB, &["-F", "32", "-s", "1", "-n", "LABEL"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    for folder in ["folder", "folder/deeper", "Another long name"] {
        run(root.make_folder(folder)).expect("made");
        for name in ["A", "a long file name", "third"] {
            write(&root, &format!("{folder}/{name}"), &content(folder, name));
        }
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
    disk
}

fn content(folder: &str, name: &str) -> Vec<u8> {
    format!("{folder}/{name} ").into_bytes().into_iter().cycle().take(3000).collect()
}

fn write(root: &Folder<MemoryDisk>, path: &str, bytes: &[u8]) {
    let file = run(root.create(path, 0o644, CreateMode::New)).expect("it is made");
    run(file.write(0, bytes)).expect("it is written");
    run(file.close()).expect("it is closed");
}

fn look(disk: &MemoryDisk) -> CheckReport {
    run(check(disk.clone(), CheckMode::Report)).expect("it is checked")
}

/// An image to damage.
struct Image {
    bytes: Vec<u8>,
    fat: [usize; 2],
    data: usize,
}

impl Image {
    fn new(disk: &MemoryDisk) -> Image {
        let bytes = disk.bytes();
        let reserved = u16::from_le_bytes([bytes[14], bytes[15]]) as usize * 512;
        let length = u32::from_le_bytes([bytes[36], bytes[37], bytes[38], bytes[39]]) as usize * 512;
        Image { bytes, fat: [reserved, reserved + length], data: reserved + 2 * length }
    }

    /// Offset of the entry whose short name begins with this text.
    fn entry(&self, name: &str) -> usize {
        let found =
            self.bytes[self.data..].chunks(32).position(|slot| slot.starts_with(name.as_bytes()) && slot[11] != 15);
        self.data + 32 * found.unwrap_or_else(|| panic!("no entry {name}"))
    }

    fn first_cluster(&self, name: &str) -> u32 {
        let at = self.entry(name);
        u32::from(u16::from_le_bytes([self.bytes[at + 26], self.bytes[at + 27]]))
    }

    fn set_first_cluster(&mut self, name: &str, cluster: u16) {
        let at = self.entry(name);
        self.bytes[at + 26..at + 28].copy_from_slice(&cluster.to_le_bytes());
    }

    fn set_link(&mut self, cluster: u32, value: u32) {
        for fat in self.fat {
            let at = fat + cluster as usize * 4;
            self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }

    fn disk(self) -> MemoryDisk {
        MemoryDisk::new(self.bytes)
    }
}

/// Name of the damage, its implementation, and whether `Preen` suffices.
type Damage = (&'static str, fn(&mut Image), bool);

const DAMAGES: &[Damage] = &[
    ("copies of the FAT differ", |image| image.bytes[image.fat[1] + 400] ^= 3, true),
    (
        "a chain has a cycle",
        |image| image.set_link(image.first_cluster("THIRD") + 2, image.first_cluster("THIRD")),
        false,
    ),
    ("a chain leads nowhere", |image| image.set_link(image.first_cluster("THIRD") + 2, 0x0FFF_0000), false),
    ("a chain leads to a free cluster", |image| image.set_link(image.first_cluster("THIRD") + 2, 6_000), false),
    (
        "a chain leads to another",
        |image| image.set_link(image.first_cluster("THIRD"), image.first_cluster("ALONGF~1")),
        false,
    ),
    (
        "a chain that is too long leads to another",
        |image| {
            image.set_link(image.first_cluster("A    ") + 5, image.first_cluster("THIRD"));
        },
        true,
    ),
    ("a chain is too short", |image| image.set_link(image.first_cluster("THIRD") + 1, 0x0FFF_FFFF), false),
    (
        "a chain is too long",
        |image| {
            let size = image.entry("THIRD") + 28;
            image.bytes[size..size + 4].copy_from_slice(&700_u32.to_le_bytes());
        },
        true,
    ),
    (
        "an empty file has a chain",
        |image| {
            let size = image.entry("THIRD") + 28;
            image.bytes[size..size + 4].fill(0);
        },
        true,
    ),
    ("a file begins nowhere", |image| image.set_first_cluster("THIRD", 1), false),
    ("a folder begins nowhere", |image| image.set_first_cluster("DEEPER", 0xFFF0), false),
    (
        "a folder has a size",
        |image| {
            let size = image.entry("DEEPER") + 28;
            image.bytes[size] = 1;
        },
        true,
    ),
    (
        "a folder has garbage content",
        |image| {
            let at = image.data + (image.first_cluster("DEEPER") as usize - 2) * 512;
            for (index, byte) in image.bytes[at..at + 512].iter_mut().enumerate() {
                *byte = (index as u8).wrapping_mul(7) ^ 0x5A;
            }
        },
        false,
    ),
    (
        "a folder has entries after its end",
        |image| {
            let end = image.data + (image.first_cluster("DEEPER") as usize - 2) * 512 + 512 - 32;
            let third = image.entry("THIRD");
            assert_eq!(image.bytes[end - 32], 0, "its end is before its last slot");
            let entry = image.bytes[third..third + 32].to_vec();
            image.bytes[end..end + 32].copy_from_slice(&entry);
        },
        true,
    ),
    ("clusters are lost", |image| image.set_link(5_000, 0x0FFF_FFFF), true),
    (
        "a long name is orphaned",
        |image| {
            let at = image.entry("ALONGF~1");
            image.bytes[at] = 0xE5;
        },
        true,
    ),
    (
        "a name is invalid",
        |image| {
            let at = image.entry("THIRD");
            image.bytes[at + 1] = 1;
        },
        false,
    ),
    (
        "a name is duplicate",
        |image| {
            let at = image.entry("THIRD");
            image.bytes[at..at + 11].copy_from_slice(b"A          ");
        },
        false,
    ),
    (
        "`.` is wrong",
        |image| {
            let at = image.data + (image.first_cluster("DEEPER") as usize - 2) * 512;
            image.bytes[at + 26] ^= 7;
        },
        true,
    ),
    (
        "`..` is wrong",
        |image| {
            let at = image.data + (image.first_cluster("DEEPER") as usize - 2) * 512 + 32;
            image.bytes[at + 26] ^= 7;
        },
        true,
    ),
    ("the backup boot sector differs", |image| image.bytes[6 * 512 + 3] ^= 1, true),
    ("the boot sector is gone", |image| image.bytes[..512].fill(0), true),
    ("the count of free clusters is wrong", |image| image.bytes[512 + 488] ^= 1, true),
    ("the FSINFO sector is gone", |image| image.bytes[512..1024].fill(0), true),
    (
        "it was not unmounted",
        |image| {
            for fat in image.fat {
                image.bytes[fat + 7] &= !8;
            }
        },
        true,
    ),
    ("it was not unmounted by Linux", |image| image.bytes[65] |= 1, true),
];

#[test]
fn every_kind_of_damage_is_found_and_repaired() {
    let good = filled();
    for (name, damage, preen_suffices) in DAMAGES {
        let mut image = Image::new(&good);
        damage(&mut image);
        let disk = image.disk();
        let before = disk.bytes();
        let found = look(&disk);
        assert!(found.problems > 0 && found.left == found.problems, "{name}: {found:?}");
        assert!(disk.bytes() == before, "{name}: a check without repair changed the disk");
        let repaired = run(check(disk.clone(), CheckMode::Preen)).expect("it is checked");
        assert_eq!(repaired.left == 0, *preen_suffices, "{name}: {repaired:?}");
        if !preen_suffices {
            let repaired = run(check(disk.clone(), CheckMode::Repair)).expect("it is checked");
            assert_eq!(repaired.left, 0, "{name}: {repaired:?}");
        }
        let after = look(&disk);
        assert!(after.is_clean(), "{name}: {:?} is left after {:?}", after.lines, found.lines);
        if let Some(text) = complaints(&disk) {
            panic!("{name}: fsck.fat complains after {:?}:\n{text}", found.lines);
        }
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        let file = run(root.open("Another long name/a long file name"));
        if let Ok(file) = file {
            let mut bytes = vec![0; 3000];
            assert_eq!(run(file.read(0, &mut bytes)), Ok(3000), "{name}: what was good stays good");
            assert_eq!(bytes, content("Another long name", "a long file name"), "{name}");
        } else {
            assert!(name.starts_with("a long name"), "{name}");
        }
    }
}

#[test]
fn a_check_reports_disk_errors() {
    let disk = filled();
    disk.set_faults(Faults { unreadable: [40].into(), ..Faults::default() });
    assert!(matches!(run(check(disk.clone(), CheckMode::Report)), Err(Error::Disk(_))));
    let image = Image::new(&disk);
    let disk = MemoryDisk::new(image.bytes);
    disk.set_faults(Faults { writes_left: Some(0), ..Faults::default() });
    assert!(matches!(run(check(disk.clone(), CheckMode::Preen)), Err(Error::Disk(_))), "not even a flush");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Arbitrary metadata damage: repair terminates, and a volume reported clean is clean.
    #[test]
    fn any_damage_is_repaired_or_reported(
        damages in proptest::collection::vec((0_usize..200_000, any::<u8>()), 1..24),
    ) {
        let mut image = Image::new(&small());
        for (at, value) in damages {
            // Mostly the beginning of the FAT, or the entries in use.
            let at = match at % 4 {
                0 => image.fat[0] + at % 300,
                1 => image.fat[1] + at % 300,
                2 => image.data + at % 16_384,
                _ => at % 1024,
            };
            image.bytes[at] = value;
        }
        let disk = image.disk();
        let Ok(repaired) = run(check(disk.clone(), CheckMode::Repair)) else { return Ok(()) };
        let after = look(&disk);
        prop_assert_eq!(after.problems, repaired.left, "{:?} is left of {:?}", after.lines, repaired.lines);
        if repaired.left == 0
            && let Some(text) = complaints(&disk)
            // Non-ASCII labels are valid, but not for all programs.
            && !text.contains("stored in root directory is not valid")
        {
            return Err(TestCaseError::fail(format!("after {:?}, fsck.fat complains:\n{text}", repaired.lines)));
        }
    }
}

/// The volume of [`filled`], created once.
fn small() -> MemoryDisk {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    MemoryDisk::new(BYTES.get_or_init(|| filled().bytes()).clone())
}
