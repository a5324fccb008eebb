//! Programs for files, on disks made and checked by Linux.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Terminal, finish, sample};

test_needs::needs!(E2fsprogs);

/// A disk with the files that `fill` writes.
#[track_caller]
fn disk(mebibytes: u32, fill: impl FnOnce(&Path) -> std::io::Result<()>) -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fill(folder.path()).expect("the folder can be filled");
    Image::of(folder.path(), Format { mebibytes, ..Format::default() })
}

/// A disk with `a` (three lines), `numbers` (20,000 lines), a folder and a link.
fn small() -> Image {
    disk(16, |root| {
        fs::write(root.join("a"), "one\ntwo\nthree\n")?;
        fs::write(root.join("numbers"), numbers())?;
        fs::create_dir_all(root.join("folder/below"))?;
        fs::write(root.join("folder/below/x.txt"), "x\n")?;
        fs::hard_link(root.join("a"), root.join("folder/hard"))?;
        std::os::unix::fs::symlink("a", root.join("link"))
    })
}

fn numbers() -> String {
    (1..=20_000).map(|number| format!("{number}\n")).collect()
}

/// Runs commands in the folder of the first disk.
fn machine(images: &[&Image]) -> Machine {
    images.iter().fold(Machine::new(), |machine, image| machine.disk(image.path())).limit(Duration::from_secs(120))
}

/// Runs commands in the disk's folder, checks the disk and returns standard output.
#[track_caller]
fn on(image: &Image, commands: &str) -> String {
    let text = machine(&[image]).run(&format!("cd /fs/disk0; {commands}")).succeeded();
    image.check();
    text
}

/// Kind, permissions, times and contents of everything below a folder.
fn all_below(root: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read").flatten() {
            let path = entry.path();
            let metadata = fs::symlink_metadata(&path).expect("a file of the folder");
            let content = if metadata.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else if metadata.is_file() {
                fs::read(&path).expect("a file of the folder")
            } else {
                folders.push(path.clone());
                Vec::new()
            };
            let time = if metadata.is_file() { metadata.mtime() } else { 0 };
            let mode = if metadata.is_symlink() { 0 } else { metadata.mode() };
            found.insert(path.strip_prefix(root).expect("below the root").into(), (mode, time, content));
        }
    }
    found
}

#[track_caller]
fn same(found: &Path, expected: &Path) {
    let (found, expected) = (all_below(found), all_below(expected));
    let names = |all: &BTreeMap<PathBuf, _>| all.keys().cloned().collect::<Vec<PathBuf>>();
    assert_eq!(names(&found), names(&expected));
    for (name, (mode, time, content)) in &expected {
        let (found_mode, found_time, found_content) = &found[name];
        assert_eq!((found_mode, found_time), (mode, time), "mode and time of {}", name.display());
        assert!(found_content == content, "{} bytes of {} differ", content.len(), name.display());
    }
}

#[test]
fn a_copied_tree_is_the_tree() {
    let root = tempfile::tempdir().expect("a folder for temporary files");
    sample(root.path(), 200).expect("the folder can be filled");
    let (from, to) = (Image::of(root.path(), Format::default()), disk(64, |_| Ok(())));
    let commands = "cp -r --keep /fs/disk0 /fs/disk1/copy; rm -r /fs/disk1/copy/lost+found; \
        mkdir /fs/disk0/inner; cp -r --keep /fs/disk0/a /fs/disk0/deep /fs/disk0/link-fast /fs/disk0/inner; \
        stat /fs/disk1/copy/a/b.txt | head -n 6 | tail -n 1; du -s --bytes /fs/disk1/copy/sparse";
    let text = machine(&[&from, &to]).run(commands).succeeded();
    let (mode, text) = text.split_once('\n').unwrap_or_default();
    assert_eq!(mode, "     mode  4751 -rwsr-x--x", "also what debugfs does not take out of a disk");
    let allocated: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(u64::MAX);
    assert!(allocated < 100_000, "what is zero takes no room in the copy: {text}");
    from.check();
    to.check();
    let (from, to, original) = (from.contents(), to.contents(), Image::of(root.path(), Format::default()).contents());
    fs::remove_dir_all(original.path().join("lost+found")).expect("a folder of mke2fs");
    same(&to.path().join("copy"), original.path());
    for name in ["a", "deep"] {
        same(&from.path().join("inner").join(name), &original.path().join(name));
    }
}

#[test]
fn copies_replace_files_and_nothing_is_copied_onto_itself() {
    let image = small();
    let text = on(
        &image,
        "cp numbers copy; cp a copy; cat copy; cp link linked; stat linked | head -n 2; cp a folder; ls folder",
    );
    assert_eq!(
        text, "one\ntwo\nthree\n     name  /fs/disk0/linked\n     kind  file\na\nbelow/\nhard\n",
        "a longer file is cut, a link is followed, a folder is copied into"
    );
    for (commands, parts) in [
        ("cp a a", ["cp: a", "onto itself"]),
        ("cp a folder/hard", ["cp: a", "onto itself"]),
        ("cp link a", ["cp: link", "onto itself"]),
        ("cp folder b", ["cp: folder", "-r"]),
        ("cp -r folder folder/below", ["cp: folder", "into itself"]),
        ("ln -s folder/below way; cp -r folder way", ["cp: folder/below/folder", "into itself"]),
        ("cp -r folder a", ["cp: a", "not a folder"]),
        ("mkdir c; mkdir c/a; cp a c", ["cp: c/a", "a folder has that name"]),
        ("cp a none b numbers", ["numbers", "an existing folder"]),
        ("mkdir into; cp none a into; cat into/a; false", ["cp: none", "not found"]),
    ] {
        machine(&[&image]).run(&format!("cd /fs/disk0; {commands}")).refused(&parts);
        image.check();
    }
    assert_eq!(on(&image, "cat a into/a; rm -r folder way c"), "one\ntwo\nthree\n".repeat(2));
}

#[test]
fn things_are_moved_on_a_volume_and_to_another() {
    let (image, other) = (small(), disk(16, |_| Ok(())));
    let commands = "cd /fs/disk0; mv a b; mv b folder; mv folder /fs/disk0/moved; mv link numbers /fs/disk1; \
        mv moved /fs/disk1/there; mv /fs/disk1/there/b .; ls; ls -l /fs/disk1/link; cat b";
    let text = machine(&[&image, &other]).run(commands).succeeded();
    assert!(text.starts_with("b\nlost+found/\nl") && text.ends_with("link@ -> a\none\ntwo\nthree\n"), "{text}");
    let refused = machine(&[&image, &other]).run("mv /fs/disk1/there /fs/disk1/there/below");
    refused.refused(&["mv: /fs/disk1/there", "into itself"]);
    image.check();
    other.check();
    let there = other.contents();
    assert_eq!(fs::read_to_string(there.path().join("there/below/x.txt")).expect("a moved file"), "x\n");
    assert_eq!(fs::read_to_string(there.path().join("numbers")).expect("a moved file"), numbers());
}

#[test]
fn deep_trees_are_gone_through_to_their_end() {
    // Three chains, each moved below the previous one: the path to the bottom exceeds the path limit of servers.
    let image = disk(32, |_| Ok(()));
    let chain = |letter: &str| vec![format!("folder-in-a-folder-{letter}"); 150].join("/");
    let (first, second, third) = (chain("1"), chain("2"), chain("3"));
    let top = "folder-in-a-folder-1";
    let text = on(
        &image,
        &format!(
            "mkdir -p {first} {second} {third}; echo x > {third}/x; mv folder-in-a-folder-3 {second}; \
             mv folder-in-a-folder-2 {first}; find {top} | wc -l; find {top} --name x | tail -c 3; find {top} | wc -c; \
             cp -r {top} copy; find copy | wc -l"
        ),
    );
    assert_eq!(text, "451\n/x\n2140427\n451\n");
    let text = on(&image, &format!("du {top} | wc -l; rm -r {top} copy; ls; du -s ."));
    assert_eq!(text, "450\nlost+found/\n  13.0 KiB  .\n");
}

#[test]
fn folders_and_files_are_made_and_removed() {
    let image = small();
    let text = on(
        &image,
        "mkdir -p m/n/o; mkdir -p m/n; rmdir m/n/o; rm link; rm -r folder; rm -f none; \
         touch new; touch --time '2020-02-03 04:05:06' numbers; ls; stat numbers | tail -n 3 | head -n 1",
    );
    assert_eq!(text, "a\nlost+found/\nm/\nnew\nnumbers\n modified  2020-02-03 04:05:06 UTC\n");
    for (commands, parts) in [
        ("mkdir m", ["mkdir: m", "taken"]),
        ("mkdir -p a/b", ["mkdir: a/b", "not a folder"]),
        ("rmdir m", ["rmdir: m", "not empty"]),
        ("rmdir a", ["rmdir: a", "not a folder"]),
        ("rm m", ["rm: m", "rm -r"]),
        ("rm none a; ls", ["rm: none", "not found"]),
        ("rm -r /fs/disk0", ["rm: /fs/disk0", "umount"]),
    ] {
        let run = machine(&[&image]).run(&format!("cd /fs/disk0; {commands}; exit $?"));
        assert!(run.errors.lines().any(|line| parts.iter().all(|part| line.contains(part))), "{run}");
        image.check();
    }
    assert_eq!(on(&image, "ls"), "lost+found/\nm/\nnew\nnumbers\n", "what can be removed is, whatever else cannot");
}

#[test]
fn names_are_made_for_files() {
    let image = small();
    let text = on(
        &image,
        "ln a b; ln -s folder/below way; ln -s none broken; cat b way/x.txt; ls -l b way | wc -l; \
         write b changed; cat a; touch link; touch broken; ls none",
    );
    assert_eq!(text, "one\ntwo\nthree\nx\n4\nchanged\nnone\n");
    machine(&[&image]).run("cd /fs/disk0; ln folder f").refused(&["ln: f"]);
    let elsewhere = |commands: &str| {
        machine(&[&image]).run(&format!("x=$(format ram0 --yes); mount ram0; cd /fs/disk0; {commands}"))
    };
    elsewhere("ln a /fs/ram0/a").refused(&["ln: /fs/ram0/a: a is on another volume, /fs/disk0"]);
    elsewhere("ln /status/measurement m").refused(&["ln: /status/measurement: not on a volume"]);
    elsewhere("ln -s /fs/disk0/a l").refused(&["it would lead to /fs/disk0/fs/disk0/a, where nothing is"]);
    elsewhere("write /fs/ram0/x y; ln -s /fs/ram0/x l").refused(&["/fs/ram0/x is outside the volume /fs/disk0"]);
    elsewhere("ln -s ../../../status/measurement folder/l").refused(&["/status/measurement is outside"]);
    machine(&[&image]).run("cd /fs/disk0; ln a b").refused(&["ln: b", "taken"]);
    image.check();
}

#[test]
fn text_and_output_go_into_files() {
    let image = small();
    let text = on(
        &image,
        "write w hello world; write --append w again; echo piped | write p; write -n w2 x; cat w p w2; echo; \
         echo one > r; echo two >> r; cat r; cat < r | wc -l; \
         function f; echo in $1; cat a; end; f here > r; tail -n 2 r; \
         for n in 1 2 3; do echo $n >> loop; end; cat loop; pwd > r; cat r; \
         cat numbers | head -n 5 | tail -n 1 > r; cat r; hash numbers > sum; hash < numbers | head -c 64 >> sum; wc -c sum; \
         echo \"return 3\" > script; run script > r; echo $?; cat r; echo late > r &; wait; cat r; cat numbers > big; wc -c big",
    );
    let expected = "hello world\nagain\npiped\nx\none\ntwo\n2\ntwo\nthree\n1\n2\n3\n/fs/disk0\n5\n138  sum\n3\nlate\n108894  big\n";
    assert_eq!(text, expected);
    let contents = image.contents();
    assert_eq!(fs::read_to_string(contents.path().join("big")).expect("a file that was written"), numbers());
    machine(&[&image]).run("cd /fs/disk0; echo a > folder").refused(&["folder: it is a folder"]);
    machine(&[&image]).run("cd /fs/disk0; echo a > a/b").refused(&["a/b", "not a folder"]);
}

#[test]
fn a_full_volume_is_told_of_and_keeps_what_it_has() {
    let image = disk(4, |root| fs::write(root.join("half"), vec![b'x'; 2 << 20]));
    for command in ["cp half copy", "cat half > copy", "cat half | write copy", "dd --from half --to copy"] {
        let run = machine(&[&image]).run(&format!("cd /fs/disk0; {command}; x=$?; echo $x; rm copy; exit $x"));
        run.refused(&["no room left"]);
        assert_eq!(run.text(), "1\n", "{run}");
        image.check();
    }
    let text = on(&image, "wc -c half; ls");
    assert_eq!(text, "2097152  half\nhalf\nlost+found/\n");
}

#[test]
fn files_are_looked_at_as_linux_does() {
    let image = small();
    let host = image.contents();
    for command in [
        "head numbers",
        "head -n 3 a numbers",
        "head -c 100 numbers",
        "head -n 0 a",
        "head -n 99999 numbers",
        "tail numbers",
        "tail -n 12345 numbers",
        "tail -n 99999 numbers",
        "tail -n 1 a numbers",
        "tail -c 70001 numbers",
        "tail -n 0 a",
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(host.path());
        let expected = finish(shell, command, Duration::from_secs(60)).succeeded();
        assert!(on(&image, command) == expected, "`{command}` differs from Linux's");
        let piped = command
            .replace("head", "cat numbers | head")
            .replace("tail", "cat numbers | tail")
            .replace(" numbers a", " a");
        if !command.contains(" a") {
            let piped = piped.strip_suffix(" numbers").unwrap_or(&piped);
            assert!(on(&image, piped) == expected, "`{piped}` differs from Linux's");
        }
    }
    let sum = |program: &str| {
        let mut command = Command::new(program);
        command.arg("numbers").current_dir(host.path());
        finish(command, program, Duration::from_secs(60)).succeeded()
    };
    assert_eq!(on(&image, "hash numbers"), sum("sha256sum"));
    assert_eq!(
        on(&image, "wc numbers a"),
        "20000  20000  108894  numbers\n    3      3      14  a\n20003  20003  108908  total\n"
    );
    assert_eq!(on(&image, "wc -l numbers; cat a | wc -c"), "20000  numbers\n14\n");
}

#[test]
fn names_are_found_and_room_is_summed() {
    let image = small();
    for (command, expected) in [
        ("find --type f --name '*x*'", "./folder/below/x.txt\n"),
        ("find folder --type d", "folder\nfolder/below\n"),
        ("find . --type l", "./link\n"),
        ("find . --size +1k", "./numbers\n"),
        ("find /fs/disk0 --size 14", "/fs/disk0/a\n/fs/disk0/folder/hard\n"),
        ("find . --depth 1 --type d", ".\n./folder\n./lost+found\n"),
        ("find --name none", ""),
        (
            "touch --time '2001-01-01' a; touch --time '2002-01-01' folder/hard; find . --type f --newer a | wc -l",
            "2\n",
        ),
        // A file with two names counts once; `numbers` has an indirect block.
        ("du -s --bytes a folder/hard", "      1024  a\n         0  folder/hard\n"),
        ("du folder", "   2.0 KiB  folder/below\n   4.0 KiB  folder\n"),
        ("du --depth 0 --bytes folder numbers", "      4096  folder\n    110592  numbers\n"),
    ] {
        assert_eq!(on(&image, command), expected, "{command}");
    }
}

#[test]
fn blocks_are_copied_between_files_disks_and_pipes() {
    let (image, raw) = (small(), Image::with_bytes(&vec![b'.'; 1 << 20]));
    let commands = "cd /fs/disk0; dd --from numbers --to part --block-bytes 100 --skip 2 --count 3 --seek 1 | wc -l; \
        dd --from numbers --to /dev/disk1 --block-bytes 1000 --seek 1 | head -c 13; \
        dd --from /dev/disk1 --to back --block-bytes 1000 --skip 1 --count 1 | cat > r; \
        hash numbers back | wc -l; cat numbers | dd --to copy --block-bytes 4k > r; sync; sync part";
    let text = machine(&[&image, &raw]).run(commands).succeeded();
    assert_eq!(text, "1\n108,894 bytes2\n");
    for (command, parts) in [
        ("dd --from /fs/disk0/a --to /dev/disk0", ["/dev/disk0", "mounted at /fs/disk0"]),
        ("dd --from /fs/disk0/a --to /dev/disk1 --block-bytes 1M --seek 1", ["/dev/disk1", "ends after"]),
        ("dd --from /fs/disk0/folder --to /fs/disk0/b", ["/fs/disk0/folder", "folder"]),
    ] {
        machine(&[&image, &raw]).run(command).refused(&parts);
    }
    image.check();
    let contents = image.contents();
    let read = |name: &str| fs::read(contents.path().join(name)).expect("a file that was written");
    let numbers = numbers().into_bytes();
    assert_eq!(read("part"), [&[0; 100], &numbers[200..500]].concat());
    assert_eq!((read("back"), read("copy")), (numbers[..1000].to_vec(), numbers.clone()));
    let mut expected = vec![b'.'; 1 << 20];
    expected[1000..1000 + numbers.len()].copy_from_slice(&numbers);
    assert!(fs::read(raw.path()).expect("the image") == expected, "what lies around what was written stays");
}

#[test]
fn a_person_writes_into_a_file_and_changes_their_mind() {
    let image = small();
    let mut terminal = Terminal::start(machine(&[&image]).command(None));
    terminal.wait_for("/> ");
    terminal.press("cd /fs/disk0; write typed\r");
    terminal.press("first line\r");
    terminal.press("second\r\x04");
    terminal.wait_for("/fs/disk0> ");
    terminal.press("wc typed\r");
    terminal.wait_for("2  3  18  typed");
    terminal.press("cat > other\r");
    terminal.press("kept\r");
    terminal.press("\x03");
    terminal.wait_for("[130] /fs/disk0> ");
    terminal.press("dd --from /dev/disk0 --to copy --block-bytes 1 \r");
    // The prompt may be drawn twice; the next input must not reach the program.
    terminal.wait_for("--block-bytes 1");
    terminal.press("\x03");
    terminal.wait_for("^C");
    terminal.wait_for("[130] /fs/disk0> ");
    terminal.press("rm copy; exit 0\r");
    assert_eq!(terminal.end(), Some(0));
    image.check();
}

#[test]
fn files_are_listed_once_and_before_folders() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder can be made");
    for name in ["b.txt", "a.txt", "sub/c"] {
        std::fs::write(folder.path().join(name), "text\n").expect("a file can be written");
    }
    let image = Image::of(folder.path(), Format { mebibytes: 8, ..Format::default() });
    let run = Machine::new().disk(image.path()).run("cd /fs/disk0; ls sub *.txt; ls -l *.txt | wc -l; ls *.txt");
    assert_eq!(run.succeeded(), "a.txt\nb.txt\n\nsub:\nc\n2\na.txt\nb.txt\n");
}
