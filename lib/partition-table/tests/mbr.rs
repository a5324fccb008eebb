//! The master boot record, and chains of logical partitions.

mod support;

use partition_table::{Fault, PartitionKind, TableKind};
use support::{Memory, places};

const LINUX: u8 = 0x83;
const EXTENDED: u8 = 0x05;

fn disk() -> Memory {
    Memory::new(10_000, 512)
}

#[test]
fn a_disk_without_a_table_has_no_partitions_and_no_fault() {
    let table = disk().table();
    assert_eq!((table.kind, table.partitions.len(), table.faults.len()), (TableKind::None, 0, 0));
    let mut short = Memory::new(0, 512);
    short.bytes.extend([0xFF; 100]);
    assert_eq!(short.table().kind, TableKind::None);
}

#[test]
fn a_boot_sector_of_a_volume_is_no_table() {
    let mut disk = disk();
    disk.put(0, 0, &[0xEB, 0x58, 0x90]);
    disk.put(0, 400, &[0xF4; 110]);
    disk.put(0, 510, &[0x55, 0xAA]);
    assert_eq!(disk.table().kind, TableKind::None);
}

#[test]
fn primary_partitions_have_the_numbers_of_their_places() {
    let mut disk = disk();
    disk.entry(0, 1, LINUX, 63, 100);
    disk.entry(0, 3, 0x0C, 200, 9_800);
    let table = disk.table();
    assert_eq!(places(&table), [(2, 63 * 512, 100 * 512), (4, 200 * 512, 9_800 * 512)]);
    assert_eq!(table.partitions[1].kind, PartitionKind::Mbr(0x0C));
    assert_eq!((table.kind, table.faults), (TableKind::Mbr, vec![]));
}

#[test]
fn numbers_count_in_sectors_of_the_disk() {
    let mut disk = Memory::new(1_000, 4096);
    disk.entry(0, 0, LINUX, 10, 20);
    assert_eq!(places(&disk.table()), [(1, 10 * 4096, 20 * 4096)]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let mut disk = disk();
    disk.entry(0, 0, LINUX, 9_000, 1_001);
    disk.entry(0, 1, LINUX, u32::MAX, u32::MAX);
    disk.entry(0, 2, LINUX, 0, 10);
    disk.entry(0, 3, LINUX, 100, 10);
    let table = disk.table();
    assert_eq!(places(&table), [(4, 100 * 512, 10 * 512)]);
    let expected = [Fault::OutOfRange { number: 1 }, Fault::OutOfRange { number: 2 }, Fault::OverTable { number: 3 }];
    assert_eq!(table.faults, expected);
    assert!(table.faults[0].to_string().starts_with("partition 1 "));
}

#[test]
fn neither_of_two_that_overlap_is_used() {
    let mut disk = disk();
    disk.entry(0, 0, LINUX, 100, 1_000);
    disk.entry(0, 1, LINUX, 200, 10);
    disk.entry(0, 2, LINUX, 1_099, 10);
    disk.entry(0, 3, LINUX, 1_109, 10);
    let table = disk.table();
    assert_eq!(places(&table), [(4, 1_109 * 512, 10 * 512)]);
    assert_eq!(table.faults, [Fault::Overlap { number: 1, other: 2 }, Fault::Overlap { number: 1, other: 3 }]);
}

/// An extended partition from sector 1,000 on, with logical ones.
fn with_chain() -> Memory {
    let mut disk = disk();
    disk.entry(0, 0, LINUX, 100, 900);
    disk.entry(0, 1, EXTENDED, 1_000, 5_000);
    disk.entry(1_000, 0, LINUX, 63, 100);
    disk.entry(1_000, 1, EXTENDED, 500, 600);
    disk.entry(1_500, 0, LINUX, 1, 599);
    disk.entry(1_500, 1, EXTENDED, 2_000, 3_000);
    disk.entry(3_000, 0, LINUX, 2, 10);
    disk
}

#[test]
fn logical_partitions_begin_at_five() {
    let table = with_chain().table();
    let expected = [
        (1, 100 * 512, 900 * 512),
        (5, 1_063 * 512, 100 * 512),
        (6, 1_501 * 512, 599 * 512),
        (7, 3_002 * 512, 10 * 512),
    ];
    assert_eq!((places(&table), table.faults), (expected.to_vec(), vec![]));
}

#[test]
fn chains_that_go_wrong_end_there() {
    let check = |change: &dyn Fn(&mut Memory), fault| {
        let mut disk = with_chain();
        change(&mut disk);
        let table = disk.table();
        assert_eq!(table.faults, [fault]);
        assert!(places(&table).len() >= 3);
    };
    check(&|disk| disk.entry(3_000, 1, EXTENDED, 500, 10), Fault::Circle { sector: 1_500 });
    check(&|disk| disk.entry(3_000, 1, EXTENDED, 2_000, 10), Fault::Circle { sector: 3_000 });
    check(&|disk| disk.entry(3_000, 1, EXTENDED, 5_000, 10), Fault::ChainOutOfRange { sector: 6_000 });
    check(&|disk| disk.entry(3_000, 1, EXTENDED, u32::MAX, 10), Fault::ChainOutOfRange { sector: 4_294_968_295 });
    check(&|disk| disk.put(3_000, 510, &[0, 0]), Fault::ChainBroken { sector: 3_000 });
    check(&|disk| disk.bad.push(3_000), Fault::ChainBroken { sector: 3_000 });
    check(&|disk| disk.entry(3_000, 0, LINUX, 2, 9_000), Fault::OutOfRange { number: 7 });
}

#[test]
fn a_primary_partition_over_the_tables_of_logical_ones_is_refused() {
    let mut disk = with_chain();
    disk.entry(0, 2, LINUX, 2_900, 102);
    let table = disk.table();
    assert_eq!(table.faults, [Fault::OverTable { number: 3 }]);
    assert_eq!(places(&table).len(), 4);
}

#[test]
fn an_extended_partition_past_the_end_is_refused() {
    let mut disk = with_chain();
    disk.entry(0, 1, EXTENDED, 1_000, 50_000);
    let table = disk.table();
    assert_eq!(table.faults, [Fault::ExtendedOutOfRange { number: 2 }]);
    assert_eq!(places(&table).len(), 1);
}

#[test]
fn endless_chains_are_cut() {
    let mut disk = Memory::new(20_000, 512);
    disk.entry(0, 0, EXTENDED, 1_000, 19_000);
    for number in 0..5_000_u32 {
        disk.entry(u64::from(1_000 + 2 * number), 0, LINUX, 1, 1);
        disk.entry(u64::from(1_000 + 2 * number), 1, EXTENDED, 2 * number + 2, 2);
    }
    let table = disk.table();
    assert_eq!(table.faults, [Fault::TooMany]);
    assert_eq!(places(&table).len(), 256);
}
