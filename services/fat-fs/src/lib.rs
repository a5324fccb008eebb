//! The file system of one FAT disk: `Directory` and `File` for many clients, `FileSystem` for its manager, over a
//! `Disk`.
//!
//! The format is in the library `fat`, the client loops are in `file-server`, and [`volume`] joins the two;
//! [`answers`] maps errors. Every client is a task on one thread, so a slow client delays no other; operations on the
//! volume are serialised. Deliberately not here: disk I/O, which is in `disk-source`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answers;
mod volume;

use alloc::format;
use alloc::rc::Rc;
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::pin;
use core::task::Poll;

use client::namespace::Namespace;
use contracts::file_system;
use contracts::service_provider::{self, StartError};
use disk_source::{DiskSource, Mark};
use fat::{Access, CacheLimits, Clock, DateTime, DiskError, Error, MountOptions, Volume};
use file_server::{Locks, Managed, Reports, not_ready, serve_manager, sync_regularly};
use sip::executor;
use stdio::report;

use crate::volume::FatVolume;

sip::startup!();

/// Identifies a disk: its first sector, which a mounted volume does not change.
const MARK: Mark = Mark { offset: 0, parts: &[FIRST_SECTOR] };
const FIRST_SECTOR: Range<usize> = 0..512;
/// Minimum time between two syncs in milliseconds.
const MIN_SYNC_MS: u64 = 100;

/// The machine's clock. Neither it nor FAT has a time zone.
struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> DateTime {
        const NS_PER_S: u64 = 1_000_000_000;
        let seconds = i64::try_from(sip::time::wall() / NS_PER_S).unwrap_or(0);
        DateTime::from_unix_seconds(seconds).unwrap_or(DateTime::UNIX_EPOCH)
    }
}

/// Serves the volume until it is unmounted, or the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    match executor::block_on(serve(startup)) {
        Ok(status) => status,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

async fn serve(startup: Startup) -> i32 {
    let disk = startup.disk.as_str();
    let access = match startup.access.as_str() {
        "write" => Access::WriteIfPossible,
        "read" => Access::ReadOnly,
        other => {
            let explanation = format!("access is `write` or `read`, not `{other}`");
            return not_ready(startup.clients, StartError::BadParameter, &explanation);
        }
    };
    let requests = usize::try_from(startup.requests).unwrap_or(1);
    let source = match DiskSource::open(Namespace::new(startup.namespace), disk, requests, Some(MARK)).await {
        Ok(source) => source,
        Err(error) => {
            // The driver may be restarting, so the manager should try again.
            report::error(format_args!("{disk}: {error}"));
            return 1;
        }
    };
    let limits = CacheLimits { data_bytes: kib(startup.data_cache_kib), page_bytes: kib(startup.page_kib) };
    let volume = match Volume::mount(source, MountOptions { limits, access, clock: &MachineClock }).await {
        Ok(volume) => volume,
        Err(Error::Disk(DiskError::Gone)) => return 1,
        Err(error) => return not_ready(startup.clients, answers::start_error(error), &format!("{disk}: {error}")),
    };
    let root = match volume.root().await {
        Ok(root) => Rc::new(root),
        Err(error) => return not_ready(startup.clients, answers::start_error(error), &format!("{disk}: {error}")),
    };
    if volume.was_dirty() {
        report::error(format_args!("{disk}: it was not cleanly unmounted; unmount and `check` it"));
    }
    let may_write = access == Access::WriteIfPossible;
    let volume = Rc::new(FatVolume { volume, root, may_write, reports: Reports::default(), locks: Locks::default() });
    let write_after_ms = u64::try_from(startup.write_after_ms).unwrap_or(0);
    drop(executor::spawn(sync_regularly(Rc::clone(&volume), write_after_ms.max(MIN_SYNC_MS))));
    serve_ready(volume, startup.clients.ready(), startup.control).await
}

/// Serves clients and the manager until the manager unmounts the volume or both close their channels.
async fn serve_ready(
    volume: Rc<FatVolume>,
    provider: service_provider::Exp<service_provider::states::Ready>,
    manager: Option<file_system::Exp<file_system::states::Start>>,
) -> i32 {
    let mut clients = pin!(file_server::accept(Rc::clone(&volume), provider));
    let mut manager = pin!(manage(&volume, manager));
    let (mut clients_left, mut manager_left) = (false, false);
    poll_fn(|context| {
        clients_left = clients_left || clients.as_mut().poll(context).is_ready();
        if !manager_left && let Poll::Ready(was_unmounted) = manager.as_mut().poll(context) {
            manager_left = true;
            clients_left = clients_left || was_unmounted;
        }
        if clients_left && manager_left { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    match volume.unmount().await {
        Ok(()) => 0,
        Err(error) => {
            report::error(format_args!("not all changes were written: {error}"));
            1
        }
    }
}

async fn manage(volume: &FatVolume, manager: Option<file_system::Exp<file_system::states::Start>>) -> bool {
    match manager {
        Some(manager) => serve_manager(volume, manager).await,
        None => false,
    }
}

/// A manifest's number of KiB in bytes; 0 if it is out of range.
fn kib(number: i64) -> usize {
    usize::try_from(number).ok().and_then(|number| number.checked_mul(1024)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use fat::CacheLimits;

    /// Number of clients that the quota must allow beside the cache, with a channel and a block each.
    const CLIENTS: usize = 10_000;

    /// The number at this key of the manifest, after the line `after`.
    fn number(after: &str, key: &str) -> usize {
        let manifest = include_str!("../manifest.toml");
        let prefix = format!("{key} = ");
        let mut lines = manifest.lines().skip_while(|line| *line != after);
        let value = lines.find_map(|line| line.strip_prefix(&prefix));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no `{key}` after `{after}`"))
    }

    fn parameter(name: &str) -> usize {
        number(&format!("name = \"{name}\""), "default")
    }

    #[test]
    fn the_quota_covers_the_cache() {
        let data_bytes = parameter("data-cache-kib") * 1024;
        // The smallest cache pages need the most handles, the largest the most bytes.
        for page_bytes in [0, parameter("page-kib") * 1024, usize::MAX] {
            let limits = CacheLimits { data_bytes, page_bytes };
            let buffers = limits.max_buffers();
            assert!(number("[quota]", "handles") >= buffers + parameter("requests") + 2 * CLIENTS);
            assert!(number("[quota]", "block_kib") * 1024 >= 2 * buffers * limits.rounded_page_bytes());
        }
        assert!(number("[quota]", "channels") >= 2 * parameter("requests"));
    }
}
