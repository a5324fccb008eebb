//! Cores: what is kept of SIPs that died, beside epitaphs and traces: where a thread was, and what the SIP held.
//!
//! All records are part of the kernel's image and of fixed size, so keeping one allocates nothing, cannot fail and is
//! charged to nobody. A program that dies often displaces its own cores first. Deliberately not here: contents of
//! memory, which may be secret; and code addresses of threads in hardware domains, whose stacks are written to by code
//! that the kernel does not trust.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::{EpitaphKind, TraceKind, TraceRecord};

use crate::channel::{CHANNELS, endpoint_at};
use crate::exheap::BLOCKS;
use crate::lock::SpinLock;
use crate::process::{ProcessRef, TRACE_EVENTS};
use crate::program::{Loaded, is_image_address};
use crate::thread::ThreadRef;
use crate::{arch, cpu};

/// Maximum cores.
const CORES: usize = 32;
/// Maximum code addresses, endpoints and blocks in each.
const CALLS: usize = 32;
const HOLDINGS: usize = 24;
/// Bytes of a stack that are searched for code addresses, from the stack pointer on.
const SEARCHED_BYTES: usize = 64 * 1024;
const WORD_BYTES: usize = size_of::<usize>();

/// Where a thread was when it ended its SIP.
#[derive(Clone, Copy)]
pub struct Place {
    /// Address of the instruction that faulted.
    fault: Option<usize>,
    /// The stack pointer.
    stack: usize,
}

impl Place {
    /// In the kernel, on the stack of the calling thread.
    #[inline(always)]
    pub fn here() -> Place {
        Place { fault: None, stack: arch::stack_pointer() }
    }

    /// At an instruction that faulted, with this stack pointer.
    pub fn of_fault(fault: &hal_api::Fault) -> Place {
        Place { fault: Some(fault.instruction), stack: fault.stack }
    }

    /// At a call with less stack left than the kernel needs.
    pub fn overflowed(thread: ThreadRef) -> Place {
        Place { fault: None, stack: thread.limit.load(Ordering::Relaxed) }
    }
}

/// The first of the objects that a SIP had, and the number of all.
#[derive(Clone, Copy)]
struct First<T, const MAX: usize> {
    kept: [T; MAX],
    all: usize,
}

impl<T: Copy, const MAX: usize> First<T, MAX> {
    const fn none(empty: T) -> Self {
        First { kept: [empty; MAX], all: 0 }
    }

    fn add(&mut self, item: T) {
        if let Some(place) = self.kept.get_mut(self.all) {
            *place = item;
        }
        self.all += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.kept.iter().take(self.all)
    }
}

/// Kind and words of a [`TraceRecord`].
type Note = (TraceKind, u64, u64);
/// All zero, as is [`FREE`]: free cores take no room in the kernel's file.
const NO_NOTE: Note = (TraceKind::Created, 0, 0);

type Calls = First<Note, CALLS>;

/// What is kept of one SIP; process id 0: free.
#[derive(Clone, Copy)]
struct Core {
    id: u64,
    /// Program name.
    name: Option<&'static str>,
    /// Counts up with each core.
    order: u64,
    /// Beginning of the package's identity.
    identity: [u64; 2],
    calls: Calls,
    /// Each with its peer.
    endpoints: First<[Note; 2], HOLDINGS>,
    blocks: First<Note, HOLDINGS>,
    events: First<TraceRecord, TRACE_EVENTS>,
}

const NO_EVENT: TraceRecord = TraceRecord { sequence: 0, kind: 0, a: 0, b: 0, time_ns: 0 };
const FREE: Core = Core {
    id: 0,
    name: None,
    order: 0,
    identity: [0; 2],
    calls: First::none(NO_NOTE),
    endpoints: First::none([NO_NOTE; 2]),
    blocks: First::none(NO_NOTE),
    events: First::none(NO_EVENT),
};

struct Cores {
    kept: [Core; CORES],
    next: u64,
}

static KEPT: SpinLock<Cores> = SpinLock::new(Cores { kept: [FREE; CORES], next: 0 });

/// Whether a core is kept of a SIP that ended in this way.
#[inline(always)]
pub(super) fn is_death(kind: EpitaphKind) -> bool {
    !matches!(kind, EpitaphKind::Exited | EpitaphKind::NotStarted)
}

/// Keeps where the calling thread was when it ended its own SIP. Nothing happens if it is another's.
#[cold]
pub(super) fn note_calls(process: ProcessRef, place: Place) {
    let Some(thread) = cpu::this().current() else { return };
    if !thread.owner().is_some_and(|owner| core::ptr::eq(owner, process)) {
        return;
    }
    let calls = calls(process, thread, place);
    KEPT.lock().of(process).calls = calls;
}

/// Keeps what a dying SIP holds, when its last thread has ended, before anything is released.
#[cold]
pub(super) fn note_holdings(process: ProcessRef) {
    if KEPT.lock().of(process).calls.all == 0 {
        // Ended by another: this is the stack of its last thread.
        note_calls(process, Place::here());
    }
    let (endpoints, blocks) = (endpoints(process), blocks(process));
    let mut kept = KEPT.lock();
    let core = kept.of(process);
    (core.endpoints, core.blocks) = (endpoints, blocks);
}

/// Keeps the trace of a SIP that has died.
#[cold]
pub(super) fn note_events(process: ProcessRef) {
    let mut kept = KEPT.lock();
    let core = kept.of(process);
    for record in process.trace.records() {
        core.events.add(record);
    }
}

/// Returns the last events of a dead SIP; `None` if its core is not kept.
pub(super) fn events(id: u64) -> Option<Vec<TraceRecord>> {
    let kept = KEPT.lock();
    kept.find(id).map(|core| core.events.iter().copied().collect())
}

/// Adds what is kept of a dead SIP to its events.
pub(super) fn append(id: u64, records: &mut Vec<TraceRecord>) {
    let kept = KEPT.lock();
    let Some(core) = kept.find(id) else { return };
    let last = records.last().copied().unwrap_or(NO_EVENT);
    let begin = (TraceKind::CoreBegins, core.identity[0], core.identity[1]);
    let end = (TraceKind::CoreEnds, core.endpoints.all as u64, core.blocks.all as u64);
    let endpoints = core.endpoints.iter().flatten();
    let between = core.calls.iter().chain(endpoints).chain(core.blocks.iter());
    let notes = core::iter::once(&begin).chain(between).chain(core::iter::once(&end));
    let sequences = last.sequence + 1..;
    records.extend(notes.zip(sequences).map(|(&(kind, a, b), sequence)| TraceRecord {
        sequence,
        kind: kind as u64,
        a,
        b,
        time_ns: last.time_ns,
    }));
}

impl Cores {
    fn find(&self, id: u64) -> Option<&Core> {
        self.kept.iter().find(|core| core.id == id && id != 0)
    }

    /// Returns the core of a SIP, which takes the place of another if it is new.
    fn of(&mut self, process: ProcessRef) -> &mut Core {
        let id = process.id.load(Ordering::Relaxed);
        let place = self.kept.iter().position(|core| core.id == id);
        let index = place.unwrap_or_else(|| self.displaced());
        let core = &mut self.kept[index];
        if place.is_none() {
            let identity = process.program.get().map_or([0; 2], |program| program.identity_words());
            *core = Core { id, name: Some(process.name()), order: self.next, identity, ..FREE };
            self.next += 1;
        }
        core
    }

    /// Returns the place of a free core, or else of the oldest of the program that has the most.
    fn displaced(&self) -> usize {
        let of_program = |name: Option<&str>| self.kept.iter().filter(|other| other.name == name).count();
        let rank = |core: &Core| (core.id != 0, core::cmp::Reverse(of_program(core.name)), core.order);
        (0..CORES).min_by_key(|&index| rank(&self.kept[index])).unwrap_or(0)
    }
}

/// Searches the stack of the calling thread, in the order of its frames, for code addresses of its image.
fn calls(process: ProcessRef, thread: ThreadRef, place: Place) -> Calls {
    let mut calls = First::none(NO_NOTE);
    let Some(loaded) = process.loaded.get() else { return calls };
    if let Some(offset) = place.fault.and_then(|fault| offset_in(loaded, fault)) {
        calls.add((TraceKind::FaultedAt, offset, 0));
    }
    let words = thread.stack_words(place.stack).take(SEARCHED_BYTES / WORD_BYTES);
    for (index, word) in words.enumerate() {
        if let Some(offset) = offset_in(loaded, word) {
            calls.add((TraceKind::CalledFrom, offset, (index * WORD_BYTES) as u64));
            if calls.all == CALLS {
                break;
            }
        }
    }
    calls
}

/// Returns the offset in its image of a code address.
fn offset_in(loaded: &Loaded, address: usize) -> Option<u64> {
    (is_image_address(address) && loaded.is_code(address)).then(|| (address - loaded.base) as u64)
}

/// The endpoints in the list of a SIP without threads, which nobody else changes.
fn endpoints(process: ProcessRef) -> First<[Note; 2], HOLDINGS> {
    let mut found = First::none([NO_NOTE; 2]);
    let (first, count) = {
        let list = process.endpoints.lock();
        (list.first(), list.count())
    };
    let indices = core::iter::successors(first, |&index| process.endpoints.lock().next(index));
    for index in indices.take(HOLDINGS) {
        let Some(channel) = CHANNELS.slot(index >> 1) else { break };
        let endpoint = endpoint_at(channel, index);
        let Some((held, peer, waiting)) = channel.lock().described(endpoint.side) else { break };
        found.add([
            (TraceKind::HeldEndpoint, endpoint.handle(), held.word()),
            (TraceKind::HeldPeer, peer, waiting.into()),
        ]);
    }
    found.all = found.all.max(count as usize);
    found
}

fn blocks(process: ProcessRef) -> First<Note, HOLDINGS> {
    let mut found = First::none(NO_NOTE);
    let list = process.blocks.lock();
    let indices = core::iter::successors(list.first(), |&index| list.next(index));
    for block in indices.take(HOLDINGS).map_while(|index| BLOCKS.slot(index)) {
        let kind = if block.is_lent() { TraceKind::HeldLoan } else { TraceKind::HeldBlock };
        found.add((kind, block.type_tag.load(Ordering::Relaxed), block.size() as u64));
    }
    found.all = list.count() as usize;
    found
}

#[cfg(test)]
mod tests;
