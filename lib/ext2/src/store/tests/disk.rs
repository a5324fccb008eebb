//! A disk that remembers what was done to it.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use std::process::Command;

use crate::error::DiskError;
use crate::source::{BlockSource, complete};

/// What was done to a disk.
#[derive(Clone, Debug)]
pub(in crate::store) enum Act {
    Write(u64, Vec<u8>),
    Flush,
    /// Something happened that the test wants to find again.
    Mark(u64),
}

#[derive(Default)]
struct State {
    bytes: RefCell<Vec<u8>>,
    acts: RefCell<Vec<Act>>,
    records: Cell<bool>,
    /// Writes and flushes that are left until all fail.
    until_failure: Cell<Option<u64>>,
    memory_left: Cell<Option<usize>>,
    read_only: Cell<bool>,
}

/// A disk in memory that remembers what was done to it. Clones are the same disk.
#[derive(Clone, Default)]
pub(in crate::store) struct RecordingDisk(Rc<State>);

impl RecordingDisk {
    pub(in crate::store) fn new(bytes: Vec<u8>) -> RecordingDisk {
        let disk = RecordingDisk::default();
        *disk.0.bytes.borrow_mut() = bytes;
        disk
    }

    pub(in crate::store) fn bytes(&self) -> Vec<u8> {
        self.0.bytes.borrow().clone()
    }

    /// Records from now on.
    pub(in crate::store) fn record(&self) {
        self.0.records.set(true);
    }

    pub(in crate::store) fn acts(&self) -> Vec<Act> {
        self.0.acts.borrow().clone()
    }

    pub(in crate::store) fn mark(&self, mark: u64) {
        self.0.acts.borrow_mut().push(Act::Mark(mark));
    }

    pub(in crate::store) fn fail_after(&self, acts: Option<u64>) {
        self.0.until_failure.set(acts);
    }

    pub(in crate::store) fn limit_memory(&self, buffers: Option<usize>) {
        self.0.memory_left.set(buffers);
    }

    pub(in crate::store) fn set_read_only(&self) {
        self.0.read_only.set(true);
    }

    fn act(&self, act: impl FnOnce() -> Act) -> Result<(), DiskError> {
        if let Some(left) = self.0.until_failure.get() {
            if left == 0 {
                return Err(DiskError::Failed(5));
            }
            self.0.until_failure.set(Some(left - 1));
        }
        if self.0.records.get() {
            self.0.acts.borrow_mut().push(act());
        }
        Ok(())
    }
}

impl BlockSource for RecordingDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.0.bytes.borrow().len() as u64
    }

    fn is_read_only(&self) -> bool {
        self.0.read_only.get()
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        match self.0.memory_left.get() {
            Some(0) => return Err(DiskError::NoMemory),
            Some(left) => self.0.memory_left.set(Some(left - 1)),
            None => {}
        }
        Ok(vec![0xa5; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        buffer[..bytes].copy_from_slice(&self.0.bytes.borrow()[offset as usize..][..bytes]);
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        assert!(!self.0.read_only.get(), "a disk that cannot be written was written");
        let result = self.act(|| Act::Write(offset, buffer[..bytes].to_vec()));
        if result.is_ok() {
            self.0.bytes.borrow_mut()[offset as usize..][..bytes].copy_from_slice(&buffer[..bytes]);
        }
        (Some(buffer), result)
    }

    async fn flush(&self) -> Result<(), DiskError> {
        self.act(|| Act::Flush)
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        1_700_000_000
    }
}

/// Runs e2fsck over a copy of an image, where it is installed; gives the image afterwards.
pub(in crate::store) fn fsck(image: &[u8], options: &str, allowed: &[i32]) -> Vec<u8> {
    let Ok(place) = tempfile::NamedTempFile::new() else { return image.to_vec() };
    std::fs::write(place.path(), image).unwrap();
    let Ok(output) = Command::new("e2fsck").arg(options).arg(place.path()).output() else { return image.to_vec() };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let code = output.status.code().unwrap_or(-1);
    if !allowed.contains(&code) {
        std::fs::write("/tmp/ext2-store-failed.image", image).unwrap();
    }
    assert!(allowed.contains(&code), "e2fsck {options} ended with {code}: {text}");
    std::fs::read(place.path()).unwrap()
}
