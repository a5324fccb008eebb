//! All operations, on volumes of every FAT width, judged by fsck.fat and mtools.

use crate::support::{MemoryDisk, TEST_TIME_S, expect_clean, made_by_linux, mount, mtools, run};
use fat::{AttributeChanges, CheckMode, CreateMode, Error, Folder, Kind, Volume, check};

test_needs::needs!(Dosfstools);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// A volume of each width.
fn disks() -> Vec<MemoryDisk> {
    vec![
        made_by_linux(1440 * KIB, &["-F", "12"]),
        made_by_linux(16 * MIB, &["-F", "16"]),
        made_by_linux(40 * MIB, &["-F", "32", "-s", "1"]),
        made_by_linux(64 * MIB, &["-F", "32", "-s", "1", "-S", "4096"]).with_sector_bytes(4096),
    ]
}

fn for_each_width(mut test: impl FnMut(&Volume<MemoryDisk>, &Folder<MemoryDisk>)) {
    for disk in disks() {
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        test(&volume, &root);
        drop(root);
        run(volume.unmount()).expect("it unmounts");
        expect_clean(&disk);
    }
}

fn content(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed).rotate_left(index as u32 % 5)).collect()
}

fn write(root: &Folder<MemoryDisk>, path: &str, bytes: &[u8]) {
    let file = run(root.create(path, 0o644, CreateMode::OpenExisting)).expect("it is made");
    run(file.write(0, bytes)).expect("it is written");
    run(file.close()).expect("it is closed");
}

fn read(root: &Folder<MemoryDisk>, path: &str) -> Vec<u8> {
    let file = run(root.open(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let size = run(file.attributes()).expect("attributes").size_bytes as usize;
    let mut bytes = vec![0; size + 10];
    let count = run(file.read(0, &mut bytes)).expect("it is read");
    assert_eq!(count, size);
    bytes.truncate(count);
    run(file.close()).expect("it is closed");
    bytes
}

fn names(root: &Folder<MemoryDisk>, path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut position = Some(0);
    while let Some(from) = position {
        let listing = run(root.list(path, from, 7)).expect("a listing");
        names.extend(listing.entries.into_iter().map(|entry| entry.name));
        position = listing.next;
    }
    names.sort();
    names
}

#[test]
fn what_is_written_is_read() {
    for_each_width(|_, root| {
        let bytes = content(300_000, 3);
        write(root, "A file with a long name.bin", &bytes);
        assert_eq!(read(root, "A file with a long name.bin"), bytes);
        assert_eq!(read(root, "a FILE with A long name.BIN"), bytes, "names are the same in any case");
        assert_eq!(names(root, ""), ["A file with a long name.bin"], "but keep the one they were given");
        let file = run(root.open("A file with a long name.bin")).expect("open");
        run(file.write(299_990, &[7; 100])).expect("it is written over the end");
        assert_eq!(run(file.append(b"end")), Ok(300_090));
        let mut tail = [0; 20];
        assert_eq!(run(file.read(300_080, &mut tail)), Ok(13));
        assert_eq!(&tail[..13], b"\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07end");
        assert_eq!(run(file.read(u64::MAX, &mut tail)), Ok(0));
    });
}

#[test]
fn sizes_change_in_both_directions() {
    for_each_width(|volume, root| {
        let bytes = content(100_000, 9);
        write(root, "f", &bytes);
        let free = run(volume.statistics()).expect("numbers").free_bytes;
        let file = run(root.open("f")).expect("open");
        run(file.set_size(10_001)).expect("it is cut");
        run(file.set_size(400_000)).expect("it is made longer");
        let mut expected = bytes[..10_001].to_vec();
        expected.resize(400_000, 0);
        run(file.close()).expect("closed");
        assert_eq!(read(root, "f"), expected);
        let file = run(root.open("f")).expect("open");
        run(file.set_size(0)).expect("it is emptied");
        run(file.write(5_000, b"x")).expect("a hole is zeros");
        run(file.close()).expect("closed");
        let mut expected = vec![0; 5_000];
        expected.push(b'x');
        assert_eq!(read(root, "f"), expected);
        assert!(run(volume.statistics()).expect("numbers").free_bytes > free);
        let file = run(root.open("f")).expect("open");
        assert_eq!(run(file.set_size(1 << 32)), Err(Error::TooLarge));
        assert_eq!(run(file.set_size(u64::from(u32::MAX))), Err(Error::NoSpace));
    });
}

#[test]
fn folders_are_made_moved_and_removed() {
    for_each_width(|_, root| {
        run(root.make_folder("one")).expect("made");
        run(root.make_folder("one/two")).expect("made");
        run(root.make_folder("three")).expect("made");
        assert_eq!(run(root.make_folder("ONE")), Err(Error::AlreadyExists));
        assert_eq!(run(root.make_folder("none/two")), Err(Error::NotFound));
        write(root, "one/two/file", b"content");
        assert_eq!(run(root.remove_folder("one/two")), Err(Error::NotEmpty));
        assert_eq!(run(root.remove_folder("one/two/file")), Err(Error::NotADirectory));
        assert_eq!(run(root.remove_file("one/two")), Err(Error::IsADirectory));
        assert_eq!(run(root.rename("one", "one/two/one")), Err(Error::IntoItself));
        assert_eq!(run(root.make_folder("one/two/file/x")), Err(Error::NotADirectory));
        let two = run(root.folder("one/two")).expect("a folder");
        run(root.rename("one/two", "three/moved")).expect("a folder is moved");
        assert_eq!(read(&two, "file"), b"content", "who has the folder keeps it");
        assert_eq!(names(root, "three"), ["moved"]);
        assert_eq!(read(root, "three/moved/file"), b"content");
        run(root.remove_folder("one")).expect("it is empty now");
        assert_eq!(run(root.remove_folder("")), Err(Error::NotPermitted));
        assert_eq!(run(root.attributes("")).expect("the root").kind, Kind::Directory);
    });
}

#[test]
fn renaming_replaces() {
    for_each_width(|_, root| {
        write(root, "from", b"new");
        write(root, "to", b"old");
        run(root.make_folder("folder")).expect("made");
        run(root.make_folder("empty")).expect("made");
        run(root.make_folder("full")).expect("made");
        write(root, "full/x", b"x");
        let open = run(root.open("to")).expect("open");
        run(root.rename("from", "TO")).expect("it replaces an open file");
        assert_eq!(read(root, "to"), b"new");
        assert_eq!(names(root, ""), ["TO", "empty", "folder", "full"]);
        let mut old = [0; 5];
        assert_eq!(run(open.read(0, &mut old)), Ok(3));
        assert_eq!(&old[..3], b"old");
        run(open.close()).expect("closed");
        assert_eq!(run(root.rename("TO", "folder")), Err(Error::IsADirectory));
        assert_eq!(run(root.rename("folder", "TO")), Err(Error::NotADirectory));
        assert_eq!(run(root.rename("folder", "full")), Err(Error::NotEmpty));
        run(root.rename("folder", "empty")).expect("a folder replaces an empty one");
        run(root.rename("TO", "to")).expect("the case alone changes");
        assert_eq!(names(root, ""), ["empty", "full", "to"]);
        assert_eq!(run(root.rename("none", "x")), Err(Error::NotFound));
        run(root.rename("to", "to")).expect("nothing to do");
        let open = run(root.open("to")).expect("open");
        assert_eq!(run(root.rename("empty", "to")), Err(Error::NotADirectory), "also when it is open");
        run(open.close()).expect("closed");
        assert_eq!(read(root, "to"), b"new");
    });
}

#[test]
fn a_removed_file_stays_usable_while_open() {
    for_each_width(|volume, root| {
        run(root.make_folder("folder")).expect("made");
        let free = run(volume.statistics()).expect("numbers").free_bytes;
        let bytes = content(50_000, 1);
        write(root, "folder/file", &bytes);
        let first = run(root.open("folder/file")).expect("open");
        let second = run(root.open("folder/file")).expect("open");
        run(root.remove_file("folder/file")).expect("removed");
        assert_eq!(names(root, "folder"), Vec::<String>::new());
        assert_eq!(names(root, ""), ["folder"]);
        assert_eq!(run(root.attributes("$DEL0000.$$$")).unwrap_err(), Error::NotFound);
        run(root.remove_folder("folder")).expect("the folder is empty");
        run(first.write(50_000, &bytes)).expect("it can still be written");
        run(first.close()).expect("closed");
        let mut all = vec![0; 100_000];
        assert_eq!(run(second.read(0, &mut all)), Ok(100_000));
        assert_eq!(all[50_000..], bytes);
        run(second.close()).expect("closed");
        run(root.make_folder("folder")).expect("made");
        assert_eq!(run(volume.statistics()).expect("numbers").free_bytes, free, "its room is free again");
        // One handle is dropped instead of closed, and one is never closed.
        write(root, "gone", &bytes);
        let dropped = run(root.open("gone")).expect("open");
        run(root.remove_file("gone")).expect("removed");
        drop(dropped);
        assert_eq!(run(volume.statistics()).expect("numbers").free_bytes, free);
        write(root, "gone", &bytes);
        std::mem::forget(run(root.open("gone")).expect("open"));
        run(root.remove_file("gone")).expect("removed");
        run(root.remove_folder("folder")).expect("removed");
    });
}

#[test]
fn removed_files_left_by_a_crash_are_cleaned_up() {
    let disk = made_by_linux(40 * MIB, &["-F", "32", "-s", "1"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    write(&root, "file", &content(10_000, 2));
    write(&root, "other", b"other");
    run(volume.sync()).expect("synced");
    let free = run(volume.statistics()).expect("numbers").free_bytes;
    let open = run(root.open("file")).expect("open");
    run(root.remove_file("file")).expect("removed");
    run(volume.sync()).expect("synced");
    write(&root, "dirty", b"");
    run(volume.sync()).expect("synced");
    // A crash: the volume stays marked dirty.
    let mut bytes = disk.bytes();
    std::mem::forget((open, root));
    let reserved = u16::from_le_bytes([bytes[14], bytes[15]]) as usize * 512;
    bytes[reserved + 7] &= !0x08;
    let disk = MemoryDisk::new(bytes);
    let volume = mount(&disk).expect("it mounts");
    assert!(volume.was_dirty());
    let root = run(volume.root()).expect("a root");
    assert_eq!(names(&root, ""), ["dirty", "other"]);
    assert!(run(volume.statistics()).expect("numbers").free_bytes > free);
}

#[test]
fn invalid_names_are_refused() {
    for_each_width(|_, root| {
        for name in ["a:b", "a*", "a?", "a\"", "a<", "a>", "a|", "a\\b", "dot.", "space ", "\u{1}", "$DEL0001.$$$"] {
            let made = run(root.create(name, 0o644, CreateMode::New)).err();
            assert_eq!(made, Some(Error::BadName), "{name:?}");
            assert_eq!(run(root.make_folder(name)), Err(Error::BadName), "{name:?}");
            write(root, "there", b"x");
            assert_eq!(run(root.rename("there", name)), Err(Error::BadName), "{name:?}");
        }
        let long = "n".repeat(255);
        for name in ["+,;=[]", ".hidden", "two.dots.txt", "Ünïcödé", "日本語", "😀 face", " leading", "con", &long]
        {
            write(root, name, name.as_bytes());
            assert_eq!(read(root, name), name.as_bytes(), "{name}");
        }
        assert_eq!(run(root.create(&"n".repeat(256), 0o644, CreateMode::New)).err(), Some(Error::BadName));
        assert_eq!(run(root.create("there", 0o644, CreateMode::New)).err(), Some(Error::AlreadyExists));
        assert_eq!(run(root.create("", 0o644, CreateMode::New)).err(), Some(Error::IsADirectory));
    });
}

#[test]
fn attributes_are_those_of_fat() {
    for_each_width(|_, root| {
        write(root, "file", b"12345");
        let found = run(root.attributes("file")).expect("attributes");
        assert_eq!((found.kind, found.size_bytes, found.permissions), (Kind::File, 5, 0o644));
        assert_eq!(found.modified_s, TEST_TIME_S);
        assert!(found.allocated_bytes >= 512);
        let changes = AttributeChanges {
            permissions: Some(0o400),
            modified_s: Some(1_000_000_001),
            accessed_s: Some(1_000_000_001),
        };
        run(root.set_attributes("file", changes)).expect("changed");
        let found = run(root.attributes("file")).expect("attributes");
        assert_eq!((found.permissions, found.modified_s), (0o444, 1_000_000_000), "even seconds");
        assert_eq!(found.accessed_s, 1_000_000_001 / 86_400 * 86_400, "days");
        let far = AttributeChanges { modified_s: Some(-5), accessed_s: Some(i64::MAX), ..AttributeChanges::default() };
        run(root.set_attributes("file", far)).expect("the nearest there is");
        assert_eq!(run(root.attributes("file")).expect("attributes").modified_s, 315_532_800);
        run(root.create("read only", 0o444, CreateMode::New)).expect("made");
        assert_eq!(run(root.attributes("read only")).expect("attributes").permissions, 0o444);
        run(root.remove_file("read only")).expect("removed");
    });
}

#[test]
fn a_listing_survives_concurrent_changes() {
    for_each_width(|_, root| {
        run(root.make_folder("d")).expect("made");
        for number in 0..60 {
            write(root, &format!("d/a name that takes some room {number}"), b"");
        }
        let mut seen = Vec::new();
        let mut position = Some(0);
        let mut round = 0;
        while let Some(from) = position {
            let listing = run(root.list("d", from, 5)).expect("a listing");
            seen.extend(listing.entries.into_iter().map(|entry| entry.name));
            position = listing.next;
            // Odd numbers are removed, others are added.
            if round < 30 {
                run(root.remove_file(&format!("d/a name that takes some room {}", 2 * round + 1))).expect("removed");
                write(root, &format!("d/new {round}"), b"");
            }
            round += 1;
        }
        for number in (0..60).step_by(2) {
            let name = format!("a name that takes some room {number}");
            assert_eq!(seen.iter().filter(|seen| **seen == name).count(), 1, "{name}");
        }
    });
}

#[test]
fn mtools_reads_what_is_written_here() {
    let disk = made_by_linux(40 * MIB, &["-F", "32", "-s", "1"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let bytes = content(200_000, 5);
    run(root.make_folder("Long folder name")).expect("made");
    write(&root, "Long folder name/Long file name.data", &bytes);
    write(&root, "SHORT.TXT", b"short");
    run(volume.unmount()).expect("it unmounts");
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    std::fs::write(&image, disk.bytes()).expect("a copy");
    let copy = folder.path().join("copy");
    mtools("mcopy", &image, &["::Long folder name/Long file name.data", copy.to_str().expect("a path")]);
    assert_eq!(std::fs::read(&copy).expect("the copy"), bytes);
    assert!(mtools("mdir", &image, &["::"]).contains("2024-05-06"));
}

#[test]
fn what_mtools_writes_is_read_here() {
    for (bytes, words) in [(1440 * KIB, ["-F", "12"]), (16 * MIB, ["-F", "16"]), (40 * MIB, ["-F", "32"])] {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("image");
        std::fs::write(&image, made_by_linux(bytes, &words).bytes()).expect("an image");
        let source = folder.path().join("source");
        let written = content(77_777, 8);
        std::fs::write(&source, &written).expect("a file");
        let source = source.to_str().expect("a path");
        mtools("mmd", &image, &["::Folder"]);
        mtools("mcopy", &image, &[source, "::Folder/Name with spaces.x"]);
        mtools("mcopy", &image, &[source, "::UPPER.EXT"]);
        mtools("mattrib", &image, &["+r", "::UPPER.EXT"]);
        let disk = MemoryDisk::new(std::fs::read(&image).expect("the image"));
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        assert_eq!(names(&root, ""), ["Folder", "UPPER.EXT"]);
        assert_eq!(read(&root, "folder/name WITH spaces.x"), written);
        assert_eq!(run(root.attributes("UPPER.EXT")).expect("attributes").permissions, 0o444);
        run(root.remove_file("upper.ext")).expect("removed");
        run(root.rename("Folder", "Another name")).expect("renamed");
        drop(root);
        run(volume.unmount()).expect("it unmounts");
        expect_clean(&disk);
    }
}

#[test]
fn after_unmount_nothing_is_served() {
    let disk = made_by_linux(1440 * KIB, &["-F", "12"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    write(&root, "f", b"x");
    let file = run(root.open("f")).expect("open");
    run(volume.unmount()).expect("it unmounts");
    assert_eq!(run(file.append(b"y")).unwrap_err().error, Error::ShutDown);
    assert_eq!(run(root.list("", 0, 10)).unwrap_err(), Error::ShutDown);
    assert_eq!(run(volume.sync()), Err(Error::ShutDown));
    expect_clean(&disk);
}

#[test]
fn a_read_only_disk_is_read() {
    let disk = made_by_linux(16 * MIB, &["-F", "16"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    write(&root, "f", b"content");
    run(volume.unmount()).expect("it unmounts");
    let disk = MemoryDisk::new(disk.bytes()).read_only();
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    assert_eq!(read(&root, "f"), b"content");
    assert_eq!(run(root.create("g", 0o644, CreateMode::New)).err(), Some(Error::ReadOnly));
    assert_eq!(run(root.remove_file("f")), Err(Error::ReadOnly));
    assert_eq!(run(root.rename("f", "g")), Err(Error::ReadOnly));
    let file = run(root.open("f")).expect("open");
    assert_eq!(run(file.write(0, b"x")).unwrap_err().error, Error::ReadOnly);
    assert_eq!(run(file.set_size(0)), Err(Error::ReadOnly));
    run(file.close()).expect("closed");
    run(volume.sync()).expect("nothing to do");
    run(volume.unmount()).expect("it unmounts");
}

#[test]
fn the_cache_spares_the_disk() {
    let disk = made_by_linux(16 * MIB, &["-F", "16"]);
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    write(&root, "first", b"");
    let before = disk.writes();
    for number in 0..50 {
        write(&root, &format!("small file {number}"), &content(500, number));
    }
    assert_eq!(disk.writes(), before, "what is not asked to be written waits");
    assert!(volume.has_changes());
    run(volume.sync()).expect("synced");
    assert!(!volume.has_changes());
    assert!(disk.writes() - before < 20, "{} writes", disk.writes() - before);
    write(&root, "large", &content(500_000, 1));
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let file = run(root.open("large")).expect("open");
    let before = disk.reads();
    let mut piece = [0; 4096];
    for round in 0..2 {
        let mut offset = 0;
        loop {
            let count = run(file.read(offset, &mut piece)).expect("read");
            if count == 0 {
                break;
            }
            offset += count as u64;
        }
        assert_eq!(offset, 500_000);
        // Sixteen pages, and the read-ahead at the end.
        assert!(disk.reads() - before < 40, "{} reads in round {round}", disk.reads() - before);
    }
    let cache = volume.cache();
    assert!(cache.hits > 200 && cache.misses < 20, "{cache:?}");
}

/// Short names in any code page, which other systems write without a long name.
#[test]
fn short_names_with_any_byte_are_listed_found_and_removed() {
    const ROOT: u64 = 19 * 512;
    let disk = made_by_linux(1440 * KIB, &["-F", "12"]);
    for byte in 0x80..=0xFF_u8 {
        let mut entry = [0; 32];
        entry[..11].copy_from_slice(b"N          ");
        entry[1..3].copy_from_slice(format!("{byte:02X}").as_bytes());
        entry[3] = byte;
        entry[8] = byte;
        entry[11] = 0x20;
        disk.put(ROOT + u64::from(byte - 0x80) * 32, &entry);
    }
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let names = names(&root, "");
    assert_eq!(names.len(), 128);
    let lost: Vec<&String> = names.iter().filter(|name| run(root.attributes(name)).is_err()).collect();
    assert!(lost.is_empty(), "these are listed and not found: {lost:?}");
    for name in &names {
        run(root.remove_file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
}

/// Other systems may write half of a surrogate pair into a long name, which then has no UTF-8 form.
#[test]
fn long_names_with_half_a_surrogate_pair_are_listed_found_and_removed() {
    let disk = made_by_linux(1440 * KIB, &["-F", "12"]);
    let long = ["an X in a name.text", "an Y in a name.text", "an \u{FFFD} in a name.text", "a folder with X"];
    let made = mount(&disk).expect("it mounts");
    let root = run(made.root()).expect("a root");
    for (number, name) in (0..).zip(&long[..3]) {
        write(&root, name, &content(100, number));
    }
    run(root.make_folder(long[3])).expect("made");
    write(&root, "a folder with X/an X below", &content(100, 9));
    drop(root);
    run(made.unmount()).expect("it unmounts");
    // The first or second half of a pair in place of the letters, in long-name slots only.
    let mut bytes = disk.bytes();
    for slot in bytes.chunks_exact_mut(32).filter(|slot| slot[11] == 0x0F && slot[12] == 0) {
        for at in [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30] {
            match [slot[at], slot[at + 1]] {
                [b'X', 0] => slot[at..at + 2].copy_from_slice(&0xD83D_u16.to_le_bytes()),
                [b'Y', 0] => slot[at..at + 2].copy_from_slice(&0xDE00_u16.to_le_bytes()),
                _ => {}
            }
        }
    }
    let disk = MemoryDisk::new(bytes);
    expect_clean(&disk);
    assert!(run(check(disk.clone(), CheckMode::Report)).expect("it is checked").is_clean());
    let volume = mount(&disk).expect("it mounts");
    let root = run(volume.root()).expect("a root");
    let names = names(&root, "");
    assert_eq!(names, ["AFOLDE~1", "ANXINA~1.TEX", "ANYINA~1.TEX", "an \u{FFFD} in a name.text"]);
    let mut contents: Vec<Vec<u8>> = names[1..].iter().map(|name| read(&root, name)).collect();
    contents.sort();
    let mut expected: Vec<Vec<u8>> = (0..3).map(|number| content(100, number)).collect();
    expected.sort();
    assert_eq!(contents, expected);
    assert_eq!(run(root.remove_folder("AFOLDE~1")), Err(Error::NotEmpty));
    run(root.rename("AFOLDE~1/ANXBEL~1", "moved")).expect("it is renamed");
    assert_eq!(read(&root, "moved"), content(100, 9));
    run(root.remove_folder("AFOLDE~1")).expect("it is removed");
    for name in names[1..].iter().map(String::as_str).chain(["moved"]) {
        run(root.remove_file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    drop(root);
    run(volume.unmount()).expect("it unmounts");
    expect_clean(&disk);
}
