//! The file system of one ext2 disk: `Directory` and `File` for many clients, over a `Disk`.
//!
//! All that is known of the format is in the library `ext2`; here are the channels. Every client is a
//! task on one thread: while its blocks are on the way, the others go on. What a client asks for
//! carries its offset, so a server that was started again serves on without a memory of who had what
//! open. [`folders`] and [`files`] serve clients, [`access`] knows what they may do, [`control`] serves the volume
//! manager, [`answers`] turns the library's errors into the contracts'. What was written gets to the disk some
//! seconds later, or when somebody asks for it. Deliberately not here: the way to the driver, which is in
//! `disk-source`; permissions of Unix, which are kept but decide nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod answers;
mod control;
mod files;
mod folders;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::Cell;
use core::time::Duration;

use client::namespace::Namespace;
use contracts::service_provider::{self, ConnectError, StartError};
use contracts::{directory, file, file_system};
use disk_source::{DiskSource, Mark};
use ext2::{CacheLimits, DiskError, Error, MountOptions, ROOT_INODE, ReadOnlyReason, Volume};
use principal::Rights;
use sip::channel::AnyEndpoint;
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use stdio::report;

use crate::access::{Access, Base, Pass};

sip::startup!();

/// Reports of damage for people; after these, clients still get their error codes.
const MAX_REPORTS: u32 = 16;

/// By what of its superblock a disk is known again: the parts that stay as they are while the volume is written to,
/// which are the numbers of inodes and blocks, the magic number, and the volume's own number.
const MARK: Mark = Mark { offset: 1024, parts: &[0..8, 56..58, 104..120] };

/// What all clients share.
struct Shared {
    volume: Volume<DiskSource>,
    access: Access,
    reports: Cell<u32>,
}

impl Shared {
    /// Looks at an error on its way to a client: damage and failing disks are told to people.
    fn note(&self, error: &Error) {
        // That the driver has ended is told once, by the one who watches it.
        let is_end = matches!(error, Error::Read(_, DiskError::Gone) | Error::Write(_, DiskError::Gone));
        let worth_telling = matches!(error, Error::Corrupt(_) | Error::Read(..) | Error::Write(..)) && !is_end;
        if worth_telling && self.reports.get() < MAX_REPORTS {
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
        requests: usize::try_from(startup.requests).unwrap_or(1),
        read_ahead_bytes: kib(startup.read_ahead_kib),
    };
    let access = match startup.access.as_str() {
        "write" => ext2::Access::WriteIfPossible,
        "read" => ext2::Access::ReadOnly,
        other => {
            let explanation = format!("access is `write` or `read`, not `{other}`");
            return refuse(startup.clients, StartError::BadParameter, &explanation);
        }
    };
    let serving = Serving {
        namespace: Namespace::new(startup.namespace),
        disk: startup.disk,
        options: MountOptions { limits, access },
        sync_after: startup.sync_after,
        controller: startup.control,
    };
    match sip::executor::block_on(serve(serving, startup.clients)) {
        Ok(status) => status,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

type Provider = service_provider::Exp<service_provider::states::Start>;

/// What the manifest and the parent gave.
struct Serving {
    namespace: Namespace,
    disk: String,
    options: MountOptions,
    sync_after: Duration,
    controller: Option<file_system::Exp<file_system::states::Start>>,
}

/// Whoever started this process tells people why it cannot serve.
fn refuse(provider: Provider, error: StartError, explanation: &str) -> i32 {
    match ExVec::from_slice(explanation.as_bytes()) {
        Ok(block) => drop(provider.not_ready(error, block)),
        Err(_) => report::error(format_args!("{explanation}")),
    }
    1
}

async fn serve(serving: Serving, provider: Provider) -> i32 {
    let disk = &serving.disk;
    let source = match DiskSource::open(serving.namespace, disk, serving.options.limits.requests, Some(MARK)).await {
        Ok(source) => source,
        Err(error) => {
            // The driver may be on its way back, so this is a failure to be tried again.
            report::error(format_args!("{disk}: {error}"));
            return 1;
        }
    };
    let volume = match Volume::mount(source, serving.options).await {
        Ok(volume) => volume,
        Err(Error::Read(_, DiskError::Gone)) => return 1,
        Err(error) => return refuse(provider, answers::start_error(&error), &format!("{disk}: {error}")),
    };
    match volume.read_only_reason() {
        None | Some(ReadOnlyReason::Asked | ReadOnlyReason::Disk) => {}
        Some(reason) => report::error(format_args!("{disk}: it can only be read: {reason}")),
    }
    let shared = Rc::new(Shared { volume, access: Access::new(), reports: Cell::new(0) });
    if let Some(controller) = serving.controller {
        executor::spawn(control::serve(shared.clone(), controller));
    }
    executor::spawn(write_regularly(shared.clone(), serving.sync_after));
    accept(shared.clone(), provider.ready()).await;
    // Nobody hands over clients any more: the volume is left as a person would leave it.
    match shared.volume.unmount().await {
        Ok(()) | Err(Error::ShutDown) => 0,
        Err(error) => {
            shared.note(&error);
            1
        }
    }
}

/// Writes what was changed at most twice that long after it was changed, as long as the process lives.
async fn write_regularly(shared: Rc<Shared>, after: Duration) {
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1);
    loop {
        executor::sleep_until(Deadline::after_ms(after_ms)).await;
        if !shared.volume.has_changes() {
            continue;
        }
        match shared.volume.sync().await {
            Ok(()) => {}
            Err(Error::ShutDown) => return,
            // It is tried again; people are told a few times.
            Err(error) => shared.note(&error),
        }
    }
}

async fn accept(shared: Rc<Shared>, mut provider: service_provider::Exp<service_provider::states::Ready>) {
    while let service_provider::ExpReady::Connect { path, rest, rights, endpoint, next } =
        provider.receive_async().await
    {
        let (point, rest) = path.split_at_checked(rest as usize).unwrap_or((&[], &[]));
        let point = format!("/{}", String::from_utf8_lossy(point).trim_matches('/'));
        let mount = (rights != Rights::UNDECIDED).then(|| Pass { rights: Rights::from_bits(rights), holder: None });
        let base = Rc::new(Base { number: ROOT_INODE, path: point, mount });
        provider = match open(&shared, &base, rest, endpoint) {
            Ok(()) => next.ack(),
            Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
        };
    }
}

/// Hands a client's endpoint to a task that opens what the path from the folder `base` leads to. An
/// endpoint of a contract that is not served comes back.
fn open(shared: &Rc<Shared>, base: &Rc<Base>, path: &[u8], endpoint: AnyEndpoint) -> Result<(), AnyEndpoint> {
    let (path, base) = (path.to_vec(), Rc::clone(base));
    let endpoint = match endpoint.downcast::<directory::Exp<directory::states::Start>>() {
        Ok(client) => {
            executor::spawn(folders::serve(shared.clone(), base, path, client));
            return Ok(());
        }
        Err(endpoint) => endpoint,
    };
    let client = endpoint.downcast::<file::Exp<file::states::Start>>()?;
    executor::spawn(files::serve(shared.clone(), base, path, client));
    Ok(())
}

/// A manifest's number of KiB in bytes; what makes no sense is nothing.
fn kib(number: i64) -> usize {
    usize::try_from(number).ok().and_then(|number| number.checked_mul(1024)).unwrap_or(0)
}
