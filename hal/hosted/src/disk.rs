//! Disks backed by files.
//!
//! Key types: [`DiskSpecification`] (a file to open), [`Disk`] (an opened, locked file),
//! [`DiskError`]. Reads from the host's page cache complete at once; all other requests go to the pool.
//! Deliberately not here: file systems.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hal_api::{DeviceFailure, DeviceOperation, DeviceResult, Submitted};

use crate::transfer::{self, Blocking, Memory};
use crate::{entries, pool};

/// Maximum time that the host takes to close the files of a machine that was killed.
const LOCK_LIMIT: Duration = Duration::from_millis(300);
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// Access to a disk file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAccess {
    /// Writable if the host allows this user to write.
    WriteIfAllowed,
    /// Read-only.
    ReadOnly,
}

/// A disk to offer.
#[derive(Clone, Debug)]
pub struct DiskSpecification {
    /// The file or block device.
    pub path: PathBuf,
    /// Requested access.
    pub access: DiskAccess,
}

/// Reason why a disk file cannot be used.
#[derive(Debug)]
pub struct DiskError {
    path: PathBuf,
    reason: DiskErrorReason,
}

#[derive(Debug)]
enum DiskErrorReason {
    Missing,
    Folder,
    NotADisk,
    Forbidden,
    Empty,
    InUse,
    Host(io::Error),
}

impl fmt::Display for DiskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            DiskErrorReason::Missing => write!(formatter, "disk {path}: there is no such file; give the path of one"),
            DiskErrorReason::Folder => {
                write!(formatter, "disk {path}: this is a folder; give the path of a disk image file")
            }
            DiskErrorReason::NotADisk => {
                write!(formatter, "disk {path}: this is neither a file nor a block device; give the path of one")
            }
            DiskErrorReason::Forbidden => {
                write!(formatter, "disk {path}: permission denied; make it readable for this user")
            }
            DiskErrorReason::Empty => {
                write!(formatter, "disk {path}: the file is empty; make a disk image first, or give another file")
            }
            DiskErrorReason::InUse => {
                write!(formatter, "disk {path}: another machine is using it; shut that one down, or give another file")
            }
            DiskErrorReason::Host(error) => {
                write!(formatter, "disk {path}: it cannot be opened ({error}); check the path")
            }
        }
    }
}

impl std::error::Error for DiskError {}

/// An open, locked disk file.
#[derive(Debug)]
pub(crate) struct Disk {
    file: Arc<File>,
    bytes: u64,
    access: DiskAccess,
}

/// A request to a disk, checked against its size.
#[derive(Clone, Copy)]
struct Transfer {
    operation: DeviceOperation,
    offset: u64,
    memory: Memory,
    done: usize,
}

impl Disk {
    /// Opens and locks the file; falls back to read-only access if it may not be written.
    pub(crate) fn open(specification: &DiskSpecification) -> Result<Self, DiskError> {
        let fail = |reason| DiskError { path: specification.path.clone(), reason };
        let (mut file, access) = open_file(specification).map_err(fail)?;
        lock(&file, access).map_err(fail)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(|error| fail(DiskErrorReason::Host(error)))?;
        if bytes == 0 {
            return Err(fail(DiskErrorReason::Empty));
        }
        Ok(Self { file: Arc::new(file), bytes, access })
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether writes are refused.
    pub(crate) fn read_only(&self) -> bool {
        self.access == DiskAccess::ReadOnly
    }

    /// Starts a request.
    pub(crate) fn submit(&self, token: u64, operation: DeviceOperation, offset: u64, memory: Memory) -> Submitted {
        let end = u64::try_from(memory.bytes()).ok().and_then(|bytes| offset.checked_add(bytes));
        let refused = match operation {
            DeviceOperation::Read => end.is_none_or(|end| end > self.bytes),
            DeviceOperation::Write => self.read_only() || end.is_none_or(|end| end > self.bytes),
            DeviceOperation::Flush => false,
        };
        if refused {
            return Submitted::Complete(Err(DeviceFailure));
        }
        let nothing_to_do = match operation {
            DeviceOperation::Read | DeviceOperation::Write => memory.bytes() == 0,
            DeviceOperation::Flush => self.read_only(),
        };
        if nothing_to_do {
            return Submitted::Complete(Ok(0));
        }
        let mut transfer = Transfer { operation, offset, memory, done: 0 };
        if operation == DeviceOperation::Read {
            let cached = transfer::read_at(self.file.as_raw_fd(), offset, memory, Blocking::Never);
            transfer.done = cached.unwrap_or(0);
            if transfer.done == memory.bytes() {
                return Submitted::Complete(Ok(transfer.done));
            }
        }
        self.queue(token, transfer)
    }

    fn queue(&self, token: u64, transfer: Transfer) -> Submitted {
        let Some(entries) = entries::get() else { return Submitted::Complete(Err(DeviceFailure)) };
        let file = Arc::clone(&self.file);
        let queued = pool::DISKS.submit(Box::new(move || {
            let result = transfer.run(&file);
            (entries.device_complete)(token, result.unwrap_or(0) as u64, result.is_err());
        }));
        if queued { Submitted::Queued } else { Submitted::Complete(Err(DeviceFailure)) }
    }
}

impl Transfer {
    /// Completes the transfer, blocking.
    fn run(mut self, file: &File) -> DeviceResult {
        let descriptor = file.as_raw_fd();
        if self.operation == DeviceOperation::Flush {
            return transfer::flush(descriptor).map(|()| 0).map_err(|_| DeviceFailure);
        }
        while self.done < self.memory.bytes() {
            let offset = self.offset + self.done as u64;
            let rest = self.memory.after(self.done);
            let answer = match self.operation {
                DeviceOperation::Read => transfer::read_at(descriptor, offset, rest, Blocking::Wait),
                _ => transfer::write_at(descriptor, offset, rest),
            };
            match answer {
                // The file was truncated below the size of the disk.
                Ok(0) => return Err(DeviceFailure),
                Ok(bytes) => self.done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(DeviceFailure),
            }
        }
        Ok(self.done)
    }
}

fn open_file(specification: &DiskSpecification) -> Result<(File, DiskAccess), DiskErrorReason> {
    let path = &specification.path;
    let kind = path.metadata().map_err(reason)?.file_type();
    if kind.is_dir() {
        return Err(DiskErrorReason::Folder);
    }
    if !kind.is_file() && !kind.is_block_device() {
        return Err(DiskErrorReason::NotADisk);
    }
    if specification.access == DiskAccess::WriteIfAllowed {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => return Ok((file, DiskAccess::WriteIfAllowed)),
            Err(error) if is_write_refusal(&error) => {}
            Err(error) => return Err(reason(error)),
        }
    }
    open_to_read(path).map(|file| (file, DiskAccess::ReadOnly))
}

fn open_to_read(path: &Path) -> Result<File, DiskErrorReason> {
    File::open(path).map_err(reason)
}

fn is_write_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::ExecutableFileBusy
    )
}

fn reason(error: io::Error) -> DiskErrorReason {
    match error.kind() {
        io::ErrorKind::NotFound => DiskErrorReason::Missing,
        io::ErrorKind::PermissionDenied => DiskErrorReason::Forbidden,
        io::ErrorKind::IsADirectory => DiskErrorReason::Folder,
        _ => DiskErrorReason::Host(error),
    }
}

/// Locks for one writing machine, or any number of readers. A file system without locks is used unlocked.
fn lock(file: &File, access: DiskAccess) -> Result<(), DiskErrorReason> {
    let begin = Instant::now();
    loop {
        let answer = match access {
            DiskAccess::WriteIfAllowed => file.try_lock(),
            DiskAccess::ReadOnly => file.try_lock_shared(),
        };
        match answer {
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_LIMIT => thread::sleep(LOCK_AGAIN),
            Err(TryLockError::WouldBlock) => return Err(DiskErrorReason::InUse),
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(path: &Path, access: DiskAccess) -> Result<Disk, DiskError> {
        Disk::open(&DiskSpecification { path: path.to_owned(), access })
    }

    /// A file of this process and test, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("hal-hosted-{}-{name}", std::process::id()));
            fs::write(&path, bytes).expect("a writable temporary folder");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(fs::remove_file(&self.0));
        }
    }

    #[test]
    fn each_unusable_file_has_its_sentence() {
        let empty = Scratch::new("empty", b"");
        let cases: [(&Path, &str); 4] = [
            (Path::new("/no/such/disk"), "no such file"),
            (Path::new("/"), "folder"),
            (Path::new("/dev/null"), "neither a file nor a block device"),
            (&empty.0, "empty"),
        ];
        for (path, part) in cases {
            let said = open(path, DiskAccess::WriteIfAllowed).expect_err("unusable").to_string();
            assert!(said.contains(part) && said.contains(&*path.to_string_lossy()) && said.contains("; "), "{said}");
        }
    }

    #[test]
    fn one_machine_writes_or_several_read() {
        let file = Scratch::new("locked", b"disk");
        let writer = open(&file.0, DiskAccess::WriteIfAllowed).expect("the first");
        assert!(!writer.read_only());
        for access in [DiskAccess::WriteIfAllowed, DiskAccess::ReadOnly] {
            let said = open(&file.0, access).expect_err("in use").to_string();
            assert!(said.contains("another machine is using it"), "{said}");
        }
        drop(writer);
        let readers = [open(&file.0, DiskAccess::ReadOnly), open(&file.0, DiskAccess::ReadOnly)];
        assert!(readers.iter().all(|reader| reader.as_ref().is_ok_and(Disk::read_only)));
        assert!(open(&file.0, DiskAccess::WriteIfAllowed).is_err());
    }
}
