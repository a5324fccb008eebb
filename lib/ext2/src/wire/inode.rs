//! An inode: what a file, folder or link is, and where its first blocks are.

use super::{read_u16, read_u32};
use crate::error::Problem;

/// Bytes of the part that every inode has.
pub const BYTES: usize = 128;
/// Block numbers in an inode.
pub const BLOCK_NUMBERS: usize = 15;
/// Those of them that name data blocks.
pub const DIRECT_BLOCKS: usize = 12;
/// Bytes of the block numbers, which hold a short symbolic link's target instead.
pub const SHORT_TARGET_BYTES: usize = BLOCK_NUMBERS * 4;

/// Byte offsets of the fields.
pub mod field {
    pub(crate) const MODE: usize = 0;
    pub(crate) const OWNER_LOW: usize = 2;
    pub(crate) const SIZE_LOW: usize = 4;
    pub(crate) const ACCESS_TIME: usize = 8;
    pub(crate) const CHANGE_TIME: usize = 12;
    pub(crate) const MODIFY_TIME: usize = 16;
    pub(crate) const GROUP_LOW: usize = 24;
    pub(crate) const LINKS: usize = 26;
    pub(crate) const SECTORS: usize = 28;
    pub(crate) const BLOCK_NUMBERS: usize = 40;
    pub(crate) const ATTRIBUTE_BLOCK: usize = 104;
    pub(crate) const SIZE_HIGH: usize = 108;
    pub(crate) const OWNER_HIGH: usize = 120;
    pub(crate) const GROUP_HIGH: usize = 122;
    #[cfg(feature = "format")]
    pub(crate) const EXTRA_BYTES: usize = 128;
}

/// An inode's first 128 bytes, known to be all there.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// The view of an inode that begins where `bytes` begins, or `None` if they are too few.
    pub fn new(bytes: &'a [u8]) -> Option<View<'a>> {
        bytes.get(..BYTES).map(View)
    }

    fn number(&self, offset: usize) -> u32 {
        read_u32(self.0, offset)
    }

    fn halves(&self, low: usize, high: usize) -> u32 {
        u32::from(read_u16(self.0, low)) | u32::from(read_u16(self.0, high)) << 16
    }
}

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    File,
    /// Names of other inodes.
    Directory,
    /// A path.
    SymbolicLink,
    /// A Linux device, read byte by byte.
    CharacterDevice,
    /// A Linux device, read block by block.
    BlockDevice,
    /// A Linux named pipe.
    Fifo,
    /// A Linux socket.
    Socket,
}

impl Kind {
    /// The kind in the upper four bits of an inode's mode.
    pub fn from_mode(mode: u16) -> Option<Kind> {
        Some(match mode >> 12 {
            0o01 => Kind::Fifo,
            0o02 => Kind::CharacterDevice,
            0o04 => Kind::Directory,
            0o06 => Kind::BlockDevice,
            0o10 => Kind::File,
            0o12 => Kind::SymbolicLink,
            0o14 => Kind::Socket,
            _ => return None,
        })
    }

    /// The kind that a folder's entry gives; 0 says that it does not know.
    pub fn from_entry(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::File,
            2 => Kind::Directory,
            3 => Kind::CharacterDevice,
            4 => Kind::BlockDevice,
            5 => Kind::Fifo,
            6 => Kind::Socket,
            7 => Kind::SymbolicLink,
            _ => return None,
        })
    }
}

/// What an inode says. Its block numbers are still claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// The block of the volume that holds it.
    pub home_block: u64,
    /// What it is.
    pub kind: Kind,
    /// The twelve permission bits.
    pub permissions: u16,
    /// The owning user's number.
    pub owner: u32,
    /// The owning group's number.
    pub group: u32,
    /// Size in bytes.
    pub size: u64,
    /// Seconds since 1970 of the last access.
    pub accessed: u32,
    /// Seconds since 1970 of the last change of the inode.
    pub changed: u32,
    /// Seconds since 1970 of the last change of the content.
    pub modified: u32,
    /// Names it has.
    pub links: u16,
    /// Units of 512 bytes it occupies.
    pub sectors: u32,
    /// The block with its extended attributes, or 0.
    pub attribute_block: u32,
    /// Numbers of its first twelve blocks and of its single, double and triple indirect block.
    pub blocks: [u32; BLOCK_NUMBERS],
}

impl Inode {
    /// Reads the inode with this number from its block. One that is not in use is an error: whoever
    /// named it is wrong.
    pub fn parse(number: u32, home_block: u64, view: &View<'_>, largest_file: u64) -> Result<Inode, Problem> {
        let mode = read_u16(view.0, field::MODE);
        let kind = Kind::from_mode(mode).ok_or(Problem::Meaningless { field: "mode", value: mode.into() })?;
        let links = read_u16(view.0, field::LINKS);
        if links == 0 {
            return Err(Problem::Missing("a name (the link count is 0, so the inode is not in use)"));
        }
        // The upper half of the size shares its place with a folder's access list.
        let size_high = if kind == Kind::File { view.number(field::SIZE_HIGH) } else { 0 };
        let size = u64::from(view.number(field::SIZE_LOW)) | u64::from(size_high) << 32;
        if size > largest_file {
            return Err(Problem::OutOfRange { field: "size", value: size, least: 0, most: largest_file });
        }
        Ok(Inode {
            number,
            home_block,
            kind,
            permissions: mode & 0o7777,
            owner: view.halves(field::OWNER_LOW, field::OWNER_HIGH),
            group: view.halves(field::GROUP_LOW, field::GROUP_HIGH),
            size,
            accessed: view.number(field::ACCESS_TIME),
            changed: view.number(field::CHANGE_TIME),
            modified: view.number(field::MODIFY_TIME),
            links,
            sectors: view.number(field::SECTORS),
            attribute_block: view.number(field::ATTRIBUTE_BLOCK),
            blocks: core::array::from_fn(|index| view.number(field::BLOCK_NUMBERS + index * 4)),
        })
    }

    /// The place of the block numbers as bytes: a short symbolic link's target.
    pub fn short_target(&self) -> [u8; SHORT_TARGET_BYTES] {
        let mut bytes = [0; SHORT_TARGET_BYTES];
        for (chunk, number) in bytes.chunks_exact_mut(4).zip(self.blocks) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}
