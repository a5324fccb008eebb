//! Removes empty folders.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::namespace::Namespace;
use contracts::{path, report};

sip::startup!();

/// Removes each folder; one that cannot be removed is reported, and the others go.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut status = 0;
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        if let Err(error) = namespace.remove_directory(&full) {
            status = report::path_error(asked, &error);
        }
    }
    status
}
