//! Contexts of a replay: the loop over the events, and the threads that it lets run until their next call.
//!
//! All run on one processor, one at a time, so nothing here is used by two at once. The machine's handlers of signals read
//! [`CURRENT_BLOCK`] alone.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use abi::limits::{MESSAGE_WORDS, NEVER, STACK_GUARD_BYTES, STACK_RESERVE_BYTES, STACK_SLOT_BYTES};
use abi::{AbiReturn, stack};
use hal_api::{Fault, KernelEntries};

use crate::lock::{AtomicRef, SpinLock};
use crate::machine::machine;
use crate::process::Epitaph;
use crate::thread::{self, MessageBuffer};
use crate::{arch, cpu, memory};

use super::{output, position};

/// A thread that is replayed.
pub struct Context {
    /// Address of its thread block.
    block: usize,
    saved: AtomicUsize,
    answer: [AtomicU64; 2],
}

/// Why a thread does not run on.
#[derive(Clone, Debug)]
pub enum Stop {
    /// It called a function with these arguments and words of its message buffer.
    Call {
        /// Number of the function.
        function: usize,
        /// The arguments; those beyond the function's are 0.
        arguments: [u64; 6],
    },
    /// It ended its process.
    Fault(Epitaph),
    /// It made no call in the time that it had.
    Endless,
}

/// What a replay needs of the ABI's entries, which are above.
pub struct Hooks {
    /// Address of the ABI table of a replay.
    pub table_address: usize,
    /// Whether an instruction is a program's.
    pub is_sip_code: extern "C" fn(usize) -> bool,
    /// Whether a fault is a stack's end that an entry has met: thread block, instruction, address.
    pub is_overflow_at_entry: fn(usize, usize, usize) -> bool,
    /// The epitaph of a fault of a thread with this thread block.
    pub describe_fault: fn(usize, &Fault) -> Epitaph,
    /// The epitaph of a call with the stack used up.
    pub used_up_at_call: fn() -> Epitaph,
}

static HOOKS: AtomicRef<Hooks> = AtomicRef::none();

/// Sets what the entries give. Called before anything is replayed.
pub fn start(hooks: Hooks) {
    HOOKS.set(Some(Box::leak(Box::new(hooks))));
}

fn hooks() -> &'static Hooks {
    match HOOKS.get() {
        Some(hooks) => hooks,
        None => unreachable!("a replay sets them before it begins"),
    }
}

static CURRENT: AtomicRef<Context> = AtomicRef::none();
/// Address of its thread block, or 0.
static CURRENT_BLOCK: AtomicUsize = AtomicUsize::new(0);
static STOP: SpinLock<Option<Stop>> = SpinLock::new(None);
static MAIN: AtomicUsize = AtomicUsize::new(0);
static LEFT: AtomicBool = AtomicBool::new(false);
/// When the running thread is interrupted, in ns of the machine's clock.
static LIMIT_NS: AtomicU64 = AtomicU64::new(NEVER);

impl Context {
    /// Makes a thread that starts at `entry`, in the stack slot of this thread block; `None` if there is no such slot.
    /// The entry is checked to be code. What ran in the slot before does not run any more.
    pub fn start(block: usize, handle: u64, entry: usize, argument: u64) -> Option<&'static Context> {
        let slot = block & !(STACK_SLOT_BYTES - 1);
        if block != thread::block_in(slot)
            || !super::memory::may_run_in(slot)
            || !machine().layout().stacks.contains(slot)
            || !(hooks().is_sip_code)(entry)
        {
            return None;
        }
        machine().guard(stack::start(slot), STACK_GUARD_BYTES);
        memory::clear_thread_block(block, hooks().table_address, handle);
        // SAFETY: the slot lies in the stack arena, whole and aligned, and nothing runs in it any more; a colour is a
        // multiple of 16, and the block aligned to 1024.
        let saved = unsafe { arch::prepare_stack(block - thread::colour(block), arrived, entry, argument as usize) };
        let answer = [const { AtomicU64::new(0) }; 2];
        Some(Box::leak(Box::new(Context { block, saved: AtomicUsize::new(saved), answer })))
    }

    /// Its message buffer.
    pub fn buffer(&self) -> MessageBuffer {
        MessageBuffer::of_block(self.block)
    }

    /// Sets what its call returns.
    pub fn answer(&self, answer: AbiReturn, words: &[u64]) {
        self.buffer().write_words(&words[..words.len().min(MESSAGE_WORDS)]);
        self.answer[0].store(answer.status, Ordering::Relaxed);
        self.answer[1].store(answer.value, Ordering::Relaxed);
    }

    /// Lets it run until it stops, no longer than to this time.
    pub fn run(&'static self, limit_ns: u64) -> Stop {
        CURRENT.set(Some(self));
        CURRENT_BLOCK.store(self.block, Ordering::Relaxed);
        LIMIT_NS.store(limit_ns, Ordering::Relaxed);
        cpu::this().stack_limit.store(stack::start(self.block) + STACK_RESERVE_BYTES, Ordering::Relaxed);
        // SAFETY: it was saved by `back` or made by `start`, and runs nowhere; no lock is held.
        unsafe { arch::switch(&MAIN, self.saved.load(Ordering::Relaxed), &LEFT) };
        STOP.lock().take().unwrap_or(Stop::Endless)
    }
}

/// A replayed thread calls a function.
pub fn call(function: usize, arguments: &[u64]) -> AbiReturn {
    let mut six = [0; 6];
    six.iter_mut().zip(arguments).for_each(|(word, argument)| *word = *argument);
    let context = back(Stop::Call { function, arguments: six });
    let [status, value] =
        context.map_or([0; 2], |context| context.answer.each_ref().map(|word| word.load(Ordering::Relaxed)));
    AbiReturn { status, value }
}

/// Stops the running thread. Returns when it is let run again.
fn back(why: Stop) -> Option<&'static Context> {
    let context = CURRENT.get()?;
    position::leave();
    CURRENT.set(None);
    CURRENT_BLOCK.store(0, Ordering::Relaxed);
    *STOP.lock() = Some(why);
    // SAFETY: the loop was saved when it let this thread run, and waits for it; no lock is held.
    unsafe { arch::switch(&context.saved, MAIN.load(Ordering::Relaxed), &LEFT) };
    Some(context)
}

/// Stops the running thread for good.
fn end(why: Stop) -> ! {
    back(why);
    unreachable!("a thread whose process has ended is not let run")
}

/// A replayed thread has called with its stack used up. It ends, so nothing on the stack is needed.
#[unsafe(naked)]
pub extern "C" fn stack_used_up() -> ! {
    core::arch::naked_asm!(
        "mov rsp, [rip + {block}]",
        "call {then}",
        "ud2",
        block = sym CURRENT_BLOCK,
        then = sym end_overflowed,
    )
}

extern "C" fn end_overflowed() -> ! {
    end(Stop::Fault((hooks().used_up_at_call)()))
}

/// Entry points for the machine.
pub fn entries() -> KernelEntries {
    KernelEntries {
        is_sip_code: hooks().is_sip_code,
        overflowed_at_entry,
        tick,
        interrupt,
        fault,
        stack_top,
        fired,
        running: || None,
        device_complete: output::completed,
    }
}

extern "C" fn arrived() {}

extern "C" fn overflowed_at_entry(instruction: usize, address: usize) -> bool {
    (hooks().is_overflow_at_entry)(stack_top(), instruction, address)
}

extern "C" fn tick(_timer: bool) -> bool {
    machine().monotonic_ns() > LIMIT_NS.load(Ordering::Relaxed)
}

extern "C" fn interrupt() {
    end(Stop::Endless)
}

extern "C" fn fault(fault: &Fault) -> ! {
    end(Stop::Fault((hooks().describe_fault)(stack_top(), fault)))
}

extern "C" fn stack_top() -> usize {
    CURRENT_BLOCK.load(Ordering::Relaxed)
}

extern "C" fn fired(_line: u32) {}
