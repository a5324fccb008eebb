//! Access control lists on files and folders of an ext2 disk, some of them set by Linux.

use std::fs;
use std::path::Path;
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Run};

test_needs::needs!(E2fsprogs);

/// A disk with a folder for each list below, and `open` without one.
fn disk() -> Image {
    let source = tempfile::tempdir().expect("a folder for temporary files");
    fill(source.path()).expect("the folder can be filled");
    let image = Image::of(source.path(), Format { mebibytes: 16, ..Format::default() });
    for (name, list) in LISTS {
        let file = source.path().join("list");
        fs::write(&file, list).expect("a file for a list");
        image.debugfs(&format!("ea_set -f {} {name} user.singularity.acl", file.display()));
    }
    image
}

fn fill(root: &Path) -> std::io::Result<()> {
    for folder in ["open", "cats", "closed/below/deeper", "drop", "looked"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for file in ["open/x", "cats/x", "closed/x", "closed/below/x", "closed/below/deeper/x", "drop/x", "looked/x"] {
        fs::write(root.join(file), format!("this is {file}\n"))?;
    }
    fs::write(root.join("open/own"), "this has a list of its own\n")?;
    fs::write(root.join("open/script"), "echo the script runs\n")?;
    fs::write(root.join("open/allowed"), "echo the other script runs\n")?;
    std::os::unix::fs::symlink("../closed/below/x", root.join("open/link"))
}

const LISTS: [(&str, &str); 7] = [
    ("cats", "allow read,traverse ..cat.singularity\nallow read ..ls.singularity\n"),
    ("closed", "deny all **\n"),
    ("closed/below/deeper", "allow all **\n"),
    ("drop", "allow traverse,write **\n"),
    ("looked", "allow traverse,read **\n"),
    ("open/own", "allow write **\n"),
    ("open/script", "allow read,write **\n"),
];

fn on(image: &Image, commands: &str) -> Run {
    Machine::new().disk(image.path()).limit(Duration::from_secs(120)).run(&format!("cd /fs/disk0; {commands}"))
}

#[track_caller]
fn allowed(image: &Image, commands: &str, expected: &str) {
    let text = on(image, commands).succeeded();
    assert!(text.contains(expected), "{commands}: {text}");
}

#[track_caller]
fn refused(image: &Image, command: &str) {
    on(image, command).refused(&["may not"]);
}

#[test]
fn lists_that_linux_has_set_decide_who_reads_and_changes_what() {
    let image = disk();
    allowed(&image, "cat open/x cats/x; ls cats", "this is open/x\nthis is cats/x\nx");
    // Denied by its own list or an inherited one, also during path traversal.
    refused(&image, "head cats/x");
    refused(&image, "cat closed/x");
    refused(&image, "cat closed/below/x");
    refused(&image, "cat closed/below/deeper/x");
    refused(&image, "cat open/link");
    refused(&image, "ls closed");
    refused(&image, "cat open/own");
    // Write without read, and read without write.
    allowed(&image, "echo new > drop/y; echo more >> open/own; echo done", "done");
    refused(&image, "cat drop/y");
    refused(&image, "ls drop");
    allowed(&image, "cat looked/x; ls looked", "this is looked/x");
    for command in ["echo x > looked/x", "echo x > looked/new", "rm looked/x", "mkdir looked/new", "touch looked/x"] {
        refused(&image, command);
    }
    image.check();
    let contents = image.contents();
    let read = |name: &str| fs::read_to_string(contents.path().join(name)).expect("a file of the disk");
    assert_eq!((read("drop/y"), read("looked/x")), ("new\n".to_string(), "this is looked/x\n".to_string()));
    assert_eq!(read("open/own"), "this has a list of its own\nmore\n");
}

#[test]
fn who_may_not_change_lists_cannot_move_things_from_under_them() {
    let image = disk();
    // Otherwise a move would make the file readable under the target folder's list.
    refused(&image, "mv drop/x open/stolen");
    refused(&image, "ln drop/x open/stolen");
    // Under the same governing list the move is allowed.
    allowed(&image, "mv drop/x drop/z; mv open/x open/y; cat open/y", "this is open/x");
    // A file's own list moves with it.
    allowed(&image, "mkdir open/folder; mv open/own open/folder/own; ls open/folder", "own");
    refused(&image, "cat open/folder/own");
    image.check();
}

#[test]
fn a_script_runs_where_its_list_lets_the_shell_execute_it() {
    let image = disk();
    allowed(&image, "./open/allowed; run open/allowed", "the other script runs\nthe other script runs");
    on(&image, "./open/script").refused(&["open/script", "does not let", "execute"]);
    on(&image, "run open/script").refused(&["open/script", "does not let", "execute"]);
    allowed(&image, "cat open/script", "echo the script runs");
}

#[test]
fn lists_that_are_set_here_stay_with_their_files_and_linux_reads_them() {
    let image = disk();
    let list = "'allow read ..cat.singularity' 'allow all ..(acl|setacl).singularity'";
    allowed(
        &image,
        &format!("setacl open/x {list}; acl -e open/x; cat open/x"),
        "allow all ..(acl|setacl).singularity",
    );
    let found = image.debugfs("ea_get open/x user.singularity.acl");
    assert!(found.contains("allow read ..cat.singularity\\nallow all ..(acl|setacl).singularity"), "{found}");
    refused(&image, "head open/x");
    // The list survives a remount, and can be removed by those it grants set-acl.
    allowed(&image, "setacl open/x --none; head open/x; cat open/x", "this is open/x\nthis is open/x");
    // A principal without rights cannot change the list.
    refused(&image, "setacl closed/below 'allow all **'");
    refused(&image, "acl closed/below");
    image.check();
}

#[test]
fn the_list_of_the_mount_point_decides_where_the_volume_has_none() {
    let image = disk();
    let narrow =
        "setacl /fs/disk0 'allow traverse **' 'allow read ..(cat|ls).singularity' 'allow all ..setacl.singularity'";
    allowed(&image, &format!("{narrow}; cat open/x; ls open"), "this is open/x");
    for command in ["head open/x", "rm open/x", "echo x > open/new", "mkdir open/new"] {
        on(&image, &format!("{narrow}; {command}")).refused(&["may not"]);
    }
    // The volume's own lists govern below their folders, even where they grant more than the mount point's.
    allowed(&image, &format!("{narrow}; head looked/x"), "this is looked/x");
    // Set-acl on the mount point allows repairing a list that locks everyone out.
    allowed(&image, &format!("{narrow}; setacl closed --none; cat closed/x"), "this is closed/x");
    image.check();
}

#[test]
fn what_is_refused_is_noted() {
    let image = disk();
    let run = on(&image, "head cats/x; rm looked/x; cat /status/audit");
    for line in [
        "head.singularity refused traverse on /fs/disk0/cats/x (no entry of the list that decides there)",
        "rm.singularity refused write on /fs/disk0/looked/x (no entry of the list that decides there)",
    ] {
        assert!(run.text().contains(line), "{line}\n{}", run.text());
    }
}

/// A file with its own list cannot be moved by a principal that may only write to the folder.
#[test]
fn what_has_a_list_of_its_own_is_replaced_by_who_may_write_it() {
    let image = disk();
    allowed(&image, "setacl --force open/x 'allow read **' 'allow all ..setacl.singularity'; cat open/x", "open/x");
    for command in ["rm open/x", "mv open/x open/y", "mv open/allowed open/x"] {
        refused(&image, command);
    }
    allowed(&image, "cat open/x", "this is open/x");
    allowed(&image, "rm open/script; rm open/allowed; setacl open/x --none; rm open/x; ls open", "own");
    image.check();
}
