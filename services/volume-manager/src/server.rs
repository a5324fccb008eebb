//! The `VolumeManager` contract: a task per client. Each request is validated, then authorised, then executed.

use alloc::rc::Rc;
use alloc::string::String;

use client::namespace::block;
use contracts::volume_manager::{self, CheckMode, CheckOutcome, FormatOptions, MountAccess, MountRecord, states};
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;
use text::pad;

use crate::Manager;
use crate::error::Error;
use crate::mounts::{self, FirstFailure, Mount};
use crate::permits::Client;

type Connection = volume_manager::Exp<states::Ready>;

/// Serves one client until it closes its end.
pub(crate) async fn serve(manager: Rc<Manager>, client: volume_manager::Exp<states::Start>) {
    let mut client = client.success();
    // Out of memory for a reply: close the channel.
    while let Some(next) = answer(&manager, client).await {
        client = next;
    }
}

async fn answer(manager: &Rc<Manager>, client: Connection) -> Option<Connection> {
    use volume_manager::ExpReady;
    Some(match client.receive_async().await {
        ExpReady::Mount { disk, point, access, next } => match mount(manager, &next, &disk, &point, access).await {
            Ok(mount) => {
                let (read_only, explanation) = how(&mount).await;
                next.mounted(read_only, block(&explanation).ok()?)
            }
            Err(error) => next.failed(error.error, words(&error)?),
        },
        ExpReady::Unmount { point, next } => match unmount(manager, &next, &point).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(error.error, words(&error)?),
        },
        ExpReady::Format { disk, options, next } => match format(manager, &next, &disk, &options).await {
            Ok(report) => next.formatted(block(&report).ok()?),
            Err(error) => next.failed(error.error, words(&error)?),
        },
        ExpReady::Check { disk, mode, next } => match check(manager, &next, &disk, mode).await {
            Ok((outcome, report)) => next.checked(outcome, block(&report).ok()?),
            Err(error) => next.failed(error.error, words(&error)?),
        },
        ExpReady::List { mut mounts, next } => {
            let all = manager.mounts.borrow();
            for (record, mount) in mounts.iter_mut().zip(all.iter()) {
                *record = self::record(mount);
            }
            // Fits: bounded by the number of children.
            next.listed(mounts, all.len() as u32)
        }
        ExpReady::GetStatistics { point, next } => match statistics(manager, &point).await {
            Ok(statistics) => next.statistics(statistics),
            Err(error) => next.failed(error.error, words(&error)?),
        },
        ExpReady::Sync { next } => match sync(manager).await {
            Ok(()) => next.done(),
            Err(error) => next.failed(error.error, words(&error)?),
        },
        ExpReady::ChannelClosed(_) => return None,
    })
}

async fn mount(
    manager: &Rc<Manager>,
    client: &impl TypedEndpoint,
    disk: &[u8],
    point: &[u8],
    access: MountAccess,
) -> Result<Rc<Mount>, Error> {
    let client = Client::of(client);
    let (disk, point) = (manager.disk(disk)?, mounts::point_path(point)?);
    manager.permit_point(&client, &point)?;
    manager.permit_disk(&client, &disk)?;
    manager.mount(&disk, &point, access, FirstFailure::Fails).await
}

async fn unmount(manager: &Manager, client: &impl TypedEndpoint, point: &[u8]) -> Result<(), Error> {
    let mount = manager.mount_at(point)?;
    manager.permit_point(&Client::of(client), &mount.point)?;
    manager.unmount(&mount).await
}

async fn format(
    manager: &Manager,
    client: &impl TypedEndpoint,
    disk: &[u8],
    options: &FormatOptions,
) -> Result<String, Error> {
    let disk = manager.disk(disk)?;
    manager.permit_disk(&Client::of(client), &disk)?;
    manager.format(&disk, options).await
}

async fn check(
    manager: &Manager,
    client: &impl TypedEndpoint,
    disk: &[u8],
    mode: CheckMode,
) -> Result<(CheckOutcome, String), Error> {
    let disk = manager.disk(disk)?;
    manager.permit_disk(&Client::of(client), &disk)?;
    manager.check(&disk, mode).await
}

/// Returns whether a new mount has the requested access, and if not, the reason.
async fn how(mount: &Rc<Mount>) -> (bool, String) {
    if mount.is_read_only() {
        return (true, String::from("as requested"));
    }
    match mount.statistics().await {
        Ok(statistics) if statistics.read_only != 0 => (true, text::padded(&statistics.kind)),
        Ok(_) => (false, String::new()),
        Err(error) => (true, error.explanation),
    }
}

async fn statistics(manager: &Manager, point: &[u8]) -> Result<contracts::file_system::VolumeStatistics, Error> {
    let mount = manager.mount_at(point)?;
    mount.statistics().await
}

/// Flushes all volumes concurrently.
async fn sync(manager: &Manager) -> Result<(), Error> {
    let mounts = manager.mounts.borrow().clone();
    let syncs: alloc::vec::Vec<_> =
        mounts.into_iter().map(|mount| sip::executor::spawn(async move { mount.sync().await })).collect();
    let mut outcome = Ok(());
    for one in syncs {
        outcome = outcome.and(one.await);
    }
    outcome
}

fn record(mount: &Mount) -> MountRecord {
    MountRecord {
        disk: pad(&mount.disk),
        point: pad(&mount.point),
        error: pad(&mount.error()),
        process: mount.process(),
        restarts: mount.restarts(),
        read_only: u32::from(!mount.is_writable()),
        reserved: 0,
    }
}

fn words(error: &Error) -> Option<ExVec<u8>> {
    block(&error.explanation).ok()
}
