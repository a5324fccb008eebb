//! Removes empty folders.

use client::namespace::Namespace;
use file_tools::feed::for_each_path;

sip::startup!("rmdir/manifest.toml");

/// Removes each folder. A failure is reported; the others are still removed.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    for_each_path(&startup.working_folder, &startup.paths, |_, full| namespace.remove_directory(full))
}
