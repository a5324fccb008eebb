//! Inodes: metadata of a file, directory or link, and its first block numbers.

use super::error::Problem;
use super::{read_u16, read_u32, write_u16, write_u32};

/// Size of the part that every inode has, in bytes.
pub const BYTES: usize = 128;
/// Block numbers in an inode.
pub const BLOCK_NUMBERS: usize = 15;
/// Direct block numbers among them.
pub const DIRECT_BLOCKS: usize = 12;
/// Bytes of the block numbers, which hold the target of a fast symbolic link instead.
pub const SHORT_TARGET_BYTES: usize = BLOCK_NUMBERS * 4;

/// Byte offsets of the fields.
pub mod field {
    pub(crate) const MODE: usize = 0;
    pub(crate) const OWNER_LOW: usize = 2;
    pub(crate) const SIZE_LOW: usize = 4;
    pub(crate) const ACCESS_TIME: usize = 8;
    pub(crate) const CHANGE_TIME: usize = 12;
    pub(crate) const MODIFY_TIME: usize = 16;
    pub(crate) const DELETE_TIME: usize = 20;
    pub(crate) const GROUP_LOW: usize = 24;
    pub(crate) const LINKS: usize = 26;
    pub(crate) const SECTORS: usize = 28;
    pub(crate) const FLAGS: usize = 32;
    pub(crate) const BLOCK_NUMBERS: usize = 40;
    pub(crate) const GENERATION: usize = 100;
    pub(crate) const ATTRIBUTE_BLOCK: usize = 104;
    pub(crate) const SIZE_HIGH: usize = 108;
    pub(crate) const OWNER_HIGH: usize = 120;
    pub(crate) const GROUP_HIGH: usize = 122;
    /// Bytes in use after the first 128, in larger inodes.
    pub(crate) const EXTRA_BYTES: usize = 128;
    /// Extra change time: nanoseconds and epoch bits.
    pub(crate) const CHANGE_EXTRA: usize = 132;
    pub(crate) const MODIFY_EXTRA: usize = 136;
    pub(crate) const ACCESS_EXTRA: usize = 140;
    /// Creation time.
    pub(crate) const MADE_TIME: usize = 144;
}

/// Bytes after the first 128 in use in a new inode, if there is room: up to the creation time.
const NEW_EXTRA_BYTES: usize = 32;

/// Meanings of an inode's flags.
pub mod flag {
    /// Immutable: its content and links may not change.
    pub const IMMUTABLE: u32 = 0x10;
    /// Append-only.
    pub const APPEND_ONLY: u32 = 0x20;
    /// Directory with an htree.
    pub const INDEX: u32 = 0x1000;
}

/// First 128 bytes of an inode, checked for length.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Returns the view of an inode at the start of `bytes`, or `None` if they are too few.
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

/// Inode kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    SymbolicLink,
    /// A Linux character device.
    CharacterDevice,
    /// A Linux block device.
    BlockDevice,
    /// A Linux named pipe.
    Fifo,
    /// A Linux socket.
    Socket,
}

impl Kind {
    /// Returns the kind in the upper four bits of an inode's mode.
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

    /// Returns the kind given in a directory entry; 0 is unknown.
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

    /// Returns the upper four bits of a mode.
    pub fn mode_bits(self) -> u16 {
        let number = match self {
            Kind::Fifo => 0o01,
            Kind::CharacterDevice => 0o02,
            Kind::Directory => 0o04,
            Kind::BlockDevice => 0o06,
            Kind::File => 0o10,
            Kind::SymbolicLink => 0o12,
            Kind::Socket => 0o14,
        };
        number << 12
    }

    /// Returns the kind's number in a directory entry.
    pub fn entry_number(self) -> u8 {
        match self {
            Kind::File => 1,
            Kind::Directory => 2,
            Kind::CharacterDevice => 3,
            Kind::BlockDevice => 4,
            Kind::Fifo => 5,
            Kind::Socket => 6,
            Kind::SymbolicLink => 7,
        }
    }
}

/// Fields of an inode. Its block numbers are not validated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Inode number.
    pub number: u32,
    /// Block of the volume that holds it.
    pub home_block: u64,
    /// Kind of the inode.
    pub kind: Kind,
    /// Permission bits (12).
    pub permissions: u16,
    /// User ID of the owner.
    pub owner: u32,
    /// Group ID of the owner.
    pub group: u32,
    /// Size in bytes.
    pub size: u64,
    /// Seconds since 1970 of the last access.
    pub accessed: u32,
    /// Seconds since 1970 of the last change of the inode.
    pub changed: u32,
    /// Seconds since 1970 of the last change of the content.
    pub modified: u32,
    /// Link count.
    pub links: u16,
    /// Occupied space in units of 512 bytes.
    pub sectors: u32,
    /// [Flags](flag).
    pub flags: u32,
    /// Deletion time, or the next inode of the orphan list.
    pub deleted: u32,
    /// The block with its extended attributes, or 0.
    pub attribute_block: u32,
    /// Whether it has extended attributes after its known fields. Always false when parsed from the first 128 bytes
    /// only.
    pub has_inline_attributes: bool,
    /// Numbers of its first twelve blocks and of its single, double and triple indirect block.
    pub blocks: [u32; BLOCK_NUMBERS],
}

impl Inode {
    /// Parses the inode with this number from its block. An unused inode is an error: the reference to it is wrong.
    pub fn parse(number: u32, home_block: u64, view: &View<'_>, largest_file: u64) -> Result<Inode, Problem> {
        let inode = Inode::parse_any(number, home_block, view, largest_file)?;
        if inode.links == 0 {
            return Err(Problem::Missing("a name (the link count is 0, so the inode is not in use)"));
        }
        Ok(inode)
    }

    /// Reads an inode that may be unlinked.
    pub fn parse_any(number: u32, home_block: u64, view: &View<'_>, largest_file: u64) -> Result<Inode, Problem> {
        let mode = read_u16(view.0, field::MODE);
        let kind = Kind::from_mode(mode).ok_or(Problem::Meaningless { field: "mode", value: mode.into() })?;
        // The upper half of the size shares its field with a directory's ACL.
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
            links: read_u16(view.0, field::LINKS),
            sectors: view.number(field::SECTORS),
            flags: view.number(field::FLAGS),
            deleted: view.number(field::DELETE_TIME),
            attribute_block: view.number(field::ATTRIBUTE_BLOCK),
            has_inline_attributes: false,
            blocks: core::array::from_fn(|index| view.number(field::BLOCK_NUMBERS + index * 4)),
        })
    }

    /// Returns whether it has extended attributes, in the inode or in a block.
    pub fn has_extended_attributes(&self) -> bool {
        self.attribute_block != 0 || self.has_inline_attributes
    }

    /// Returns the block number field as bytes: a fast symbolic link's target.
    pub fn short_target(&self) -> [u8; SHORT_TARGET_BYTES] {
        let mut bytes = [0; SHORT_TARGET_BYTES];
        for (chunk, number) in bytes.chunks_exact_mut(4).zip(self.blocks) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Sets a fast symbolic link's target in the block number field.
    pub fn set_short_target(&mut self, target: &[u8]) {
        let mut bytes = [0; SHORT_TARGET_BYTES];
        bytes[..target.len()].copy_from_slice(target);
        self.blocks = core::array::from_fn(|index| read_u32(&bytes, index * 4));
    }

    /// Writes the known fields over the inode's bytes, of which there are at least 128. The others are kept: the
    /// generation, fields of other systems, an extended part. A changed time loses its nanoseconds.
    pub fn store(&self, bytes: &mut [u8]) {
        let halves = |number: u32| (number as u16, (number >> 16) as u16);
        let ((owner, owner_high), (group, group_high)) = (halves(self.owner), halves(self.group));
        write_u16(bytes, field::MODE, self.kind.mode_bits() | self.permissions & 0o7777);
        write_u16(bytes, field::OWNER_LOW, owner);
        write_u16(bytes, field::OWNER_HIGH, owner_high);
        write_u16(bytes, field::GROUP_LOW, group);
        write_u16(bytes, field::GROUP_HIGH, group_high);
        write_u32(bytes, field::SIZE_LOW, self.size as u32);
        if self.kind == Kind::File {
            write_u32(bytes, field::SIZE_HIGH, (self.size >> 32) as u32);
        }
        store_time(bytes, field::ACCESS_TIME, field::ACCESS_EXTRA, self.accessed);
        store_time(bytes, field::CHANGE_TIME, field::CHANGE_EXTRA, self.changed);
        store_time(bytes, field::MODIFY_TIME, field::MODIFY_EXTRA, self.modified);
        write_u32(bytes, field::DELETE_TIME, self.deleted);
        write_u16(bytes, field::LINKS, self.links);
        write_u32(bytes, field::SECTORS, self.sectors);
        write_u32(bytes, field::FLAGS, self.flags);
        write_u32(bytes, field::ATTRIBUTE_BLOCK, self.attribute_block);
        for (index, &number) in self.blocks.iter().enumerate() {
            write_u32(bytes, field::BLOCK_NUMBERS + index * 4, number);
        }
    }

    /// Writes a new inode over the previous one; the generation is incremented.
    pub fn store_new(&self, bytes: &mut [u8]) {
        let generation = read_u32(bytes, field::GENERATION).wrapping_add(1);
        bytes.fill(0);
        if bytes.len() >= BYTES + NEW_EXTRA_BYTES {
            write_u16(bytes, field::EXTRA_BYTES, NEW_EXTRA_BYTES as u16);
            write_u32(bytes, field::MADE_TIME, self.changed);
        }
        write_u32(bytes, field::GENERATION, generation);
        self.store(bytes);
    }
}

/// Writes a time if it differs; the inode's extension of that time, if any, is then invalid and cleared.
fn store_time(bytes: &mut [u8], offset: usize, extra: usize, time: u32) {
    if read_u32(bytes, offset) == time {
        return;
    }
    write_u32(bytes, offset, time);
    let in_use = if bytes.len() > BYTES + 4 { BYTES + usize::from(read_u16(bytes, field::EXTRA_BYTES)) } else { BYTES };
    if extra + 4 <= in_use.min(bytes.len()) {
        write_u32(bytes, extra, 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn sample(kind: Kind) -> Inode {
        Inode {
            number: 12,
            home_block: 5,
            kind,
            permissions: 0o6751,
            owner: 0x12_3456,
            group: 0x65_4321,
            size: 0x1_2345_6789,
            accessed: 1,
            changed: 2,
            modified: 3,
            links: 4,
            sectors: 5,
            flags: flag::APPEND_ONLY,
            deleted: 6,
            attribute_block: 7,
            has_inline_attributes: false,
            blocks: core::array::from_fn(|index| index as u32 + 100),
        }
    }

    #[test]
    fn what_is_stored_is_parsed() {
        for bytes in [128, 256, 1024] {
            let mut place = vec![0xff; bytes];
            let inode = sample(Kind::File);
            inode.store_new(&mut place);
            assert_eq!(Inode::parse(12, 5, &View::new(&place).unwrap(), u64::MAX), Ok(inode));
            assert_eq!(read_u32(&place, field::GENERATION), 0);
            if bytes > 128 {
                assert_eq!((place[128], read_u32(&place, field::MADE_TIME)), (32, 2));
            }
        }
    }

    #[test]
    fn what_is_not_known_stays() {
        let mut place = vec![0x55; 256];
        write_u16(&mut place, field::EXTRA_BYTES, 8);
        let mut inode = sample(Kind::Directory);
        inode.size = 4096;
        inode.store(&mut place);
        assert_eq!(read_u32(&place, field::SIZE_HIGH), 0x5555_5555);
        assert_eq!(read_u32(&place, field::GENERATION), 0x5555_5555);
        // The extension ends before the extra modification time.
        assert_eq!((read_u32(&place, field::CHANGE_EXTRA), read_u32(&place, field::MODIFY_EXTRA)), (0, 0x5555_5555));
        write_u32(&mut place, field::CHANGE_EXTRA, 77);
        inode.store(&mut place);
        assert_eq!(read_u32(&place, field::CHANGE_EXTRA), 77);
    }
}
