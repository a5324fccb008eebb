//! The process as a whole: exit, termination by a signal, and restart.
//!
//! A termination signal presses the power button (`power_button`): the system inside shuts down and
//! powers the machine off. After [`SHUTDOWN_LIMIT`], or on a second signal, the process ends without
//! that. Deliberately not here: ending the programs that run inside.

use std::env;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::panic;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use abi::Printable;

use crate::confinement::Confinement;
use crate::{debug_output, keeper, output, pool, power_button, service, terminal};

/// The exit status after a panic, as of Rust programs.
const PANIC_STATUS: u8 = 101;
/// Timeout for transfers in flight when the process ends.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// Timeout of the system's shutdown after a signal. A volume manager may write for 20 s.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(25);
/// A shutdown that takes longer is announced, so that the signal does not seem ignored.
const SILENT_SHUTDOWN: Duration = Duration::from_secs(1);
/// A signal within this time after the first one belongs to the same request: timeout(1), and a shell whose terminal
/// goes away, signal both the process and its group.
const SAME_REQUEST: Duration = Duration::from_millis(200);
/// After a signal, timeout for writing out standard output.
const OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// Timeout for writing out standard error when the process ends.
pub(crate) const ERRORS_LIMIT: Duration = Duration::from_secs(1);

/// The termination signal received; 0: none.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// The blocked signals that the watcher thread accepts.
static REQUESTS: OnceLock<libc::sigset_t> = OnceLock::new();
/// Whether the watcher thread has been started.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// Whether the system inside has ended, so that the power button has no effect any more.
static SYSTEM_ENDED: AtomicBool = AtomicBool::new(false);

/// Termination signals.
const END_REQUESTS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// For a program that is nothing but the machine: a panic restores the terminal and ends the process with status 101;
/// SIGTERM, SIGINT, SIGHUP (unless ignored, as under nohup) and SIGQUIT shut the system down, and end the process with
/// status 128 plus the signal's number. SIGHUP reloads a service instead, even if it was ignored. Must be called first
/// in `main`, before there are other threads.
///
/// In a confined machine this returns in a child process: see `keeper`.
pub fn own_process(confinement: Confinement) {
    panic::set_hook(Box::new(|information| {
        terminal::restore();
        // No backtrace: this may run on the small stack of a SIP's thread.
        debug_output::flush(ERRORS_LIMIT);
        let text = information.to_string();
        say_last(&format!("{}; this is a bug, please report it", Printable(text.as_bytes())));
        exit_now(PANIC_STATUS)
    }));
    // SAFETY: ignoring a signal runs no code. Otherwise a closed pipe would end the process, instead of being reported
    // as a failure of the console.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let requests = block_requests();
    if confinement == Confinement::Confined
        && let Err(error) = keeper::start(&requests)
    {
        say(&format!("no process to look names up and to start the machine anew ({error}); it goes on without"));
    }
    REQUESTS.get_or_init(|| requests);
}

/// Ends the process in order: transfers in flight finish, the terminal is restored. After a signal, the exit status is
/// the signal's; a service that has shut down ends with its own.
pub(crate) fn end_process(exit_status: u8) -> ! {
    pool::DISKS.close(DRAIN_LIMIT);
    pool::FOLDERS.close(DRAIN_LIMIT);
    debug_output::flush(ERRORS_LIMIT);
    terminal::restore();
    let signal = ENDING.load(Ordering::SeqCst);
    let is_own = signal == 0 || service::is_one() && SYSTEM_ENDED.load(Ordering::SeqCst);
    exit_now(if is_own { exit_status } else { status_of(signal) })
}

/// Records that the system inside has ended: from now on a signal ends the process at once.
pub(crate) fn system_ended() {
    service::stops();
    SYSTEM_ENDED.store(true, Ordering::SeqCst);
}

/// Returns the timeout for writing out standard output: none, unless there was a termination signal.
pub(crate) fn output_limit() -> Option<Duration> {
    (ENDING.load(Ordering::SeqCst) != 0).then_some(OUTPUT_LIMIT)
}

pub(crate) fn status_of(signal: libc::c_int) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Restarts the process with the same arguments: transfers in flight finish, the terminal is restored. After a
/// termination signal, it ends instead.
pub(crate) fn restart_process() -> ! {
    if ENDING.load(Ordering::SeqCst) != 0 {
        end_process(0);
    }
    pool::DISKS.close(DRAIN_LIMIT);
    pool::FOLDERS.close(DRAIN_LIMIT);
    debug_output::flush(ERRORS_LIMIT);
    terminal::restore();
    if keeper::start_anew() {
        exit_now(0);
    }
    execute_anew()
}

/// Executes the process's program again, with the same arguments.
pub(crate) fn execute_anew() -> ! {
    let reason = Command::new("/proc/self/exe").args(env::args_os().skip(1)).exec();
    say(&format!("the host cannot start this program again ({reason}); start it by hand"));
    debug_output::flush(ERRORS_LIMIT);
    exit_now(1)
}

pub(crate) fn exit_now(exit_status: u8) -> ! {
    // SAFETY: _exit runs no code of this process; other threads stop wherever they are.
    unsafe { libc::_exit(exit_status.into()) }
}

/// Blocks the watched signals in this thread and in those that it will create.
fn block_requests() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable memory that sigemptyset initialises before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        let is_watched = |signal| signal != libc::SIGHUP || service::is_one() || !is_ignored(signal);
        // A blocked signal stays pending even if it is ignored (signal(7)).
        for signal in END_REQUESTS.into_iter().filter(|&signal| is_watched(signal)) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCONT);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        set.assume_init()
    }
}

/// Starts a thread that waits for the signals which [`own_process`] has blocked; called before confinement.
pub(crate) fn watch_requests() {
    let Some(set) = REQUESTS.get().filter(|_| !WATCHED.swap(true, Ordering::SeqCst)) else { return };
    let watcher = thread::Builder::new().name("signals".into()).stack_size(64 * 1024).spawn(move || watch(set));
    if let Err(error) = watcher {
        say(&format!("no thread to wait for signals ({error}); the process cannot be ended by them"));
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `action` is writable memory, which is filled if the result is 0; nothing is changed.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn watch(set: &libc::sigset_t) {
    let signal = wait_for_request(set, None).unwrap_or(libc::SIGTERM);
    ENDING.store(signal, Ordering::SeqCst);
    if SYSTEM_ENDED.load(Ordering::SeqCst) || !power_button::press() {
        end_process(status_of(signal));
    }
    shut_down(set, signal, Instant::now())
}

/// Ends the process at the deadline, or on a second signal. Normally the system inside powers off before.
fn shut_down(set: &libc::sigset_t, signal: libc::c_int, begin: Instant) -> ! {
    let mut announced = false;
    loop {
        let limit = if announced { SHUTDOWN_LIMIT } else { SILENT_SHUTDOWN };
        match wait_for_request(set, Some(limit.saturating_sub(begin.elapsed()))) {
            Some(_) if begin.elapsed() < SAME_REQUEST => {}
            Some(second) => {
                terminal::restore();
                exit_now(status_of(second));
            }
            None if announced => {
                say(&format!("the system did not shut down within {SHUTDOWN_LIMIT:?}; it ends as it is"));
                end_process(status_of(signal));
            }
            None => {
                announced = true;
                say("the system is shutting down; a second signal ends it at once");
            }
        }
    }
}

/// Waits for a termination signal; `None` after the limit. Restores the terminal mode after the process
/// was stopped and continued.
fn wait_for_request(set: &libc::sigset_t, limit: Option<Duration>) -> Option<libc::c_int> {
    let begin = Instant::now();
    loop {
        let rest = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
        let timeout = rest
            .map(|rest| libc::timespec { tv_sec: rest.as_secs() as libc::time_t, tv_nsec: rest.subsec_nanos().into() });
        // SAFETY: set and timeout (null: none) are live; the null second argument means that no information is written.
        let signal =
            unsafe { libc::sigtimedwait(set, ptr::null_mut(), timeout.as_ref().map_or(ptr::null(), ptr::from_ref)) };
        match signal {
            libc::SIGCONT => terminal::renew(),
            // Interrupted by a handler in this thread, or timed out; no signal was lost.
            ..0 if rest == Some(Duration::ZERO) => return None,
            ..0 => {}
            request if reloads(request) => {}
            request => return Some(request),
        }
    }
}

/// Returns whether a signal reloads the service; the keeper does that if there is one.
fn reloads(signal: libc::c_int) -> bool {
    signal == libc::SIGHUP && service::is_one() && (keeper::is_there() || service::reload())
}

/// Writes a message to standard error.
pub fn say(text: &str) {
    debug_output::write(format!("singularity: {text}\n").as_bytes());
}

/// Writes a message to standard error in a process that is about to end.
pub fn say_last(text: &str) {
    let line = format!("singularity: {text}\n");
    let line = service::stamped(line.as_bytes()).unwrap_or(line);
    output::standard_error().write_within(line.as_bytes(), ERRORS_LIMIT);
}
