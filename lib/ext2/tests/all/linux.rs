//! Images created by Linux's tools are read back, byte for byte.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{self, content, has_tool, mount, names, noise, read, resolve, run};
use ext2::{Error, FormatError, Kind, LastLink, ROOT_INODE, complete};

const BLOCK_SIZES: [&str; 3] = ["1024", "2048", "4096"];

/// Creates a folder with every kind of node, and returns each file's content.
fn fill(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    // Sizes around each boundary between levels of indirect blocks, with blocks of 1 KiB.
    for size in [0, 1, 1023, 1024, 12 << 10, (12 << 10) + 1, 268 << 10, (268 << 10) + 1, 5 << 20] {
        files.push((format!("file-{size}"), noise(size as u64, size)));
    }
    files.push(("n".repeat(255), b"long name".to_vec()));
    let deep = "d/".repeat(60);
    fs::create_dir_all(folder.join(&deep)).unwrap();
    files.push((format!("{deep}deep.txt"), b"deep".to_vec()));
    for (name, bytes) in &files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    symlink("file-1024", folder.join("short-link")).unwrap();
    symlink(format!("{}file-1024", "./".repeat(100)), folder.join("long-link")).unwrap();
    symlink("/d/d", folder.join("absolute-link")).unwrap();
    symlink("../../../d/../file-1", folder.join("d/up-link")).unwrap();
    symlink("loop-b", folder.join("loop-a")).unwrap();
    symlink("loop-a", folder.join("loop-b")).unwrap();
    files
}

fn check(image: &Path, files: &[(String, Vec<u8>)]) {
    let volume = mount(image).unwrap();
    for (name, bytes) in files {
        assert!(content(&volume, name) == *bytes, "{name} of {}", image.display());
    }
    let linked = noise(1024, 1024);
    assert!(content(&volume, "short-link") == linked);
    assert!(content(&volume, "long-link") == linked);
    assert_eq!(resolve(&volume, "absolute-link").unwrap(), resolve(&volume, "d/d/").unwrap());
    assert_eq!(content(&volume, "d/up-link"), noise(1, 1));
    assert_eq!(resolve(&volume, "loop-a"), Err(Error::TooManyLinks));
    let link = complete(volume.resolve(ROOT_INODE, b"short-link", LastLink::Keep)).unwrap();
    assert_eq!(
        (link.kind, complete(volume.link_target(link.number)).unwrap()),
        (Kind::SymbolicLink, b"file-1024".to_vec())
    );
    assert_eq!(resolve(&volume, "../../..").unwrap().number, ROOT_INODE);
    assert_eq!(resolve(&volume, "missing"), Err(Error::NotFound));
    assert_eq!(resolve(&volume, "file-1/more"), Err(Error::NotADirectory));
    assert_eq!(resolve(&volume, "file-1/"), Err(Error::NotADirectory));
    // A folder's channel is its own root.
    let below = resolve(&volume, "d").unwrap();
    assert_eq!(complete(volume.resolve(below.number, b"../../file-1", LastLink::Follow)), Err(Error::NotFound));
}

#[test]
fn every_block_size_and_revision_is_read() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let folder = place.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let files = fill(&folder);
    let folder = folder.to_str().unwrap();
    for block_size in BLOCK_SIZES {
        for options in
            [&["-r", "0"][..], &["-O", "dir_index"], &["-O", "^dir_index,^resize_inode"], &["-I", "128"], &["-j"]]
        {
            let image = place.path().join("image");
            let name = image.to_str().unwrap();
            let mut arguments = vec!["-q", "-F", "-t", "ext2", "-b", block_size];
            arguments.extend_from_slice(options);
            arguments.extend_from_slice(&["-d", folder, name, "32M"]);
            run("mke2fs", &arguments);
            check(&image, &files);
            fs::remove_file(&image).unwrap();
        }
    }
}

#[test]
fn ten_thousand_files_in_a_folder_are_listed_and_found() {
    if !has_tool("mke2fs") || !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let folder = place.path().join("folder");
    fs::create_dir_all(folder.join("many")).unwrap();
    let name = |index: usize| format!("{index:05}-{}", "x".repeat(index % 200));
    for index in 0..10_000 {
        fs::write(folder.join("many").join(name(index)), format!("{index}")).unwrap();
    }
    let image = place.path().join("image");
    let image_name = image.to_str().unwrap();
    let options = ["-q", "-F", "-t", "ext2", "-b", "1024", "-O", "^dir_index", "-d", folder.to_str().unwrap()];
    run("mke2fs", &[&options[..], &[image_name, "128M"]].concat());
    for option in ["^dir_index", "dir_index"] {
        run("tune2fs", &["-O", option, image_name]);
        // It creates the index. Status 1 means that it changed the volume.
        let status = Command::new("e2fsck").args(["-fyD", image_name]).output().unwrap().status;
        assert!(matches!(status.code(), Some(0 | 1)));
        let volume = mount(&image).unwrap();
        let many = resolve(&volume, "many").unwrap();
        let mut found: Vec<Vec<u8>> = names(&volume, &many).into_iter().map(|entry| entry.0).collect();
        found.sort();
        assert!(found.iter().map(|name| String::from_utf8_lossy(name)).eq((0..10_000).map(name)));
        for index in (0..10_000).step_by(97) {
            assert_eq!(content(&volume, &format!("many/{}", name(index))), format!("{index}").as_bytes());
        }
    }
}

#[test]
fn a_sparse_file_of_2_gib_is_read_through_three_levels() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let folder = place.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let file = fs::File::create(folder.join("sparse")).unwrap();
    let pieces: Vec<(u64, Vec<u8>)> =
        [0, 5000, 300 << 10, 70 << 20, (1 << 30) + 12_345, (2 << 30) - 100].map(|at| (at, noise(at, 90))).into();
    for (offset, bytes) in &pieces {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file.set_len(2 << 30).unwrap();
    for block_size in BLOCK_SIZES {
        let image = place.path().join("image");
        let (folder, name) = (folder.to_str().unwrap(), image.to_str().unwrap());
        run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", block_size, "-d", folder, name, "32M"]);
        let volume = mount(&image).unwrap();
        let inode = resolve(&volume, "sparse").unwrap();
        assert_eq!(inode.size, 2 << 30);
        let (mut buffer, zeros) = (vec![0xaa; 1 << 20], vec![0; 1 << 20]);
        for start in (0..inode.size).step_by(buffer.len()) {
            assert_eq!(read(&volume, &inode, start, &mut buffer).unwrap(), buffer.len());
            for (offset, bytes) in pieces.iter().filter(|piece| (start..start + (1 << 20)).contains(&piece.0)) {
                let within = (offset - start) as usize;
                assert!(buffer[within..within + bytes.len()] == *bytes);
                buffer[within..within + bytes.len()].fill(0);
            }
            assert!(buffer == zeros);
        }
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn features_that_are_not_supported_are_refused_by_name() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let refused = |arguments: &[&str]| {
        let mut all = vec!["-q", "-F"];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&[image.to_str().unwrap(), "64M"]);
        run("mke2fs", &all);
        let text = match mount(&image) {
            Ok(_) => "mounted".to_string(),
            Err(error) => error.to_string(),
        };
        fs::remove_file(&image).unwrap();
        text
    };
    let ext4 = refused(&["-t", "ext4", "-O", "64bit,extent,flex_bg,inline_data,encrypt,casefold,large_dir,mmp"]);
    assert!(ext4.contains("extent, 64bit, mmp, flex_bg, large_dir, inline_data, encrypt, casefold;"), "{ext4}");
    let meta = refused(&["-t", "ext2", "-O", "meta_bg,^resize_inode"]);
    assert!(meta.contains("not supported: meta_bg;"), "{meta}");
    let journal = refused(&["-t", "ext4", "-O", "journal_dev"]);
    assert!(journal.contains("journal_dev"), "{journal}");
    assert_eq!(refused(&["-t", "ext2", "-O", "sparse_super2,quota,project"]), "mounted");
    assert_eq!(refused(&["-t", "ext3"]), "mounted");
}

#[test]
fn a_cut_off_image_and_a_destroyed_superblock_say_what_to_do() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let name = image.to_str().unwrap();
    for (block_size, backup) in [("1024", 8193), ("2048", 16384), ("4096", 32768)] {
        run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", block_size, name, "200M"]);
        let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
        file.write_all_at(&[0; 1024], 1024).unwrap();
        let error = mount(&image).err().unwrap().to_string();
        assert!(error.contains(&format!("run e2fsck -b {backup} -B {block_size}")), "{error}");
        fs::remove_file(&image).unwrap();
    }
    run("mke2fs", &["-q", "-F", "-t", "ext2", name, "8M"]);
    fs::OpenOptions::new().write(true).open(&image).unwrap().set_len(5_000_000).unwrap();
    assert_eq!(
        mount(&image).err(),
        Some(Error::Format(FormatError::Truncated { disk_bytes: 5_000_000, volume_bytes: 8 << 20 }))
    );
    fs::write(&image, b"hello").unwrap();
    assert_eq!(mount(&image).err(), Some(Error::Format(FormatError::TooSmall(5))));
    fs::write(&image, noise(1, 100_000)).unwrap();
    assert!(matches!(mount(&image).err(), Some(Error::Format(FormatError::NotExt2 { backup: None, .. }))));
}
