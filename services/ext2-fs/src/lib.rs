//! The file system of one ext2 disk: `Directory` and `File` for many clients, over a `Disk`.
//!
//! All that is known of the format is in the library `ext2`; here are the channels. Every client is a
//! task on one thread: while its blocks are on the way, the others go on. What a client asks for
//! carries its offset, so a server that was started again serves on without a memory of who had what
//! open. [`disk`] is the way to the driver, [`folders`] and [`files`] serve clients, [`answers`] turns
//! the library's errors into the contracts'. Deliberately not here: permissions of Unix; who holds a
//! folder's endpoint may read what lies below it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answers;
mod disk;
mod files;
mod folders;

use alloc::format;
use alloc::rc::Rc;
use core::cell::Cell;

use contracts::namespace::Namespace;
use contracts::service_provider::{self, ConnectError};
use contracts::{directory, file, report};
use ext2::{CacheLimits, DiskError, Error, ROOT_INODE, Volume};
use sip::channel::AnyEndpoint;
use sip::exheap::ExVec;

use disk::DiskSource;

sip::startup!();

/// Reports of damage for people; after these, clients still get their error codes.
const MOST_REPORTS: u32 = 16;

/// What all clients share.
struct Shared {
    volume: Volume<DiskSource>,
    reports: Cell<u32>,
}

impl Shared {
    /// Looks at an error on its way to a client: damage and failing disks are told to people.
    fn note(&self, error: &Error) {
        // That the driver has ended is told once, by the one who watches it.
        let is_end = matches!(error, Error::Read(_, DiskError::Gone));
        let worth_telling = matches!(error, Error::Corrupt(_) | Error::Read(..)) && !is_end;
        if worth_telling && self.reports.get() < MOST_REPORTS {
            self.reports.set(self.reports.get() + 1);
            report::error(format_args!("{error}"));
        }
    }
}

/// Serves the volume until the one who hands over clients is gone.
pub fn main(startup: Startup) -> i32 {
    let limits = CacheLimits {
        inode_bytes: kib(startup.inode_cache_kib),
        number_bytes: kib(startup.number_cache_kib),
        data_bytes: kib(startup.data_cache_kib),
        line_bytes: kib(startup.line_kib),
    };
    let requests = usize::try_from(startup.requests).unwrap_or(1);
    let namespace = Namespace::new(startup.namespace);
    match sip::executor::block_on(serve(namespace, limits, startup.clients, &startup.disk, requests)) {
        Ok(status) => status,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

async fn serve(
    namespace: Namespace,
    limits: CacheLimits,
    provider: service_provider::Exp<service_provider::states::Start>,
    disk: &str,
    requests: usize,
) -> i32 {
    let source = match DiskSource::open(namespace, disk, requests).await {
        Ok(source) => source,
        Err(error) => {
            // The driver may be on its way back, so this is a failure to be tried again.
            report::error(format_args!("{disk}: {error}"));
            return 1;
        }
    };
    let volume = match Volume::mount(source, limits).await {
        Ok(volume) => volume,
        Err(Error::Read(_, DiskError::Gone)) => return 1,
        Err(error) => {
            let explanation = format!("{disk}: {error}");
            match ExVec::from_slice(explanation.as_bytes()) {
                // Whoever started this process tells people.
                Ok(block) => drop(provider.not_ready(answers::start_error(&error), block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    if !volume.superblock().clean {
        report::error(format_args!(
            "{disk}: it was not cleanly unmounted; run e2fsck on the disk if files are missing"
        ));
    }
    let shared = Rc::new(Shared { volume, reports: Cell::new(0) });
    accept(shared, provider.ready()).await;
    0
}

async fn accept(shared: Rc<Shared>, mut provider: service_provider::Exp<service_provider::states::Ready>) {
    while let service_provider::ExpReady::Connect { path, rest, endpoint, next } = provider.receive_async().await {
        let rest = path.get(rest as usize..).unwrap_or(&[]);
        provider = match open(&shared, ROOT_INODE, rest, endpoint) {
            Ok(()) => next.ack(),
            Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
        };
    }
}

/// Hands a client's endpoint to a task that opens what the path from the folder `base` leads to. An
/// endpoint of a contract that is not served comes back.
fn open(shared: &Rc<Shared>, base: u32, path: &[u8], endpoint: AnyEndpoint) -> Result<(), AnyEndpoint> {
    let path = path.to_vec();
    let endpoint = match endpoint.downcast::<directory::Exp<directory::states::Start>>() {
        Ok(client) => {
            sip::executor::spawn(folders::serve(shared.clone(), base, path, client));
            return Ok(());
        }
        Err(endpoint) => endpoint,
    };
    let client = endpoint.downcast::<file::Exp<file::states::Start>>()?;
    sip::executor::spawn(files::serve(shared.clone(), base, path, client));
    Ok(())
}

/// A manifest's number of KiB in bytes; what makes no sense is nothing.
fn kib(number: i64) -> usize {
    usize::try_from(number).ok().and_then(|number| number.checked_mul(1024)).unwrap_or(0)
}
