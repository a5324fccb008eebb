//! The journal: a file whose first block is the journal superblock and the rest a ring of transactions, in the format
//! of ext3 (JBD).
//!
//! A transaction is a sequence of descriptor blocks, each followed by the blocks that it describes, of revoke blocks,
//! and of a final commit block. All numbers in these blocks are big-endian.

/// Magic number of journal metadata blocks.
pub const MAGIC: u32 = 0xc03b_3998;
/// Size of the header of journal metadata blocks.
pub const HEADER_BYTES: usize = 12;
/// Size of the superblock in bytes.
pub const SUPERBLOCK_BYTES: usize = 1024;
/// Minimum blocks of a journal: e2fsck considers a shorter one damaged.
pub const MIN_BLOCKS: u32 = 1024;
/// Size of the UUID that follows a tag without [`TAG_SAME_UUID`].
pub const UUID_BYTES: usize = 16;
/// Size of a tag in bytes.
pub const TAG_BYTES: usize = 8;
/// Flag of a tag: the block began with the magic number, which is replaced by 0.
pub const TAG_ESCAPED: u32 = 1;
/// Flag of a tag: no UUID follows.
pub const TAG_SAME_UUID: u32 = 2;
/// Flag of a tag: last one of its descriptor block.
pub const TAG_LAST: u32 = 8;
/// Feature: there may be revoke blocks.
pub const INCOMPATIBLE_REVOKE: u32 = 1;

/// Kinds of the journal's metadata blocks.
pub mod kind {
    pub(crate) const DESCRIPTOR: u32 = 1;
    pub(crate) const COMMIT: u32 = 2;
    pub(crate) const SUPERBLOCK_1: u32 = 3;
    pub(crate) const SUPERBLOCK_2: u32 = 4;
    pub(crate) const REVOKE: u32 = 5;
}

/// Byte offsets of the superblock's fields, and of those of other blocks.
pub mod field {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const KIND: usize = 4;
    pub(crate) const SEQUENCE: usize = 8;
    pub(crate) const BLOCK_BYTES: usize = 12;
    pub(crate) const BLOCKS: usize = 16;
    pub(crate) const FIRST: usize = 20;
    pub(crate) const START_SEQUENCE: usize = 24;
    pub(crate) const START: usize = 28;
    pub(crate) const ERROR: usize = 32;
    pub(crate) const INCOMPATIBLE: usize = 40;
    pub(crate) const READ_ONLY_COMPATIBLE: usize = 44;
    pub(crate) const UUID: usize = 48;
    pub(crate) const USERS: usize = 64;
    /// Of a revoke block: its bytes in use.
    pub(crate) const REVOKED_BYTES: usize = 12;
    /// Of a commit block.
    pub(crate) const COMMIT_SECONDS: usize = 48;
}

/// Reads the 32-bit number at `offset`; 0 past the end.
pub fn read(bytes: &[u8], offset: usize) -> u32 {
    let number = bytes.get(offset..offset + 4).and_then(|number| number.try_into().ok());
    number.map_or(0, u32::from_be_bytes)
}

/// Writes a 32-bit number, which must lie in the block.
pub fn write(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
}

/// Writes a block's header, which must fit.
pub fn write_header(bytes: &mut [u8], kind: u32, sequence: u32) {
    write(bytes, field::MAGIC, MAGIC);
    write(bytes, field::KIND, kind);
    write(bytes, field::SEQUENCE, sequence);
}

/// Fields of the journal superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSuperblock {
    /// Number of blocks of the journal, including this one.
    pub blocks: u32,
    /// First block of the ring.
    pub first: u32,
    /// Sequence number of the first transaction of the log.
    pub sequence: u32,
    /// Start of the log in the ring; 0 if there is nothing to replay.
    pub start: u32,
    /// Whether an earlier user recorded an error.
    pub has_error: bool,
    /// UUID of the journal.
    pub uuid: [u8; UUID_BYTES],
}

/// Reasons for refusing a journal superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has this number instead of the magic number.
    Magic(u32),
    /// This field is invalid.
    Field(&'static str),
    /// It has these features that are not supported.
    Features(u32),
}

impl JournalSuperblock {
    /// Checks a superblock of a journal in a file of `file_blocks` blocks, on a volume with blocks of `block_bytes`.
    pub fn parse(bytes: &[u8], block_bytes: u32, file_blocks: u32) -> Result<JournalSuperblock, Refusal> {
        if read(bytes, field::MAGIC) != MAGIC {
            return Err(Refusal::Magic(read(bytes, field::MAGIC)));
        }
        let is_new = match read(bytes, field::KIND) {
            kind::SUPERBLOCK_1 => false,
            kind::SUPERBLOCK_2 => true,
            _ => return Err(Refusal::Field("the kind")),
        };
        let incompatible = if is_new { read(bytes, field::INCOMPATIBLE) } else { 0 };
        if incompatible & !INCOMPATIBLE_REVOKE != 0 {
            return Err(Refusal::Features(incompatible & !INCOMPATIBLE_REVOKE));
        }
        if is_new && read(bytes, field::READ_ONLY_COMPATIBLE) != 0 {
            return Err(Refusal::Field("the features"));
        }
        if is_new && read(bytes, field::USERS) > 1 {
            return Err(Refusal::Field("the number of users"));
        }
        if read(bytes, field::BLOCK_BYTES) != block_bytes {
            return Err(Refusal::Field("the block size"));
        }
        let blocks = read(bytes, field::BLOCKS);
        if blocks > file_blocks || blocks < MIN_BLOCKS {
            return Err(Refusal::Field("the length"));
        }
        let (first, start) = (read(bytes, field::FIRST), read(bytes, field::START));
        if first == 0 || first > blocks / 2 {
            return Err(Refusal::Field("the first block"));
        }
        if start != 0 && !(first..blocks).contains(&start) {
            return Err(Refusal::Field("the start"));
        }
        let mut uuid = [0; UUID_BYTES];
        if let Some(own) = bytes.get(field::UUID..field::UUID + UUID_BYTES).filter(|_| is_new) {
            uuid.copy_from_slice(own);
        }
        let (sequence, has_error) = (read(bytes, field::START_SEQUENCE), read(bytes, field::ERROR) != 0);
        Ok(JournalSuperblock { blocks, first, sequence, start, has_error, uuid })
    }

    /// Writes the superblock of a journal with blocks of `block_bytes` into a zeroed block.
    pub fn write(&self, bytes: &mut [u8], block_bytes: u32) {
        write_header(bytes, kind::SUPERBLOCK_2, 0);
        write(bytes, field::BLOCK_BYTES, block_bytes);
        write(bytes, field::BLOCKS, self.blocks);
        write(bytes, field::FIRST, self.first);
        write(bytes, field::START_SEQUENCE, self.sequence);
        write(bytes, field::START, self.start);
        write(bytes, field::USERS, 1);
        bytes[field::UUID..field::UUID + UUID_BYTES].copy_from_slice(&self.uuid);
    }
}

/// A tag of a descriptor block: destination block and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Destination block on the volume.
    pub block: u32,
    /// Its flags.
    pub flags: u32,
}

/// Returns the tags of a descriptor block, up to the last one or the end of the block.
pub fn tags(bytes: &[u8]) -> impl Iterator<Item = Tag> + '_ {
    let mut next = Some(HEADER_BYTES);
    core::iter::from_fn(move || {
        let offset = next.filter(|offset| offset + TAG_BYTES <= bytes.len())?;
        // The upper half of the flags field is for checksums.
        let tag = Tag { block: read(bytes, offset), flags: read(bytes, offset + 4) & 0xffff };
        let identity = if tag.flags & TAG_SAME_UUID == 0 { UUID_BYTES } else { 0 };
        next = (tag.flags & TAG_LAST == 0).then_some(offset + TAG_BYTES + identity);
        Some(tag)
    })
}

/// Returns the number of blocks that one descriptor block can describe: a UUID follows the first tag.
pub fn tags_per_block(block_bytes: u32) -> u32 {
    (block_bytes - HEADER_BYTES as u32 - UUID_BYTES as u32) / TAG_BYTES as u32
}

/// Iterates over the block numbers in a revoke block.
pub fn revoked(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let end = (read(bytes, field::REVOKED_BYTES) as usize).min(bytes.len());
    let numbers = bytes.get(HEADER_BYTES + 4..end).unwrap_or(&[]);
    numbers.chunks_exact(4).map(|number| read(number, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_end_at_the_last_one_or_with_the_block() {
        let mut block = [0; 1024];
        write_header(&mut block, kind::DESCRIPTOR, 1);
        write(&mut block, 12, 5);
        write(&mut block, 16, TAG_ESCAPED);
        write(&mut block, 36, 6);
        write(&mut block, 40, TAG_SAME_UUID | TAG_LAST);
        let flags = TAG_SAME_UUID | TAG_LAST;
        assert!(tags(&block).eq([Tag { block: 5, flags: TAG_ESCAPED }, Tag { block: 6, flags }]));
        block[HEADER_BYTES..].fill(0);
        assert_eq!(tags(&block).count(), 1012 / 24 + usize::from(1012 % 24 >= 8));
    }

    #[test]
    fn a_revoke_block_that_says_more_than_it_has_is_read_to_its_end() {
        let mut block = [0; 1024];
        write(&mut block, field::REVOKED_BYTES, 24);
        write(&mut block, 16, 77);
        assert!(revoked(&block).eq([77, 0]));
        write(&mut block, field::REVOKED_BYTES, u32::MAX);
        assert_eq!(revoked(&block).count(), 252);
        write(&mut block, field::REVOKED_BYTES, 3);
        assert_eq!(revoked(&block).count(), 0);
    }
}
