//! Copies files and folders.

use client::namespace::Namespace;
use file_tools::copying::{Copier, Folders, Keep, each_destination};

sip::startup!("cp/manifest.toml");

/// Copies each path to the last one.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let keep = if startup.keep { Keep::All } else { Keep::Permissions };
    let folders = if startup.recursive { Folders::Copy } else { Folders::Refuse };
    let mut copier = Copier::new(keep, folders);
    each_destination(&mut namespace, &startup.working_folder, &startup.paths, "cp FROM... TO", |namespace, from, to| {
        copier.copy(namespace, from, to)
    })
}
