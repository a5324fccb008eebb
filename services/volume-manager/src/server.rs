//! The `VolumeManager` contract: a task for each client.

use alloc::rc::Rc;
use alloc::string::String;

use contracts::namespace::block;
use contracts::text::pad;
use contracts::volume_manager::{self, MountRecord, states};
use sip::exheap::ExVec;

use crate::Manager;
use crate::mounts::Mount;
use crate::trouble::Trouble;

type Client = volume_manager::Exp<states::Ready>;

/// Serves one client until it closes its end.
pub(crate) async fn serve(manager: Rc<Manager>, client: volume_manager::Exp<states::Start>) {
    let mut client = client.success();
    // An answer that the exchange heap has no room for ends the conversation.
    while let Some(next) = answer(&manager, client).await {
        client = next;
    }
}

async fn answer(manager: &Rc<Manager>, client: Client) -> Option<Client> {
    use volume_manager::ExpReady;
    Some(match client.receive_async().await {
        ExpReady::Mount { disk, point, access, next } => match manager.mount(&disk, &point, access).await {
            Ok(mount) => {
                let (read_only, explanation) = how(&mount).await;
                next.mounted(read_only, block(&explanation).ok()?)
            }
            Err(trouble) => next.failed(trouble.error, words(&trouble)?),
        },
        ExpReady::Unmount { point, next } => match manager.unmount(&point).await {
            Ok(()) => next.done(),
            Err(trouble) => next.failed(trouble.error, words(&trouble)?),
        },
        ExpReady::Format { disk, options, next } => match manager.format(&disk, &options).await {
            Ok(report) => next.formatted(block(&report).ok()?),
            Err(trouble) => next.failed(trouble.error, words(&trouble)?),
        },
        ExpReady::Check { disk, mode, next } => match manager.check(&disk, mode).await {
            Ok((outcome, report)) => next.checked(outcome, block(&report).ok()?),
            Err(trouble) => next.failed(trouble.error, words(&trouble)?),
        },
        ExpReady::List { mut mounts, next } => {
            let all = manager.mounts.borrow();
            for (record, mount) in mounts.iter_mut().zip(all.iter()) {
                *record = self::record(mount);
            }
            // There are fewer than there can be children.
            next.listed(mounts, all.len() as u32)
        }
        ExpReady::GetStatistics { point, next } => match statistics(manager, &point).await {
            Ok(statistics) => next.statistics(statistics),
            Err(trouble) => next.failed(trouble.error, words(&trouble)?),
        },
        ExpReady::Sync { next } => match sync(manager).await {
            Ok(()) => next.done(),
            Err(trouble) => next.failed(trouble.error, words(&trouble)?),
        },
        ExpReady::ChannelClosed(_) => return None,
    })
}

/// How a volume that has just been mounted can be used.
async fn how(mount: &Mount) -> (bool, String) {
    if mount.is_read_only() {
        return (true, String::from("as asked for"));
    }
    match mount.statistics().await {
        Ok(statistics) if statistics.read_only != 0 => (true, contracts::text::padded(&statistics.kind)),
        Ok(_) => (false, String::new()),
        Err(trouble) => (true, trouble.explanation),
    }
}

async fn statistics(manager: &Manager, point: &[u8]) -> Result<contracts::file_system::VolumeStatistics, Trouble> {
    let mount = manager.mount_at(point)?;
    mount.statistics().await
}

/// Has all volumes written at once.
async fn sync(manager: &Manager) -> Result<(), Trouble> {
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
        trouble: pad(&mount.trouble()),
        process: mount.process(),
        restarts: mount.restarts(),
        read_only: u32::from(!mount.is_writable()),
        reserved: 0,
    }
}

fn words(trouble: &Trouble) -> Option<ExVec<u8>> {
    block(&trouble.explanation).ok()
}
