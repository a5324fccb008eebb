//! The end of a SIP, whichever way it comes.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::{EpitaphKind, ProcessState, StopReason, TraceKind};

use super::graveyard::remember;
use super::{ENDED, Epitaph, Life, PROCESSES, Process, ProcessRef};
use crate::lock::{SpinGuard, SpinLock};
use crate::machine::machine;
use crate::slab::{List, Listed, Slot};
use crate::thread::{self, ThreadRef};
use crate::wait::{Ticket, Woken};
use crate::{channel, cpu, device, exheap, hardware, memory, sync, wait_word};

/// Ends the caller's own SIP. Its threads end when they leave the kernel; does not wait.
pub fn end(process: ProcessRef, epitaph: Epitaph) {
    end_if(process, process.id.load(Ordering::Relaxed), epitaph);
}

/// Ends a SIP if its slot still holds the one with this id: it may have ended by itself meanwhile.
pub fn end_if(process: ProcessRef, id: u64, epitaph: Epitaph) {
    let never_started = {
        let mut life = process.life.lock();
        if process.id.load(Ordering::Relaxed) != id
            || process.state() == ProcessState::Ended
            || process.dying.swap(true, Ordering::SeqCst)
        {
            return;
        }
        let never_started = process.state() == ProcessState::Created;
        process.state.store(ProcessState::Stopping as u64, Ordering::Release);
        life.epitaph = Some(epitaph);
        never_started
    };
    if never_started {
        finish(process);
    } else {
        end_threads(process);
    }
}

/// Makes every thread of a dying SIP leave the kernel or come to it.
fn end_threads(process: ProcessRef) {
    let here = cpu::this();
    // Held throughout: a thread that leaves the list may soon be another SIP's.
    let list = process.threads.lock();
    let all = core::iter::successors(list.first(), |&index| list.next(index));
    for thread in all.filter_map(|index| thread::THREADS.slot(index)) {
        let state = thread.state.load(Ordering::SeqCst);
        match state & 3 {
            wait_word::BLOCKED => {
                Ticket { thread, state }.wake(Woken::Killed);
            }
            wait_word::RUNNING => {
                let number = thread.cpu.load(Ordering::Relaxed);
                if number == here.number {
                    here.pending.fetch_or(cpu::PENDING_KILL, Ordering::Relaxed);
                } else {
                    machine().interrupt(number as usize);
                }
            }
            _ => {}
        }
    }
}

/// A thread of the SIP ends: called on it, last thing but the switch away.
pub fn thread_ended(process: ProcessRef, thread: ThreadRef) {
    let cycles = thread.cycles.load(Ordering::Relaxed);
    process.past_cycles.fetch_add(cycles, Ordering::Relaxed);
    process.trace.add(TraceKind::ThreadEnded, thread.handle(), 0);
    let dying = process.is_dying();
    {
        let mut end = thread.end.lock();
        if dying || end.released {
            end.released = true;
            drop(end);
            process.threads.lock().remove(thread.index());
        } else {
            end.left = true;
        }
    }
    if process.live_threads.fetch_sub(1, Ordering::AcqRel) == 1 {
        if !dying {
            let mut life = process.life.lock();
            process.dying.store(true, Ordering::SeqCst);
            life.epitaph.get_or_insert_with(|| Epitaph::exited(0));
        }
        finish(process);
    }
}

/// Gives back everything that a SIP without threads has.
fn finish(process: ProcessRef) {
    for child in take_all(&process.children) {
        if let Some(child) = PROCESSES.slot(child) {
            orphan(child);
        }
    }
    release_threads(process);
    device::close_all(process);
    hardware::close_all(process);
    let mut endpoints = Vec::new();
    loop {
        // Taken out of the list one at a time: an endpoint's lock comes before the list's.
        let first = process.endpoints.lock().first();
        let Some(index) = first else { break };
        process.endpoints.lock().remove(index);
        if let Some(channel) = channel::CHANNELS.slot(index >> 1) {
            endpoints.push(channel::endpoint_at(channel, index));
        }
        if endpoints.len() == 64 {
            channel::close_all(core::mem::take(&mut endpoints));
        }
    }
    channel::close_all(endpoints);
    loop {
        let block = {
            let mut blocks = process.blocks.lock();
            let Some(block) = blocks.first().and_then(|index| exheap::BLOCKS.slot(index)) else { break };
            exheap::unlist(&mut blocks, block);
            block
        };
        exheap::dispose(block);
    }
    for index in take_all(&process.syncs) {
        if let Some(sync) = sync::SYNCS.slot(index) {
            sync::release(sync);
        }
    }
    let runs = {
        let mut pages = process.pages.lock();
        pages.count = 0;
        core::mem::take(&mut pages.runs)
    };
    for (address, count) in runs {
        memory::free_pages(address, count);
    }
    announce_end(process);
}

fn take_all<K: Listed>(list: &SpinLock<List<K>>) -> Vec<u32> {
    let mut list = list.lock();
    let mut all = Vec::new();
    while let Some(index) = list.first() {
        list.remove(index);
        all.push(index);
    }
    all
}

/// Frees the slots of threads that ended without being joined.
fn release_threads(process: ProcessRef) {
    for index in take_all(&process.threads) {
        let Some(thread) = thread::THREADS.slot(index) else { continue };
        let mut end = thread.end.lock();
        end.released = true;
        // One that is not buried yet is freed by whoever buries it.
        if end.ended {
            drop(end);
            thread::THREADS.release(thread);
        }
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
    remember(process, &epitaph);
    process.state.store(ProcessState::Ended as u64, Ordering::Release);
    ENDED.fetch_add(1, Ordering::Relaxed);
    life.waiters.wake_all();
    life.parameters.clear();
    process.own_principal.clear();
    let held = life.held;
    let first = process.parent_id_locked(&life) == 0 && !held && process.id.load(Ordering::Relaxed) == 1;
    let charged = life.released_by.take();
    drop(life);
    if let Some((parent, id)) = charged {
        parent.refund_child(id);
    }
    if first {
        crate::root_ended(&epitaph);
    }
    if !held {
        PROCESSES.release(process);
    }
}

impl Slot<Process> {
    fn parent_id_locked(&self, life: &Life) -> u64 {
        life.parent.map_or(0, |(_, id)| id)
    }
}

/// The parent, which holds the child's handle, gives it up.
pub(super) fn release(parent: ProcessRef, child: ProcessRef, mut life: SpinGuard<'static, Life>) {
    life.held = false;
    life.parent = None;
    let (state, id) = (child.state(), child.id.load(Ordering::Relaxed));
    let parent_id = parent.id.load(Ordering::Relaxed);
    if state != ProcessState::Ended {
        life.released_by = Some((parent, parent_id));
    }
    // Before the lock is free: from then on the slot may be the child of another.
    parent.children.lock().remove(child.index());
    drop(life);
    if state == ProcessState::Ended {
        parent.refund_child(parent_id);
        PROCESSES.release(child);
    } else if state == ProcessState::Created {
        end_if(child, id, Epitaph::new(EpitaphKind::NotStarted, "given up before it was started"));
    }
}

/// Ends the SIP with this id on behalf of another.
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
