//! Disk errors, and concurrent requests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::support::{Faults, MemoryDisk, expect_clean, made_by_linux, mount, run};
use fat::{CheckMode, CreateMode, DiskError, Error, check};

test_needs::needs!(Dosfstools);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Polls all futures round-robin until each is ready.
fn run_all(mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        tasks.retain_mut(|task| matches!(task.as_mut().poll(&mut context), Poll::Pending));
        if tasks.is_empty() {
            return;
        }
    }
    panic!("{} tasks do not end", tasks.len());
}

#[test]
fn many_clients_at_once_each_have_their_own() {
    let disk = made_by_linux(16 * MIB, &["-F", "16"]);
    let volume = mount(&disk).expect("it mounts");
    let tasks = (0..40_u8).map(|number| {
        let volume = volume.clone();
        let task = async move {
            let root = volume.root().await.expect("a root");
            let name = format!("the file of client {number}");
            let file = root.create(&name, 0o644, CreateMode::New).await.expect("made");
            for round in 0..20_u64 {
                file.write(round * 700, &[number; 1000]).await.expect("written");
                let mut bytes = [0; 1000];
                assert_eq!(file.read(round * 700, &mut bytes).await, Ok(1000));
                assert_eq!(bytes, [number; 1000]);
                if round % 7 == u64::from(number) % 7 {
                    volume.sync().await.expect("synced");
                }
            }
            file.close().await.expect("closed");
            if number % 3 == 0 {
                root.remove_file(&name).await.expect("removed");
            }
        };
        Box::pin(task) as Pin<Box<dyn Future<Output = ()>>>
    });
    run_all(tasks.collect());
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
}

#[test]
fn appends_of_many_clients_are_whole() {
    let disk = made_by_linux(16 * MIB, &["-F", "16"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    run(root.create("log", 0o644, CreateMode::New)).expect("made");
    let tasks = (0..20_u8).map(|number| {
        let volume = volume.clone();
        let task = async move {
            let root = volume.root().await.expect("a root");
            let file = root.open("log").await.expect("open");
            for _ in 0..10 {
                file.append(&[number; 333]).await.expect("appended");
            }
        };
        Box::pin(task) as Pin<Box<dyn Future<Output = ()>>>
    });
    run_all(tasks.collect());
    let file = run(root.open("log")).expect("open");
    let mut bytes = vec![0; 70_000];
    let count = run(file.read(0, &mut bytes)).expect("read");
    assert_eq!(count, 20 * 10 * 333);
    assert!(bytes[..count].chunks(333).all(|line| line.iter().all(|byte| *byte == line[0])));
}

#[test]
fn a_full_disk_says_so_and_stays_good() {
    for (bytes, words) in [(1440 * KIB, ["-F", "12"]), (16 * MIB, ["-F", "16"]), (36 * MIB, ["-F", "32"])] {
        let disk = made_by_linux(bytes, &words);
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        let mut made = 0;
        let error = loop {
            let file = match run(root.create(&format!("a file with a long name {made}"), 0o644, CreateMode::New)) {
                Ok(file) => file,
                Err(error) => break error,
            };
            made += 1;
            if let Err(partial) = run(file.write(0, &vec![made as u8; 300_000])) {
                let size = run(file.attributes()).expect("attributes").size_bytes;
                assert_eq!(size, partial.written as u64);
                break partial.error;
            }
        };
        assert_eq!(error, Error::NoSpace);
        assert!(made > 3);
        // Existing files stay usable, and space can be freed.
        run(root.remove_file("a file with a long name 1")).expect("removed");
        let file = run(root.create("one more", 0o644, CreateMode::New)).expect("made");
        run(file.write(0, &[1; 250_000])).expect("written");
        run(file.close()).expect("closed");
        drop(root);
        run(volume.unmount()).expect("it unmounts");
        expect_clean(&disk);
    }
}

#[test]
fn a_root_without_room_for_names_says_so() {
    let disk = made_by_linux(1440 * KIB, &["-F", "12", "-r", "16"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let mut made = 0;
    while run(root.make_folder(&format!("F{made}"))).is_ok() {
        made += 1;
    }
    assert_eq!(made, 16);
    assert_eq!(run(root.make_folder("G")), Err(Error::NoSpace));
    // An open file in a folder can be removed nonetheless, and its folder after it.
    let file = run(root.create("F3/file", 0o644, CreateMode::New)).expect("made");
    run(file.write(0, b"content")).expect("written");
    run(root.remove_file("F3/file")).expect("removed");
    assert_eq!(run(root.remove_folder("F3")), Err(Error::NotEmpty), "its name is in its folder yet");
    run(file.close()).expect("closed");
    run(root.remove_folder("F3")).expect("removed");
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
}

#[test]
fn what_could_not_be_written_is_written_later() {
    let disk = made_by_linux(16 * MIB, &["-F", "16"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let file = run(root.create("file", 0o644, CreateMode::New)).expect("made");
    disk.set_faults(Faults { writes_left: Some(0), ..Faults::default() });
    // The dirty flag cannot be set: nothing is written, or it stays in the cache.
    let written = run(file.write(0, &[7; 100_000]));
    assert!(run(volume.sync()).is_err());
    assert!(run(volume.unmount()).is_err(), "the volume stays");
    disk.set_faults(Faults::default());
    if written.is_err() {
        run(file.write(0, &[7; 100_000])).expect("written");
    }
    run(volume.sync()).expect("synced");
    let mut bytes = vec![0; 100_000];
    assert_eq!(run(file.read(0, &mut bytes)), Ok(100_000));
    assert!(bytes.iter().all(|byte| *byte == 7));
    run(file.close()).expect("closed");
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
}

#[test]
fn a_disk_that_dies_at_any_write_leaves_what_was_synced() {
    for writes in (0..60).step_by(3) {
        let disk = made_by_linux(4 * MIB, &["-F", "32", "-s", "1"]);
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        let file = run(root.create("precious", 0o644, CreateMode::New)).expect("made");
        run(file.write(0, &[3; 50_000])).expect("written");
        run(file.close()).expect("closed");
        run(volume.sync()).expect("synced");
        disk.set_faults(Faults { writes_left: Some(writes), ..Faults::default() });
        for number in 0..30 {
            let Ok(file) = run(root.create(&format!("a new file {number}"), 0o644, CreateMode::New)) else { break };
            let _ = run(file.write(0, &[4; 20_000]));
            let _ = run(file.close());
            if number % 4 == 3 {
                let _ = run(root.remove_file(&format!("a new file {}", number - 2)));
                let _ = run(volume.sync());
            }
        }
        // The machine stops here.
        std::mem::forget((root, volume));
        let disk = MemoryDisk::new(disk.bytes());
        let report = run(check(disk.clone(), CheckMode::Repair)).expect("it is checked");
        assert_eq!(report.left, 0, "after {writes} writes: {:?}", report.lines);
        expect_clean(&disk);
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        let file = run(root.open("precious")).expect("what was synced is there");
        let mut bytes = vec![0; 50_001];
        assert_eq!(run(file.read(0, &mut bytes)), Ok(50_000));
        assert!(bytes[..50_000].iter().all(|byte| *byte == 3));
    }
}

#[test]
fn a_sector_that_cannot_be_read_harms_only_its_file() {
    let disk = made_by_linux(16 * MIB, &["-F", "16", "-s", "1"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    for name in ["one", "two"] {
        let file = run(root.create(name, 0o644, CreateMode::New)).expect("made");
        run(file.write(0, &[name.as_bytes()[0]; 5_000])).expect("written");
        run(file.close()).expect("closed");
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    let bytes = disk.bytes();
    let bad = bytes.chunks(512).position(|sector| sector == [b'o'; 512]).expect("the file") as u64 + 2;
    let disk = MemoryDisk::new(bytes);
    disk.set_faults(Faults { unreadable: [bad].into(), ..Faults::default() });
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let mut buffer = vec![0; 5_000];
    let one = run(root.open("one")).expect("open");
    assert!(matches!(run(one.read(0, &mut buffer)), Err(Error::Disk(DiskError::Failed(_)))));
    assert_eq!(run(one.read(2_000, &mut buffer)), Ok(3_000), "the rest of it can be read");
    assert_eq!(run(one.read(0, &mut buffer[..1024])), Ok(1024));
    let two = run(root.open("two")).expect("open");
    assert_eq!(run(two.read(0, &mut buffer)), Ok(5_000));
    // Overwriting makes it readable again.
    run(one.write(1024, &[b'o'; 512])).expect("written");
    assert_eq!(run(one.read(0, &mut buffer)), Ok(5_000));
    assert!(buffer.iter().all(|byte| *byte == b'o'));
    disk.set_faults(Faults::default());
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
}
