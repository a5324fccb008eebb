//! A page of names.

pub use client::directory_page::PageFull;
use client::directory_page::PageWriter;
use contracts::directory::{NameError, NodeKind};

/// A client's page while [`Volume::enumerate`](crate::Volume::enumerate) fills it.
pub struct Page<'a>(PageWriter<'a>);

/// End of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The page is full. The cursor is before the name that was refused.
    Full(u64),
    /// There are no names after this cursor.
    End(u64),
}

impl<'a> Page<'a> {
    pub(crate) fn new(page: &'a mut [u8]) -> Page<'a> {
        Page(PageWriter::new(page))
    }

    /// Adds a name.
    ///
    /// # Errors
    /// The page is full; the enumeration has to end with [`Listed::Full`].
    pub fn push(&mut self, kind: NodeKind, node: u64, name: &str) -> Result<(), PageFull> {
        self.0.push(kind, node, name.as_bytes())
    }

    /// Returns the bytes used, the cursor of the next page, and whether there is one.
    pub(crate) fn finish(self, listed: Listed) -> Result<(u32, u64, bool), NameError> {
        // A page is smaller than the exchange heap, which is smaller than 4 GiB.
        let used = self.0.used() as u32;
        match listed {
            // An empty page would make the client retry forever.
            Listed::Full(_) if used == 0 => Err(NameError::Exhausted),
            Listed::Full(cursor) => Ok((used, cursor, true)),
            Listed::End(cursor) => Ok((used, cursor, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_room_for_one_name_is_an_error() {
        let mut bytes = [0; 12];
        let mut page = Page::new(&mut bytes);
        assert_eq!(page.push(NodeKind::File, 1, "ab"), Err(PageFull));
        assert_eq!(page.finish(Listed::Full(3)), Err(NameError::Exhausted));
    }

    #[test]
    fn enumeration_continues_at_the_cursor() {
        let mut bytes = [0; 12];
        let mut page = Page::new(&mut bytes);
        assert_eq!(page.push(NodeKind::File, 1, "a"), Ok(()));
        assert_eq!(page.push(NodeKind::File, 1, "b"), Err(PageFull));
        assert_eq!(page.finish(Listed::Full(3)), Ok((12, 3, true)));
        assert_eq!(Page::new(&mut bytes).finish(Listed::End(3)), Ok((0, 3, false)));
    }
}
