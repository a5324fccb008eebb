//! An executor for tests, and a disk whose requests share few channels, like a driver's.
//!
//! A request queues for a channel, holds it until its own task sees the reply, and then wakes the next in line. The
//! disk replies as late as possible: when no task is ready, to one request at a time, in an order that the test
//! chooses. If no task is ready and no request is at the disk, that is a deadlock.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use fat::{BlockSource, DiskError};

use crate::disk::TEST_TIME_S;

/// The order in which the disk replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
    Random,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;
type ReadyQueue = Arc<Mutex<VecDeque<u64>>>;

struct TaskWaker {
    task: u64,
    ready: ReadyQueue,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.contains(&self.task) {
            ready.push_back(self.task);
        }
    }
}

/// A request at the disk.
#[derive(Default)]
struct Request {
    is_answered: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

struct Shared {
    tasks: RefCell<BTreeMap<u64, Task>>,
    next_task: Cell<u64>,
    ready: ReadyQueue,
    order: Order,
    random: Cell<u64>,
    idle_channels: Cell<usize>,
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    next_request: Cell<u64>,
    at_disk: RefCell<Vec<Rc<Request>>>,
    bytes: RefCell<Vec<u8>>,
    buffers: Cell<usize>,
    max_buffers: Cell<usize>,
}

/// The executor and its disk; clones share them.
#[derive(Clone)]
pub struct Machine(Rc<Shared>);

impl Machine {
    pub fn new(bytes: Vec<u8>, channels: usize, order: Order, seed: u64) -> Machine {
        Machine(Rc::new(Shared {
            tasks: RefCell::default(),
            next_task: Cell::new(0),
            ready: ReadyQueue::default(),
            order,
            random: Cell::new(seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15)),
            idle_channels: Cell::new(channels),
            waiting: RefCell::default(),
            next_request: Cell::new(0),
            at_disk: RefCell::default(),
            bytes: RefCell::new(bytes),
            buffers: Cell::new(0),
            max_buffers: Cell::new(0),
        }))
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.bytes.borrow().clone()
    }

    /// Peak number of allocated buffers.
    pub fn max_buffers(&self) -> usize {
        self.0.max_buffers.get()
    }

    pub fn start(&self, task: impl Future<Output = ()> + 'static) {
        let number = self.0.next_task.get();
        self.0.next_task.set(number + 1);
        self.0.tasks.borrow_mut().insert(number, Box::pin(task));
        Arc::new(TaskWaker { task: number, ready: Arc::clone(&self.0.ready) }).wake();
    }

    /// Runs until all tasks have ended.
    pub fn run(&self) {
        loop {
            if let Some(number) = self.next_ready() {
                self.poll(number);
            } else if !self.0.at_disk.borrow().is_empty() {
                self.answer_one();
            } else {
                let left = self.0.tasks.borrow().len();
                assert_eq!(left, 0, "deadlock: {left} tasks wait, and the disk has nothing to do");
                return;
            }
        }
    }

    /// Runs a task, and all others, to completion.
    pub fn run_one<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> T {
        let output = Rc::new(RefCell::new(None));
        let place = Rc::clone(&output);
        self.start(async move { *place.borrow_mut() = Some(task.await) });
        self.run();
        output.take().expect("every task has ended")
    }

    fn random(&self, below: usize) -> usize {
        let mut random = self.0.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.0.random.set(random);
        (random % below as u64) as usize
    }

    fn next_ready(&self) -> Option<u64> {
        let mut ready = self.0.ready.lock().unwrap_or_else(PoisonError::into_inner);
        match ready.len() {
            0 => None,
            count => ready.remove(if self.0.order == Order::Random { self.random(count) } else { 0 }),
        }
    }

    fn poll(&self, number: u64) {
        let Some(mut task) = self.0.tasks.borrow_mut().remove(&number) else { return };
        let waker = Waker::from(Arc::new(TaskWaker { task: number, ready: Arc::clone(&self.0.ready) }));
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.0.tasks.borrow_mut().insert(number, task);
        }
    }

    fn answer_one(&self) {
        let count = self.0.at_disk.borrow().len();
        let index = match self.0.order {
            Order::OldestFirst => 0,
            Order::NewestFirst => count - 1,
            Order::Random => self.random(count),
        };
        let request = self.0.at_disk.borrow_mut().remove(index);
        request.is_answered.set(true);
        if let Some(waker) = request.waker.take() {
            waker.wake();
        }
    }

    /// Holds a channel to the disk for the duration of a request.
    async fn request(&self) -> Channel<'_> {
        let place = Place { machine: self, number: self.0.next_request.get() };
        self.0.next_request.set(place.number + 1);
        poll_fn(|context| place.poll(context)).await;
        let channel = Channel(self);
        drop(place);
        let request = Rc::new(Request::default());
        self.0.at_disk.borrow_mut().push(Rc::clone(&request));
        poll_fn(|context| {
            request.waker.replace(Some(context.waker().clone()));
            if request.is_answered.get() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        channel
    }

    fn wake_next(&self) {
        let next = self.0.waiting.borrow().front().map(|(_, waker)| waker.clone());
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// A channel held by a request.
struct Channel<'a>(&'a Machine);

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        self.0.0.idle_channels.set(self.0.0.idle_channels.get() + 1);
        self.0.wake_next();
    }
}

/// A place in the queue for a channel.
struct Place<'a> {
    machine: &'a Machine,
    number: u64,
}

impl Place<'_> {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let shared = &self.machine.0;
        if let Some(left) = shared.idle_channels.get().checked_sub(1) {
            shared.idle_channels.set(left);
            return Poll::Ready(());
        }
        let mut waiting = shared.waiting.borrow_mut();
        match waiting.iter_mut().find(|(number, _)| *number == self.number) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => waiting.push_back((self.number, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.machine.0.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
        if self.machine.0.idle_channels.get() > 0 {
            self.machine.wake_next();
        }
    }
}

/// A buffer that is counted while it is allocated.
pub struct Buffer {
    bytes: Vec<u8>,
    shared: Rc<Shared>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.shared.buffers.set(self.shared.buffers.get() - 1);
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl BlockSource for Machine {
    type Buffer = Buffer;

    fn size_bytes(&self) -> u64 {
        self.0.bytes.borrow().len() as u64
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DiskError> {
        self.0.buffers.set(self.0.buffers.get() + 1);
        self.0.max_buffers.set(self.0.max_buffers.get().max(self.0.buffers.get()));
        Ok(Buffer { bytes: vec![0xA5; bytes], shared: Rc::clone(&self.0) })
    }

    async fn read(&self, offset: u64, mut buffer: Buffer, bytes: usize) -> (Option<Buffer>, Result<(), DiskError>) {
        let _channel = self.request().await;
        let start = offset as usize;
        buffer[..bytes].copy_from_slice(&self.0.bytes.borrow()[start..start + bytes]);
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Buffer, bytes: usize) -> (Option<Buffer>, Result<(), DiskError>) {
        let _channel = self.request().await;
        let start = offset as usize;
        self.0.bytes.borrow_mut()[start..start + bytes].copy_from_slice(&buffer[..bytes]);
        (Some(buffer), Ok(()))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let _channel = self.request().await;
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.start(task);
    }

    fn now_s(&self) -> u32 {
        TEST_TIME_S as u32
    }
}
