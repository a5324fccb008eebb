//! A folder to make disks from, and the expected output of the system's programs about it.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Modification time of every file in the folder: 2001-02-03 04:05:06 UTC.
const SECONDS_OF_FILES: u64 = 981_173_106;
const TIME_OF_FILES: &str = "2001-02-03 04:05:06";

/// Fills a folder with files of all kinds, `crowd` of them in the folder `many`.
pub fn sample(root: &Path, crowd: usize) -> std::io::Result<()> {
    fs::create_dir_all(root.join("a"))?;
    write(&root.join("a/b.txt"), b"The quick brown fox\njumps over the lazy dog.\n")?;
    write(&root.join("a/no line end"), "Größe, ελληνικά, 漢字".as_bytes())?;
    write(&root.join("empty"), b"")?;
    // Lengths on both sides of the start of each level of indirection, for blocks of 1 KiB and 4 KiB.
    for length in [1, 1023, 1024, 1025, 12 * 1024, 12 * 1024 + 1, 48 * 1024 + 1, 268 * 1024, 268 * 1024 + 1, 4_300_000]
    {
        write(&root.join(format!("binary-{length}")), &noise(length))?;
    }
    write(&root.join("x".repeat(255)), b"the longest name")?;
    write(&root.join("ü".repeat(127)), b"a long name in letters of two bytes")?;
    fs::create_dir(root.join("y".repeat(255)))?;
    write(&root.join("y".repeat(255)).join("inside"), b"below the longest name\n")?;
    let deep = (0..60).fold(root.join("deep"), |path, level| path.join(format!("level-{level}")));
    fs::create_dir_all(&deep)?;
    write(&deep.join("bottom.txt"), b"the bottom\n")?;
    symlink("a/b.txt", root.join("link-fast"))?;
    symlink(format!("{}a/b.txt", "./".repeat(100)), root.join("link-slow"))?;
    symlink("/a/b.txt", root.join("link-absolute"))?;
    symlink("a", root.join("link-folder"))?;
    symlink("../../a/b.txt", root.join("deep/level-0/link-up"))?;
    symlink("nowhere", root.join("link-broken"))?;
    symlink("link-circle", root.join("link-circle"))?;
    sparse(&root.join("sparse"), 70 << 20)?;
    fs::create_dir(root.join("many"))?;
    for number in 0..crowd {
        write(&root.join(format!("many/name-{number:05}")), format!("{number}\n").as_bytes())?;
    }
    fs::set_permissions(root.join("a/b.txt"), fs::Permissions::from_mode(0o4751))?;
    Ok(())
}

/// Makes a file of zeroes with a word near its start, past its middle and at its end.
pub fn sparse(path: &Path, length: u64) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.set_len(length)?;
    for offset in [5000, length / 4 * 3 + 17, length - 8] {
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(b"an island"[..8].as_ref())?;
    }
    file.set_modified(UNIX_EPOCH + Duration::from_secs(SECONDS_OF_FILES))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.set_modified(UNIX_EPOCH + Duration::from_secs(SECONDS_OF_FILES))
}

/// Returns pseudo-random bytes of every value, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Expected output about a folder of the host that a disk was made from.
pub struct Expected<'a> {
    root: &'a Path,
}

impl<'a> Expected<'a> {
    /// Expectations for the folder that the disk was made from.
    pub fn of(root: &'a Path) -> Expected<'a> {
        Expected { root }
    }

    /// Names and kinds in a folder, sorted by bytes; includes `lost+found`, which mke2fs adds.
    fn names(&self, below: &Path) -> BTreeMap<Vec<u8>, Metadata> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(below).expect("the folder can be read") {
            let entry = entry.expect("the folder can be read");
            let name = entry.file_name().into_encoded_bytes();
            names.insert(name, fs::symlink_metadata(entry.path()).expect("a file of the folder"));
        }
        names
    }

    /// Expected output of `tree PATH`.
    pub fn tree(&self, shown: &str) -> String {
        let mut drawing = Drawing { expected: self, lines: format!("{shown}\n"), folders: 0, others: 0 };
        drawing.draw(self.root, "");
        let Drawing { lines, folders, others, .. } = drawing;
        format!("{lines}\n{} folders, {} other names\n", grouped(folders), grouped(others))
    }

    /// Expected output of `ls PATH` for a folder below the root.
    pub fn listing(&self, folder: &str) -> String {
        self.names(&self.root.join(folder))
            .iter()
            .map(|(name, metadata)| format!("{}{}\n", String::from_utf8_lossy(name), mark(metadata)))
            .collect()
    }

    /// Required parts of a line of `ls -l`: permissions, links, size, time, and the name with its target.
    pub fn long_line(&self, path: &str) -> Vec<String> {
        let full = self.root.join(path);
        let metadata = fs::symlink_metadata(&full).expect("a file of the folder");
        let name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut parts = vec![mode(&metadata), metadata.nlink().to_string(), metadata.len().to_string()];
        if metadata.is_file() {
            parts.extend(TIME_OF_FILES.split(' ').map(str::to_string));
        }
        parts.push(format!("{name}{}", mark(&metadata)));
        if metadata.is_symlink() {
            let target = fs::read_link(&full).expect("a link");
            parts.extend(["->".into(), target.display().to_string()]);
        }
        parts
    }

    /// Required lines of `stat PATH`.
    pub fn stat_lines(&self, path: &str) -> Vec<String> {
        let metadata = fs::symlink_metadata(self.root.join(path)).expect("a file of the folder");
        vec![
            format!("size  {} bytes", grouped(metadata.len())),
            format!("mode  {:04o} {}", metadata.mode() & 0o7777, mode(&metadata)),
            format!("links  {}", metadata.nlink()),
            format!("owner  {}:{}", metadata.uid(), metadata.gid()),
            format!("modified  {TIME_OF_FILES} UTC"),
        ]
    }
}

struct Drawing<'a, 'b> {
    expected: &'a Expected<'b>,
    lines: String,
    folders: u64,
    others: u64,
}

impl Drawing<'_, '_> {
    fn draw(&mut self, folder: &Path, indent: &str) {
        let mut names = self.expected.names(folder);
        let is_root = folder == self.expected.root;
        if is_root {
            // Any folder will do for one that exists only on the disk.
            let metadata = fs::metadata(folder).expect("the folder is there");
            names.insert(b"lost+found".to_vec(), metadata);
        }
        let count = names.len();
        for (index, (name, metadata)) in names.iter().enumerate() {
            let last = index + 1 == count;
            let text = String::from_utf8_lossy(name);
            let branch = if last { "└── " } else { "├── " };
            self.lines += &format!("{indent}{branch}{text}{}\n", mark(metadata));
            if !metadata.is_dir() {
                self.others += 1;
                continue;
            }
            self.folders += 1;
            if !(is_root && name == b"lost+found") {
                self.draw(&folder.join(&*text), &format!("{indent}{}", if last { "    " } else { "│   " }));
            }
        }
    }
}

fn mark(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        "/"
    } else if metadata.is_symlink() {
        "@"
    } else {
        ""
    }
}

/// Permissions as ten letters, such as `-rwsr-x--x`.
fn mode(metadata: &Metadata) -> String {
    let bits = metadata.mode();
    let kind = if metadata.is_dir() {
        'd'
    } else if metadata.is_symlink() {
        'l'
    } else {
        '-'
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let part = bits >> shift;
        text.push(if part & 4 != 0 { 'r' } else { '-' });
        text.push(if part & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & special != 0, part & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Formats a number with thousands separators: `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}
