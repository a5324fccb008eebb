//! The entries of one block of a folder, as far as they can be checked without other blocks. Pure: no disk.

use alloc::vec;
use alloc::vec::Vec;

use crate::format::directory::field;
use crate::format::fresh::{entry_bytes, write_entry};
use crate::format::{read_u16, read_u32, write_u16, write_u32};

/// Minimum size of an entry in bytes: a name has at least one byte.
const MIN_BYTES: usize = 12;

/// An entry that lies in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) offset: usize,
    /// Bytes to the next one.
    pub(super) bytes: usize,
    pub(super) inode: u32,
    pub(super) kind: u8,
    pub(super) name: &'a [u8],
}

impl Entry<'_> {
    /// Returns the offset after it.
    pub(super) fn end(&self) -> usize {
        self.offset + self.bytes
    }
}

/// Returns the entry at `offset`, if it is valid.
pub(super) fn entry(block: &[u8], offset: usize) -> Option<Entry<'_>> {
    let rest = block.get(offset..).filter(|rest| rest.len() >= MIN_BYTES)?;
    let bytes = usize::from(read_u16(rest, field::ENTRY_BYTES));
    let name_bytes = usize::from(rest[field::NAME_BYTES]);
    if bytes < MIN_BYTES || !bytes.is_multiple_of(4) || bytes > rest.len() || entry_bytes(name_bytes) > bytes {
        return None;
    }
    let name = &rest[field::NAME..field::NAME + name_bytes];
    Some(Entry { offset, bytes, inode: read_u32(rest, field::INODE), kind: rest[field::KIND], name })
}

/// Iterates over the entries of a block, up to the first invalid one.
pub(super) fn entries(block: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut offset = 0;
    core::iter::from_fn(move || {
        let found = entry(block, offset)?;
        offset = found.end();
        Some(found)
    })
}

/// Returns the offset after invalid bytes from which entries reach exactly to the block's end, at least `gap` bytes on;
/// the block's end if there is none.
pub(super) fn resume(block: &[u8], damaged: usize, gap: usize) -> usize {
    let mut reaches_end = vec![false; block.len() / 4 + 1];
    reaches_end[block.len() / 4] = true;
    let mut best = block.len();
    for offset in (damaged + gap..block.len()).step_by(4).collect::<Vec<_>>().into_iter().rev() {
        let Some(found) = entry(block, offset) else { continue };
        let sound = found.inode == 0 || is_name(found.name);
        if sound && reaches_end[found.end() / 4] {
            reaches_end[offset / 4] = true;
            best = offset;
        }
    }
    best
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|&byte| byte == 0 || byte == b'/')
}

/// Turns the invalid bytes from `damaged` to `end` into entries: the damaged entry itself, if only its length is wrong;
/// else the preceding entry, or an unused one, takes them.
pub(super) fn repair(block: &mut [u8], before: Option<usize>, damaged: usize, end: usize, max_inode: u32) {
    let rest = &mut block[damaged..end];
    if rest.len() >= MIN_BYTES {
        let name_bytes = usize::from(rest[field::NAME_BYTES]);
        let inode = read_u32(rest, field::INODE);
        let name = rest.get(field::NAME..field::NAME + name_bytes);
        let fits = entry_bytes(name_bytes) <= rest.len();
        if fits && (1..=max_inode).contains(&inode) && name.is_some_and(is_name) {
            write_u16(rest, field::ENTRY_BYTES, rest.len() as u16);
            return;
        }
    }
    match before {
        Some(before) => write_u16(block, before + field::ENTRY_BYTES, (end - before) as u16),
        None => {
            block[damaged..end].fill(0);
            write_u16(block, damaged + field::ENTRY_BYTES, (end - damaged) as u16);
        }
    }
}

/// Returns whether a block is the first of the folder with this number.
pub(super) fn begins_folder(block: &[u8], number: u32) -> bool {
    let Some(dot) = entry(block, 0) else { return false };
    let Some(dot_dot) = entry(block, dot.end()) else { return false };
    dot.name == b"." && dot.inode == number && dot.bytes < block.len() - MIN_BYTES && dot_dot.name == b".."
}

/// Returns whether a block begins with well-formed `.` and `..`, whatever inodes they refer to.
pub(super) fn has_dots(block: &[u8]) -> bool {
    let Some(dot) = entry(block, 0) else { return false };
    let Some(dot_dot) = entry(block, dot.end()) else { return false };
    let ends = |entry: &Entry<'_>| block[entry.offset + field::NAME + entry.name.len()] == 0;
    dot.name == b"." && ends(&dot) && dot.bytes <= 2 * MIN_BYTES && dot_dot.name == b".." && ends(&dot_dot)
}

/// Rebuilds the first block of a folder, with the other entries of the old one as far as they fit.
pub(super) fn with_dots(old: &[u8], number: u32, parent: u32, kind: u8) -> Vec<u8> {
    let mut block = vec![0; old.len()];
    let others = entries(old).filter(|entry| entry.inode != 0 && is_name(entry.name) && !is_dot(entry.name));
    let dots = [(number, kind, &b"."[..]), (parent, kind, b"..")];
    let (mut at, mut last) = (0, 0);
    for (inode, kind, name) in dots.into_iter().chain(others.map(|entry| (entry.inode, entry.kind, entry.name))) {
        let bytes = entry_bytes(name.len());
        if at + bytes <= block.len() {
            write_entry(&mut block[at..at + bytes], inode, kind, name);
            last = at;
            at += bytes;
        }
    }
    let bytes = block.len() - last;
    write_u16(&mut block, last + field::ENTRY_BYTES, bytes as u16);
    block
}

/// Returns whether a name is `.` or `..`.
pub(super) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// Marks an entry as unused.
pub(super) fn remove(block: &mut [u8], offset: usize) {
    set_inode(block, offset, 0);
}

pub(super) fn set_inode(block: &mut [u8], offset: usize, inode: u32) {
    write_u32(block, offset + field::INODE, inode);
}

pub(super) fn set_kind(block: &mut [u8], offset: usize, kind: u8) {
    block[offset + field::KIND] = kind;
}

/// Replaces the name in an entry by another of the same length.
pub(super) fn set_name(block: &mut [u8], offset: usize, name: &[u8]) {
    block[offset + field::NAME..offset + field::NAME + name.len()].copy_from_slice(name);
}

/// Inserts a new entry into free room. Returns whether there was enough.
pub(super) fn insert(block: &mut [u8], inode: u32, kind: u8, name: &[u8]) -> bool {
    let needed = entry_bytes(name.len());
    let place = entries(block).find_map(|entry| {
        let used = if entry.inode == 0 { 0 } else { entry_bytes(entry.name.len()) };
        (entry.bytes - used >= needed).then_some((entry.offset, used, entry.end()))
    });
    let Some((offset, used, end)) = place else { return false };
    if used > 0 {
        write_u16(block, offset + field::ENTRY_BYTES, used as u16);
    }
    write_entry(&mut block[offset + used..end], inode, kind, name);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let mut block = vec![0; 1024];
        write_u16(&mut block, field::ENTRY_BYTES, 1024);
        for (inode, name) in [(2, &b"."[..]), (2, b".."), (12, b"first"), (13, b"second"), (14, b"third")] {
            assert!(insert(&mut block, inode, 1, name));
        }
        block
    }

    fn names(block: &[u8]) -> Vec<&[u8]> {
        entries(block).filter(|entry| entry.inode != 0).map(|entry| entry.name).collect()
    }

    #[test]
    fn an_entry_with_a_wrong_length_is_kept() {
        let mut block = block();
        let second = entries(&block).nth(3).unwrap().offset;
        for length in [0, 3, 8, 1020, u16::MAX] {
            write_u16(&mut block, second + field::ENTRY_BYTES, length);
            let end = resume(&block, second, 4);
            repair(&mut block, Some(24), second, end, 100);
            assert_eq!(names(&block), [&b"."[..], b"..", b"first", b"second", b"third"], "{length}");
        }
    }

    #[test]
    fn what_is_no_entry_goes_to_the_one_before() {
        let mut block = block();
        let (first, second) = (24, entries(&block).nth(3).unwrap().offset);
        block[second..second + 16].fill(0xff);
        assert_eq!(entry(&block, second), None);
        let end = resume(&block, second, 4);
        repair(&mut block, Some(first), second, end, 100);
        assert_eq!(names(&block), [&b"."[..], b"..", b"first", b"third"]);
        assert_eq!(entries(&block).last().unwrap().end(), 1024);
    }

    #[test]
    fn dots_are_made_and_the_rest_stays() {
        let mut block = block();
        assert!(has_dots(&block) && begins_folder(&block, 2) && !begins_folder(&block, 3));
        block[8] = b'x';
        assert!(!has_dots(&block));
        let repaired = with_dots(&block, 2, 2, 2);
        assert!(has_dots(&repaired));
        assert_eq!(names(&repaired), [&b"."[..], b"..", b"x", b"first", b"second", b"third"]);
    }

    #[test]
    fn any_bytes_end() {
        for seed in 0..200u8 {
            let bytes: Vec<u8> = (0..1024usize).map(|index| (index * 7 + seed as usize * 31) as u8 & seed).collect();
            let end = resume(&bytes, 0, MIN_BYTES);
            assert!(end <= 1024 && entries(&bytes).count() <= 1024 / MIN_BYTES);
        }
    }
}
