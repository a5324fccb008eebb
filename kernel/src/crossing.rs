//! Threads in hardware protection domains: the loop that runs one, and serves its calls, interrupts and faults.
//!
//! For the rest of the kernel such a thread is like any other, always in the kernel: it has a stack of the kernel's, on
//! which this loop runs. Its calls reach the very handlers that other SIPs reach, with the words of the message buffer
//! that they use copied in before and out after. The copy in the domain may be written to at any time; the kernel reads
//! it once.
//!
//! Neighbours: `space` has the domain, `entry` the handlers.

use core::sync::atomic::Ordering;

use abi::limits::{MESSAGE_WORDS, PAGE_BYTES, STACK_RESERVE_BYTES, STACK_SLOT_BYTES};
use abi::{EpitaphKind, stack};
use alloc::format;
use alloc::vec::Vec;
use hal_api::{DomainContext, DomainExit, Fault, FaultKind, MAX_GATES};

use crate::machine::machine;
use crate::process::Epitaph;
use crate::space::SpaceRef;
use crate::thread::{THREADS, ThreadRef};
use crate::{arch, call_words, cpu, deferred, entry, lifecycle, memory, preempt, space, thread};

/// Makes the ABI table that domains see. Called at boot on a machine with domains.
///
/// # Errors
/// The reason.
pub fn start() -> Result<(), &'static str> {
    let count = entry::function_count();
    if count > MAX_GATES || (count + 1) * size_of::<u64>() > PAGE_BYTES {
        return Err("the machine has too few gates for the functions of the kernel");
    }
    let gates = (0..count).map(|number| machine().domain_gate(number) as u64);
    let words: Vec<u64> = core::iter::once(abi::TABLE_ID).chain(gates).collect();
    let table = memory::make_shared_page(&words).ok_or("there is no memory for the table of the domains")?;
    space::start(table);
    Ok(())
}

/// Runs the calling thread in its domain, for ever.
pub extern "C" fn run_inside() {
    let thread = cpu::current();
    let Some(space) = thread.inside.space.get() else { lifecycle::end_current_thread() };
    let [entry, argument] = thread.inside.start.each_ref().map(|word| word.load(Ordering::Relaxed));
    // As after a call: there is a return address, which is never used.
    let block = thread.sip_block_address();
    let stack = block - thread::colour(block) - size_of::<u64>();
    let mut context = DomainContext::start(entry, stack, argument as u64);
    let machine = machine();
    loop {
        match space.enter(machine, &mut context) {
            DomainExit::Call { gate, arguments } => serve(thread, gate, arguments, &mut context),
            DomainExit::Interrupt => {}
            DomainExit::Missing(fault) => mend(thread, space, &fault),
            DomainExit::Fault(fault) => entry::fault(&fault),
        }
        if arch::cpu_pending() != 0 {
            deferred::service_pending();
        }
    }
}

/// Serves a call. The values are the caller's claims.
#[inline(always)]
fn serve(thread: ThreadRef, gate: u64, arguments: [u64; 6], context: &mut DomainContext) {
    let [stack, low] = [&thread.inside.stack, &thread.inside.low].map(|word| word.load(Ordering::Relaxed));
    thread.inside.pointer.store(context.stack(), Ordering::Relaxed);
    // A stack of its own with too little left: a SIP in the kernel's own space would end there too.
    if context.stack().wrapping_sub(low) < STACK_RESERVE_BYTES {
        entry::end_overflowed();
    }
    let (inside, outside) = (thread::block_in(stack), thread.block_address());
    copy_words(inside, outside, call_words::words_in(gate, &arguments));
    let Some(answer) = entry::call(gate, arguments) else { end_for_bad_number(thread, gate) };
    context.answer(answer.status, answer.value);
    copy_words(outside, inside, call_words::words_out(gate, &answer));
}

/// Copies words from the start of one message buffer of a thread to its other.
#[inline(always)]
fn copy_words(from: usize, to: usize, words: usize) {
    if words > 0 {
        // SAFETY: both are thread blocks of one thread, in different mapped stack slots, with the buffer at their start,
        // and no more words are copied than it has.
        unsafe { arch::copy_bytes(from, to, words.min(MESSAGE_WORDS) * size_of::<u64>()) };
    }
}

#[cold]
fn end_for_bad_number(thread: ThreadRef, gate: u64) -> ! {
    if let Some(process) = thread.owner() {
        let text = format!("called function {gate} of the kernel, which does not exist");
        lifecycle::end(process, Epitaph::new(EpitaphKind::Faulted, text));
    }
    lifecycle::end_current_thread()
}

/// Maps the missing page of a stack, or ends the SIP.
#[cold]
fn mend(thread: ThreadRef, space: SpaceRef, fault: &Fault) {
    match grow(thread, space, fault.address) {
        Some(true) => {}
        Some(false) => entry::fault(&Fault { kind: FaultKind::OutOfMemory, ..*fault }),
        None => entry::fault(fault),
    }
}

/// Maps a page of a stack of the same domain. `None` if the address is in none; false if memory is short.
fn grow(thread: ThreadRef, space: SpaceRef, address: usize) -> Option<bool> {
    if !machine().layout().stacks.contains(address) || !stack::is_usable(address) {
        return None;
    }
    let slot = address & !(STACK_SLOT_BYTES - 1);
    let has_it = |thread: &ThreadRef| {
        thread.inside.stack.load(Ordering::Relaxed) == slot
            && thread.inside.space.get().is_some_and(|its| core::ptr::eq(its, space))
    };
    // Mostly its own; but threads of a SIP may lend each other what is on their stacks.
    let found = Some(thread).filter(has_it).or_else(|| preempt::pausing(THREADS.iter()).find(has_it))?;
    let _stacks = space.spare_stacks.lock();
    has_it(&found).then(|| space.map_stack(address).is_ok())
}

#[cfg(test)]
mod tests;
