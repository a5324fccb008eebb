//! Processors as host threads: starting, timers, idling and waking.
//!
//! Key type: [`Processors`]. Neighbours: `signal` handles the timers' signals. Deliberately not here: the code that a
//! processor runs.

use std::cell::Cell;
use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread;

use hal_api::KernelEntries;

use crate::clock::Clock;
use crate::{entries, signal, trampoline};

/// Maximum processors: the kernel keeps a bit for each.
pub(crate) const MAX_PROCESSORS: usize = 64;

const QUANTUM_NS: libc::c_long = 10_000_000;
const STACK_BYTES: usize = 2 * 1024 * 1024;
const SIGNAL_STACK_BYTES: usize = 64 * 1024;
const ARCH_SET_GS: libc::c_int = 0x1001;
/// Spins between yields of the host's processor.
const SPINS_BEFORE_YIELD: u32 = 64;

/// Running, without a pending wake.
const RUNNING: u32 = 0;
/// A wake is pending that no idle has consumed.
const WOKEN: u32 = 1;
/// Sleeping on the futex.
const ASLEEP: u32 = 2;

thread_local! {
    /// Whether this host thread is a processor, so that its GS base is the kernel's. It has no
    /// destructor and a constant initializer, so a signal handler may read it.
    static IS_PROCESSOR: Cell<bool> = const { Cell::new(false) };
    /// Whether a tick or an interrupt came since [`forget_interrupts`]. Readable in handlers, too.
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    /// The futex word of the processor that this host thread is, else null. Readable in handlers, too.
    static CURRENT_WORD: Cell<*const AtomicU32> = const { Cell::new(ptr::null()) };
}

/// Returns whether the calling host thread is a processor. Async-signal-safe.
pub(crate) fn is_current_thread() -> bool {
    IS_PROCESSOR.get()
}

/// Notes an interrupt of the calling processor. Async-signal-safe.
pub(crate) fn note_interrupt() {
    IS_INTERRUPTED.set(true);
}

/// Whether there was an interrupt of the calling processor.
pub(crate) fn was_interrupted() -> bool {
    IS_INTERRUPTED.get()
}

/// Forgets interrupts of the calling processor until now.
pub(crate) fn forget_interrupts() {
    IS_INTERRUPTED.set(false);
}

/// Makes the calling host thread all the processors of a machine, for good: with a stack for signal handlers, and
/// handlers for faults. What runs on it sets the base register of the processor that it is at the moment
/// ([`set_base`]).
pub fn become_all_processors(kernel: KernelEntries) {
    std::mem::forget(SignalStack::install());
    trampoline::prepare(&kernel);
    entries::publish(kernel);
    signal::install_faults();
    IS_PROCESSOR.set(true);
}

/// One processor; on a cache line of its own, because others write to `word`.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Processor {
    /// `RUNNING`, `WOKEN` or `ASLEEP`; also the futex.
    word: AtomicU32,
    /// The host's thread id while it runs; else 0.
    thread: AtomicI32,
}

/// All processors.
#[derive(Debug)]
pub(crate) struct Processors {
    list: Box<[Processor]>,
    clock: Clock,
}

impl Processors {
    /// Creates `count` processors whose deadlines are of this clock.
    pub(crate) fn new(count: usize, clock: Clock) -> Self {
        Self { list: (0..count).map(|_| Processor::default()).collect(), clock }
    }

    /// Returns their number.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Runs `main` on each; returns when all have returned.
    ///
    /// # Panics
    /// If there is not one base per processor, or the host cannot create the threads.
    pub(crate) fn run(&self, bases: &[usize], main: extern "C" fn(usize), kernel: KernelEntries) {
        assert_eq!(bases.len(), self.count(), "one base for each processor");
        trampoline::prepare(&kernel);
        entries::publish(kernel);
        thread::scope(|scope| {
            for (number, (processor, &base)) in self.list.iter().zip(bases).enumerate() {
                let started = thread::Builder::new()
                    .name(format!("processor {number}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || processor.run(number, base, main));
                if let Err(error) = started {
                    panic!("the host gives no thread for processor {number} ({error}); ask for fewer processors");
                }
            }
        });
    }

    /// See [`hal_api::Machine::idle`].
    pub(crate) fn idle(&self, number: usize, deadline_ns: u64) {
        let word = &self.list[number].word;
        if word.compare_exchange(RUNNING, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let deadline = self.clock.host_deadline(deadline_ns);
            while word.load(Ordering::Acquire) == ASLEEP && sleep_on(word, deadline.as_ref()) == Sleep::GoOn {}
        }
        word.swap(RUNNING, Ordering::AcqRel);
    }

    /// See [`hal_api::Machine::wake`].
    pub(crate) fn wake(&self, number: usize) {
        let word = &self.list[number].word;
        if word.swap(WOKEN, Ordering::AcqRel) == ASLEEP {
            // SAFETY: FUTEX_WAKE reads no memory; the word lives as long as `self`.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
        }
    }

    /// See [`hal_api::Machine::interrupt`].
    pub(crate) fn interrupt(&self, number: usize) {
        let processor = &self.list[number];
        let thread = processor.thread.load(Ordering::Acquire);
        if thread == 0 || processor.word.load(Ordering::Acquire) == ASLEEP {
            return;
        }
        // SAFETY: tgkill touches no memory. The thread is one of this process; if it has just ended,
        // the call fails without effect.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal::INTERRUPT) };
    }

    /// Makes each processor run its signal handler and check for work.
    pub(crate) fn interrupt_and_wake_all(&self) {
        for (number, processor) in self.list.iter().enumerate() {
            let thread = processor.thread.load(Ordering::Acquire);
            if thread != 0 {
                // SAFETY: as in `interrupt`.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal::INTERRUPT) };
            }
            self.wake(number);
        }
    }

    /// Marks the calling processor as woken, in a signal handler, because its reason to idle may be gone.
    /// Async-signal-safe.
    pub(crate) fn wake_current() {
        let word = CURRENT_WORD.get();
        if !word.is_null() {
            // SAFETY: the word is that of the calling thread's own processor, which outlives its `run`.
            unsafe { &*word }.swap(WOKEN, Ordering::AcqRel);
        }
    }

    /// See [`hal_api::Machine::relax`].
    pub(crate) fn relax(spins: u32) {
        std::hint::spin_loop();
        if spins >= SPINS_BEFORE_YIELD && spins.is_multiple_of(SPINS_BEFORE_YIELD) {
            thread::yield_now();
        }
    }
}

impl Processor {
    fn run(&self, number: usize, base: usize, main: extern "C" fn(usize)) {
        let _signal_stack = SignalStack::install();
        // SAFETY: the kernel's base of this processor, which this thread is.
        unsafe { set_base(base) };
        IS_PROCESSOR.set(true);
        CURRENT_WORD.set(&self.word);
        // SAFETY: gettid touches no memory.
        self.thread.store(unsafe { libc::gettid() }, Ordering::Release);
        let timer = Timer::start();
        main(number);
        drop(timer);
        self.thread.store(0, Ordering::Release);
        CURRENT_WORD.set(ptr::null());
        IS_PROCESSOR.set(false);
    }
}

#[derive(PartialEq, Eq)]
enum Sleep {
    GoOn,
    DeadlineCame,
}

/// Sleeps while the word is `ASLEEP`, at most until the deadline. May wake spuriously.
fn sleep_on(word: &AtomicU32, deadline: Option<&libc::timespec>) -> Sleep {
    let deadline = deadline.map_or(ptr::null(), ptr::from_ref);
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the deadline (null: none) live across the call, which only reads them.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            ASLEEP,
            deadline,
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    let timed_out = answer != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT);
    if timed_out { Sleep::DeadlineCame } else { Sleep::GoOn }
}

/// Sets the per-processor base register of the calling host thread.
///
/// # Safety
/// The base is one that the kernel has given the machine, of the processor that the thread is from then on.
pub unsafe fn set_base(base: usize) {
    // SAFETY: the host's own code does not use GS on x86-64; the kernel chooses the base.
    let answer = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) };
    assert!(answer == 0, "the host refused the per-processor base {base:#x}: {}", io::Error::last_os_error());
}

/// A stack for signal handlers on this host thread: a SIP's own may have overflowed, and a handler must not overwrite
/// its red zone.
struct SignalStack {
    before: libc::stack_t,
    /// Kept until another stack is set.
    _memory: Box<[MaybeUninit<u8>]>,
}

impl SignalStack {
    fn install() -> Self {
        let mut memory = Box::new_uninit_slice(SIGNAL_STACK_BYTES);
        let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIGNAL_STACK_BYTES };
        let mut before = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: the memory is owned by the value returned, which restores the former stack before it
        // frees it; `before` is a live stack_t.
        let answer = unsafe { libc::sigaltstack(&stack, &mut before) };
        assert!(answer == 0, "the host refused a signal stack: {}", io::Error::last_os_error());
        Self { before, _memory: memory }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: `before` is what the host returned; no handler runs on the stack being replaced,
        // because this code does not run in one.
        unsafe { libc::sigaltstack(&self.before, ptr::null_mut()) };
    }
}

/// Signals this host thread for each quantum of processor time that it uses: never while it sleeps.
struct Timer(libc::timer_t);

impl Timer {
    fn start() -> Self {
        // SAFETY: all-zero bytes are a valid sigevent.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal::TIMER;
        // SAFETY: gettid touches no memory.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = ptr::null_mut();
        // SAFETY: both are live; the event names this very thread.
        let created = unsafe { libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) };
        assert!(created == 0, "the host refused a timer: {}", io::Error::last_os_error());
        let quantum = libc::timespec { tv_sec: 0, tv_nsec: QUANTUM_NS };
        let setting = libc::itimerspec { it_interval: quantum, it_value: quantum };
        // SAFETY: the timer was just created, and `setting` is live.
        let set = unsafe { libc::timer_settime(timer, 0, &setting, ptr::null_mut()) };
        assert!(set == 0, "the host refused to start a timer: {}", io::Error::last_os_error());
        Self(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was created by `start` and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_wake_before_the_sleep_counts_once() {
        let clock = Clock::start();
        let processors = Processors::new(1, clock);
        processors.wake(0);
        processors.wake(0);
        processors.idle(0, u64::MAX);
        let before = Instant::now();
        processors.idle(0, clock.elapsed_ns() + 20_000_000);
        assert!(before.elapsed() >= Duration::from_millis(19));
    }

    #[test]
    fn a_wake_ends_a_sleep() {
        let processors = Arc::new(Processors::new(1, Clock::start()));
        let sleeper = thread::spawn({
            let processors = Arc::clone(&processors);
            move || processors.idle(0, u64::MAX)
        });
        thread::sleep(Duration::from_millis(10));
        processors.wake(0);
        sleeper.join().expect("the sleeper ends");
    }

    #[test]
    fn a_deadline_that_has_passed_does_not_sleep() {
        let processors = Processors::new(1, Clock::start());
        processors.idle(0, 0);
    }
}
