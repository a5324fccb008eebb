//! Allocation of blocks in holes and past the end of a file.
//!
//! Two steps: [`grow`](BlockMap::grow) allocates the blocks and fetches every table that will change, and can fail;
//! [`install`](BlockMap::install) writes the block numbers, and cannot. In between the caller fills the blocks or
//! frees them.

use alloc::vec::Vec;

use super::{BlockMap, Leaf, Run, Steps};
use crate::error::Error;
use crate::format::inode::{DIRECT_BLOCKS, Inode};
use crate::format::write_u32;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum runs of one growth, which bounds the groups that it touches.
const MAX_RUNS: usize = 8;
/// Maximum metadata blocks that one growth changes: bitmap and descriptor of each run, new tables, the leaf and the
/// table above it.
pub(crate) const GROW_BLOCKS: usize = MAX_RUNS * 2 + 5;

/// Blocks allocated for a file but not yet mapped.
pub(crate) struct Growth {
    logical: u64,
    /// First block and length of each run.
    pub(crate) runs: Vec<(u32, u32)>,
    /// The path through the tables; `None` for the direct blocks.
    steps: Option<Steps>,
    /// Existing tables on the path, outermost first.
    existing: Vec<u32>,
    /// New tables on the path.
    tables: Vec<u32>,
}

impl Growth {
    pub(crate) fn blocks(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.1)).sum()
    }

    /// The block numbers in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|&(first, count)| first..first + count)
    }

    /// Updates the inode's block count and slots. `sectors` is the number of sectors of a block.
    pub(crate) fn note(&self, inode: &mut Inode, sectors: u32) {
        let blocks = self.blocks() as u32 + self.tables.len() as u32;
        inode.sectors = inode.sectors.saturating_add(blocks.saturating_mul(sectors));
        match self.steps {
            None => {
                let places = inode.blocks[..DIRECT_BLOCKS].iter_mut().skip(self.logical as usize);
                places.zip(self.numbers()).for_each(|(place, number)| *place = number);
            }
            Some(steps) if self.existing.is_empty() => inode.blocks[steps.slot] = self.tables[0],
            Some(_) => {}
        }
    }
}

impl<S: BlockSource> BlockMap<S> {
    /// Allocates blocks for the hole at `logical`: at least one, at most `most`, and none beyond the window.
    pub(crate) async fn grow(
        &self,
        change: &Change<S>,
        inode: &Inode,
        logical: u64,
        most: u64,
    ) -> Result<Growth, Error> {
        let mut growth = Growth { logical, runs: Vec::new(), steps: None, existing: Vec::new(), tables: Vec::new() };
        let mut missing = 0;
        let window_rest = if logical < DIRECT_BLOCKS as u64 {
            DIRECT_BLOCKS as u64 - logical
        } else {
            let steps = Steps::new(logical, self.per_block());
            if steps.places().iter().any(|&place| place as u64 >= self.per_block()) {
                return Err(Error::TooLarge);
            }
            growth.existing = self.tables(inode, &steps).await?;
            missing = steps.places().len() - growth.existing.len();
            growth.steps = Some(steps);
            self.per_block() - (logical - DIRECT_BLOCKS as u64) % self.per_block()
        };
        if let Some(&table) = growth.existing.last() {
            self.store.fetch_block(change, table).await?;
        }
        let goal = self.goal(inode, logical).await;
        let most = most.min(window_rest);
        match self.take_blocks(change, goal, missing, most, &mut growth).await {
            Ok(()) => Ok(growth),
            Err(error) => {
                self.give_back(change, &growth).await;
                Err(error)
            }
        }
    }

    async fn take_blocks(
        &self,
        change: &Change<S>,
        mut goal: u32,
        missing: usize,
        most: u64,
        growth: &mut Growth,
    ) -> Result<(), Error> {
        for _ in 0..MAX_RUNS {
            let tables_left = missing - growth.tables.len();
            // At most a table's numbers and three tables.
            let left = (most - growth.blocks()) as u32 + tables_left as u32;
            if left == 0 {
                break;
            }
            let (first, count) = match self.store.allocator().allocate_blocks(change, goal, left).await {
                Ok(run) => run,
                // Short growth.
                Err(Error::NoSpace) if !growth.runs.is_empty() => break,
                Err(error) => return Err(error),
            };
            goal = first + count;
            let for_tables = (tables_left as u32).min(count);
            growth.tables.extend(first..first + for_tables);
            if count > for_tables {
                growth.runs.push((first + for_tables, count - for_tables));
            }
        }
        if growth.runs.is_empty() { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Frees the blocks of a growth that is not installed. Blocks that cannot be freed leak until the next check.
    pub(crate) async fn give_back(&self, change: &Change<S>, growth: &Growth) {
        for &(first, count) in &growth.runs {
            let _ = self.store.allocator().free_blocks(change, first, count).await;
        }
        for &table in &growth.tables {
            let _ = self.store.allocator().free_blocks(change, table, 1).await;
        }
    }

    /// Writes the tables. [`Growth::note`] updates the inode, in the same change.
    pub(crate) fn install(&self, change: &Change<S>, inode: u32, growth: &Growth) -> Result<(), Error> {
        let Some(steps) = growth.steps else { return Ok(()) };
        let places = steps.places();
        let leaf_place = places.last().copied().unwrap_or(0);
        let fill = |bytes: &mut [u8]| {
            for (place, number) in (leaf_place..).zip(growth.numbers()) {
                write_u32(bytes, place * 4, number);
            }
        };
        for (index, &table) in growth.tables.iter().enumerate() {
            let place = places[growth.existing.len() + index];
            match growth.tables.get(index + 1) {
                Some(&below) => self.store.create(change, table, |bytes| write_u32(bytes, place * 4, below))?,
                None => self.store.create(change, table, fill)?,
            }
        }
        match (growth.existing.last(), growth.tables.first()) {
            (Some(&leaf), None) => self.store.change_block(change, leaf, fill)?,
            (Some(&above), Some(&table)) => {
                let place = places[growth.existing.len() - 1];
                self.store.change_block(change, above, |bytes| write_u32(bytes, place * 4, table))?;
            }
            (None, _) => {}
        }
        self.note_leaf(inode, growth, leaf_place);
        Ok(())
    }

    /// Updates the cached leaf.
    fn note_leaf(&self, inode: u32, growth: &Growth, leaf_place: usize) {
        let window = (growth.logical - DIRECT_BLOCKS as u64) / self.per_block();
        let leaf = match growth.tables.last() {
            Some(&block) => {
                let numbers = alloc::vec![0; self.store.geometry().numbers_per_block() as usize];
                let leaf = Leaf { block, numbers: alloc::rc::Rc::new(numbers.into()) };
                self.remember_leaf(inode, window, &leaf);
                leaf
            }
            None => match self.leaves.borrow_mut().get((inode, window)) {
                Some(leaf) => leaf,
                None => return,
            },
        };
        let mut numbers = leaf.numbers.borrow_mut();
        numbers.iter_mut().skip(leaf_place).zip(growth.numbers()).for_each(|(place, number)| *place = number);
    }

    /// The allocation goal of a block: after the preceding block, else in the inode's group.
    async fn goal(&self, inode: &Inode, logical: u64) -> u32 {
        if let Some(before) = logical.checked_sub(1)
            && let Ok(Run::Blocks { first, .. }) = self.run(inode, before, 1).await
        {
            return first.saturating_add(1);
        }
        if logical >= DIRECT_BLOCKS as u64 {
            let last = inode.blocks[..DIRECT_BLOCKS].iter().rev().find(|&&number| number != 0);
            if let Some(&last) = last {
                return last.saturating_add(1);
            }
        }
        self.store.geometry().inode_goal(inode.number)
    }
}
