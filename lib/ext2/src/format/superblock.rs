//! The superblock: 1024 bytes at byte 1024 of the volume, with copies in some of the groups.

use super::error::{FormatError, Problem, Structure};
use super::features::{FeatureNames, SUPPORTED_INCOMPATIBLE};
use super::{read_u16, read_u32};

/// Byte offset of the superblock in the volume, whatever the block size.
pub const OFFSET: u64 = 1024;
/// Size of the superblock in bytes.
pub const BYTES: usize = 1024;
/// Magic number of an ext2 superblock.
pub const MAGIC: u16 = 0xef53;
/// Inode size of revision 0; later ones have a field for it.
pub const OLD_INODE_BYTES: u32 = 128;
/// First non-reserved inode of revision 0; later ones have a field for it.
pub const OLD_FIRST_INODE: u32 = 11;

/// State bit: cleanly unmounted.
pub const STATE_CLEAN: u16 = 1;
/// State bit: errors were detected.
pub const STATE_FAULTY: u16 = 2;
/// Kind of the journal backup: the block numbers and the size of the journal's inode.
pub const BACKUP_OF_NUMBERS: u8 = 1;
/// Flag: htrees hash names as unsigned characters.
pub const FLAG_UNSIGNED_HASH: u32 = 2;

/// Byte offsets of the fields.
pub mod field {
    pub(crate) const INODES_COUNT: usize = 0;
    pub(crate) const BLOCKS_COUNT: usize = 4;
    pub(crate) const RESERVED_BLOCKS: usize = 8;
    pub(crate) const FREE_BLOCKS: usize = 12;
    pub(crate) const FREE_INODES: usize = 16;
    pub(crate) const FIRST_DATA_BLOCK: usize = 20;
    pub(crate) const LOG_BLOCK_SIZE: usize = 24;
    pub(crate) const LOG_FRAGMENT_SIZE: usize = 28;
    pub(crate) const BLOCKS_PER_GROUP: usize = 32;
    pub(crate) const FRAGMENTS_PER_GROUP: usize = 36;
    pub(crate) const INODES_PER_GROUP: usize = 40;
    pub(crate) const MOUNT_TIME: usize = 44;
    pub(crate) const WRITE_TIME: usize = 48;
    pub(crate) const MOUNTS: usize = 52;
    pub(crate) const MAXIMUM_MOUNTS: usize = 54;
    pub(crate) const MAGIC: usize = 56;
    pub(crate) const STATE: usize = 58;
    pub(crate) const ERROR_POLICY: usize = 60;
    pub(crate) const LAST_CHECK: usize = 64;
    pub(crate) const REVISION: usize = 76;
    pub(crate) const FIRST_INODE: usize = 84;
    pub(crate) const INODE_SIZE: usize = 88;
    pub(crate) const GROUP_NUMBER: usize = 90;
    pub(crate) const COMPATIBLE: usize = 92;
    pub(crate) const INCOMPATIBLE: usize = 96;
    pub(crate) const READ_ONLY_COMPATIBLE: usize = 100;
    pub(crate) const UUID: usize = 104;
    pub(crate) const LABEL: usize = 120;
    pub(crate) const JOURNAL_UUID: usize = 208;
    pub(crate) const JOURNAL_INODE: usize = 224;
    pub(crate) const JOURNAL_DEVICE: usize = 228;
    pub(crate) const LAST_ORPHAN: usize = 232;
    pub(crate) const HASH_SEED: usize = 236;
    pub(crate) const HASH_VERSION: usize = 252;
    pub(crate) const JOURNAL_BACKUP_KIND: usize = 253;
    pub(crate) const MADE_TIME: usize = 264;
    pub(crate) const JOURNAL_BACKUP: usize = 268;
    pub(crate) const MIN_EXTRA_BYTES: usize = 348;
    pub(crate) const WANTED_EXTRA_BYTES: usize = 350;
    pub(crate) const FLAGS: usize = 352;
}

/// Bytes of a superblock, checked for length.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Returns the view of a superblock at the start of `bytes`, or `None` if they are too few.
    pub fn new(bytes: &'a [u8]) -> Option<View<'a>> {
        bytes.get(..BYTES).map(View)
    }

    /// The magic number.
    pub fn magic(&self) -> u16 {
        read_u16(self.0, field::MAGIC)
    }

    /// Block size as a power of two over 1024.
    pub fn log_block_size(&self) -> u32 {
        read_u32(self.0, field::LOG_BLOCK_SIZE)
    }

    fn number(&self, offset: usize) -> u32 {
        read_u32(self.0, offset)
    }
}

/// A superblock whose fields were checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Number of inodes.
    pub inodes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Free blocks that are reserved.
    pub reserved_blocks: u32,
    /// Free blocks as of the last write of the superblock.
    pub free_blocks: u32,
    /// Free inodes as of the last write of the superblock.
    pub free_inodes: u32,
    /// The block that holds the superblock: 1 with blocks of 1024 bytes, else 0.
    pub first_data_block: u32,
    /// Bytes of a block: 1024, 2048 or 4096.
    pub block_bytes: u32,
    /// Blocks of each group but the last.
    pub blocks_per_group: u32,
    /// Inodes of each group.
    pub inodes_per_group: u32,
    /// Format revision, 0 or 1.
    pub revision: u32,
    /// Size of an inode in bytes.
    pub inode_bytes: u32,
    /// First non-reserved inode.
    pub first_inode: u32,
    /// Flags of [`COMPATIBLE`](super::features::COMPATIBLE).
    pub compatible: u32,
    /// Flags of [`INCOMPATIBLE`](super::features::INCOMPATIBLE).
    pub incompatible: u32,
    /// Flags of [`READ_ONLY_COMPATIBLE`](super::features::READ_ONLY_COMPATIBLE).
    pub read_only_compatible: u32,
    /// Whether it was cleanly unmounted when it was last in use.
    pub clean: bool,
    /// Whether errors are recorded (`EXT2_ERROR_FS`).
    pub faulty: bool,
    /// The inode of the journal, or 0.
    pub journal_inode: u32,
    /// Device number of an external journal, or 0.
    pub journal_device: u32,
    /// Head of the orphan list, or 0.
    pub last_orphan: u32,
    /// Seed of the htree hash.
    pub hash_seed: [u32; 4],
    /// Hash version of new htrees.
    pub hash_version: u8,
    /// Whether htrees hash names as unsigned characters.
    pub hash_unsigned: bool,
    /// UUID of the volume.
    pub uuid: [u8; 16],
    /// Volume label, padded with zeros.
    pub label: [u8; 16],
}

impl Superblock {
    /// Checks a superblock. A revision 0 volume has no feature flags, whatever its bytes are.
    pub fn parse(view: &View<'_>) -> Result<Superblock, FormatError> {
        if view.magic() != MAGIC {
            return Err(FormatError::NotExt2 { found: view.magic(), backup: None });
        }
        let revision = view.number(field::REVISION);
        if revision > 1 {
            return Err(FormatError::UnsupportedRevision(revision));
        }
        let modern = |offset, old| if revision == 0 { old } else { view.number(offset) };
        let incompatible = modern(field::INCOMPATIBLE, 0);
        if incompatible & !SUPPORTED_INCOMPATIBLE != 0 {
            return Err(FormatError::UnsupportedFeatures(FeatureNames(incompatible & !SUPPORTED_INCOMPATIBLE)));
        }
        let log_block_size = view.log_block_size();
        if log_block_size > 2 {
            return Err(FormatError::UnsupportedBlockSize(1024u64.checked_shl(log_block_size).unwrap_or(u64::MAX)));
        }
        let superblock = Superblock {
            inodes: view.number(field::INODES_COUNT),
            blocks: view.number(field::BLOCKS_COUNT),
            reserved_blocks: view.number(field::RESERVED_BLOCKS),
            free_blocks: view.number(field::FREE_BLOCKS),
            free_inodes: view.number(field::FREE_INODES),
            first_data_block: view.number(field::FIRST_DATA_BLOCK),
            block_bytes: 1024 << log_block_size,
            blocks_per_group: view.number(field::BLOCKS_PER_GROUP),
            inodes_per_group: view.number(field::INODES_PER_GROUP),
            revision,
            inode_bytes: if revision == 0 { OLD_INODE_BYTES } else { read_u16(view.0, field::INODE_SIZE).into() },
            first_inode: modern(field::FIRST_INODE, OLD_FIRST_INODE),
            compatible: modern(field::COMPATIBLE, 0),
            incompatible,
            read_only_compatible: modern(field::READ_ONLY_COMPATIBLE, 0),
            clean: read_u16(view.0, field::STATE) & STATE_CLEAN != 0,
            faulty: read_u16(view.0, field::STATE) & STATE_FAULTY != 0,
            journal_inode: modern(field::JOURNAL_INODE, 0),
            journal_device: modern(field::JOURNAL_DEVICE, 0),
            last_orphan: modern(field::LAST_ORPHAN, 0),
            hash_seed: core::array::from_fn(|index| modern(field::HASH_SEED + index * 4, 0)),
            hash_version: if revision == 0 { 0 } else { view.0[field::HASH_VERSION] },
            hash_unsigned: modern(field::FLAGS, 0) & FLAG_UNSIGNED_HASH != 0,
            uuid: core::array::from_fn(|index| view.0[field::UUID + index]),
            label: core::array::from_fn(|index| view.0[field::LABEL + index]),
        };
        superblock.check()?;
        Ok(superblock)
    }

    /// Number of block groups.
    pub fn groups(&self) -> u32 {
        (self.blocks - self.first_data_block).div_ceil(self.blocks_per_group)
    }

    /// Size of the volume in bytes.
    pub fn volume_bytes(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.block_bytes)
    }

    /// Block numbers per indirect block.
    pub fn numbers_per_block(&self) -> u32 {
        self.block_bytes / 4
    }

    /// Maximum file size in bytes that direct and indirect blocks can reach.
    pub fn largest_file(&self) -> u64 {
        let numbers = u64::from(self.numbers_per_block());
        (12 + numbers + numbers * numbers + numbers * numbers * numbers) * u64::from(self.block_bytes)
    }

    fn check(&self) -> Result<(), FormatError> {
        let first_data_block = u32::from(self.block_bytes == 1024);
        let bits_per_block = self.block_bytes * 8;
        let in_range = |field, value: u32, least: u32, most: u32| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            let (value, least, most) = (value.into(), least.into(), most.into());
            Err(self.damaged(Problem::OutOfRange { field, value, least, most }))
        };
        in_range("first_data_block", self.first_data_block, first_data_block, first_data_block)?;
        in_range("blocks_per_group", self.blocks_per_group, 8, bits_per_block)?;
        in_range("inodes_per_group", self.inodes_per_group, 1, bits_per_block)?;
        // Superblock, descriptors, two bitmaps, an inode table and the root folder.
        in_range("blocks_count", self.blocks, first_data_block + 6, u32::MAX)?;
        if !self.inode_bytes.is_power_of_two() {
            return Err(self.damaged(Problem::Meaningless { field: "inode_size", value: self.inode_bytes.into() }));
        }
        in_range("inode_size", self.inode_bytes, OLD_INODE_BYTES, self.block_bytes)?;
        let max_inodes = u64::from(self.groups()) * u64::from(self.inodes_per_group);
        let min_inodes = max_inodes - u64::from(self.inodes_per_group) + 1;
        let (least, most) = (min_inodes.max(super::ROOT_INODE.into()), max_inodes);
        let value = u64::from(self.inodes);
        if !(least..=most).contains(&value) {
            return Err(self.damaged(Problem::OutOfRange { field: "inodes_count", value, least, most }));
        }
        in_range("first_ino", self.first_inode, OLD_FIRST_INODE, self.inodes.max(OLD_FIRST_INODE))?;
        Ok(())
    }

    fn damaged(&self, problem: Problem) -> FormatError {
        FormatError::corrupt(Structure::Superblock, self.first_data_block.into(), problem)
    }
}
