//! Invalid and damaged disks.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Terminal, finish, sample};

test_needs::needs!(E2fsprogs);

fn good() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    sample(folder.path(), 50).expect("the folder can be filled");
    Image::of(folder.path(), Format { mebibytes: 32, ..Format::default() })
}

/// The machine keeps running without that file system, and `mount` refuses it, too.
#[track_caller]
fn not_mounted(image: &Image, parts: &[&str]) {
    let machine = Machine::new().disk(image.path());
    let run = machine.run("echo the rest works; ls /fs; mount disk0 --type ext2");
    run.refused(parts);
    assert_eq!(run.text(), "the rest works\n", "{run}");
}

#[test]
fn bytes_that_are_no_file_system() {
    not_mounted(&Image::with_bytes(&[0xEE; 100_000]), &["/dev/disk0", "not an ext2 disk"]);
    not_mounted(&Image::with_bytes(&[0; 1 << 20]), &["/dev/disk0", "not an ext2 disk"]);
    not_mounted(&Image::with_bytes(b"far too short"), &["/dev/disk0", "13 bytes"]);
}

#[test]
fn an_empty_file() {
    Machine::new().disk(Image::with_bytes(b"").path()).run("echo hi").refused(&["disk.img", "empty"]);
}

#[test]
fn every_truncation_is_refused_by_size() {
    for bytes in [1024, 1500, 2048, 3000, 100_000, 20 << 20] {
        let image = good();
        let file = OpenOptions::new().write(true).open(image.path()).expect("the image can be written");
        file.set_len(bytes).expect("the image can be cut");
        not_mounted(&image, &["/dev/disk0"]);
    }
}

#[test]
fn ext4_is_refused_by_the_names_of_its_features() {
    let image = Image::empty();
    let mut command = Command::new("mke2fs");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.args(["-q", "-F", "-t", "ext4"]).arg(image.path()).arg("16M");
    finish(command, "mke2fs -t ext4", Duration::from_secs(60));
    not_mounted(&image, &["/dev/disk0", "extent", "ext2"]);
}

#[test]
fn what_is_no_file_is_refused_as_a_disk() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let missing = folder.path().join("missing.img");
    Machine::new().disk(folder.path()).run("echo hi").refused(&["folder", "disk image"]);
    Machine::new().disk(folder.path()).run_by_tool("echo hi").refused(&["folder", "disk image"]);
    Machine::new().disk(&missing).run("echo hi").refused(&["missing.img", "no such file"]);
    Machine::new().disk(&missing).run_by_tool("echo hi").refused(&["missing.img", "no such file"]);
    let secret = folder.path().join("secret.img");
    std::fs::write(&secret, "x").expect("a file can be written");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).expect("permissions can be set");
    if std::fs::read(&secret).is_ok() {
        println!("not tried: a file that this user may not read, for root may read all");
        return;
    }
    Machine::new().disk(&secret).run("echo hi").refused(&["secret.img", "permission"]);
    Machine::new().disk(&secret).run_by_tool("echo hi").refused(&["secret.img", "permission"]);
}

#[test]
fn wild_pointers_harm_only_who_follows_them() {
    let image = good();
    for field in ["block[0] 4000000000", "block[IND] 4294967295"] {
        image.debugfs(&format!("set_inode_field binary-4300000 {field}"));
    }
    let machine = Machine::new().disk(image.path());
    let run = machine.run("cat /fs/disk0/binary-4300000");
    run.refused(&["binary-4300000", "damaged", "check --repair"]);
    let rest = machine.run("cat /fs/disk0/binary-4300000 | cat; cat /fs/disk0/a/b.txt");
    assert!(rest.text().ends_with("lazy dog.\n") && rest.status == Some(0), "{rest}");
}

#[test]
fn a_folder_whose_block_is_wild() {
    let image = good();
    image.debugfs("set_inode_field a block[0] 3999999999");
    let machine = Machine::new().disk(image.path());
    machine.run("ls /fs/disk0/a").refused(&["/fs/disk0/a", "damaged", "check --repair"]);
    machine.run("cat /fs/disk0/empty").succeeded();
}

#[test]
fn a_root_folder_full_of_noise() {
    let image = good();
    image.debugfs("set_inode_field <2> block[0] 1");
    let run = Machine::new().disk(image.path()).run("ls /fs/disk0; tree /fs/disk0");
    run.refused(&["disk0", "damaged"]);
}

#[test]
fn noise_anywhere_in_the_metadata_never_harms_the_system() {
    let bytes = std::fs::read(good().path()).expect("the image can be read");
    let mut state = 88_172_645_463_325_252_u64;
    for round in 0..40 {
        let image = Image::with_bytes(&bytes);
        let file = OpenOptions::new().write(true).open(image.path()).expect("the image can be written");
        for _ in 0..200 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Superblock, descriptors, bitmaps and inodes of the first group are in the first 300 KiB. The magic
            // number is preserved, so that most of these disks are recognised as ext2.
            let offset = 1024 + 58 + state % 300_000;
            file.write_all_at(&state.to_be_bytes()[..1 + round % 4], offset).expect("the image can be written");
        }
        let commands = "ls -l /fs/disk0; tree /fs/disk0; cat /fs/disk0/binary-4300000 | hash; \
            cat /fs/disk0/a/b.txt | hash; echo; echo end";
        let run = Machine::new().disk(image.path()).run(commands);
        run.orderly();
        assert!(run.output.ends_with(b"\nend\n") && run.status == Some(0), "round {round}:\n{run}");
    }
}

#[test]
fn a_disk_that_shrinks_under_the_running_system() {
    let image = good();
    let mut terminal = Terminal::start(Machine::new().disk(image.path()).command(None));
    terminal.wait_for("> ");
    terminal.press("ls /fs/disk0/many\r");
    terminal.wait_for("name-00049");
    let file = OpenOptions::new().write(true).open(image.path()).expect("the image can be written");
    file.set_len(1 << 20).expect("the image can be cut");
    terminal.press("cat /fs/disk0/binary-4300000 | hash\r");
    terminal.wait_for("cat: /fs/disk0/binary-4300000: the device failed");
    terminal.press("echo still here\r");
    terminal.wait_for("\nstill here\n");
    terminal.press("exit 0\r");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn nothing_is_written_to_a_volume_that_is_mounted_to_be_read() {
    let image = good();
    let before = std::fs::read(image.path()).expect("the image can be read");
    let machine = Machine::new().disk(image.path());
    let again = "umount /fs/disk0; mount disk0 --read-only";
    machine.run(&format!("{again}; echo new > /fs/disk0/new")).refused(&["/fs/disk0/new", "read only"]);
    machine.run(&format!("{again}; rm /fs/disk0/empty")).refused(&["/fs/disk0/empty", "read only"]);
    machine.run(&format!("{again}; tree /fs/disk0 | hash")).succeeded();
    // A read-only disk is not changed, regardless of the mount options.
    machine.run("tree /fs/disk0 | hash").succeeded();
    assert!(std::fs::read(image.path()).expect("the image can be read") == before, "the image was changed");
}
