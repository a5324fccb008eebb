//! What the drivers of folders of the host share: `Directory` and `File` for many clients, over a server of 9P2000.L.
//!
//! Key types: [`Transport`] (what a driver implements), [`Mount`] (what it knows of its folder), [`run`]. Nothing of the
//! folder is kept: each request asks the host, so what is changed there is seen at the next one. [`session`] has the
//! requests under way and the fids, [`walk`] follows paths and links, [`folders`] and [`files`] serve clients, [`watch`]
//! notifies them, [`answers`] turns the host's errors into the contracts'. Every client is a task on one thread. Deliberately not here:
//! devices, and access control lists, for which the host has no room that it would keep to.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answers;
mod files;
mod folders;
mod session;
mod walk;
mod watch;

pub use session::{Exchanged, MESSAGE_BYTES, REQUESTS, Transport};

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use client::namespace::Namespace;
use contracts::directory::ProviderScope;
use contracts::service_provider::{self, ConnectError, StartError, states};
use contracts::{directory, file};
use mount_permit::Permit;
use sip::channel::AnyEndpoint;
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use stdio::report;

use session::Session;
use walk::{Base, Here};

/// What was written stays unsynced for so long at most, twice.
const SYNC_AFTER_MS: u64 = 3_000;

/// A folder that a driver found.
pub struct Mount {
    /// What it is called: it is found at `/fs/` and this.
    pub name: String,
    /// How requests get there.
    pub transport: Rc<dyn Transport>,
}

type Provider<S> = service_provider::Exp<S>;

/// Serves the folder that `open` finds, at its name below `/fs`, until the one who hands over clients is gone. What `open`
/// says instead is a sentence for people.
pub fn run(
    clients: Provider<states::Start>,
    namespace: directory::Imp<directory::states::Ready>,
    open: impl FnOnce() -> Result<Mount, String>,
) -> i32 {
    let serving = async {
        let mount = match open() {
            Ok(mount) => mount,
            Err(explanation) => return refuse(clients, StartError::Missing, &explanation),
        };
        let session = match Session::start(mount.transport).await {
            Ok(session) => session,
            Err(error) => {
                let explanation = format!("the folder cannot be used: {error}");
                return refuse(clients, StartError::NotRecognised, &explanation);
            }
        };
        let root = Rc::new(Here::root(session));
        if let Err(explanation) = register(&root, &mount.name, namespace) {
            return refuse(clients, StartError::BadParameter, &explanation);
        }
        drop(executor::spawn(sync_now_and_then(Rc::clone(&root))));
        accept(root, clients.ready()).await;
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

/// Tells the one who started this process why it does not serve.
fn refuse(provider: Provider<states::Start>, error: StartError, text: &str) -> i32 {
    match ExVec::from_slice(text.as_bytes()) {
        // Whoever started this process tells people.
        Ok(block) => drop(provider.not_ready(error, block)),
        Err(_) => report::error(format_args!("{text}")),
    }
    1
}

/// Puts the folder at its name; errors are sentences for people.
fn register(root: &Rc<Here>, name: &str, namespace: directory::Imp<directory::states::Ready>) -> Result<(), String> {
    let path = format!("/fs/{name}");
    let refused =
        |error: &dyn core::fmt::Display| format!("{path} cannot be served: {error}; give the folder another name");
    let (importer, exporter) = service_provider::new_channel().map_err(|status| refused(&status.text()))?;
    let exporter = exporter.ready();
    let service_provider::ImpStart::Ready { next } = importer.receive() else {
        return Err(refused(&"its channel is closed"));
    };
    Namespace::new(namespace).register(&path, ProviderScope::Subtree, next).map_err(|error| refused(&error))?;
    drop(executor::spawn(accept(Rc::clone(root), exporter)));
    Ok(())
}

/// Makes durable what nobody asked to be, some time after it was written.
async fn sync_now_and_then(root: Rc<Here>) {
    loop {
        executor::sleep_until(Deadline::after_ms(SYNC_AFTER_MS)).await;
        if let Err(error) = root.session.sync_files().await {
            report::error(format_args!("what was written could not be made durable: {error}"));
        }
    }
}

async fn accept(root: Rc<Here>, mut provider: Provider<states::Ready>) {
    while let service_provider::ExpReady::Connect { path, rest, rights, endpoint, next } =
        provider.receive_async().await
    {
        let (point, rest) = path.split_at_checked(rest as usize).unwrap_or((&[], &[]));
        let base = Rc::new(root.with_permit(Permit::new(point, rights)));
        provider = match open(&base, rest, endpoint) {
            Ok(()) => next.ack(),
            Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
        };
    }
}

/// Hands a client's endpoint to a task that opens what the path from the folder `base` leads to. An endpoint of a contract
/// that is not served comes back.
fn open(base: &Base, path: &[u8], endpoint: AnyEndpoint) -> Result<(), AnyEndpoint> {
    let (base, path) = (Rc::clone(base), path.to_vec());
    let endpoint = match endpoint.downcast::<directory::Exp<directory::states::Start>>() {
        Ok(client) => {
            executor::spawn(folders::serve(base, path, client));
            return Ok(());
        }
        Err(endpoint) => endpoint,
    };
    let client = endpoint.downcast::<file::Exp<file::states::Start>>()?;
    executor::spawn(files::serve(base, path, client));
    Ok(())
}
