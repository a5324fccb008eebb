//! The measured disk: a large file, and many small ones in folders. Content is deterministic; runs remove the files
//! that they write.

use std::collections::BTreeMap;
use std::fs::File as HostFile;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ext2::make::{Attributes, File, Folder, ImageOptions, ImageSink, Node, make_image};

use sing::failure::{Failure, Outcome};
use sing::repository::{Repository, write_whole};

const VOLUME_BYTES: u64 = 1 << 30;
/// Inodes: for the small files, and as many again.
const INODES: u32 = 128 << 10;
/// Bytes of the large file: the paper's 350 MB.
pub const LARGE_BYTES: u64 = 350_000_000;
pub const LARGE_FILE: &str = "large";
/// Folder of the small files.
pub const SMALL_FILES: &str = "small";
/// Folder for files that a run writes.
pub const SCRATCH: &str = "scratch";
const FOLDERS: u32 = 500;
const FILES_IN_FOLDER: u32 = 100;
/// Names below [`SMALL_FILES`].
pub const NAMES: u64 = FOLDERS as u64 * (FILES_IN_FOLDER as u64 + 1);
const MADE: u32 = 1_175_385_600;
/// Version of the content; stale images are rebuilt.
const EDITION: &str = "1";

/// Returns the image's path; creates it if missing.
pub fn path(repository: &Repository) -> Outcome<PathBuf> {
    let path = repository.output("bench-disk.img");
    let edition = repository.output("bench-disk.edition");
    if !(path.is_file() && std::fs::read_to_string(&edition).is_ok_and(|found| found == EDITION)) {
        write(&path)?;
        write_whole(&edition, EDITION.as_bytes())?;
    }
    Ok(path)
}

fn write(path: &Path) -> Outcome<()> {
    eprintln!("sing: creating the disk {}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    let file = HostFile::create(path).map_err(|error| Failure::file("make", path, &error))?;
    let options = ImageOptions {
        block_bytes: 4096,
        volume_bytes: VOLUME_BYTES,
        inodes: Some(INODES),
        label: *b"bench\0\0\0\0\0\0\0\0\0\0\0",
        uuid: *b"singularity-disk",
        made: MADE,
    };
    let built = make_image(&options, &content(), &mut Sink(&file))
        .map_err(|error| Failure::new(format!("cannot create the disk {}: {error}", path.display())))?;
    file.set_len(built.volume_bytes).map_err(|error| Failure::file("write", path, &error))
}

struct Sink<'a>(&'a HostFile);

impl ImageSink for Sink<'_> {
    type Error = std::io::Error;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

fn content() -> Folder {
    let small = (0..FOLDERS).map(|folder| {
        let files = (0..FILES_IN_FOLDER).map(|file| {
            let text = format!("file {file} of folder {folder}\n").repeat(8);
            (format!("file-{file:03}.txt").into_bytes(), Node::File(text_file(text.into_bytes())))
        });
        (format!("folder-{folder:03}").into_bytes(), Node::Folder(folder_of(files.collect())))
    });
    let large = text_file((0..LARGE_BYTES).map(|place| (place >> 9) as u8 ^ place as u8).collect());
    folder_of(BTreeMap::from([
        (LARGE_FILE.into(), Node::File(large)),
        (SMALL_FILES.into(), Node::Folder(folder_of(small.collect()))),
        (SCRATCH.into(), Node::Folder(folder_of(BTreeMap::new()))),
    ]))
}

fn folder_of(entries: BTreeMap<Vec<u8>, Node>) -> Folder {
    Folder { attributes: Attributes::searchable(MADE), entries }
}

fn text_file(bytes: Vec<u8>) -> File {
    File::with_bytes(Attributes::readable(MADE), bytes)
}
