//! The way to the disk driver: several channels, so that several requests are under way at once.
//!
//! When the driver ends, requests under way are made once more: that opens the disk again, which waits for the
//! driver's restart, so nobody above notices. What the caches hold stays good, because the disk must prove to be
//! the same. A block comes home only when the device is done with it, so a request that is made again cannot be
//! overtaken by itself.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::task::{Poll, Waker};

use contracts::access::AccessError;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use contracts::namespace::{Namespace, PATIENCE_MS};
use contracts::{disk_events, report};
use ext2::{BlockSource, DiskError};
use sip::channel::Closed;
use sip::exheap::ExVec;
use sip::{Deadline, executor};

type Channel = disk::Imp<states::Ready>;
type Events = disk_events::Imp<disk_events::states::Ready>;

/// The most channels that are opened, whatever the parameter says.
const MOST_CHANNELS: usize = 64;
/// Where an ext2 disk says what it is: the superblock.
const MARK_OFFSET: u64 = 1024;
const MARK_BYTES: u32 = 1024;
/// What of the superblock stays as it is while the volume is written to: numbers of inodes and blocks, the magic
/// number, the volume's own number.
const LASTING: [Range<usize>; 3] = [0..8, 56..58, 104..120];
/// How often one request is made: a driver that ends at each is broken.
const ATTEMPTS: u32 = 5;
/// How long to wait before the disk is looked for again.
const AGAIN_AFTER_MS: u64 = 5;
const NS_PER_S: u64 = 1_000_000_000;

/// What tells a disk from another.
#[derive(PartialEq, Eq)]
struct Identity {
    size_bytes: u64,
    read_only: bool,
    /// The bytes that say what is on it; nothing where they cannot be read.
    mark: Option<Vec<u8>>,
}

/// A disk behind its driver.
pub(crate) struct DiskSource {
    shared: Rc<Shared>,
}

struct Shared {
    path: String,
    channels: usize,
    namespace: RefCell<Namespace>,
    identity: Identity,
    idle: RefCell<Vec<Channel>>,
    /// Who waits for a channel, in order; each is here until it has one or gives up.
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    /// Counts those who asked for a channel.
    asked: Cell<u64>,
    /// Counts the times that the disk was opened: a channel of an earlier time is of no use.
    opened: Cell<u64>,
    /// Counts the times that it was looked for in vain.
    missed: Cell<u64>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The driver has ended.
    Lost,
    /// A task opens the disk again.
    Opening,
}

impl DiskSource {
    /// Opens the disk at this path `channels` times.
    pub(crate) async fn open(namespace: Namespace, path: &str, channels: usize) -> Result<DiskSource, AccessError> {
        let namespace = RefCell::new(namespace);
        let channels = channels.clamp(1, MOST_CHANNELS);
        let (idle, events, identity) = open_all(&namespace, path, channels).await?;
        let shared = Rc::new(Shared {
            path: String::from(path),
            channels,
            namespace,
            identity,
            idle: RefCell::new(idle),
            waiting: RefCell::new(VecDeque::new()),
            asked: Cell::new(0),
            opened: Cell::new(1),
            missed: Cell::new(0),
            state: Cell::new(State::Open),
        });
        Shared::watch(&shared, events);
        Ok(DiskSource { shared })
    }
}

impl Shared {
    /// Starts a task that notices when the driver ends, and ends the process when the medium changes: what the
    /// caches hold is worth nothing then.
    fn watch(shared: &Rc<Shared>, events: Events) {
        let (shared, opened) = (Rc::clone(shared), shared.opened.get());
        drop(executor::spawn(async move {
            match events.receive_async().await {
                disk_events::ImpReady::Changed { .. } => other_disk(&shared.path),
                disk_events::ImpReady::ChannelClosed(_) => shared.lose(opened),
            }
        }));
    }

    /// A channel that nobody uses, and when it was opened; `None` if the driver has ended and does not come back.
    async fn acquire(self: &Rc<Shared>) -> Option<(Channel, u64)> {
        let place = Place::new(self);
        let missed = self.missed.get();
        loop {
            if self.missed.get() != missed {
                return None;
            }
            let found = poll_fn(|context| match self.state.get() {
                State::Lost => {
                    self.state.set(State::Opening);
                    Poll::Ready(None)
                }
                State::Open if !self.idle.borrow().is_empty() => Poll::Ready(self.idle.borrow_mut().pop()),
                _ => {
                    place.wait(context.waker());
                    Poll::Pending
                }
            })
            .await;
            match found {
                Some(channel) => return Some((channel, self.opened.get())),
                None => {
                    let opened = self.open_again().await;
                    self.state.set(if opened { State::Open } else { State::Lost });
                    self.missed.set(self.missed.get() + u64::from(!opened));
                    self.wake_all();
                }
            }
        }
    }

    /// Opens the disk of a driver that was started again. Whether it came back.
    async fn open_again(self: &Rc<Shared>) -> bool {
        let Ok((idle, events, identity)) = open_all(&self.namespace, &self.path, self.channels).await else {
            return false;
        };
        if identity != self.identity {
            other_disk(&self.path);
        }
        *self.idle.borrow_mut() = idle;
        self.opened.set(self.opened.get() + 1);
        Shared::watch(self, events);
        true
    }

    fn release(&self, channel: Channel, opened: u64) {
        if opened == self.opened.get() && self.state.get() == State::Open {
            self.idle.borrow_mut().push(channel);
            self.wake_next();
        }
    }

    /// The driver of that time has ended: its channels are of no use any more, and somebody has to open the disk
    /// again. Only the first who notices is heard.
    fn lose(&self, opened: u64) {
        if opened != self.opened.get() || self.state.get() != State::Open {
            return;
        }
        self.state.set(State::Lost);
        self.idle.borrow_mut().clear();
        self.wake_all();
    }

    fn wake_next(&self) {
        let next = self.waiting.borrow().front().map(|(_, waker)| waker.clone());
        if let Some(next) = next {
            next.wake();
        }
    }

    fn wake_all(&self) {
        let waiting: Vec<Waker> = self.waiting.borrow().iter().map(|(_, waker)| waker.clone()).collect();
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A place among those who wait for a channel. One task may have several. Whoever leaves wakes the next if there is
/// a channel for it: several may have come back since the first in the row was woken.
struct Place<'a> {
    shared: &'a Shared,
    number: u64,
}

impl<'a> Place<'a> {
    fn new(shared: &'a Shared) -> Place<'a> {
        let number = shared.asked.get();
        shared.asked.set(number + 1);
        Place { shared, number }
    }

    fn wait(&self, waker: &Waker) {
        let mut waiting = self.shared.waiting.borrow_mut();
        match waiting.iter_mut().find(|(number, _)| *number == self.number) {
            Some((_, own)) => own.clone_from(waker),
            None => waiting.push_back((self.number, waker.clone())),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
        if !self.shared.idle.borrow().is_empty() {
            self.shared.wake_next();
        }
    }
}

/// Ends the process, so that the disk is mounted anew.
fn other_disk(path: &str) -> ! {
    report::error(format_args!("{path}: there is another disk now; it is mounted again"));
    sip::process::exit(1)
}

/// What came of a request on one channel.
enum Answer {
    /// The driver answered.
    Done(Option<ExVec<u8>>, Result<(), DiskError>),
    /// The driver ended; the block came home.
    Again(Option<ExVec<u8>>),
}

impl DiskSource {
    /// Moves bytes between the disk and a block, of as many drivers as it takes.
    async fn transfer(&self, direction: Direction, offset: u64, block: ExVec<u8>, bytes: usize) -> Transferred {
        let Ok(count) = u32::try_from(bytes) else { return (Some(block), Err(DiskError::NoMemory)) };
        let mut block = block;
        for _ in 0..ATTEMPTS {
            let Some((channel, opened)) = self.shared.acquire().await else { break };
            let answer = match direction {
                Direction::Read => read(&self.shared, channel, opened, block, offset, count).await,
                Direction::Write => write(&self.shared, channel, opened, block, offset, count).await,
            };
            block = match answer {
                Answer::Done(block, result) => return (block, result),
                Answer::Again(Some(block)) => block,
                Answer::Again(None) => return (None, Err(DiskError::Gone)),
            };
        }
        (Some(block), Err(DiskError::Gone))
    }
}

async fn read(shared: &Shared, channel: Channel, opened: u64, block: ExVec<u8>, offset: u64, count: u32) -> Answer {
    match channel.read(block, offset, count).receive_async().await {
        disk::ImpReadyAfterRead::ReadDone { data, next } => {
            shared.release(next, opened);
            Answer::Done(Some(data), Ok(()))
        }
        disk::ImpReadyAfterRead::ReadFailed { data, error, next } => {
            shared.release(next, opened);
            Answer::Done(Some(data), Err(failed(error)))
        }
        disk::ImpReadyAfterRead::ChannelClosed(closed) => {
            shared.lose(opened);
            Answer::Again(home(closed))
        }
    }
}

async fn write(shared: &Shared, channel: Channel, opened: u64, block: ExVec<u8>, offset: u64, count: u32) -> Answer {
    match channel.write(block, offset, count).receive_async().await {
        disk::ImpReadyAfterWrite::WriteDone { data, next } => {
            shared.release(next, opened);
            Answer::Done(Some(data), Ok(()))
        }
        disk::ImpReadyAfterWrite::WriteFailed { data, error, next } => {
            shared.release(next, opened);
            Answer::Done(Some(data), Err(failed(error)))
        }
        disk::ImpReadyAfterWrite::ChannelClosed(closed) => {
            shared.lose(opened);
            Answer::Again(home(closed))
        }
    }
}

/// The block that was lent to the driver that ended.
fn home(mut closed: Closed) -> Option<ExVec<u8>> {
    closed.take_home().into_iter().find_map(|block| block.into_vec::<u8>().ok())
}

fn failed(error: disk::DiskError) -> DiskError {
    match error {
        disk::DiskError::ReadOnly => DiskError::ReadOnly,
        disk::DiskError::Exhausted => DiskError::NoMemory,
        other => DiskError::Failed(other as u32),
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

type Transferred = (Option<ExVec<u8>>, Result<(), DiskError>);

impl BlockSource for DiskSource {
    type Buffer = ExVec<u8>;

    fn size_bytes(&self) -> u64 {
        self.shared.identity.size_bytes
    }

    fn is_read_only(&self) -> bool {
        self.shared.identity.read_only
    }

    fn allocate(&self, bytes: usize) -> Result<ExVec<u8>, DiskError> {
        ExVec::new(bytes).map_err(|_| DiskError::NoMemory)
    }

    async fn read(&self, offset: u64, buffer: ExVec<u8>, bytes: usize) -> Transferred {
        self.transfer(Direction::Read, offset, buffer, bytes).await
    }

    async fn write(&self, offset: u64, buffer: ExVec<u8>, bytes: usize) -> Transferred {
        self.transfer(Direction::Write, offset, buffer, bytes).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            let Some((channel, opened)) = self.shared.acquire().await else { break };
            match channel.flush().receive_async().await {
                disk::ImpReadyAfterFlush::Flushed { next } => {
                    self.shared.release(next, opened);
                    return Ok(());
                }
                disk::ImpReadyAfterFlush::FlushFailed { error, next } => {
                    self.shared.release(next, opened);
                    return Err(failed(error));
                }
                disk::ImpReadyAfterFlush::ChannelClosed(_) => self.shared.lose(opened),
            }
        }
        Err(DiskError::Gone)
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        drop(executor::spawn(task));
    }

    fn now_s(&self) -> u32 {
        // Times on the volume end in 2106.
        u32::try_from(sip::time::wall() / NS_PER_S).unwrap_or(u32::MAX)
    }
}

/// Opens the disk `channels` times, asks to be told of its end, and looks at what it is. Waits for a driver that
/// is being started again.
async fn open_all(
    namespace: &RefCell<Namespace>,
    path: &str,
    channels: usize,
) -> Result<(Vec<Channel>, Events, Identity), AccessError> {
    let deadline = Deadline::after_ms(PATIENCE_MS);
    loop {
        match try_open_all(namespace, path, channels).await {
            Err(error) if error.may_pass() && !deadline.has_passed() => {
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
            }
            other => return other,
        }
    }
}

async fn try_open_all(
    namespace: &RefCell<Namespace>,
    path: &str,
    channels: usize,
) -> Result<(Vec<Channel>, Events, Identity), AccessError> {
    let first = open_channel(namespace, path).await?;
    let (first, size_bytes, read_only) = match first.get_info().receive_async().await {
        disk::ImpReadyAfterGetInfo::Info { size_bytes, read_only, next, .. } => (next, size_bytes, read_only),
        disk::ImpReadyAfterGetInfo::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    let (events, exporter) = disk_events::new_channel()?;
    let first = match first.notify(exporter).receive_async().await {
        disk::ImpReadyAfterNotify::Notifying { next } => next,
        disk::ImpReadyAfterNotify::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    let (first, mark) = read_mark(first).await?;
    let mut idle = alloc::vec![first];
    while idle.len() < channels {
        idle.push(open_channel(namespace, path).await?);
    }
    Ok((idle, events, Identity { size_bytes, read_only, mark }))
}

async fn read_mark(channel: Channel) -> Result<(Channel, Option<Vec<u8>>), AccessError> {
    let block = ExVec::<u8>::new(MARK_BYTES as usize)?;
    match channel.read(block, MARK_OFFSET, MARK_BYTES).receive_async().await {
        disk::ImpReadyAfterRead::ReadDone { data, next } => {
            let lasting = LASTING.iter().flat_map(|range| data.get(range.clone()).unwrap_or(&[])).copied();
            Ok((next, Some(lasting.collect())))
        }
        // What is wrong with the disk shows when it is mounted.
        disk::ImpReadyAfterRead::ReadFailed { next, .. } => Ok((next, None)),
        disk::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

async fn open_channel(namespace: &RefCell<Namespace>, path: &str) -> Result<Channel, AccessError> {
    let (importer, exporter) = disk::new_channel()?;
    namespace.borrow_mut().bind(path, exporter)?;
    match importer.receive_async().await {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}
