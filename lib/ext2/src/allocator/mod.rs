//! Allocation, freeing and accounting of blocks and inodes.
//!
//! A file's blocks are allocated in runs from a goal block; a file's inode near its directory, a directory's inode
//! where there is room for its future entries. Freed blocks *rest*, that is, are not reused, until the transaction
//! that freed them is committed: until then, the state after a crash still refers to them.

mod bits;
mod groups;

use alloc::vec::Vec;
use core::cell::RefCell;

use crate::error::Error;
use crate::format::error::{Problem, Structure};
use crate::format::group::{GroupDescriptor, View};
use crate::source::BlockSource;
use crate::store::{Change, Geometry, Store};
pub(crate) use groups::Groups;

/// Length of a run of free blocks beyond which no longer one is sought.
const GOOD_ROW: u32 = 64;
/// Groups searched for a good run before any run will do.
const GROUPS_FOR_A_ROW: u32 = 8;
/// Maximum groups whose descriptors are kept in memory.
const MAX_GROUPS: u32 = 1 << 20;

/// Allocates in the groups of a store, which writes their counts with each transaction.
pub(crate) struct Allocator<'a, S: BlockSource> {
    store: &'a Store<S>,
}

impl<'a, S: BlockSource> Allocator<'a, S> {
    pub(crate) fn new(store: &'a Store<S>) -> Allocator<'a, S> {
        Allocator { store }
    }

    /// Returns whether the volume has few enough groups to be written.
    pub(crate) fn has_few_groups(&self) -> bool {
        self.geometry().groups <= MAX_GROUPS
    }

    fn geometry(&self) -> &'a Geometry {
        self.store.geometry()
    }

    fn groups(&self) -> &'a RefCell<Groups> {
        self.store.groups()
    }

    /// Reads and validates all descriptors.
    pub(crate) async fn read_groups(&self) -> Result<Groups, Error> {
        let geometry = *self.geometry();
        let mut descriptors = Vec::new();
        for group in 0..geometry.groups {
            descriptors.push(self.descriptor(group).await?);
        }
        Ok(Groups::new(descriptors))
    }

    /// Reads a group's descriptor and validates that its block numbers lie in the volume.
    async fn descriptor(&self, group: u32) -> Result<GroupDescriptor, Error> {
        if let Some(known) = self.groups().borrow().get(group) {
            return Ok(known.descriptor);
        }
        let geometry = *self.geometry();
        let (block, start) = geometry.descriptor_place(group);
        let parse = |bytes: &[u8]| bytes.get(start..).and_then(View::new).map(|view| GroupDescriptor::parse(&view));
        let descriptor = self.store.read_block(block, parse).await?;
        let damaged = |problem| Error::corrupt(Structure::GroupDescriptor(group), block.into(), problem);
        let descriptor = descriptor.ok_or(damaged(Problem::Missing("its end")))?;
        let least = u64::from(geometry.first_data_block) + 1;
        let fields = [
            ("block_bitmap", descriptor.block_bitmap, 1),
            ("inode_bitmap", descriptor.inode_bitmap, 1),
            ("inode_table", descriptor.inode_table, geometry.inode_table_blocks),
        ];
        for (field, value, blocks) in fields {
            let most = u64::from(geometry.blocks).saturating_sub(blocks.into());
            if !(least..=most).contains(&value.into()) {
                return Err(damaged(Problem::OutOfRange { field, value: value.into(), least, most }));
            }
        }
        Ok(descriptor)
    }

    /// Returns the block of an inode, and its offset there in bytes.
    pub(crate) async fn inode_place(&self, number: u32) -> Result<(u32, usize), Error> {
        let geometry = *self.geometry();
        if number == 0 || number > geometry.inodes {
            let (value, most) = (number.into(), geometry.inodes.into());
            let problem = Problem::OutOfRange { field: "its number", value, least: 1, most };
            return Err(Error::corrupt(Structure::Inode(number), geometry.first_data_block.into(), problem));
        }
        let table = self.descriptor(self.geometry().group_of_inode(number)).await?.inode_table;
        let byte = u64::from((number - 1) % geometry.inodes_per_group) * u64::from(geometry.inode_bytes);
        let block_bytes = geometry.block_bytes as u64;
        // Both fit: the table lies in the volume, and the rest is smaller than a block.
        Ok(((u64::from(table) + byte / block_bytes) as u32, (byte % block_bytes) as usize))
    }

    /// Rejects a run of blocks that no file can own.
    pub(crate) fn check_owned(&self, first: u32, count: u32) -> Result<(), Error> {
        let geometry = self.geometry();
        let descriptors_end = geometry.first_data_block + geometry.descriptor_blocks;
        let is_own = !geometry.contains(first, count)
            || first <= descriptors_end
            || self.groups().borrow().is_own(geometry, first, count)
            || self.store.journal_has(first, count);
        if !is_own {
            return Ok(());
        }
        let group = geometry.group_of(first.min(geometry.blocks - 1));
        let problem = Problem::Meaningless { field: "a block that a file is said to have", value: first.into() };
        Err(Error::corrupt(Structure::BlockBitmap(group), first.into(), problem))
    }

    /// Allocates a run of free blocks in one group, as close behind the goal as possible, at most `most`; returns its
    /// first block and its length.
    pub(crate) async fn allocate_blocks(&self, change: &Change<S>, goal: u32, most: u32) -> Result<(u32, u32), Error> {
        self.allocate_beyond(change, goal, most, self.store.reserved_blocks()).await
    }

    /// As [`Allocator::allocate_blocks`], including the reserved blocks.
    pub(crate) async fn allocate_any_blocks(
        &self,
        change: &Change<S>,
        goal: u32,
        most: u32,
    ) -> Result<(u32, u32), Error> {
        self.allocate_beyond(change, goal, most, 0).await
    }

    async fn allocate_beyond(
        &self,
        change: &Change<S>,
        goal: u32,
        most: u32,
        reserve: u32,
    ) -> Result<(u32, u32), Error> {
        loop {
            let available = self.groups().borrow().available(reserve);
            let most = u64::from(most.max(1)).min(available) as u32;
            if most == 0 {
                return Err(Error::NoSpace);
            }
            let (group, first, count) = self.find_blocks(goal, most).await?.ok_or(Error::NoSpace)?;
            if self.take_blocks(change, group, first, count).await? {
                return Ok((self.geometry().group_first(group) + first as u32, count as u32));
            }
        }
    }

    /// Finds a free run; returns the group, the first block in it, and the length.
    async fn find_blocks(&self, goal: u32, most: u32) -> Result<Option<(u32, usize, usize)>, Error> {
        let geometry = *self.geometry();
        let goal = goal.clamp(geometry.first_data_block, geometry.blocks - 1);
        let (goal_group, goal_bit) = (geometry.group_of(goal), goal - geometry.group_first(geometry.group_of(goal)));
        let wanted = most.min(GOOD_ROW);
        let mut best: Option<(u32, usize, usize)> = None;
        for step in 0..geometry.groups {
            let group = (goal_group + step) % geometry.groups;
            if self.groups().borrow().available_in(group) == 0 {
                continue;
            }
            let start = if step == 0 { goal_bit as usize } else { 0 };
            let found = self.find_in_group(group, start, wanted as usize, most as usize).await?;
            let Some((first, count)) = found else { continue };
            if best.is_none_or(|best| best.2 < count) {
                best = Some((group, first, count));
            }
            // A run right at the goal extends the preceding one.
            if count >= wanted as usize || (step == 0 && first == start) || step >= GROUPS_FOR_A_ROW {
                break;
            }
        }
        Ok(best)
    }

    async fn find_in_group(
        &self,
        group: u32,
        start: usize,
        wanted: usize,
        most: usize,
    ) -> Result<Option<(usize, usize)>, Error> {
        self.check_block_bitmap(group).await?;
        let bits = self.geometry().group_blocks(group) as usize;
        let block = self.descriptor(group).await?.block_bitmap;
        self.store
            .read_block(block, |bitmap| {
                let groups = self.groups().borrow();
                let used = groups.used(group, bitmap, bits);
                let at_goal = used.run_at(start, most);
                if at_goal > 0 {
                    return Some((start, at_goal));
                }
                match used.find(start, bits, wanted, most) {
                    Some(found) if found.1 >= wanted => Some(found),
                    behind => {
                        let before = used.find(0, start, wanted, most);
                        behind.into_iter().chain(before).max_by_key(|found| found.1)
                    }
                }
            })
            .await
    }

    /// Marks blocks as used, unless another task has taken them.
    async fn take_blocks(&self, change: &Change<S>, group: u32, first: usize, count: usize) -> Result<bool, Error> {
        let bits = self.geometry().group_blocks(group) as usize;
        let block = self.descriptor(group).await?.block_bitmap;
        self.store.edit(change, self.geometry().descriptor_place(group).0, |_| ()).await?;
        let take = |bitmap: &mut [u8]| {
            let mut groups = self.groups().borrow_mut();
            let is_free = groups.used(group, bitmap, bits).run_at(first, count) == count;
            if is_free {
                bits::set(bitmap, first, count, true);
                groups.count(group, -(count as i64), 0, 0);
            }
            is_free
        };
        self.store.edit(change, block, take).await
    }

    /// Frees blocks. They rest until this transaction is committed; cached content is dropped.
    pub(crate) async fn free_blocks(&self, change: &Change<S>, first: u32, count: u32) -> Result<(), Error> {
        self.check_owned(first, count)?;
        self.release_blocks(change, first, count).await
    }

    /// Frees blocks without checking that a file can own them.
    pub(crate) async fn release_blocks(&self, change: &Change<S>, first: u32, count: u32) -> Result<(), Error> {
        let geometry = *self.geometry();
        let mut block = first;
        let mut left = count;
        while left > 0 {
            let group = geometry.group_of(block);
            let bit = block - geometry.group_first(group);
            let here = left.min(geometry.group_blocks(group) - bit);
            self.free_in_group(change, group, bit as usize, here as usize).await?;
            self.store.forget_blocks(block, here);
            (block, left) = (block + here, left - here);
        }
        Ok(())
    }

    async fn free_in_group(&self, change: &Change<S>, group: u32, first: usize, count: usize) -> Result<(), Error> {
        self.check_block_bitmap(group).await?;
        let block = self.descriptor(group).await?.block_bitmap;
        self.store.edit(change, self.geometry().descriptor_place(group).0, |_| ()).await?;
        let free = |bitmap: &mut [u8]| {
            let is_used = bits::all(bitmap, first, count, true);
            if is_used {
                bits::set(bitmap, first, count, false);
                let mut groups = self.groups().borrow_mut();
                groups.rest(group, first, count, bitmap.len());
                groups.count(group, count as i64, 0, 0);
            }
            is_used
        };
        if self.store.edit(change, block, free).await? {
            return Ok(());
        }
        let value = u64::from(self.geometry().group_first(group)) + first as u64;
        let problem = Problem::Meaningless { field: "a block that is freed but was free", value };
        Err(Error::corrupt(Structure::BlockBitmap(group), block.into(), problem))
    }

    /// Validates a block bitmap before its first use: it must not mark the group's own metadata as free; where the
    /// descriptor's count differs, the bitmap is right.
    async fn check_block_bitmap(&self, group: u32) -> Result<(), Error> {
        if self.groups().borrow().get(group).is_none_or(|group| group.blocks_checked) {
            return Ok(());
        }
        let geometry = *self.geometry();
        let descriptor = self.descriptor(group).await?;
        let (first, bits) = (geometry.group_first(group), geometry.group_blocks(group));
        let is_marked = |bitmap: &[u8], start: u32, count: u32| {
            // Part of the run in this group.
            let from = start.clamp(first, first + bits);
            let to = start.saturating_add(count).clamp(first, first + bits);
            bits::all(bitmap, (from - first) as usize, (to - from) as usize, true)
        };
        let look = |bitmap: &[u8]| {
            let is_sound = is_marked(bitmap, descriptor.block_bitmap, 1)
                && is_marked(bitmap, descriptor.inode_bitmap, 1)
                && is_marked(bitmap, descriptor.inode_table, geometry.inode_table_blocks)
                && (group > 0 || is_marked(bitmap, geometry.first_data_block, 1 + geometry.descriptor_blocks));
            is_sound.then(|| bits::count_clear(bitmap, bits as usize))
        };
        let free = self.store.read_block(descriptor.block_bitmap, look).await?;
        let free = free.ok_or_else(|| {
            let problem = Problem::Missing("the mark of the group's own blocks");
            Error::corrupt(Structure::BlockBitmap(group), descriptor.block_bitmap.into(), problem)
        })?;
        let mut groups = self.groups().borrow_mut();
        if groups.get(group).is_some_and(|group| !group.blocks_checked) {
            groups.correct(group, Some(free), None);
            if let Some(own) = groups.get_mut(group) {
                own.blocks_checked = true;
            }
        }
        Ok(())
    }

    /// Allocates an inode for a new node in this folder. Its old content on disk is meaningless.
    pub(crate) async fn allocate_inode(&self, change: &Change<S>, parent: u32, directory: bool) -> Result<u32, Error> {
        let geometry = *self.geometry();
        let start = if directory { self.group_for_folder(parent) } else { self.geometry().group_of_inode(parent) };
        for step in 0..geometry.groups {
            let group = (start + step) % geometry.groups;
            if self.groups().borrow().get(group).is_none_or(|group| group.free_inodes == 0) {
                continue;
            }
            if let Some(index) = self.take_inode(change, group, directory).await? {
                return Ok(group * geometry.inodes_per_group + index + 1);
            }
        }
        Err(Error::NoInodes)
    }

    /// Returns the group for a new folder: in the root, the group with most room; others stay near their parent while
    /// its group has more room than most.
    fn group_for_folder(&self, parent: u32) -> u32 {
        let groups = self.groups().borrow();
        let all = groups.all();
        let own = self.geometry().group_of_inode(parent);
        let count = all.len().max(1) as u64;
        let sum = |of: fn(&groups::Group) -> u32| all.iter().map(|group| u64::from(of(group))).sum::<u64>();
        let (inodes, blocks) = (sum(|group| group.free_inodes) / count, sum(|group| group.free_blocks) / count);
        let has_room = |group: &&groups::Group| {
            group.free_inodes > 0 && u64::from(group.free_inodes) >= inodes && u64::from(group.free_blocks) >= blocks
        };
        // A folder below another may have somewhat less.
        let is_good_enough = |group: &groups::Group| {
            group.free_inodes > 0
                && u64::from(group.free_inodes) * 4 >= inodes * 3
                && u64::from(group.free_blocks) * 4 >= blocks * 3
        };
        if parent != crate::ROOT_INODE && groups.get(own).is_some_and(is_good_enough) {
            return own;
        }
        let candidates = all.iter().enumerate().filter(|(_, group)| has_room(group));
        candidates.min_by_key(|(_, group)| group.folders).map_or(own, |(index, _)| index as u32)
    }

    /// Allocates the first free inode of a group; returns its index there.
    async fn take_inode(&self, change: &Change<S>, group: u32, directory: bool) -> Result<Option<u32>, Error> {
        let geometry = *self.geometry();
        self.check_inode_bitmap(group).await?;
        let block = self.descriptor(group).await?.inode_bitmap;
        self.store.edit(change, geometry.descriptor_place(group).0, |_| ()).await?;
        let bits = geometry.group_inodes(group) as usize;
        let reserved = if group == 0 { geometry.first_inode - 1 } else { 0 };
        let take = |bitmap: &mut [u8]| {
            let mut groups = self.groups().borrow_mut();
            let hint = groups.get(group).map_or(0, |group| group.first_free_inode).max(reserved) as usize;
            let found = bits::Used { bitmap, resting: [None, None], bits }.find(hint, bits, 1, 1);
            if let Some((index, _)) = found {
                bits::set(bitmap, index, 1, true);
                groups.count(group, 0, -1, i64::from(directory));
            }
            if let Some(own) = groups.get_mut(group) {
                own.first_free_inode = found.map_or(bits, |found| found.0 + 1) as u32;
            }
            found.map(|found| found.0 as u32)
        };
        self.store.edit(change, block, take).await
    }

    async fn check_inode_bitmap(&self, group: u32) -> Result<(), Error> {
        if self.groups().borrow().get(group).is_none_or(|group| group.inodes_checked) {
            return Ok(());
        }
        let geometry = *self.geometry();
        let block = self.descriptor(group).await?.inode_bitmap;
        let bits = geometry.group_inodes(group) as usize;
        let reserved = if group == 0 { (geometry.first_inode - 1).min(geometry.inodes) as usize } else { 0 };
        let look =
            |bitmap: &[u8]| bits::all(bitmap, 0, reserved.min(bits), true).then(|| bits::count_clear(bitmap, bits));
        let free = self.store.read_block(block, look).await?.ok_or_else(|| {
            let problem = Problem::Missing("the mark of the reserved inodes");
            Error::corrupt(Structure::InodeBitmap(group), block.into(), problem)
        })?;
        let mut groups = self.groups().borrow_mut();
        if groups.get(group).is_some_and(|group| !group.inodes_checked) {
            groups.correct(group, None, Some(free));
            if let Some(own) = groups.get_mut(group) {
                own.inodes_checked = true;
            }
        }
        Ok(())
    }

    /// Frees an inode.
    pub(crate) async fn free_inode(&self, change: &Change<S>, number: u32, directory: bool) -> Result<(), Error> {
        let geometry = *self.geometry();
        let group = self.geometry().group_of_inode(number);
        let damaged = |block: u32, field| {
            let problem = Problem::Meaningless { field, value: number.into() };
            Error::corrupt(Structure::InodeBitmap(group), block.into(), problem)
        };
        if number < geometry.first_inode || number > geometry.inodes {
            return Err(damaged(geometry.first_data_block, "an inode that is freed but reserved"));
        }
        self.check_inode_bitmap(group).await?;
        let block = self.descriptor(group).await?.inode_bitmap;
        self.store.edit(change, geometry.descriptor_place(group).0, |_| ()).await?;
        let index = (number - 1) % geometry.inodes_per_group;
        let free = |bitmap: &mut [u8]| {
            let is_used = bits::all(bitmap, index as usize, 1, true);
            if is_used {
                bits::set(bitmap, index as usize, 1, false);
                let mut groups = self.groups().borrow_mut();
                groups.count(group, 0, 1, -i64::from(directory));
                if let Some(own) = groups.get_mut(group) {
                    own.first_free_inode = own.first_free_inode.min(index);
                }
            }
            is_used
        };
        if self.store.edit(change, block, free).await? {
            Ok(())
        } else {
            Err(damaged(block, "an inode that is freed but was free"))
        }
    }
}
