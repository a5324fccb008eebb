//! A line: an aligned piece of the disk, and where its buffer is.

use crate::latch::Latch;

/// The unit in which lines know what of them is dirty or unreadable.
pub(crate) const SECTOR_BYTES: usize = 512;
/// A line has a bit for each sector in a word.
pub(super) const MAX_LINE_BYTES: usize = 64 * SECTOR_BYTES;

/// Who has a line's buffer.
pub(super) enum Place<B> {
    /// The cache: operations may copy from it and to it.
    Here(B),
    /// The task that reads or writes the line; the latch opens when it ends.
    AtDisk(Latch),
}

pub(super) struct Line<B> {
    pub(super) place: Place<B>,
    /// A bit for each sector that the disk does not have yet.
    pub(super) dirty: u64,
    /// A bit for each sector that could not be read.
    pub(super) unreadable: u64,
    /// When it was last used, in ticks of the cache's clock.
    pub(super) used: u64,
}

impl<B> Line<B> {
    pub(super) fn buffer_mut(&mut self) -> Option<&mut B> {
        match &mut self.place {
            Place::Here(buffer) => Some(buffer),
            Place::AtDisk(_) => None,
        }
    }

    /// Hands the buffer to the task of this latch, if it is here.
    pub(super) fn depart(&mut self, latch: &Latch) -> Option<B> {
        match core::mem::replace(&mut self.place, Place::AtDisk(latch.clone())) {
            Place::Here(buffer) => Some(buffer),
            elsewhere => {
                self.place = elsewhere;
                None
            }
        }
    }

    /// The latch of the task that has the buffer.
    pub(super) fn latch(&self) -> Option<Latch> {
        match &self.place {
            Place::Here(_) => None,
            Place::AtDisk(latch) => Some(latch.clone()),
        }
    }

    /// Whether it can be given up without losing anything.
    pub(super) fn is_evictable(&self) -> bool {
        self.dirty == 0 && matches!(self.place, Place::Here(_))
    }
}

/// The bits of the sectors that this range of a line touches.
pub(super) fn sector_bits(within: usize, bytes: usize) -> u64 {
    let first = within / SECTOR_BYTES;
    let count = (within + bytes).div_ceil(SECTOR_BYTES) - first;
    let ones = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    ones << first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_of_a_range_has_its_bit() {
        assert_eq!(sector_bits(0, 512), 1);
        assert_eq!(sector_bits(512, 1024), 0b110);
        assert_eq!(sector_bits(0, MAX_LINE_BYTES), u64::MAX);
        assert_eq!(sector_bits(MAX_LINE_BYTES - 512, 512), 1 << 63);
    }
}
