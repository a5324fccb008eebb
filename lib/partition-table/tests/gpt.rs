//! The GUID partition table and its backup.

mod support;

use partition_table::{Copy, Fault, HeaderError, PartitionKind, Table, TableKind};
use support::{Gpt, Memory, places};

fn disk() -> Memory {
    Memory::new(10_000, 512)
}

fn damaged(copy: Copy, error: HeaderError) -> Fault {
    Fault::Damaged { copy, error }
}

#[test]
fn both_sector_sizes_are_read() {
    for sector_bytes in [512, 4096] {
        let mut disk = Memory::new(4_000, sector_bytes);
        Gpt::of(&disk, &[(100, 199), (200, 200)]).write(&mut disk);
        let sector = u64::from(sector_bytes);
        let table = disk.table();
        assert_eq!(places(&table), [(1, 100 * sector, 100 * sector), (2, 200 * sector, sector)]);
        assert_eq!((table.kind, table.faults), (TableKind::Gpt(Copy::First), vec![]));
        assert_eq!((&*table.partitions[0].name, table.partitions[0].read_only), ("volume é", false));
        assert_eq!(table.partitions[0].kind, PartitionKind::Gpt([0xA5; 16]));
    }
}

#[test]
fn unused_entries_keep_their_numbers_and_attributes_count() {
    let mut disk = disk();
    let mut gpt = Gpt::of(&disk, &[(100, 199), (200, 299)]);
    gpt.entries.insert(1, [0; 128]);
    gpt.entries[2][55] = 0x10;
    gpt.write(&mut disk);
    let table = disk.table();
    assert_eq!(places(&table).iter().map(|place| place.0).collect::<Vec<_>>(), [1, 3]);
    assert!(table.partitions[1].read_only);
}

#[test]
fn entries_may_be_longer_and_fewer() {
    let mut disk = disk();
    let mut gpt = Gpt::of(&disk, &[(100, 199), (200, 299)]);
    (gpt.entry_bytes, gpt.count) = (512, 3);
    gpt.write(&mut disk);
    assert_eq!(places(&disk.table()).len(), 2);
}

type Change<'a> = &'a dyn Fn(&mut Memory);

/// A disk with both copies, after a change.
fn after(change: impl Fn(&mut Memory)) -> Table {
    let mut disk = disk();
    Gpt::of(&disk, &[(100, 199)]).write(&mut disk);
    change(&mut disk);
    disk.table()
}

#[test]
fn the_backup_is_used_where_the_first_copy_is_damaged() {
    let cases: [(Change, HeaderError); 6] = [
        (&|disk| disk.put(1, 0, b"X"), HeaderError::NoSignature),
        (&|disk| disk.put(1, 50, b"X"), HeaderError::HeaderChecksum),
        (&|disk| disk.put(1, 12, &[0; 4]), HeaderError::Absurd),
        (&|disk| disk.put(1, 12, &[0xFF; 4]), HeaderError::Absurd),
        (&|disk| disk.put(2, 40, b"X"), HeaderError::EntriesChecksum),
        (&|disk| disk.bad.push(1), HeaderError::Unreadable),
    ];
    for (change, error) in cases {
        let table = after(change);
        assert_eq!((table.kind, &table.faults), (TableKind::Gpt(Copy::Backup), &vec![damaged(Copy::First, error)]));
        assert_eq!(places(&table), [(1, 100 * 512, 100 * 512)]);
    }
}

#[test]
fn a_sound_header_says_where_its_backup_is() {
    let table = after(|disk| {
        disk.put(2, 40, b"X");
        // The disk has grown since.
        disk.bytes.resize(11_000 * 512, 0);
    });
    assert_eq!(table.kind, TableKind::Gpt(Copy::Backup));
    assert_eq!(places(&table).len(), 1);
}

#[test]
fn a_header_that_belongs_elsewhere_is_not_believed() {
    let table = after(|disk| {
        let last = disk.bytes[9_999 * 512..].to_vec();
        disk.put(1, 0, &last);
    });
    assert_eq!(table.faults, [damaged(Copy::First, HeaderError::Elsewhere)]);
}

#[test]
fn without_a_sound_copy_nothing_is_served() {
    let table = after(|disk| {
        disk.put(1, 0, b"X");
        disk.put(9_999, 88, b"X");
    });
    let expected = [damaged(Copy::First, HeaderError::NoSignature), damaged(Copy::Backup, HeaderError::HeaderChecksum)];
    assert_eq!((table.faults.as_slice(), places(&table).len()), (&expected[..], 0));
    let mut tiny = Memory::new(1, 512);
    tiny.entry(0, 0, 0xEE, 1, 1);
    assert_eq!(tiny.table().partitions.len(), 0);
}

#[test]
fn entries_that_do_not_fit_are_refused_by_name() {
    let mut disk = disk();
    let last = disk.sectors() - 1;
    let bad = [(100, 99), (last, last), (100, u64::MAX), (u64::MAX, u64::MAX), (1, 50), (300, 399), (350, 360)];
    Gpt::of(&disk, &bad).write(&mut disk);
    let table = disk.table();
    let expected = [
        Fault::Backwards { number: 1 },
        Fault::OutOfRange { number: 2 },
        Fault::OutOfRange { number: 3 },
        Fault::OutOfRange { number: 4 },
        Fault::OutOfRange { number: 5 },
        Fault::Overlap { number: 6, other: 7 },
    ];
    assert_eq!((table.faults.as_slice(), places(&table).len()), (&expected[..], 0));
}

#[test]
fn a_header_cannot_let_partitions_lie_over_the_table() {
    let mut disk = disk();
    let mut gpt = Gpt::of(&disk, &[(2, 50), (100, 199)]);
    gpt.first_usable = 2;
    gpt.write(&mut disk);
    let table = disk.table();
    assert_eq!((table.faults.as_slice(), places(&table).len()), (&[Fault::OverTable { number: 1 }][..], 1));
}

#[test]
fn absurd_headers_with_right_checksums_are_refused() {
    let absurd: [&dyn Fn(&mut Gpt); 4] =
        [&|gpt| gpt.count = 0, &|gpt| (gpt.entry_bytes, gpt.count) = (192, 20), &|gpt| gpt.first_usable = 0, &|gpt| {
            (gpt.first_usable, gpt.last_usable) = (9_000, 8_000)
        }];
    for change in absurd {
        let mut disk = disk();
        let mut gpt = Gpt::of(&disk, &[(100, 199)]);
        change(&mut gpt);
        gpt.write(&mut disk);
        let table = disk.table();
        assert_eq!(table.faults.first(), Some(&damaged(Copy::First, HeaderError::Absurd)));
        assert_eq!(places(&table).len(), 0);
    }
}
