//! Where a program is in a folder's list of names. A cookie is the number of an entry, from 0 with `.` and 1 with `..`.
//!
//! A page of the server's is held at a time. Going on where the last call ended costs nothing; going back begins anew.

use alloc::vec::Vec;

use client::directory_page::PAGE_BYTES;
use client::namespace::Page;
use contracts::directory::NodeKind;
use sip::exheap::ExVec;

use crate::abi::{DIRENT_BYTES, Errno, file_type};
use crate::folder::Folder;

/// Entries that no server lists.
const DOTS: u64 = 2;

/// The page that the program is at.
#[derive(Default)]
pub struct Listing {
    page: Option<(Page, u64)>,
}

/// Returns the WASI type of a kind of node.
pub fn type_of(kind: NodeKind) -> u8 {
    match kind {
        NodeKind::Directory | NodeKind::Mount => file_type::DIRECTORY,
        NodeKind::File => file_type::REGULAR_FILE,
        NodeKind::Link => file_type::SYMBOLIC_LINK,
        NodeKind::Service => file_type::CHARACTER_DEVICE,
        NodeKind::Other => file_type::UNKNOWN,
    }
}

impl Listing {
    /// Fills a buffer with entries from a cookie on, the last one cut off where the buffer ends; returns the bytes used.
    ///
    /// # Errors
    /// The server's.
    pub fn read(&mut self, folder: &Folder, cookie: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut writer = Writer { buffer, used: 0 };
        let node = match cookie {
            0 => folder.attributes("")?.1.node,
            _ => 0,
        };
        for (number, name) in [(0, &b"."[..]), (1, b"..")] {
            let node = if number == 0 { node } else { 0 };
            if cookie <= number && !writer.push(number, node, file_type::DIRECTORY, name) {
                return Ok(writer.used);
            }
        }
        let from = cookie.max(DOTS);
        self.seek(folder, if cookie < DOTS { None } else { Some(from) })?;
        while let Some((page, first)) = &self.page {
            let skipped = usize::try_from(from.saturating_sub(*first)).unwrap_or(usize::MAX);
            for (index, entry) in page.entries().enumerate().skip(skipped) {
                if !writer.push(first + index as u64, entry.node, type_of(entry.kind), entry.name) {
                    return Ok(writer.used);
                }
            }
            if !self.turn(folder)? {
                // Most programs do not come back; the block is better free.
                self.page = None;
            }
        }
        Ok(writer.used)
    }

    /// Makes the page one on which a cookie lies or after which it comes; the first one, anew, without a cookie.
    fn seek(&mut self, folder: &Folder, cookie: Option<u64>) -> Result<(), Errno> {
        let is_behind = match (&self.page, cookie) {
            (Some((_, first)), Some(cookie)) => cookie < *first,
            _ => true,
        };
        if is_behind {
            let page = folder.namespace().page(ExVec::new(PAGE_BYTES)?, 0)?;
            self.page = Some((page, DOTS));
        }
        Ok(())
    }

    /// Turns to the next page; false if there is none.
    fn turn(&mut self, folder: &Folder) -> Result<bool, Errno> {
        let Some((page, first)) = &self.page else { return Ok(false) };
        let Some(next) = page.next else { return Ok(false) };
        let after = first + page.entries().count() as u64;
        let page = folder.namespace().page(ExVec::new(PAGE_BYTES)?, next)?;
        self.page = Some((page, after));
        Ok(true)
    }
}

struct Writer<'b> {
    buffer: &'b mut [u8],
    used: usize,
}

impl Writer<'_> {
    /// Adds an entry; false if the buffer is full.
    fn push(&mut self, cookie: u64, node: u64, kind: u8, name: &[u8]) -> bool {
        let mut head = [0; DIRENT_BYTES];
        head[..8].copy_from_slice(&(cookie + 1).to_le_bytes());
        head[8..16].copy_from_slice(&node.to_le_bytes());
        head[16..20].copy_from_slice(&(name.len() as u32).to_le_bytes());
        head[20] = kind;
        let entry: Vec<u8> = head.iter().chain(name).copied().collect();
        let room = &mut self.buffer[self.used..];
        let taken = entry.len().min(room.len());
        room[..taken].copy_from_slice(&entry[..taken]);
        self.used += taken;
        self.used < self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_is_cut_off_where_the_buffer_ends() {
        let mut buffer = [0; 40];
        let mut writer = Writer { buffer: &mut buffer, used: 0 };
        assert!(writer.push(4, 77, file_type::REGULAR_FILE, b"name"));
        assert_eq!(writer.used, 28);
        assert!(!writer.push(5, 78, file_type::DIRECTORY, b"other"));
        assert_eq!(writer.used, 40);
        assert_eq!(buffer[..8], 5u64.to_le_bytes());
        assert_eq!((buffer[16], buffer[20], &buffer[24..28]), (4, file_type::REGULAR_FILE, &b"name"[..]));
        assert_eq!(buffer[28..36], 6u64.to_le_bytes());
    }
}
