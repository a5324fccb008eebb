//! Directory entries. Each block of a directory is filled by entries with their lengths. An entry with inode 0 is
//! unused.
//!
//! The blocks of an index (`dir_index`) look like unused entries to a linear scan, and are read as such here.

use super::error::Problem;
use super::{read_u16, read_u32, write_u16, write_u32};

/// Size of an entry without its name in bytes.
pub const HEADER_BYTES: usize = 8;
/// Maximum length of a name in bytes.
pub const LONGEST_NAME: usize = 255;

/// Byte offsets of the fields.
pub mod field {
    pub(crate) const INODE: usize = 0;
    pub(crate) const ENTRY_BYTES: usize = 4;
    pub(crate) const NAME_BYTES: usize = 6;
    /// Undefined on volumes without the feature `filetype`.
    pub(crate) const KIND: usize = 7;
    pub(crate) const NAME: usize = 8;
}

/// Whether entries contain the kind of their inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFormat {
    /// With kinds (feature `filetype`).
    WithKind,
    /// Without kinds (revision 0).
    WithoutKind,
}

/// An entry, checked to lie in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// Inode number, or 0 if unused.
    pub inode: u32,
    /// Distance to the next entry in bytes.
    pub entry_bytes: usize,
    /// The kind's number, or 0 if the format has none.
    pub kind: u8,
    /// The name.
    pub name: &'a [u8],
}

/// Reads the entry at `offset` of a directory block. The bytes of its name are not checked, see [`check_name`].
pub fn entry(block: &[u8], offset: usize, format: EntryFormat) -> Result<View<'_>, Problem> {
    let bytes = block.get(offset..).unwrap_or(&[]);
    if bytes.len() < HEADER_BYTES {
        return Err(Problem::Missing("the rest of an entry"));
    }
    let entry_bytes = usize::from(read_u16(bytes, field::ENTRY_BYTES));
    // A name's length fits one byte. Linux leaves the other one undefined where it has no meaning.
    let name_bytes = usize::from(bytes[field::NAME_BYTES]);
    let kind = match format {
        EntryFormat::WithKind => bytes[field::KIND],
        EntryFormat::WithoutKind => 0,
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
    Ok(View { inode, entry_bytes, kind, name: &bytes[field::NAME..field::NAME + name_bytes] })
}

/// Refuses a name that no entry can have. One with a slash could never be opened, and would misdirect path walks.
pub fn check_name(name: &[u8]) -> Result<(), Problem> {
    match name.iter().find(|&&byte| byte == 0 || byte == b'/') {
        Some(&byte) => Err(Problem::Meaningless { field: "a byte of the name", value: byte.into() }),
        None => Ok(()),
    }
}

/// An entry to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'a> {
    /// Inode number.
    pub inode: u32,
    /// Number of the kind; not written in a format without kinds.
    pub kind: u8,
    /// The name, of 1 to [`LONGEST_NAME`] bytes.
    pub name: &'a [u8],
}

/// Size of an entry with a name of this many bytes.
pub fn needed_bytes(name_bytes: usize) -> usize {
    (HEADER_BYTES + name_bytes).next_multiple_of(4)
}

/// Returns the bytes at an entry that a new one could take: the whole of an unused one, else those after the name.
fn room_at(view: &View<'_>) -> usize {
    if view.inode == 0 {
        view.entry_bytes
    } else {
        view.entry_bytes - needed_bytes(view.name.len()).min(view.entry_bytes)
    }
}

/// Iterates over the entries of a block, with their offsets. Ends after the first damaged one.
pub fn entries(block: &[u8], format: EntryFormat) -> impl Iterator<Item = Result<(usize, View<'_>), (usize, Problem)>> {
    let mut next = Some(0);
    core::iter::from_fn(move || {
        let offset = next.filter(|&offset| offset < block.len())?;
        match entry(block, offset, format) {
            Ok(view) => {
                next = Some(offset + view.entry_bytes);
                Some(Ok((offset, view)))
            }
            Err(problem) => {
                next = None;
                Some(Err((offset, problem)))
            }
        }
    })
}

/// Returns the offset of a name in a block and its inode.
pub fn find(block: &[u8], name: &[u8], format: EntryFormat) -> Result<Option<(usize, u32)>, (usize, Problem)> {
    for item in entries(block, format) {
        let (offset, view) = item?;
        if view.inode != 0 && view.name == name {
            return Ok(Some((offset, view.inode)));
        }
    }
    Ok(None)
}

/// Returns the size of the largest new entry that fits into a block.
pub fn largest_room(block: &[u8], format: EntryFormat) -> Result<usize, (usize, Problem)> {
    entries(block, format).try_fold(0, |most, item| Ok(most.max(room_at(&item?.1))))
}

/// Turns a block into one unused entry.
pub fn clear(block: &mut [u8]) {
    block[..HEADER_BYTES].fill(0);
    // A block has at most 4096 bytes.
    write_u16(block, field::ENTRY_BYTES, block.len() as u16);
}

/// Puts an entry into the first room that is large enough. Returns whether there was any; if not, or if the block is
/// damaged, nothing changes.
pub fn insert(block: &mut [u8], new: &NewEntry<'_>, format: EntryFormat) -> Result<bool, (usize, Problem)> {
    let needed = needed_bytes(new.name.len());
    let mut place = None;
    // Scans to the end, so that no entry is put into a block that is damaged further on.
    for item in entries(block, format) {
        let (offset, view) = item?;
        if place.is_none() && room_at(&view) >= needed {
            place = Some((offset, view.entry_bytes, if view.inode == 0 { 0 } else { needed_bytes(view.name.len()) }));
        }
    }
    let Some((offset, entry_bytes, kept)) = place else { return Ok(false) };
    if kept != 0 {
        write_u16(&mut block[offset..], field::ENTRY_BYTES, kept as u16);
    }
    write(&mut block[offset + kept..offset + entry_bytes], new, format);
    Ok(true)
}

/// Writes one entry that fills `bytes`, which is large enough.
pub fn write(bytes: &mut [u8], new: &NewEntry<'_>, format: EntryFormat) {
    write_u32(bytes, field::INODE, new.inode);
    // An entry is not longer than a block.
    write_u16(bytes, field::ENTRY_BYTES, bytes.len() as u16);
    bytes[field::NAME_BYTES] = new.name.len() as u8;
    bytes[field::KIND] = if format == EntryFormat::WithKind { new.kind } else { 0 };
    bytes[field::NAME..field::NAME + new.name.len()].copy_from_slice(new.name);
}

/// Removes a name: its bytes are merged into the preceding entry, or become an unused entry. Returns its inode.
pub fn remove(block: &mut [u8], name: &[u8], format: EntryFormat) -> Result<Option<u32>, (usize, Problem)> {
    let mut before = None;
    let mut found = None;
    for item in entries(block, format) {
        let (offset, view) = item?;
        if view.inode != 0 && view.name == name {
            found = Some((offset, view.entry_bytes, view.inode));
            break;
        }
        before = Some((offset, view.entry_bytes));
    }
    let Some((offset, entry_bytes, inode)) = found else { return Ok(None) };
    match before {
        // Both lie in the block, in this order.
        Some((start, bytes)) => write_u16(&mut block[start..], field::ENTRY_BYTES, (bytes + entry_bytes) as u16),
        None => write_u32(&mut block[offset..], field::INODE, 0),
    }
    Ok(Some(inode))
}

/// Makes a name refer to another inode. Returns the previous one.
pub fn replace(block: &mut [u8], new: &NewEntry<'_>, format: EntryFormat) -> Result<Option<u32>, (usize, Problem)> {
    let Some((offset, inode)) = find(block, new.name, format)? else { return Ok(None) };
    write_u32(&mut block[offset..], field::INODE, new.inode);
    if format == EntryFormat::WithKind {
        block[offset + field::KIND] = new.kind;
    }
    Ok(Some(inode))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn names(block: &[u8], format: EntryFormat) -> Vec<(Vec<u8>, u32)> {
        let used = entries(block, format).map(Result::unwrap).filter(|(_, view)| view.inode != 0);
        used.map(|(_, view)| (view.name.to_vec(), view.inode)).collect()
    }

    #[test]
    fn entries_come_and_go_as_in_a_model() {
        for format in [EntryFormat::WithKind, EntryFormat::WithoutKind] {
            let mut block = vec![0xaa; 1024];
            clear(&mut block);
            let mut model: Vec<(Vec<u8>, u32)> = Vec::new();
            let mut random = 7u32;
            for step in 1..5000u32 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if random & 0x1_0000 != 0 {
                    let name = format!("{step}{}", "n".repeat((random >> 20) as usize % 200)).into_bytes();
                    let room = largest_room(&block, format).unwrap();
                    let new = NewEntry { inode: step, kind: 1, name: &name };
                    let fits = insert(&mut block, &new, format).unwrap();
                    assert_eq!(fits, room >= needed_bytes(name.len()));
                    if fits {
                        model.push((name, step));
                    }
                } else if !model.is_empty() {
                    let (name, inode) = model.swap_remove(random as usize % model.len());
                    assert_eq!(remove(&mut block, &name, format), Ok(Some(inode)));
                    assert_eq!(remove(&mut block, &name, format), Ok(None));
                }
                let mut found = names(&block, format);
                found.sort();
                model.sort();
                assert_eq!(found, model);
            }
        }
    }

    #[test]
    fn a_damaged_block_is_not_changed() {
        let mut block = vec![0; 1024];
        clear(&mut block);
        let new = |name| NewEntry { inode: 12, kind: 1, name };
        for name in [b"a", b"b", b"c"] {
            assert_eq!(insert(&mut block, &new(name), EntryFormat::WithKind), Ok(true));
        }
        write_u16(&mut block, 24 + field::ENTRY_BYTES, 6);
        let before = block.clone();
        assert!(insert(&mut block, &new(b"d"), EntryFormat::WithKind).is_err());
        assert!(remove(&mut block, b"c", EntryFormat::WithKind).is_err());
        assert!(largest_room(&block, EntryFormat::WithKind).is_err());
        assert_eq!(block, before);
    }

    /// Linux leaves the kind undefined on volumes without the feature.
    #[test]
    fn the_byte_of_the_kind_means_nothing_where_entries_have_none() {
        let mut block = vec![0; 1024];
        clear(&mut block);
        let new = NewEntry { inode: 12, kind: 0, name: b"name" };
        assert_eq!(insert(&mut block, &new, EntryFormat::WithoutKind), Ok(true));
        block[field::KIND] = 0x6D;
        assert_eq!(names(&block, EntryFormat::WithoutKind), [(b"name".to_vec(), 12)]);
    }
}
