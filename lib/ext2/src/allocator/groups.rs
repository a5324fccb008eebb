//! Group descriptors and counts in memory, and resting blocks.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::bits::{self, Used};
use crate::format::group::{GroupDescriptor, field};
use crate::format::write_u16;
use crate::store::Geometry;

/// A block group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) descriptor: GroupDescriptor,
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    pub(crate) folders: u32,
    /// Whether the block bitmap has been validated.
    pub(super) blocks_checked: bool,
    /// Whether the inode bitmap has been validated.
    pub(super) inodes_checked: bool,
    /// Lower bound on the index of the first free inode.
    pub(super) first_free_inode: u32,
    /// Whether the counts must be added to the write set.
    is_changed: bool,
}

/// Blocks freed in a transaction, by group: a bitmap, and how many.
type Resting = BTreeMap<u32, (Vec<u8>, u32)>;

/// All groups; empty until the volume is to be written.
#[derive(Default)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    free_blocks: u64,
    free_inodes: u64,
    /// Freed in the running transaction, and in the one being committed.
    resting: [Resting; 2],
    resting_blocks: u64,
    changed: Vec<u32>,
}

impl Groups {
    pub(crate) fn new(descriptors: Vec<GroupDescriptor>) -> Groups {
        let group = |descriptor: GroupDescriptor| Group {
            descriptor,
            free_blocks: descriptor.free_blocks.into(),
            free_inodes: descriptor.free_inodes.into(),
            folders: descriptor.folders.into(),
            blocks_checked: false,
            inodes_checked: false,
            first_free_inode: 0,
            is_changed: false,
        };
        let groups: Vec<Group> = descriptors.into_iter().map(group).collect();
        let free_blocks = groups.iter().map(|group| u64::from(group.free_blocks)).sum();
        let free_inodes = groups.iter().map(|group| u64::from(group.free_inodes)).sum();
        Groups { groups, free_blocks, free_inodes, ..Groups::default() }
    }

    /// Returns the numbers of free blocks and inodes, once the groups are loaded.
    pub(crate) fn free_counts(&self) -> Option<(u32, u32)> {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        (!self.groups.is_empty()).then(|| (count(self.free_blocks), count(self.free_inodes)))
    }

    pub(crate) fn get(&self, group: u32) -> Option<&Group> {
        self.groups.get(group as usize)
    }

    pub(super) fn get_mut(&mut self, group: u32) -> Option<&mut Group> {
        self.groups.get_mut(group as usize)
    }

    pub(super) fn all(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the number of blocks available at once, beyond the reserve.
    pub(super) fn available(&self, reserve: u32) -> u64 {
        self.free_blocks.saturating_sub(self.resting_blocks).saturating_sub(reserve.into())
    }

    /// Returns whether fewer than `wanted` blocks are available and a commit would add some.
    pub(crate) fn would_gain(&self, wanted: u32, reserve: u32) -> bool {
        self.resting_blocks > 0 && self.available(reserve) < u64::from(wanted)
    }

    /// Returns the number of blocks of a group available at once.
    pub(super) fn available_in(&self, group: u32) -> u32 {
        let resting: u32 = self.resting.iter().filter_map(|resting| resting.get(&group)).map(|rest| rest.1).sum();
        self.get(group).map_or(0, |group| group.free_blocks.saturating_sub(resting))
    }

    /// Returns the unavailable bits of a group's bitmap.
    pub(super) fn used<'a>(&'a self, group: u32, bitmap: &'a [u8], bits: usize) -> Used<'a> {
        let resting = [0, 1].map(|age: usize| self.resting[age].get(&group).map(|rest| rest.0.as_slice()));
        Used { bitmap, resting, bits }
    }

    pub(super) fn rest(&mut self, group: u32, first: usize, count: usize, bitmap_bytes: usize) {
        let resting = self.resting[0].entry(group).or_insert_with(|| (alloc::vec![0; bitmap_bytes], 0));
        bits::set(&mut resting.0, first, count, true);
        resting.1 += count as u32;
        self.resting_blocks += count as u64;
    }

    /// Freezes the running transaction: blocks freed in it stay unavailable until it is committed.
    pub(crate) fn freeze(&mut self) {
        let resting = core::mem::take(&mut self.resting[0]);
        for (group, (bytes, count)) in resting {
            match self.resting[1].get_mut(&group) {
                None => {
                    self.resting[1].insert(group, (bytes, count));
                }
                // Only if the previous commit failed.
                Some(former) => {
                    former.0.iter_mut().zip(bytes).for_each(|(old, new)| *old |= new);
                    former.1 += count;
                }
            }
        }
    }

    /// Completes a commit: blocks freed in the transaction become available.
    pub(crate) fn wake_resting(&mut self) {
        let blocks: u64 = self.resting[1].values().map(|rest| u64::from(rest.1)).sum();
        self.resting_blocks -= blocks;
        self.resting[1].clear();
    }

    /// Adjusts the counts of a group by signed deltas.
    pub(super) fn count(&mut self, group: u32, blocks: i64, inodes: i64, folders: i64) {
        let Some(own) = self.groups.get_mut(group as usize) else { return };
        let add = |number: u32, change: i64| (i64::from(number) + change).clamp(0, u32::MAX.into()) as u32;
        let before = (own.free_blocks, own.free_inodes);
        own.free_blocks = add(own.free_blocks, blocks);
        own.free_inodes = add(own.free_inodes, inodes);
        own.folders = add(own.folders, folders);
        self.free_blocks = self.free_blocks + u64::from(own.free_blocks) - u64::from(before.0);
        self.free_inodes = self.free_inodes + u64::from(own.free_inodes) - u64::from(before.1);
        if !own.is_changed {
            own.is_changed = true;
            self.changed.push(group);
        }
    }

    /// Replaces counts that contradict the bitmaps.
    pub(super) fn correct(&mut self, group: u32, free_blocks: Option<u32>, free_inodes: Option<u32>) {
        let Some(own) = self.groups.get_mut(group as usize) else { return };
        if let Some(count) = free_blocks {
            self.free_blocks = self.free_blocks + u64::from(count) - u64::from(own.free_blocks);
            own.free_blocks = count;
        }
        if let Some(count) = free_inodes {
            self.free_inodes = self.free_inodes + u64::from(count) - u64::from(own.free_inodes);
            own.free_inodes = count;
        }
    }

    /// Takes the groups whose counts changed in this transaction.
    pub(crate) fn take_changed(&mut self) -> Vec<u32> {
        let changed = core::mem::take(&mut self.changed);
        for &group in &changed {
            if let Some(own) = self.groups.get_mut(group as usize) {
                own.is_changed = false;
            }
        }
        changed
    }

    /// Writes a group's counts into its descriptor.
    pub(crate) fn store(&self, group: u32, descriptor: &mut [u8]) {
        let Some(own) = self.get(group) else { return };
        // Bitmaps of one block bound them: 32,768 at most.
        write_u16(descriptor, field::FREE_BLOCKS, own.free_blocks as u16);
        write_u16(descriptor, field::FREE_INODES, own.free_inodes as u16);
        write_u16(descriptor, field::FOLDERS, own.folders as u16);
    }

    /// Returns whether a run of blocks overlaps its group's own metadata: bitmaps and inode table.
    pub(crate) fn is_own(&self, geometry: &Geometry, first: u32, count: u32) -> bool {
        let end = u64::from(first) + u64::from(count);
        let last = first + count.max(1) - 1;
        let groups = geometry.group_of(first)..=geometry.group_of(last.min(geometry.blocks - 1));
        groups.filter_map(|group| self.get(group)).any(|group| {
            let touches = |start: u32, blocks: u32| {
                u64::from(start) < end && u64::from(start) + u64::from(blocks) > u64::from(first)
            };
            let own = group.descriptor;
            touches(own.block_bitmap, 1)
                || touches(own.inode_bitmap, 1)
                || touches(own.inode_table, geometry.inode_table_blocks)
        })
    }
}
