//! An instrumented in-memory disk: records writes, delays and reorders completions, and fails chosen requests.
//!
//! The disk is also the executor: a task is polled only after a wake-up, and a pending request is completed only when
//! no task can make progress. So a missing wake-up is detected, as it would be in a system.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use ext2::{BlockSource, DiskError};

use crate::adversary::image::Image;
use crate::adversary::noise::Random;
use crate::adversary::recording::{Event, Recording, Write};

/// Maximum polls of one operation: far more than any needs.
const MAX_POLLS: u64 = 20_000_000;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Read,
    Write,
    Flush,
    Allocate,
}

/// An injected failure.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub request: Request,
    /// Number of such requests that succeed before.
    pub after: u64,
    /// Whether all later requests of this kind fail too.
    pub lasting: bool,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Flag {
    fn new() -> Arc<Flag> {
        Arc::new(Flag(AtomicBool::new(true)))
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Flag>,
}

struct Waiting {
    number: u64,
    waker: Waker,
}

#[derive(Default)]
struct State {
    image: RefCell<Image>,
    recording: RefCell<Option<Recording>>,
    /// Completions are delayed if there is a random source.
    late: RefCell<Option<Random>>,
    waiting: RefCell<Vec<Waiting>>,
    answered: RefCell<Vec<u64>>,
    requests: Cell<u64>,
    tasks: RefCell<VecDeque<Task>>,
    fault: Cell<Option<Fault>>,
    struck: Cell<u64>,
    read_only: Cell<bool>,
    now_s: Cell<u32>,
}

/// The disk. Clones are the same disk.
#[derive(Clone, Default)]
pub struct TestDisk(Rc<State>);

impl TestDisk {
    pub fn new(image: Image) -> TestDisk {
        let disk = TestDisk::default();
        *disk.0.image.borrow_mut() = image;
        disk.0.now_s.set(1_000_000_000);
        disk
    }

    /// Returns its content, as a reader would see it now.
    pub fn image(&self) -> Image {
        self.0.image.borrow().clone()
    }

    pub fn set_read_only(&self) {
        self.0.read_only.set(true);
    }

    /// Delays and reorders completions from now on, based on the seed.
    pub fn answer_late(&self, seed: u64) {
        *self.0.late.borrow_mut() = Some(Random::new(seed));
    }

    /// Starts recording writes.
    pub fn record(&self) {
        let image = self.image();
        *self.0.recording.borrow_mut() = Some(Recording::new(image));
    }

    /// Adds a mark to the recording and returns its position.
    pub fn mark(&self) -> usize {
        self.0.recording.borrow().as_ref().map_or(0, Recording::len)
    }

    pub fn take_recording(&self) -> Recording {
        self.0.recording.borrow_mut().take().expect("a recording was begun")
    }

    pub fn set_fault(&self, fault: Option<Fault>) {
        self.0.fault.set(fault);
        self.0.struck.set(0);
    }

    /// Returns the number of injected failures.
    pub fn struck(&self) -> u64 {
        self.0.struck.get()
    }

    /// Advances the time and returns it, in seconds since 1970.
    pub fn pass_a_second(&self) -> u32 {
        self.0.now_s.set(self.0.now_s.get() + 1);
        self.0.now_s.get()
    }

    /// Runs an operation to completion, and spawned tasks as far as they get by then.
    #[track_caller]
    pub fn run<T>(&self, operation: impl Future<Output = T>) -> T {
        let mut operation = pin!(operation);
        let woken = Flag::new();
        let waker = Waker::from(Arc::clone(&woken));
        let mut polls = 0_u64;
        loop {
            let mut moved = woken.take();
            if moved && let Poll::Ready(value) = operation.as_mut().poll(&mut Context::from_waker(&waker)) {
                return value;
            }
            moved |= self.poll_tasks();
            assert!(moved || self.answer_one(), "a deadlock: nobody goes on, and no request is under way");
            polls += 1;
            assert!(polls < MAX_POLLS, "an operation without end");
        }
    }

    /// Runs all spawned tasks to completion.
    #[track_caller]
    pub fn settle(&self) {
        while !self.0.tasks.borrow().is_empty() {
            let moved = self.poll_tasks();
            assert!(moved || self.answer_one(), "a deadlock of spawned tasks: no request is under way");
        }
    }

    /// Drops spawned tasks, as after the end of a machine.
    pub fn forget_tasks(&self) {
        let tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
        drop(tasks);
    }

    fn poll_tasks(&self) -> bool {
        let mut moved = false;
        let count = self.0.tasks.borrow().len();
        for _ in 0..count {
            let Some(mut task) = self.0.tasks.borrow_mut().pop_front() else { break };
            if task.woken.take() {
                moved = true;
                let waker = Waker::from(Arc::clone(&task.woken));
                if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    continue;
                }
            }
            self.0.tasks.borrow_mut().push_back(task);
        }
        moved
    }

    fn answer_one(&self) -> bool {
        let mut waiting = self.0.waiting.borrow_mut();
        let mut late = self.0.late.borrow_mut();
        let Some(random) = late.as_mut().filter(|_| !waiting.is_empty()) else { return false };
        let chosen = random.below(waiting.len() as u64) as usize;
        let chosen = waiting.swap_remove(chosen);
        self.0.answered.borrow_mut().push(chosen.number);
        chosen.waker.wake();
        true
    }

    /// Waits for the completion of a request.
    async fn wait(&self) {
        if self.0.late.borrow().is_none() {
            return;
        }
        let number = self.0.requests.get();
        self.0.requests.set(number + 1);
        poll_fn(|context| {
            let mut answered = self.0.answered.borrow_mut();
            if let Some(place) = answered.iter().position(|found| *found == number) {
                answered.swap_remove(place);
                return Poll::Ready(());
            }
            let mut waiting = self.0.waiting.borrow_mut();
            waiting.retain(|request| request.number != number);
            waiting.push(Waiting { number, waker: context.waker().clone() });
            Poll::Pending
        })
        .await;
    }

    fn fails(&self, request: Request) -> bool {
        let Some(fault) = self.0.fault.get().filter(|fault| fault.request == request) else { return false };
        if fault.after > 0 {
            self.0.fault.set(Some(Fault { after: fault.after - 1, ..fault }));
            return false;
        }
        if !fault.lasting && self.0.struck.get() > 0 {
            return false;
        }
        self.0.struck.set(self.0.struck.get() + 1);
        true
    }

    fn note(&self, event: Event) {
        if let Some(recording) = self.0.recording.borrow_mut().as_mut() {
            recording.push(event);
        }
    }

    #[track_caller]
    fn check(&self, offset: u64, buffer: &[u8], bytes: usize) {
        assert!(bytes > 0 && bytes <= buffer.len(), "{bytes} bytes of a buffer of {}", buffer.len());
        assert!(offset.is_multiple_of(512) && bytes.is_multiple_of(512), "{bytes} bytes at {offset}: parts of sectors");
        let size = self.size_bytes();
        assert!(offset.checked_add(bytes as u64).is_some_and(|end| end <= size), "{bytes} bytes at {offset} of {size}");
    }
}

impl BlockSource for TestDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.0.image.borrow().bytes()
    }

    fn is_read_only(&self) -> bool {
        self.0.read_only.get()
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        // Reused memory has arbitrary content.
        if self.fails(Request::Allocate) { Err(DiskError::NoMemory) } else { Ok(vec![0xa5; bytes]) }
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.check(offset, &buffer, bytes);
        let fails = self.fails(Request::Read);
        self.wait().await;
        if fails {
            buffer[..bytes].fill(0x5a);
            return (Some(buffer), Err(DiskError::Failed(5)));
        }
        self.0.image.borrow().read(offset, &mut buffer[..bytes]);
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.check(offset, &buffer, bytes);
        assert!(!self.is_read_only(), "a write to a disk that is only read");
        let fails = self.fails(Request::Write);
        let recorded = self
            .0
            .recording
            .borrow_mut()
            .as_mut()
            .map(|recording| recording.begin_write(Write { offset, bytes: Rc::from(&buffer[..bytes]) }));
        self.wait().await;
        // A failed write may be partially done.
        let written = if fails { bytes / 1024 * 512 } else { bytes };
        self.0.image.borrow_mut().write(offset, &buffer[..written]);
        if fails {
            return (Some(buffer), Err(DiskError::Failed(6)));
        }
        if let Some(number) = recorded {
            self.note(Event::WriteDone(number));
        }
        (Some(buffer), Ok(()))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let fails = self.fails(Request::Flush);
        let begun = self.mark();
        self.note(Event::FlushBegun);
        self.wait().await;
        if fails {
            return Err(DiskError::Failed(7));
        }
        self.note(Event::FlushDone(begun));
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.tasks.borrow_mut().push_back(Task { future: Box::pin(task), woken: Flag::new() });
    }

    fn now_s(&self) -> u32 {
        self.0.now_s.get()
    }
}
