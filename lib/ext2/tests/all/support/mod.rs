//! Shared test support: host files as disks, external tools, predictable bytes.
#![allow(dead_code, reason = "each test uses a part of it")]

mod any_disk;

use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use ext2::{BlockSource, DiskError, Error, Inode, Kind, LastLink, MountOptions, ROOT_INODE, Volume, complete};

pub use any_disk::AnyDisk;

/// A host file as a disk.
pub struct FileDisk {
    file: File,
    read_only: bool,
}

impl FileDisk {
    pub fn open(path: &Path) -> AnyDisk {
        AnyDisk::new(FileDisk { file: File::open(path).unwrap(), read_only: true })
    }

    /// Opens a host file for reading and writing.
    pub fn open_to_write(path: &Path) -> AnyDisk {
        let file = File::options().read(true).write(true).open(path).unwrap();
        AnyDisk::new(FileDisk { file, read_only: false })
    }
}

impl BlockSource for FileDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.file.metadata().unwrap().len()
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        let result = self.file.read_exact_at(&mut buffer[..bytes], offset).map_err(|_| DiskError::Failed(5));
        (Some(buffer), result)
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        let result = self.file.write_all_at(&buffer[..bytes], offset).map_err(|_| DiskError::Failed(5));
        (Some(buffer), result)
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        1_700_000_000
    }
}

pub fn mount(path: &Path) -> Result<Volume<AnyDisk>, Error> {
    complete(Volume::mount(FileDisk::open(path), MountOptions::default()))
}

pub fn resolve(volume: &Volume<AnyDisk>, path: &str) -> Result<Inode, Error> {
    complete(volume.resolve(ROOT_INODE, path.as_bytes(), LastLink::Follow))
}

pub fn content(volume: &Volume<AnyDisk>, path: &str) -> Vec<u8> {
    let inode = resolve(volume, path).unwrap();
    let mut bytes = vec![0xaa; inode.size as usize];
    assert_eq!(read(volume, &inode, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Reads a part of a file.
pub fn read(volume: &Volume<AnyDisk>, file: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
    complete(async { volume.open(file.number).await?.read(offset, buffer).await })
}

/// Returns all names of a folder, fetched in pages.
pub fn names(volume: &Volume<AnyDisk>, folder: &Inode) -> Vec<(Vec<u8>, u32, Option<Kind>)> {
    let (mut names, mut position) = (Vec::new(), 0);
    loop {
        let listing = complete(volume.list(folder.number, position, 100)).unwrap();
        names.extend(listing.entries.into_iter().map(|entry| (entry.name, entry.inode, entry.kind)));
        match listing.next {
            Some(next) => position = next,
            None => return names,
        }
    }
}

/// Returns a folder for images; in memory if the host has such a file system.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a folder for temporary files")
}

/// Writes a file with holes where the bytes are zero: images of volumes mostly are.
pub fn save(path: &Path, bytes: &[u8]) {
    const CHUNK_BYTES: usize = 32 << 10;
    let file = File::create(path).expect("an image file can be made");
    file.set_len(bytes.len() as u64).expect("an image file can be extended");
    for (index, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        if chunk.iter().any(|byte| *byte != 0) {
            file.write_all_at(chunk, (index * CHUNK_BYTES) as u64).expect("an image file can be written");
        }
    }
}

/// Returns whether a program is installed; prints a message if not, as the test is then skipped.
pub fn has_tool(name: &str) -> bool {
    let found = Command::new(name).arg("-V").output().is_ok();
    if !found {
        eprintln!("skipped: {name} is not installed (package e2fsprogs)");
    }
    found
}

pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

/// Unmounts what is mounted there. The child of another test has what this one had open, until it runs its program.
pub fn unmount(point: &Path) {
    let is_unmounted = || Command::new("umount").arg(point).output().is_ok_and(|output| output.status.success());
    let begin = Instant::now();
    while !is_unmounted() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{} stays busy", point.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes that differ by offset and file.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..bytes).map(next).collect()
}
