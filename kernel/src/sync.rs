//! Mutexes, events, wait sets and debug sinks: objects of one SIP, never seen by another but for the text of a
//! [debug sink](debug_sink).

pub mod debug_sink;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use abi::Status;

use debug_sink::Ring;

use crate::handle::{self, Kind};
use crate::lock::{AtomicRef, SpinGuard, SpinLock};
use crate::preempt;
use crate::process::{Process, ProcessRef, SinkRef, Syncs};
use crate::shortage::{Scarce, no_slot};
use crate::slab::{Charged, Links, Listed, Slab, Slot};
use crate::thread::ThreadRef;
use crate::wait::{self, Ticket, Waiters, Woken};

/// All of them.
pub static SYNCS: Slab<Sync> = Slab::new();

/// Entries of a wait set at most: what it has room for is copied when it grows.
const MEMBERS: usize = 1 << 16;
/// Entries that a wait set has room for at first.
const MIN_READY: usize = 4;
const ENTRY_BYTES: usize = size_of::<(u64, u64)>();

/// One object.
#[derive(Default)]
pub struct Sync {
    /// The SIP it belongs to.
    pub process: AtomicRef<Slot<Process>>,
    /// In the list of its SIP.
    pub links: Links,
    inner: SpinLock<Inner>,
}

/// A reference to one, as a handle names it. Its slot may be another SIP's object by the time it is
/// used, if another thread has closed it, so every use checks the generation with the lock held.
#[derive(Clone, Copy)]
pub struct SyncRef {
    /// The slot.
    pub slot: &'static Slot<Sync>,
    /// Generation that the handle carried.
    pub generation: u32,
}

impl SyncRef {
    #[inline(always)]
    fn lock(self) -> Result<SpinGuard<'static, Inner>, Status> {
        let inner = self.slot.inner.lock();
        if self.slot.generation() == self.generation { Ok(inner) } else { Err(Status::BadHandle) }
    }
}

#[derive(Default)]
struct Inner {
    state: State,
    waiters: Waiters,
}

#[derive(Default)]
enum State {
    #[default]
    Closed,
    Mutex {
        /// By handle: a thread that ends with the mutex leaves it held, and another may have its place.
        holder: Option<u64>,
    },
    Event {
        manual: bool,
        set: bool,
    },
    /// Endpoints that are ready, by key and handle; how many are in the set; whether something else happened.
    WaitSet {
        ready: VecDeque<(u64, u64)>,
        members: usize,
        alerted: bool,
    },
    DebugSink(Box<Ring>),
}

/// What kind of object to make.
pub enum Make {
    /// A free mutex.
    Mutex,
    /// An event that stays set.
    ManualEvent,
    /// An event that one waiter takes.
    AutoEvent,
    /// An empty wait set.
    WaitSet,
    /// A debug sink that has been charged.
    DebugSink(Box<Ring>),
}

impl Listed for Syncs {
    fn links(index: u32) -> Option<&'static Links> {
        SYNCS.slot(index).map(|slot| &slot.links)
    }
}

impl Charged for Syncs {
    /// But for the entries of a wait set and the text of a debug sink.
    const RECORD_BYTES: usize = size_of::<Slot<Sync>>();
}

/// Creates an object of the caller's.
pub fn create(caller: ProcessRef, make: Make) -> Result<u64, Status> {
    caller.may_have_another_handle()?;
    caller.may_grow()?;
    let sync = SYNCS.allocate().map_err(|full| no_slot(full, Scarce::Syncs))?;
    *sync.inner.lock() = Inner {
        state: match make {
            Make::Mutex => State::Mutex { holder: None },
            Make::ManualEvent => State::Event { manual: true, set: false },
            Make::AutoEvent => State::Event { manual: false, set: false },
            Make::WaitSet => State::WaitSet { ready: VecDeque::new(), members: 0, alerted: false },
            Make::DebugSink(ring) => State::DebugSink(ring),
        },
        waiters: Waiters::default(),
    };
    sync.process.set(Some(caller));
    caller.syncs.lock().insert(sync.index());
    Ok(handle::encode(Kind::Sync, sync.index(), sync.generation()))
}

/// Kinds of objects, as the functions that close one mean it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// A mutex.
    Mutex,
    /// An event of either sort.
    Event,
    /// A wait set.
    WaitSet,
    /// A debug sink.
    DebugSink,
}

/// Closes an object of this kind without holders and waiters.
pub fn close(caller: ProcessRef, sync: SyncRef, kind: SyncKind) -> Result<(), Status> {
    let mut inner = sync.lock()?;
    let found = match inner.state {
        State::Closed => return Err(Status::BadHandle),
        State::Mutex { .. } => SyncKind::Mutex,
        State::Event { .. } => SyncKind::Event,
        State::WaitSet { .. } => SyncKind::WaitSet,
        State::DebugSink(_) => SyncKind::DebugSink,
    };
    if found != kind {
        return Err(Status::BadHandle);
    }
    let held = matches!(inner.state, State::Mutex { holder: Some(_) });
    if held || !inner.waiters.is_empty() {
        return Err(Status::Busy);
    }
    match core::mem::take(&mut inner.state) {
        State::WaitSet { ready, .. } => caller.refund_kernel(ready.capacity() * ENTRY_BYTES),
        State::DebugSink(_) => caller.refund_kernel(debug_sink::CHARGED_BYTES),
        State::Closed | State::Mutex { .. } | State::Event { .. } => {}
    }
    drop(inner);
    caller.syncs.lock().remove(sync.slot.index());
    release(sync.slot);
    Ok(())
}

/// Frees an object that is in no list, of a SIP that has no threads left or gave it up.
pub fn release(sync: &'static Slot<Sync>) {
    *sync.inner.lock() = Inner::default();
    sync.process.set(None);
    SYNCS.release(sync);
}

/// Takes a mutex, or fails if that would wait.
pub fn try_acquire(sync: SyncRef, thread: ThreadRef) -> Result<(), Status> {
    match &mut sync.lock()?.state {
        State::Mutex { holder: free @ None } => {
            *free = Some(thread.handle());
            Ok(())
        }
        State::Mutex { holder: Some(holder) } if *holder == thread.handle() => Err(Status::Deadlock),
        State::Mutex { .. } => Err(Status::WouldBlock),
        _ => Err(Status::BadHandle),
    }
}

/// Takes a mutex, in order of arrival.
pub fn acquire(sync: SyncRef, thread: ThreadRef, deadline: u64) -> Result<(), Status> {
    match try_acquire(sync, thread) {
        Err(Status::WouldBlock) => {}
        answer => return answer,
    }
    let ticket = wait::begin();
    {
        let mut inner = match sync.lock() {
            Ok(inner) => inner,
            Err(status) => {
                wait::drop_wait(ticket);
                return Err(status);
            }
        };
        if let State::Mutex { holder: free @ None } = &mut inner.state {
            *free = Some(thread.handle());
            drop(inner);
            wait::drop_wait(ticket);
            return Ok(());
        }
        inner.waiters.add(ticket);
    }
    match wait::block(ticket, deadline) {
        Woken::Signalled => Ok(()),
        Woken::Killed => Err(Status::Closed),
        Woken::TimedOut => {
            sync.lock()?.waiters.remove(thread);
            Err(Status::TimedOut)
        }
    }
}

/// Releases a mutex; the first that waits has it then.
pub fn release_mutex(sync: SyncRef, thread: ThreadRef) -> Result<(), Status> {
    let mut inner = sync.lock()?;
    match inner.state {
        State::Mutex { holder: Some(holder) } if holder == thread.handle() => {
            let next = inner.waiters.wake_one();
            inner.state = State::Mutex { holder: next.map(|next| next.handle()) };
            Ok(())
        }
        State::Mutex { .. } => Err(Status::WrongState),
        _ => Err(Status::BadHandle),
    }
}

/// Sets an event.
pub fn set_event(sync: SyncRef) -> Result<(), Status> {
    let mut inner = sync.lock()?;
    let State::Event { manual, set } = &mut inner.state else { return Err(Status::BadHandle) };
    *set = true;
    if *manual {
        inner.waiters.wake_all();
    } else {
        inner.waiters.wake_one();
    }
    Ok(())
}

/// Resets an event.
pub fn reset_event(sync: SyncRef) -> Result<(), Status> {
    match &mut sync.lock()?.state {
        State::Event { set, .. } => {
            *set = false;
            Ok(())
        }
        _ => Err(Status::BadHandle),
    }
}

/// Whether an event is set (an auto event is then taken) or a wait set or debug sink has something.
fn poll_inner(inner: &mut Inner) -> Result<bool, Status> {
    match &mut inner.state {
        State::Event { manual, set } => {
            let was = *set;
            *set &= *manual;
            Ok(was)
        }
        State::WaitSet { ready, alerted, .. } => Ok(*alerted || !ready.is_empty()),
        State::DebugSink(ring) => Ok(!ring.is_empty()),
        _ => Err(Status::BadHandle),
    }
}

/// Leaves a ticket, unless the object is ready: true then, and an auto event is taken.
pub fn wait_at(sync: SyncRef, ticket: Ticket) -> Result<bool, Status> {
    let mut inner = sync.lock()?;
    if poll_inner(&mut inner)? {
        return Ok(true);
    }
    // What is ready stays so until it is taken.
    ticket.thread.handed.refuse();
    inner.waiters.add(ticket);
    Ok(false)
}

/// Takes a thread's ticket back, and passes a wake-up on that it did not use.
pub fn stop_waiting_at(sync: SyncRef, thread: ThreadRef) {
    let Ok(mut inner) = sync.lock() else { return };
    inner.waiters.remove(thread);
    let unused = match &inner.state {
        State::Event { set, .. } => *set,
        State::WaitSet { ready, alerted, .. } => *alerted || !ready.is_empty(),
        State::DebugSink(ring) => !ring.is_empty(),
        _ => false,
    };
    if unused {
        inner.waiters.wake_one();
    }
}

/// Waits for an event to be set.
pub fn wait_event(sync: SyncRef, thread: ThreadRef, deadline: u64) -> Result<(), Status> {
    let taken = wait_until(sync, thread, deadline, |state| match state {
        State::Event { manual, set } => {
            let was = *set;
            *set &= *manual;
            Ok(was.then_some(0))
        }
        _ => Err(Status::BadHandle),
    });
    taken.map(|_| ())
}

/// The key that reports an alert.
const ALERT: u64 = u64::MAX;

/// Waits for an endpoint of the set; its key. [`ALERT`] where something else happened.
pub fn wait_set(sync: SyncRef, thread: ThreadRef, deadline: u64) -> Result<u64, Status> {
    wait_until(sync, thread, deadline, |state| match state {
        State::WaitSet { ready, members, alerted } => Ok(match ready.pop_front() {
            Some((key, _)) => {
                *members = members.saturating_sub(1);
                Some(key)
            }
            None if *alerted => {
                *alerted = false;
                Some(ALERT)
            }
            None => None,
        }),
        _ => Err(Status::BadHandle),
    })
}

/// Has one wait for the set end with [`ALERT`].
pub fn alert(sync: SyncRef) -> Result<(), Status> {
    let mut inner = sync.lock()?;
    let State::WaitSet { alerted, .. } = &mut inner.state else { return Err(Status::BadHandle) };
    if !core::mem::replace(alerted, true) {
        inner.waiters.wake_one();
    }
    Ok(())
}

/// Waits until `take` succeeds, or a waker hands the result over.
#[inline(always)]
fn wait_until(
    sync: SyncRef,
    thread: ThreadRef,
    deadline: u64,
    take: impl Fn(&mut State) -> Result<Option<u64>, Status>,
) -> Result<u64, Status> {
    loop {
        let mut inner = sync.lock()?;
        if let Some(taken) = take(&mut inner.state)? {
            return Ok(taken);
        }
        // Begun with the lock held: the next to make it ready sees the ticket, or has done so already.
        let ticket = wait::begin();
        thread.handed.want();
        inner.waiters.add(ticket);
        drop(inner);
        match (wait::block(ticket, deadline), thread.handed.take()) {
            (Woken::Signalled, Some(handed)) => return Ok(handed),
            (Woken::Signalled, None) => {}
            (Woken::Killed, _) => return Err(Status::Closed),
            (Woken::TimedOut, _) => {
                stop_waiting_at(sync, thread);
                return Err(Status::TimedOut);
            }
        }
    }
}

/// Makes room in a wait set for one more endpoint, so that no send needs memory.
pub fn reserve(sync: SyncRef, caller: ProcessRef) -> Result<(), Status> {
    let own = sync.slot.process.get().is_some_and(|owner| core::ptr::eq(owner, caller));
    match &mut sync.lock()?.state {
        State::WaitSet { ready, members, .. } if own => {
            // A ready endpoint may be added repeatedly, and is reported each time.
            if *members >= caller.handle_quota().min(MEMBERS) {
                return Err(Status::QuotaExceeded);
            }
            // Not more are ready than are members.
            if ready.capacity() <= *members {
                grow(ready, caller)?;
            }
            *members += 1;
            Ok(())
        }
        _ => Err(Status::BadHandle),
    }
}

/// Doubles the room for what is ready, which the caller pays for.
#[cold]
fn grow(ready: &mut VecDeque<(u64, u64)>, caller: ProcessRef) -> Result<(), Status> {
    let before = ready.capacity();
    let more = before.max(MIN_READY);
    caller.charge_kernel(more * ENTRY_BYTES)?;
    if ready.try_reserve_exact(before + more - ready.len()).is_err() {
        caller.refund_kernel(more * ENTRY_BYTES);
        return Err(Status::Exhausted);
    }
    // What the allocator gave beyond that is not counted again when the set is closed.
    debug_assert_eq!(ready.capacity(), before + more);
    Ok(())
}

/// Announces that an endpoint of the set has something to receive.
#[inline(always)]
pub fn announce(sync: SyncRef, key: u64, endpoint: u64) {
    let Ok(mut inner) = sync.lock() else { return };
    let Inner { state, waiters } = &mut *inner;
    let State::WaitSet { ready, members, .. } = state else { return };
    if !ready.is_empty() {
        // A waiter is being woken for an earlier entry.
        ready.push_back((key, endpoint));
        waiters.wake_one();
    } else if waiters.hand_to_one(key) {
        *members = members.saturating_sub(1);
    } else {
        ready.push_back((key, endpoint));
    }
}

/// Entries of a wait set that are scanned with it locked.
const ENTRIES: usize = 256;

/// Forgets an endpoint that leaves the set. The caller holds no lock and may be preempted.
pub fn leave(sync: SyncRef, endpoint: u64, from: Membership) -> Result<(), Status> {
    let counted = usize::from(from == Membership::AnnouncedOrNone);
    let mut left = with_set(sync, |ready, _| ready.len())?;
    loop {
        let now = left.min(ENTRIES);
        // Each goes to the end but those of the endpoint, so that the order is the same when all have.
        with_set(sync, |ready, members| {
            for _ in 0..now {
                match ready.pop_front() {
                    Some((_, of)) if of == endpoint => *members = members.saturating_sub(counted),
                    Some(entry) => ready.push_back(entry),
                    None => break,
                }
            }
        })?;
        left -= now;
        if left == 0 {
            break;
        }
        preempt::pause();
    }
    if from == Membership::Waiting { forget(sync) } else { Ok(()) }
}

/// Forgets an endpoint that had nothing to receive.
pub fn forget(sync: SyncRef) -> Result<(), Status> {
    with_set(sync, |_, members| *members = members.saturating_sub(1))
}

fn with_set<R>(sync: SyncRef, change: impl FnOnce(&mut VecDeque<(u64, u64)>, &mut usize) -> R) -> Result<R, Status> {
    match &mut sync.lock()?.state {
        State::WaitSet { ready, members, .. } => Ok(change(ready, members)),
        _ => Err(Status::BadHandle),
    }
}

/// Does something with the text of a debug sink.
fn with_debug_sink<R>(sync: SyncRef, act: impl FnOnce(&mut Ring) -> R) -> Result<R, Status> {
    match &mut sync.lock()?.state {
        State::DebugSink(ring) => Ok(act(ring)),
        _ => Err(Status::BadHandle),
    }
}

/// Adds to the text of a debug sink, if its slot still holds it.
fn add_to_debug_sink<R>(sink: SinkRef, add: impl FnOnce(&mut Ring) -> R) -> Option<R> {
    let mut inner = SYNCS.slot(sink.index)?.inner.lock();
    let State::DebugSink(ring) = &mut inner.state else { return None };
    if ring.number() != sink.number {
        return None;
    }
    let added = add(ring);
    inner.waiters.wake_one();
    Some(added)
}

/// What an endpoint that leaves a wait set was in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It was in it, with nothing to receive.
    Waiting,
    /// It was announced, perhaps more than once, or never was in it: then nothing changes.
    AnnouncedOrNone,
}
