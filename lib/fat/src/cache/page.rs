//! A cache page: an aligned piece of the disk, and the state of its buffer.

use crate::latch::Latch;

/// Granularity of dirty and unreadable data.
pub(crate) const SECTOR_BYTES: usize = 512;
/// A page has a bit per sector in one word.
pub(super) const MAX_PAGE_BYTES: usize = 64 * SECTOR_BYTES;

/// The owner of a page's buffer.
pub(super) enum Place<B> {
    /// The cache: operations may copy from and to it.
    Here(B),
    /// The task that reads or writes the page; the latch completes when it ends.
    AtDisk(Latch),
}

pub(super) struct Page<B> {
    pub(super) place: Place<B>,
    /// Dirty sectors, a bit each.
    pub(super) dirty: u64,
    /// Bitmap of unreadable sectors.
    pub(super) unreadable: u64,
    /// Last use, in ticks of the cache's clock.
    pub(super) used: u64,
}

impl<B> Page<B> {
    pub(super) fn buffer_mut(&mut self) -> Option<&mut B> {
        match &mut self.place {
            Place::Here(buffer) => Some(buffer),
            Place::AtDisk(_) => None,
        }
    }

    /// Moves the buffer to the task with this latch, if it is here.
    pub(super) fn depart(&mut self, latch: &Latch) -> Option<B> {
        match core::mem::replace(&mut self.place, Place::AtDisk(latch.clone())) {
            Place::Here(buffer) => Some(buffer),
            elsewhere => {
                self.place = elsewhere;
                None
            }
        }
    }

    /// The latch of the task that owns the buffer.
    pub(super) fn latch(&self) -> Option<Latch> {
        match &self.place {
            Place::Here(_) => None,
            Place::AtDisk(latch) => Some(latch.clone()),
        }
    }

    /// Whether it can be evicted: resident and clean.
    pub(super) fn is_evictable(&self) -> bool {
        self.dirty == 0 && matches!(self.place, Place::Here(_))
    }
}

/// The bits of the sectors in this range of a page.
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
        assert_eq!(sector_bits(0, MAX_PAGE_BYTES), u64::MAX);
        assert_eq!(sector_bits(MAX_PAGE_BYTES - 512, 512), 1 << 63);
    }
}
