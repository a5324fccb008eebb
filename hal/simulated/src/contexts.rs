//! The contexts of the simulated processors, which take turns on one host thread.
//!
//! Each has a stack for its idle loop, its per-processor base, and, while another goes on, its saved stack pointer and
//! how deep it is in the machine's own code. Key type: [`Contexts`]. Neighbours: `machine` decides who goes on.
//! Deliberately not here: SIP threads, which the kernel switches.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::arch::naked_asm;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use abi::limits::STACK_SLOT_BYTES;

use crate::stepping;

#[derive(Debug)]
struct Context {
    base: usize,
    /// Its stack pointer while another goes on.
    saved: AtomicUsize,
    depth: AtomicUsize,
}

/// The contexts of all processors.
#[derive(Debug)]
pub(crate) struct Contexts {
    all: Vec<Context>,
    current: AtomicUsize,
    /// Where the host thread's own context is saved, for ever.
    outside: AtomicUsize,
}

impl Contexts {
    /// Makes a context for each base, which will call `main` with the processor's number.
    pub(crate) fn new(bases: &[usize], main: extern "C" fn(usize)) -> Contexts {
        let context = |(number, &base): (usize, &usize)| Context {
            base,
            saved: AtomicUsize::new(prepare_stack(main, number)),
            depth: AtomicUsize::new(0),
        };
        let all = bases.iter().enumerate().map(context).collect();
        Contexts { all, current: AtomicUsize::new(0), outside: AtomicUsize::new(0) }
    }

    /// Returns the processor that goes on at this moment.
    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// Starts the first processor, on its own stack. Returns only if its `main` does not belong to a kernel.
    pub(crate) fn start(&self) {
        let Some(first) = self.all.first() else { return };
        // SAFETY: the kernel's base of the first processor, which is the current one.
        unsafe { hal_hosted::shared::set_base(first.base) };
        // SAFETY: `saved` was made by `prepare_stack` and is used once.
        unsafe { swap(&self.outside, first.saved.load(Ordering::Relaxed)) };
    }

    /// Lets another processor go on; returns when this one goes on again.
    pub(crate) fn switch_to(&self, next: usize) {
        let before = self.current();
        if next == before {
            return;
        }
        let (from, to) = (&self.all[before], &self.all[next]);
        from.depth.store(stepping::depth(), Ordering::Relaxed);
        stepping::set_depth(to.depth.load(Ordering::Relaxed));
        self.current.store(next, Ordering::Relaxed);
        // SAFETY: the kernel's base of the processor that goes on.
        unsafe { hal_hosted::shared::set_base(to.base) };
        // SAFETY: `to` is not the current context, so its stack pointer was saved here, or made by `prepare_stack`; one host
        // thread runs them all, so nobody else continues it.
        unsafe { swap(&from.saved, to.saved.load(Ordering::Relaxed)) };
    }
}

/// Allocates a stack, for ever, aligned as the slots of SIPs' threads are, and builds the frame from which [`swap`] starts
/// `main`; returns the stack pointer.
fn prepare_stack(main: extern "C" fn(usize), number: usize) -> usize {
    let Ok(layout) = Layout::from_size_align(STACK_SLOT_BYTES, STACK_SLOT_BYTES) else {
        unreachable!("the size of a slot is a power of two")
    };
    // SAFETY: the layout has a size.
    let stack = unsafe { alloc_zeroed(layout) };
    if stack.is_null() {
        handle_alloc_error(layout);
    }
    // Upwards: r15 r14 r13 r12 rbp rbx, the address to return to, and two words, so that the stack is aligned to 16 when
    // `start` calls.
    let frame = [0, 0, main as *const () as usize, number, 0, 0, start as *const () as usize, 0, 0];
    let pointer = stack.expose_provenance() + STACK_SLOT_BYTES - size_of_val(&frame);
    // SAFETY: the frame lies in the stack just allocated.
    unsafe { ptr::with_exposed_provenance_mut::<[usize; 9]>(pointer).write(frame) };
    pointer
}

/// First code of a processor: calls r13 with r12.
#[unsafe(naked)]
extern "C" fn start() {
    naked_asm!("mov rdi, r12", "call r13", "ud2")
}

/// Saves the calling context at `save` and continues the one saved as `load`.
///
/// # Safety
/// `load` was saved by this function or made by [`prepare_stack`], and nobody else continues it.
#[unsafe(naked)]
unsafe extern "C" fn swap(save: &AtomicUsize, load: usize) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_new_stack_has_its_frame_below_its_end() {
        extern "C" fn main(_: usize) {}
        let pointer = prepare_stack(main, 3);
        assert!(pointer % 16 == 8 && STACK_SLOT_BYTES - pointer % STACK_SLOT_BYTES < 128);
    }

    #[test]
    fn a_context_is_started_with_its_number_on_an_aligned_stack() {
        static SEEN: AtomicU64 = AtomicU64::new(0);
        static CALLER: AtomicUsize = AtomicUsize::new(0);
        static BACK: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn main(number: usize) {
            let local = 0u128;
            let is_aligned = ptr::from_ref(&local).addr().is_multiple_of(16);
            SEEN.store(number as u64 * 2 + u64::from(is_aligned), Ordering::Relaxed);
            // SAFETY: the test saved itself there, and waits.
            unsafe { swap(&BACK, CALLER.load(Ordering::Relaxed)) };
        }
        // SAFETY: the frame was just made.
        unsafe { swap(&CALLER, prepare_stack(main, 21)) };
        assert_eq!(SEEN.load(Ordering::Relaxed), 43);
    }
}
