//! The disk that `sing run` makes when none is given: a small ext2 volume with varied content.
//!
//! Deliberately not here: the disk format; that is the crate `ext2`.

use std::collections::BTreeMap;
use std::fs::File as HostFile;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ext2::make::{Attributes, File, Folder, ImageOptions, ImageSink, Link, Node, make_image};

use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

/// Bytes of the volume.
const VOLUME_BYTES: u64 = 32 << 20;
/// Timestamp of everything on the disk, so that it is reproducible: 2007-04-01, when the Singularity paper appeared.
const MADE: u32 = 1_175_385_600;
/// Version of the content; stale disks are rebuilt.
const EDITION: &str = "3";

/// Returns the demo disk's path; creates it if missing.
///
/// # Errors
/// The image cannot be written.
pub fn path(repository: &Repository) -> Outcome<PathBuf> {
    let path = repository.output("demo.img");
    let edition = repository.output("demo.edition");
    let is_current = path.is_file() && std::fs::read_to_string(&edition).is_ok_and(|found| found == EDITION);
    if !is_current {
        make(&path)?;
        crate::repository::write_whole(&edition, EDITION.as_bytes())?;
    }
    Ok(path)
}

/// Writes the image to a temporary file and renames it when complete.
fn make(path: &Path) -> Outcome<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let result = write_image(&temporary)
        .and_then(|()| std::fs::rename(&temporary, path).map_err(|error| Failure::file("write", path, &error)));
    if result.is_err() {
        // Left over from a failed attempt; failure to remove it is harmless.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn write_image(path: &Path) -> Outcome<()> {
    let file = HostFile::create(path).map_err(|error| Failure::file("make", path, &error))?;
    let mut label = [0; 16];
    label[..4].copy_from_slice(b"demo");
    let options = ImageOptions {
        block_bytes: 1024,
        volume_bytes: VOLUME_BYTES,
        inodes: None,
        label,
        uuid: *b"singularity-demo",
        made: MADE,
    };
    let built = make_image(&options, &content(), &mut Sink(&file))
        .map_err(|error| Failure::new(format!("cannot create the demo disk {}: {error}", path.display())))?;
    file.set_len(built.volume_bytes).map_err(|error| Failure::file("write", path, &error))
}

struct Sink<'a>(&'a HostFile);

impl ImageSink for Sink<'_> {
    type Error = std::io::Error;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

const README: &str = "\
Welcome to Singularity in Rust.

The shell you type in, the console it talks to, the file system that read this
file and the disk driver under it are four sealed processes (SIPs). They share
no memory; every byte of this text came to you through channels whose contracts
are checked at each message.

Things to try:

    tree /fs/disk0                 what else is on this disk
    channels                       who talks to whom, under which contract
    contract Directory             how a client and a directory converse
    ps                             the processes there are
    kill ext2-fs; ls /fs/disk0     what happens when the file system dies
    help                           all commands
";

const POEM: &str = "\
The Tyger, by William Blake (1794)

Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?
";

const NUMBERS: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

/// The tree on the disk.
fn content() -> Folder {
    let data = folder([("numbers.txt", text(NUMBERS)), ("bytes.bin", file((0..=255u8).collect()))]);
    let three = folder([("deep.txt", text("Four folders down.\n"))]);
    let two = folder([("three", Node::Folder(three))]);
    folder([
        ("README", text(README)),
        ("poems", Node::Folder(folder([("tyger.txt", text(POEM))]))),
        ("data", Node::Folder(data)),
        ("sparse.bin", sparse()),
        ("latest.txt", link("poems/tyger.txt")),
        ("one", Node::Folder(folder([("two", Node::Folder(two)), ("up", link("../data"))]))),
        ("empty", text("")),
        ("notes with spaces.txt", text("Names may hold spaces; quote them: cat 'notes with spaces.txt'\n")),
        ("grüße.txt", text("Names are bytes; these happen to be UTF-8.\n")),
    ])
}

/// A file of 8 MiB with two allocated blocks.
fn sparse() -> Node {
    let size = 8 << 20;
    let extents = BTreeMap::from([(0, b"A hole follows.\n".to_vec()), (size - 14, b"The hole ends.".to_vec())]);
    Node::File(File { attributes: Attributes::readable(MADE), size, extents })
}

fn folder<const N: usize>(entries: [(&str, Node); N]) -> Folder {
    let entries = entries.into_iter().map(|(name, node)| (name.as_bytes().to_vec(), node)).collect();
    Folder { attributes: Attributes::searchable(MADE), entries }
}

fn text(text: &str) -> Node {
    file(text.as_bytes().to_vec())
}

fn file(bytes: Vec<u8>) -> Node {
    Node::File(File::with_bytes(Attributes::readable(MADE), bytes))
}

fn link(target: &str) -> Node {
    let attributes = Attributes { permissions: 0o777, ..Attributes::readable(MADE) };
    Node::Link(Link { attributes, target: target.as_bytes().to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_disk_is_made_and_small() {
        let folder = std::env::temp_dir().join(format!("sing-demo-{}", std::process::id()));
        let path = folder.join("demo.img");
        make(&path).expect("an image");
        let metadata = std::fs::metadata(&path).expect("metadata");
        assert!(metadata.len() <= VOLUME_BYTES);
        let magic = &std::fs::read(&path).expect("the image")[1080..1082];
        assert_eq!(magic, [0x53, 0xef]);
        assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1, "nothing else is left behind");
        std::fs::remove_dir_all(&folder).expect("cleaning up");
    }
}
