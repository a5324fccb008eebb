//! A folder's entries. Each block of a folder is filled by entries, each of which says how many
//! bytes it takes. An entry with inode 0 is not in use.
//!
//! The blocks of an index (`dir_index`) look like unused entries to who reads entry after entry,
//! which is how they are read here.

use super::{read_u16, read_u32};
use crate::error::Problem;

/// Bytes of an entry without its name.
pub const HEADER_BYTES: usize = 8;
/// Bytes of the longest name.
pub const LONGEST_NAME: usize = 255;

/// Byte offsets of the fields.
pub mod field {
    pub(crate) const INODE: usize = 0;
    pub(crate) const ENTRY_BYTES: usize = 4;
    pub(crate) const NAME_BYTES: usize = 6;
    /// The upper byte of the name's length on volumes without the feature `filetype`.
    pub(crate) const KIND: usize = 7;
    pub(crate) const NAME: usize = 8;
}

/// Whether entries say what kind of inode they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFormat {
    /// They do (feature `filetype`).
    WithKind,
    /// They do not (revision 0).
    WithoutKind,
}

/// An entry, checked to lie in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// The inode it names, or 0 if it is not in use.
    pub inode: u32,
    /// Bytes to the next entry.
    pub entry_bytes: usize,
    /// The kind's number, or 0 if the format has none.
    pub kind: u8,
    /// The name.
    pub name: &'a [u8],
}

/// Reads the entry at `offset` of a folder's block.
pub fn entry(block: &[u8], offset: usize, format: EntryFormat) -> Result<View<'_>, Problem> {
    let bytes = block.get(offset..).unwrap_or(&[]);
    if bytes.len() < HEADER_BYTES {
        return Err(Problem::Missing("the rest of an entry"));
    }
    let entry_bytes = usize::from(read_u16(bytes, field::ENTRY_BYTES));
    let (name_bytes, kind) = match format {
        EntryFormat::WithKind => (usize::from(bytes[field::NAME_BYTES]), bytes[field::KIND]),
        EntryFormat::WithoutKind => (usize::from(read_u16(bytes, field::NAME_BYTES)), 0),
    };
    let inode = read_u32(bytes, field::INODE);
    let least = if inode == 0 { HEADER_BYTES } else { HEADER_BYTES + name_bytes.max(1) };
    if !(least..=bytes.len()).contains(&entry_bytes) {
        let (value, least, most) = (entry_bytes as u64, least as u64, bytes.len() as u64);
        return Err(Problem::OutOfRange { field: "rec_len", value, least, most });
    }
    if entry_bytes % 4 != 0 {
        return Err(Problem::Meaningless { field: "rec_len", value: entry_bytes as u64 });
    }
    if inode == 0 {
        return Ok(View { inode, entry_bytes, kind, name: &[] });
    }
    if !(1..=LONGEST_NAME).contains(&name_bytes) {
        let (value, least, most) = (name_bytes as u64, 1, LONGEST_NAME as u64);
        return Err(Problem::OutOfRange { field: "name_len", value, least, most });
    }
    let name = &bytes[field::NAME..field::NAME + name_bytes];
    // A name with a slash could never be opened, and would lead a walker of the tree elsewhere.
    match name.iter().find(|&&byte| byte == 0 || byte == b'/') {
        Some(&byte) => Err(Problem::Meaningless { field: "a byte of the name", value: byte.into() }),
        None => Ok(View { inode, entry_bytes, kind, name }),
    }
}
