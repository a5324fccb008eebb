//! Finds the superblock: the primary one, or else a backup proven to be of the same volume.
//!
//! Repairing from a wrong backup destroys the current content of the disk, so a backup needs proof. A readable primary
//! superblock identifies its volume by UUID, and only a backup with that UUID is used. Without a primary superblock,
//! the disk must hold no other signature, the backups must agree on one volume, and the descriptors at the start of the
//! volume must match those of the backup. Unsupported features always end the check: the volume is intact, but not for
//! this checker.

use alloc::vec::Vec;

use super::CheckError;
use super::device::Device;
use super::superblock::{Volume, examine, feature, own};
use crate::format::error::FormatError;
use crate::format::features::{INCOMPATIBLE_FILE_TYPE, READ_ONLY_SPARSE_SUPER};
use crate::format::geometry::Backups;
use crate::format::group;
use crate::format::superblock::{BYTES, MAGIC, OFFSET, field};
use crate::format::{read_u16, read_u32, write_u16, write_u32};
use block_source::BlockSource;

/// Groups searched for backups: those that have one on every volume with more than one group.
const BACKUP_GROUPS: [u64; 8] = [1, 3, 5, 7, 9, 25, 27, 49];
/// The largest `log_block_size` of Linux: blocks of 64 KiB.
const LARGEST_LOG_BLOCK_SIZE: u32 = 6;

/// The superblock to work with.
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) volume: Volume,
    /// Block of the backup it was restored from, if the primary one is unusable.
    pub(super) backup: Option<u64>,
    /// Whether only the inode size comes from there.
    pub(super) inode_size_only: bool,
}

impl Found {
    fn new(bytes: Vec<u8>, volume: Volume, backup: Option<u64>) -> Found {
        Found { bytes, volume, backup, inode_size_only: false }
    }
}

/// A superblock at the location of a backup of its volume.
struct Candidate {
    block: u64,
    bytes: Vec<u8>,
    examined: Result<Volume, CheckError>,
}

impl Candidate {
    fn made(&self) -> u32 {
        read_u32(&self.bytes, field::MADE_TIME)
    }
}

/// Finds the superblock.
pub(super) async fn find<S: BlockSource>(device: &mut Device<'_, S>) -> Result<Found, CheckError> {
    let disk_bytes = device.bytes();
    if disk_bytes < OFFSET + BYTES as u64 {
        return Err(CheckError::Volume(FormatError::TooSmall(disk_bytes)));
    }
    let first = device.read(OFFSET, BYTES).await?;
    match examine(&first, disk_bytes) {
        Ok(volume) => outvoted(device, first, volume).await,
        Err(error) if is_final(error) => Err(error),
        Err(error @ CheckError::Volume(FormatError::NotExt2 { .. })) => without_magic(device, first, error).await,
        Err(error) => {
            let candidate = of_volume(candidates(device).await?, uuid(&first)).ok_or(error)?;
            let found = restored(candidate)?;
            Ok(with_inode_size(first, &found, disk_bytes).unwrap_or(found))
        }
    }
}

/// Returns whether an error means an intact superblock of an unsupported volume, not a damaged one.
fn is_final(error: CheckError) -> bool {
    match error {
        CheckError::Features(_) | CheckError::OtherFeatures(_) => true,
        CheckError::Volume(FormatError::UnsupportedFeatures(_) | FormatError::UnsupportedRevision(_)) => true,
        CheckError::Volume(FormatError::UnsupportedBlockSize(bytes)) => bytes <= 1024 << LARGEST_LOG_BLOCK_SIZE,
        _ => false,
    }
}

/// Finds the volume of a disk whose primary superblock lacks the magic number. A reused disk looks the same: tools wipe
/// the magic number of the previous volume.
async fn without_magic<S: BlockSource>(
    device: &mut Device<'_, S>,
    first: Vec<u8>,
    error: CheckError,
) -> Result<Found, CheckError> {
    if let Some(kind) = signature(device).await? {
        return Err(CheckError::Foreign { kind });
    }
    let mut named = first;
    write_u16(&mut named, field::MAGIC, MAGIC);
    let candidates = candidates(device).await?;
    match examine(&named, device.bytes()) {
        Err(error) if is_final(error) && is_plausible(&named) => Err(error),
        Ok(volume) => {
            let candidate = of_volume(candidates, uuid(&named)).ok_or(error)?;
            let backup = restored(candidate)?;
            // The primary superblock is newer: it refers to a journal that needs recovery.
            let same = backup.volume.geometry == volume.geometry;
            Ok(if same { Found::new(named, volume, backup.backup) } else { backup })
        }
        Err(_) => {
            let candidate = newest(candidates, error)?;
            let block = candidate.block;
            let found = restored(candidate)?;
            if !has_descriptors(device, &found.volume, block).await? {
                let reason = "the descriptors at the volume's beginning are others";
                return Err(CheckError::Unproven { backup: block, reason });
            }
            Ok(found)
        }
    }
}

/// Sanity check of fields that every superblock has. Random bytes almost never pass.
fn is_plausible(bytes: &[u8]) -> bool {
    read_u16(bytes, field::STATE) <= 7
        && read_u32(bytes, field::REVISION) <= 1
        && read_u32(bytes, field::LOG_BLOCK_SIZE) <= LARGEST_LOG_BLOCK_SIZE
        && read_u32(bytes, field::FIRST_DATA_BLOCK) <= 1
        && read_u32(bytes, field::FREE_INODES) <= read_u32(bytes, field::INODES_COUNT)
}

/// Returns the name of other content on the disk, by its signature.
async fn signature<S: BlockSource>(device: &mut Device<'_, S>) -> Result<Option<&'static str>, CheckError> {
    for probe in volume_kind::probes(device.bytes()) {
        let sector = device.read(probe.offset, volume_kind::SECTOR_BYTES).await?;
        if let Some(kind) = probe.finds(&sector) {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

fn uuid(bytes: &[u8]) -> [u8; 16] {
    core::array::from_fn(|index| bytes[field::UUID + index])
}

/// Returns all backups, of any volume, in disk order.
async fn candidates<S: BlockSource>(device: &mut Device<'_, S>) -> Result<Vec<Candidate>, CheckError> {
    let disk_bytes = device.bytes();
    let mut candidates = Vec::new();
    for block_bytes in [1024u64, 2048, 4096] {
        for group in BACKUP_GROUPS {
            let block = u64::from(block_bytes == 1024) + group * block_bytes * 8;
            let offset = block * block_bytes;
            if offset + BYTES as u64 > disk_bytes {
                break;
            }
            let bytes = device.read(offset, BYTES).await?;
            let is_numbered = u64::from(read_u16(&bytes, field::GROUP_NUMBER)) == group;
            let is_here = read_u32(&bytes, field::REVISION) == 0 || is_numbered;
            let shift = read_u32(&bytes, field::LOG_BLOCK_SIZE);
            if !is_here || 1024u64.checked_shl(shift) != Some(block_bytes) {
                continue;
            }
            let examined = examine(&bytes, disk_bytes);
            if examined.is_ok() || examined.is_err_and(is_final) {
                candidates.push(Candidate { block, bytes, examined });
            }
        }
    }
    Ok(candidates)
}

/// Returns the first backup of the volume with this UUID.
fn of_volume(candidates: Vec<Candidate>, wanted: [u8; 16]) -> Option<Candidate> {
    candidates.into_iter().find(|candidate| uuid(&candidate.bytes) == wanted)
}

/// Returns a backup of the most recently made volume. It must be unambiguous.
fn newest(candidates: Vec<Candidate>, error: CheckError) -> Result<Candidate, CheckError> {
    let made = candidates.iter().map(Candidate::made).max().ok_or(error)?;
    let mut newest = candidates.into_iter().filter(|candidate| candidate.made() == made);
    let first = newest.next().ok_or(error)?;
    for other in newest {
        let agrees = uuid(&other.bytes) == uuid(&first.bytes)
            && match (&first.examined, &other.examined) {
                (Ok(first), Ok(other)) => first.geometry == other.geometry,
                (first, other) => first == other,
            };
        if !agrees {
            return Err(CheckError::Unproven { backup: first.block, reason: "other backups contradict it" });
        }
    }
    Ok(first)
}

fn restored(candidate: Candidate) -> Result<Found, CheckError> {
    let Candidate { block, mut bytes, examined, .. } = candidate;
    let volume = examined?;
    write_u16(&mut bytes, field::GROUP_NUMBER, 0);
    Ok(Found::new(bytes, volume, Some(block)))
}

/// Returns the primary superblock with the inode size of a backup, if its own is 0 and nothing else is wrong with it.
fn with_inode_size(mut first: Vec<u8>, backup: &Found, disk_bytes: u64) -> Option<Found> {
    if read_u16(&first, field::INODE_SIZE) != 0 {
        return None;
    }
    write_u16(&mut first, field::INODE_SIZE, read_u16(&backup.bytes, field::INODE_SIZE));
    let volume = examine(&first, disk_bytes).ok()?;
    let is_same = volume.geometry == backup.volume.geometry;
    is_same.then_some(Found { bytes: first, volume, backup: backup.backup, inode_size_only: true })
}

/// Returns whether the primary descriptor table names the same places as the copy behind a backup, for at least one
/// group.
async fn has_descriptors<S: BlockSource>(
    device: &mut Device<'_, S>,
    volume: &Volume,
    backup: u64,
) -> Result<bool, CheckError> {
    let geometry = &volume.geometry;
    let block_bytes = u64::from(geometry.block_bytes);
    let first = u64::from(geometry.first_data_block);
    let own = device.read((first + 1) * block_bytes, geometry.block_bytes as usize).await?;
    let copy = device.read((backup + 1) * block_bytes, geometry.block_bytes as usize).await?;
    let rows = own.chunks_exact(group::BYTES).zip(copy.chunks_exact(group::BYTES));
    // The first three fields of a descriptor never change.
    let places = |row: &[u8]| [0, 4, 8].map(|offset| read_u32(row, offset));
    Ok(rows.take(geometry.groups as usize).any(|(own, copy)| places(own) == places(copy) && places(own) != [0; 3]))
}

/// Features that determine the layout. Tools that change them update the backups, too.
const LAYOUT_FEATURES: [(usize, u32); 3] = [
    (field::COMPATIBLE, feature::RESIZE_INODE | feature::SPARSE_SUPER_2),
    (field::INCOMPATIBLE, INCOMPATIBLE_FILE_TYPE),
    (field::READ_ONLY_COMPATIBLE, READ_ONLY_SPARSE_SUPER),
];

/// Compares a plausible superblock with two backups of the same volume: where both agree on the layout and the primary
/// differs, the backups win.
async fn outvoted<S: BlockSource>(
    device: &mut Device<'_, S>,
    first: Vec<u8>,
    volume: Volume,
) -> Result<Found, CheckError> {
    let layout = |bytes: &[u8], volume: &Volume| {
        let features = LAYOUT_FEATURES.map(|(offset, mask)| read_u32(bytes, offset) & mask);
        (volume.geometry, features)
    };
    let mine = layout(&first, &volume);
    let geometry = volume.geometry;
    let mut votes = Vec::new();
    for group in [1, 3].into_iter().filter(|&group| group < geometry.groups) {
        let block = u64::from(geometry.group_first(group));
        let bytes = device.read(block * u64::from(geometry.block_bytes), BYTES).await?;
        if let Ok(backup) = examine(&bytes, device.bytes())
            && uuid(&bytes) == uuid(&first)
        {
            votes.push((block, layout(&bytes, &backup), bytes));
        }
    }
    let [(backup, theirs, bytes), (_, other, _)] = &votes[..] else {
        return Ok(Found::new(first, volume, None));
    };
    // With backups in two groups only, those may be left over from a previous volume.
    if theirs != other || *theirs == mine || matches!(geometry.backups, Backups::Two(_)) {
        return Ok(Found::new(first, volume, None));
    }
    let mut repaired = first;
    for offset in [field::INODES_COUNT, field::BLOCKS_COUNT, field::BLOCKS_PER_GROUP, field::INODES_PER_GROUP] {
        write_u32(&mut repaired, offset, read_u32(bytes, offset));
    }
    for offset in [field::INODE_SIZE, own::SPARE_DESCRIPTORS] {
        write_u16(&mut repaired, offset, read_u16(bytes, offset));
    }
    for (offset, mask) in LAYOUT_FEATURES {
        let features = read_u32(&repaired, offset) & !mask | read_u32(bytes, offset) & mask;
        write_u32(&mut repaired, offset, features);
    }
    let volume = examine(&repaired, device.bytes())?;
    Ok(Found::new(repaired, volume, Some(*backup)))
}
