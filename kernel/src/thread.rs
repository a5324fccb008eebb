//! Threads: their records, message buffers, and life cycle from creation to burial.
//!
//! A thread's slot belongs to its SIP until the thread has ended *and* its handle was joined or released, or the SIP
//! ends. Its stack is freed as soon as a processor has switched away from it for the last time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::limits::{MESSAGE_WORDS, STACK_GUARD_BYTES, STACK_RESERVE_BYTES, STACK_SLOT_BYTES};
use abi::{Status, stack};

use crate::alarm::Alarm;
use crate::handle::{self, Kind};
use crate::latency::Stretch;
use crate::lock::{AtomicRef, SpinLock};
use crate::machine::machine;
use crate::pending_call::PendingCall;
use crate::process::{self, Process};
use crate::shortage::{Scarce, no_slot, used_up};
use crate::slab::{Charged, Links, Listed, Slab, Slot};
use crate::space::{self, Space, SpaceRef};
use crate::wait::{HandOver, Waiters};
use crate::wait_word::{self, RUNNABLE};
use crate::{arch, memory};

/// All threads.
pub static THREADS: Slab<Thread> = Slab::new();

/// Number of different stack offsets below the thread block.
const STACK_COLOURS: usize = 16;
/// Bytes between two offsets.
const STACK_COLOUR_BYTES: usize = 192;

/// One thread. Fields are the thread's own while it runs, the run queue's while it is queued.
#[derive(Default)]
pub struct Thread {
    /// Saved stack pointer while it does not run.
    pub saved: AtomicUsize,
    /// Whether a processor is still on its stack.
    pub on_cpu: AtomicBool,
    /// Its state: see [`crate::wait_word`].
    pub state: AtomicU32,
    /// Why its last wait ended: a [`crate::wait::Woken`].
    pub woken: AtomicU32,
    /// Value handed over with the wake-up.
    pub handed: HandOver,
    /// Time of its wake-up.
    pub alarm: Alarm,
    /// Its SIP.
    pub process: AtomicRef<Slot<Process>>,
    /// Low end of its stack slot: the kernel's, if it is in a domain.
    pub stack: AtomicUsize,
    /// The lowest stack pointer with which it may call the kernel: what is below in that slot's stack is the kernel's.
    pub limit: AtomicUsize,
    /// What it has beside if it is in a domain.
    pub inside: Inside,
    /// Next in a run queue.
    pub next: AtomicRef<Slot<Thread>>,
    /// The processor it runs or last ran on.
    pub cpu: AtomicU32,
    /// Processor cycles charged to it: exact if it ran alone, else sampled.
    pub cycles: AtomicU64,
    /// Links in its SIP's list.
    pub links: Links,
    /// Its end.
    pub end: SpinLock<End>,
    /// Measures how long it keeps its processor.
    pub stretch: Stretch,
    /// The call that it is in, if the run is recorded.
    pub pending: [PendingCall; cfg!(feature = "recording") as usize],
}

/// What a thread in a domain has there. Its [`Thread::stack`] is out of the domain's reach, with a message buffer that
/// is copied in and out at each call.
#[derive(Default)]
pub struct Inside {
    /// The space; none if it is the kernel's own.
    pub space: AtomicRef<Slot<Space>>,
    /// Low end of its stack slot in the domain, or 0. Given up with the space's spare stacks locked.
    pub stack: AtomicUsize,
    /// The lowest address of that stack: its guard's.
    pub low: AtomicUsize,
    /// Its stack pointer at its latest call; any value.
    pub pointer: AtomicUsize,
    /// Address of its first instruction, and its argument.
    pub start: [AtomicUsize; 2],
}

/// State of a thread's end.
#[derive(Default)]
pub struct End {
    /// Runs no more, but may still be on its stack. It stays in its SIP's list until it is released.
    pub left: bool,
    /// Has ended, and its stack is free.
    pub ended: bool,
    /// Will not be joined.
    pub released: bool,
    /// Joining threads.
    pub waiters: Waiters,
}

impl Listed for process::Threads {
    fn links(index: u32) -> Option<&'static Links> {
        THREADS.slot(index).map(|slot| &slot.links)
    }
}

impl Charged for process::Threads {
    /// Its record, an entry in the timer queue and tickets of its waits.
    const RECORD_BYTES: usize = size_of::<Slot<Thread>>() + 128;
}

/// A reference to a thread.
pub type ThreadRef = &'static Slot<Thread>;

/// Offset of [`Thread::stack`] in a thread's slot.
pub const STACK_OFFSET: usize = Slot::<Thread>::VALUE_OFFSET + core::mem::offset_of!(Thread, stack);

impl Slot<Thread> {
    /// Its handle.
    pub fn handle(&'static self) -> u64 {
        handle::encode(Kind::Thread, self.index(), self.generation())
    }

    /// Address of its [`abi::ThreadBlock`], from which its stack grows down.
    #[inline(always)]
    pub fn block_address(&self) -> usize {
        block_in(self.stack.load(Ordering::Relaxed))
    }

    /// The same of the thread block that its SIP knows.
    pub fn sip_block_address(&self) -> usize {
        match self.inside.stack.load(Ordering::Relaxed) {
            0 => self.block_address(),
            stack => block_in(stack),
        }
    }

    /// Bytes left on its SIP's stack, while it is in a call from a domain.
    pub fn sip_stack_left(&self) -> usize {
        let [low, pointer] = [&self.inside.low, &self.inside.pointer].map(|word| word.load(Ordering::Relaxed));
        pointer.wrapping_sub(low).min(STACK_SLOT_BYTES)
    }

    /// Its SIP. Every thread that has been created has one.
    #[inline(always)]
    pub fn owner(&self) -> Option<&'static Slot<Process>> {
        self.process.get()
    }

    /// The words of its stack from an address on, of the calling thread, up to its thread block. None if it is in a
    /// domain, whose code may have left its stack pointer anywhere.
    pub fn stack_words(&self, from: usize) -> impl Iterator<Item = usize> {
        let top = self.block_address();
        let lowest = memory::stack_start(top) + STACK_GUARD_BYTES;
        let is_in_domain = self.inside.space.get().is_some();
        let first = if is_in_domain { top } else { from.next_multiple_of(size_of::<usize>()).max(lowest) };
        (first..top).step_by(size_of::<usize>()).map(|address| {
            // SAFETY: the word lies in the thread's stack slot above its guard, which is mapped and aligned. Another
            // thread of the SIP may have been lent what is there and write to it; so it is read as volatile, and any
            // value is as good as another.
            unsafe { (address as *const usize).read_volatile() }
        })
    }

    /// Bytes of memory behind its stack, up to the usual size: the rest counts as its SIP's pages.
    pub fn stack_bytes(&self) -> usize {
        let both = [&self.stack, &self.inside.stack].map(|stack| match stack.load(Ordering::Relaxed) {
            0 => 0,
            slot => {
                let (start, bytes) = memory::usable_stack(slot);
                machine().stack_in_use(start, bytes).min(stack::USUAL_BYTES)
            }
        });
        both.iter().sum()
    }

    /// The message buffer.
    #[inline(always)]
    pub fn message(&'static self) -> MessageBuffer {
        MessageBuffer { address: self.block_address() }
    }
}

/// Bytes between a thread's block and its first frame. Slots are aligned alike, so without this the hot ends of all
/// stacks would share cache sets.
pub fn colour(stack: usize) -> usize {
    (stack / STACK_SLOT_BYTES % STACK_COLOURS) * STACK_COLOUR_BYTES
}

/// Address of the thread block in a stack slot.
pub fn block_in(stack: usize) -> usize {
    stack + STACK_SLOT_BYTES - size_of::<abi::ThreadBlock>()
}

/// Message buffer of a thread that is in the kernel or not running.
#[derive(Clone, Copy)]
pub struct MessageBuffer {
    address: usize,
}

impl MessageBuffer {
    /// The buffer in a thread block at this address, of a thread that does not run.
    pub(crate) fn of_block(address: usize) -> MessageBuffer {
        MessageBuffer { address }
    }

    /// Leaks a buffer without a thread, for tests.
    #[cfg(test)]
    pub fn leaked() -> MessageBuffer {
        let block: &'static mut [u64; MESSAGE_WORDS] = Box::leak(Box::new([0; MESSAGE_WORDS]));
        MessageBuffer { address: block.as_mut_ptr().expose_provenance() }
    }

    /// Reads a word, or 0 past the end.
    #[inline(always)]
    pub fn get(self, index: usize) -> u64 {
        if index >= MESSAGE_WORDS {
            return 0;
        }
        // SAFETY: the buffer is the start of the ThreadBlock at the top of a mapped stack slot, and its thread is in
        // the kernel, so there is no concurrent write.
        unsafe { (self.address as *const u64).add(index).read() }
    }

    /// Writes a word; ignored past the end.
    #[inline(always)]
    pub fn set(self, index: usize, value: u64) {
        if index < MESSAGE_WORDS {
            // SAFETY: as for `get`.
            unsafe { (self.address as *mut u64).add(index).write(value) };
        }
    }

    /// Applies `read` to the first words, of which there are no more than the buffer has. It does not switch to another
    /// thread, nor write to the buffer.
    #[inline(always)]
    pub fn with_words<R>(self, count: usize, read: impl FnOnce(&[u64]) -> R) -> R {
        // SAFETY: as for `get`; the thread is in `read`, so nothing writes to the buffer meanwhile.
        read(unsafe { core::slice::from_raw_parts(self.address as *const u64, count.min(MESSAGE_WORDS)) })
    }

    /// Copies words out, up to the shorter length.
    #[inline(always)]
    pub fn read_words(self, into: &mut [u64]) {
        let count = into.len().min(MESSAGE_WORDS);
        for (index, word) in into.iter_mut().enumerate().take(count) {
            *word = self.get(index);
        }
    }

    /// Copies words in, up to the shorter length.
    #[inline(always)]
    pub fn write_words(self, from: &[u64]) {
        for (index, &word) in from.iter().enumerate().take(MESSAGE_WORDS) {
            self.set(index, word);
        }
    }

    /// Returns the first `length` bytes.
    pub fn bytes(self, length: usize) -> Option<Vec<u8>> {
        if length > MESSAGE_WORDS * 8 {
            return None;
        }
        let mut bytes = Vec::with_capacity(length + 8);
        for index in 0..length.div_ceil(8) {
            bytes.extend_from_slice(&self.get(index).to_le_bytes());
        }
        bytes.truncate(length);
        Some(bytes)
    }

    /// Writes bytes from word `first` on; returns the number that fitted.
    pub fn put_bytes(self, first: usize, bytes: &[u8]) -> usize {
        let room = MESSAGE_WORDS.saturating_sub(first) * 8;
        let fitting = &bytes[..bytes.len().min(room)];
        for (index, chunk) in fitting.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.set(first + index, u64::from_le_bytes(word));
        }
        fitting.len()
    }
}

/// Start-up values of new threads, from the entry code.
pub struct Startup {
    /// Address of the ABI table.
    pub abi_table: usize,
    /// Function that a thread calls before its own code.
    pub arrive: extern "C" fn(),
    /// What a thread in a domain runs instead of its own code.
    pub cross: extern "C" fn(),
}

static STARTUP: AtomicRef<Startup> = AtomicRef::none();

/// Sets the start-up values. Called before any thread is created.
pub fn start(startup: Startup) {
    STARTUP.set(Some(Box::leak(Box::new(startup))));
}

/// Makes the record of a thread of a SIP, and its stack, which is charged.
#[inline(never)]
fn make(process: &'static Slot<Process>) -> Result<ThreadRef, Status> {
    let size = process.stack_size();
    process.charge_stack(size)?;
    let thread = make_charged(process.space.get(), size);
    if thread.is_err() {
        process.refund_stack(size);
    }
    thread
}

fn make_charged(space: Option<SpaceRef>, size: usize) -> Result<ThreadRef, Status> {
    // A thread in a domain has its stack there, and one of the kernel's.
    let own = memory::allocate_stack(if space.is_some() { 0 } else { size });
    let stack = own.ok_or_else(|| used_up(Scarce::Threads))?;
    let thread = THREADS.allocate().map_err(|full| {
        memory::free_stack(stack);
        no_slot(full, Scarce::Threads)
    })?;
    thread.stack.store(stack, Ordering::Relaxed);
    thread.limit.store(memory::stack_start(stack) + STACK_RESERVE_BYTES, Ordering::Relaxed);
    if let Some(space) = space
        && let Err(status) = prepare_inside(thread, space, size)
    {
        memory::free_stack(stack);
        THREADS.release(thread);
        return Err(status);
    }
    Ok(thread)
}

/// Creates a thread of a SIP. `entry` is already checked to lie in the SIP's code. The thread does not run until it is
/// made runnable.
pub fn create(process: &'static Slot<Process>, entry: usize, argument: Argument) -> Result<ThreadRef, Status> {
    let startup = STARTUP.get().ok_or(Status::WrongState)?;
    let thread = make(process)?;
    thread.process.set(Some(process));
    thread.next.set(None);
    thread.cycles.store(0, Ordering::Relaxed);
    // The wait counter continues from the slot's last user, so that a waker's stale claim fails.
    let waits = thread.state.load(Ordering::Relaxed) & !3;
    thread.state.store(wait_word::with_state(waits.wrapping_add(4), RUNNABLE), Ordering::Relaxed);
    *thread.end.lock() = End::default();
    let block = thread.block_address();
    memory::clear_thread_block(block, startup.abi_table, thread.handle());
    let argument = match argument {
        Argument::ThreadBlock => thread.sip_block_address(),
        Argument::Word(word) => word as usize,
    };
    thread.inside.start[0].store(entry, Ordering::Relaxed);
    thread.inside.start[1].store(argument, Ordering::Relaxed);
    let entry = match thread.inside.space.get() {
        None => entry,
        Some(_) => startup.cross as *const () as usize,
    };
    let stack = thread.stack.load(Ordering::Relaxed);
    // SAFETY: the slot was just allocated; `block` is 1024-aligned and the colour a multiple of 16.
    let saved = unsafe { arch::prepare_stack(block - colour(stack), startup.arrive, entry, argument) };
    thread.saved.store(saved, Ordering::Relaxed);
    thread.on_cpu.store(false, Ordering::Relaxed);
    process.threads.lock().insert(thread.index());
    process.live_threads.fetch_add(1, Ordering::AcqRel);
    Ok(thread)
}

/// Makes the part of a thread that is in a domain: its stack there, with its thread block.
#[cold]
fn prepare_inside(thread: ThreadRef, space: SpaceRef, size: usize) -> Result<(), Status> {
    let stack = memory::allocate_stack_in(space, size).ok_or_else(|| used_up(Scarce::Threads))?;
    memory::clear_thread_block(block_in(stack), space::table_address(), thread.handle());
    thread.inside.space.set(Some(space.refer()));
    thread.inside.low.store(memory::stack_start(stack), Ordering::Relaxed);
    thread.inside.stack.store(stack, Ordering::Relaxed);
    Ok(())
}

/// Frees the part of a thread that is in a domain, which it does not enter any more.
#[cold]
fn bury_inside(thread: ThreadRef, space: SpaceRef) {
    memory::free_stack_in(space, &thread.inside.stack);
    space.forget();
}

/// Contents of a new thread's first register.
pub enum Argument {
    /// The address of its thread block.
    ThreadBlock,
    /// A word from the creator.
    Word(u64),
}

/// Frees the stack of a thread that no processor is on any more.
pub fn bury(thread: ThreadRef) {
    memory::free_stack(thread.stack.swap(0, Ordering::AcqRel));
    if let Some(space) = thread.inside.space.take() {
        bury_inside(thread, space);
    }
    let gone = {
        let mut end = thread.end.lock();
        let released = end.released;
        end.ended = true;
        if !released {
            end.waiters.wake_all();
        }
        released
    };
    if gone {
        THREADS.release(thread);
    }
}
