//! Removes files and folders.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::access::AccessError;
use contracts::directory::NameError;
use contracts::namespace::Namespace;
use contracts::removing::{Folders, RemoveError, remove};
use contracts::{path, report};

sip::startup!();

/// Removes each of the paths; what cannot be removed is reported, and the others go.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let folders = if startup.recursive { Folders::Remove } else { Folders::Leave };
    let mut status = 0;
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        match remove(&mut namespace, &full, asked, folders) {
            Ok(()) => {}
            Err(RemoveError::Access(AccessError::Name(NameError::NotFound))) if startup.force => {}
            Err(error) => status = report::path_error(asked, &error),
        }
    }
    status
}
