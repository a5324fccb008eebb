//! The end of a SIP, whatever its cause.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::{EpitaphKind, ProcessState, StopReason, TraceKind};

use super::ENDED;
use super::cores::{self, Place};
use super::graveyard::remember;
use crate::lock::{SpinGuard, SpinLock};
use crate::machine::machine;
use crate::preempt::PENDING_KILL;
use crate::process::{Epitaph, Life, PROCESSES, Process, ProcessRef, Threads, stream};
use crate::slab::{List, Listed, Slot};
use crate::thread::{self, ThreadRef};
use crate::wait::{Ticket, Woken};
use crate::{channel, cpu, debug_output, device, exheap, hardware, memory, preempt, recorder, sched, sync, wait_word};

/// Ends the caller's own SIP. Its threads end when they leave the kernel; does not wait for them.
#[inline(always)]
pub fn end(process: ProcessRef, epitaph: Epitaph) {
    end_at(process, epitaph, Place::here());
}

/// The same, with the place where the calling thread was.
pub fn end_at(process: ProcessRef, epitaph: Epitaph, place: Place) {
    let died = cores::is_death(epitaph.kind);
    if let Some(condemned) = condemn(process, process.id.load(Ordering::Relaxed), epitaph) {
        if died {
            cores::note_calls(process, place);
        }
        condemned.end();
    }
}

/// Ends a SIP if its slot still holds the one with this id: it may have ended meanwhile.
pub fn end_if(process: ProcessRef, id: u64, epitaph: Epitaph) {
    if let Some(condemned) = condemn(process, id, epitaph) {
        condemned.end();
    }
}

/// A SIP whose threads run none of its code after they enter the kernel. The holder must end it.
pub(super) struct Condemned {
    process: ProcessRef,
    never_started: bool,
}

/// First, short part of [`end_if`]; `None` if the SIP is already ending.
pub(super) fn condemn(process: ProcessRef, id: u64, epitaph: Epitaph) -> Option<Condemned> {
    let mut life = process.life.lock();
    if process.id.load(Ordering::Relaxed) != id
        || process.state() == ProcessState::Ended
        || process.dying.swap(true, Ordering::SeqCst)
    {
        return None;
    }
    let never_started = process.state() == ProcessState::Created;
    process.state.store(ProcessState::Stopping as u64, Ordering::Release);
    life.epitaph = Some(epitaph);
    Some(Condemned { process, never_started })
}

impl Condemned {
    /// The rest of [`end_if`]; the caller may be preempted.
    pub(super) fn end(self) {
        if self.never_started {
            finish(self.process);
        } else {
            end_threads(self.process);
        }
    }
}

/// Maximum threads signalled under the lock of their list, and endpoints closed in one batch.
const AT_ONCE: usize = 32;

/// Makes every thread of a dying SIP leave the kernel or enter it. Threads added to the list meanwhile see for
/// themselves that it is dying.
fn end_threads(process: ProcessRef) {
    let list = process.threads.lock();
    process.next_to_end.store(list.first().unwrap_or(u32::MAX), Ordering::Relaxed);
    let mut has_more = end_some_threads(process, &list);
    drop(list);
    while has_more {
        preempt::pause();
        has_more = end_some_threads(process, &process.threads.lock());
    }
}

/// Signals a batch; returns whether there may be more. The list is locked throughout: a thread that leaves it may soon
/// belong to another SIP.
fn end_some_threads(process: ProcessRef, list: &List<Threads>) -> bool {
    let here = cpu::this();
    for _ in 0..AT_ONCE {
        let index = process.next_to_end.load(Ordering::Relaxed);
        let Some(thread) = thread::THREADS.slot(index) else { return false };
        process.next_to_end.store(list.next(index).unwrap_or(u32::MAX), Ordering::Relaxed);
        let state = thread.state.load(Ordering::SeqCst);
        match state & 3 {
            wait_word::BLOCKED => {
                Ticket { thread, state }.wake(Woken::Killed);
            }
            wait_word::RUNNING => {
                let number = thread.cpu.load(Ordering::Relaxed);
                if number == here.number {
                    here.pending.fetch_or(PENDING_KILL, Ordering::Relaxed);
                } else {
                    machine().interrupt(number as usize);
                }
            }
            _ => {}
        }
    }
    true
}

impl Slot<Process> {
    /// Removes an ended thread from the list, after any loop that still signals threads is past it.
    fn pop_thread(&self) -> Option<u32> {
        preempt::pause();
        let mut list = self.threads.lock();
        self.next_to_end.store(u32::MAX, Ordering::Relaxed);
        list.pop()
    }

    /// Removes a thread from the list.
    pub fn unlist_thread(&self, thread: ThreadRef) {
        let mut list = self.threads.lock();
        let index = thread.index();
        if self.next_to_end.load(Ordering::Relaxed) == index {
            self.next_to_end.store(list.next(index).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        list.remove(index);
    }
}

/// Ends the calling thread, and its SIP if it is the last one.
pub fn end_current_thread() -> ! {
    let thread = cpu::current();
    if let Some(process) = thread.owner() {
        thread_ended(process, thread);
    }
    sched::leave_for_ever(thread)
}

/// Ends a thread of the SIP. Called on that thread, last before the switch away.
fn thread_ended(process: ProcessRef, thread: ThreadRef) {
    if recorder::is_on() {
        recorder::thread_ended(thread);
    }
    process.trace.add(TraceKind::ThreadEnded, thread.handle(), 0);
    let dying = process.is_dying();
    {
        let mut end = thread.end.lock();
        if dying || end.released {
            end.released = true;
            drop(end);
            process.unlist_thread(thread);
        } else {
            end.left = true;
        }
    }
    // While it still stands on it, but the SIP may be another one when it does not.
    process.refund_stack(abi::stack::size_at(thread.sip_block_address()));
    if process.live_threads.fetch_sub(1, Ordering::AcqRel) == 1 {
        if !dying {
            let mut life = process.life.lock();
            process.dying.store(true, Ordering::SeqCst);
            life.epitaph.get_or_insert_with(|| Epitaph::exited(0));
        }
        finish(process);
    }
}

/// Releases everything that a SIP without threads owns: piece by piece, with no lock held in between, on the thread
/// that ended it, which may be preempted.
fn finish(process: ProcessRef) {
    if process.life.lock().epitaph.as_ref().is_some_and(|epitaph| cores::is_death(epitaph.kind)) {
        cores::note_holdings(process);
    }
    if let Some(space) = process.space.get() {
        space.close_if_private();
    }
    for child in drained(&process.children) {
        if let Some(child) = PROCESSES.slot(child) {
            orphan(child);
        }
    }
    for index in core::iter::from_fn(|| process.pop_thread()) {
        release_thread(index);
    }
    stream::ended(process);
    device::close_all(process);
    hardware::close_all(process);
    loop {
        let batch = drained(&process.endpoints).take(AT_ONCE);
        let endpoint = |index: u32| Some(channel::endpoint_at(channel::CHANNELS.slot(index >> 1)?, index));
        let endpoints: Vec<_> = batch.filter_map(endpoint).collect();
        if endpoints.is_empty() {
            break;
        }
        channel::close_all(endpoints);
    }
    channel::disinherit(process);
    for index in drained(&process.blocks) {
        if let Some(block) = exheap::BLOCKS.slot(index) {
            block.owner.set(None);
            channel::dispose(block);
        }
    }
    channel::disinherit_blocks(process);
    for index in drained(&process.syncs) {
        if let Some(sync) = sync::SYNCS.slot(index) {
            sync::release(sync);
        }
    }
    while let Some((address, count)) = next_run(process) {
        memory::free_pages(address, count, process.space.get());
        preempt::pause();
    }
    process.free_windows();
    // Only a process with a space has any.
    if process.space.get().is_some() {
        process.free_image_data();
    }
    if let Some(space) = process.space.take() {
        space.begin_leaving();
        memory::trim_space(space);
        space.finish_leaving();
    }
    announce_end(process);
}

/// Takes one page allocation from it.
fn next_run(process: ProcessRef) -> Option<(usize, usize)> {
    let mut pages = process.pages.lock();
    let run = pages.runs.pop()?;
    pages.count -= run.1;
    Some(run)
}

/// Drains a list, one object at a time: the locks of its objects come before that of the list.
fn drained<K: Listed>(list: &SpinLock<List<K>>) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        preempt::pause();
        list.lock().pop()
    })
}

/// Frees the slot of a thread that ended without being joined.
fn release_thread(index: u32) {
    let Some(thread) = thread::THREADS.slot(index) else { return };
    let mut end = thread.end.lock();
    end.released = true;
    // One that is not yet buried is freed at its burial.
    if end.ended {
        drop(end);
        thread::THREADS.release(thread);
    }
}

fn orphan(child: ProcessRef) {
    let (ended, id) = {
        let mut life = child.life.lock();
        life.held = false;
        life.parent = None;
        (child.state() == ProcessState::Ended, child.id.load(Ordering::Relaxed))
    };
    if ended {
        PROCESSES.release(child);
    } else {
        end_if(child, id, Epitaph::new(EpitaphKind::Orphaned, "ended with its parent"));
    }
}

fn announce_end(process: ProcessRef) {
    let mut life = process.life.lock();
    let epitaph = life.epitaph.get_or_insert_with(|| Epitaph::exited(0)).clone();
    process.trace.add(TraceKind::Ended, epitaph.kind as u64, epitaph.status);
    if cores::is_death(epitaph.kind) {
        cores::note_events(process);
    }
    remember(process, &epitaph);
    if recorder::is_on() {
        recorder::process_ended(process, &epitaph);
    }
    process.state.store(ProcessState::Ended as u64, Ordering::Release);
    ENDED.fetch_add(1, Ordering::Relaxed);
    life.waiters.wake_all();
    life.parameters.clear();
    process.own_principal.clear();
    let held = life.held;
    if held && let Some((parent, _)) = life.parent {
        // Its record and its epitaph stay until the parent closes the handle.
        parent.charge_kept_child(life.remains());
    }
    let first = process.parent_id_locked(&life) == 0 && !held && process.id.load(Ordering::Relaxed) == 1;
    let charged = life.released_by.take();
    drop(life);
    if let Some((parent, id)) = charged {
        parent.refund_child(id);
    }
    if first {
        root_ended(&epitaph);
    }
    if !held {
        PROCESSES.release(process);
    }
}

/// Ends the machine: the root SIP is gone, and all others with it.
fn root_ended(epitaph: &Epitaph) -> ! {
    debug_output::line(format_args!("the system's root {}", epitaph.text));
    recorder::finish();
    machine().power_off(if epitaph.kind == EpitaphKind::Exited { epitaph.status as u8 } else { 1 })
}

impl Slot<Process> {
    fn parent_id_locked(&self, life: &Life) -> u64 {
        life.parent.map_or(0, |(_, id)| id)
    }
}

/// Closes the handle that the parent holds of the child.
pub(super) fn release(parent: ProcessRef, child: ProcessRef, mut life: SpinGuard<'static, Life>) {
    life.held = false;
    life.parent = None;
    let (state, id) = (child.state(), child.id.load(Ordering::Relaxed));
    let parent_id = parent.id.load(Ordering::Relaxed);
    if state != ProcessState::Ended {
        life.released_by = Some((parent, parent_id));
    }
    if state == ProcessState::Ended {
        parent.refund_kernel(life.remains());
    }
    // Before the lock is released: from then on the slot may hold the child of another.
    parent.children.lock().remove(child.index());
    drop(life);
    if state == ProcessState::Ended {
        parent.refund_child(parent_id);
        PROCESSES.release(child);
    } else if state == ProcessState::Created {
        end_if(child, id, Epitaph::new(EpitaphKind::NotStarted, "given up before it was started"));
    }
}

/// Stops the SIP with this id on behalf of another.
pub fn stop(stopper: ProcessRef, process: ProcessRef, id: u64, reason: StopReason) {
    let who = stopper.name();
    let text = match reason {
        StopReason::Requested => format!("stopped by {who}"),
        StopReason::Interrupted => format!("interrupted by {who}"),
        StopReason::Shutdown => format!("stopped by {who} for shutdown"),
    };
    stopper.trace.add(TraceKind::ChildStopped, id, 0);
    end_if(process, id, Epitaph::new(EpitaphKind::Stopped, text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{alone, pauses, with_quota};

    #[test]
    fn a_process_with_much_ends_in_small_steps() {
        const BLOCKS: usize = 3_000;
        let _alone = alone();
        let process = with_quota(|quota| (quota.block_kib, quota.handles) = (1 << 16, 10_000));
        for _ in 0..BLOCKS {
            exheap::allocate(process, 64, 0).expect("a block");
        }
        let before = pauses();
        end(process, Epitaph::exited(0));
        assert!(pauses() - before >= BLOCKS, "{} pauses for {BLOCKS} blocks", pauses() - before);
        assert_eq!(process.block_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(process.state(), ProcessState::Ended);
    }
}
