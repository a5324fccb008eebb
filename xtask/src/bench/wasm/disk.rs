//! The disk of the machines: packages to install, work for programs, files to print.

use std::collections::BTreeMap;
use std::fs::File as HostFile;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use ext2::make::{Attributes, File, Folder, ImageOptions, ImageSink, Node, make_image};
use sing::build;
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;

use super::compute::PROGRAMS;

/// Programs that are installed from packages.
pub const PACKAGES: [&str; 2] = ["sqlite", "wasm-hello"];
/// Files that are printed by the program that is built in both ways.
pub const SMALL_FILE: &str = "small.txt";
pub const LARGE_FILE: &str = "large.txt";
/// Bytes of the large one.
pub const LARGE_BYTES: usize = 32 << 20;
const VOLUME_BYTES: u64 = 96 << 20;
const MADE: u32 = 1_175_385_600;

/// Writes the disk; returns its path.
///
/// # Errors
/// A package cannot be built, or the disk not be written.
pub fn write(repository: &Repository) -> Outcome<PathBuf> {
    let mut files: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
    for name in PACKAGES {
        let package = build::package(repository, name, None)?;
        files.insert(format!("{name}.package").into_bytes(), file(package));
    }
    for program in &PROGRAMS {
        let path = repository.base().join("benches/wasm").join(program.work);
        let work = std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
        files.insert(program.work.into(), file(work));
    }
    let line = b"a line of text that is printed unchanged, again and again\n";
    files.insert(SMALL_FILE.into(), file(line.to_vec()));
    files.insert(LARGE_FILE.into(), file(line.iter().copied().cycle().take(LARGE_BYTES).collect()));
    let content = Folder { attributes: Attributes::searchable(MADE), entries: files };
    let path = repository.output("bench-wasm.img");
    let image = HostFile::create(&path).map_err(|error| Failure::file("make", &path, &error))?;
    let options = ImageOptions {
        block_bytes: 4096,
        volume_bytes: VOLUME_BYTES,
        inodes: Some(256),
        label: *b"bench-wasm\0\0\0\0\0\0",
        uuid: *b"singularity-wasm",
        made: MADE,
    };
    let built = make_image(&options, &content, &mut Sink(&image))
        .map_err(|error| Failure::new(format!("cannot create the disk {}: {error}", path.display())))?;
    image.set_len(built.volume_bytes).map_err(|error| Failure::file("write", &path, &error))?;
    Ok(path)
}

fn file(bytes: Vec<u8>) -> Node {
    Node::File(File::with_bytes(Attributes::readable(MADE), bytes))
}

struct Sink<'a>(&'a HostFile);

impl ImageSink for Sink<'_> {
    type Error = std::io::Error;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}
