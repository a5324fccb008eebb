//! The process as a whole: how it ends, by itself or when the host asks.
//!
//! A signal that asks the process to end presses the power button (`power_button`): the system inside shuts down and
//! powers the machine off. One that takes longer than [`SHUTDOWN_LIMIT`], or a second signal, ends the process as it
//! is. Deliberately not here: ending the programs that run inside.

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

/// The exit status after a panic, as Rust programs have it.
const PANIC_STATUS: u8 = 101;
/// Disk transfers under way get this long to finish when the process ends.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// The system inside gets this long to shut down after a signal. A volume manager may write for 20 s.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(25);
/// A shutdown that takes longer is announced, so that nobody wonders why the signal does nothing.
const SILENT_SHUTDOWN: Duration = Duration::from_secs(1);
/// A signal that follows the first one within this time is the same request: timeout(1), and a shell whose terminal
/// goes away, signal the process itself and its group.
const SAME_REQUEST: Duration = Duration::from_millis(200);
/// After a signal, standard output gets this long to take what was written.
const OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// When the process ends, whoever reads standard error gets this long to take what was written.
pub(crate) const ERRORS_LIMIT: Duration = Duration::from_secs(1);

/// The signal that the process ends for; 0: none.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// The signals that are waited for.
static REQUESTS: OnceLock<libc::sigset_t> = OnceLock::new();
/// A thread waits for them.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// The system inside has ended: nobody is left who listens to the power button.
static SYSTEM_ENDED: AtomicBool = AtomicBool::new(false);

/// Signals that ask the process to end.
const END_REQUESTS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// For a program that is nothing but the machine: a panic restores the terminal and ends the process
/// with status 101; SIGTERM, SIGINT, SIGHUP (unless ignored, as under nohup) and SIGQUIT shut the system down, and
/// end the process with status 128 and the signal's number. SIGHUP reloads a service instead. To be called first in `main`, before there are other
/// threads.
///
/// Where the machine is to be confined, this returns in a child of the process: see `keeper`.
pub fn own_process(confinement: Confinement) {
    panic::set_hook(Box::new(|information| {
        terminal::restore();
        // No backtrace: this may be running on the small stack of a SIP's thread.
        debug_output::flush(ERRORS_LIMIT);
        let text = information.to_string();
        say_last(&format!("{}; this is a bug, please report it", Printable(text.as_bytes())));
        exit_now(PANIC_STATUS)
    }));
    // SAFETY: ignoring a signal runs no code. Without it a closed pipe would end the process where the
    // console is to answer with a failure.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let requests = block_requests();
    if confinement == Confinement::Confined
        && let Err(error) = keeper::start(&requests)
    {
        say(&format!("no process to look names up and to start the machine anew ({error}); it goes on without"));
    }
    REQUESTS.get_or_init(|| requests);
}

/// Ends the process in order: disk transfers under way finish, the terminal is as it was. After a signal, the exit
/// status is the signal's; but that of a service which has shut down is its own.
pub(crate) fn end_process(exit_status: u8) -> ! {
    pool::DISKS.close(DRAIN_LIMIT);
    pool::FOLDERS.close(DRAIN_LIMIT);
    debug_output::flush(ERRORS_LIMIT);
    terminal::restore();
    let signal = ENDING.load(Ordering::SeqCst);
    let is_own = signal == 0 || service::is_one() && SYSTEM_ENDED.load(Ordering::SeqCst);
    exit_now(if is_own { exit_status } else { status_of(signal) })
}

/// Notes that the system inside has ended: from now on a signal ends the process at once.
pub(crate) fn system_ended() {
    service::stops();
    SYSTEM_ENDED.store(true, Ordering::SeqCst);
}

/// How long to wait for who reads the output: without limit, unless a signal asked the process to end.
pub(crate) fn output_limit() -> Option<Duration> {
    (ENDING.load(Ordering::SeqCst) != 0).then_some(OUTPUT_LIMIT)
}

pub(crate) fn status_of(signal: libc::c_int) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Starts the process anew with the same arguments: disk transfers under way finish, the terminal is as it
/// was. After a signal, it ends instead.
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

/// Has this process execute its program anew, with the same arguments.
pub(crate) fn execute_anew() -> ! {
    let reason = Command::new("/proc/self/exe").args(env::args_os().skip(1)).exec();
    say(&format!("the host cannot start this program again ({reason}); start it by hand"));
    debug_output::flush(ERRORS_LIMIT);
    exit_now(1)
}

pub(crate) fn exit_now(exit_status: u8) -> ! {
    // SAFETY: _exit runs no code of this process; what other threads do stops where it is.
    unsafe { libc::_exit(exit_status.into()) }
}

/// Blocks the signals of interest in this thread and all that it will start.
fn block_requests() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable memory that sigemptyset initialises before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in END_REQUESTS.into_iter().filter(|&signal| signal != libc::SIGHUP || !is_ignored(signal)) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCONT);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        set.assume_init()
    }
}

/// Starts a thread that waits for the signals which [`own_process`] has blocked, where everything is allowed.
pub(crate) fn watch_requests() {
    let Some(set) = REQUESTS.get().filter(|_| !WATCHED.swap(true, Ordering::SeqCst)) else { return };
    let watcher = thread::Builder::new().name("signals".into()).stack_size(64 * 1024).spawn(move || watch(set));
    if let Err(error) = watcher {
        say(&format!("no thread to wait for signals ({error}); the process cannot be ended by them"));
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `action` is writable memory, which is filled where the answer is 0; nothing is changed.
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

/// Ends the process at the deadline, or for a second signal. The system inside ends it before, if all is well.
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

/// Waits for a signal that asks the process to end; none if the time is up before. Renews the terminal's mode where
/// the process was stopped in between.
fn wait_for_request(set: &libc::sigset_t, limit: Option<Duration>) -> Option<libc::c_int> {
    let begin = Instant::now();
    loop {
        let rest = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
        let timeout = rest
            .map(|rest| libc::timespec { tv_sec: rest.as_secs() as libc::time_t, tv_nsec: rest.subsec_nanos().into() });
        // SAFETY: set and timeout (null: none) are live; nothing is written where the second argument is null.
        let signal =
            unsafe { libc::sigtimedwait(set, ptr::null_mut(), timeout.as_ref().map_or(ptr::null(), ptr::from_ref)) };
        match signal {
            libc::SIGCONT => terminal::renew(),
            // A handler ran in this thread, or the time is up; no signal was lost.
            ..0 if rest == Some(Duration::ZERO) => return None,
            ..0 => {}
            request if reloads(request) => {}
            request => return Some(request),
        }
    }
}

/// Whether a signal reloads the service, which the keeper does where there is one.
fn reloads(signal: libc::c_int) -> bool {
    signal == libc::SIGHUP && service::is_one() && (keeper::is_there() || service::reload())
}

/// Says something on standard error.
pub fn say(text: &str) {
    debug_output::write(format!("singularity: {text}\n").as_bytes());
}

/// Says something on standard error in a process that is about to end.
pub fn say_last(text: &str) {
    let line = format!("singularity: {text}\n");
    let line = service::stamped(line.as_bytes()).unwrap_or(line);
    output::standard_error().write_within(line.as_bytes(), ERRORS_LIMIT);
}
