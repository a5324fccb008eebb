//! Snapshots of a file's text, shared by all clients that have it open.
//!
//! A client reads the snapshot of the time it opened the file, as long as it is one of the [`MAX_TEXTS`] newest, then
//! the newest. So memory is bounded however often the file is opened, and no open fails. Deliberately not here: the
//! source of the texts.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum number of cached texts.
const MAX_TEXTS: usize = 8;

/// Identifies a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(u64);

/// The newest texts of a file.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// The oldest first; unused ones are kept until displaced.
    texts: Vec<(u64, Rc<str>)>,
    last: u64,
}

impl Snapshots {
    /// Adds the current text, unless it equals the newest snapshot.
    pub fn take(&mut self, text: String) -> Number {
        if let Some((number, newest)) = self.texts.last()
            && **newest == *text
        {
            return Number(*number);
        }
        if self.texts.len() == MAX_TEXTS {
            self.texts.remove(0);
        }
        self.last += 1;
        self.texts.push((self.last, text.into()));
        Number(self.last)
    }

    /// The snapshot, or the newest one if it was dropped.
    pub fn text(&self, number: Number) -> Rc<str> {
        let own = self.texts.iter().find(|(other, _)| *other == number.0);
        own.or(self.texts.last()).map_or_else(|| Rc::from(""), |(_, text)| Rc::clone(text))
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn equal_texts_share_a_snapshot() {
        let mut snapshots = Snapshots::default();
        let first = snapshots.take("one\n".into());
        assert_eq!(snapshots.take("one\n".into()), first);
        assert!(Rc::ptr_eq(&snapshots.text(first), &snapshots.text(first)));
        let second = snapshots.take("one\ntwo\n".into());
        assert_eq!((&*snapshots.text(first), &*snapshots.text(second)), ("one\n", "one\ntwo\n"));
    }

    #[test]
    fn old_snapshots_are_dropped_and_read_as_the_newest() {
        let mut snapshots = Snapshots::default();
        let first = snapshots.take("line 0\n".into());
        let numbers: Vec<Number> = (1..1000).map(|line| snapshots.take(format!("line {line}\n"))).collect();
        assert_eq!(snapshots.texts.len(), MAX_TEXTS);
        assert_eq!(&*snapshots.text(first), "line 999\n");
        assert_eq!(&*snapshots.text(numbers[998 - MAX_TEXTS + 1]), format!("line {}\n", 999 - MAX_TEXTS + 1));
    }
}
