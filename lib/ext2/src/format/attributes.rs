//! Extended attributes: names and values in a block of their own, or after the known fields of an inode of more than
//! 128 bytes.
//!
//! Entries are contiguous, each with the offset of its value; values are packed from the end. Inodes with the same
//! attributes may share a block. Linux's ext2 supports only blocks; ext3 and ext4 support both.

use alloc::vec::Vec;

use super::{inode, read_u16, read_u32, write_u16, write_u32};

/// Magic number of a set of attributes.
pub const MAGIC: u32 = 0xea02_0000;
/// Size of a block's header in bytes.
pub const HEADER_BYTES: usize = 32;
/// Size of an entry without its name in bytes.
pub const ENTRY_BYTES: usize = 16;
/// Maximum length of a name in bytes.
pub const LONGEST_NAME: usize = 255;
/// Size of the magic number before the entries in an inode, and of the end mark of entries.
const MARK_BYTES: usize = 4;

/// Offsets in the header of a block.
mod header {
    /// Number of inodes that use it.
    pub(crate) const USERS: usize = 4;
    /// Number of blocks, always 1.
    pub(crate) const BLOCKS: usize = 8;
    pub(crate) const HASH: usize = 12;
}

/// Offsets in an entry.
mod field {
    pub(crate) const NAME_BYTES: usize = 0;
    pub(crate) const NAMESPACE: usize = 1;
    pub(crate) const VALUE_OFFSET: usize = 2;
    pub(crate) const VALUE_INODE: usize = 4;
    pub(crate) const VALUE_BYTES: usize = 8;
    pub(crate) const HASH: usize = 12;
}

/// Prefix of an attribute's name, up to the dot.
pub mod namespace {
    /// `user.`: attributes that programs set on files and folders.
    pub const USER: u8 = 1;
    /// `trusted.`: visible on Linux with `CAP_SYS_ADMIN` only.
    pub const TRUSTED: u8 = 4;
    /// `security.`: attributes of Linux security modules.
    pub const SECURITY: u8 = 6;
}

/// Location of a set of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a block: value offsets are relative to the block's start.
    Block,
    /// In an inode: value offsets are relative to the first entry, and hashes may be missing.
    Inode,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExtendedAttribute {
    /// The number of its [namespace].
    pub namespace: u8,
    /// Name after the prefix, 1 to 255 bytes.
    pub name: Vec<u8>,
    /// Value of the attribute.
    pub value: Vec<u8>,
}

/// An attribute within a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The number of its [namespace].
    pub namespace: u8,
    /// Its name.
    pub name: &'a [u8],
    /// Value, padded to four bytes.
    padded: &'a [u8],
    value_bytes: usize,
    hash: u32,
}

impl<'a> Entry<'a> {
    /// Returns the value.
    pub fn value(&self) -> &'a [u8] {
        &self.padded[..self.value_bytes]
    }

    /// Returns whether Linux accepts its hash. Most machines hashed names as signed bytes, before unsigned became the
    /// rule.
    pub fn has_right_hash(&self, place: Place) -> bool {
        let signed = |byte: u8| i32::from(byte as i8) as u32;
        [hash(self.name, self.padded, u32::from), hash(self.name, self.padded, signed)].contains(&self.hash)
            || place == Place::Inode && self.hash == 0
    }

    /// Copies it.
    pub fn to_attribute(&self) -> ExtendedAttribute {
        ExtendedAttribute { namespace: self.namespace, name: self.name.to_vec(), value: self.value().to_vec() }
    }
}

/// Returns the offset of the attributes in an inode, if it has any. `bytes` is the whole inode.
pub fn inline_start(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < inode::BYTES + MARK_BYTES {
        return None;
    }
    let extra = usize::from(read_u16(bytes, inode::field::EXTRA_BYTES));
    let start = inode::BYTES + extra;
    let is_possible = extra >= MARK_BYTES && extra.is_multiple_of(4) && start + MARK_BYTES <= bytes.len();
    (is_possible && read_u32(bytes, start) == MAGIC).then_some(start)
}

/// Returns the user count of an attribute block; `None` if it is not one.
pub fn users(block: &[u8]) -> Option<u32> {
    let is_one = block.len() >= HEADER_BYTES && read_u32(block, 0) == MAGIC && read_u32(block, header::BLOCKS) == 1;
    is_one.then(|| read_u32(block, header::USERS))
}

/// Sets the user count of an attribute block.
pub fn set_users(block: &mut [u8], users: u32) {
    if block.len() >= HEADER_BYTES {
        write_u32(block, header::USERS, users);
    }
}

/// Returns the attributes in these bytes, which are a block or the part of an inode that begins with its attributes.
/// Entries and values must lie within the bytes without overlap; hashes are not verified. `None` if they are malformed.
pub fn entries(bytes: &[u8], place: Place) -> Option<Vec<Entry<'_>>> {
    let first = match place {
        Place::Block => HEADER_BYTES,
        Place::Inode => MARK_BYTES,
    };
    if bytes.len() < first || read_u32(bytes, 0) != MAGIC || place == Place::Block && users(bytes).is_none() {
        return None;
    }
    let mut taken: Vec<(usize, usize)> = Vec::from([(0, first)]);
    let mut take = |start: usize, length: usize| {
        let end = start + length;
        let free = end <= bytes.len() && taken.iter().all(|&(from, to)| end <= from || to <= start);
        taken.push((start, end));
        free
    };
    let base = if place == Place::Block { 0 } else { first };
    let mut found = Vec::new();
    let mut at = first;
    loop {
        let mark = bytes.get(at..at + MARK_BYTES)?;
        if read_u32(mark, 0) == 0 {
            return take(at, MARK_BYTES).then_some(found);
        }
        let head = bytes.get(at..at + ENTRY_BYTES)?;
        let name_bytes = usize::from(head[field::NAME_BYTES]);
        let length = (ENTRY_BYTES + name_bytes).next_multiple_of(4);
        if !take(at, length) || read_u32(head, field::VALUE_INODE) != 0 {
            return None;
        }
        let namespace = head[field::NAMESPACE];
        if place == Place::Block && namespace == 0 {
            return None;
        }
        let offset = base + usize::from(read_u16(head, field::VALUE_OFFSET));
        let value_bytes = usize::try_from(read_u32(head, field::VALUE_BYTES)).ok()?;
        if value_bytes > bytes.len() {
            return None;
        }
        let padded_bytes = value_bytes.next_multiple_of(4);
        if value_bytes > 0 && !take(offset, padded_bytes) {
            return None;
        }
        let padded = if value_bytes == 0 { &[] } else { &bytes[offset..offset + padded_bytes] };
        let name = &bytes[at + ENTRY_BYTES..at + ENTRY_BYTES + name_bytes];
        found.push(Entry { namespace, name, padded, value_bytes, hash: read_u32(head, field::HASH) });
        at += length;
    }
}

/// Returns the bytes that these attributes take in a block.
pub fn block_bytes_of(attributes: &[ExtendedAttribute]) -> usize {
    HEADER_BYTES + MARK_BYTES + attributes.iter().map(bytes_of).sum::<usize>()
}

fn bytes_of(attribute: &ExtendedAttribute) -> usize {
    (ENTRY_BYTES + attribute.name.len()).next_multiple_of(4) + attribute.value.len().next_multiple_of(4)
}

/// Fills a block with attributes, which must have room in it ([`block_bytes_of`]), with names of at most 255 bytes.
/// Sorts them in the order that Linux expects.
pub fn store_block(block: &mut [u8], attributes: &[ExtendedAttribute], users: u32) {
    let mut sorted: Vec<&ExtendedAttribute> = attributes.iter().collect();
    sorted.sort_by_key(|attribute| (attribute.namespace, attribute.name.len(), &attribute.name));
    block.fill(0);
    write_u32(block, 0, MAGIC);
    write_u32(block, header::USERS, users);
    write_u32(block, header::BLOCKS, 1);
    let mut of_all = 0u32;
    store_entries(block, HEADER_BYTES, 0, &sorted, |entry, name, padded| {
        let own = hash(name, padded, u32::from);
        of_all = of_all.rotate_left(16) ^ own;
        write_u32(entry, field::HASH, own);
    });
    write_u32(block, header::HASH, of_all);
}

/// Replaces the attributes in an inode, given its attribute area as `bytes`; they must fit, as any subset of the
/// previous ones does. Without attributes, the area is cleared.
pub fn store_inline(bytes: &mut [u8], attributes: &[ExtendedAttribute]) {
    bytes.fill(0);
    if attributes.is_empty() {
        return;
    }
    let all: Vec<&ExtendedAttribute> = attributes.iter().collect();
    write_u32(bytes, 0, MAGIC);
    // Linux stores these without hashes.
    store_entries(bytes, MARK_BYTES, MARK_BYTES, &all, |_, _, _| ());
}

fn store_entries(
    bytes: &mut [u8],
    first: usize,
    base: usize,
    attributes: &[&ExtendedAttribute],
    mut store_hash: impl FnMut(&mut [u8], &[u8], &[u8]),
) {
    let mut at = first;
    let mut end = bytes.len();
    for attribute in attributes {
        let (name, value) = (&attribute.name, &attribute.value);
        let padded_bytes = value.len().next_multiple_of(4);
        end -= padded_bytes;
        bytes[end..end + value.len()].copy_from_slice(value);
        let (front, back) = bytes.split_at_mut(end);
        let entry = &mut front[at..];
        // Names are at most 255 bytes, blocks at most 4096.
        entry[field::NAME_BYTES] = name.len() as u8;
        entry[field::NAMESPACE] = attribute.namespace;
        let offset = if value.is_empty() { 0 } else { end - base };
        write_u16(entry, field::VALUE_OFFSET, offset as u16);
        write_u32(entry, field::VALUE_BYTES, value.len() as u32);
        entry[ENTRY_BYTES..ENTRY_BYTES + name.len()].copy_from_slice(name);
        store_hash(entry, name, &back[..padded_bytes]);
        at += (ENTRY_BYTES + name.len()).next_multiple_of(4);
    }
}

/// Returns the hash of an attribute; `number` converts bytes of its name, signed or unsigned.
fn hash(name: &[u8], padded: &[u8], number: impl Fn(u8) -> u32) -> u32 {
    let of_name = name.iter().fold(0u32, |hash, &byte| hash.rotate_left(5) ^ number(byte));
    padded.chunks_exact(4).fold(of_name, |hash, word| hash.rotate_left(16) ^ read_u32(word, 0))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn attribute(namespace: u8, name: &[u8], value: &[u8]) -> ExtendedAttribute {
        ExtendedAttribute { namespace, name: name.to_vec(), value: value.to_vec() }
    }

    fn samples() -> Vec<ExtendedAttribute> {
        vec![
            attribute(namespace::USER, b"longer", b"12345"),
            attribute(namespace::USER, b"b", b""),
            attribute(namespace::TRUSTED, b"a", &[0xff; 64]),
            attribute(namespace::USER, &[0xc3, 0xa4], b"abcd"),
        ]
    }

    #[test]
    fn what_is_stored_in_a_block_is_found_in_the_order_that_linux_looks_for() {
        let mut block = vec![0x55; 1024];
        store_block(&mut block, &samples(), 3);
        assert_eq!(users(&block), Some(3));
        let found = entries(&block, Place::Block).unwrap();
        assert!(found.iter().all(|entry| entry.has_right_hash(Place::Block)));
        let found: Vec<_> = found.iter().map(Entry::to_attribute).collect();
        let [longer, b, a, umlaut] = &samples()[..] else { panic!() };
        assert_eq!(found, [b.clone(), umlaut.clone(), longer.clone(), a.clone()]);
        set_users(&mut block, 2);
        assert_eq!(users(&block), Some(2));
    }

    #[test]
    fn a_block_is_filled_to_its_last_byte() {
        let mut all = samples();
        let left = 1024 - block_bytes_of(&all) - ENTRY_BYTES - 4;
        all.push(attribute(namespace::USER, b"rest", &vec![7; left]));
        assert_eq!(block_bytes_of(&all), 1024);
        let mut block = vec![0; 1024];
        store_block(&mut block, &all, 1);
        assert_eq!(entries(&block, Place::Block).unwrap().len(), 5);
    }

    #[test]
    fn those_in_an_inode_are_found_behind_its_known_fields() {
        let mut bytes = vec![0; 256];
        assert_eq!(inline_start(&bytes), None);
        write_u16(&mut bytes, inode::field::EXTRA_BYTES, 32);
        assert_eq!(inline_start(&bytes), None);
        store_inline(&mut bytes[160..], &samples()[..2]);
        assert_eq!(inline_start(&bytes), Some(160));
        let found = entries(&bytes[160..], Place::Inode).unwrap();
        assert_eq!(found.iter().map(Entry::to_attribute).collect::<Vec<_>>(), samples()[..2]);
        assert!(found.iter().all(|entry| entry.has_right_hash(Place::Inode)));
        for wrong in [0, 2, 30, 124, 128, u16::MAX] {
            write_u16(&mut bytes, inode::field::EXTRA_BYTES, wrong);
            assert_eq!(inline_start(&bytes), None, "{wrong}");
        }
        assert_eq!(inline_start(&bytes[..128]), None);
        write_u16(&mut bytes, inode::field::EXTRA_BYTES, 32);
        store_inline(&mut bytes[160..], &[]);
        assert!(bytes[160..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn every_byte_that_can_be_wrong_is_noticed_or_harmless() {
        let mut block = vec![0; 1024];
        store_block(&mut block, &samples(), 1);
        for at in 0..1024 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = block.clone();
                damaged[at] = value;
                // Parsing stays within the block, whatever the damage.
                if let Some(found) = entries(&damaged, Place::Block) {
                    assert!(found.len() <= 5);
                }
                let _ = entries(&damaged[..at], Place::Block);
            }
        }
    }
}
