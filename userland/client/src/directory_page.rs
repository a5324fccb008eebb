//! The page of names that `Directory.Enumerate` fills and its client reads.
//!
//! A page is a sequence of entries, each of them a header and the name (UTF-8; a file system whose names are bytes
//! escapes invalid ones). Deliberately not here: how a server enumerates its names.

use contracts::directory::NodeKind;
use path::PART_BYTES;

/// Size of a page in bytes: enough for any entry, and for all entries of most folders.
pub const PAGE_BYTES: usize = 32 * 1024;

/// Header of an entry.
#[derive(layout::Record)]
#[record(bytes = 11, order = "little")]
struct Header {
    /// A [`NodeKind`] as a number.
    kind: u8,
    /// Length of the name.
    name_bytes: u16,
    /// Number of the node.
    node: u64,
}

/// The page has no room for the entry, which becomes the first of the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFull;

/// Fills a page.
pub struct PageWriter<'a> {
    page: &'a mut [u8],
    used: usize,
}

impl<'a> PageWriter<'a> {
    /// Starts at the beginning of the client's page.
    pub fn new(page: &'a mut [u8]) -> PageWriter<'a> {
        PageWriter { page, used: 0 }
    }

    /// Adds an entry. A name longer than [`PART_BYTES`] is cut: no path leads to one.
    pub fn push(&mut self, kind: NodeKind, node: u64, name: &[u8]) -> Result<(), PageFull> {
        let name = &name[..name.len().min(PART_BYTES)];
        let end = self.used + Header::BYTES + name.len();
        let entry = self.page.get_mut(self.used..end).and_then(|entry| entry.split_first_chunk_mut());
        let Some((header, place)) = entry else { return Err(PageFull) };
        Header { kind: kind as u8, name_bytes: name.len() as u16, node }.write(header);
        place.copy_from_slice(name);
        self.used = end;
        Ok(())
    }

    /// Bytes of the page that hold entries.
    pub fn used(&self) -> usize {
        self.used
    }
}

/// An entry of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Kind of the node.
    pub kind: NodeKind,
    /// Number of the node in its file system, or 0.
    pub node: u64,
    /// The name without a path.
    pub name: &'a [u8],
}

/// Reads the entries of a page whose used part is `bytes`. Stops at a truncated entry.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (header, after) = rest.split_first_chunk()?;
        let header = Header::from_bytes(header);
        let (name, after) = after.split_at_checked(header.name_bytes.into())?;
        rest = after;
        Some(Entry { kind: kind_from_number(header.kind), node: header.node, name })
    })
}

fn kind_from_number(number: u8) -> NodeKind {
    const KINDS: [NodeKind; 6] =
        [NodeKind::Directory, NodeKind::File, NodeKind::Link, NodeKind::Service, NodeKind::Mount, NodeKind::Other];
    KINDS.iter().copied().find(|&kind| kind as u8 == number).unwrap_or(NodeKind::Other)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn writes_are_read_back() {
        let mut page = [0; 64];
        let mut writer = PageWriter::new(&mut page);
        writer.push(NodeKind::File, 7, b"a.txt").unwrap();
        writer.push(NodeKind::Directory, u64::MAX, b"").unwrap();
        let used = writer.used();
        let read: Vec<_> = entries(&page[..used]).collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], Entry { kind: NodeKind::File, node: 7, name: b"a.txt" });
        assert_eq!(read[1], Entry { kind: NodeKind::Directory, node: u64::MAX, name: b"" });
    }

    #[test]
    fn a_full_page_is_reported_and_unchanged() {
        let mut page = [0; 31];
        let mut writer = PageWriter::new(&mut page);
        writer.push(NodeKind::File, 1, b"12345").unwrap();
        assert_eq!(writer.push(NodeKind::File, 2, b"123456"), Err(PageFull));
        writer.push(NodeKind::File, 3, b"1234").unwrap();
        let used = writer.used();
        assert_eq!(entries(&page[..used]).count(), 2);
    }

    #[test]
    fn the_longest_part_of_a_path_fits_and_more_is_cut() {
        let mut page = [0; 2 * (Header::BYTES + PART_BYTES)];
        let mut writer = PageWriter::new(&mut page);
        writer.push(NodeKind::File, 1, &[b'a'; PART_BYTES]).unwrap();
        writer.push(NodeKind::File, 2, &[b'b'; PART_BYTES + 1]).unwrap();
        let names: Vec<_> = entries(&page).map(|entry| entry.name).collect();
        assert_eq!(names, [[b'a'; PART_BYTES], [b'b'; PART_BYTES]]);
    }

    #[test]
    fn a_page_cut_anywhere_is_read_without_panic() {
        let mut page = [0; 64];
        let mut writer = PageWriter::new(&mut page);
        writer.push(NodeKind::Other, 1, b"abcdefgh").unwrap();
        writer.push(NodeKind::Other, 2, b"ijklmnop").unwrap();
        for length in 0..page.len() {
            assert!(entries(&page[..length]).count() <= 64 / Header::BYTES);
        }
    }
}
