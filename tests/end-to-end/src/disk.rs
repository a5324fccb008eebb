//! Disk images made by Linux's own tools.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Format options for `mke2fs`.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Block size in bytes: 1024, 2048 or 4096.
    pub block_bytes: u32,
    /// Revision of the format: 0 or 1.
    pub revision: u32,
    /// Size of the disk, in MiB.
    pub mebibytes: u32,
}

impl Default for Format {
    fn default() -> Format {
        Format { block_bytes: 1024, revision: 1, mebibytes: 64 }
    }
}

/// A disk image in a temporary folder, removed on drop.
#[derive(Debug)]
pub struct Image {
    folder: TempDir,
}

impl Image {
    /// Makes an ext2 disk with the contents of `source`, by `mke2fs -d`.
    #[track_caller]
    pub fn of(source: &Path, format: Format) -> Image {
        let image = Image::empty();
        let Format { block_bytes, revision, mebibytes } = format;
        let mut words = vec!["-q".into(), "-F".into(), "-t".into(), "ext2".into()];
        words.extend(["-b".into(), block_bytes.to_string()]);
        if revision == 0 {
            // Revision 0 has no features at all.
            words.extend(["-r".into(), "0".into(), "-O".into(), "none".into()]);
        }
        words.extend(["-d".into(), source.display().to_string(), image.path().display().to_string()]);
        words.push(format!("{mebibytes}M"));
        tool("mke2fs", &words);
        image
    }

    /// Makes an empty image file.
    pub fn empty() -> Image {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        File::create(folder.path().join("disk.img")).expect("a file can be made");
        Image { folder }
    }

    /// Makes an image file with these bytes.
    pub fn with_bytes(bytes: &[u8]) -> Image {
        let image = Image::empty();
        std::fs::write(image.path(), bytes).expect("a file can be written");
        image
    }

    /// Path of the image.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    /// Asserts that `e2fsck` finds no error in the file system, and that it was cleanly unmounted.
    #[track_caller]
    pub fn check(&self) {
        tool("e2fsck", &["-f".into(), "-n".into(), self.path().display().to_string()]);
    }

    /// Extracts the contents of the file system into a folder, by `debugfs`.
    #[track_caller]
    pub fn contents(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let request = format!("rdump / {}", folder.path().display());
        tool("debugfs", &["-R".into(), request, self.path().display().to_string()]);
        folder
    }

    /// Writes bytes at an offset.
    #[track_caller]
    pub fn overwrite(&self, offset: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(self.path()).expect("the image can be opened");
        file.write_all_at(bytes, offset).expect("the image can be written");
    }

    /// Runs a `debugfs` command on the file system and returns its output.
    #[track_caller]
    pub fn debugfs(&self, request: &str) -> String {
        tool("debugfs", &["-w".into(), "-R".into(), request.into(), self.path().display().to_string()])
    }
}

/// Runs one of the e2fsprogs, which are installed in `sbin`.
#[track_caller]
fn tool(name: &str, words: &[String]) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(name)
        .args(words)
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{name} does not start ({error}); install e2fsprogs"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{name} {words:?}: {said}");
    said
}
