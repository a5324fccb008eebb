//! The disks of a machine: write access, and locks against other machines.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// A disk of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The image file or block device.
    pub path: PathBuf,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// A disk locked against writes by other machines, until this is dropped.
#[derive(Debug)]
pub struct DiskLock {
    _file: File,
}

impl Disk {
    /// Parses a disk argument: a path, with `:ro` at its end for a read-only one.
    pub fn parse(given: &Path) -> Disk {
        match given.as_os_str().as_bytes().strip_suffix(b":ro") {
            Some(path) => Disk { path: OsStr::from_bytes(path).into(), read_only: true },
            // A disk that this user may not write is used read-only.
            None => Disk { path: given.into(), read_only: File::options().write(true).open(given).is_err() },
        }
    }

    /// Locks out other machines as the hosted one does: either one writer, or any number of readers. QEMU's own locks
    /// are not visible to the hosted machine.
    ///
    /// # Errors
    /// Another machine holds the lock, or the disk cannot be opened.
    pub fn lock(&self) -> Outcome<DiskLock> {
        let file = File::open(&self.path).map_err(|error| Failure::file("open the disk", &self.path, &error))?;
        let locked = if self.read_only { file.try_lock_shared() } else { file.try_lock() };
        match locked {
            Err(TryLockError::WouldBlock) => {
                Err(Failure::new(format!("disk {}: another machine is using it", self.path.display()))
                    .remedy("shut that machine down, or use another disk image"))
            }
            // A host file system without locks is used unlocked.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(DiskLock { _file: file }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_read_only_when_it_is_said_or_cannot_be_helped() {
        assert_eq!(Disk::parse(Path::new("a:ro")), Disk { path: "a".into(), read_only: true });
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(Disk::parse(file.path()), Disk { path: file.path().into(), read_only: false });
        assert!(Disk::parse(Path::new("/no/such.img")).read_only);
    }

    #[test]
    fn one_writes_or_many_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let reader = Disk { path: file.path().into(), read_only: true };
        let writer = Disk { read_only: false, ..reader.clone() };
        let readers = [reader.lock().expect("a reader"), reader.lock().expect("another")];
        let refused = writer.lock().expect_err("it is being read").to_string();
        assert!(refused.contains("another machine is using it; shut that machine down"), "{refused}");
        drop(readers);
        let _only = writer.lock().expect("a writer");
        assert!(reader.lock().is_err() && writer.lock().is_err());
    }
}
