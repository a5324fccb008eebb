//! A volume manager: mounts, unmounts, formats and checks volumes of one kind of file system, for many clients.
//!
//! Each mounted volume is served by a child process, which the manager supervises; each format and check is a child
//! too, so that malformed disk contents cannot crash the manager. Key types: [`Manager`], `mounts` (mounted volumes),
//! `claims` (exclusive use of disks and mount points), `permits` (access checks), `tools` (format and check), `boot`,
//! `server` (clients), `child` (child processes). Deliberately not here: on-disk formats, but for the few bytes at
//! boot that `volume-kind` checks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod boot;
mod child;
mod claims;
mod error;
mod look;
mod mounts;
mod permits;
mod places;
mod server;
mod tools;
mod waiting;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use client::access::AccessError;
use client::namespace::Namespace;
use client::programs;
use contracts::service_provider::{self, StartError};
use contracts::volume_manager;
use manifest_model::Manifest;
use sip::exheap::ExVec;
use sip::{Deadline, Status};
use stdio::report;

use claims::Claims;
use mounts::Mount;

sip::startup!();

/// Timeout for unmounting everything when the manager ends, in milliseconds.
const UNMOUNT_ALL_MS: u64 = 15_000;

/// State shared by all clients.
pub struct Manager {
    kind: String,
    file_system: Manifest,
    tool: String,
    namespace: RefCell<Namespace>,
    claims: Claims,
    mounts: RefCell<Vec<Rc<Mount>>>,
    /// Whether the manager is ending and unmounts everything.
    ending: Cell<bool>,
}

/// Manages volumes until the provider channel closes; then unmounts them.
pub fn main(startup: Startup) -> i32 {
    let Startup { namespace, clients, kind, file_system, tool, disks } = startup;
    let manager = match manager(Namespace::new(namespace), kind, &file_system, tool) {
        Ok(manager) => Rc::new(manager),
        Err((error, explanation)) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent reports it.
                Ok(block) => drop(clients.not_ready(error, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    match sip::executor::block_on(run(manager, clients, &disks)) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

fn manager(
    mut namespace: Namespace,
    kind: String,
    file_system: &str,
    tool: String,
) -> Result<Manager, (StartError, String)> {
    let no_program = || (StartError::Missing, format!("the program {file_system} is not installed in this system"));
    let unread = |status: Status| {
        (provider::start_error(status), format!("the installed programs cannot be read: {}", status.text()))
    };
    let file_system = programs::manifest(file_system).map_err(unread)?.ok_or_else(no_program)?;
    let unopened = |error: AccessError| {
        let kind = match error {
            AccessError::System(status) => provider::start_error(status),
            _ => StartError::Missing,
        };
        (kind, format!("the namespace cannot be opened: {error}"))
    };
    let view = namespace.open_directory("").map_err(unopened)?;
    let claims = Claims::new(&format!("/dev/{kind}"), view);
    Ok(Manager {
        kind,
        file_system,
        tool,
        namespace: RefCell::new(namespace),
        claims,
        mounts: RefCell::default(),
        ending: Cell::new(false),
    })
}

async fn run(manager: Rc<Manager>, clients: service_provider::Exp<service_provider::states::Start>, disks: &str) {
    boot::mount_all(&manager, disks).await;
    let serving = Rc::clone(&manager);
    let serve = |client: volume_manager::Exp<volume_manager::states::Start>| server::serve(serving.clone(), client);
    provider::accept(clients.ready(), serve).await;
    manager.unmount_all(Deadline::after_ms(UNMOUNT_ALL_MS)).await;
}
