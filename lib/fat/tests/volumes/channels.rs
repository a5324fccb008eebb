//! Many clients, few channels to the disk: no deadlock in any order of replies.

use std::future::{Future, poll_fn};
use std::task::Poll;

use fat::{Access, CacheLimits, CheckMode, CreateMode, FormatOptions, MountOptions, Volume, check, format};

use crate::disk::{MemoryDisk, TEST_TIME_S, mount, options, run};
use crate::machine::{Machine, Order};

const FILES: u8 = 21;
const FILE_BYTES: usize = 60_000;
const MIB: usize = 1 << 20;

fn content(number: u8) -> Vec<u8> {
    (0..FILE_BYTES).map(|index| (index as u8).wrapping_mul(13) ^ number ^ (index >> 8) as u8).collect()
}

/// A volume of files of two pages each, in sequence, so that reading one reads ahead into others.
fn filled(cluster_bytes: u32) -> Vec<u8> {
    // FAT16 needs many clusters, FAT12 few.
    let bytes = if cluster_bytes <= 4096 { 17 * MIB } else { 8 * MIB };
    let disk = MemoryDisk::new(vec![0; bytes]);
    let wanted =
        FormatOptions { cluster_bytes: Some(cluster_bytes), label: "", time_s: TEST_TIME_S, serial: 0x1234_5678 };
    run(format(disk.clone(), wanted)).expect("it is made");
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    for number in 0..FILES {
        let file = run(root.create(&format!("{number}.bin"), 0o644, CreateMode::New)).expect("made");
        run(file.write(0, &content(number))).expect("written");
        run(file.close()).expect("closed");
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    disk.bytes()
}

fn each_way(mut test: impl FnMut(usize, Order, u64)) {
    for channels in [1, 2, 4] {
        for (order, seeds) in [(Order::OldestFirst, 1), (Order::NewestFirst, 1), (Order::Random, 8)] {
            (0..seeds).for_each(|seed| test(channels, order, seed));
        }
    }
}

async fn read_whole(volume: Volume<Machine>, number: u8) {
    let root = volume.root().await.expect("a root");
    let file = root.open(&format!("{number}.bin")).await.expect("open");
    let mut found = vec![0; FILE_BYTES + 1];
    let mut done = 0;
    loop {
        let end = (done + 16 * 1024).min(found.len());
        match file.read(done as u64, &mut found[done..end]).await.expect("read") {
            0 => break,
            count => done += count,
        }
    }
    assert!(found[..done] == content(number), "file {number}");
    file.close().await.expect("closed");
}

async fn copy(volume: Volume<Machine>, number: u8, name: String) {
    let root = volume.root().await.expect("a root");
    let source = root.open(&format!("{number}.bin")).await.expect("open");
    let target = root.create(&name, 0o644, CreateMode::New).await.expect("made");
    let mut piece = vec![0; 16 * 1024];
    let mut done = 0;
    loop {
        let count = source.read(done, &mut piece).await.expect("read");
        if count == 0 {
            break;
        }
        target.write(done, &piece[..count]).await.expect("written");
        done += count as u64;
    }
    source.close().await.expect("closed");
    target.close().await.expect("closed");
}

fn mounted(machine: &Machine) -> Volume<Machine> {
    machine.run_one(Volume::mount(machine.clone(), options(Access::WriteIfPossible))).expect("it mounts")
}

#[test]
fn one_client_that_reads_file_after_file_finishes() {
    let bytes = filled(4096);
    each_way(|channels, order, seed| {
        let machine = Machine::new(bytes.clone(), channels, order, seed);
        let volume = mounted(&machine);
        machine.run_one(async move {
            for number in 0..FILES {
                read_whole(volume.clone(), number).await;
            }
        });
    });
}

#[test]
fn concurrent_readers_and_writers_finish() {
    let bytes = filled(512);
    each_way(|channels, order, seed| {
        let machine = Machine::new(bytes.clone(), channels, order, seed);
        let volume = mounted(&machine);
        for number in 0..FILES {
            machine.start(read_whole(volume.clone(), number));
            machine.start(copy(volume.clone(), number, format!("a copy of {number}")));
            if number % 8 == 0 {
                let volume = volume.clone();
                machine.start(async move { volume.sync().await.expect("synced") });
            }
        }
        machine.run();
        let unmounted = volume.clone();
        machine.run_one(async move { unmounted.unmount().await }).expect("it unmounts");
        let disk = MemoryDisk::new(machine.bytes());
        let report = run(check(disk.clone(), CheckMode::Report)).expect("it is checked");
        assert!(report.is_clean(), "{:?}", report.lines);
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        for number in 0..FILES {
            let file = run(root.open(&format!("a copy of {number}"))).expect("open");
            let mut found = vec![0; FILE_BYTES + 1];
            assert_eq!(run(file.read(0, &mut found)), Ok(FILE_BYTES));
            assert!(found[..FILE_BYTES] == content(number), "copy {number}");
        }
    });
}

#[test]
fn a_check_finishes_with_any_cluster_size() {
    for cluster_bytes in [512, 1024, 4096, 16 * 1024] {
        let bytes = filled(cluster_bytes);
        each_way(|channels, order, seed| {
            let machine = Machine::new(bytes.clone(), channels, order, seed);
            let report = machine.run_one(check(machine.clone(), CheckMode::Repair)).expect("it is checked");
            assert!(report.is_clean(), "{:?}", report.lines);
            assert!(machine.max_buffers() <= CacheLimits::TOOLS.max_buffers());
        });
    }
}

/// A dropped operation leaves no pending request that blocks the disk for others.
#[test]
fn an_operation_that_is_dropped_halfway_harms_nobody() {
    let bytes = filled(512);
    each_way(|channels, order, seed| {
        let machine = Machine::new(bytes.clone(), channels, order, seed);
        let volume = mounted(&machine);
        for number in 0..FILES {
            let mut abandoned = Box::pin(read_whole(volume.clone(), number));
            machine.run_one(async move {
                // After one poll, everything to be read has been requested.
                poll_fn(|context| Poll::Ready(abandoned.as_mut().poll(context).is_ready())).await;
            });
            machine.run_one(read_whole(volume.clone(), (number + 1) % FILES));
        }
        machine.run_one(async move { volume.unmount().await }).expect("it unmounts");
    });
}

/// Small caches evict in the middle of operations.
#[test]
fn the_smallest_cache_is_enough() {
    let bytes = filled(512);
    each_way(|channels, order, seed| {
        let machine = Machine::new(bytes.clone(), channels, order, seed);
        let limits = CacheLimits { data_bytes: 0, page_bytes: 0 };
        let options = MountOptions { limits, ..options(Access::WriteIfPossible) };
        let volume = machine.run_one(Volume::mount(machine.clone(), options)).expect("it mounts");
        for number in 0..FILES {
            machine.start(copy(volume.clone(), number, format!("a copy of {number}")));
        }
        machine.run();
        machine.run_one(async move { volume.unmount().await }).expect("it unmounts");
        assert!(machine.max_buffers() <= limits.max_buffers());
        let report = run(check(MemoryDisk::new(machine.bytes()), CheckMode::Report)).expect("it is checked");
        assert!(report.is_clean(), "{:?}", report.lines);
    });
}
