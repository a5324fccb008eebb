//! The pages of images in a domain, which stay mapped in the process of an ended domain that is kept: the next one often
//! has the same program.
//!
//! Key type: [`ImagePages`]. Images are sealed, and a page of the file of images is for one address: a mapping that is left
//! is as good as a new one of the same command, and shows nothing that the next program could not see in its own. One that
//! the next domain does not ask for is unmapped before it is entered.

use std::ops::Range;

use super::control::Command;

/// Maximum mappings that are left.
pub(super) const MAX_LEFT: usize = 8;

/// The commands by which they were mapped.
#[derive(Debug, Default)]
pub(super) struct ImagePages {
    mapped: Vec<Command>,
    /// Those of a domain that had the process before, which this one has not asked for yet.
    left: Vec<Command>,
}

/// Returns the pages that a command maps.
fn pages_of(command: &Command) -> Range<usize> {
    let [_, address, bytes, ..] = *command;
    address as usize..(address + bytes) as usize
}

fn overlap(command: &Command, pages: &Range<usize>) -> bool {
    let mapped = pages_of(command);
    mapped.start < pages.end && pages.start < mapped.end
}

impl ImagePages {
    /// Whether a mapping that is to be made is there already.
    pub(super) fn is_left(&mut self, command: &Command) -> bool {
        let place = self.left.iter().position(|left| left == command);
        if let Some(place) = place {
            self.left.swap_remove(place);
        }
        // A domain with more of them leaves none.
        if self.mapped.len() <= MAX_LEFT {
            self.mapped.push(*command);
        }
        place.is_some()
    }

    /// These pages are unmapped.
    pub(super) fn forget(&mut self, pages: Range<usize>) {
        self.mapped.retain(|command| !overlap(command, &pages));
    }

    /// Takes those that the domain has not asked for: they are to be unmapped before anything else.
    pub(super) fn take_left(&mut self) -> impl Iterator<Item = Range<usize>> {
        std::mem::take(&mut self.left).into_iter().map(|command| pages_of(&command))
    }

    /// The domain is closed: returns the pages that stay. These commands were not done.
    pub(super) fn leave(&mut self, undone: &[Command]) -> Vec<Range<usize>> {
        self.left = std::mem::take(&mut self.mapped);
        if self.left.len() > MAX_LEFT {
            self.left.clear();
        }
        self.left.retain(|command| !undone.contains(command));
        self.left.iter().map(pages_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(address: u64, bytes: u64) -> Command {
        [9, address, bytes, 1, 0, 6, 0, 0]
    }

    #[test]
    fn the_same_pages_are_left_and_others_are_unmapped() {
        let mut pages = ImagePages::default();
        let (code, constants, data) = (mapping(0x1000, 0x3000), mapping(0x4000, 0x1000), mapping(0x5000, 0x1000));
        assert!(![code, constants, data].iter().any(|command| pages.is_left(command)));
        pages.forget(0x5800..0x6000);
        assert_eq!(pages.leave(&[]), [0x1000..0x4000, 0x4000..0x5000]);

        assert!(pages.is_left(&constants), "it was mapped");
        assert!(!pages.is_left(&data), "it was unmapped");
        assert!(!pages.is_left(&mapping(0x1000, 0x2000)), "it is another mapping");
        assert_eq!(pages.take_left().collect::<Vec<_>>(), vec![0x1000..0x4000; 1]);
        assert_eq!(pages.take_left().count(), 0);
    }

    #[test]
    fn what_was_not_mapped_is_not_left() {
        let mut pages = ImagePages::default();
        let (first, second) = (mapping(0x1000, 0x1000), mapping(0x2000, 0x1000));
        pages.is_left(&first);
        pages.is_left(&second);
        assert_eq!(pages.leave(&[second]), vec![0x1000..0x2000; 1]);
    }

    #[test]
    fn a_domain_of_many_images_leaves_none() {
        let mut pages = ImagePages::default();
        for number in 0..=MAX_LEFT as u64 {
            pages.is_left(&mapping(number << 12, 0x1000));
        }
        assert!(pages.leave(&[]).is_empty());
        assert_eq!(pages.take_left().count(), 0);
    }
}
