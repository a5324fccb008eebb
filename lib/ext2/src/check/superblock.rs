//! The superblock and its backups.

use super::state::{Checker, STATE_CLEAN, STATE_ERRORS};
use super::{CheckError, Fault};
use crate::format::error::FormatError;
use crate::format::features::{
    FeatureNames, INCOMPATIBLE_FILE_TYPE, INCOMPATIBLE_RECOVER, READ_ONLY_LARGE_FILE, READ_ONLY_SPARSE_SUPER,
};
use crate::format::geometry::{Backups, FIRST_INODE, Geometry};
use crate::format::superblock::{BYTES, MAGIC, OLD_INODE_BYTES, field};
use crate::format::{group, inode, read_u16, read_u32, write_u16, write_u32};
use block_source::BlockSource;

/// Kind of a folder in an entry.
pub(super) const KIND_FOLDER: u8 = 2;

/// Features known to the checker, apart from those that it only leaves alone.
pub(super) mod feature {
    pub(crate) const HAS_JOURNAL: u32 = 0x4;
    pub(crate) const ATTRIBUTES: u32 = 0x8;
    pub(crate) const RESIZE_INODE: u32 = 0x10;
    pub(crate) const DIR_INDEX: u32 = 0x20;
    pub(crate) const SPARSE_SUPER_2: u32 = 0x200;
    /// Features with which a volume can be checked.
    pub(crate) const KNOWN: u32 = 0x1 | HAS_JOURNAL | ATTRIBUTES | RESIZE_INODE | DIR_INDEX | SPARSE_SUPER_2 | 0x800;
    /// Folders may have more subfolders than can be counted.
    pub(crate) const DIR_NLINK: u32 = 0x20;
    pub(crate) const EXTRA_SIZE: u32 = 0x40;
    /// An early form of indexed folders that was never used.
    pub(crate) const OLD_TREE: u32 = 0x4;
}

const KNOWN_INCOMPATIBLE: u32 = INCOMPATIBLE_FILE_TYPE | INCOMPATIBLE_RECOVER;
const KNOWN_READ_ONLY: u32 =
    READ_ONLY_SPARSE_SUPER | READ_ONLY_LARGE_FILE | feature::OLD_TREE | feature::DIR_NLINK | feature::EXTRA_SIZE;

/// Fields that only the checker uses.
pub(super) mod own {
    pub(crate) const SPARE_DESCRIPTORS: usize = 206;
    pub(crate) const DESCRIPTOR_BYTES: usize = 254;
    pub(crate) const LOG_GROUPS_PER_FLEX: usize = 372;
    pub(crate) const BACKUP_GROUPS: usize = 588;
}

/// Values of a superblock whose numbers are consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) geometry: Geometry,
    pub(super) first_inode: u32,
    pub(super) revision: u32,
    pub(super) compatible: u32,
    pub(super) incompatible: u32,
    pub(super) read_only: u32,
}

impl Volume {
    pub(super) fn inodes(&self) -> u32 {
        self.geometry.inodes()
    }

    /// Returns whether directory entries have kinds.
    pub(super) fn has_kinds(&self) -> bool {
        self.incompatible & INCOMPATIBLE_FILE_TYPE != 0
    }

    pub(super) fn has(&self, compatible: u32) -> bool {
        self.compatible & compatible != 0
    }

    /// Maximum blocks of a folder: 2 GiB.
    pub(super) fn folder_blocks(&self) -> u64 {
        (2 << 30) / u64::from(self.geometry.block_bytes)
    }

    /// Maximum size within reach of the block numbers.
    pub(super) fn largest_file(&self) -> u64 {
        let numbers = u64::from(self.geometry.block_bytes / 4);
        (12 + numbers + numbers * numbers + numbers * numbers * numbers) * u64::from(self.geometry.block_bytes)
    }
}

/// Checks a superblock's numbers against each other and the disk, as far as locating anything depends on them.
pub(super) fn examine(bytes: &[u8], disk_bytes: u64) -> Result<Volume, CheckError> {
    let number = |offset| read_u32(bytes, offset);
    let magic = read_u16(bytes, field::MAGIC);
    if magic != MAGIC {
        return Err(CheckError::Volume(FormatError::NotExt2 { found: magic, backup: None }));
    }
    let revision = number(field::REVISION);
    if revision > 1 {
        return Err(CheckError::Volume(FormatError::UnsupportedRevision(revision)));
    }
    let features = [field::COMPATIBLE, field::INCOMPATIBLE, field::READ_ONLY_COMPATIBLE].map(number);
    // Revision 0 has no features: if there are any, the revision is wrong.
    let revision = if features == [0; 3] { revision } else { 1 };
    let [compatible, incompatible, read_only] = features;
    if incompatible & !KNOWN_INCOMPATIBLE != 0 {
        let names = FeatureNames(incompatible & !KNOWN_INCOMPATIBLE);
        return Err(CheckError::Volume(FormatError::UnsupportedFeatures(names)));
    }
    if read_only & !KNOWN_READ_ONLY != 0 {
        return Err(CheckError::Features(read_only & !KNOWN_READ_ONLY));
    }
    if compatible & !feature::KNOWN != 0 {
        return Err(CheckError::OtherFeatures(compatible & !feature::KNOWN));
    }
    let log_block_size = number(field::LOG_BLOCK_SIZE);
    if log_block_size > 2 {
        let bytes = 1024u64.checked_shl(log_block_size).unwrap_or(u64::MAX);
        return Err(CheckError::Volume(FormatError::UnsupportedBlockSize(bytes)));
    }
    let geometry = geometry(bytes, revision, 1024 << log_block_size, compatible, read_only)?;
    let volume_bytes = u64::from(geometry.blocks) * u64::from(geometry.block_bytes);
    if volume_bytes > disk_bytes {
        return Err(CheckError::Volume(FormatError::Truncated { disk_bytes, volume_bytes }));
    }
    let says = number(field::FIRST_INODE);
    let first_inode = match revision {
        1 if (FIRST_INODE..=geometry.inodes()).contains(&says) => says,
        _ => FIRST_INODE,
    };
    Ok(Volume { geometry, first_inode, revision, compatible, incompatible, read_only })
}

fn geometry(
    bytes: &[u8],
    revision: u32,
    block_bytes: u32,
    compatible: u32,
    read_only: u32,
) -> Result<Geometry, CheckError> {
    let number = |offset| read_u32(bytes, offset);
    let within = |field: &'static str, says: u32, least: u32, most: u32| match says {
        says if (least..=most).contains(&says) => Ok(says),
        says => Err(CheckError::Superblock { field, says: says.into() }),
    };
    let first_data_block = u32::from(block_bytes == 1024);
    within("first_data_block", number(field::FIRST_DATA_BLOCK), first_data_block, first_data_block)?;
    let bits = block_bytes * 8;
    let blocks_per_group = within("blocks_per_group", number(field::BLOCKS_PER_GROUP), 64, bits)?;
    let inode_bytes = if revision == 0 { OLD_INODE_BYTES } else { read_u16(bytes, field::INODE_SIZE).into() };
    within("inode_size", inode_bytes, inode::BYTES as u32, block_bytes)?;
    if !inode_bytes.is_power_of_two() {
        return Err(CheckError::Superblock { field: "inode_size", says: inode_bytes.into() });
    }
    let inodes_per_group =
        within("inodes_per_group", number(field::INODES_PER_GROUP), block_bytes / inode_bytes, bits)?;
    // Bitmaps consist of whole bytes.
    for (field, says) in [("blocks_per_group", blocks_per_group), ("inodes_per_group", inodes_per_group)] {
        if !says.is_multiple_of(8) {
            return Err(CheckError::Superblock { field, says: says.into() });
        }
    }
    let blocks = within("blocks_count", number(field::BLOCKS_COUNT), first_data_block + 6, u32::MAX)?;
    let groups = (blocks - first_data_block).div_ceil(blocks_per_group);
    let spare = u32::from(read_u16(bytes, own::SPARE_DESCRIPTORS));
    within("reserved_gdt_blocks", spare, 0, block_bytes / 4)?;
    let backups = match () {
        () if compatible & feature::SPARSE_SUPER_2 != 0 => {
            Backups::Two([own::BACKUP_GROUPS, own::BACKUP_GROUPS + 4].map(number))
        }
        () if read_only & READ_ONLY_SPARSE_SUPER != 0 => Backups::Sparse,
        () => Backups::Every,
    };
    let geometry = Geometry {
        block_bytes,
        first_data_block,
        blocks,
        groups,
        blocks_per_group,
        inodes_per_group,
        inode_bytes,
        descriptor_blocks: groups.div_ceil(block_bytes / group::BYTES as u32),
        spare_descriptor_blocks: if compatible & feature::RESIZE_INODE != 0 { spare } else { 0 },
        backups,
    };
    let inodes = u64::from(inodes_per_group) * u64::from(groups);
    let counted = within("inodes_per_group", inodes_per_group, (FIRST_INODE).div_ceil(groups), bits);
    if inodes > u64::from(u32::MAX) - 1 || counted.is_err() {
        return Err(CheckError::Superblock { field: "inodes_per_group", says: inodes_per_group.into() });
    }
    // Every group has room for its metadata.
    let largest = geometry.copies(0) + 2 + geometry.inode_table_blocks();
    let last = groups - 1;
    if largest > geometry.group_blocks(0) || geometry.overhead(last) > geometry.group_blocks(last) {
        return Err(CheckError::Superblock { field: "blocks_count", says: blocks.into() });
    }
    Ok(geometry)
}

impl<S: BlockSource> Checker<'_, S> {
    /// Checks the fields derived from others, and the state.
    pub(super) async fn check_superblock(&mut self) -> Result<(), CheckError> {
        let (volume, geometry) = (self.volume, self.volume.geometry);
        let log_block_size = read_u32(&self.superblock, field::LOG_BLOCK_SIZE);
        let wide = [
            ("inodes_count", field::INODES_COUNT, volume.inodes()),
            ("log_frag_size", field::LOG_FRAGMENT_SIZE, log_block_size),
            ("frags_per_group", field::FRAGMENTS_PER_GROUP, geometry.blocks_per_group),
            ("rev_level", field::REVISION, volume.revision),
        ];
        for (name, offset, right) in wide {
            self.expect_wide(name, offset, right).await?;
        }
        if read_u32(&self.superblock, field::RESERVED_BLOCKS) > geometry.blocks / 2 {
            self.expect_wide("r_blocks_count", field::RESERVED_BLOCKS, geometry.blocks / 20).await?;
        }
        let descriptor_bytes = read_u16(&self.superblock, own::DESCRIPTOR_BYTES);
        if descriptor_bytes != 0 && (!descriptor_bytes.is_power_of_two() || descriptor_bytes > 1024) {
            self.expect_narrow("desc_size", own::DESCRIPTOR_BYTES, 0).await?;
        }
        // It has no meaning without `flex_bg`, but other implementations accept no larger one.
        if self.superblock[own::LOG_GROUPS_PER_FLEX] > 31 {
            let right = read_u16(&self.superblock, own::LOG_GROUPS_PER_FLEX) & 0xff00;
            self.expect_narrow("log_groups_per_flex", own::LOG_GROUPS_PER_FLEX, right).await?;
        }
        if volume.revision > 0 {
            self.expect_wide("first_ino", field::FIRST_INODE, volume.first_inode).await?;
        }
        self.check_small_fields().await?;
        if self.is_first_round() && !self.is_marked() {
            let state = read_u16(&self.superblock, field::STATE);
            if state & STATE_ERRORS != 0 {
                self.report(Fault::ErrorsRecorded).await?;
            } else if state & STATE_CLEAN == 0 {
                self.report(Fault::NotClean).await?;
            }
        }
        Ok(())
    }

    async fn check_small_fields(&mut self) -> Result<(), CheckError> {
        let volume = self.volume;
        if !volume.has(feature::RESIZE_INODE) {
            self.expect_narrow("reserved_gdt_blocks", own::SPARE_DESCRIPTORS, 0).await?;
        }
        let room = volume.geometry.inode_bytes - inode::BYTES as u32;
        for (name, offset) in
            [("min_extra_isize", field::MIN_EXTRA_BYTES), ("want_extra_isize", field::WANTED_EXTRA_BYTES)]
        {
            let says = u32::from(read_u16(&self.superblock, offset));
            if room > 0 && says != 0 && (!(4..=room).contains(&says) || !says.is_multiple_of(4)) {
                self.expect_narrow(name, offset, crate::format::fresh::EXTRA_BYTES).await?;
            }
        }
        Ok(())
    }

    async fn expect_wide(&mut self, name: &'static str, offset: usize, right: u32) -> Result<(), CheckError> {
        let says = read_u32(&self.superblock, offset);
        let fault = Fault::SuperblockField { field: name, says: says.into(), right: right.into() };
        if says != right && self.report(fault).await? {
            write_u32(&mut self.superblock, offset, right);
            self.write_superblock().await?;
        }
        Ok(())
    }

    async fn expect_narrow(&mut self, name: &'static str, offset: usize, right: u16) -> Result<(), CheckError> {
        let says = read_u16(&self.superblock, offset);
        let fault = Fault::SuperblockField { field: name, says: says.into(), right: right.into() };
        if says != right && self.report(fault).await? {
            write_u16(&mut self.superblock, offset, right);
            self.write_superblock().await?;
        }
        Ok(())
    }

    /// Checks that the superblock has the features that the inodes use.
    pub(super) async fn check_features(&mut self) -> Result<(), CheckError> {
        let has = self.volume.read_only & READ_ONLY_LARGE_FILE != 0;
        if self.needs_large_file && !has && self.report(Fault::MissingFeature { name: "large_file" }).await? {
            if self.volume.revision == 0 {
                write_u32(&mut self.superblock, field::REVISION, 1);
                write_u32(&mut self.superblock, field::FIRST_INODE, FIRST_INODE);
                write_u16(&mut self.superblock, field::INODE_SIZE, OLD_INODE_BYTES as u16);
                self.volume.revision = 1;
            }
            self.volume.read_only |= READ_ONLY_LARGE_FILE;
            write_u32(&mut self.superblock, field::READ_ONLY_COMPATIBLE, self.volume.read_only);
            self.write_superblock().await?;
        }
        Ok(())
    }

    /// Compares the backups with the repaired superblock, in the fields that must agree.
    pub(super) async fn check_backups(&mut self) -> Result<(), CheckError> {
        let geometry = self.volume.geometry;
        for group in (1..geometry.groups).filter(|&group| geometry.has_superblock(group)) {
            let first = geometry.group_first(group);
            let mut bytes = self.read_block(first).await?;
            if !self.is_backup(&bytes) && self.report(Fault::BackupSuperblock { group }).await? {
                bytes[..BYTES].copy_from_slice(&self.superblock);
                if self.volume.revision > 0 {
                    write_u16(&mut bytes, field::GROUP_NUMBER, group as u16);
                }
                self.write_block(first, &bytes).await?;
            }
            self.check_descriptor_copy(group).await?;
        }
        Ok(())
    }

    /// Returns whether a backup has the same values in the fields that never change during use.
    fn is_backup(&self, bytes: &[u8]) -> bool {
        let same = |offset| read_u32(bytes, offset) == read_u32(&self.superblock, offset);
        let always = [
            field::INODES_COUNT,
            field::BLOCKS_COUNT,
            field::FIRST_DATA_BLOCK,
            field::LOG_BLOCK_SIZE,
            field::BLOCKS_PER_GROUP,
            field::INODES_PER_GROUP,
            field::UUID,
            field::UUID + 4,
            field::UUID + 8,
            field::UUID + 12,
        ];
        if read_u16(bytes, field::MAGIC) != MAGIC || !always.into_iter().all(same) {
            return false;
        }
        let modern = read_u32(bytes, field::REVISION) == 1 && self.volume.revision == 1;
        let features =
            |offset, changing: u32| (read_u32(bytes, offset) ^ read_u32(&self.superblock, offset)) & !changing == 0;
        // Flags that Linux and this system set during use, in the primary superblock only.
        let in_use = READ_ONLY_LARGE_FILE | feature::DIR_NLINK | feature::EXTRA_SIZE;
        !modern
            || read_u16(bytes, field::INODE_SIZE) == read_u16(&self.superblock, field::INODE_SIZE)
                && features(field::INCOMPATIBLE, INCOMPATIBLE_RECOVER)
                && features(field::READ_ONLY_COMPATIBLE, in_use)
    }
}
