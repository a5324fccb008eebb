//! The directory service: one tree of names, in which clients bind to providers.
//!
//! Key types: [`tree::Tree`] (what the names are), `server` (the message loops), [`access::Access`] (who may: the
//! [`rules::Rules`] of the system, then the lists of names).
//! Each client is a task of its own on one thread, so that a slow provider holds up only those who wait for it.
//! Deliberately not here: any knowledge of files, disks or consoles, and starting anything.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod access;
pub mod rules;
mod server;
mod shared;
pub mod tree;
pub mod watchers;

use alloc::rc::Rc;

use manifest_model::SystemManifest;

sip::startup!();

/// The folders that are there from the start.
const FOLDERS: [&str; 6] = ["/dev", "/service", "/fs", "/init", "/status", "/program"];

/// Serves the namespace until its first client, the system's root program, is gone.
pub fn main(startup: Startup) -> i32 {
    let system = match sip::diagnostics::system_manifest().map(|bytes| SystemManifest::decode(&bytes)) {
        Ok(Ok(system)) => system,
        Ok(Err(_)) => {
            stdio::report::error(format_args!("the system manifest cannot be read; build the system image again"));
            return 1;
        }
        Err(status) => {
            stdio::report::error(format_args!("no system manifest: {}", status.text()));
            return 1;
        }
    };
    let rules = match rules::Rules::new(&system, &startup.register, &startup.set_acl) {
        Ok(rules) => rules,
        Err(error) => {
            stdio::report::error(format_args!("a rule of access cannot be read: {error}"));
            return 1;
        }
    };
    let access = access::Access::new(rules);
    let first_lists = match access.first_lists(&startup.acl) {
        Ok(lists) => lists,
        Err(error) => {
            stdio::report::error(format_args!("an access control list cannot be read: {error}"));
            return 1;
        }
    };
    let shared = Rc::new(shared::Shared::new(access, first_lists));
    for folder in FOLDERS {
        shared.make_folder(folder);
    }
    let root = startup.root.success();
    match sip::executor::block_on(server::serve(shared, tree::Tree::<shared::ProviderLink>::ROOT, root)) {
        Ok(()) => 0,
        Err(status) => {
            stdio::report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}
