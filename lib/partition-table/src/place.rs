//! Placement of partitions: within the disk, without overlap.

use alloc::vec::Vec;

use crate::{Fault, Partition, Table};

/// Sectors from `first` up to but excluding `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub first: u64,
    pub end: u64,
}

impl Range {
    /// `None` on overflow.
    pub fn of(first: u64, count: u64) -> Option<Range> {
        Some(Range { first, end: first.checked_add(count)? })
    }

    pub fn contains(self, other: Range) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    pub fn overlaps(self, other: Range) -> bool {
        self.first < other.end && other.first < self.end
    }
}

/// Removes all partitions that overlap another: a write to one would damage the other, and it is unknown which is
/// intended. Sorts the rest by number.
pub fn refuse_overlaps(table: &mut Table) {
    let mut partitions = core::mem::take(&mut table.partitions);
    partitions.sort_by_key(|partition| (partition.first_byte, partition.number));
    let mut refused: Vec<u32> = Vec::new();
    // The partition with the highest end so far.
    let mut farthest: Option<&Partition> = None;
    for partition in &partitions {
        let end = partition.first_byte + partition.bytes;
        match farthest {
            Some(before) if partition.first_byte < before.first_byte + before.bytes => {
                table.faults.push(Fault::Overlap { number: before.number, other: partition.number });
                refused.extend([before.number, partition.number]);
                if end > before.first_byte + before.bytes {
                    farthest = Some(partition);
                }
            }
            _ => farthest = Some(partition),
        }
    }
    refused.sort_unstable();
    partitions.retain(|partition| refused.binary_search(&partition.number).is_err());
    partitions.sort_by_key(|partition| partition.number);
    table.partitions = partitions;
}
