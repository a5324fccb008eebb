//! Names that are not UTF-8, on disks made and checked by Linux.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use end_to_end::{Format, Image, Machine};

test_needs::needs!(E2fsprogs);

/// The path of a name of these bytes in a folder.
fn below(root: &Path, name: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(name))
}

/// A disk with a folder `caf\xe9` of Latin-1 names, and a name that equals its escaped form.
fn latin() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let root = folder.path();
    let inner = below(root, b"caf\xe9");
    fs::create_dir(&inner).expect("Linux takes any bytes");
    fs::write(inner.join(OsStr::from_bytes(b"\xfcber")), "over\n").expect("a file");
    fs::create_dir(inner.join(OsStr::from_bytes(b"gr\xfcn"))).expect("a folder");
    fs::write(below(root, b"caf\xe9/gr\xfcn/\xff\xfe"), "deep\n").expect("a file");
    fs::write(root.join("caf\\xe9.txt"), "ASCII\n").expect("a file");
    fs::write(below(root, b"caf\xe9.txt"), "Latin-1\n").expect("a file");
    fs::write(below(root, &[0xff; 255]), "long\n").expect("a file");
    std::os::unix::fs::symlink(OsStr::from_bytes(b"caf\xe9/\xfcber"), root.join("link")).expect("a link");
    Image::of(root, Format { mebibytes: 16, ..Format::default() })
}

/// Runs commands in the disk's folder, checks the disk by `e2fsck` and returns standard output.
#[track_caller]
fn on(image: &Image, commands: &str) -> String {
    let machine = Machine::new().disk(image.path()).limit(Duration::from_secs(120));
    let text = machine.run(&format!("cd /fs/disk0; {commands}")).succeeded();
    image.check();
    text
}

#[test]
fn they_are_listed_and_read_and_none_is_taken_for_another() {
    let image = latin();
    let text = on(&image, "ls; ls -l; cat 'caf\\xe9.txt' 'caf\\x5cxe9.txt' 'caf\\xe9/\\xfcber' link; stat link");
    let long = "\\xff".repeat(255);
    for name in ["caf\\xe9", "caf\\xe9.txt", "caf\\x5cxe9.txt", &long] {
        let times = text.lines().flat_map(str::split_whitespace).filter(|word| word.trim_end_matches('/') == name);
        assert_eq!(times.count(), 2, "`ls` and `ls -l` have {name}: {text}");
    }
    assert!(text.contains("Latin-1\nASCII\nover\nover\n"), "{text}");
    assert!(text.contains("caf\\xe9/\\xfcber"), "where the link leads: {text}");
    let found = on(&image, "find . --name '*ber'; cat caf*/gr*/*; cat \\\\xff*");
    assert!(found.contains("caf\\xe9/\\xfcber") && found.ends_with("deep\nlong\n"), "{found}");
}

#[test]
fn they_are_copied_and_renamed_with_the_bytes_that_they_have() {
    let image = latin();
    on(&image, "cp -r 'caf\\xe9' copy; mv 'caf\\xe9.txt' '\\xc4'; mv 'caf\\x5cxe9.txt' plain; cp link 'new\\xfe'");
    let contents = image.contents();
    let read = |name: &[u8]| fs::read_to_string(below(contents.path(), name)).unwrap_or_else(|error| error.to_string());
    assert_eq!(read(b"copy/\xfcber"), "over\n");
    assert_eq!(read(b"copy/gr\xfcn/\xff\xfe"), "deep\n");
    assert_eq!(read(b"\xc4"), "Latin-1\n");
    assert_eq!(read(b"plain"), "ASCII\n");
    assert_eq!(read(b"new\xfe"), "over\n");
    assert!(!below(contents.path(), b"caf\xe9.txt").exists());
}

#[test]
fn they_and_their_folder_are_removed() {
    let image = latin();
    let long = "\\xff".repeat(255);
    on(&image, &format!("rm 'caf\\xe9.txt' '{long}'; rm -r 'caf\\xe9'; rm link"));
    let mut left: Vec<_> = fs::read_dir(image.contents().path())
        .expect("the folder can be read")
        .flatten()
        .map(|entry| entry.file_name().into_encoded_bytes())
        .collect();
    left.sort();
    assert_eq!(left, [b"caf\\xe9.txt".to_vec(), b"lost+found".to_vec()]);
}

#[test]
fn no_second_spelling_of_a_name_is_taken() {
    let image = latin();
    // `é`, a backslash that needs no escape, and a separator.
    for name in ["\\xc3\\xa9", "\\x5cx2f", "caf\\x5c"] {
        let machine = Machine::new().disk(image.path()).limit(Duration::from_secs(120));
        machine.run(&format!("mkdir '/fs/disk0/{name}'")).refused(&[name]);
    }
    on(&image, "mkdir '\\x2fa'; ls '\\x2fa'");
    assert!(below(image.contents().path(), b"\\x2fa").is_dir(), "what is no escape is a name like others");
}

#[test]
fn check_has_nothing_to_say_of_them() {
    let image = latin();
    let machine = Machine::new().disk(image.path()).limit(Duration::from_secs(120));
    let text = machine.run("umount /fs/disk0; check /dev/disk0").succeeded();
    assert!(!text.contains("xe9") && !text.contains("xff") && !text.contains('\u{fffd}'), "{text}");
    image.check();
}
