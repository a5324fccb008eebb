//! The program `sing` as this one starts it: to stand for rustc, to keep QEMU, to run a system beside.
//!
//! Another program that uses this library sets it once, so that whatever is built is built by the same tool.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

static TOOL: OnceLock<PathBuf> = OnceLock::new();

/// Sets which program it is, where this one is another; only the first call counts.
pub fn set(tool: PathBuf) {
    // A second call changes nothing.
    let _ = TOOL.set(tool);
}

/// Where it lies: this program, unless another was set.
///
/// # Errors
/// The host does not tell.
pub fn path() -> io::Result<PathBuf> {
    TOOL.get().map_or_else(std::env::current_exe, |tool| Ok(tool.clone()))
}
