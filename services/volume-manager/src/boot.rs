//! Mounts at start: at boot, each disk with a volume of the manager's kind; after a restart, the previous mounts, and if
//! the previous process ended before it was done with those of the boot, the disks that it has not claimed.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::directory::NodeKind;
use contracts::volume_manager::{MountAccess, VolumeError};
use sip::diagnostics::{self, ProcessState};
use sip::{Deadline, executor};
use stdio::report;

use crate::Manager;
use crate::claims::Claim;
use crate::error::Error;
use crate::mounts::FirstFailure;
use crate::{look, places};

/// Folder that is searched for disks.
const DISKS: &str = "/dev";
/// Timeout for the children of the previous manager process to end, in milliseconds.
const ORPHANS_MS: u64 = 5_000;
/// First and last wait for memory, in milliseconds; each is twice the one before.
const MIN_WAIT_MS: u64 = 20;
const MAX_WAIT_MS: u64 = 1_000;

/// Mounts all volumes. Completes when each of them serves or has failed.
pub(crate) async fn mount_all(manager: &Rc<Manager>, prefixes: &str) {
    let abandoned = match retried(|| manager.claims.own()).await {
        Ok(abandoned) => abandoned,
        Err(error) => {
            report::error(format_args!("the previous mounts cannot be read: {error}"));
            Vec::new()
        }
    };
    let is_boot = !manager.claims.is_boot_done();
    let mut mounts =
        if abandoned.is_empty() && is_boot { Vec::new() } else { restore_mounts(manager, abandoned).await };
    if is_boot {
        mounts.extend(mount_found(manager, prefixes).await);
    }
    for mount in mounts {
        mount.await;
    }
    if is_boot {
        manager.claims.mark_boot_done();
    }
}

/// Mounts each disk with a volume of this kind at its default mount point.
async fn mount_found(manager: &Rc<Manager>, prefixes: &str) -> Vec<executor::Task<()>> {
    let disks = match retried(|| disks(manager, prefixes)).await {
        Ok(disks) => disks,
        Err(error) => {
            report::error(format_args!("{DISKS}: {error}; no disk is mounted"));
            Vec::new()
        }
    };
    let mount = |disk: String| {
        let manager = Rc::clone(manager);
        executor::spawn(async move {
            if !look::is_own(&manager, &disk).await {
                return;
            }
            match mount_at_boot(&manager, &disk).await {
                Ok(()) => {}
                // Another kind of volume, none, or mounted by another manager.
                Err(error) if matches!(error.error, VolumeError::NotRecognised | VolumeError::DiskBusy) => {}
                Err(error) => report::error(format_args!("not mounted: {}", error.explanation)),
            }
        })
    };
    disks.into_iter().map(mount).collect()
}

/// Repeats what fails for a while: a lack of memory may pass, and without the list of disks none would ever be mounted.
async fn retried<T, E>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut wait_ms = MIN_WAIT_MS;
    loop {
        match attempt() {
            Err(_) if wait_ms <= MAX_WAIT_MS => {
                executor::sleep_until(Deadline::after_ms(wait_ms)).await;
                wait_ms *= 2;
            }
            result => return result,
        }
    }
}

/// Mounts a disk at its default mount point. A lack of memory may pass, and so may the claim of another manager, which
/// could not read the disk when it looked at it.
async fn mount_at_boot(manager: &Rc<Manager>, disk: &str) -> Result<(), Error> {
    let point = places::point_of(disk);
    let mut wait_ms = MIN_WAIT_MS;
    loop {
        let mounted = manager.mount(disk, &point, MountAccess::WriteIfPossible, FirstFailure::StartsAgain).await;
        match mounted {
            Err(error) if may_pass(error.error) && wait_ms <= MAX_WAIT_MS => {
                executor::sleep_until(Deadline::after_ms(wait_ms)).await;
                wait_ms *= 2;
            }
            mounted => return mounted.map(drop),
        }
    }
}

fn may_pass(error: VolumeError) -> bool {
    matches!(error, VolumeError::Exhausted | VolumeError::DiskBusy | VolumeError::PointBusy)
}

/// The disks that this manager has not claimed; of a partitioned disk, its partitions instead.
fn disks(manager: &Manager, prefixes: &str) -> Result<Vec<String>, client::access::AccessError> {
    let names = manager.namespace.borrow_mut().names(DISKS)?;
    let is_disk = |name: &str| prefixes.split_whitespace().any(|prefix| name.starts_with(prefix));
    let services = names.iter().filter(|name| name.kind == NodeKind::Service).map(|name| name.text());
    let disks: Vec<String> = services.filter(|name| is_disk(name)).map(|name| format!("{DISKS}/{name}")).collect();
    let has_partitions = |disk: &String| disks.iter().any(|other| places::whole_disk(other) == Some(disk));
    // One that another manager has claimed may not be that one's: see `mount_at_boot`.
    let claims = manager.claims.own()?;
    let is_claimed = |disk: &String| claims.iter().any(|claim| places::collide(&claim.path, disk));
    Ok(disks.iter().filter(|disk| !has_partitions(disk) && !is_claimed(disk)).cloned().collect())
}

/// Restores the mounts of the previous manager process.
async fn restore_mounts(manager: &Rc<Manager>, abandoned: Vec<Claim>) -> Vec<executor::Task<()>> {
    wait_for_orphans(manager).await;
    let is_disk_of_a_mount =
        |claim: &Claim| abandoned.iter().any(|other| matches!(&other.mount, Some((_, disk)) if *disk == claim.path));
    let mut mounts = Vec::new();
    for claim in &abandoned {
        match claim.mount.clone() {
            Some((access, disk)) => mounts.push((claim.path.clone(), disk, access)),
            None if is_disk_of_a_mount(claim) => {}
            None => {
                manager.claims.release(&claim.path);
                report::error(format_args!(
                    "{}: the manager ended during a format or check; run `check {}`",
                    claim.path, claim.path
                ));
            }
        }
    }
    let mount = |(point, disk, access): (String, String, MountAccess)| {
        let manager = Rc::clone(manager);
        executor::spawn(async move {
            // The manager may have crashed between claiming the mount point and the disk.
            if !manager.claims.has_disk(&disk)
                && let Err(error) = manager.claims.disk(&disk, Some(&point))
            {
                manager.claims.release(&point);
                report::error(format_args!("not mounted again: {}", error.explanation));
                return;
            }
            if let Err(error) = manager.mount_claimed(&disk, &point, access, FirstFailure::StartsAgain).await {
                report::error(format_args!("{point}: not mounted again: {}", error.explanation));
            }
        })
    };
    mounts.into_iter().map(mount).collect()
}

/// Waits for the children of the previous manager process, which end shortly after it.
async fn wait_for_orphans(manager: &Manager) {
    let deadline = Deadline::after_ms(ORPHANS_MS);
    while has_orphans(manager) && !deadline.has_passed() {
        executor::sleep_until(Deadline::after_ms(1)).await;
    }
}

fn has_orphans(manager: &Manager) -> bool {
    let Ok(processes) = diagnostics::processes() else { return false };
    processes.iter().any(|process| {
        let name = diagnostics::name(&process.name).to_string();
        let is_orphan = process.parent == 0 && process.state != ProcessState::Ended as u64;
        is_orphan && (name == manager.file_system.name || name == manager.tool)
    })
}
