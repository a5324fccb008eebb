//! Small volumes, and all client operations on one, regardless of damage.

use fat::{CheckMode, CreateMode, Folder, FormatOptions, Kind, Volume, check, format};

use crate::disk::{MemoryDisk, TEST_TIME_S, mount, run};

pub const KIB: usize = 1024;

fn made(bytes: usize) -> MemoryDisk {
    let disk = MemoryDisk::new(vec![0; bytes]);
    let options = FormatOptions { cluster_bytes: Some(512), label: "FUZZ", time_s: TEST_TIME_S, serial: 1 };
    run(format(disk.clone(), options)).expect("it is made");
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    for folder in ["a", "a/b", "a folder with a long name"] {
        run(root.make_folder(folder)).expect("made");
        for number in 0..4 {
            let path = format!("{folder}/file number {number}");
            let file = run(root.create(&path, 0o644, CreateMode::New)).expect("made");
            run(file.write(0, &vec![number; 1500 * number as usize])).expect("written");
            run(file.close()).expect("closed");
        }
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    disk
}

/// Runs all client operations on everything reachable. Errors are fine.
fn use_everything(volume: &Volume<MemoryDisk>, root: &Folder<MemoryDisk>) {
    /// Damage can make folders contain each other.
    const MOST: usize = 60;
    let mut folders = vec![String::new()];
    let mut paths = Vec::new();
    let mut at = 0;
    while at < folders.len() && folders.len() + paths.len() < MOST {
        let folder = folders[at].clone();
        at += 1;
        let mut position = Some(0);
        let mut pages = 0;
        while let Some(from) = position
            && pages < MOST
        {
            pages += 1;
            let Ok(listing) = run(root.list(&folder, from, 16)) else { break };
            for entry in listing.entries {
                let path = format!("{folder}{}", entry.name);
                if entry.kind == Kind::Directory {
                    folders.push(format!("{path}/"));
                } else {
                    paths.push(path);
                }
            }
            assert!(listing.next.is_none_or(|next| next > from), "a position goes on");
            position = listing.next;
        }
    }
    let mut buffer = vec![0; 5000];
    for path in &paths {
        let _ = run(root.attributes(path));
        if let Ok(file) = run(root.open(path)) {
            let _ = run(file.read(0, &mut buffer));
            let _ = run(file.read(1 << 31, &mut buffer));
            let _ = run(file.append(&buffer));
            let _ = run(file.write(10_000, &buffer[..700]));
            let _ = run(file.set_size(2_000));
            let _ = run(file.close());
        }
    }
    for (number, path) in paths.iter().enumerate() {
        let _ = run(root.rename(path, &format!("{}renamed {number}", folders[number % folders.len()])));
        let _ = run(root.remove_file(path));
    }
    for (number, folder) in folders.iter().enumerate() {
        let _ = run(root.make_folder(&format!("{folder}new folder {number}")));
        let _ = run(root.rename(folder, &format!("{}moved {number}", folders[(number + 1) % folders.len()])));
        let _ = run(root.remove_folder(folder));
    }
    let _ = run(volume.statistics());
    let _ = run(volume.sync());
}

/// Uses, checks and repairs a damaged volume; only a panic is a failure.
pub fn trial(bytes: Vec<u8>) {
    let disk = MemoryDisk::new(bytes.clone());
    if let Ok(volume) = mount(&disk) {
        if let Ok(root) = run(volume.root()) {
            use_everything(&volume, &root);
        }
        let _ = run(volume.unmount());
    }
    for mode in [CheckMode::Preen, CheckMode::Repair] {
        for disk in [MemoryDisk::new(bytes.clone()), disk.clone()] {
            let Ok(report) = run(check(disk.clone(), mode)) else { continue };
            if report.left == 0 {
                let again = run(check(disk, CheckMode::Report)).expect("what was repaired can be checked");
                assert!(again.is_clean(), "repaired, and then {:?}; before {:?}", again.lines, report.lines);
            }
        }
    }
}

/// A volume of FAT12.
pub fn fat12() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| made(400 * KIB).bytes())
}

/// A volume of FAT32.
pub fn fat32() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    // The minimum that a formatter makes.
    BYTES.get_or_init(|| {
        let disk = MemoryDisk::new(vec![0; 600 * KIB]);
        let mut bytes = made_small_fat32();
        bytes.resize(disk.bytes().len(), 0);
        bytes
    })
}

/// A handmade FAT32 volume, with fewer clusters than FAT32 should have, which all systems accept nonetheless.
fn made_small_fat32() -> Vec<u8> {
    let mut bytes = vec![0; 600 * KIB];
    bytes[..11].copy_from_slice(b"\xEB\x58\x90BY HAND ");
    bytes[11..14].copy_from_slice(&[0, 2, 1]);
    bytes[14..17].copy_from_slice(&[32, 0, 2]);
    bytes[21] = 0xF8;
    bytes[32..36].copy_from_slice(&1200_u32.to_le_bytes());
    bytes[36..40].copy_from_slice(&9_u32.to_le_bytes());
    bytes[44..48].copy_from_slice(&2_u32.to_le_bytes());
    bytes[48..52].copy_from_slice(&[1, 0, 6, 0]);
    bytes[66] = 0x29;
    bytes[71..90].copy_from_slice(b"NO NAME    FAT32   ");
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    let boot = bytes[..512].to_vec();
    bytes[6 * 512..7 * 512].copy_from_slice(&boot);
    for fat in [32 * 512, 41 * 512] {
        for (index, value) in [0x0FFF_FFF8_u32, 0x0FFF_FFFF, 0x0FFF_FFFF].iter().enumerate() {
            bytes[fat + index * 4..fat + index * 4 + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    let disk = MemoryDisk::new(bytes);
    run(check(disk.clone(), CheckMode::Preen)).expect("what is missing is added");
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    for folder in ["a", "a/b", "a folder with a long name"] {
        run(root.make_folder(folder)).expect("made");
        for number in 0..4_u8 {
            let file =
                run(root.create(&format!("{folder}/file number {number}"), 0o644, CreateMode::New)).expect("made");
            run(file.write(0, &vec![number; 1500 * number as usize])).expect("written");
            run(file.close()).expect("closed");
        }
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    let report = run(check(disk.clone(), CheckMode::Report)).expect("it is checked");
    assert!(report.is_clean() && report.bits == 32 && report.files == 12, "{report:?}");
    disk.bytes()
}
