//! Extended attributes beside Linux's tools: each side reads and changes those set by the other.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::support::{self, AnyDisk, FileDisk, has_tool, run};
use ext2::check::{CheckOptions, Mode, Outcome, check};
use ext2::format::attributes::namespace::{TRUSTED, USER};
use ext2::{
    Error, ExtendedAttribute, FormatError, LastLink, MountOptions, NewKind, NewNode, Problem, ROOT_INODE, Structure,
    Volume, complete,
};
use tempfile::TempDir;

/// A volume in a host file.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// With the files `a`, `b` and `c` and the folder `folder`.
    fn new(options: &[&str]) -> Disk {
        let folder = support::folder();
        let source = folder.path().join("source");
        fs::create_dir_all(source.join("folder")).unwrap();
        ["a", "b", "c"].iter().for_each(|name| fs::write(source.join(name), name).unwrap());
        std::os::unix::fs::symlink("a", source.join("link")).unwrap();
        let disk = Disk { folder };
        let (source, image) = (source.to_str().unwrap().to_string(), disk.image());
        let mut arguments = vec!["-q", "-F", "-t", "ext2"];
        arguments.extend_from_slice(options);
        arguments.extend_from_slice(&["-d", &source, image.to_str().unwrap(), "8M"]);
        run("mke2fs", &arguments);
        disk
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn mount(&self) -> Volume<AnyDisk> {
        let volume = Volume::mount(FileDisk::open_to_write(&self.image()), MountOptions::default());
        complete(volume).unwrap()
    }

    /// Runs a command of Linux's tool to change or show something.
    fn debugfs(&self, request: &str) -> String {
        run("debugfs", &["-w", "-R", request, self.image().to_str().unwrap()])
    }

    /// Neither Linux's check nor ours finds a fault.
    #[track_caller]
    fn check(&self) {
        run("e2fsck", &["-fn", self.image().to_str().unwrap()]);
        let options = CheckOptions { mode: Mode::Report, memory_bytes: 64 << 20 };
        let disk = FileDisk::open(&self.image());
        let summary = complete(check(&disk, &options, &mut |finding| eprintln!("{finding}"))).unwrap();
        assert_eq!(summary.outcome, Outcome::Clean);
    }
}

fn number(volume: &Volume<AnyDisk>, path: &str) -> u32 {
    complete(volume.resolve(ROOT_INODE, path.as_bytes(), LastLink::Keep)).unwrap().number
}

fn get(volume: &Volume<AnyDisk>, path: &str, name: &str) -> Option<Vec<u8>> {
    complete(volume.extended_attribute(number(volume, path), USER, name.as_bytes())).unwrap()
}

fn set(volume: &Volume<AnyDisk>, path: &str, name: &str, value: &[u8]) -> Result<(), Error> {
    let new = ExtendedAttribute { namespace: USER, name: name.into(), value: value.into() };
    complete(volume.set_extended_attribute(number(volume, path), new))
}

fn remove(volume: &Volume<AnyDisk>, path: &str, name: &str) -> Result<(), Error> {
    complete(volume.remove_extended_attribute(number(volume, path), USER, name.as_bytes()))
}

fn has_tools() -> bool {
    has_tool("mke2fs") && has_tool("debugfs") && has_tool("e2fsck")
}

#[test]
fn what_is_set_here_linux_reads() {
    if !has_tools() {
        return;
    }
    for options in [&["-I", "128"][..], &["-I", "256"], &["-b", "4096", "-I", "256"], &["-r", "0", "-O", "none"]] {
        let disk = Disk::new(options);
        let volume = disk.mount();
        assert!(!volume.has_seen_extended_attributes());
        assert_eq!(get(&volume, "a", "key"), None);
        for path in ["a", "folder"] {
            set(&volume, path, "singularity.acl", b"allow read **").unwrap();
            set(&volume, path, "key", b"value").unwrap();
            set(&volume, path, "key", b"another value").unwrap();
            set(&volume, path, "gone", b"soon").unwrap();
            remove(&volume, path, "gone").unwrap();
            assert_eq!(remove(&volume, path, "gone"), Err(Error::NotFound));
        }
        assert!(volume.has_seen_extended_attributes());
        complete(volume.unmount()).unwrap();
        disk.check();
        for path in ["a", "folder"] {
            let listed = disk.debugfs(&format!("ea_list {path}"));
            assert!(listed.contains("user.singularity.acl (13) = \"allow read **\""), "{options:?}: {listed}");
            assert!(listed.contains("user.key (13) = \"another value\"") && !listed.contains("gone"), "{listed}");
        }
        let volume = disk.mount();
        assert_eq!(get(&volume, "folder", "key").as_deref(), Some(&b"another value"[..]));
        // Removing the last attribute frees the block.
        let free = volume.statistics().free_blocks;
        remove(&volume, "a", "key").unwrap();
        remove(&volume, "a", "singularity.acl").unwrap();
        complete(volume.sync()).unwrap();
        assert_eq!(get(&volume, "a", "singularity.acl"), None);
        complete(volume.unmount()).unwrap();
        disk.check();
        assert_eq!(disk.mount().statistics().free_blocks, free + 1);
    }
}

#[test]
fn what_linux_set_in_a_block_or_an_inode_is_read_and_changed() {
    if !has_tools() {
        return;
    }
    for inode_bytes in ["128", "256"] {
        let disk = Disk::new(&["-I", inode_bytes]);
        disk.debugfs("ea_set a user.short 1");
        disk.debugfs("ea_set a user.other abc");
        disk.debugfs("ea_set a trusted.key xyz");
        disk.debugfs(&format!("ea_set a user.long {}", "l".repeat(300)));
        disk.debugfs("ea_set folder user.short 2");
        let volume = disk.mount();
        let all = complete(volume.extended_attributes(number(&volume, "a"))).unwrap();
        let short: Vec<(u8, &[u8], usize)> =
            all.iter().map(|one| (one.namespace, &one.name[..], one.value.len())).collect();
        for expected in [(USER, &b"short"[..], 1), (USER, b"other", 3), (TRUSTED, b"key", 3), (USER, b"long", 300)] {
            assert!(short.contains(&expected), "{inode_bytes}: {short:?}");
        }
        assert_eq!(get(&volume, "folder", "short").as_deref(), Some(&b"2"[..]));
        // An attribute in the inode moves to the block when it is replaced.
        set(&volume, "a", "short", b"longer").unwrap();
        set(&volume, "folder", "short", b"3").unwrap();
        remove(&volume, "a", "other").unwrap();
        complete(volume.unmount()).unwrap();
        disk.check();
        let listed = disk.debugfs("ea_list a");
        for part in ["user.short (6) = \"longer\"", "trusted.key (3) = \"xyz\"", "user.long (300)"] {
            assert!(listed.contains(part), "{inode_bytes}: {listed}");
        }
        assert!(!listed.contains("other"), "{listed}");
        assert!(disk.debugfs("ea_list folder").contains("user.short (1) = \"3\""));
    }
}

/// Gives `b` the attributes of `a`, shared as in Linux.
fn share(disk: &Disk) {
    let block = {
        let volume = disk.mount();
        let inode = complete(volume.inode(number(&volume, "a"))).unwrap();
        complete(volume.unmount()).unwrap();
        inode.attribute_block
    };
    disk.debugfs(&format!("set_inode_field b file_acl {block}"));
    disk.debugfs("set_inode_field b blocks 4");
    let image = fs::OpenOptions::new().write(true).open(disk.image()).unwrap();
    image.write_all_at(&2u32.to_le_bytes(), u64::from(block) * 1024 + 4).unwrap();
}

#[test]
fn a_block_that_several_inodes_use_is_not_changed_for_one_of_them() {
    if !has_tools() {
        return;
    }
    for act in ["change", "remove", "unlink"] {
        let disk = Disk::new(&["-I", "128", "-b", "1024"]);
        disk.debugfs("ea_set a user.key value");
        share(&disk);
        disk.check();
        let volume = disk.mount();
        assert_eq!(get(&volume, "b", "key").as_deref(), Some(&b"value"[..]));
        let free = volume.statistics().free_blocks;
        match act {
            "change" => set(&volume, "a", "key", b"changed").unwrap(),
            "remove" => remove(&volume, "a", "key").unwrap(),
            _ => complete(volume.unlink(ROOT_INODE, b"a")).unwrap(),
        }
        assert_eq!(get(&volume, "b", "key").as_deref(), Some(&b"value"[..]), "{act}");
        complete(volume.unmount()).unwrap();
        disk.check();
        // Then `b` is its only user, and changes it in place.
        let volume = disk.mount();
        let expected = match act {
            "change" => free - 1,
            "remove" => free,
            _ => free + 1,
        };
        assert_eq!(volume.statistics().free_blocks, expected, "{act}");
        set(&volume, "b", "key", b"another").unwrap();
        complete(volume.unmount()).unwrap();
        disk.check();
        assert_eq!(disk.mount().statistics().free_blocks, expected, "{act}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    if !has_tools() {
        return;
    }
    let disk = Disk::new(&["-I", "256", "-b", "1024"]);
    let volume = disk.mount();
    assert_eq!(set(&volume, "link", "key", b"value"), Err(Error::NotAFile));
    assert_eq!(set(&volume, "a", "", b"value"), Err(Error::BadName));
    assert_eq!(set(&volume, "a", "a\0b", b"value"), Err(Error::BadName));
    assert_eq!(set(&volume, "a", &"n".repeat(256), b"value"), Err(Error::NameTooLong));
    // A block of 1,024 bytes, less 36 and 20 for each attribute.
    assert_eq!(set(&volume, "a", "key", &[7; 969]), Err(Error::NoSpace));
    set(&volume, "a", "key", &[7; 968]).unwrap();
    assert_eq!(set(&volume, "a", "more", b""), Err(Error::NoSpace));
    assert_eq!(get(&volume, "a", "key"), Some(vec![7; 968]));
    assert_eq!(get(&volume, "a", "more"), None);
    complete(volume.unmount()).unwrap();
    disk.check();
    let read_only = complete(Volume::mount(FileDisk::open(&disk.image()), MountOptions::default())).unwrap();
    assert!(matches!(set(&read_only, "a", "key", b"value"), Err(Error::ReadOnly(_))));
    assert_eq!(get(&read_only, "a", "key"), Some(vec![7; 968]));
}

#[test]
fn damaged_attributes_are_told_of_and_kept_as_they_are() {
    if !has_tools() {
        return;
    }
    let disk = Disk::new(&["-I", "128", "-b", "1024"]);
    disk.debugfs("ea_set a user.key value");
    let volume = disk.mount();
    let (inode, block) = {
        let inode = complete(volume.inode(number(&volume, "a"))).unwrap();
        (inode.number, inode.attribute_block)
    };
    complete(volume.unmount()).unwrap();
    let image = fs::OpenOptions::new().write(true).open(disk.image()).unwrap();
    // The value begins after the end of the block.
    image.write_all_at(&0xfff0u16.to_le_bytes(), u64::from(block) * 1024 + 34).unwrap();
    let volume = disk.mount();
    let damaged = |error: Error| {
        let Error::Format(FormatError::Corrupt(corruption)) = error else { panic!("{error}") };
        assert_eq!((corruption.structure, corruption.block), (Structure::ExtendedAttributes(inode), block.into()));
        assert!(matches!(corruption.problem, Problem::Missing(_)) && error.to_string().contains("e2fsck"), "{error}");
    };
    damaged(complete(volume.extended_attributes(inode)).unwrap_err());
    damaged(set(&volume, "a", "key", b"new").unwrap_err());
    damaged(remove(&volume, "a", "key").unwrap_err());
    assert_eq!(complete(volume.inode(inode)).unwrap().attribute_block, block);
    // An invalid block number.
    complete(volume.unmount()).unwrap();
    disk.debugfs("set_inode_field a file_acl 8000000");
    let volume = disk.mount();
    assert!(matches!(complete(volume.extended_attributes(inode)), Err(Error::Format(FormatError::Corrupt(_)))));
    complete(volume.unlink(ROOT_INODE, b"a")).unwrap();
    complete(volume.unmount()).unwrap();
}

#[test]
fn a_full_volume_refuses_attributes_and_keeps_those_that_it_has() {
    if !has_tools() {
        return;
    }
    let disk = Disk::new(&["-I", "128", "-b", "1024"]);
    disk.debugfs("ea_set a user.key value");
    share(&disk);
    let volume = disk.mount();
    let node = NewNode { kind: NewKind::File, permissions: 0o644, owner: 0, group: 0 };
    let file = complete(volume.create_open(ROOT_INODE, b"all", node)).unwrap();
    let filled = complete(file.write(0, &vec![1; 16 << 20])).unwrap_err();
    assert_eq!(filled.error, Error::NoSpace);
    while complete(file.append(&[1; 1024])).is_ok() {}
    assert_eq!(set(&volume, "c", "key", b"value"), Err(Error::NoSpace));
    // It would need its own block.
    assert_eq!(set(&volume, "a", "key", b"new"), Err(Error::NoSpace));
    assert_eq!(get(&volume, "a", "key").as_deref(), Some(&b"value"[..]));
    // Releasing it needs none, and then the other can change it.
    remove(&volume, "a", "key").unwrap();
    set(&volume, "b", "key", b"new").unwrap();
    drop(file);
    complete(volume.unmount()).unwrap();
    disk.check();
}

/// Linux mounts the image through a loop device, and its own tools read and set the attributes.
mod through_a_mount_setfattr {
    use std::process::Command;

    use super::*;

    struct Mounted {
        place: TempDir,
    }

    impl Mounted {
        /// `None` if that is not possible.
        fn new(image: &Path) -> Option<Mounted> {
            let mounted = Mounted { place: support::folder() };
            let mut command = Command::new("mount");
            command.args(["-t", "ext2", "-o", "loop"]).arg(image).arg(mounted.place.path());
            let done = command.output().is_ok_and(|output| output.status.success());
            if !done {
                eprintln!("skipped: mounting through a loop device is not possible; root may do so");
            }
            done.then_some(mounted)
        }

        fn path(&self, name: &str) -> String {
            self.place.path().join(name).to_str().unwrap().to_string()
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            for _ in 0..20 {
                let done = Command::new("umount").arg(self.place.path()).output();
                if done.is_ok_and(|output| output.status.success()) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
    }

    #[test]
    fn lists_are_read_and_set_by_both() {
        if !has_tools() || Command::new("setfattr").arg("--version").output().is_err() {
            eprintln!("skipped: setfattr is not installed (package attr)");
            return;
        }
        let disk = Disk::new(&["-I", "256", "-b", "1024"]);
        let volume = disk.mount();
        let list = b"deny write ..guest.singularity\nallow all **\n";
        set(&volume, "folder", "singularity.acl", list).unwrap();
        complete(volume.unmount()).unwrap();
        let Some(mounted) = Mounted::new(&disk.image()) else { return };
        let found = run(
            "getfattr",
            &["--absolute-names", "--only-values", "-n", "user.singularity.acl", &mounted.path("folder")],
        );
        assert_eq!(found.as_bytes(), list);
        for name in ["a", "b"] {
            // Too long for the inode, and the same, so that they share a block.
            let value = "allow read **".repeat(20);
            run("setfattr", &["-n", "user.singularity.acl", "-v", &value, &mounted.path(name)]);
        }
        drop(mounted);
        let volume = disk.mount();
        let block = |name| complete(volume.inode(number(&volume, name))).unwrap().attribute_block;
        assert_eq!(block("a"), block("b"));
        assert_eq!(get(&volume, "b", "singularity.acl"), Some(b"allow read **".repeat(20)));
        set(&volume, "a", "singularity.acl", b"allow all **\n").unwrap();
        assert_ne!(block("a"), block("b"));
        complete(volume.unmount()).unwrap();
        disk.check();
    }
}
