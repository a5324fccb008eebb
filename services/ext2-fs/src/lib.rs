//! The file system of one ext2 disk: `Directory` and `File` for many clients, over a `Disk`.
//!
//! The format is in the library `ext2`, the client loops are in `file-server`, and [`volume`] joins the two; [`access`]
//! has ACL checks, [`answers`] maps errors. Every client is a task on one thread and yields while it waits for disk
//! I/O. Requests carry their offset, so a restarted server continues without a record of open files. Writes reach the
//! disk after some seconds, or on sync.
//! Deliberately not here: disk I/O, which is in `disk-source`; Unix permissions, which are stored but not enforced.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod answers;
mod volume;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::time::Duration;

use client::namespace::Namespace;
use contracts::file_system;
use contracts::service_provider::{self, StartError};
use disk_source::{DiskSource, Mark};
use ext2::{CacheLimits, DiskError, Error, MountOptions, ReadOnlyReason, Volume};
use file_server::{Locks, Reports, not_ready, serve_manager, sync_regularly};
use sip::executor;
use stdio::report;

use crate::access::Access;
use crate::volume::Ext2Volume;

sip::startup!();

/// Identifies a disk: the parts of its superblock that do not change while the volume is written, which are the numbers
/// of inodes and blocks, the magic number, and the volume's UUID.
const MARK: Mark = Mark { offset: 1024, parts: &[0..8, 56..58, 104..120] };

/// Serves the volume until the provider channel closes or the manager unmounts it.
pub fn main(startup: Startup) -> i32 {
    let limits = CacheLimits {
        inode_bytes: kib(startup.inode_cache_kib),
        number_bytes: kib(startup.number_cache_kib),
        data_bytes: kib(startup.data_cache_kib),
        page_bytes: kib(startup.page_kib),
        requests: usize::try_from(startup.requests).unwrap_or(1),
        read_ahead_bytes: kib(startup.read_ahead_kib),
    };
    let access = match startup.access.as_str() {
        "write" => ext2::Access::WriteIfPossible,
        "read" => ext2::Access::ReadOnly,
        other => {
            let explanation = format!("access is `write` or `read`, not `{other}`");
            return not_ready(startup.clients, StartError::BadParameter, &explanation);
        }
    };
    let serving = Serving {
        namespace: Namespace::new(startup.namespace),
        disk: startup.disk,
        options: MountOptions { limits, access },
        sync_after: startup.sync_after,
        manager: startup.control,
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

/// Parameters and endpoints of this process.
struct Serving {
    namespace: Namespace,
    disk: String,
    options: MountOptions,
    sync_after: Duration,
    manager: Option<file_system::Exp<file_system::states::Start>>,
}

async fn serve(serving: Serving, provider: Provider) -> i32 {
    let disk = &serving.disk;
    let source = match DiskSource::open(serving.namespace, disk, serving.options.limits.requests, Some(MARK)).await {
        Ok(source) => source,
        Err(error) => {
            // The driver may be restarting, so the manager should try again.
            report::error(format_args!("{disk}: {error}"));
            return 1;
        }
    };
    let volume = match Volume::mount(source, serving.options).await {
        Ok(volume) => volume,
        Err(Error::Read(_, DiskError::Gone)) => return 1,
        Err(error) => return not_ready(provider, answers::start_error(&error), &format!("{disk}: {error}")),
    };
    match volume.read_only_reason() {
        None | Some(ReadOnlyReason::Asked | ReadOnlyReason::Disk) => {}
        Some(reason) => report::error(format_args!("{disk}: it is read-only: {reason}")),
    }
    let volume =
        Rc::new(Ext2Volume { volume, access: Access::new(), reports: Reports::default(), locks: Locks::default() });
    if let Some(manager) = serving.manager {
        let volume = Rc::clone(&volume);
        drop(executor::spawn(async move {
            if serve_manager(&*volume, manager).await {
                sip::process::exit(0)
            }
        }));
    }
    let sync_after_ms = u64::try_from(serving.sync_after.as_millis()).unwrap_or(u64::MAX).max(1);
    drop(executor::spawn(sync_regularly(Rc::clone(&volume), sync_after_ms)));
    file_server::accept(Rc::clone(&volume), provider.ready()).await;
    match volume.volume.unmount().await {
        Ok(()) | Err(Error::ShutDown) => 0,
        Err(error) => {
            volume.note(&error);
            1
        }
    }
}

/// A manifest's number of KiB in bytes; 0 if it is out of range.
fn kib(number: i64) -> usize {
    usize::try_from(number).ok().and_then(|number| number.checked_mul(1024)).unwrap_or(0)
}
