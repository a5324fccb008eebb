//! The process as a whole: how it ends, by itself or when the host asks.
//!
//! Deliberately not here: ending the programs that run inside; the kernel has done so, or the host's
//! user wants no more of them.

use std::env;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::panic;
use std::process::Command;
use std::ptr;
use std::thread;
use std::time::Duration;

use crate::{pool, terminal, transfer};

/// The exit status after a panic, as Rust programs have it.
const PANIC_STATUS: u8 = 101;
/// Disk transfers under way get this long to finish when the process ends.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// Signals that ask the process to end.
const END_REQUESTS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// For a program that is nothing but the machine: a panic restores the terminal and ends the process
/// with status 101; SIGTERM, SIGINT, SIGHUP and SIGQUIT restore it, let disk transfers finish and end the
/// process with status 128 and the signal's number. To be called first in `main`, before there are
/// other threads.
pub fn own_process() {
    panic::set_hook(Box::new(|information| {
        terminal::restore();
        // No backtrace: this may be running on the small stack of a SIP's thread.
        eprintln!("singularity: {information}; this is a bug, please report it");
        exit_now(PANIC_STATUS)
    }));
    // SAFETY: ignoring a signal runs no code. Without it a closed pipe would end the process where the
    // console is to answer with a failure.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    watch_signals();
}

/// Ends the process in order: disk transfers under way finish, the terminal is as it was.
pub(crate) fn end_process(exit_status: u8) -> ! {
    pool::DISKS.close(DRAIN_LIMIT);
    terminal::restore();
    exit_now(exit_status)
}

/// Starts the process anew with the same arguments: disk transfers under way finish, the terminal is as it
/// was.
pub(crate) fn restart_process() -> ! {
    pool::DISKS.close(DRAIN_LIMIT);
    terminal::restore();
    let reason = Command::new("/proc/self/exe").args(env::args_os().skip(1)).exec();
    let text = format!("singularity: the host cannot start this program again ({reason}); start it by hand\n");
    transfer::write_all_or_drop(libc::STDERR_FILENO, text.as_bytes());
    exit_now(1)
}

fn exit_now(exit_status: u8) -> ! {
    // SAFETY: _exit runs no code of this process; what other threads do stops where it is.
    unsafe { libc::_exit(exit_status.into()) }
}

/// Blocks the signals of interest in this thread and all it will start, and waits for them in one thread
/// of their own, where everything is allowed.
fn watch_signals() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable memory that sigemptyset initialises before it is used.
    let set = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in END_REQUESTS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCONT);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        set.assume_init()
    };
    let watcher = thread::Builder::new().name("signals".into()).stack_size(64 * 1024).spawn(move || watch(&set));
    if let Err(error) = watcher {
        let text =
            format!("singularity: no thread to wait for signals ({error}); the process cannot be ended by them\n");
        transfer::write_all_or_drop(libc::STDERR_FILENO, text.as_bytes());
    }
}

fn watch(set: &libc::sigset_t) {
    loop {
        // SAFETY: the set is initialised; nothing is written where the second argument is null.
        let signal = unsafe { libc::sigwaitinfo(set, ptr::null_mut()) };
        if signal < 0 {
            // A handler ran in this thread; nothing was lost.
            debug_assert_eq!(io::Error::last_os_error().kind(), io::ErrorKind::Interrupted);
        } else if signal == libc::SIGCONT {
            terminal::renew();
        } else {
            end_process(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}
