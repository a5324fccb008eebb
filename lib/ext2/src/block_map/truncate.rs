//! Truncation: removes blocks from the end of a file, one change at a time.
//!
//! Each step removes what fits into one change. Blocks reached through a damaged table are dropped without being freed:
//! they leak until the volume is checked, but no block that may belong to another file is freed.

use alloc::vec::Vec;

use super::{BlockMap, Steps};
use crate::error::Error;
use crate::format::error::{FormatError, Structure};
use crate::format::inode::{DIRECT_BLOCKS, Inode};
use crate::format::{read_u32, write_u32};
use crate::inode::InodePlace;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum runs freed in one piece; each may lie in two groups.
const MAX_RUNS: usize = 16;
/// Maximum metadata blocks that one piece changes: bitmaps and descriptors, two tables, those of a table that is freed.
pub(crate) const TRUNCATE_BLOCKS: usize = MAX_RUNS * 4 + 6;

/// Outcome of a piece.
pub(crate) struct Piece {
    /// Whether no blocks remain to be freed.
    pub(crate) is_last: bool,
    /// Corruption that was found; the blocks behind it are not freed.
    pub(crate) damage: Option<Error>,
}

/// Location of a pointer to a table, and the number of blocks below it that are kept.
#[derive(Clone, Copy)]
struct Pointer {
    /// The table and the index in it; `None` for the inode's slot.
    holder: Option<(u32, usize)>,
    kept: u64,
}

/// The last table of a tree with blocks to free.
struct Tail {
    slot: usize,
    pointers: Vec<Pointer>,
    table: u32,
    what: Found,
}

enum Found {
    /// A leaf whose block numbers are freed from this index on, and its window.
    Leaf { from: usize, window: u64 },
    /// An empty table.
    Empty,
    /// An invalid block number in place of a table.
    Wild(Error),
}

/// A run of consecutive blocks in a table.
struct Stretch {
    place: usize,
    first: u32,
    count: u32,
}

impl<S: BlockSource> BlockMap<S> {
    /// Frees one piece of the blocks after the first `kept`, from the end.
    pub(crate) async fn truncate(&self, change: &Change<S>, place: &InodePlace, kept: u64) -> Result<Piece, Error> {
        let inode = self.inodes.get_any(place.number).await?;
        for depth in (1..=3).rev() {
            if inode.blocks[DIRECT_BLOCKS + depth - 1] == 0 {
                continue;
            }
            if let Some(tail) = self.tail(&inode, depth, kept).await? {
                let damage = self.cut_tail(change, place, tail).await?;
                return Ok(Piece { is_last: false, damage });
            }
        }
        let from = usize::try_from(kept).unwrap_or(usize::MAX).min(DIRECT_BLOCKS);
        let stretches = stretches(&inode.blocks[..DIRECT_BLOCKS], from);
        let mut damage = None;
        for stretch in stretches {
            let freed = self.free_stretch(change, &stretch, Structure::Inode(inode.number), inode.home_block).await?;
            self.inodes.change(change, place, |inode| {
                inode.blocks[stretch.place..][..stretch.count as usize].fill(0);
                let sectors = stretch.count.saturating_mul(self.store.geometry().block_sectors());
                inode.sectors = inode.sectors.saturating_sub(if freed.is_some() { 0 } else { sectors });
            })?;
            damage = damage.or(freed);
        }
        Ok(Piece { is_last: true, damage })
    }

    /// Finds the last table below a slot with blocks to free.
    async fn tail(&self, inode: &Inode, depth: usize, kept: u64) -> Result<Option<Tail>, Error> {
        let per_block = self.per_block();
        let base: u64 = DIRECT_BLOCKS as u64 + (1..depth as u32).map(|level| per_block.pow(level)).sum::<u64>();
        let slot = DIRECT_BLOCKS + depth - 1;
        let mut kept = kept.saturating_sub(base);
        if kept >= per_block.pow(depth as u32) {
            return Ok(None);
        }
        let mut logical = base;
        let mut table = inode.blocks[slot];
        let mut pointers = alloc::vec![Pointer { holder: None, kept }];
        let (mut structure, mut holder) = (Structure::Inode(inode.number), inode.home_block);
        for level in (0..depth as u32).rev() {
            if let Err(error) = self.check_block(table, 1, structure, holder) {
                return Ok(Some(Tail { slot, pointers, table, what: Found::Wild(error) }));
            }
            let unit = per_block.pow(level);
            let from = (kept / unit) as usize;
            let last = self.store.read_block(table, |bytes| {
                let mut numbers = bytes.chunks_exact(4).map(|number| read_u32(number, 0)).enumerate().skip(from).rev();
                numbers.find(|&(_, number)| number != 0)
            });
            let Some((index, number)) = last.await? else {
                return Ok((kept == 0).then_some(Tail { slot, pointers, table, what: Found::Empty }));
            };
            if level == 0 {
                let window = (logical - DIRECT_BLOCKS as u64) / per_block;
                return Ok(Some(Tail { slot, pointers, table, what: Found::Leaf { from, window } }));
            }
            kept = if index == from { kept % unit } else { 0 };
            logical += index as u64 * unit;
            pointers.push(Pointer { holder: Some((table, index)), kept });
            (structure, holder) = (Structure::IndirectBlock(inode.number), table.into());
            table = number;
        }
        Ok(None)
    }

    /// Frees the blocks of the last table, and the table if it is then empty. Returns corruption that was found.
    async fn cut_tail(&self, change: &Change<S>, place: &InodePlace, tail: Tail) -> Result<Option<Error>, Error> {
        for pointer in &tail.pointers {
            if let Some((table, _)) = pointer.holder {
                self.store.fetch_block(change, table).await?;
            }
        }
        let damage = match &tail.what {
            Found::Wild(error) => Some(*error),
            Found::Empty => return self.drop_table(change, place, &tail).await,
            &Found::Leaf { from, window } => {
                self.store.fetch_block(change, tail.table).await?;
                self.leaves.borrow_mut().remove((place.number, window));
                self.cut_leaf(change, place, tail.table, from).await?
            }
        };
        if damage.is_some() {
            // The outermost pointer below which no block is kept: the table may refer to itself.
            let wild = matches!(tail.what, Found::Wild(_)).then(|| tail.pointers.last()).flatten();
            let pointer = tail.pointers.iter().find(|pointer| pointer.kept == 0).or(wild);
            if let Some(pointer) = pointer {
                self.clear_pointer(change, place, tail.slot, pointer)?;
            }
            return Ok(damage);
        }
        let is_empty = self.store.change_block(change, tail.table, |bytes| bytes.iter().all(|&byte| byte == 0))?;
        let stays = tail.pointers.last().is_none_or(|pointer| pointer.kept != 0);
        if is_empty && !stays { self.drop_table(change, place, &tail).await } else { Ok(None) }
    }

    async fn cut_leaf(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        leaf: u32,
        from: usize,
    ) -> Result<Option<Error>, Error> {
        let numbers: Vec<u32> = self
            .store
            .read_block(leaf, |bytes| bytes.chunks_exact(4).map(|number| read_u32(number, 0)).collect())
            .await?;
        let mut damage = None;
        for stretch in stretches(&numbers, from) {
            let freed =
                self.free_stretch(change, &stretch, Structure::IndirectBlock(place.number), leaf.into()).await?;
            let count = stretch.count as usize;
            self.store.change_block(change, leaf, |bytes| bytes[stretch.place * 4..][..count * 4].fill(0))?;
            if freed.is_none() {
                let sectors = stretch.count.saturating_mul(self.store.geometry().block_sectors());
                self.inodes.change(change, place, |inode| inode.sectors = inode.sectors.saturating_sub(sectors))?;
            }
            damage = damage.or(freed);
        }
        Ok(damage)
    }

    /// Frees blocks. Returns the corruption that prevented it, if any.
    async fn free_stretch(
        &self,
        change: &Change<S>,
        stretch: &Stretch,
        structure: Structure,
        holder: u64,
    ) -> Result<Option<Error>, Error> {
        if let Err(error) = self.check_block(stretch.first, stretch.count.into(), structure, holder) {
            return Ok(Some(error));
        }
        match self.store.allocator().free_blocks(change, stretch.first, stretch.count).await {
            Ok(()) => Ok(None),
            Err(error @ Error::Format(FormatError::Corrupt(_))) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    async fn drop_table(&self, change: &Change<S>, place: &InodePlace, tail: &Tail) -> Result<Option<Error>, Error> {
        let Some(pointer) = tail.pointers.last() else { return Ok(None) };
        let stretch = Stretch { place: 0, first: tail.table, count: 1 };
        let damage = self.free_stretch(change, &stretch, Structure::IndirectBlock(place.number), tail.table.into());
        let damage = damage.await?;
        self.clear_pointer(change, place, tail.slot, pointer)?;
        if damage.is_none() {
            let sectors = self.store.geometry().block_sectors();
            self.inodes.change(change, place, |inode| inode.sectors = inode.sectors.saturating_sub(sectors))?;
        }
        Ok(damage)
    }

    fn clear_pointer(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        slot: usize,
        pointer: &Pointer,
    ) -> Result<(), Error> {
        match pointer.holder {
            Some((table, index)) => self.store.change_block(change, table, |bytes| write_u32(bytes, index * 4, 0)),
            None => self.inodes.change(change, place, |inode| inode.blocks[slot] = 0).map(|_| ()),
        }
    }

    /// Replaces a block of a file in the inode or the leaf; [`fetch_leaf`](BlockMap::fetch_leaf) added both to the
    /// change.
    pub(crate) fn exchange_block(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        leaf: Option<u32>,
        logical: u64,
        block: u32,
    ) -> Result<(), Error> {
        let Some(leaf) = leaf else {
            self.inodes.change(change, place, |inode| inode.blocks[logical as usize] = block)?;
            return Ok(());
        };
        let steps = Steps::new(logical, self.per_block());
        let index = steps.places().last().copied().unwrap_or(0);
        self.leaves.borrow_mut().remove((place.number, (logical - DIRECT_BLOCKS as u64) / self.per_block()));
        self.store.change_block(change, leaf, |bytes| write_u32(bytes, index * 4, block))
    }

    /// Adds the leaf table of a mapped block to the change; `None` for a direct block.
    pub(crate) async fn fetch_leaf(
        &self,
        change: &Change<S>,
        inode: &Inode,
        logical: u64,
    ) -> Result<Option<u32>, Error> {
        if logical < DIRECT_BLOCKS as u64 {
            return Ok(None);
        }
        let leaf = self.leaf(inode, logical).await?.block;
        self.store.fetch_block(change, leaf).await?;
        Ok(Some(leaf))
    }
}

/// The runs of a table from index `from` on, last first, at most [`MAX_RUNS`].
fn stretches(numbers: &[u32], from: usize) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (place, &number) in numbers.iter().enumerate().skip(from).rev() {
        if number == 0 {
            continue;
        }
        if let Some(last) = stretches.last_mut()
            && last.place == place + 1
            && last.first.checked_sub(1) == Some(number)
        {
            (last.place, last.first) = (place, number);
            last.count += 1;
        } else if stretches.len() == MAX_RUNS {
            break;
        } else {
            stretches.push(Stretch { place, first: number, count: 1 });
        }
    }
    stretches
}
