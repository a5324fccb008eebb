//! The program `sing` as started by this one: as a wrapper of rustc, as QEMU's parent, or to run a system concurrently.
//!
//! Another program that uses this library sets it once, so that all builds use the same tool.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

static TOOL: OnceLock<PathBuf> = OnceLock::new();

/// Sets the tool if it is another program; only the first call counts.
pub fn set(tool: PathBuf) {
    // A second call is ignored.
    let _ = TOOL.set(tool);
}

/// Path of the tool: this program, unless another was set.
///
/// # Errors
/// The host does not provide it.
pub fn path() -> io::Result<PathBuf> {
    TOOL.get().map_or_else(std::env::current_exe, |tool| Ok(tool.clone()))
}
