//! Images for sites: of a host's folder, and empty ones for the log.
//!
//! An image is written to a temporary file and renamed, so that a machine that serves the previous one keeps it.
//! Deliberately not here: the disk format; that is the crate `ext2`.

use std::collections::BTreeMap;
use std::fs::File as HostFile;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ext2::make::{Attributes, Folder, ImageOptions, ImageSink, make_image};

use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::repository::{Repository, write_whole};
use crate::site::tree::{BLOCK_BYTES, Tree};

/// Size of the log volume in bytes. Its image is sparse.
const LOG_BYTES: u64 = 1 << 30;
/// Bytes copied between updates of the progress.
const PIECE_BYTES: u64 = 16 << 20;

/// Returns the image of a folder, rebuilt if anything in the folder has changed since the last time.
///
/// # Errors
/// The folder cannot be read or does not fit, or the image cannot be written.
pub fn of_folder(repository: &Repository, folder: &Path) -> Outcome<PathBuf> {
    let images = repository.output("web");
    let tree = Tree::read(folder, &images)?;
    for note in tree.notes() {
        eprintln!("sing: {note}");
    }
    let top = folder.canonicalize().map_err(|error| Failure::file("read the folder", folder, &error))?;
    let name = checksum(top.as_os_str().as_bytes());
    let image = images.join(format!("{name:016x}.img"));
    let kept = images.join(format!("{name:016x}.kept"));
    if image.is_file() && std::fs::read_to_string(&kept).is_ok_and(|kept| kept == tree.fingerprint) {
        return Ok(image);
    }
    let mut label = [0; 16];
    let words = top.file_name().map_or(&b"web"[..], OsStrExt::as_bytes);
    let length = words.len().min(label.len());
    label[..length].copy_from_slice(&words[..length]);
    make(&image, label, tree.volume_bytes(), &tree.root, &tree.files, tree.content_bytes)?;
    write_whole(&kept, tree.fingerprint.as_bytes())?;
    Ok(image)
}

/// Returns the log image of a server at this port. Its content persists between runs.
///
/// # Errors
/// It cannot be written.
pub fn log(repository: &Repository, port: u16) -> Outcome<PathBuf> {
    let image = repository.output(&format!("web/log-{port}.img"));
    if !image.is_file() {
        let root = Folder { attributes: Attributes::searchable(now()), entries: BTreeMap::new() };
        make(&image, *b"web log\0\0\0\0\0\0\0\0\0", LOG_BYTES, &root, &[], 0)?;
    }
    Ok(image)
}

/// Writes an image to a temporary file and renames it when complete.
fn make(
    path: &Path,
    label: [u8; 16],
    volume_bytes: u64,
    root: &Folder,
    files: &[PathBuf],
    content_bytes: u64,
) -> Outcome<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let result = write(&temporary, label, volume_bytes, root, files, content_bytes)
        .and_then(|()| std::fs::rename(&temporary, path).map_err(|error| Failure::file("write", path, &error)));
    if result.is_err() {
        // Left over from a failed attempt; failure to remove it is harmless.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn write(
    path: &Path,
    label: [u8; 16],
    volume_bytes: u64,
    root: &Folder,
    files: &[PathBuf],
    content_bytes: u64,
) -> Outcome<()> {
    let image = HostFile::create(path).map_err(|error| Failure::file("make", path, &error))?;
    let options = ImageOptions {
        block_bytes: BLOCK_BYTES as u32,
        volume_bytes,
        inodes: None,
        label,
        uuid: *b"singularity-site",
        made: now(),
    };
    let mut progress = Progress::of_copying("the folder to be served", content_bytes);
    let mut sink = Sink { image: &image, files, open: None, copied: 0, progress: &mut progress };
    let built = make_image(&options, root, &mut sink);
    drop(progress);
    let built = built.map_err(|error| Failure::new(format!("cannot create the image {}: {error}", path.display())))?;
    image.set_len(built.volume_bytes).map_err(|error| Failure::file("write", path, &error))
}

struct Sink<'a> {
    image: &'a HostFile,
    files: &'a [PathBuf],
    /// The last copied file, by its key.
    open: Option<(usize, HostFile)>,
    copied: u64,
    progress: &'a mut Progress,
}

impl Sink<'_> {
    fn opened(&mut self, key: usize) -> std::io::Result<HostFile> {
        match self.open.take() {
            Some((open, file)) if open == key => Ok(file),
            _ => HostFile::open(self.path(key)?),
        }
    }

    fn path(&self, key: usize) -> std::io::Result<&Path> {
        self.files.get(key).map(PathBuf::as_path).ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Copies within the host's kernel, if possible.
    fn copy_piece(&mut self, file: &mut HostFile, from: Range<u64>, offset: u64) -> std::io::Result<u64> {
        file.seek(SeekFrom::Start(from.start))?;
        let mut image = self.image;
        image.seek(SeekFrom::Start(offset))?;
        std::io::copy(&mut file.take(from.end - from.start), &mut image)
    }
}

impl ImageSink for Sink<'_> {
    type Error = std::io::Error;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.image.write_all_at(bytes, offset)
    }

    fn copy(&mut self, key: usize, from: Range<u64>, offset: u64) -> std::io::Result<()> {
        let mut file = self.opened(key)?;
        let mut at = from.start;
        while at < from.end {
            let end = from.end.min(at + PIECE_BYTES);
            let count = self.copy_piece(&mut file, at..end, offset + (at - from.start))?;
            if count < end - at {
                let what = format!("{} shrank while it was copied; try again", self.path(key)?.display());
                return Err(std::io::Error::new(ErrorKind::UnexpectedEof, what));
            }
            at = end;
            self.copied += count;
            self.progress.copied(self.copied);
        }
        self.open = Some((key, file));
        Ok(())
    }
}

/// Returns the seconds since 1970, within the range of the format.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().min(i32::MAX as u64) as u32
}

/// Hash of a path (FNV-1a), for the name of its image.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_fits_into_its_image() {
        let folder = tempfile::tempdir().expect("a folder");
        let site = folder.path().join("site");
        std::fs::create_dir(&site).expect("a folder");
        for index in 0..2000 {
            std::fs::write(site.join(format!("{index:0200}")), vec![1; index % 5000]).expect("a file");
        }
        std::fs::write(site.join("large"), vec![7; 20_000_000]).expect("a file");
        let tree = Tree::read(&site, Path::new("/no/such")).expect("a tree");
        let image = folder.path().join("image");
        make(&image, [0; 16], tree.volume_bytes(), &tree.root, &tree.files, tree.content_bytes).expect("it fits");
        let bytes = std::fs::read(&image).expect("an image");
        assert_eq!(bytes[1080..1082], [0x53, 0xef]);
        let run = [7; 4096];
        assert_eq!(bytes.chunks(4096).filter(|block| *block == run).count(), 20_000_000 / 4096);
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 2, "nothing else is left behind");
    }
}
