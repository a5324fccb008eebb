//! Arbitrary disk content: parsing ends, and its result is usable.

mod support;

use proptest::prelude::*;

use support::{Gpt, Memory, crc32};

const SECTORS: u64 = 256;

fn check(disk: &Memory) {
    let table = disk.table();
    let mut end = 0;
    let mut partitions = table.partitions.clone();
    partitions.sort_by_key(|partition| partition.first_byte);
    for partition in &partitions {
        assert!(partition.first_byte >= end.max(u64::from(disk.sector_bytes)) && partition.bytes > 0);
        end = partition.first_byte.checked_add(partition.bytes).expect("within the disk");
        assert!(end <= disk.bytes.len() as u64);
    }
    for fault in &table.faults {
        assert!(!fault.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn master_boot_records(
        entries in prop::collection::vec((0..3_u64, 0..4_usize, 0..4_usize, 0..300_u32, 0..300_u32), 0..24),
        noise in prop::collection::vec((0..SECTORS, 0..512_usize, any::<u8>()), 0..8),
    ) {
        let mut disk = Memory::new(SECTORS, 512);
        for (sector, place, kind, first, sectors) in entries {
            disk.entry(sector * 20, place, [0, 0x83, 0x05, 0x0F][kind], first, sectors);
        }
        for (sector, at, byte) in noise {
            disk.put(sector, at, &[byte]);
        }
        check(&disk);
    }

    #[test]
    fn tables_with_right_checksums(
        partitions in prop::collection::vec((any::<u64>(), any::<u64>(), 0..260_u64, 0..260_u64, any::<bool>()), 0..12),
        header in prop::collection::vec((24..92_usize, any::<u8>()), 0..4),
    ) {
        let mut disk = Memory::new(SECTORS, 512);
        let partitions: Vec<(u64, u64)> = partitions
            .into_iter()
            .map(|(far, away, first, last, is_near)| if is_near { (first, last) } else { (far, away) })
            .collect();
        Gpt::of(&disk, &partitions).write(&mut disk);
        for (at, byte) in header {
            disk.put(1, at, &[byte]);
        }
        disk.put(1, 16, &[0; 4]);
        let checksum = crc32(&disk.bytes[512..512 + 92]);
        disk.put(1, 16, &checksum.to_le_bytes());
        check(&disk);
    }

    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..4096), protective in any::<bool>()) {
        let mut disk = Memory::new(0, 512);
        disk.bytes = bytes;
        if disk.sectors() > 0 && protective {
            disk.entry(0, 0, 0xEE, 1, 1);
            disk.put(0, 446, &[0]);
            disk.put(0, 462, &[0]);
            disk.put(0, 478, &[0]);
            disk.put(0, 494, &[0]);
        }
        check(&disk);
    }
}
