//! The directory service: the namespace, in which clients bind to providers by name.
//!
//! Key types: [`tree::Tree`] (the names), `server` (the message loops), [`access::Access`] (access control: the
//! mandatory [`rules::Rules`] of the system, then ACLs).
//! Each client is a task on one thread, so a slow provider delays only the clients that connect to it.
//! Deliberately not here: any knowledge of files, disks or consoles, and starting programs.
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

/// The folders created at start.
const FOLDERS: [&str; 6] = ["/dev", "/service", "/fs", "/init", "/status", "/program"];

/// Serves the namespace until its first client, the system's root program, closes its channel.
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
            stdio::report::error(format_args!("invalid access rule: {error}"));
            return 1;
        }
    };
    let access = access::Access::new(rules);
    let initial_lists = match access.initial_lists(&startup.acl) {
        Ok(lists) => lists,
        Err(error) => {
            stdio::report::error(format_args!("invalid access control list: {error}"));
            return 1;
        }
    };
    let shared = Rc::new(shared::Shared::new(access, initial_lists));
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
