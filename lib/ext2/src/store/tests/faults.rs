//! Disk failures, memory shortage, full volumes.

use alloc::vec;
use alloc::vec::Vec;

use super::crash::{Random, image_with_files, replace, state};
use super::disk::{RecordingDisk, fsck};
use super::{image, open, options};
use crate::error::{DiskError, Error, ReadOnlyReason};
use crate::source::complete;
use crate::store::{Access, MountOptions, Store};

/// Changes and commits until a failure, or for a while. Returns the failure, and the last committed state.
fn work(store: &Store<RecordingDisk>, seed: u64) -> Result<(), Error> {
    let mut random = Random(seed);
    for version in 1..20 {
        complete(replace(store, 12 + random.below(20) as u32, version, random.below(13) as u32))?;
        if random.below(4) == 0 {
            complete(store.commit())?;
        }
    }
    complete(store.unmount())
}

#[test]
fn after_a_failed_write_the_volume_is_read_and_what_was_committed_is_there() {
    let image = image_with_files(1024, 3 << 20);
    let disk = RecordingDisk::new(image.clone());
    disk.record();
    work(&open(&disk), 1).unwrap();
    for acts in 0..disk.acts().len() as u64 {
        for once in [true, false] {
            let disk = RecordingDisk::new(image.clone());
            let store = open(&disk);
            let limit = if once {
                RecordingDisk::fail_once_after
            } else {
                |disk: &RecordingDisk, acts| disk.fail_after(Some(acts))
            };
            limit(&disk, acts);
            let result = work(&store, 1);
            if once && disk.will_fail() {
                continue;
            }
            // The state in memory is consistent, whatever is on the disk.
            if result.is_err() {
                if let Some(reason) = store.read_only_reason() {
                    assert!(matches!(reason, ReadOnlyReason::WriteFailed(..) | ReadOnlyReason::FlushFailed(_)));
                    let refused = complete(store.begin(1)).err();
                    if refused != Some(Error::ShutDown) {
                        assert_eq!(refused, Some(Error::ReadOnly(reason)));
                        state(&store);
                    }
                } else {
                    assert!(matches!(result, Err(Error::Write(_, DiskError::Failed(5)))), "{result:?}");
                }
            }
            disk.fail_after(None);
            if store.read_only_reason().is_none() {
                // A failure of file data is reported once, and the write is retried.
                // Data that fails at the end stays unwritten, but the volume is consistent.
                if result.is_err() && complete(store.commit()) != Err(Error::ShutDown) {
                    let before = state(&store);
                    complete(store.unmount()).unwrap();
                    assert_eq!(state(&open(&disk)), before);
                }
                fsck(&fsck(&disk.bytes(), "-p", &[0, 1]), "-fn", &[0]);
            } else if acts % 20 == 0 {
                fsck(&fsck(&disk.bytes(), "-fp", &[0, 1]), "-fn", &[0]);
            }
            open(&disk);
        }
    }
}

#[test]
fn without_memory_requests_fail_and_later_ones_do_not() {
    for buffers in 0..40 {
        let disk = RecordingDisk::new(image_with_files(1024, 3 << 20));
        let store = match complete(Store::open(disk.clone(), &options())) {
            Ok(store) => store,
            Err(error) => panic!("{error}"),
        };
        disk.limit_memory(Some(buffers));
        let result = work(&store, 2);
        disk.limit_memory(None);
        match result {
            Ok(()) => {}
            Err(Error::Read(_, DiskError::NoMemory) | Error::Write(_, DiskError::NoMemory)) => {
                work(&store, 3).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        // A change that failed half way, which this test does not roll back, leaks blocks.
        fsck(&fsck(&disk.bytes(), "-fp", &[0, 1]), "-fn", &[0]);
    }
}

#[test]
fn a_full_volume_gives_every_block_and_takes_every_block_back() {
    for block_bytes in [1024, 4096] {
        let disk = RecordingDisk::new(image(block_bytes, 20 << 20));
        let store = open(&disk);
        drop(complete(store.begin(1)).unwrap());
        for _ in 0..3 {
            let free = store.statistics().available_blocks;
            let mut rows: Vec<(u32, u32)> = Vec::new();
            loop {
                let change = complete(store.begin_for(4, 1)).unwrap();
                match complete(store.allocator().allocate_blocks(&change, 3000, 1000)) {
                    Ok(row) => rows.push(row),
                    Err(error) => {
                        assert_eq!(error, Error::NoSpace);
                        break;
                    }
                }
            }
            assert_eq!(rows.iter().map(|row| u64::from(row.1)).sum::<u64>(), free);
            assert!(rows.len() < 40, "{} rows", rows.len());
            assert_eq!(store.statistics().available_blocks, 0);
            for (first, count) in rows {
                let change = complete(store.begin(8)).unwrap();
                complete(store.allocator().free_blocks(&change, first, count)).unwrap();
            }
            assert_eq!(store.statistics().available_blocks, free);
        }
        let inodes = store.statistics().free_inodes;
        let mut taken = Vec::new();
        loop {
            let change = complete(store.begin(4)).unwrap();
            match complete(store.allocator().allocate_inode(&change, 2, taken.len() % 3 == 0)) {
                Ok(number) => taken.push(number),
                Err(error) => {
                    assert_eq!(error, Error::NoInodes);
                    break;
                }
            }
        }
        assert_eq!(taken.len() as u64, inodes);
        for (index, number) in taken.into_iter().enumerate() {
            let change = complete(store.begin(4)).unwrap();
            complete(store.allocator().free_inode(&change, number, index % 3 == 0)).unwrap();
        }
        complete(store.unmount()).unwrap();
        fsck(&disk.bytes(), "-fn", &[0]);
    }
}

#[test]
fn more_data_than_the_cache_holds_is_written_meanwhile_and_read_again() {
    for slow in [None, Some(5)] {
        let disk = RecordingDisk::new(image(4096, 24 << 20));
        let store = open(&disk);
        if let Some(seed) = slow {
            disk.slow_down(seed);
        }
        let (first, count) = disk.run(async {
            let change = store.begin_for(8, 2000).await.unwrap();
            store.allocator().allocate_blocks(&change, 0, 2000).await.unwrap()
        });
        let bytes: Vec<u8> = (0..count as usize * 4096).map(|index| (index / 7) as u8).collect();
        for (index, part) in bytes.chunks(10_007).enumerate() {
            disk.run(store.write_data(first, index * 10_007, part, false)).unwrap();
            let statistics = store.statistics();
            assert!(statistics.dirty_bytes <= 1 << 20 && statistics.data.bytes <= 2 << 20, "{statistics:?}");
        }
        let mut found = vec![0; bytes.len()];
        disk.run(store.read_data(first, 0, &mut found)).unwrap();
        assert!(found == bytes);
        store.read_ahead(first, 256);
        disk.run(store.commit()).unwrap();
        assert_eq!(store.statistics().dirty_bytes, 0);
        found.fill(0);
        for (index, part) in found.chunks_mut(77_777).enumerate() {
            disk.run(store.read_data(first, index * 77_777, part)).unwrap();
        }
        assert!(found == bytes);
    }
}

#[test]
fn what_forbids_writing_is_known() {
    let small = |access| MountOptions { access, ..options() };
    let disk = RecordingDisk::new(image(1024, 3 << 20));
    let reason =
        |disk: &RecordingDisk, access| complete(Store::open(disk.clone(), &small(access))).unwrap().read_only_reason();
    assert_eq!(reason(&disk, Access::ReadOnly), Some(ReadOnlyReason::Asked));
    assert_eq!(reason(&disk, Access::WriteIfPossible), None);
    let patched = |offset: usize, bytes: &[u8]| {
        let mut image = disk.bytes();
        image[1024 + offset..][..bytes.len()].copy_from_slice(bytes);
        reason(&RecordingDisk::new(image), Access::WriteIfPossible)
    };
    assert_eq!(patched(100, &[0x10]), Some(ReadOnlyReason::Features(0x10)));
    assert_eq!(patched(58, &[0]), Some(ReadOnlyReason::NotClean));
    assert_eq!(patched(58, &[3]), Some(ReadOnlyReason::Faulty));
    disk.set_read_only();
    assert_eq!(reason(&disk, Access::WriteIfPossible), Some(ReadOnlyReason::Disk));
}

#[test]
fn a_small_volume_has_no_journal_and_is_not_clean_while_it_is_changed() {
    let disk = RecordingDisk::new(image_with_files(1024, 1 << 20));
    let store = open(&disk);
    complete(replace(&store, 12, 1, 10)).unwrap();
    complete(store.commit()).unwrap();
    let other = RecordingDisk::new(disk.bytes());
    assert_eq!(open(&other).read_only_reason(), Some(ReadOnlyReason::NotClean));
    assert_eq!(state(&open(&other))[&12], (1, 10));
    fsck(&fsck(&disk.bytes(), "-fp", &[0, 1]), "-fn", &[0]);
    complete(replace(&store, 12, 2, 3)).unwrap();
    complete(store.unmount()).unwrap();
    fsck(&disk.bytes(), "-fn", &[0]);
    assert_eq!(open(&disk).read_only_reason(), None);
    assert_eq!(complete(store.begin(1)).err(), Some(Error::ShutDown));
}
