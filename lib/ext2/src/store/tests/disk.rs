//! A disk that records its operations.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::process::Command;

use crate::error::DiskError;
use crate::source::{BlockSource, complete};

/// An operation of a disk.
#[derive(Clone, Debug)]
pub(in crate::store) enum Act {
    Write(u64, Vec<u8>),
    /// Makes the first so many acts durable: those written before it started.
    Flush(usize),
    /// A mark set by the test.
    Mark(u64),
}

#[derive(Default)]
struct State {
    bytes: RefCell<Vec<u8>>,
    acts: RefCell<Vec<Act>>,
    records: Cell<bool>,
    /// Writes and flushes left until all fail.
    until_failure: Cell<Option<u64>>,
    fails_once: Cell<bool>,
    memory_left: Cell<Option<usize>>,
    /// With a seed, operations are delayed, and spawned tasks wait until they are polled.
    slowness: Cell<Option<u64>>,
    tasks: RefCell<Vec<Pin<Box<dyn Future<Output = ()>>>>>,
    read_only: Cell<bool>,
}

/// An in-memory disk that records its operations. Clones are the same disk.
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

    /// Starts recording.
    pub(in crate::store) fn record(&self) {
        self.0.records.set(true);
    }

    pub(in crate::store) fn acts(&self) -> Vec<Act> {
        self.0.acts.borrow().clone()
    }

    pub(in crate::store) fn mark(&self, mark: u64) {
        self.0.acts.borrow_mut().push(Act::Mark(mark));
    }

    /// Makes every write and flush after this many fail.
    pub(in crate::store) fn fail_after(&self, acts: Option<u64>) {
        self.0.fails_once.set(false);
        self.0.until_failure.set(acts);
    }

    /// Makes one write or flush after this many fail.
    pub(in crate::store) fn fail_once_after(&self, acts: u64) {
        self.0.fails_once.set(true);
        self.0.until_failure.set(Some(acts));
    }

    /// Returns whether a failure is still pending.
    pub(in crate::store) fn will_fail(&self) -> bool {
        self.0.until_failure.get().is_some()
    }

    /// Delays all further operations, by random times from the seed.
    pub(in crate::store) fn slow_down(&self, seed: u64) {
        self.0.slowness.set(Some(seed));
    }

    async fn take_a_while(&self) {
        let Some(seed) = self.0.slowness.get() else { return };
        let seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.slowness.set(Some(seed));
        let mut left = (seed >> 33) % 12;
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Drives a future and the spawned tasks.
    pub(in crate::store) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10_000_000 {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            self.poll_tasks();
        }
        panic!("this takes no end");
    }

    fn poll_tasks(&self) {
        let mut tasks = core::mem::take(&mut *self.0.tasks.borrow_mut());
        let mut context = Context::from_waker(Waker::noop());
        tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        self.0.tasks.borrow_mut().append(&mut tasks);
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
                if self.0.fails_once.get() {
                    self.0.until_failure.set(None);
                }
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
        self.take_a_while().await;
        buffer[..bytes].copy_from_slice(&self.0.bytes.borrow()[offset as usize..][..bytes]);
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        assert!(!self.0.read_only.get(), "a disk that cannot be written was written");
        self.take_a_while().await;
        let result = self.act(|| Act::Write(offset, buffer[..bytes].to_vec()));
        if result.is_ok() {
            self.0.bytes.borrow_mut()[offset as usize..][..bytes].copy_from_slice(&buffer[..bytes]);
        }
        (Some(buffer), result)
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let before = self.0.acts.borrow().len();
        self.take_a_while().await;
        self.act(|| Act::Flush(before))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        if self.0.slowness.get().is_some() {
            self.0.tasks.borrow_mut().push(Box::pin(task));
        } else {
            complete(task);
        }
    }

    fn now_s(&self) -> u32 {
        1_700_000_000
    }
}

/// Runs e2fsck on a copy of an image, if it is installed; returns the resulting image.
pub(in crate::store) fn fsck(image: &[u8], options: &str, allowed: &[i32]) -> Vec<u8> {
    let Ok(place) = tempfile::NamedTempFile::new() else { return image.to_vec() };
    std::fs::write(place.path(), image).unwrap();
    let Ok(output) = Command::new("e2fsck").arg(options).arg(place.path()).output() else { return image.to_vec() };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let code = output.status.code().unwrap_or(-1);
    assert!(allowed.contains(&code), "e2fsck {options} ended with {code}: {text}");
    std::fs::read(place.path()).unwrap()
}
