//! The trace stream: the events of all SIPs for one reader, beside the ring of each.
//!
//! Each processor has a buffer of its own, which it fills and the reader empties. What does not fit is counted and lost:
//! nobody waits for the reader, and an event allocates nothing. The buffers belong to the reader, which is charged for
//! them, and are freed when it stops or ends. Locks: the owner's, then one of the buffers; innermost.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use abi::limits::STREAM_EVENTS;
use abi::{Status, StreamRecord, TraceKind};

use super::{PROCESSES, ProcessRef};
use crate::lock::SpinLock;
use crate::machine::machine;
use crate::thread::ThreadRef;
use crate::{cpu, latency, preempt, watch};

/// Maximum events moved while a processor's buffer is locked.
const AT_ONCE: usize = 32;

/// Events of one processor, in its [`cpu::Cpu`].
#[derive(Default)]
pub struct Events {
    kept: VecDeque<StreamRecord>,
    room: usize,
    lost: u64,
}

struct Reader {
    process: ProcessRef,
    charged: usize,
    /// The processor whose events are read next.
    next: usize,
}

static READER: SpinLock<Option<Reader>> = SpinLock::new(None);
/// Process id of the reader, whose own events would only be about reading.
static READER_ID: AtomicU64 = AtomicU64::new(0);

impl Events {
    /// Makes empty events with room for this many; `None` if memory is short.
    fn with_room(room: usize) -> Option<Events> {
        let mut kept = VecDeque::new();
        kept.try_reserve_exact(room).ok()?;
        Some(Events { kept, room, lost: 0 })
    }

    fn add(&mut self, record: StreamRecord) {
        if self.kept.len() < self.room {
            self.kept.push_back(record);
        } else {
            self.lost += 1;
        }
    }
}

/// Whether there is a reader.
#[inline(always)]
pub fn is_on() -> bool {
    watch::is_on(watch::STREAM)
}

/// An event of a SIP.
#[cold]
#[inline(never)]
pub fn add(process: u64, kind: TraceKind, a: u64, b: u64, c: u64) {
    // Unit tests run on no processor.
    if cfg!(test) || process == READER_ID.load(Ordering::Relaxed) {
        return;
    }
    let cpu = cpu::this();
    let thread = cpu.current();
    let runner = thread.and_then(|thread| thread.owner()).map_or(0, |owner| owner.id.load(Ordering::Relaxed));
    let record = StreamRecord {
        time_ns: machine().monotonic_ns(),
        process,
        thread: thread.map_or(0, |thread| thread.handle()),
        runner,
        kind: u64::from(cpu.number) << 32 | kind as u64,
        a,
        b,
        c,
    };
    cpu.events.lock().add(record);
}

/// Makes the caller the reader, with room for at least this many events.
///
/// # Errors
/// [`Status::TooLarge`], [`Status::Busy`] if another SIP reads, or the caller's quota or the memory is exhausted.
pub fn start(caller: ProcessRef, events: u64) -> Result<(), Status> {
    if events > STREAM_EVENTS {
        return Err(Status::TooLarge);
    }
    ended(caller);
    if events == 0 {
        return Ok(());
    }
    let processors = cpu::all().count();
    let room = (events as usize).div_ceil(processors);
    let charged = processors * room * size_of::<StreamRecord>();
    caller.charge_kernel(charged)?;
    let made: Option<Vec<Events>> = (0..processors).map(|_| Events::with_room(room)).collect();
    let Some(made) = made else {
        caller.refund_kernel(charged);
        return Err(Status::Exhausted);
    };
    let mut reader = READER.lock();
    if reader.is_some() {
        drop(reader);
        caller.refund_kernel(charged);
        return Err(Status::Busy);
    }
    *reader = Some(Reader { process: caller, charged, next: 0 });
    READER_ID.store(caller.id.load(Ordering::Relaxed), Ordering::Relaxed);
    for (cpu, events) in cpu::all().zip(made) {
        *cpu.events.lock() = events;
    }
    watch::start(watch::STREAM);
    drop(reader);
    // A sender that has not seen the bit sets its next sample before this; see `next_sample`.
    fence(Ordering::SeqCst);
    for process in preempt::pausing(PROCESSES.iter()) {
        process.sample_at.store(0, Ordering::Relaxed);
    }
    Ok(())
}

/// Ends the stream if this SIP is its reader, and frees the buffers.
#[inline(always)]
pub fn ended(process: ProcessRef) {
    // Its own threads made it the reader, and are gone or call this.
    if READER_ID.load(Ordering::Relaxed) == process.id.load(Ordering::Relaxed) {
        stop(process);
    }
}

#[cold]
fn stop(process: ProcessRef) {
    let mut reader = READER.lock();
    if !reader.as_ref().is_some_and(|reader| core::ptr::eq(reader.process, process)) {
        return;
    }
    watch::stop(watch::STREAM);
    READER_ID.store(0, Ordering::Relaxed);
    let charged = reader.take().map_or(0, |reader| reader.charged);
    for cpu in cpu::all() {
        let events = core::mem::take(&mut *cpu.events.lock());
        drop(events);
    }
    drop(reader);
    process.refund_kernel(charged);
}

/// Passes waiting events to `write`, at most `most`. Returns their number, and the number of events lost since the call
/// before.
///
/// # Errors
/// [`Status::WrongState`] if the caller is not the reader.
pub fn read(
    caller: ProcessRef,
    most: usize,
    mut write: impl FnMut(usize, &StreamRecord),
) -> Result<(u64, u64), Status> {
    let processors = cpu::all().count();
    let first = with_reader(caller, |reader| reader.next)?;
    let (mut count, mut lost) = (0, 0);
    for cpu in cpu::all().cycle().skip(first).take(processors) {
        // What comes in meanwhile is for the next call, so that one busy processor does not keep the reader here.
        let mut left = cpu.events.lock().kept.len();
        while left > 0 && count < most {
            let mut events = cpu.events.lock();
            let part = left.min(AT_ONCE).min(most - count).min(events.kept.len());
            if part == 0 {
                break;
            }
            for record in (0..part).map_while(|_| events.kept.pop_front()) {
                write(count, &record);
                count += 1;
            }
            drop(events);
            left -= part;
            preempt::pause();
        }
        lost += core::mem::take(&mut cpu.events.lock().lost);
    }
    with_reader(caller, |reader| reader.next = (first + 1) % processors)?;
    Ok((count as u64, lost))
}

fn with_reader<R>(caller: ProcessRef, act: impl FnOnce(&mut Reader) -> R) -> Result<R, Status> {
    let mut reader = READER.lock();
    match &mut *reader {
        Some(reader) if core::ptr::eq(reader.process, caller) => Ok(act(reader)),
        _ => Err(Status::WrongState),
    }
}

/// Leaves the processor to another thread, with an event before and after it.
#[inline(always)]
pub fn around<R>(thread: ThreadRef, kind: TraceKind, switch: impl FnOnce() -> R) -> R {
    if is_on() { observed(thread, kind, switch) } else { switch() }
}

#[cold]
fn observed<R>(thread: ThreadRef, kind: TraceKind, switch: impl FnOnce() -> R) -> R {
    let id = thread.owner().map_or(0, |owner| owner.id.load(Ordering::Relaxed));
    add(id, kind, 0, 0, 0);
    let answer = switch();
    if is_on() {
        add(id, TraceKind::Resumed, 0, 0, 0);
    }
    answer
}

/// The first event of a new thread.
pub fn arrived(thread: ThreadRef) {
    if is_on() {
        add(thread.owner().map_or(0, |owner| owner.id.load(Ordering::Relaxed)), TraceKind::Resumed, 0, 0, 0);
    }
}

/// Like [`around`], with the end of a measured stretch.
#[cold]
#[inline(never)]
pub fn between(thread: ThreadRef, kind: TraceKind, switch: fn()) {
    let switch = || around(thread, kind, switch);
    if latency::is_on() {
        latency::between(&thread.stretch, switch);
    } else {
        switch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut events = Events::with_room(2).expect("memory");
        for time_ns in 0..5 {
            events.add(StreamRecord { time_ns, ..StreamRecord::default() });
        }
        assert_eq!((events.kept.len(), events.lost), (2, 3));
        assert_eq!(events.kept.pop_front().map(|record| record.time_ns), Some(0));
        events.add(StreamRecord::default());
        assert_eq!((events.kept.len(), events.lost), (2, 3));
    }

    #[test]
    fn without_a_reader_there_is_no_room() {
        let mut events = Events::default();
        events.add(StreamRecord::default());
        assert_eq!((events.kept.len(), events.lost), (0, 1));
    }
}
