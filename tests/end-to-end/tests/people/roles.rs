//! Rights of roles: denied to `guest`, granted to `admin`, and common to all.

use std::fs;
use std::process::Output;

use end_to_end::{Format, Image};

use crate::logins::{feed_to, machine, text};

test_needs::needs!(E2fsprogs);

/// A disk with accounts, and folders with and without write access for `guest`.
fn disk() -> Image {
    let source = tempfile::tempdir().expect("a folder for temporary files");
    let root = source.path();
    for folder in ["etc", "home/guest", "home/admin"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    fs::write(root.join("etc/people"), "# nobody yet\n").expect("a file");
    let image = Image::of(root, Format { mebibytes: 16, ..Format::default() });
    let list = root.join("list");
    fs::write(&list, "allow all login.singularity@(guest|admin) + **\n").expect("a file for a list");
    image.debugfs(&format!("ea_set -f {} home/guest user.singularity.acl", list.display()));
    image
}

/// Runs commands after logging in, on a machine with disks.
fn as_person(name: &str, disks: &[&Image], commands: &str) -> Output {
    let machine = disks.iter().fold(machine(), |machine, disk| machine.disk(disk.path()));
    feed_to(&machine, Some(commands), &format!("{name}\nsingularity\n"))
}

#[track_caller]
fn allowed(name: &str, disks: &[&Image], commands: &str) -> String {
    let output = as_person(name, disks, commands);
    let errors = text(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{name}: {commands}: {}\n{errors}", output.status);
    text(&output.stdout)
}

#[track_caller]
fn refused(name: &str, disks: &[&Image], commands: &str, words: &str) {
    let output = as_person(name, disks, commands);
    let errors = text(&output.stderr);
    assert!(!output.status.success(), "{name} may: {commands}\n{}", text(&output.stdout));
    assert!(errors.lines().any(|line| line.contains(words)), "{name}: {commands}: `{words}` is not in:\n{errors}");
}

/// Attempts to gain rights or reach others' data, with the expected messages.
const NOT_FOR_GUESTS: &[(&str, &str)] = &[
    ("echo 'guest' >> /fs/disk0/etc/people", "may not"),
    ("echo 'guest' > /fs/disk0/etc/people", "may not"),
    ("cat /fs/disk0/etc/people", "may not"),
    ("rm /fs/disk0/etc/people", "may not"),
    ("mv /fs/disk0/etc/people /fs/disk0/home/guest/people", "may not"),
    ("mv /fs/disk0/etc /fs/disk0/other", "may not"),
    ("umount /fs/disk0", "/fs/disk0: you may not"),
    ("mount /dev/disk1 /fs/other", "/fs/other: you may not"),
    ("mount /dev/disk1 /fs/ram0", "/dev/disk1: you may not"),
    ("format --yes /dev/disk1", "/dev/disk1: you may not"),
    ("check /dev/disk1", "/dev/disk1: you may not"),
    ("dd --from /dev/disk0 --count 1", "may not"),
    ("dd --from /dev/disk1 --count 1", "may not"),
    ("setacl /service/dns 'allow all **'", "may not"),
    ("setacl /fs 'allow all **'", "may not"),
    ("setacl /fs/disk0 'allow all **'", "may not"),
    ("setacl /fs/disk0/. 'allow all **'", "may not"),
    ("setacl /fs/disk0/etc 'allow all **'", "may not"),
    ("uninstall greet", "may not change programs"),
    ("stop answer", "may not"),
];

#[test]
fn guest_may_not_and_admin_may() {
    let (own, other) = (bytes_of(&disk()), bytes_of(&disk()));
    for (commands, words) in NOT_FOR_GUESTS {
        let (own, other) = (Image::with_bytes(&own), Image::with_bytes(&other));
        refused("guest", &[&own, &other], commands, words);
        // It is mounted at boot.
        let before = if commands.contains("/dev/disk1") { "umount /fs/disk1; " } else { "" };
        let output = as_person("admin", &[&own, &other], &format!("{before}{commands}"));
        let errors = text(&output.stderr);
        assert!(output.status.success(), "admin: {commands}: {}\n{errors}", output.status);
        assert!(!errors.contains("may not"), "admin: {commands}:\n{errors}");
    }
}

fn bytes_of(image: &Image) -> Vec<u8> {
    fs::read(image.path()).expect("the image can be read")
}

/// Without a disk, users cannot mount one of their own where the accounts are expected.
#[test]
fn guest_mounts_no_disk_where_people_are_looked_for() {
    refused("guest", &[], "format --yes /dev/ram0; mount /dev/ram0 /fs/disk0", "/fs/disk0: you may not");
    let eve =
        "format --yes /dev/ram0; mount /dev/ram0 /fs/disk0; mkdir /fs/disk0/etc; echo '# all' > /fs/disk0/etc/people";
    allowed("admin", &[], &format!("{eve}; cat /fs/disk0/etc/people"));
}

#[test]
fn guest_has_the_disk_in_memory_and_what_lists_of_a_volume_give() {
    let ram =
        "format --yes /dev/ram0; mount /dev/ram0 /fs/ram0; echo mine > /fs/ram0/x; cat /fs/ram0/x; umount /fs/ram0";
    assert!(allowed("guest", &[], ram).contains("mine\n"));
    let own = disk();
    let home = "cd /fs/disk0/home/guest; echo mine > x; mkdir y; mv x y/z; cat y/z; rm y/z; rmdir y; ls";
    assert_eq!(allowed("guest", &[&own], home), "mine\n");
    refused("guest", &[&own], "ls /fs/disk0/home", "may not");
    refused("guest", &[&own], "echo x > /fs/disk0/home/admin/x", "may not");
    // Names of devices are public.
    let seen = allowed("guest", &[&own], "ls /fs; df; mount; ps; services");
    assert!(seen.contains("disk0"), "{seen}");
    let given = "setacl /fs/disk0/home/admin 'allow traverse,read login.singularity@* + **' 'allow all **'";
    allowed("admin", &[&own], given);
    allowed("guest", &[&own], "ls /fs/disk0/home/admin");
    own.check();
}

/// A mount point's list belongs to its name and survives remounts.
#[test]
fn a_mount_point_that_comes_back_has_its_list() {
    let own = disk();
    let list = "'allow all login.singularity@admin + **' 'allow traverse,read **'";
    let again =
        format!("setacl /fs/disk0 {list}; umount /fs/disk0; acl -e /fs/disk0; mount /dev/disk0; acl -e /fs/disk0");
    let text = "allow all login.singularity@admin + **\nallow traverse,read **\n";
    let shown = allowed("admin", &[&own], &again);
    assert_eq!(shown.matches(text).count(), 2, "{shown}");
}

/// A list that locks everyone out of a volume can be repaired by set-acl on its mount point.
#[test]
fn a_list_of_a_volumes_root_is_repaired_by_who_sets_that_of_the_mount_point() {
    let own = disk();
    let lock = "setacl --force /fs/disk0/. 'deny all login.singularity@* + **' 'allow all **'; ls /fs/disk0";
    refused("admin", &[&own], lock, "may not");
    let repair = "acl -e /fs/disk0/.; setacl /fs/disk0/. --none; cat /fs/disk0/etc/people; acl -e /fs/disk0/.";
    let shown = allowed("admin", &[&own], repair);
    let (root, point) = ("deny all login.singularity@* + **\n", "allow all login.singularity@admin + **\n");
    assert!(shown.starts_with(&format!("{root}allow all **\n# nobody yet\n{point}")), "{shown}");
    own.check();
}
