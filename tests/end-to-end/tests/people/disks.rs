//! Disks made by Linux, compared with their source folder.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Expected, Format, Image, Machine, finish, sample, sparse};

test_needs::needs!(E2fsprogs);

/// A folder with files of all kinds, and `crowd` names in one folder.
fn folder(crowd: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    sample(folder.path(), crowd).expect("the folder can be filled");
    folder
}

fn sha256_of(path: &Path) -> String {
    let mut command = Command::new("sha256sum");
    command.arg(path);
    let text = finish(command, "sha256sum", Duration::from_secs(300)).succeeded();
    text.split_whitespace().next().unwrap_or_default().into()
}

/// Compares everything on one disk.
#[track_caller]
fn compare(root: &Path, format: Format) {
    let image = Image::of(root, format);
    let machine = Machine::new().disk(image.path());
    let expected = Expected::of(root);
    let tree = machine.run("tree /fs/disk0").succeeded();
    same_lines(&tree, &expected.tree("/fs/disk0"), &format!("tree, {format:?}"));
    for entry in std::fs::read_dir(root).expect("the folder can be read").flatten() {
        let metadata = entry.metadata().expect("a file of the folder");
        if !metadata.is_file() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let printed = machine.run(&format!("cat '/fs/disk0/{name}'"));
        printed.succeeded();
        let bytes = std::fs::read(entry.path()).expect("a file of the folder");
        let difference = printed.output.iter().zip(&bytes).position(|(left, right)| left != right);
        assert!(
            printed.output == bytes,
            "cat {name} gave {} bytes instead of {}, first difference at {difference:?}, {format:?}",
            printed.output.len(),
            bytes.len()
        );
    }
    compare_attributes(&machine, &expected, format);
    compare_links(&machine, root);
}

#[track_caller]
fn compare_attributes(machine: &Machine, expected: &Expected<'_>, format: Format) {
    let listing = machine.run("ls -l /fs/disk0 /fs/disk0/a").succeeded();
    for path in
        ["a/b.txt", "empty", "binary-4300000", "sparse", "link-fast", "link-slow", "link-absolute", "link-broken"]
    {
        let parts = expected.long_line(path);
        // The target of an absolute link is shown as a path on its disk.
        let words: Vec<&str> = parts.iter().map(String::as_str).collect();
        let found = listing.lines().any(|line| line.split_whitespace().eq_parts(&words));
        assert!(found, "`ls -l` has no line for {path} with {words:?}, {format:?}:\n{listing}");
    }
    for path in ["a/b.txt", "binary-1025", "sparse"] {
        let text = machine.run(&format!("stat /fs/disk0/{path}")).succeeded();
        for line in expected.stat_lines(path) {
            assert!(text.contains(&line), "`stat {path}` lacks `{line}`, {format:?}:\n{text}");
        }
    }
}

trait SameWords<'a> {
    fn eq_parts(self, parts: &[&str]) -> bool;
}

impl<'a, I: Iterator<Item = &'a str>> SameWords<'a> for I {
    /// Each part is a word of the line, in this order; times of links cannot be set, so they are excluded.
    fn eq_parts(mut self, parts: &[&str]) -> bool {
        parts.iter().all(|part| self.any(|word| word == *part))
    }
}

/// Files are the same through every kind of link.
#[track_caller]
fn compare_links(machine: &Machine, root: &Path) {
    let text = std::fs::read_to_string(root.join("a/b.txt")).expect("a file of the folder");
    let paths = ["link-fast", "link-slow", "link-absolute", "link-folder/b.txt", "deep/level-0/link-up"];
    let commands: Vec<String> = paths.iter().map(|path| format!("cat /fs/disk0/{path}")).collect();
    let printed = machine.run(&commands.join("; ")).succeeded();
    assert_eq!(printed, text.repeat(paths.len()), "through links");
    machine.run("cat /fs/disk0/link-broken").refused(&["link-broken", "not found"]);
    machine.run("cat /fs/disk0/link-circle").refused(&["link-circle", "circle"]);
    machine.run("cat /fs/disk0/a").refused(&["/fs/disk0/a", "folder"]);
    machine.run("cat /fs/disk0/empty/below").refused(&["/fs/disk0/empty/below"]);
    let bottom = (0..60).fold(String::from("/fs/disk0/deep"), |path, level| format!("{path}/level-{level}"));
    assert_eq!(machine.run(&format!("cat {bottom}/bottom.txt")).succeeded(), "the bottom\n");
}

#[track_caller]
fn same_lines(found: &str, expected: &str, what: &str) {
    for (number, (left, right)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(left, right, "line {} of {what}", number + 1);
    }
    assert!(found == expected, "{what}: {} lines instead of {}", found.lines().count(), expected.lines().count());
}

#[test]
fn blocks_of_1_kib() {
    compare(folder(300).path(), Format::default());
}

#[test]
fn blocks_of_2_kib() {
    compare(folder(20).path(), Format { block_bytes: 2048, ..Format::default() });
}

#[test]
fn blocks_of_4_kib() {
    compare(folder(20).path(), Format { block_bytes: 4096, ..Format::default() });
}

#[test]
fn revision_0() {
    for block_bytes in [1024, 4096] {
        compare(folder(20).path(), Format { block_bytes, revision: 0, ..Format::default() });
    }
}

#[test]
fn ten_thousand_names_in_one_folder() {
    let folder = folder(10_000);
    let image = Image::of(folder.path(), Format::default());
    let machine = Machine::new().disk(image.path());
    let listing = machine.run("ls /fs/disk0/many").succeeded();
    same_lines(&listing, &Expected::of(folder.path()).listing("many"), "ls of 10,000 names");
    let text = machine.run("cat /fs/disk0/many/name-00000 /fs/disk0/many/name-09999").succeeded();
    assert_eq!(text, "0\n9999\n");
    assert_eq!(machine.run("ls -l /fs/disk0/many").succeeded().lines().count(), 10_000);
    machine.run("cat /fs/disk0/many/name-10000").refused(&["name-10000", "not found"]);
}

#[test]
fn two_disks_are_two_folders() {
    let folders = [("first", 1024), ("second", 4096)].map(|(text, block_bytes)| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        std::fs::write(folder.path().join("which"), text).expect("a file can be written");
        Image::of(folder.path(), Format { block_bytes, mebibytes: 8, ..Format::default() })
    });
    let machine = Machine::new().disk(folders[0].path()).disk(format!("{}:ro", folders[1].path().display()));
    assert_eq!(machine.run("cat /fs/disk0/which; echo; cat /fs/disk1/which").succeeded(), "first\nsecond");
    let by_tool = machine.run_by_tool("ls /fs; cat /fs/disk1/which").succeeded();
    assert_eq!(by_tool, "disk0/\ndisk1/\nsecond", "through the tool");
}

#[test]
fn a_script_on_a_disk_runs() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let script = "# says hello\nfor name in $@; do echo \"hello, $name\" | cat; end\nreturn 7\n";
    std::fs::write(folder.path().join("greet"), script).expect("a file can be written");
    let image = Image::of(folder.path(), Format { mebibytes: 8, ..Format::default() });
    let run = Machine::new().disk(image.path()).run("run /fs/disk0/greet you 'all of them'");
    assert_eq!((run.text().as_str(), run.status), ("hello, you\nhello, all of them\n", Some(7)), "{run}");
}

#[track_caller]
fn compare_sparse(length: u64) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("sparse");
    sparse(&file, length).expect("a sparse file can be made");
    let image = Image::of(folder.path(), Format { mebibytes: 16, ..Format::default() });
    let machine = Machine::new().disk(image.path()).limit(Duration::from_secs(300));
    let stat = machine.run("stat /fs/disk0/sparse").succeeded();
    for line in Expected::of(folder.path()).stat_lines("sparse") {
        assert!(stat.contains(&line), "`stat` lacks `{line}`:\n{stat}");
    }
    let sum = machine.run("hash /fs/disk0/sparse").succeeded();
    assert_eq!(sum, format!("{}  /fs/disk0/sparse\n", sha256_of(&file)));
}

#[test]
fn a_sparse_file_of_64_mib() {
    compare_sparse(64 << 20);
}

#[test]
#[ignore = "takes minutes on a slow host"]
fn a_sparse_file_of_2_gib() {
    compare_sparse(2 << 30);
}
