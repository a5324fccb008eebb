//! Extended attributes: in a block that several inodes may use, or in the inode itself. They are not changed here,
//! only taken away where they are damaged.

use alloc::vec::Vec;

use super::node::Node;
use super::state::{AttributeUse, Checker};
use super::superblock::feature;
use super::{CheckError, Fault};
use crate::source::BlockSource;
use crate::wire::{read_u16, read_u32, write_u32};

const MAGIC: u32 = 0xea02_0000;
/// Offsets in the header of a block: how many inodes use it, and of how many blocks it is one.
const USERS: usize = 4;
const BLOCKS: usize = 8;
const HEADER_BYTES: usize = 32;
/// Bytes of an entry without its name.
const ENTRY_BYTES: usize = 16;

/// Offsets in an entry.
mod entry {
    pub(crate) const NAME_BYTES: usize = 0;
    pub(crate) const NAMESPACE: usize = 1;
    pub(crate) const VALUE_OFFSET: usize = 2;
    pub(crate) const VALUE_INODE: usize = 4;
    pub(crate) const VALUE_BYTES: usize = 8;
    pub(crate) const HASH: usize = 12;
}

/// Where a set of attributes is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Block,
    /// Offsets count from the first entry, and hashes may be missing.
    Inode,
}

impl<S: BlockSource> Checker<'_, S> {
    /// Checks the block with an inode's attributes. Whether there is one that counts.
    pub(super) async fn check_attribute_block(&mut self, node: &mut Node) -> Result<bool, CheckError> {
        let (inode, block) = (node.number, node.attribute_block());
        if block == 0 {
            return Ok(false);
        }
        let usable = self.volume.has(feature::ATTRIBUTES) && self.is_legal(block);
        let sound = match self.attributes.get_mut(&block) {
            Some(known) if usable => {
                known.users += 1;
                !known.damaged
            }
            _ if usable => {
                let bytes = self.read_block(block).await?;
                let damaged = !is_sound(&bytes);
                if !damaged {
                    self.claim(block)?;
                }
                let says = read_u32(&bytes, USERS);
                self.attributes.insert(block, AttributeUse { says, users: 1, damaged });
                !damaged
            }
            _ => false,
        };
        if !sound && self.tell(Fault::AttributeBlock { inode, block }).await? {
            node.set_attribute_block(0);
        }
        Ok(sound)
    }

    /// Compares the counts of users with what they are.
    pub(super) async fn count_attribute_uses(&mut self) -> Result<(), CheckError> {
        let wrong: Vec<(u32, u32, u32)> = self
            .attributes
            .iter()
            .filter(|(_, used)| !used.damaged && used.users > 0 && used.says != used.users)
            .map(|(&block, used)| (block, used.says, used.users))
            .collect();
        for (block, says, right) in wrong {
            if self.tell(Fault::AttributeCount { block, says, right }).await? {
                let mut bytes = self.read_block(block).await?;
                write_u32(&mut bytes, USERS, right);
                self.write_block(block, &bytes).await?;
            }
        }
        Ok(())
    }
}

/// Whether there are attributes in what is behind an inode's known fields.
pub(super) fn has_inline(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && read_u32(bytes, 0) == MAGIC
}

/// Whether those are sound.
pub(super) fn are_inline_sound(bytes: &[u8]) -> bool {
    are_sound(bytes, 4, Place::Inode)
}

fn is_sound(bytes: &[u8]) -> bool {
    read_u32(bytes, 0) == MAGIC && read_u32(bytes, BLOCKS) == 1 && are_sound(bytes, HEADER_BYTES, Place::Block)
}

/// Whether entries and values lie in the bytes, apart from each other, and have the right hashes.
fn are_sound(bytes: &[u8], first: usize, place: Place) -> bool {
    let mut taken: Vec<(usize, usize)> = Vec::from([(0, first)]);
    let mut take = |start: usize, length: usize| {
        let end = start + length;
        let free = end <= bytes.len() && taken.iter().all(|&(from, to)| end <= from || to <= start);
        taken.push((start, end));
        free
    };
    let base = if place == Place::Block { 0 } else { first };
    let mut at = first;
    loop {
        let Some(mark) = bytes.get(at..at + 4) else { return false };
        if read_u32(mark, 0) == 0 {
            return take(at, 4);
        }
        let Some(head) = bytes.get(at..at + ENTRY_BYTES) else { return false };
        let length = (ENTRY_BYTES + usize::from(head[entry::NAME_BYTES])).next_multiple_of(4);
        if !take(at, length) || read_u32(head, entry::VALUE_INODE) != 0 {
            return false;
        }
        if place == Place::Block && head[entry::NAMESPACE] == 0 {
            return false;
        }
        let offset = base + usize::from(read_u16(head, entry::VALUE_OFFSET));
        let Ok(value_bytes) = usize::try_from(read_u32(head, entry::VALUE_BYTES)) else { return false };
        if value_bytes > bytes.len() {
            return false;
        }
        let padded = value_bytes.next_multiple_of(4);
        if value_bytes > 0 && !take(offset, padded) {
            return false;
        }
        let name = &bytes[at + ENTRY_BYTES..at + ENTRY_BYTES + usize::from(head[entry::NAME_BYTES])];
        let value = if value_bytes == 0 { &[] } else { &bytes[offset..offset + padded] };
        let says = read_u32(head, entry::HASH);
        let hashes = [hash(name, value, u32::from), hash(name, value, |byte| i32::from(byte as i8) as u32)];
        if !(hashes.contains(&says) || place == Place::Inode && says == 0) {
            return false;
        }
        at += length;
    }
}

/// The hash of an attribute, with the bytes of its name as numbers with or without a sign.
fn hash(name: &[u8], value: &[u8], number: impl Fn(u8) -> u32) -> u32 {
    let of_name = name.iter().fold(0u32, |hash, &byte| hash.rotate_left(5) ^ number(byte));
    value.chunks_exact(4).fold(of_name, |hash, word| hash.rotate_left(16) ^ read_u32(word, 0))
}
