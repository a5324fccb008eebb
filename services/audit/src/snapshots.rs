//! What files here say, each text kept once however many have it open.
//!
//! A client reads on in the text that was there when it opened the file, as long as that is one of the newest few;
//! then in the newest. So whoever opens the file often, and has something refused in between, takes the memory of a
//! few texts, and nobody is turned away for it. Deliberately not here: where texts come from.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum number of cached texts.
const MOST: usize = 8;

/// Identifies the text that a client began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(u64);

/// The newest texts of a file.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// In the order in which they came; those of which nobody reads are there until others come.
    texts: Vec<(u64, Rc<str>)>,
    last: u64,
}

impl Snapshots {
    /// Adds a text that was just read.
    pub fn take(&mut self, text: String) -> Number {
        if let Some((number, newest)) = self.texts.last()
            && **newest == *text
        {
            return Number(*number);
        }
        if self.texts.len() == MOST {
            self.texts.remove(0);
        }
        self.last += 1;
        self.texts.push((self.last, text.into()));
        Number(self.last)
    }

    /// The text that a client reads on in.
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
    fn the_same_text_is_kept_once() {
        let mut snapshots = Snapshots::default();
        let first = snapshots.take("one\n".into());
        assert_eq!(snapshots.take("one\n".into()), first);
        assert!(Rc::ptr_eq(&snapshots.text(first), &snapshots.text(first)));
        let second = snapshots.take("one\ntwo\n".into());
        assert_eq!((&*snapshots.text(first), &*snapshots.text(second)), ("one\n", "one\ntwo\n"));
    }

    #[test]
    fn however_many_open_it_memory_is_that_of_a_few_and_all_can_read() {
        let mut snapshots = Snapshots::default();
        let first = snapshots.take("line 0\n".into());
        let numbers: Vec<Number> = (1..1000).map(|line| snapshots.take(format!("line {line}\n"))).collect();
        assert_eq!(snapshots.texts.len(), MOST);
        assert_eq!(&*snapshots.text(first), "line 999\n");
        assert_eq!(&*snapshots.text(numbers[998 - MOST + 1]), format!("line {}\n", 999 - MOST + 1));
    }
}
