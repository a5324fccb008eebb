//! Linux's FAT tools, on disks in memory.

use std::path::Path;
use std::process::Command;

pub use crate::disk::{Act, Faults, MemoryDisk, TEST_TIME_S, mount, options, run};

/// A disk of this size, formatted by mkfs.fat with these arguments.
pub fn made_by_linux(bytes: u64, words: &[&str]) -> MemoryDisk {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    std::fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("an empty image");
    let output = Command::new(tool("mkfs.fat")).args(words).arg(&path).output().expect("mkfs.fat runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::File::open(&path).and_then(|file| MemoryDisk::of_file(&file)).expect("the image")
}

/// The complaints of `fsck.fat -n` about an image, if any.
pub fn complaints(disk: &MemoryDisk) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    std::fs::File::create(&path).and_then(|file| disk.write_to(&file)).expect("a copy");
    let output = Command::new(tool("fsck.fat")).args(["-n", "-v"]).arg(&path).output().expect("fsck.fat runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { None } else { Some(text) }
}

#[track_caller]
pub fn expect_clean(disk: &MemoryDisk) {
    if let Some(text) = complaints(disk) {
        panic!("fsck.fat complains:\n{text}");
    }
}

/// Runs a program of mtools on the image at `path`.
pub fn mtools(program: &str, path: &Path, words: &[&str]) -> String {
    let output = Command::new(tool(program))
        .env("MTOOLS_SKIP_CHECK", "1")
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .arg("-i")
        .arg(path)
        .args(words)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tool(name: &str) -> String {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let found = folders.iter().map(|folder| format!("{folder}/{name}")).find(|path| Path::new(path).is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed; `cargo sing test` installs it"))
}
