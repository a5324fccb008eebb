//! The file system of one FAT disk: `Directory` and `File` for many clients, `FileSystem` for its manager, over a
//! `Disk`.
//!
//! All that is known of the format is in the library `fat`; here are the channels. Every client is a task on one
//! thread, so one that is slow to ask holds nobody up; what they ask of the volume is done one after the other.
//! [`folders`] and [`files`] serve clients, [`control`] the manager, [`answers`] turns the library's errors into
//! the contracts', `mount-permit` knows what the mount point lets clients do. Deliberately not here: the way to the driver, which is in `disk-source`.
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
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::pin;
use core::task::Poll;

use client::namespace::Namespace;
use contracts::directory::NameError;
use contracts::service_provider::{self, ConnectError, StartError};
use contracts::{directory, file, file_system};
use disk_source::{DiskSource, Mark};
use fat::{Access, CacheLimits, Clock, DateTime, DiskError, Error, Folder, MountOptions, Volume};
use mount_permit::Permit;
use sip::channel::AnyEndpoint;
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use stdio::report;

use crate::access::{Base, Here};

sip::startup!();

/// Reports of damage for people; after these, clients still get their error codes.
const MAX_REPORTS: u32 = 16;

/// By what a disk is known again: its first sector, which a mounted volume does not change.
const MARK: Mark = Mark { offset: 0, parts: &[FIRST_SECTOR] };
const FIRST_SECTOR: Range<usize> = 0..512;

/// What all clients share.
struct Shared {
    volume: Volume<DiskSource>,
    /// Whether the volume was mounted to be changed, if its disk can be.
    may_write: bool,
    reports: Cell<u32>,
    last: RefCell<Option<Error>>,
}

impl Shared {
    /// Looks at an error on its way to a client: damage and failing disks are told to people, each once in a row.
    fn note(&self, error: Error) {
        // That the driver has ended is told once, by the one who watches it.
        let is_worth_telling =
            matches!(error, Error::Damaged(_) | Error::Disk(_)) && error != Error::Disk(DiskError::Gone);
        if is_worth_telling && self.last.replace(Some(error)) != Some(error) && self.reports.get() < MAX_REPORTS {
            self.reports.set(self.reports.get() + 1);
            report::error(format_args!("{error}"));
        }
    }

    fn name_error(&self, error: Error) -> NameError {
        self.note(error);
        answers::name_error(error)
    }
}

/// The machine's clock, which knows no time zone; nor does FAT.
struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> DateTime {
        const NS_PER_S: u64 = 1_000_000_000;
        let seconds = i64::try_from(sip::time::wall() / NS_PER_S).unwrap_or(0);
        DateTime::from_unix_seconds(seconds).unwrap_or(DateTime::UNIX_EPOCH)
    }
}

/// Serves the volume until it is unmounted, or the one who hands over clients is gone.
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
            let explanation = format!("`{other}` is no way to mount; it is `write` or `read`");
            return not_ready(startup.clients, StartError::BadParameter, &explanation);
        }
    };
    let requests = usize::try_from(startup.requests).unwrap_or(1);
    let source = match DiskSource::open(Namespace::new(startup.namespace), disk, requests, Some(MARK)).await {
        Ok(source) => source,
        Err(error) => {
            // The driver may be on its way back, so this is a failure to be tried again.
            report::error(format_args!("{disk}: {error}"));
            return 1;
        }
    };
    let limits = CacheLimits { data_bytes: kib(startup.data_cache_kib), line_bytes: kib(startup.line_kib) };
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
    let shared = Rc::new(Shared { volume, may_write, reports: Cell::new(0), last: RefCell::new(None) });
    let write_after_ms = u64::try_from(startup.write_after_ms).unwrap_or(0);
    drop(executor::spawn(write_now_and_then(Rc::clone(&shared), write_after_ms)));
    serve_ready(shared, root, startup.clients.ready(), startup.control).await
}

/// Tells the one who started this process why it does not serve.
fn not_ready(provider: service_provider::Exp<service_provider::states::Start>, error: StartError, text: &str) -> i32 {
    match ExVec::from_slice(text.as_bytes()) {
        // Whoever started this process tells people.
        Ok(block) => drop(provider.not_ready(error, block)),
        Err(_) => report::error(format_args!("{text}")),
    }
    1
}

/// Serves clients and the manager until the manager unmounts the volume, or both are gone.
async fn serve_ready(
    shared: Rc<Shared>,
    root: Rc<Folder<DiskSource>>,
    provider: service_provider::Exp<service_provider::states::Ready>,
    control: Option<file_system::Exp<file_system::states::Start>>,
) -> i32 {
    let mut clients = pin!(accept(Rc::clone(&shared), root, provider));
    let mut manager = pin!(manage(Rc::clone(&shared), control));
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
    match shared.volume.unmount().await {
        Ok(()) | Err(Error::ShutDown) => 0,
        Err(error) => {
            report::error(format_args!("not everything was written: {error}"));
            1
        }
    }
}

async fn manage(shared: Rc<Shared>, control: Option<file_system::Exp<file_system::states::Start>>) -> bool {
    match control {
        Some(control) => control::serve(shared, control).await,
        None => false,
    }
}

/// Writes changes that nobody asked to be written, some time after they were made.
async fn write_now_and_then(shared: Rc<Shared>, after_ms: u64) {
    /// Less would write all the time.
    const MIN_MS: u64 = 100;
    loop {
        executor::sleep_until(Deadline::after_ms(after_ms.max(MIN_MS))).await;
        if shared.volume.has_changes() {
            match shared.volume.sync().await {
                Ok(()) => {}
                Err(Error::ShutDown) => return,
                Err(error) => shared.note(error),
            }
        }
    }
}

async fn accept(
    shared: Rc<Shared>,
    root: Rc<Folder<DiskSource>>,
    mut provider: service_provider::Exp<service_provider::states::Ready>,
) {
    while let service_provider::ExpReady::Connect { path, rest, rights, endpoint, next } =
        provider.receive_async().await
    {
        let (point, rest) = path.split_at_checked(rest as usize).unwrap_or((&[], &[]));
        let base = Rc::new(Here { folder: Rc::clone(&root), permit: Permit::new(point, rights) });
        provider = match open(&shared, &base, rest, endpoint) {
            Ok(()) => next.ack(),
            Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
        };
    }
}

/// Hands a client's endpoint to a task that opens what the path from the folder `base` leads to. An
/// endpoint of a contract that is not served comes back.
fn open(shared: &Rc<Shared>, base: &Base, path: &[u8], endpoint: AnyEndpoint) -> Result<(), AnyEndpoint> {
    let (shared, base, path) = (Rc::clone(shared), Rc::clone(base), path.to_vec());
    let endpoint = match endpoint.downcast::<directory::Exp<directory::states::Start>>() {
        Ok(client) => {
            executor::spawn(folders::serve(shared, base, path, client));
            return Ok(());
        }
        Err(endpoint) => endpoint,
    };
    let client = endpoint.downcast::<file::Exp<file::states::Start>>()?;
    executor::spawn(files::serve(shared, base, path, client));
    Ok(())
}

/// A client's path, if it is one.
fn text(path: &[u8]) -> Option<&str> {
    core::str::from_utf8(path).ok().filter(|path| path::is_valid(path))
}

/// A manifest's number of KiB in bytes; what makes no sense is nothing.
fn kib(number: i64) -> usize {
    usize::try_from(number).ok().and_then(|number| number.checked_mul(1024)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use fat::CacheLimits;

    /// Clients that the quota must have room for beside the cache, with a channel and a block each.
    const CLIENTS: usize = 10_000;

    /// What stands behind this key of the manifest, after the line `after`.
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
    fn the_quota_allows_what_the_cache_may_hold() {
        let data_bytes = parameter("data-cache-kib") * 1024;
        // The smallest lines need the most handles, the largest the most bytes.
        for line_bytes in [0, parameter("line-kib") * 1024, usize::MAX] {
            let limits = CacheLimits { data_bytes, line_bytes };
            let buffers = limits.max_buffers();
            assert!(number("[quota]", "handles") >= buffers + parameter("requests") + 2 * CLIENTS);
            assert!(number("[quota]", "block_kib") * 1024 >= 2 * buffers * limits.rounded_line_bytes());
        }
        assert!(number("[quota]", "channels") >= 2 * parameter("requests"));
    }
}
