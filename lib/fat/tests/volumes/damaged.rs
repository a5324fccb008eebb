//! Volumes with damage of every kind, used as if nothing were wrong: no panic, no loop without end, no write to
//! what the requests do not concern.

use crate::support::{MemoryDisk, TEST_TIME_S, mount, run};
use fat::{CheckMode, CreateMode, Folder, FormatOptions, Kind, Volume, check, format};
use proptest::prelude::*;

const KIB: usize = 1024;

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

/// Everything that a client can do, wherever names lead. Errors are answers.
fn use_everything(volume: &Volume<MemoryDisk>, root: &Folder<MemoryDisk>) {
    /// Damage can make folders lead to each other for ever.
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

fn damage(bytes: &mut [u8], data_at: usize, damages: &[(u32, u8)]) {
    for (at, value) in damages {
        let at = *at as usize;
        // The boot sector and the FAT, or the first folders.
        let place = if at.is_multiple_of(2) { at % data_at } else { data_at + at % (24 * KIB) };
        let last = bytes.len() - 1;
        bytes[place.min(last)] = *value;
    }
}

fn trial(good: &[u8], data_at: usize, damages: &[(u32, u8)]) {
    let mut bytes = good.to_vec();
    damage(&mut bytes, data_at, damages);
    let disk = MemoryDisk::new(bytes.clone());
    if let Ok(volume) = mount(&disk) {
        if let Ok(root) = run(volume.root()) {
            use_everything(&volume, &root);
        }
        let _ = run(volume.unmount());
    }
    for mode in [CheckMode::Mend, CheckMode::Repair] {
        let _ = run(check(MemoryDisk::new(bytes.clone()), mode));
        let _ = run(check(disk.clone(), mode));
    }
}

fn fat12() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| made(400 * KIB).bytes())
}

fn fat32() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    // The smallest that a formatter makes.
    BYTES.get_or_init(|| {
        let disk = MemoryDisk::new(vec![0; 600 * KIB]);
        let mut bytes = made_small_fat32();
        bytes.resize(disk.bytes().len(), 0);
        bytes
    })
}

/// A FAT32 volume by hand: less clusters than FAT32 should have, which all systems read as FAT32 nonetheless.
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
    run(check(disk.clone(), CheckMode::Mend)).expect("what is missing is added");
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
    let report = run(check(disk.clone(), CheckMode::Look)).expect("it is checked");
    assert!(report.is_clean() && report.bits == 32 && report.files == 12, "{report:?}");
    disk.bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_fat12_harms_nobody(damages in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..30)) {
        trial(fat12(), 8 * KIB, &damages);
    }

    #[test]
    fn a_damaged_fat32_harms_nobody(damages in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..30)) {
        trial(fat32(), 50 * 512, &damages);
    }

    /// Links of chains that are numbers of clusters: circles, crossings, folders in themselves.
    #[test]
    fn tangled_chains_harm_nobody(links in proptest::collection::vec((2_u32..120, 0_u32..124), 1..20)) {
        let mut bytes = fat32().to_vec();
        for (cluster, next) in links {
            for fat in [32 * 512, 41 * 512] {
                let at = fat + cluster as usize * 4;
                bytes[at..at + 4].copy_from_slice(&next.to_le_bytes());
            }
        }
        trial(&bytes, 50 * 512, &[]);
    }

    #[test]
    fn anything_harms_nobody(mut bytes in proptest::collection::vec(any::<u8>(), 512..20_000), is_named in any::<bool>()) {
        if is_named {
            bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
            bytes[11..14].copy_from_slice(&[0, 2, 1]);
            bytes[82..87].copy_from_slice(b"FAT32");
        }
        bytes.truncate(bytes.len() / 512 * 512);
        trial(&bytes.clone(), 512, &[]);
    }
}
