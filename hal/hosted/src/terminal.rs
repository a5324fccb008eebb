//! The terminal's mode: raw while the machine runs, restored afterwards.
//!
//! Deliberately not here: terminal I/O. [`restore`] is async-signal-safe, because the machine may end in a
//! signal handler.

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const INPUT: libc::c_int = libc::STDIN_FILENO;
const OUTPUT: libc::c_int = libc::STDOUT_FILENO;

/// Default size of a terminal that does not report one.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// The terminal's mode before the machine first changed it.
static FOUND: OnceLock<libc::termios> = OnceLock::new();
static RAW: AtomicBool = AtomicBool::new(false);

/// Returns whether both standard input and standard output are a terminal.
pub(crate) fn is_interactive() -> bool {
    is_terminal(INPUT) && is_terminal(OUTPUT)
}

/// Sets raw mode, in which each byte is passed on as it is typed, even Ctrl-C, if standard input is a terminal.
pub(crate) fn make_raw() {
    let Some(found) = mode() else { return };
    let mut raw = *FOUND.get_or_init(|| found);
    raw.c_iflag &= !(libc::IGNBRK
        | libc::BRKINT
        | libc::PARMRK
        | libc::ISTRIP
        | libc::INLCR
        | libc::IGNCR
        | libc::ICRNL
        | libc::IXON);
    raw.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON | libc::ISIG | libc::IEXTEN);
    raw.c_cc[libc::VMIN] = 1;
    raw.c_cc[libc::VTIME] = 0;
    RAW.store(true, Ordering::SeqCst);
    set_mode(&raw);
}

/// Saves the terminal's current mode.
pub(crate) fn remember() {
    if let Some(found) = mode() {
        FOUND.get_or_init(|| found);
    }
}

/// Restores the saved mode, after another process made the terminal raw.
pub(crate) fn restore_remembered() {
    RAW.store(true, Ordering::SeqCst);
    restore();
}

/// Sets raw mode again after another program changed the mode while the machine was stopped.
pub(crate) fn renew() {
    if RAW.load(Ordering::SeqCst) {
        make_raw();
    }
}

/// Restores the terminal's original mode, once. Async-signal-safe.
pub(crate) fn restore() {
    if RAW.swap(false, Ordering::SeqCst)
        && let Some(found) = FOUND.get()
    {
        set_mode(found);
    }
}

/// Returns columns and rows.
pub(crate) fn size() -> (u16, u16) {
    [OUTPUT, INPUT].into_iter().find_map(size_of_terminal).unwrap_or(USUAL_SIZE)
}

fn is_terminal(file: libc::c_int) -> bool {
    // SAFETY: isatty touches no memory of this process.
    unsafe { libc::isatty(file) == 1 }
}

fn mode() -> Option<libc::termios> {
    let mut mode = MaybeUninit::uninit();
    // SAFETY: `mode` is writable memory for one termios.
    let answer = unsafe { libc::tcgetattr(INPUT, mode.as_mut_ptr()) };
    // SAFETY: tcgetattr has filled it when it returns 0.
    (answer == 0).then(|| unsafe { mode.assume_init() })
}

/// Sets the mode; also from the background, where SIGTTOU would stop the process.
fn set_mode(mode: &libc::termios) {
    let mut stop = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are writable memory; sigemptyset initialises `stop` before it is used, and
    // pthread_sigmask `before`. All these calls are async-signal-safe.
    unsafe {
        libc::sigemptyset(stop.as_mut_ptr());
        libc::sigaddset(stop.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, stop.as_ptr(), before.as_mut_ptr());
        libc::tcsetattr(INPUT, libc::TCSANOW, mode);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
}

fn size_of_terminal(file: libc::c_int) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize, which `size` is.
    let answer = unsafe { libc::ioctl(file, libc::TIOCGWINSZ, &mut size) };
    (answer == 0 && size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}
