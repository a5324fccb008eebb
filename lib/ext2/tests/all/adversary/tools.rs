//! Linux's tools for the format: create and check images.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::adversary::image::Image;
use crate::support::folder;

/// Parameters of a volume.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Arguments of `mke2fs`.
    pub arguments: &'static [&'static str],
    pub mebibytes: u32,
    /// Files of this format are smaller than 2 GiB.
    pub small_files: bool,
}

const fn format(mebibytes: u32, arguments: &'static [&'static str]) -> Format {
    Format { arguments, mebibytes, small_files: false }
}

/// Each block size, both revisions, with and without directory indexes, both inode sizes.
pub const FORMATS: [Format; 7] = [
    format(24, &["-b", "1024", "-I", "128", "-O", "dir_index"]),
    Format { small_files: true, ..format(24, &["-b", "1024", "-r", "0", "-O", "none"]) },
    format(32, &["-b", "2048", "-I", "256", "-O", "^dir_index,^resize_inode,^filetype"]),
    format(48, &["-b", "4096", "-I", "256", "-O", "dir_index"]),
    format(24, &["-b", "1024", "-I", "256", "-g", "1024", "-O", "dir_index,^sparse_super,^resize_inode"]),
    Format { small_files: true, ..format(48, &["-b", "4096", "-r", "0", "-O", "none"]) },
    // ext3: a volume with an internal journal.
    format(32, &["-b", "1024", "-j", "-J", "size=4"]),
];

/// Returns whether the tools are installed; prints a message if not, as the test is then skipped.
pub fn are_there() -> bool {
    let found = tool("e2fsck").arg("-V").output().is_ok();
    if !found {
        eprintln!("skipped: e2fsck is not installed (package e2fsprogs)");
    }
    found
}

/// One of the programs, which are installed in `sbin`.
pub fn tool(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).stdin(Stdio::null());
    command
}

/// A temporary image file, removed on drop.
pub struct ImageFile {
    folder: TempDir,
}

impl ImageFile {
    pub fn of(image: &Image) -> ImageFile {
        let file = ImageFile { folder: folder() };
        image.save(&file.path());
        file
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    pub fn load(&self) -> Image {
        Image::load(&self.path())
    }
}

impl Format {
    #[track_caller]
    pub fn make(&self) -> Image {
        let folder = folder();
        let path = folder.path().join("image");
        let output = tool("mke2fs")
            .args(["-q", "-F", "-t", "ext2"])
            .args(self.arguments)
            .arg(&path)
            .arg(format!("{}M", self.mebibytes))
            .output();
        let output = output.expect("mke2fs starts");
        assert!(output.status.success(), "mke2fs {:?}: {}", self.arguments, words(&output));
        Image::load(&path)
    }

    /// Maximum file size in the tests.
    pub fn largest_file(&self) -> u64 {
        if self.small_files { (2 << 30) - 1 } else { 15 << 30 }
    }
}

/// Runs a check that must find no faults.
pub fn check_clean(image: &Image) -> Result<(), String> {
    check_clean_file(&ImageFile::of(image).path())
}

pub fn check_clean_file(path: &Path) -> Result<(), String> {
    let output = tool("e2fsck").arg("-fn").arg(path).output().expect("e2fsck starts");
    match output.status.code() {
        Some(0) => Ok(()),
        status => Err(format!("e2fsck -fn ends with {status:?}:\n{}", words(&output))),
    }
}

/// Preens the volume, as a system does at boot. That must be sufficient.
pub fn preen(image: &Image) -> Result<Image, String> {
    repair(image, "-p")
}

/// Repairs everything, answering yes to every question.
pub fn repair_all(image: &Image) -> Result<Image, String> {
    repair(image, "-fy")
}

fn repair(image: &Image, how: &str) -> Result<Image, String> {
    let file = ImageFile::of(image);
    let output = tool("e2fsck").arg(how).arg(file.path()).output().expect("e2fsck starts");
    match output.status.code() {
        Some(0 | 1) => {}
        status => return Err(format!("e2fsck {how} ends with {status:?}:\n{}", words(&output))),
    }
    check_clean_file(&file.path()).map_err(|error| format!("after e2fsck {how} said {}: {error}", words(&output)))?;
    Ok(file.load())
}

fn words(output: &Output) -> String {
    let bytes = [&output.stdout[..], &output.stderr[..]].concat();
    let words = String::from_utf8_lossy(&bytes).into_owned();
    // The first complaint is the most useful.
    words.chars().take(2000).collect()
}
