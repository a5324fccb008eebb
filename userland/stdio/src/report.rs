//! Standard error: errors and notes beside the program's output.
//!
//! Standard output carries results only, so that it can be piped; the kernel puts the program's name
//! before each line here.

use core::fmt;

/// Reports an error: the problem, its place and the remedy.
pub fn error(message: fmt::Arguments<'_>) {
    sip::debug::write_line(message);
}

/// Reports an error at a path, and returns the exit status for it.
pub fn path_error(path: &str, error: &dyn fmt::Display) -> i32 {
    self::error(format_args!("{path}: {error}"));
    1
}
