//! Exclusive claims to disks and mount points, across all managers.
//!
//! A claim is a symbolic link in the namespace: creating one is atomic in the directory service and fails if the name
//! exists, so no two managers claim the same disk or mount point. Links outlive their manager, which restores its
//! mounts from them when it is restarted. Deliberately not here: the use of a claim.
//!
//! `/status/volumes/dev:disk1 -> /dev/ext2` means that the manager at `/dev/ext2` uses the disk, and
//! `/status/volumes/fs:data -> /dev/ext2/write/dev/disk1` that the disk is mounted there, read-write.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use client::access::AccessError;
use client::namespace::{Name, Namespace};
use contracts::directory::{NameError, NodeKind};
use contracts::volume_manager::{MountAccess, VolumeError};

use crate::error::Error;
use crate::places;

/// The folder of claims.
const FOLDER: &str = "/status/volumes";

/// A claim to a disk or mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Path of the disk or mount point.
    pub(crate) path: String,
    /// Path of the manager that holds it.
    pub(crate) owner: String,
    /// For a mount point: the access mode and the disk.
    pub(crate) mount: Option<(MountAccess, String)>,
}

impl Claim {
    fn target(&self) -> String {
        match &self.mount {
            None => self.owner.clone(),
            Some((access, disk)) => format!("{}/{}{disk}", self.owner, word(*access)),
        }
    }

    fn read(name: &str, target: &str) -> Option<Claim> {
        let path = format!("/{}", name.replace(':', "/"));
        // A manager's path is `/dev/` and one component.
        let rest = target.strip_prefix("/dev/")?;
        let (manager, rest) = rest.split_once('/').map_or((rest, None), |(manager, rest)| (manager, Some(rest)));
        let mount = match rest {
            None => None,
            Some(rest) => {
                let (word, disk) = rest.split_once('/')?;
                Some((access(word)?, format!("/{disk}")))
            }
        };
        Some(Claim { path, owner: format!("/dev/{manager}"), mount })
    }
}

/// The claims of all managers, from the view of one.
pub(crate) struct Claims {
    owner: String,
    namespace: RefCell<Namespace>,
}

impl Claims {
    /// The claims from the view of the manager at `owner`.
    pub(crate) fn new(owner: &str, namespace: Namespace) -> Claims {
        Claims { owner: owner.into(), namespace: RefCell::new(namespace) }
    }

    /// Claims a disk. A claim to `point` is the caller's own and no conflict.
    pub(crate) fn disk(&self, disk: &str, point: Option<&str>) -> Result<(), Error> {
        let claim = Claim { path: disk.into(), owner: self.owner.clone(), mount: None };
        self.take(&claim).map_err(|error| {
            error.in_use(disk, |other, mut all| {
                all.retain(|claim| Some(&*claim.path) != point);
                disk_in_use(disk, &other, &all)
            })
        })
    }

    /// Claims a mount point for a disk.
    pub(crate) fn point(&self, point: &str, disk: &str, access: MountAccess) -> Result<(), Error> {
        let claim = Claim { path: point.into(), owner: self.owner.clone(), mount: Some((access, disk.into())) };
        self.take(&claim).map_err(|error| error.in_use(point, |other, _| point_in_use(point, &other)))
    }

    /// Releases a claim of this manager.
    pub(crate) fn release(&self, path: &str) {
        // It may be gone already.
        let _ = self.namespace.borrow_mut().deregister(&link_of(path));
    }

    /// All claims of all managers.
    pub(crate) fn all(&self) -> Result<Vec<Claim>, AccessError> {
        let mut namespace = self.namespace.borrow_mut();
        let names = match namespace.names(FOLDER) {
            Err(AccessError::Name(NameError::NotFound)) => return Ok(Vec::new()),
            names => names?,
        };
        let mut claims = Vec::new();
        let is_claim = |name: &&Name| name.kind == NodeKind::Link && !name.name.starts_with(b".");
        for name in names.iter().filter(is_claim) {
            // It was released in the meantime.
            let Ok(target) = namespace.read_link(&format!("{FOLDER}/{}", name.text())) else { continue };
            claims.extend(Claim::read(&name.text(), &target));
        }
        Ok(claims)
    }

    /// Whether a process of this manager has mounted, or tried to, what was found at boot.
    pub(crate) fn is_boot_done(&self) -> bool {
        self.namespace.borrow_mut().read_link(&self.boot_mark()).is_ok()
    }

    /// Leaves a mark for later processes of this manager.
    pub(crate) fn mark_boot_done(&self) {
        // Without the mark the next process mounts what it finds, once more.
        let _ = self.namespace.borrow_mut().link(&self.boot_mark(), &self.owner);
    }

    fn boot_mark(&self) -> String {
        format!("{FOLDER}/.{}", self.owner.replace('/', ":"))
    }

    /// Whether this manager has claimed the disk.
    pub(crate) fn has_disk(&self, disk: &str) -> bool {
        let target = self.namespace.borrow_mut().read_link(&link_of(disk));
        target.is_ok_and(|target| target == self.owner)
    }

    /// Claims of this manager; at its start, those that its previous process left.
    pub(crate) fn own(&self) -> Result<Vec<Claim>, AccessError> {
        let all = self.all()?;
        Ok(all.into_iter().filter(|claim| claim.owner == self.owner).collect())
    }

    fn take(&self, claim: &Claim) -> Result<(), NotTaken> {
        let made = self.namespace.borrow_mut().link(&link_of(&claim.path), &claim.target());
        match made {
            Ok(()) => {}
            Err(AccessError::Name(NameError::AlreadyExists)) => {}
            Err(error) => return Err(NotTaken::Failed(error)),
        }
        let all = self.all().map_err(|error| {
            if made.is_ok() {
                self.release(&claim.path);
            }
            NotTaken::Failed(error)
        })?;
        let collides =
            |other: &&Claim| places::collide(&other.path, &claim.path) && (made.is_err() || other.path != claim.path);
        match all.iter().find(collides) {
            None if made.is_ok() => Ok(()),
            None => Err(NotTaken::Failed(NameError::AlreadyExists.into())),
            Some(other) => {
                if made.is_ok() {
                    self.release(&claim.path);
                }
                Err(NotTaken::InUse(other.clone(), all.clone()))
            }
        }
    }
}

enum NotTaken {
    InUse(Claim, Vec<Claim>),
    Failed(AccessError),
}

impl NotTaken {
    fn in_use(self, path: &str, explain: impl FnOnce(Claim, Vec<Claim>) -> Error) -> Error {
        match self {
            NotTaken::InUse(other, all) => explain(other, all),
            NotTaken::Failed(AccessError::Name(NameError::AlreadyExists)) => {
                Error::new(VolumeError::DiskBusy, format!("{path}: it was in use a moment ago; try again"))
            }
            NotTaken::Failed(error) => {
                Error::new(VolumeError::Exhausted, format!("{path}: it could not be claimed in {FOLDER}: {error}"))
            }
        }
    }
}

fn disk_in_use(disk: &str, other: &Claim, all: &[Claim]) -> Error {
    let of_disk = |claim: &&Claim| claim.mount.as_ref().is_some_and(|(_, mounted)| *mounted == other.path);
    let whose = if other.path == disk {
        String::from("it")
    } else if places::whole_disk(disk) == Some(&other.path) {
        format!("{}, of which it is a partition,", other.path)
    } else {
        format!("its partition {}", other.path)
    };
    let explanation = match all.iter().find(of_disk) {
        Some(mounted) => {
            let point = &mounted.path;
            format!("{disk}: {whose} is mounted at {point}; unmount it first (`umount {point}`)")
        }
        None => format!("{disk}: {whose} is being formatted or checked; wait until that has finished"),
    };
    Error::new(VolumeError::DiskBusy, explanation)
}

fn point_in_use(point: &str, other: &Claim) -> Error {
    let disk = other.mount.as_ref().map_or("something", |(_, disk)| disk);
    let explanation = if other.path == point {
        format!("{point}: {disk} is mounted there; unmount it first (`umount {point}`), or choose another name")
    } else if places::is_below(point, &other.path) {
        format!("{point}: it is inside {}, where {disk} is mounted; choose another name", other.path)
    } else {
        format!("{point}: {disk} is mounted below it, at {}; choose another name", other.path)
    };
    Error::new(VolumeError::PointBusy, explanation)
}

/// A `:` in a path is decoded as `/`, which at worst refuses a valid claim.
fn link_of(path: &str) -> String {
    format!("{FOLDER}/{}", path.trim_start_matches('/').replace('/', ":"))
}

fn word(access: MountAccess) -> &'static str {
    match access {
        MountAccess::WriteIfPossible => "write",
        MountAccess::ReadOnly => "read",
    }
}

fn access(word: &str) -> Option<MountAccess> {
    match word {
        "write" => Some(MountAccess::WriteIfPossible),
        "read" => Some(MountAccess::ReadOnly),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_round_trip() {
        let disk = Claim { path: "/dev/disk1".into(), owner: "/dev/ext2".into(), mount: None };
        let mount = Some((MountAccess::ReadOnly, "/dev/disk1".into()));
        let point = Claim { path: "/fs/a/b".into(), owner: "/dev/fat".into(), mount };
        for claim in [disk, point] {
            let link = link_of(&claim.path);
            let name = link.strip_prefix("/status/volumes/").expect("it is in the folder");
            assert_eq!(Claim::read(name, &claim.target()), Some(claim));
        }
        for bad in ["", "/dev", "/dev/ext2/write", "/dev/ext2/other/dev/disk0", "/fs/ext2"] {
            assert_eq!(Claim::read("dev:disk1", bad), None, "{bad}");
        }
    }

    #[test]
    fn explanations_say_what_to_do() {
        let mount = Some((MountAccess::WriteIfPossible, String::from("/dev/disk1p2")));
        let point = Claim { path: "/fs/data".into(), owner: "/dev/ext2".into(), mount };
        let disk = Claim { path: "/dev/disk1p2".into(), owner: "/dev/ext2".into(), mount: None };
        let all = [disk.clone(), point.clone()];
        let error = disk_in_use("/dev/disk1", &disk, &all);
        let expected = "/dev/disk1: its partition /dev/disk1p2 is mounted at /fs/data; \
                        unmount it first (`umount /fs/data`)";
        assert_eq!(error, Error::new(VolumeError::DiskBusy, expected));
        assert!(disk_in_use("/dev/disk1p2", &disk, &all[..1]).explanation.contains("being formatted or checked"));
        assert!(point_in_use("/fs/data/x", &point).explanation.contains("inside /fs/data"));
        assert!(point_in_use("/fs", &point).explanation.contains("below it"));
    }
}
