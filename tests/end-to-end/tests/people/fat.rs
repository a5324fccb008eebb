//! FAT disks, made and checked by Linux's tools, and used with the ordinary programs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Image, Machine, Run, Site, WebClient};

test_needs::needs!(Dosfstools);

/// A FAT disk with the file `Some folder/A long name.txt`, which contains `content`.
fn disk(mebibytes: usize, words: &[&str]) -> Image {
    let image = Image::with_bytes(&vec![0; mebibytes << 20]);
    linux("mkfs.fat", |command| command.args(words).arg(image.path()));
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("file");
    std::fs::write(&file, "content\n").expect("a file can be written");
    mtools(&image, "mmd", &["::Some folder"]);
    mtools(&image, "mcopy", &[file.to_str().expect("a path"), "::Some folder/A long name.txt"]);
    image
}

#[track_caller]
fn linux(program: &str, with: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("MTOOLS_SKIP_CHECK", "1");
    let output = with(&mut command).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn mtools(image: &Image, program: &str, words: &[&str]) -> String {
    linux(program, |command| command.arg("-i").arg(image.path()).args(words))
}

/// Asserts that fsck.fat finds no error and the volume is marked as cleanly unmounted.
#[track_caller]
fn expect_clean(image: &Image) {
    linux("fsck.fat", |command| command.arg("-n").arg(image.path()));
}

fn run(disk: &Path, commands: &str) -> Run {
    let run = Machine::new().disk(disk).limit(Duration::from_secs(120)).run(commands);
    run.orderly();
    run
}

#[test]
fn the_programs_of_the_system_work_on_fat() {
    for (mebibytes, words) in [(1, ["-F", "12"]), (16, ["-F", "16"]), (40, ["-F", "32"])] {
        let image = disk(mebibytes, &words);
        let commands = "cd /fs/disk0; cat 'SOME FOLDER/a long NAME.txt'; mkdir -p new/deeper; \
            cp 'Some folder/A long name.txt' new/deeper/copy; echo more >> new/deeper/copy; \
            mv new/deeper/copy 'new/Moved copy.text'; cat 'new/moved copy.TEXT'; rmdir new/deeper; \
            rm 'Some folder/A long name.txt'; rmdir 'Some folder'; ls; sync";
        let text = run(&image.path(), commands).succeeded();
        assert_eq!(text, "content\ncontent\nmore\nnew/\n");
        expect_clean(&image);
        assert_eq!(mtools(&image, "mtype", &["::new/Moved copy.text"]), "content\nmore\n");
    }
}

#[test]
fn what_fat_cannot_do_is_refused() {
    let image = disk(1, &["-F", "12"]);
    let refused = |commands: &str| {
        let run = run(&image.path(), commands);
        assert!(run.status != Some(0) && !run.errors.is_empty(), "{commands}: {run}");
    };
    run(&image.path(), "ln -s target /fs/disk0/link").refused(&["its file system has no links", "`cp`"]);
    run(&image.path(), "write /fs/disk0/one x; ln /fs/disk0/one /fs/disk0/other").refused(&["no hard links"]);
    refused("rm /fs/disk0/one; ln '/fs/disk0/Some folder/A long name.txt' /fs/disk0/other");
    refused("mkdir '/fs/disk0/a:b'");
    refused("mkdir '/fs/disk0/some FOLDER'");
    refused("rmdir '/fs/disk0/Some folder'");
    expect_clean(&image);
}

#[test]
fn a_fat_disk_is_formatted_checked_and_used() {
    for (mebibytes, width) in [(4, "FAT12"), (40, "FAT16")] {
        let image = Image::with_bytes(&vec![0; mebibytes << 20]);
        let commands = "format disk0 --type fat --label new --yes && mount disk0 && echo text > /fs/disk0/file \
            && umount /fs/disk0 && check disk0 && mount disk0 && mount && cat /fs/disk0/file";
        let text = run(&image.path(), commands).succeeded();
        assert!(text.contains(width) && text.contains("/dev/disk0 (fat): no fault"), "{text}");
        assert!(text.ends_with("text\n"), "{text}");
        expect_clean(&image);
    }
}

#[test]
fn damage_is_found_and_repaired() {
    let image = disk(16, &["-F", "16"]);
    // The second copy of the FAT differs from the first.
    let bytes = std::fs::read(image.path()).expect("the image can be read");
    let sectors = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let second = (sectors(14) + sectors(22)) * 512;
    image.overwrite(second as u64 + 40, &[7]);
    let commands = "umount /fs/disk0; check disk0; echo it is $?; check disk0 --repair; echo now $?; check disk0";
    let text = run(&image.path(), commands).text();
    assert!(text.contains("copy 2 of the FAT differs") && text.contains("it is 4\n"), "{text}");
    assert!(text.contains("now 1\n"), "{text}");
    expect_clean(&image);
}

#[test]
fn a_file_system_or_driver_that_is_killed_comes_back() {
    let image = disk(40, &["-F", "32"]);
    let round = "cat '/fs/disk0/Some folder/A long name.txt' || echo lost; i=$((i + 1)); end";
    let commands = format!(
        "i=0; while test $i '<' 10; do kill fat-fs; {round}; i=0; while test $i '<' 10; do kill file-disk; {round}; \
         echo kept > /fs/disk0/kept; sync; kill fat-fs; cat /fs/disk0/kept"
    );
    let run = run(&image.path(), &commands);
    let text = run.text();
    assert_eq!(text.lines().filter(|line| *line == "content").count(), 20, "{run}");
    assert!(text.ends_with("kept\n"), "{run}");
    // A volume whose file system was killed with unsynced changes stays marked dirty until it is checked.
    let checks = "umount /fs/disk0; check disk0 --mend; check disk0 && echo good";
    assert!(self::run(&image.path(), checks).text().ends_with("good\n"));
    expect_clean(&image);
}

/// Files of two cache pages each, so that sequential reads trigger read-ahead.
const FILES: usize = 21;

fn content(number: usize) -> Vec<u8> {
    (0..60_000_usize).map(|index| (index * 31 + number * 7 + index / 251) as u8).collect()
}

/// A FAT32 disk with clusters of this many sectors and files `0.bin` to `20.bin`.
fn disk_of_files(sectors: &str) -> Image {
    let image = Image::with_bytes(&vec![0; 64 << 20]);
    linux("mkfs.fat", |command| command.args(["-F", "32", "-s", sectors]).arg(image.path()));
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for number in 0..FILES {
        let file = folder.path().join(format!("{number}.bin"));
        std::fs::write(&file, content(number)).expect("a file can be written");
        mtools(&image, "mcopy", &[file.to_str().expect("a path"), "::"]);
    }
    image
}

#[test]
fn file_after_file_is_read_to_the_end() {
    let image = disk_of_files("1");
    let text = run(&image.path(), "for f in /fs/disk0/*.bin; do hash $f; end").succeeded();
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for number in 0..FILES {
        let file = folder.path().join("file");
        std::fs::write(&file, content(number)).expect("a file can be written");
        let sum = linux("sha256sum", |command| command.arg(&file));
        let sum = sum.split(' ').next().expect("a sum");
        assert!(text.contains(&format!("{sum}  /fs/disk0/{number}.bin\n")), "{number}: {text}");
    }
    assert_eq!(text.lines().count(), FILES);
}

#[test]
fn folders_are_copied_again_and_again() {
    let image = disk_of_files("1");
    let commands = "mkdir /fs/disk0/a; for f in /fs/disk0/*.bin; do cp $f /fs/disk0/a; end; \
        cp -r /fs/disk0/a /fs/disk0/b; cp -r /fs/disk0/b /fs/disk0/c; umount /fs/disk0; check disk0 --mend";
    let text = run(&image.path(), commands).succeeded();
    assert!(text.contains("no fault"), "{text}");
    expect_clean(&image);
    for number in [0, FILES / 2, FILES - 1] {
        let bytes = tempfile::NamedTempFile::new().expect("a file");
        let to = bytes.path().to_str().expect("a path");
        mtools(&image, "mcopy", &["-n", "-o", &format!("::c/{number}.bin"), to]);
        assert!(std::fs::read(bytes.path()).expect("a copy") == content(number), "{number}");
    }
}

#[test]
fn volumes_with_clusters_of_every_size_are_checked_and_repaired() {
    for sectors in ["1", "8", "128"] {
        let image = Image::with_bytes(&vec![0; 64 << 20]);
        let width = if sectors == "128" { "12" } else { "32" };
        linux("mkfs.fat", |command| command.args(["-F", width, "-s", sectors]).arg(image.path()));
        let commands = "mkdir /fs/disk0/a; cp -r /init /fs/disk0/a; umount /fs/disk0; \
            check disk0 && check disk0 --mend && check disk0 --repair";
        let text = run(&image.path(), commands).succeeded();
        assert_eq!(text.matches("no fault").count(), 3, "{sectors}: {text}");
        expect_clean(&image);
    }
}

#[test]
fn eight_requests_at_once_are_served_from_fat() {
    let image = disk_of_files("1");
    let site = Site::serve(&image.path());
    std::thread::scope(|scope| {
        for client in 0..8 {
            let port = site.port;
            scope.spawn(move || {
                for round in 0..12 {
                    let number = (client * 5 + round * 2) % FILES;
                    let answer = WebClient::connect(port).get(&format!("/{number}.bin"), "Connection: close\r\n");
                    assert_eq!(answer.status, 200, "{number}");
                    assert!(answer.is_whole && answer.content == content(number), "{number}");
                }
            });
        }
    });
    site.end();
}
