//! The pages that the kernel and one domain share: commands, and the runners' exchange pages.
//!
//! Key types: [`Controls`], the file of all parts; [`Control`], a domain's part. The domain can write the exchange pages at any time, so they are only ever read and written
//! by atomic words, and what was read is a claim.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hal_api::DomainContext;

use super::window::{self, COMMAND_WORDS, RING, RUNNER_BYTES, RUNNERS};

const CONTEXT_WORDS: usize = size_of::<DomainContext>() / 8;
/// First word of a context after the vector state.
const FIRST_REGISTER: usize = 64;

/// A command: a system call that the mapper makes.
pub(super) type Command = [u64; COMMAND_WORDS];

/// A mapping of the file of controls.
#[derive(Debug)]
pub(super) struct Controls {
    base: usize,
    /// Parts that nobody uses. They are zero.
    free: Mutex<Vec<usize>>,
}

impl Controls {
    /// Maps a new file of controls, of [`window::CONTROLS_BYTES`].
    pub(super) fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the host's choice touches nothing that exists.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), window::CONTROLS_BYTES, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.expose_provenance(), free: Mutex::new((0..window::PARTS).rev().collect()) })
    }

    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free part.
    pub(super) fn take(self: &Arc<Self>) -> Option<Control> {
        let part = self.free().pop()?;
        Some(Control { controls: Arc::clone(self), part })
    }

    /// The template's part, which is taken once.
    pub(super) fn of_template(self: &Arc<Self>) -> Control {
        Control { controls: Arc::clone(self), part: window::TEMPLATE }
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and what refers to it shares it.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.base), window::CONTROLS_BYTES) };
    }
}

/// A domain's part of the file of controls.
#[derive(Debug)]
pub(super) struct Control {
    controls: Arc<Controls>,
    part: usize,
}

impl Control {
    /// Number of the part.
    pub(super) fn part(&self) -> usize {
        self.part
    }

    /// Offset in the file of a place in this part.
    pub(super) fn offset(&self, place: usize) -> u64 {
        (self.part * window::CONTROL_BYTES + place) as u64
    }

    /// Offset in the file of the acknowledged commands' number.
    pub(super) fn acknowledged_offset(&self) -> u64 {
        (window::ACKNOWLEDGED + self.part * 4) as u64
    }

    /// Returns the number of commands that the mapper has acknowledged.
    pub(super) fn acknowledged(&self) -> u32 {
        // SAFETY: an aligned word of the mapping, which lives as long as `self`; only the host writes it otherwise.
        let word = unsafe { AtomicU32::from_ptr(self.address(window::ACKNOWLEDGED + self.part * 4)) };
        word.load(Ordering::Acquire)
    }

    fn address<T>(&self, offset: usize) -> *mut T {
        ptr::with_exposed_provenance_mut(self.controls.base + offset)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < window::CONTROL_BYTES, "a word of the part");
        // SAFETY: an aligned word of the mapping, which lives as long as `self`; everybody reads and writes it by words.
        unsafe { AtomicU64::from_ptr(self.address(self.offset(offset) as usize)) }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < window::CONTROL_BYTES, "a word of the part");
        // SAFETY: as in `word`. Halves and words do not overlap.
        unsafe { AtomicU32::from_ptr(self.address(self.offset(offset) as usize)) }
    }

    /// Clears the part, and frees it for another domain; the last thing that is done with it. Nobody uses it: the domain's
    /// process has no memory any more, or was not made. It had this many runners.
    pub(super) fn free(&mut self, runners: usize) {
        let bytes = RUNNERS - window::COMMANDS + runners * RUNNER_BYTES;
        // SAFETY: the part is this value's, which nothing borrows; no other process has it mapped.
        unsafe {
            self.address::<u8>(self.offset(0) as usize).write_bytes(0, bytes);
            self.address::<u32>(window::ACKNOWLEDGED + self.part * 4).write(0);
        }
        self.controls.free().push(self.part);
    }

    /// Clears what the first runner can write, but for its address and the number of its thread, and has it reset itself
    /// when it wakes; and wakes it. It is asleep.
    pub(super) fn reset(&self, thread: u64) {
        let runner = self.runner(0);
        let address = runner.word(window::SELF);
        (0..RUNNER_BYTES).step_by(8).for_each(|place| runner.set_word(place, 0));
        runner.set_word(window::SELF, address);
        runner.set_word(window::THREAD, thread);
        // There is no turn to wait for awake.
        runner.rest(window::AT_ONCE);
        self.half(window::RESET).store(1, Ordering::SeqCst);
        wake(runner.half(window::TURN));
    }

    /// Has the first runner wake as ever.
    pub(super) fn end_reset(&self) {
        self.half(window::RESET).store(0, Ordering::SeqCst);
    }

    /// Has the mapper wait awake for a while, and wakes it, so that it is when there is a command.
    pub(super) fn begin_soon(&self) {
        self.half(window::MAPPER_RESTS).store(0, Ordering::Relaxed);
        wake(self.half(0));
    }

    /// Has mapper and first runner sleep as soon as there is nothing to do.
    pub(super) fn rest(&self) {
        self.half(window::MAPPER_RESTS).store(1, Ordering::Relaxed);
        self.runner(0).rest(window::AT_ONCE);
    }

    /// Clears all commands. They have been done.
    pub(super) fn clear_commands(&self) {
        (0..RING as u32).for_each(|number| self.put(number, &[0; COMMAND_WORDS]));
    }

    /// Puts a command at a place of the ring. The mapper sees it once it is [`issue`](Self::issue)d.
    pub(super) fn put(&self, number: u32, command: &Command) {
        let place = window::RING_OFFSET + number as usize % RING * COMMAND_WORDS * 8;
        for (index, value) in command.iter().enumerate() {
            self.word(place + index * 8).store(*value, Ordering::Relaxed);
        }
    }

    /// Issues all commands below this number.
    pub(super) fn issue(&self, end: u32) {
        let issued = self.half(0);
        issued.store(end, Ordering::SeqCst);
        wake(issued);
    }

    /// The exchange page of a runner.
    pub(super) fn runner(&self, number: usize) -> Exchange<'_> {
        assert!(number < window::MAX_RUNNERS, "a runner of the window");
        Exchange { control: self, base: RUNNERS - window::COMMANDS + number * RUNNER_BYTES }
    }
}

/// What the kernel exchanges with a runner.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    control: &'a Control,
    base: usize,
}

impl Exchange<'_> {
    pub(super) fn word(&self, offset: usize) -> u64 {
        self.control.word(self.base + offset).load(Ordering::Relaxed)
    }

    pub(super) fn set_word(&self, offset: usize, value: u64) {
        self.control.word(self.base + offset).store(value, Ordering::Relaxed);
    }

    pub(super) fn half(&self, offset: usize) -> &AtomicU32 {
        self.control.half(self.base + offset)
    }

    /// Whether it is the kernel's turn.
    pub(super) fn is_out(&self) -> bool {
        self.half(window::TURN).load(Ordering::Acquire) == window::OF_KERNEL
    }

    /// Whether a thread sleeps until the turn changes. For the first runner's turn the host knows it for certain, and where
    /// in the stub the thread is: no other instruction may wait for it.
    pub(super) fn is_asleep(&self) -> bool {
        let turn = self.half(window::TURN).as_ptr();
        // Whoever waits for the word goes on waiting for the same word, and is counted.
        // SAFETY: FUTEX_REQUEUE reads no memory.
        let count = unsafe { libc::syscall(libc::SYS_futex, turn, libc::FUTEX_REQUEUE, 0, 1, turn, 0) };
        count == 1
    }

    /// Says how the runner is to wait: [`window::SOON`] or [`window::AT_ONCE`] asleep.
    pub(super) fn rest(&self, how: u32) {
        self.half(window::REST).store(how, Ordering::Relaxed);
    }

    /// Whether the runner says that it is on the processor of the host that the kernel was on when it gave the turn.
    pub(super) fn shares_processor(&self) -> bool {
        let of = |place| self.half(place).load(Ordering::Relaxed);
        of(window::RUNNER_PROCESSOR) == of(window::KERNEL_PROCESSOR)
    }

    /// Gives the mapper the turn, which gives it to the domain.
    pub(super) fn go_by_mapper(&self) {
        self.prepare(window::SOON);
        self.half(window::TURN).swap(window::OF_MAPPER, Ordering::SeqCst);
    }

    fn prepare(&self, rest: u32) {
        self.half(window::KERNEL_PROCESSOR).store(processor_of_host(), Ordering::Relaxed);
        self.rest(rest);
    }

    /// Gives the domain its turn.
    pub(super) fn go(&self) {
        self.prepare(0);
        self.half(window::TURN).swap(window::OF_DOMAIN, Ordering::SeqCst);
        if self.half(window::RUNNER_SLEEPS).load(Ordering::SeqCst) != 0 {
            wake(self.half(window::TURN));
        }
    }

    /// Sleeps until it may be the kernel's turn, a signal came, or the time is over: then it returns true.
    pub(super) fn sleep(&self, limit: Duration) -> bool {
        self.half(window::KERNEL_SLEEPS).swap(1, Ordering::SeqCst);
        let turn = self.half(window::TURN);
        let mut is_over = false;
        let whose = turn.load(Ordering::SeqCst);
        if whose != window::OF_KERNEL {
            let limit = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
            // SAFETY: the word and the timespec live across the call, which only reads them.
            let answer = unsafe { libc::syscall(libc::SYS_futex, turn.as_ptr(), libc::FUTEX_WAIT, whose, &limit) };
            is_over = answer != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT);
        }
        self.half(window::KERNEL_SLEEPS).store(0, Ordering::Relaxed);
        is_over
    }

    /// Writes a context: all of it, or the registers alone.
    pub(super) fn put_context(&self, context: &DomainContext) {
        // SAFETY: a context is plain words, aligned and without padding.
        let words = unsafe { &*ptr::from_ref(context).cast::<[u64; CONTEXT_WORDS]>() };
        let first = if context.is_whole == 0 { FIRST_REGISTER } else { 0 };
        for (index, value) in words.iter().enumerate().skip(first) {
            self.set_word(window::CONTEXT + index * 8, *value);
        }
    }

    /// Reads a context that the domain claims: the vector state only if it says that the context is whole.
    pub(super) fn take_context(&self, context: &mut DomainContext) {
        let is_whole = self.word(window::CONTEXT + (CONTEXT_WORDS - 2) * 8) != 0;
        // SAFETY: a context is plain words, aligned and without padding, and any value is one.
        let words = unsafe { &mut *ptr::from_mut(context).cast::<[u64; CONTEXT_WORDS]>() };
        let first = if is_whole { 0 } else { FIRST_REGISTER };
        for (index, value) in words.iter_mut().enumerate().skip(first) {
            *value = self.word(window::CONTEXT + index * 8);
        }
        context.is_whole = is_whole.into();
    }
}

/// Returns the number of the host's processor that the calling thread is on.
fn processor_of_host() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { libc::sched_getcpu() as u32 }
}

const _: () = assert!(
    CONTEXT_WORDS * 8 == size_of::<DomainContext>()
        && std::mem::offset_of!(DomainContext, registers) == FIRST_REGISTER * 8
);

/// Wakes all who wait for a word: code in the domain can wait for it too, and must not take the mapper's or a runner's
/// turn to be woken.
fn wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE reads no memory. The word is shared with another process, so it is no private futex.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, libc::c_int::MAX) };
}
