//! Mutexes, events, wait sets and debug sinks: objects of one SIP, not shared with others except for the text of a
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

/// All synchronization objects.
pub static SYNCS: Slab<Sync> = Slab::new();

/// Maximum entries of a wait set: they are copied when its buffer grows.
const MEMBERS: usize = 1 << 16;
/// Initial capacity of a wait set, in entries.
const MIN_READY: usize = 4;
const ENTRY_BYTES: usize = size_of::<(u64, u64)>();

/// One synchronization object.
#[derive(Default)]
pub struct Sync {
    /// The SIP it belongs to.
    pub process: AtomicRef<Slot<Process>>,
    /// Links in its SIP's list.
    pub links: Links,
    inner: SpinLock<Inner>,
}

/// A reference to an object, as named by a handle. Another thread may have closed it and its slot may have been reused,
/// so every use checks the generation with the lock held.
#[derive(Clone, Copy)]
pub struct SyncRef {
    /// The slot.
    pub slot: &'static Slot<Sync>,
    /// Generation from the handle.
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
        /// By handle: a thread that ends with the mutex leaves it held, and its slot may be reused.
        holder: Option<u64>,
    },
    Event {
        manual: bool,
        set: bool,
    },
    /// Ready endpoints, by key and handle; number of members; whether an alert is pending.
    WaitSet {
        ready: VecDeque<(u64, u64)>,
        members: usize,
        alerted: bool,
    },
    DebugSink(Box<Ring>),
}

/// Kind of object to create.
pub enum Make {
    /// A free mutex.
    Mutex,
    /// An event that stays set.
    ManualEvent,
    /// An event that one waiter consumes.
    AutoEvent,
    /// An empty wait set.
    WaitSet,
    /// A debug sink that is already charged.
    DebugSink(Box<Ring>),
}

impl Listed for Syncs {
    fn links(index: u32) -> Option<&'static Links> {
        SYNCS.slot(index).map(|slot| &slot.links)
    }
}

impl Charged for Syncs {
    /// Excludes the entries of a wait set and the text of a debug sink.
    const RECORD_BYTES: usize = size_of::<Slot<Sync>>();
}

/// Creates an object of the caller.
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

/// Kinds of objects, as distinguished by the close functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// A mutex.
    Mutex,
    /// An event of either kind.
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

/// Acquires a mutex, or fails if that would block.
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

/// Acquires a mutex, in order of arrival.
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

/// Releases a mutex and passes it to the first waiter.
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

/// Whether an event is set (an auto event is then reset) or a wait set or debug sink is readable.
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

/// Registers a ticket, unless the object is ready: then returns true and resets an auto event.
pub fn wait_at(sync: SyncRef, ticket: Ticket) -> Result<bool, Status> {
    let mut inner = sync.lock()?;
    if poll_inner(&mut inner)? {
        return Ok(true);
    }
    // Readiness persists until it is consumed.
    ticket.thread.handed.refuse();
    inner.waiters.add(ticket);
    Ok(false)
}

/// Withdraws a thread's ticket, and passes on a wake-up that it did not use.
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

/// Waits for ready endpoints of the set, puts as many of their keys into `keys` as there is room for, then [`ALERT`] for
/// an alert, and returns their number. Without room it is a bad argument, if there is such a set.
pub fn wait_set(sync: SyncRef, thread: ThreadRef, deadline: u64, keys: &mut [u64]) -> Result<usize, Status> {
    if keys.is_empty() {
        return take_keys(&mut sync.lock()?.state, keys).and(Err(Status::BadArgument));
    }
    let mut count = 0;
    let handed = wait_until(sync, thread, deadline, |state| {
        count = take_keys(state, keys)?;
        Ok((count > 0).then_some(0))
    })?;
    if count > 0 {
        return Ok(count);
    }
    // Whoever woke the thread handed it the first key; more endpoints may have become ready since.
    let Some((first, others)) = keys.split_first_mut() else { return Ok(0) };
    *first = handed;
    if others.is_empty() {
        return Ok(1);
    }
    // The first key is taken, whatever has become of the set.
    Ok(1 + sync.lock().and_then(|mut inner| take_keys(&mut inner.state, others)).unwrap_or(0))
}

/// Takes keys of a set, as many as there are and have room.
#[inline(always)]
fn take_keys(state: &mut State, keys: &mut [u64]) -> Result<usize, Status> {
    let State::WaitSet { ready, members, alerted } = state else { return Err(Status::BadHandle) };
    let mut count = 0;
    for place in keys {
        *place = match ready.pop_front() {
            Some((key, _)) => {
                *members = members.saturating_sub(1);
                key
            }
            None if core::mem::take(alerted) => ALERT,
            None => break,
        };
        count += 1;
    }
    Ok(count)
}

/// Ends one wait for the set with [`ALERT`].
pub fn alert(sync: SyncRef) -> Result<(), Status> {
    let mut inner = sync.lock()?;
    let State::WaitSet { alerted, .. } = &mut inner.state else { return Err(Status::BadHandle) };
    if !core::mem::replace(alerted, true) {
        inner.waiters.wake_one();
    }
    Ok(())
}

/// Waits until `take` succeeds, or a waker hands over the result.
#[inline(always)]
fn wait_until(
    sync: SyncRef,
    thread: ThreadRef,
    deadline: u64,
    mut take: impl FnMut(&mut State) -> Result<Option<u64>, Status>,
) -> Result<u64, Status> {
    loop {
        let mut inner = sync.lock()?;
        if let Some(taken) = take(&mut inner.state)? {
            return Ok(taken);
        }
        // Begun with the lock held: the next waker sees the ticket, or has made the object ready already.
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

/// Reserves capacity in a wait set for one more endpoint, so that no send allocates.
pub fn reserve(sync: SyncRef, caller: ProcessRef) -> Result<(), Status> {
    let own = sync.slot.process.get().is_some_and(|owner| core::ptr::eq(owner, caller));
    match &mut sync.lock()?.state {
        State::WaitSet { ready, members, .. } if own => {
            // A ready endpoint may be added repeatedly, and is reported each time.
            if *members >= caller.handle_quota().min(MEMBERS) {
                return Err(Status::QuotaExceeded);
            }
            // Each member is ready at most once.
            if ready.capacity() <= *members {
                grow(ready, caller)?;
            }
            *members += 1;
            Ok(())
        }
        _ => Err(Status::BadHandle),
    }
}

/// Doubles the capacity for ready entries, charged to the caller.
#[cold]
fn grow(ready: &mut VecDeque<(u64, u64)>, caller: ProcessRef) -> Result<(), Status> {
    let before = ready.capacity();
    let more = before.max(MIN_READY);
    caller.charge_kernel(more * ENTRY_BYTES)?;
    if ready.try_reserve_exact(before + more - ready.len()).is_err() {
        caller.refund_kernel(more * ENTRY_BYTES);
        return Err(Status::Exhausted);
    }
    // Excess capacity from the allocator is not refunded when the set is closed.
    debug_assert_eq!(ready.capacity(), before + more);
    Ok(())
}

/// Announces a readable endpoint of the set.
#[inline(always)]
pub fn announce(sync: SyncRef, key: u64, endpoint: u64) {
    let Ok(mut inner) = sync.lock() else { return };
    let Inner { state, waiters } = &mut *inner;
    let State::WaitSet { ready, members, .. } = state else { return };
    if !ready.is_empty() {
        // A waiter is already being woken for an earlier entry.
        ready.push_back((key, endpoint));
        waiters.wake_one();
    } else if waiters.hand_to_one(key) {
        *members = members.saturating_sub(1);
    } else {
        ready.push_back((key, endpoint));
    }
}

/// Maximum entries of a wait set scanned per locking.
const ENTRIES: usize = 256;

/// Removes an endpoint that leaves the set. The caller holds no lock and may be preempted.
pub fn leave(sync: SyncRef, endpoint: u64, from: Membership) -> Result<(), Status> {
    let counted = usize::from(from == Membership::AnnouncedOrNone);
    let mut left = with_set(sync, |ready, _| ready.len())?;
    loop {
        let now = left.min(ENTRIES);
        // Every entry but those of the endpoint is requeued, so that the order is the same after a full pass.
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

/// Removes an endpoint that had nothing to receive.
pub fn forget(sync: SyncRef) -> Result<(), Status> {
    with_set(sync, |_, members| *members = members.saturating_sub(1))
}

fn with_set<R>(sync: SyncRef, change: impl FnOnce(&mut VecDeque<(u64, u64)>, &mut usize) -> R) -> Result<R, Status> {
    match &mut sync.lock()?.state {
        State::WaitSet { ready, members, .. } => Ok(change(ready, members)),
        _ => Err(Status::BadHandle),
    }
}

/// Runs a closure on the text of a debug sink.
fn with_debug_sink<R>(sync: SyncRef, act: impl FnOnce(&mut Ring) -> R) -> Result<R, Status> {
    match &mut sync.lock()?.state {
        State::DebugSink(ring) => Ok(act(ring)),
        _ => Err(Status::BadHandle),
    }
}

/// Appends to the text of a debug sink, if its slot still holds it.
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

/// Previous membership of an endpoint that leaves a wait set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// A member, with nothing to receive.
    Waiting,
    /// Announced, perhaps more than once, or never a member: then nothing changes.
    AnnouncedOrNone,
}
