//! Every error of every operation, which must change nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{self, AnyDisk, FileDisk, has_tool, noise, run};
use ext2::{
    Access, AttributeChanges, Error, LastLink, MountOptions, NewKind, NewNode, ROOT_INODE, ReadOnlyReason, Volume,
    complete,
};

const FILE: NewNode<'_> = NewNode { kind: NewKind::File, permissions: 0o644, owner: 0, group: 0 };
const FOLDER: NewNode<'_> = NewNode { kind: NewKind::Directory, ..FILE };

struct Place(tempfile::TempDir);

impl Place {
    fn new(arguments: &[&str], size: &str) -> Option<Place> {
        if !has_tool("mke2fs") || !has_tool("e2fsck") || !has_tool("debugfs") {
            return None;
        }
        let place = Place(support::folder());
        let image = place.image();
        let mut all = vec!["-q", "-F", "-t", "ext2"];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&[image.to_str().unwrap(), size]);
        run("mke2fs", &all);
        Some(place)
    }

    fn image(&self) -> std::path::PathBuf {
        self.0.path().join("image")
    }

    fn mount(&self) -> Volume<AnyDisk> {
        complete(Volume::mount(FileDisk::open_to_write(&self.image()), MountOptions::default())).unwrap()
    }

    fn debugfs(&self, command: &str) {
        run("debugfs", &["-w", "-R", command, self.image().to_str().unwrap()]);
    }

    fn check(&self) {
        e2fsck(&self.image());
    }
}

fn e2fsck(image: &Path) {
    let output = Command::new("e2fsck").args(["-fn", image.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn number(volume: &Volume<AnyDisk>, path: &str) -> u32 {
    complete(volume.resolve(ROOT_INODE, path.as_bytes(), LastLink::Keep)).unwrap().number
}

#[test]
fn names_and_kinds() {
    let Some(place) = Place::new(&[], "8M") else { return };
    let volume = place.mount();
    let volume = &volume;
    let create = |folder, name: &[u8], node| complete(volume.create(folder, name, node)).map(|_| ());
    create(ROOT_INODE, b"file", FILE).unwrap();
    create(ROOT_INODE, b"folder", FOLDER).unwrap();
    let (file, folder) = (number(volume, "file"), number(volume, "folder"));
    create(folder, b"below", FOLDER).unwrap();
    let below = number(volume, "folder/below");
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
        assert_eq!(create(ROOT_INODE, name, FILE), Err(Error::BadName));
        assert_eq!(complete(volume.link(ROOT_INODE, name, file)), Err(Error::BadName));
        assert_eq!(complete(volume.unlink(ROOT_INODE, name)), Err(Error::BadName));
        assert_eq!(complete(volume.remove_directory(ROOT_INODE, name)), Err(Error::BadName));
        assert_eq!(complete(volume.rename(ROOT_INODE, b"file", ROOT_INODE, name)), Err(Error::BadName));
        assert_eq!(complete(volume.rename(ROOT_INODE, name, ROOT_INODE, b"file")), Err(Error::BadName));
    }
    assert_eq!(create(ROOT_INODE, &[b'n'; 256], FILE), Err(Error::NameTooLong));
    assert_eq!(create(ROOT_INODE, b"file", FOLDER), Err(Error::AlreadyExists));
    assert_eq!(create(file, b"x", FILE), Err(Error::NotADirectory));
    assert!(create(5000, b"x", FILE).is_err());
    for target in [&b""[..], b"a\0b"] {
        let link = NewNode { kind: NewKind::SymbolicLink(target), ..FILE };
        assert_eq!(create(ROOT_INODE, b"link", link), Err(Error::BadName));
    }
    let link = NewNode { kind: NewKind::SymbolicLink(&[b'x'; 1024]), ..FILE };
    assert_eq!(create(ROOT_INODE, b"link", link), Err(Error::NameTooLong));
    assert_eq!(complete(volume.link(ROOT_INODE, b"x", folder)), Err(Error::IsADirectory));
    assert_eq!(complete(volume.link(ROOT_INODE, b"folder", file)), Err(Error::AlreadyExists));
    assert_eq!(complete(volume.link(file, b"x", file)), Err(Error::NotADirectory));
    assert_eq!(complete(volume.unlink(ROOT_INODE, b"folder")), Err(Error::IsADirectory));
    assert_eq!(complete(volume.unlink(ROOT_INODE, b"none")), Err(Error::NotFound));
    assert_eq!(complete(volume.remove_directory(ROOT_INODE, b"file")), Err(Error::NotADirectory));
    assert_eq!(complete(volume.remove_directory(ROOT_INODE, b"folder")), Err(Error::NotEmpty));
    assert_eq!(complete(volume.remove_directory(ROOT_INODE, b"none")), Err(Error::NotFound));
    let rename = |from, from_name: &[u8], to, to_name: &[u8]| complete(volume.rename(from, from_name, to, to_name));
    assert_eq!(rename(ROOT_INODE, b"none", ROOT_INODE, b"x"), Err(Error::NotFound));
    assert_eq!(rename(ROOT_INODE, b"file", ROOT_INODE, b"folder"), Err(Error::IsADirectory));
    assert_eq!(rename(folder, b"below", ROOT_INODE, b"file"), Err(Error::NotADirectory));
    assert_eq!(rename(ROOT_INODE, b"folder", folder, b"x"), Err(Error::IntoItself));
    assert_eq!(rename(ROOT_INODE, b"folder", below, b"x"), Err(Error::IntoItself));
    create(ROOT_INODE, b"other", FOLDER).unwrap();
    assert_eq!(rename(ROOT_INODE, b"other", ROOT_INODE, b"folder"), Err(Error::NotEmpty));
    assert_eq!(rename(folder, b"below", ROOT_INODE, b"folder"), Err(Error::NotEmpty));
    assert_eq!(rename(ROOT_INODE, b"file", file, b"x"), Err(Error::NotADirectory));
    complete(volume.link(ROOT_INODE, b"same", file)).unwrap();
    assert_eq!(rename(ROOT_INODE, b"file", ROOT_INODE, b"same"), Ok(()));
    assert_eq!(number(volume, "file"), number(volume, "same"));
    let opened = complete(volume.open(folder)).unwrap();
    assert_eq!(complete(opened.read(0, &mut [0; 10])), Err(Error::NotAFile));
    assert_eq!(complete(opened.write(0, b"x")).unwrap_err().error, Error::NotAFile);
    assert_eq!(complete(opened.set_size(0)), Err(Error::NotAFile));
    assert_eq!(complete(volume.resolve_parent(ROOT_INODE, b"/")), Err(Error::BadName));
    assert_eq!(complete(volume.resolve_parent(ROOT_INODE, b"file/x")), Err(Error::NotADirectory));
    assert_eq!(complete(volume.resolve_parent(ROOT_INODE, b"none/x")), Err(Error::NotFound));
    complete(volume.unmount()).unwrap();
    assert_eq!(create(ROOT_INODE, b"late", FILE), Err(Error::ShutDown));
    assert_eq!(complete(volume.inode(ROOT_INODE)), Err(Error::ShutDown));
    assert_eq!(complete(volume.sync()), Err(Error::ShutDown));
    place.check();
}

#[test]
fn a_file_has_a_largest_size() {
    for (blocks, largest) in [("1024", 17_247_252_480), ("2048", 275_415_851_008), ("4096", 2_196_873_666_560)] {
        let Some(place) = Place::new(&["-b", blocks], "16M") else { return };
        let volume = place.mount();
        let file = complete(volume.create_open(ROOT_INODE, b"file", FILE)).unwrap();
        assert_eq!(complete(file.set_size(largest + 1)), Err(Error::TooLarge));
        let refused = complete(file.write(largest, b"x")).unwrap_err();
        assert_eq!((refused.written, refused.error), (0, Error::TooLarge));
        let refused = complete(file.write(largest - 3, b"more")).unwrap_err();
        assert_eq!((refused.written, refused.error), (3, Error::TooLarge));
        assert_eq!(complete(file.write(u64::MAX, b"x")).unwrap_err().error, Error::TooLarge);
        assert_eq!(complete(file.inode()).unwrap().size, largest);
        complete(volume.unmount()).unwrap();
        place.check();
    }
}

#[test]
fn a_full_volume_keeps_what_it_has() {
    for options in
        [&["-b", "1024", "-N", "400"][..], &["-b", "4096", "-N", "400", "-m", "10"], &["-b", "1024", "-r", "0"]]
    {
        let Some(place) = Place::new(options, "4M") else { return };
        let volume = place.mount();
        let folder = complete(volume.create(ROOT_INODE, b"folder", FOLDER)).unwrap().number;
        let first = complete(volume.create_open(folder, b"first", FILE)).unwrap();
        let mut written = 0;
        let error = loop {
            match complete(first.append(&noise(1, 5000))) {
                Ok(_) => written += 5000,
                Err(partial) => {
                    written += partial.written as u64;
                    break partial.error;
                }
            }
        };
        assert_eq!(error, Error::NoSpace);
        assert_eq!(complete(first.inode()).unwrap().size, written);
        assert_eq!(complete(volume.create(folder, b"another", FOLDER)).unwrap_err(), Error::NoSpace);
        let link = NewNode { kind: NewKind::SymbolicLink(&[b'x'; 100]), ..FILE };
        assert_eq!(complete(volume.create(folder, b"another", link)).unwrap_err(), Error::NoSpace);
        let mut names = 0;
        let error = loop {
            let name = format!("{names}-{}", "n".repeat(200));
            match complete(volume.create(folder, name.as_bytes(), FILE)) {
                Ok(_) => names += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::NoSpace | Error::NoInodes), "{error}");
        assert_eq!(complete(volume.list(folder, 0, 10_000)).unwrap().entries.len(), names + 1);
        let long = format!("long-{}", "n".repeat(250));
        if error == Error::NoSpace {
            assert_eq!(complete(volume.rename(folder, b"first", folder, long.as_bytes())), Err(Error::NoSpace));
            assert_eq!(complete(volume.link(folder, long.as_bytes(), first.number())), Err(Error::NoSpace));
        }
        complete(volume.sync()).unwrap();
        // Freed blocks can be reused, at once or after the library's own commit.
        complete(first.set_size(10_000)).unwrap();
        complete(first.append(&noise(2, 200_000))).unwrap();
        complete(volume.create(folder, b"another", FOLDER))
            .map(|_| ())
            .or_else(|error| match error {
                Error::NoInodes => Ok(()),
                error => Err(error),
            })
            .unwrap();
        drop(first);
        complete(volume.unmount()).unwrap();
        place.check();
        let volume = place.mount();
        let mut bytes = vec![0; 210_000];
        let file = complete(volume.open(number(&volume, "folder/first"))).unwrap();
        assert_eq!(complete(file.read(0, &mut bytes)).unwrap(), 210_000);
        assert!(bytes[10_000..] == noise(2, 200_000));
    }
}

#[test]
fn inodes_run_out() {
    let Some(place) = Place::new(&["-N", "32"], "4M") else { return };
    let volume = place.mount();
    let mut made = 0;
    let error = loop {
        match complete(volume.create(
            ROOT_INODE,
            format!("{made}").as_bytes(),
            if made % 5 == 0 { FOLDER } else { FILE },
        )) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error, volume.statistics().free_inodes), (Error::NoInodes, 0));
    complete(volume.unlink(ROOT_INODE, b"1")).unwrap();
    complete(volume.remove_directory(ROOT_INODE, b"5")).unwrap();
    complete(volume.create(ROOT_INODE, b"again", FOLDER)).unwrap();
    complete(volume.create(ROOT_INODE, b"more", FILE)).unwrap();
    assert_eq!(complete(volume.create(ROOT_INODE, b"too many", FILE)).unwrap_err(), Error::NoInodes);
    complete(volume.unmount()).unwrap();
    place.check();
}

#[test]
fn more_names_than_the_format_allows() {
    let Some(place) = Place::new(&["-b", "4096", "-N", "40000"], "256M") else { return };
    let volume = place.mount();
    let file = complete(volume.create(ROOT_INODE, b"file", FILE)).unwrap().number;
    let names = complete(volume.create(ROOT_INODE, b"names", FOLDER)).unwrap().number;
    for index in 1..32_000 {
        complete(volume.link(names, format!("{index}").as_bytes(), file)).unwrap();
    }
    assert_eq!(complete(volume.link(names, b"one more", file)), Err(Error::TooManyNames));
    let folders = complete(volume.create(ROOT_INODE, b"folders", FOLDER)).unwrap().number;
    for index in 2..32_000 {
        complete(volume.create(folders, format!("{index}").as_bytes(), FOLDER)).unwrap();
    }
    assert_eq!(complete(volume.create(folders, b"one more", FOLDER)).unwrap_err(), Error::TooManyNames);
    let moved = complete(volume.create(ROOT_INODE, b"moved", FOLDER));
    assert!(moved.is_ok());
    assert_eq!(complete(volume.rename(ROOT_INODE, b"moved", folders, b"one more")), Err(Error::TooManyNames));
    complete(volume.rename(ROOT_INODE, b"moved", folders, b"77")).unwrap();
    complete(volume.unmount()).unwrap();
    place.check();
}

#[test]
fn marks_are_respected() {
    let Some(place) = Place::new(&[], "8M") else { return };
    let volume = place.mount();
    for name in ["fixed", "grows"] {
        let file = complete(volume.create_open(ROOT_INODE, name.as_bytes(), FILE)).unwrap();
        complete(file.write(0, b"0123456789")).unwrap();
        let folder = complete(volume.create(ROOT_INODE, format!("{name}-folder").as_bytes(), FOLDER)).unwrap();
        complete(volume.create(folder.number, b"inside", FILE)).unwrap();
    }
    complete(volume.unmount()).unwrap();
    for (name, flags) in [("fixed", "0x10"), ("grows", "0x20")] {
        place.debugfs(&format!("set_inode_field {name} flags {flags}"));
        place.debugfs(&format!("set_inode_field {name}-folder flags {flags}"));
    }
    let volume = place.mount();
    let open = |path| complete(volume.open(number(&volume, path))).unwrap();
    for name in ["fixed", "grows"] {
        let (file, folder) = (number(&volume, name), number(&volume, &format!("{name}-folder")));
        assert_eq!(complete(open(name).write(3, b"x")).unwrap_err().error, Error::Protected);
        assert_eq!(complete(open(name).set_size(3)), Err(Error::Protected));
        assert_eq!(complete(volume.unlink(ROOT_INODE, name.as_bytes())), Err(Error::Protected));
        assert_eq!(complete(volume.link(ROOT_INODE, b"x", file)), Err(Error::Protected));
        assert_eq!(complete(volume.rename(ROOT_INODE, name.as_bytes(), ROOT_INODE, b"x")), Err(Error::Protected));
        let changes = AttributeChanges { permissions: Some(0), ..AttributeChanges::default() };
        assert_eq!(complete(volume.set_attributes(file, changes)), Err(Error::Protected));
        assert_eq!(complete(volume.unlink(folder, b"inside")), Err(Error::Protected));
        assert_eq!(complete(volume.rename(folder, b"inside", ROOT_INODE, b"x")), Err(Error::Protected));
    }
    assert_eq!(complete(open("fixed").append(b"more")).unwrap_err().error, Error::Protected);
    assert_eq!(complete(open("grows").append(b"more")).unwrap(), 10);
    complete(volume.create(number(&volume, "grows-folder"), b"new", FILE)).unwrap();
    let refused = complete(volume.create(number(&volume, "fixed-folder"), b"new", FILE)).unwrap_err();
    assert_eq!(refused, Error::Protected);
    complete(volume.unmount()).unwrap();
    place.check();
}

#[test]
fn a_volume_that_is_read_only_says_why() {
    let Some(place) = Place::new(&[], "8M") else { return };
    let options = MountOptions { access: Access::ReadOnly, ..MountOptions::default() };
    let asked = complete(Volume::mount(FileDisk::open_to_write(&place.image()), options)).unwrap();
    let disk = complete(Volume::mount(FileDisk::open(&place.image()), MountOptions::default())).unwrap();
    let before = fs::read(place.image()).unwrap();
    for (volume, reason) in [(asked, ReadOnlyReason::Asked), (disk, ReadOnlyReason::Disk)] {
        assert_eq!(volume.read_only_reason(), Some(reason));
        let refused = Error::ReadOnly(reason);
        let root = ROOT_INODE;
        assert_eq!(complete(volume.create(root, b"x", FILE)).unwrap_err(), refused);
        assert_eq!(complete(volume.unlink(root, b"lost+found")), Err(refused));
        assert_eq!(complete(volume.remove_directory(root, b"lost+found")), Err(refused));
        assert_eq!(complete(volume.rename(root, b"lost+found", root, b"x")), Err(refused));
        assert_eq!(complete(volume.link(root, b"x", 11)), Err(refused));
        assert_eq!(complete(volume.set_attributes(root, AttributeChanges::default())), Err(refused));
        let file = complete(volume.open(root)).unwrap();
        assert_eq!(complete(file.write(0, b"x")).unwrap_err().error, refused);
        assert_eq!(complete(file.set_size(0)), Err(refused));
        assert_eq!(complete(volume.list(root, 0, 10)).unwrap().entries.len(), 1);
        complete(volume.unmount()).unwrap();
    }
    assert!(fs::read(place.image()).unwrap() == before);
}
