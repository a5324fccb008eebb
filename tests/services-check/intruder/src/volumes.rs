//! Accessing a volume through the programs that mount and format it.

use alloc::format;
use alloc::string::String;

use client::volume_managers::{VolumeManager, VolumeManagerError};
use contracts::directory::CreateMode;
use contracts::volume_manager::{CheckMode, FormatOptions, MountAccess, VolumeError};

use crate::names::is_refused;
use crate::{Attack, Intruder, Outcome};

pub(crate) const ATTACKS: &[(&str, Attack)] = &[
    ("move-the-volume", move_the_volume),
    ("format-the-volume", format_the_volume),
    ("replace-a-file", replace_a_file),
    ("shut-the-volume", shut_the_volume),
];

/// The disk of the volume.
const DISK: &str = "/dev/ram0";
const OPTIONS: FormatOptions =
    FormatOptions { block_bytes: 0, nodes: 0, reserved_percent: 0, plain: 0, label: [0; 32] };

fn manager(intruder: &mut Intruder) -> Result<VolumeManager, String> {
    VolumeManager::open(intruder.namespace()?, "ext2").map_err(|error| format!("the manager of volumes: {error}"))
}

fn is_not_permitted<T>(what: &str, asked: Result<T, VolumeManagerError>) -> Outcome {
    match asked.map_err(|error| error.error()) {
        Err(Some(VolumeError::NotPermitted)) => Ok(()),
        Err(error) => Err(format!("{what}: it failed for another reason, {error:?}")),
        Ok(_) => Err(format!("{what} went through")),
    }
}

/// A remounted volume lacks its mount point's list, or has another one's.
fn move_the_volume(intruder: &mut Intruder) -> Outcome {
    let point = intruder.target.clone();
    let mut manager = manager(intruder)?;
    is_not_permitted("unmounting it", manager.unmount(&point))?;
    is_not_permitted("mounting it elsewhere", manager.mount(DISK, "/fs/mine", MountAccess::WriteIfPossible))?;
    is_not_permitted("mounting it over itself", manager.mount(DISK, &point, MountAccess::WriteIfPossible))
}

fn format_the_volume(intruder: &mut Intruder) -> Outcome {
    let mut manager = manager(intruder)?;
    is_not_permitted("formatting it", manager.format(DISK, OPTIONS))?;
    is_not_permitted("repairing it", manager.check(DISK, CheckMode::Repair).map(drop))
}

/// Moves a file that it may read but not write out of a writable folder, or replaces it.
fn replace_a_file(intruder: &mut Intruder) -> Outcome {
    let target = intruder.target.clone();
    let (folder, _) = target.rsplit_once('/').unwrap_or_default();
    let (own, away) = (format!("{folder}/own"), format!("{folder}/away"));
    let namespace = intruder.namespace()?;
    drop(namespace.create_file(&own, 0o644, CreateMode::OpenExisting).map_err(|error| format!("{own}: {error}"))?);
    is_refused("its own file in that place", namespace.rename(&own, &target))?;
    is_refused("moving it away", namespace.rename(&target, &away))?;
    is_refused("taking it out", namespace.remove_file(&target))?;
    namespace.remove_file(&own).map_err(|error| format!("{own}: {error}"))
}

/// Locks others out at the root of the volume, or grants itself access there.
fn shut_the_volume(intruder: &mut Intruder) -> Outcome {
    let point = intruder.target.clone();
    let namespace = intruder.namespace()?;
    for list in ["deny all **\n", "allow all **\n", ""] {
        let root = namespace.open_directory(&point).map_err(|error| format!("{point}: {error}"));
        is_refused("a list for the root", root?.set_acl("", list))?;
        is_refused("a list for the mount point", namespace.set_acl(&point, list))?;
    }
    Ok(())
}
