//! An inode's bytes, read and changed field by field; none are trusted yet.

use alloc::vec::Vec;

use crate::format::inode::{BLOCK_NUMBERS, BYTES, Kind, field};
use crate::format::{read_u16, read_u32, write_u16, write_u32};

/// Offsets that only the checker uses.
const FRAGMENT: usize = 112;
const SECTORS_HIGH: usize = 116;
const ATTRIBUTE_BLOCK_HIGH: usize = 118;

/// Fields that are zero unless a feature uses them: name, offset, bytes.
pub(super) const ZERO_FIELDS: [(&str, usize, usize); 3] = [
    ("fragment", FRAGMENT, 4),
    ("sectors (upper half)", SECTORS_HIGH, 2),
    ("attributes (upper half)", ATTRIBUTE_BLOCK_HIGH, 2),
];

/// Flags that require features which ext2 does not have.
pub(super) mod flag {
    pub(crate) const IMMUTABLE: u32 = 0x10;
    pub(crate) const APPEND_ONLY: u32 = 0x20;
    pub(crate) const ENCRYPTED: u32 = 0x800;
    pub(crate) const INDEX: u32 = 0x1000;
    pub(crate) const IMAGIC: u32 = 0x2000;
    pub(crate) const HUGE: u32 = 0x4_0000;
    pub(crate) const EXTENTS: u32 = 0x8_0000;
    pub(crate) const VERITY: u32 = 0x10_0000;
    pub(crate) const ATTRIBUTE_INODE: u32 = 0x20_0000;
    pub(crate) const INLINE_DATA: u32 = 0x1000_0000;
    pub(crate) const CASE_FOLDED: u32 = 0x4000_0000;
    /// Those of them that are cleared.
    pub(crate) const FOREIGN: u32 =
        ENCRYPTED | IMAGIC | HUGE | EXTENTS | VERITY | ATTRIBUTE_INODE | INLINE_DATA | CASE_FOLDED;
}

/// An inode as on disk.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) number: u32,
    pub(super) bytes: Vec<u8>,
}

impl Node {
    pub(super) fn mode(&self) -> u16 {
        read_u16(&self.bytes, field::MODE)
    }

    pub(super) fn set_mode(&mut self, mode: u16) {
        write_u16(&mut self.bytes, field::MODE, mode);
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        Kind::from_mode(self.mode())
    }

    pub(super) fn links(&self) -> u16 {
        read_u16(&self.bytes, field::LINKS)
    }

    pub(super) fn set_links(&mut self, links: u16) {
        write_u16(&mut self.bytes, field::LINKS, links);
    }

    pub(super) fn deleted(&self) -> u32 {
        self.number_at(field::DELETE_TIME)
    }

    pub(super) fn set_deleted(&mut self, time: u32) {
        write_u32(&mut self.bytes, field::DELETE_TIME, time);
    }

    pub(super) fn flags(&self) -> u32 {
        self.number_at(field::FLAGS)
    }

    pub(super) fn set_flags(&mut self, flags: u32) {
        write_u32(&mut self.bytes, field::FLAGS, flags);
    }

    /// Size with both halves, for every kind.
    pub(super) fn size(&self) -> u64 {
        u64::from(self.number_at(field::SIZE_LOW)) | u64::from(self.number_at(field::SIZE_HIGH)) << 32
    }

    pub(super) fn set_size(&mut self, size: u64) {
        write_u32(&mut self.bytes, field::SIZE_LOW, size as u32);
        write_u32(&mut self.bytes, field::SIZE_HIGH, (size >> 32) as u32);
    }

    pub(super) fn sectors(&self) -> u32 {
        self.number_at(field::SECTORS)
    }

    pub(super) fn set_sectors(&mut self, sectors: u32) {
        write_u32(&mut self.bytes, field::SECTORS, sectors);
    }

    pub(super) fn attribute_block(&self) -> u32 {
        self.number_at(field::ATTRIBUTE_BLOCK)
    }

    pub(super) fn set_attribute_block(&mut self, block: u32) {
        write_u32(&mut self.bytes, field::ATTRIBUTE_BLOCK, block);
    }

    pub(super) fn numbers(&self) -> [u32; BLOCK_NUMBERS] {
        core::array::from_fn(|index| self.number_at(field::BLOCK_NUMBERS + index * 4))
    }

    pub(super) fn set_numbers(&mut self, numbers: &[u32; BLOCK_NUMBERS]) {
        for (index, &number) in numbers.iter().enumerate() {
            write_u32(&mut self.bytes, field::BLOCK_NUMBERS + index * 4, number);
        }
    }

    /// Returns the space for a short symbolic link's target.
    pub(super) fn short_target(&self) -> &[u8] {
        &self.bytes[field::BLOCK_NUMBERS..field::BLOCK_NUMBERS + BLOCK_NUMBERS * 4]
    }

    /// Returns whether it is a fast symbolic link, with its target in the inode.
    pub(super) fn is_short_link(&self) -> bool {
        self.kind() == Some(Kind::SymbolicLink) && (1..BLOCK_NUMBERS as u64 * 4).contains(&self.size())
    }

    /// Returns whether its block numbers name blocks.
    pub(super) fn has_blocks(&self) -> bool {
        match self.kind() {
            Some(Kind::File | Kind::Directory) => true,
            Some(Kind::SymbolicLink) => !self.is_short_link(),
            // Unused reserved inodes have no kind.
            None => true,
            Some(_) => false,
        }
    }

    /// Marks it as unused.
    pub(super) fn clear(&mut self, now: u32) {
        self.bytes.fill(0);
        self.set_deleted(now);
    }

    /// The field of two or four bytes at `offset`.
    pub(super) fn field(&self, offset: usize, bytes: usize) -> u32 {
        if bytes == 2 { read_u16(&self.bytes, offset).into() } else { self.number_at(offset) }
    }

    pub(super) fn clear_field(&mut self, offset: usize, bytes: usize) {
        self.bytes[offset..offset + bytes].fill(0);
    }

    /// Bytes after the first 128.
    pub(super) fn extra(&self) -> &[u8] {
        &self.bytes[BYTES..]
    }

    pub(super) fn extra_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[BYTES..]
    }

    /// Returns whether all fields that distinguish a used inode from an empty one are zero.
    pub(super) fn is_blank(&self) -> bool {
        self.mode() == 0
            && self.links() == 0
            && self.sectors() == 0
            && self.size() == 0
            && self.deleted() == 0
            && self.flags() == 0
            && self.attribute_block() == 0
            && self.numbers() == [0; BLOCK_NUMBERS]
    }

    fn number_at(&self, offset: usize) -> u32 {
        read_u32(&self.bytes, offset)
    }
}
