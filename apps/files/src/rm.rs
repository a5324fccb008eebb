//! Removes files and folders.

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use file_tools::feed::for_each_path;
use file_tools::removing::{Folders, RemoveError, remove};

sip::startup!("rm/manifest.toml");

/// Removes each path. A failure is reported; the others are still removed.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let folders = if startup.recursive { Folders::Remove } else { Folders::Leave };
    for_each_path(&startup.working_folder, &startup.paths, |asked, full| {
        match remove(&mut namespace, full, asked, folders) {
            Err(RemoveError::Access(AccessError::Name(NameError::NotFound))) if startup.force => Ok(()),
            other => other,
        }
    })
}
