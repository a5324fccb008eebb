//! Sources and targets of a copy.

use alloc::string::{String, ToString};
use core::fmt;

use client::access::AccessError;
use client::file_io::OpenFile;
use client::file_writer::NEW_PERMISSIONS;
use client::namespace::Namespace;
use client::volume_managers::VolumeManager;
use contracts::directory::{CreateMode, NameError};
use contracts::file::FileError;
use sip::exheap::ExVec;
use stdio::{Input, Output, PipeBroken};
use text::padded;

use crate::dd::disk::RawDisk;

/// Why a copy ended early.
pub enum Error {
    /// Access to a file or disk failed.
    Access { path: String, error: AccessError },
    /// The data does not fit on the disk.
    DiskFull { path: String, size_bytes: u64 },
    /// The disk is mounted; writing to it would bypass its file system.
    Mounted { path: String, point: String },
    /// Standard input ended unexpectedly.
    Input(PipeBroken),
    /// There is no standard input.
    NoInput,
    /// The reader of the output has ended.
    NoReader,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Access { path, error } => write!(formatter, "{path}: {error}"),
            Error::DiskFull { path, size_bytes } => {
                write!(formatter, "{path}: the disk ends after {size_bytes} bytes; data up to there is written")
            }
            Error::Mounted { path, point } => {
                write!(formatter, "{path}: mounted at {point}; `umount {point}` first")
            }
            Error::Input(broken) => write!(formatter, "standard input ended early: {broken}"),
            Error::NoInput => {
                formatter.write_str("standard input is not connected; name a file or disk with --from PATH")
            }
            Error::NoReader => formatter.write_str("broken pipe"),
        }
    }
}

fn at(path: &str) -> impl FnOnce(AccessError) -> Error + '_ {
    move |error| Error::Access { path: path.to_string(), error }
}

/// Source of blocks.
pub enum From {
    /// A file, at an offset.
    File { path: String, file: OpenFile, offset: u64, spare: Option<ExVec<u8>> },
    /// A disk, at an offset.
    Disk { disk: RawDisk, offset: u64 },
    /// Standard input, and the unread rest of its last block.
    Input { input: Input, rest: Option<(ExVec<u8>, usize)> },
}

impl From {
    /// Opens the named file or disk, or standard input.
    pub fn open(
        namespace: &mut Namespace,
        working_folder: &str,
        asked: Option<&str>,
        input: Option<Input>,
    ) -> Result<From, Error> {
        let Some(asked) = asked else {
            let input = input.ok_or(Error::NoInput)?;
            return Ok(From::Input { input, rest: None });
        };
        let full = path::absolute(working_folder, asked);
        match namespace.open_file(&full) {
            Err(AccessError::Name(NameError::WrongContract)) => {
                let disk = RawDisk::open(namespace, &full).map_err(at(asked))?;
                Ok(From::Disk { disk, offset: 0 })
            }
            Ok(file) => Ok(From::File { path: asked.to_string(), file, offset: 0, spare: None }),
            Err(error) => Err(at(asked)(error)),
        }
    }

    /// Skips this many bytes.
    pub fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        match self {
            From::File { offset, .. } | From::Disk { offset, .. } => *offset = bytes,
            From::Input { .. } => {
                let mut left = bytes;
                while left > 0 {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 16);
                    let Some((_, skipped)) = self.block(most)? else { break };
                    left -= skipped as u64;
                }
            }
        }
        Ok(())
    }

    /// Returns the next block and its valid length: `wanted`, or less at the end. `None` after the end.
    pub fn block(&mut self, wanted: usize) -> Result<Option<(ExVec<u8>, usize)>, Error> {
        let (block, bytes) = match self {
            From::File { path, file, offset, spare } => {
                let block = match spare.take() {
                    Some(block) if block.len() == wanted => block,
                    _ => ExVec::new(wanted).map_err(|status| at(path)(status.into()))?,
                };
                let (block, bytes) = file.read_at(block, *offset).map_err(at(path))?;
                *offset += bytes as u64;
                (block, bytes)
            }
            From::Disk { disk, offset } => {
                let (block, bytes) = disk.read(*offset, wanted)?;
                *offset += bytes as u64;
                (block, bytes)
            }
            From::Input { input, rest } => gather(input, rest, wanted)?,
        };
        Ok((bytes > 0).then_some((block, bytes)))
    }

    /// Returns a block for reuse.
    pub fn recycle(&mut self, block: Option<ExVec<u8>>) {
        if let From::File { spare, .. } = self {
            *spare = block;
        }
    }
}

/// Gathers a block from standard input, which arrives in pieces of any size.
fn gather(
    input: &mut Input,
    rest: &mut Option<(ExVec<u8>, usize)>,
    wanted: usize,
) -> Result<(ExVec<u8>, usize), Error> {
    let mut block = ExVec::<u8>::new(wanted).map_err(|status| Error::Input(PipeBroken::System(status)))?;
    let mut filled = 0;
    while filled < wanted {
        let (piece, taken) = match rest.take() {
            Some(rest) => rest,
            None => match input.block().map_err(Error::Input)? {
                Some(piece) => (piece, 0),
                None => break,
            },
        };
        let bytes = (wanted - filled).min(piece.len() - taken);
        block[filled..filled + bytes].copy_from_slice(&piece[taken..taken + bytes]);
        filled += bytes;
        if taken + bytes < piece.len() {
            *rest = Some((piece, taken + bytes));
        }
    }
    Ok((block, filled))
}

/// Target of blocks.
pub enum To {
    /// A file.
    File { path: String, file: OpenFile },
    /// A disk.
    Disk(RawDisk),
    /// Standard output.
    Output(Output),
}

impl To {
    /// Opens a disk, or opens or creates a file. Content is kept unless overwritten.
    pub fn open(namespace: &mut Namespace, asked: &str, full: &str) -> Result<To, Error> {
        match namespace.open_file(full) {
            Ok(file) => Ok(To::File { path: asked.to_string(), file }),
            Err(AccessError::Name(NameError::WrongContract)) => {
                refuse_mounted(namespace, asked, full)?;
                let disk = RawDisk::open(namespace, full).map_err(at(asked))?;
                Ok(To::Disk(disk))
            }
            Err(AccessError::Name(NameError::NotFound) | AccessError::File(FileError::NotFound)) => {
                let file = namespace.create_file(full, NEW_PERMISSIONS, CreateMode::OpenExisting).map_err(at(asked))?;
                Ok(To::File { path: asked.to_string(), file })
            }
            Err(error) => Err(at(asked)(error)),
        }
    }

    /// Writes the first `bytes` bytes of a block at an offset. Returns the block, unless it was handed on.
    pub fn write(&mut self, block: ExVec<u8>, offset: u64, bytes: usize) -> Result<Option<ExVec<u8>>, Error> {
        match self {
            To::File { path, file } => {
                let written = file.write_at(block, offset, bytes).map_err(at(path))?;
                written.all().map(Some).map_err(at(path))
            }
            To::Disk(disk) => disk.write(block, offset, bytes).map(Some),
            To::Output(output) if bytes < block.len() => {
                output.write(&block[..bytes]).map_err(|_| Error::NoReader)?;
                Ok(Some(block))
            }
            To::Output(output) => {
                output.write_block(block).map_err(|_| Error::NoReader)?;
                Ok(None)
            }
        }
    }

    /// Ends the copy: flushes a disk, finishes standard output.
    pub fn finish(self) -> Result<(), Error> {
        match self {
            To::File { .. } => Ok(()),
            To::Disk(mut disk) => disk.flush(),
            To::Output(output) => output.finish().map_err(|_| Error::NoReader),
        }
    }
}

/// Refuses a disk whose volume is mounted, or that shares a partition with a mounted one: it is owned by its file
/// system.
fn refuse_mounted(namespace: &mut Namespace, asked: &str, full: &str) -> Result<(), Error> {
    let failed = || Error::Access { path: asked.to_string(), error: NameError::Unavailable.into() };
    for mut manager in VolumeManager::open_all(namespace).map_err(|_| failed())? {
        for mount in manager.list().map_err(|_| failed())? {
            if shares_room(&padded(&mount.disk), full) {
                return Err(Error::Mounted { path: asked.to_string(), point: padded(&mount.point) });
            }
        }
    }
    Ok(())
}

/// Whether the disks overlap, one being the other or a partition of it: `/dev/disk0` and `/dev/disk0p1`.
fn shares_room(one: &str, other: &str) -> bool {
    let is_part = |part: &str, whole: &str| {
        let number = part.strip_prefix(whole).and_then(|rest| rest.strip_prefix('p'));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    one == other || is_part(one, other) || is_part(other, one)
}

#[cfg(test)]
mod tests {
    use super::shares_room;

    #[test]
    fn partitions_share_the_room_of_their_disk() {
        assert!(shares_room("/dev/disk0", "/dev/disk0"));
        assert!(shares_room("/dev/disk0p1", "/dev/disk0"));
        assert!(shares_room("/dev/disk0", "/dev/disk0p12"));
        assert!(!shares_room("/dev/disk0p1", "/dev/disk0p2"));
        assert!(!shares_room("/dev/disk1", "/dev/disk10"));
    }
}
