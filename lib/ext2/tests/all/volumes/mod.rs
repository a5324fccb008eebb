//! Shared support for the tests of formatting and checking: a writable in-memory disk, and Linux's tools.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod chance;
pub mod checking;
pub mod damaged_folders;
pub mod damaged_inodes;
pub mod damages;
pub mod image;
pub mod samples;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use crate::support::{self, AnyDisk};
use ext2::{BlockSource, DiskError, complete};

/// Time of all tests, in seconds since 1970.
pub const NOW: u32 = 1_700_000_000;

/// A disk in memory; clones share it.
#[derive(Clone, Default)]
pub struct Disk {
    pub bytes: Rc<RefCell<Vec<u8>>>,
    /// Number of writes, and their total bytes.
    pub writes: Rc<Cell<u64>>,
    pub written: Rc<Cell<u64>>,
    /// Writes left before the disk fails, if it does.
    pub writes_left: Rc<Cell<Option<u64>>>,
    /// Number of writes before the only one that fails.
    pub failing_write: Rc<Cell<Option<u64>>>,
    /// Buffers left to allocate, if bounded.
    pub buffers_left: Rc<Cell<Option<u64>>>,
    /// Operations on the disk, if they are recorded.
    pub record: Rc<RefCell<Option<Vec<Event>>>>,
    pub read_only: bool,
}

/// An operation on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Write { offset: usize, bytes: Vec<u8> },
    Flush,
}

impl Disk {
    pub fn new(bytes: Vec<u8>) -> Disk {
        Disk { bytes: Rc::new(RefCell::new(bytes)), ..Disk::default() }
    }

    /// A disk with old content.
    pub fn used(bytes: usize) -> Disk {
        Disk::new(vec![0xa5; bytes])
    }

    /// This disk, as the file system takes it.
    pub fn any(&self) -> AnyDisk {
        AnyDisk::new(self.clone())
    }

    pub fn save(&self, path: &Path) {
        support::save(path, &self.bytes.borrow());
    }
}

impl BlockSource for Disk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        match self.buffers_left.get() {
            Some(0) => return Err(DiskError::NoMemory),
            left => self.buffers_left.set(left.map(|left| left - 1)),
        }
        Ok(vec![0x5a; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        assert!(offset.is_multiple_of(512) && bytes.is_multiple_of(512), "{offset} {bytes}");
        let (disk, start) = (self.bytes.borrow(), offset as usize);
        let Some(found) = disk.get(start..start + bytes) else { return (Some(buffer), Err(DiskError::Short)) };
        buffer[..bytes].copy_from_slice(found);
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        assert!(offset.is_multiple_of(512) && bytes.is_multiple_of(512), "{offset} {bytes}");
        assert!(!self.read_only, "a disk that cannot be written to is written to");
        if let Some(left) = self.writes_left.get() {
            if left == 0 {
                return (Some(buffer), Err(DiskError::Gone));
            }
            self.writes_left.set(Some(left - 1));
        }
        self.writes.set(self.writes.get() + 1);
        match self.failing_write.get() {
            Some(0) => {
                self.failing_write.set(None);
                return (Some(buffer), Err(DiskError::Failed(5)));
            }
            left => self.failing_write.set(left.map(|left| left - 1)),
        }
        if let Some(record) = &mut *self.record.borrow_mut() {
            record.push(Event::Write { offset: offset as usize, bytes: buffer[..bytes].to_vec() });
        }
        self.written.set(self.written.get() + bytes as u64);
        let (mut disk, start) = (self.bytes.borrow_mut(), offset as usize);
        let Some(target) = disk.get_mut(start..start + bytes) else { return (Some(buffer), Err(DiskError::Short)) };
        target.copy_from_slice(&buffer[..bytes]);
        (Some(buffer), Ok(()))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        if let Some(record) = &mut *self.record.borrow_mut() {
            record.push(Event::Flush);
        }
        if self.writes_left.get() == Some(0) { Err(DiskError::Gone) } else { Ok(()) }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        NOW
    }
}

/// Returns whether Linux's tools are installed; prints a message if not, as the test is then skipped.
pub fn has_tools() -> bool {
    let found =
        ["mke2fs", "e2fsck", "debugfs", "dumpe2fs"].iter().all(|name| Command::new(name).arg("-V").output().is_ok());
    if !found {
        eprintln!("skipped: e2fsprogs is not installed");
    }
    found
}

/// Runs a program; returns its output, and whether it succeeded.
pub fn run(program: &str, arguments: &[&str]) -> (String, bool) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.success())
}

/// Returns the output of `e2fsck -fn`, if it finds faults.
pub fn e2fsck(image: &Path) -> Result<(), String> {
    match run("e2fsck", &["-fn", image.to_str().unwrap()]) {
        (_, true) => Ok(()),
        (text, false) => Err(text),
    }
}
