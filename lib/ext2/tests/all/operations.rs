//! Every operation, on volumes of every kind: Linux reads the result, and e2fsck finds it clean.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, AnyDisk, FileDisk, has_tool, noise, run};
use ext2::make::{Attributes, Folder, ImageOptions, make_image};
use ext2::{
    AttributeChanges, Inode, Kind, LastLink, MountOptions, NewKind, NewNode, OpenFile, ROOT_INODE, Volume, complete,
};

/// A volume in a host file, and its expected content.
struct World {
    volume: Volume<AnyDisk>,
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, Vec<u8>>,
    folders: BTreeMap<String, usize>,
}

fn node(kind: NewKind<'_>) -> NewNode<'_> {
    NewNode { kind, permissions: 0o640, owner: 70_000, group: 12 }
}

impl World {
    fn mount(image: &Path) -> World {
        let volume = complete(Volume::mount(FileDisk::open_to_write(image), MountOptions::default())).unwrap();
        assert_eq!(volume.read_only_reason(), None);
        World { volume, files: BTreeMap::new(), links: BTreeMap::new(), folders: BTreeMap::new() }
    }

    fn place(&self, path: &str) -> (u32, Vec<u8>) {
        complete(self.volume.resolve_parent(ROOT_INODE, path.as_bytes())).unwrap()
    }

    fn find(&self, path: &str) -> Inode {
        complete(self.volume.resolve(ROOT_INODE, path.as_bytes(), LastLink::Keep)).unwrap()
    }

    fn open(&self, path: &str) -> OpenFile<AnyDisk> {
        complete(self.volume.open(self.find(path).number)).unwrap()
    }

    fn folder(&mut self, path: &str) {
        let (folder, name) = self.place(path);
        let inode = complete(self.volume.create(folder, &name, node(NewKind::Directory))).unwrap();
        assert_eq!((inode.kind, inode.links, inode.permissions), (Kind::Directory, 2, 0o640));
        self.folders.insert(path.to_string(), 0);
    }

    fn file(&mut self, path: &str, bytes: &[u8]) {
        let (folder, name) = self.place(path);
        let file = complete(self.volume.create_open(folder, &name, node(NewKind::File))).unwrap();
        complete(file.write(0, bytes)).unwrap();
        self.files.insert(path.to_string(), bytes.to_vec());
    }

    fn link(&mut self, path: &str, target: &[u8]) {
        let (folder, name) = self.place(path);
        complete(self.volume.create(folder, &name, node(NewKind::SymbolicLink(target)))).unwrap();
        self.links.insert(path.to_string(), target.to_vec());
    }

    fn write(&mut self, path: &str, offset: usize, bytes: &[u8]) {
        complete(self.open(path).write(offset as u64, bytes)).unwrap();
        let content = self.files.get_mut(path).unwrap();
        content.resize(content.len().max(offset + bytes.len()), 0);
        content[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn append(&mut self, path: &str, bytes: &[u8]) {
        let content = self.files.get_mut(path).unwrap();
        let end = content.len() as u64;
        content.extend_from_slice(bytes);
        assert_eq!(complete(self.open(path).append(bytes)).unwrap(), end);
    }

    fn set_size(&mut self, path: &str, bytes: usize) {
        complete(self.open(path).set_size(bytes as u64)).unwrap();
        self.files.get_mut(path).unwrap().resize(bytes, 0);
    }

    fn hard_link(&mut self, existing: &str, path: &str) {
        let (folder, name) = self.place(path);
        complete(self.volume.link(folder, &name, self.find(existing).number)).unwrap();
        self.files.insert(path.to_string(), self.files[existing].clone());
    }

    fn unlink(&mut self, path: &str) {
        let (folder, name) = self.place(path);
        complete(self.volume.unlink(folder, &name)).unwrap();
        assert!(self.files.remove(path).is_some() || self.links.remove(path).is_some());
    }

    fn remove_folder(&mut self, path: &str) {
        let (folder, name) = self.place(path);
        complete(self.volume.remove_directory(folder, &name)).unwrap();
        self.folders.remove(path).unwrap();
    }

    fn rename(&mut self, from: &str, to: &str) {
        let ((from_folder, from_name), (to_folder, to_name)) = (self.place(from), self.place(to));
        complete(self.volume.rename(from_folder, &from_name, to_folder, &to_name)).unwrap();
        fn moved<T>(map: &mut BTreeMap<String, T>, from: &str, to: &str) {
            map.remove(to);
            let below = format!("{from}/");
            let names: Vec<String> =
                map.keys().filter(|name| *name == from || name.starts_with(&below)).cloned().collect();
            for name in names {
                let value = map.remove(&name).unwrap();
                map.insert(format!("{to}{}", &name[from.len()..]), value);
            }
        }
        moved(&mut self.files, from, to);
        moved(&mut self.links, from, to);
        moved(&mut self.folders, from, to);
    }

    /// Reads everything and compares.
    fn check(&self) {
        for (path, bytes) in &self.files {
            assert!(crate::support::content(&self.volume, path) == *bytes, "{path}");
        }
        for (path, target) in &self.links {
            assert_eq!(complete(self.volume.link_target(self.find(path).number)).unwrap(), *target);
        }
        for path in self.folders.keys() {
            let inode = self.find(path);
            let below: Vec<&String> =
                self.folders.keys().filter(|name| Path::new(name).parent() == Some(Path::new(path))).collect();
            assert_eq!((inode.kind, usize::from(inode.links)), (Kind::Directory, 2 + below.len()), "{path}");
        }
    }

    fn unmount(self) -> World {
        complete(self.volume.unmount()).unwrap();
        self
    }
}

fn e2fsck(image: &Path) {
    let output = Command::new("e2fsck").args(["-fn", image.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Runs every operation once.
fn work(world: &mut World, block_bytes: usize) {
    let sizes = [0, 1, block_bytes - 1, block_bytes, 12 * block_bytes, 12 * block_bytes + 1, 300 * block_bytes + 7];
    for size in sizes {
        world.file(&format!("file-{size}"), &noise(size as u64, size));
    }
    world.folder("folder");
    world.folder("folder/below");
    world.folder("folder/below/deep");
    world.file("folder/below/deep/file", b"deep");
    world.link("short", b"folder/below");
    world.link("59", &[b'x'; 59]);
    world.link("60", &[b'y'; 60]);
    world.link("long", &vec![b'z'; block_bytes - 1]);
    world.file("sparse", b"");
    for (index, at) in [5000, 13 * block_bytes, 400 * block_bytes - 3].into_iter().enumerate() {
        world.write("sparse", at, &noise(index as u64, 3000));
    }
    world.write("sparse", 5500, b"over what was there");
    for index in 0..40 {
        world.append("file-0", &noise(index, 777));
    }
    world.write("file-1", 10, b"behind the end");
    world.set_size(&format!("file-{}", 300 * block_bytes + 7), 100 * block_bytes + 5);
    world.set_size(&format!("file-{}", 300 * block_bytes + 7), 100 * block_bytes + 3000);
    world.set_size(&format!("file-{}", 12 * block_bytes + 1), 3);
    world.write(&format!("file-{}", 12 * block_bytes + 1), 9, b"zeros before this");
    world.set_size(&format!("file-{block_bytes}"), 0);
    world.set_size("file-0", 5_000_000);
    world.hard_link("file-1", "folder/other name");
    world.hard_link("file-1", "folder/third");
    world.unlink("file-1");
    world.rename("folder/third", "folder/fourth");
    world.rename("file-0", &format!("file-{block_bytes}"));
    world.rename("folder/below/deep", "moved");
    world.folder("empty");
    world.folder("empty2");
    world.folder("folder/kept");
    world.rename("empty", "empty2");
    world.rename("empty2", "folder/kept");
    world.rename("folder", "renamed");
    world.rename("60", "59");
    world.unlink("long");
    world.folder("gone");
    world.remove_folder("gone");
    world.file(&"n".repeat(255), b"long name");
}

/// Many names in a folder, some of them temporary.
fn crowd(world: &mut World, count: usize) {
    world.folder("many");
    let name = |index: usize| format!("many/{index:05}-{}", "x".repeat(index * 7 % 60));
    for index in 0..count {
        world.file(&name(index), format!("{index}").as_bytes());
    }
    for index in (0..count).filter(|index| index % 3 == 0) {
        world.unlink(&name(index));
    }
    for index in (0..count).filter(|index| index % 6 == 0) {
        world.file(&name(index), b"again");
    }
    for index in (0..count).filter(|index| index % 3 == 1) {
        world.rename(&name(index), &format!("{}-renamed", name(index)));
    }
    let listed = crate::support::names(&world.volume, &world.find("many"));
    assert_eq!(listed.len(), world.files.keys().filter(|name| name.starts_with("many/")).count());
}

/// Reads everything with Linux. Returns false if mounting is not permitted.
fn compare_with_linux(image: &Path, point: &Path, world: &World) -> bool {
    let arguments = ["-t", "ext2", "-o", "loop,ro", image.to_str().unwrap(), point.to_str().unwrap()];
    if !Command::new("mount").args(arguments).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user or machine cannot mount an image");
        return false;
    }
    let wrong = differences(point, world);
    support::unmount(point);
    assert_eq!(wrong, Vec::<String>::new());
    true
}

fn differences(point: &Path, world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut note = |is_right: bool, what: String| {
        if !is_right {
            wrong.push(what);
        }
    };
    for (path, bytes) in &world.files {
        let file = point.join(path);
        note(fs::read(&file).is_ok_and(|read| read == *bytes), format!("content of {path}"));
        let is_right = file.symlink_metadata().is_ok_and(|data| {
            data.uid() == 70_000 && data.gid() == 12 && data.mode() & 0o7777 == 0o640 && data.mtime() == 1_700_000_000
        });
        note(is_right, format!("attributes of {path}"));
    }
    for (path, target) in &world.links {
        let expected = PathBuf::from(String::from_utf8(target.clone()).unwrap());
        note(fs::read_link(point.join(path)).is_ok_and(|read| read == expected), format!("target of {path}"));
    }
    let mut expected = world.files.len() + world.links.len() + world.folders.len() + 1;
    let mut folders = vec![point.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            expected = expected.wrapping_sub(1);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    note(expected == 0, format!("{} names more or fewer", expected as isize));
    wrong
}

/// Runs operations on the image, and checks it while in use, after a sync and after the unmount.
fn work_on(image: &Path, place: &Path, block_bytes: usize, count: usize) {
    let mut world = World::mount(image);
    let before = world.volume.statistics();
    work(&mut world, block_bytes);
    crowd(&mut world, count);
    world.check();
    complete(world.volume.sync()).unwrap();
    world.check();
    let World { files, links, folders, volume } = world.unmount();
    drop(volume);
    e2fsck(image);
    let mut world = World { files, links, folders, ..World::mount(image) };
    world.check();
    let point = place.join("mounted");
    fs::create_dir_all(&point).unwrap();
    compare_with_linux(image, &point, &world);
    clear(&mut world);
    let after = world.volume.statistics();
    assert_eq!(after.free_inodes, before.free_inodes);
    let World { volume, .. } = world.unmount();
    drop(volume);
    e2fsck(image);
}

/// Removes everything.
fn clear(world: &mut World) {
    let names: Vec<String> = world.files.keys().chain(world.links.keys()).cloned().collect();
    names.iter().for_each(|name| world.unlink(name));
    let folders: Vec<String> = world.folders.keys().rev().cloned().collect();
    folders.iter().for_each(|name| world.remove_folder(name));
}

fn with_options(options: &[&str], block_bytes: usize, count: usize) {
    if !has_tool("mke2fs") || !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let blocks = block_bytes.to_string();
    let mut arguments = vec!["-q", "-F", "-t", "ext2", "-b", &blocks];
    arguments.extend_from_slice(options);
    arguments.extend_from_slice(&["-N", "2048", image.to_str().unwrap(), "32M"]);
    run("mke2fs", &arguments);
    work_on(&image, place.path(), block_bytes, count);
}

#[test]
fn revision_0() {
    [1024, 2048, 4096].into_iter().for_each(|bytes| with_options(&["-r", "0"], bytes, 300));
}

#[test]
fn without_an_index() {
    [1024, 2048, 4096].into_iter().for_each(|bytes| with_options(&["-O", "^dir_index", "-I", "128"], bytes, 600));
}

#[test]
fn with_an_index() {
    [1024, 2048, 4096].into_iter().for_each(|bytes| with_options(&["-O", "dir_index", "-I", "256"], bytes, 1200));
}

#[test]
fn large_inodes_and_no_kinds_in_entries() {
    with_options(&["-O", "^filetype,dir_index", "-I", "1024"], 1024, 600);
}

#[test]
fn images_of_this_library() {
    if !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let path = place.path().join("image");
    for block_bytes in [1024, 2048, 4096] {
        let options = ImageOptions {
            block_bytes,
            volume_bytes: 32 << 20,
            inodes: Some(2048),
            label: [0; 16],
            uuid: [7; 16],
            made: 1_700_000_000,
        };
        let root = Folder { attributes: Attributes::searchable(1), entries: BTreeMap::new() };
        let mut image = Vec::new();
        let built = make_image(&options, &root, &mut image).unwrap();
        image.resize(built.volume_bytes as usize, 0);
        support::save(&path, &image);
        work_on(&path, place.path(), block_bytes as usize, 200);
    }
}

#[test]
fn a_large_sparse_file_has_all_levels() {
    if !has_tool("mke2fs") || !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    for (block_bytes, options) in [("1024", "^large_file"), ("4096", "^large_file"), ("1024", "none")] {
        let revision = if options == "none" { vec!["-r", "0"] } else { vec!["-O", options] };
        let mut arguments = vec!["-q", "-F", "-t", "ext2", "-b", block_bytes];
        arguments.extend(revision);
        arguments.extend([image.to_str().unwrap(), "32M"]);
        run("mke2fs", &arguments);
        let mut world = World::mount(&image);
        world.file("sparse", b"");
        let pieces = [0u64, 5000, 300 << 10, 70 << 20, (1 << 30) + 12_345, (2 << 30) - 100, (3 << 30) + 7, (5 << 30)];
        let file = world.open("sparse");
        for at in pieces {
            complete(file.write(at, &noise(at, 9000))).unwrap();
        }
        let size = (5 << 30) + 9000;
        let inode = complete(file.inode()).unwrap();
        assert_eq!(inode.size, size);
        for at in pieces {
            let mut bytes = vec![0; 9000];
            assert_eq!(complete(file.read(at, &mut bytes)).unwrap(), 9000);
            assert!(bytes[..90] == noise(at, 9000)[..90]);
        }
        let world = world.unmount();
        drop((file, world));
        e2fsck(&image);
        let mut world = World::mount(&image);
        let file = world.open("sparse");
        for at in [(3 << 30) + 100u64, 2 << 30, 70 << 20, 4000, 0] {
            complete(file.set_size(at)).unwrap();
            let inode = complete(file.inode()).unwrap();
            assert_eq!(inode.size, at);
        }
        assert_eq!(complete(file.inode()).unwrap().sectors, 0);
        world.files.clear();
        let world = world.unmount();
        drop((file, world));
        e2fsck(&image);
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn what_linux_made_is_changed() {
    if !has_tool("mke2fs") || !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let (image, folder) = (place.path().join("image"), place.path().join("folder"));
    fs::create_dir_all(folder.join("many")).unwrap();
    let name = |index: usize| format!("many/{index:05}-{}", "x".repeat(index % 200));
    (0..1500).for_each(|index| fs::write(folder.join(name(index)), format!("{index}")).unwrap());
    for hash in ["legacy", "half_md4", "tea"] {
        let (from, to) = (folder.to_str().unwrap(), image.to_str().unwrap());
        run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "1024", "-O", "dir_index", "-d", from, to, "32M"]);
        run("tune2fs", &["-E", &format!("hash_alg={hash}"), to]);
        // mke2fs creates no index; e2fsck does. Status 1 means that it changed the volume.
        let status = Command::new("e2fsck").args(["-fyD", to]).output().unwrap().status;
        assert!(matches!(status.code(), Some(0 | 1)));
        let mut world = World::mount(&image);
        (0..1500).for_each(|index| drop(world.files.insert(name(index), format!("{index}").into_bytes())));
        world.check();
        (0..1500).step_by(2).for_each(|index| world.unlink(&name(index)));
        (2000..3500).for_each(|index| world.file(&name(index), b"new"));
        (1..1500).step_by(2).for_each(|index| world.rename(&name(index), &format!("{}-to", name(index))));
        world.check();
        assert_ne!(world.find("many").flags & 0x1000, 0, "the index is kept");
        let world = world.unmount();
        drop(world);
        e2fsck(&image);
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn an_index_grows_a_second_level() {
    if !has_tool("mke2fs") || !has_tool("e2fsck") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    for hash in ["signed_hash", "unsigned_hash"] {
        let name = image.to_str().unwrap();
        run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "1024", "-O", "dir_index", "-N", "64", name, "8M"]);
        // The signedness of characters is a flag of the superblock.
        let flags = if hash == "signed_hash" { "1" } else { "2" };
        run("debugfs", &["-w", "-R", &format!("set_super_value flags {flags}"), name]);
        let mut world = World::mount(&image);
        world.folder("many");
        world.file("file", b"content");
        let (many, file) = (world.find("many").number, world.find("file").number);
        let name = |index: usize| format!("{index}-{}", "ä".repeat(120)).into_bytes();
        for index in 0..1200 {
            complete(world.volume.link(many, &name(index), file)).unwrap();
        }
        for index in (0..1200).step_by(5) {
            complete(world.volume.unlink(many, &name(index))).unwrap();
        }
        for index in 0..1200 {
            let found = complete(world.volume.find(many, &name(index)));
            assert_eq!(found, if index % 5 == 0 { Err(ext2::Error::NotFound) } else { Ok(file) });
        }
        assert_ne!(world.find("many").flags & 0x1000, 0, "the index is kept");
        drop(world.unmount());
        e2fsck(&image);
        let dump = run("debugfs", &["-R", "htree_dump many", image.to_str().unwrap()]);
        assert!(dump.contains("Indirect levels: 1"), "{}", &dump[..400]);
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn attributes_are_changed() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    run("mke2fs", &["-q", "-F", "-t", "ext2", "-I", "256", image.to_str().unwrap(), "8M"]);
    let mut world = World::mount(&image);
    world.file("file", b"content");
    let number = world.find("file").number;
    let changes = AttributeChanges {
        permissions: Some(0o17_4755),
        owner: Some(1 << 20),
        group: Some(5),
        modified: Some(77),
        accessed: Some(88),
    };
    complete(world.volume.set_attributes(number, changes)).unwrap();
    complete(world.volume.set_attributes(number, AttributeChanges { group: Some(6), ..Default::default() })).unwrap();
    let inode = world.find("file");
    assert_eq!((inode.permissions, inode.owner, inode.group), (0o4755, 1 << 20, 6));
    assert_eq!((inode.modified, inode.accessed, inode.changed), (77, 88, 1_700_000_000));
    let world = world.unmount();
    drop(world);
    e2fsck(&image);
    let dump = run("debugfs", &["-R", "stat file", image.to_str().unwrap()]);
    assert!(dump.contains("Mode:  04755") && dump.contains("User: 1048576"), "{dump}");
}

#[test]
fn nodes_of_other_kinds_are_kept() {
    if !has_tool("mke2fs") || !has_tool("debugfs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let name = image.to_str().unwrap();
    run("mke2fs", &["-q", "-F", "-t", "ext2", name, "8M"]);
    for command in ["mknod device b 8 1", "mknod terminal c 4 64", "mknod pipe p"] {
        run("debugfs", &["-w", "-R", command, name]);
    }
    let mut world = World::mount(&image);
    world.folder("folder");
    for (node, moved) in [("device", "folder/device"), ("pipe", "folder/pipe")] {
        world.rename(node, moved);
    }
    complete(world.volume.unlink(ROOT_INODE, b"terminal")).unwrap();
    let world = world.unmount();
    drop(world);
    e2fsck(&image);
    let dump = run("debugfs", &["-R", "stat folder/device", name]);
    assert!(dump.contains("Device major/minor number: 08:01"), "{dump}");
}

#[test]
fn extended_attributes_are_let_go_of() {
    if !has_tool("mke2fs") || !has_tool("debugfs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let name = image.to_str().unwrap();
    run("mke2fs", &["-q", "-F", "-t", "ext2", "-I", "128", name, "8M"]);
    fs::write(place.path().join("source"), b"source").unwrap();
    let command = format!("write {} file", place.path().join("source").display());
    run("debugfs", &["-w", "-R", &command, name]);
    run("debugfs", &["-w", "-R", &format!("ea_set file user.key {}", "v".repeat(100)), name]);
    e2fsck(&image);
    let mut world = World::mount(&image);
    assert_ne!(world.find("file").attribute_block, 0);
    let free = world.volume.statistics().free_blocks;
    world.files.insert("file".to_string(), b"source".to_vec());
    world.append("file", b" and more");
    world.check();
    world.unlink("file");
    complete(world.volume.sync()).unwrap();
    let world = world.unmount();
    drop(world);
    e2fsck(&image);
    let volume = World::mount(&image).volume;
    assert!(volume.statistics().free_blocks >= free + 2);
}

#[test]
fn an_open_file_outlives_its_name() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    run("mke2fs", &["-q", "-F", "-t", "ext2", image.to_str().unwrap(), "8M"]);
    let mut world = World::mount(&image);
    let free = world.volume.statistics().free_inodes;
    let names = ["a", "b", "c", "d"];
    let files = names.map(|name| {
        world.file(name, &noise(3, 100_000));
        world.open(name)
    });
    names.iter().for_each(|name| world.unlink(name));
    assert_eq!(world.volume.statistics().free_inodes, free - 4);
    let [a, b, c, d] = files;
    complete(c.write(100_000, b"still written")).unwrap();
    let mut bytes = vec![0; 100_013];
    assert_eq!(complete(c.read(0, &mut bytes)).unwrap(), 100_013);
    assert!(bytes[..100_000] == noise(3, 100_000) && &bytes[100_000..] == b"still written");
    // From the middle, the beginning and the end of the list.
    complete(c.close()).unwrap();
    complete(d.close()).unwrap();
    drop(a);
    assert_eq!(world.volume.statistics().free_inodes, free - 1);
    assert_eq!(complete(b.inode()).unwrap().links, 0);
    world.folder("folder");
    let folder = world.open("folder");
    world.remove_folder("folder");
    assert!(complete(world.volume.list(folder.number(), 0, 10)).unwrap().entries.is_empty());
    let refused = complete(world.volume.create(folder.number(), b"x", node(NewKind::File)));
    assert_eq!(refused.unwrap_err(), ext2::Error::NotFound);
    let world = world.unmount();
    assert_eq!(complete(b.read(0, &mut bytes)), Err(ext2::Error::ShutDown));
    drop((world, b, folder));
    e2fsck(&image);
    // The next mount processes the orphan list left by a crash.
    let mut world = World::mount(&image);
    world.file("open", &noise(5, 300_000));
    let file = world.open("open");
    world.unlink("open");
    complete(world.volume.sync()).unwrap();
    let copy = place.path().join("copy");
    fs::copy(&image, &copy).unwrap();
    drop(file);
    let crashed = World::mount(&copy);
    assert_eq!(crashed.volume.statistics().free_inodes, free);
    drop(crashed.unmount());
    e2fsck(&copy);
}

#[test]
fn bytes_behind_the_end_do_not_come_back() {
    if !has_tool("mke2fs") {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "4096", image.to_str().unwrap(), "8M"]);
    let mut world = World::mount(&image);
    world.file("file", &[0xaa; 4096]);
    world.file("other", b"12345");
    // Another system may leave any bytes after the end of a file.
    let block = world.find("other").blocks[0];
    complete(world.volume.sync()).unwrap();
    drop(world.unmount());
    let host = fs::OpenOptions::new().write(true).open(&image).unwrap();
    host.write_all_at(&[0xbb; 4000], u64::from(block) * 4096 + 5).unwrap();
    let mut world = World::mount(&image);
    world.files.insert("file".to_string(), vec![0xaa; 4096]);
    world.files.insert("other".to_string(), b"12345".to_vec());
    world.set_size("file", 100);
    world.set_size("file", 4096);
    world.set_size("other", 3000);
    world.write("other", 3500, b"end");
    world.check();
}
