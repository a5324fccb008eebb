//! Shared server code of the drivers of host folders: `Directory` and `File` for many clients, over a 9P2000.L
//! server.
//!
//! Key types: [`Transport`] (implemented by the driver), [`Mount`] (the folder that it found), [`run`]. Nothing of the
//! folder is cached: each request queries the host, so changes there are visible to the next one. [`session`] has the
//! requests in flight and the fids, [`walk`] resolves paths and links, [`files`] opens files, [`watch`] notifies
//! clients, [`answers`] maps errors, and [`volume`] joins them to the request loops in `file-server`. Every client is a
//! task on one thread. Deliberately not here: devices, and access control lists, which the host could store but not
//! enforce.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answers;
mod files;
mod session;
mod volume;
mod walk;
mod watch;

pub use session::{Exchanged, MESSAGE_BYTES, REQUESTS, Transport};

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use client::namespace::Namespace;
use contracts::directory;
use contracts::directory::ProviderScope;
use contracts::service_provider::{self, StartError, states};
use file_server::{accept, not_ready};
use sip::{Deadline, executor};
use stdio::report;

use session::Session;
use volume::HostFolder;

/// Interval between syncs of written files, in milliseconds.
const SYNC_AFTER_MS: u64 = 3_000;

/// A folder that a driver found.
pub struct Mount {
    /// Its name below `/fs/`.
    pub name: String,
    /// The transport to its server.
    pub transport: Rc<dyn Transport>,
}

type Provider<S> = service_provider::Exp<S>;

/// Serves the folder that `open` finds, at its name below `/fs`, until the provider channel closes. The error of `open`
/// is a sentence for the user.
pub fn run(
    clients: Provider<states::Start>,
    namespace: directory::Imp<directory::states::Ready>,
    open: impl FnOnce() -> Result<Mount, String>,
) -> i32 {
    let serving = async {
        let mount = match open() {
            Ok(mount) => mount,
            Err(explanation) => return not_ready(clients, StartError::Missing, &explanation),
        };
        let root = match Session::start(mount.transport).await {
            Ok(root) => root,
            Err(error) => {
                let explanation = format!("the folder cannot be used: {error}");
                return not_ready(clients, StartError::NotRecognised, &explanation);
            }
        };
        let volume = Rc::new(HostFolder::new(root));
        if let Err(explanation) = register(&volume, &mount.name, namespace) {
            return not_ready(clients, StartError::BadParameter, &explanation);
        }
        drop(executor::spawn(sync_regularly(Rc::clone(&volume))));
        accept(volume, clients.ready()).await;
        0
    };
    match executor::block_on(serving) {
        Ok(status) => status,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

/// Registers the folder at its name. Errors are sentences for the user.
fn register(
    volume: &Rc<HostFolder>,
    name: &str,
    namespace: directory::Imp<directory::states::Ready>,
) -> Result<(), String> {
    let path = format!("/fs/{name}");
    let refused =
        |error: &dyn core::fmt::Display| format!("{path} cannot be served: {error}; give the folder another name");
    let (importer, exporter) = service_provider::new_channel().map_err(|status| refused(&status.text()))?;
    let exporter = exporter.ready();
    let service_provider::ImpStart::Ready { next } = importer.receive() else {
        return Err(refused(&"its channel is closed"));
    };
    Namespace::new(namespace).register(&path, ProviderScope::Subtree, next).map_err(|error| refused(&error))?;
    drop(executor::spawn(accept(Rc::clone(volume), exporter)));
    Ok(())
}

/// Makes written data durable even if no client requests it.
async fn sync_regularly(volume: Rc<HostFolder>) {
    loop {
        executor::sleep_until(Deadline::after_ms(SYNC_AFTER_MS)).await;
        if let Err(error) = volume.session.sync_files().await {
            report::error(format_args!("the last writes could not be synced: {error}"));
        }
    }
}
