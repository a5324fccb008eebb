//! What a program tells a person beside its output: errors and notes, on the machine's standard error.
//!
//! Standard output carries results only, so that it can be piped; the kernel puts the program's name
//! before each line here.

use core::fmt;

/// Tells a person that something failed: what, where, and what to do.
pub fn error(message: fmt::Arguments<'_>) {
    sip::debug::write_line(message);
}

/// Tells that what has this path could not be used, and gives the exit status for it.
pub fn path_error(path: &str, error: &dyn fmt::Display) -> i32 {
    self::error(format_args!("{path}: {error}"));
    1
}
