//! What the tests share: host files as disks, outside tools, predictable bytes.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use ext2::{BlockSource, CacheLimits, Error, Inode, Kind, LastLink, ROOT_INODE, ReadError, Volume, complete};

/// A host file as a disk.
pub struct FileDisk(pub File);

impl FileDisk {
    pub fn open(path: &Path) -> FileDisk {
        FileDisk(File::open(path).unwrap())
    }
}

impl BlockSource for FileDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.0.metadata().unwrap().len()
    }

    async fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, ReadError> {
        let mut buffer = vec![0; bytes];
        self.0.read_exact_at(&mut buffer, offset).map_err(|_| ReadError::Failed(5))?;
        Ok(buffer)
    }
}

pub fn mount(path: &Path) -> Result<Volume<FileDisk>, Error> {
    complete(Volume::mount(FileDisk::open(path), CacheLimits::default()))
}

pub fn resolve<S: BlockSource>(volume: &Volume<S>, path: &str) -> Result<Inode, Error> {
    complete(volume.resolve(ROOT_INODE, path.as_bytes(), LastLink::Follow))
}

pub fn content<S: BlockSource>(volume: &Volume<S>, path: &str) -> Vec<u8> {
    let inode = resolve(volume, path).unwrap();
    let mut bytes = vec![0xaa; inode.size as usize];
    assert_eq!(complete(volume.read(&inode, 0, &mut bytes)).unwrap(), bytes.len());
    bytes
}

/// All names of a folder, fetched in pages.
pub fn names<S: BlockSource>(volume: &Volume<S>, folder: &Inode) -> Vec<(Vec<u8>, u32, Option<Kind>)> {
    let (mut names, mut position) = (Vec::new(), 0);
    loop {
        let listing = complete(volume.list(folder, position, 100)).unwrap();
        names.extend(listing.entries.into_iter().map(|entry| (entry.name, entry.inode, entry.kind)));
        match listing.next {
            Some(next) => position = next,
            None => return names,
        }
    }
}

/// Whether a program is there; says so if not, as the test is then skipped.
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

/// Bytes that differ from place to place and from file to file.
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
