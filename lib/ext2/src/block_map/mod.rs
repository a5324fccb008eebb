//! Maps file blocks to volume blocks.
//!
//! The inode holds the first twelve block numbers; leaf tables, reached through single, double and triple indirect
//! blocks, hold the others. The walk is at most three levels deep, so that a table that refers to itself yields wrong
//! data at worst, never an endless loop. The blocks of one leaf table are a *window* of the file. [`grow`] allocates
//! blocks in holes, [`truncate`] frees them.

pub(crate) mod grow;
pub(crate) mod truncate;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::cache::{Cache, CacheCounts};
use crate::error::Error;
use crate::format::error::{Problem, Structure};
use crate::format::inode::{DIRECT_BLOCKS, Inode, Kind};
use crate::format::read_u32;
use crate::inode::InodeTable;
use crate::source::BlockSource;
use crate::store::Store;

/// Consecutive blocks of a file that are consecutive on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Unmapped blocks, which read as zeros.
    Hole { blocks: u64 },
    /// Blocks that were checked to lie in the volume.
    Blocks { first: u32, blocks: u64 },
}

impl Run {
    pub(crate) fn blocks(self) -> u64 {
        match self {
            Run::Hole { blocks } | Run::Blocks { blocks, .. } => blocks,
        }
    }
}

/// A leaf table and its block; an absent one has block 0 and is a hole of a whole window.
#[derive(Clone)]
pub(crate) struct Leaf {
    block: u32,
    numbers: Rc<RefCell<Vec<u32>>>,
}

/// Bytes charged for a cached leaf besides its numbers.
const LEAF_COST: usize = size_of::<Leaf>() + size_of::<RefCell<Vec<u32>>>() + 64;

/// The path from an inode to a block number: the inode's slot, and the index in each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) slot: usize,
    places: [usize; 3],
    depth: usize,
}

impl Steps {
    /// The path to a block after the direct ones.
    fn new(logical: u64, per_block: u64) -> Steps {
        let beyond = logical.saturating_sub(DIRECT_BLOCKS as u64);
        let (window, within) = (beyond / per_block, (beyond % per_block) as usize);
        // Each index is smaller than a table, except for sizes beyond the maximum, which no table covers.
        if window == 0 {
            Steps { slot: DIRECT_BLOCKS, places: [within, 0, 0], depth: 1 }
        } else if window <= per_block {
            Steps { slot: DIRECT_BLOCKS + 1, places: [(window - 1) as usize, within, 0], depth: 2 }
        } else {
            let index = window - 1 - per_block;
            let places = [(index / per_block) as usize, (index % per_block) as usize, within];
            Steps { slot: DIRECT_BLOCKS + 2, places, depth: 3 }
        }
    }

    /// The indices in the tables, outermost first; the last is in the leaf.
    pub(crate) fn places(&self) -> &[usize] {
        &self.places[..self.depth]
    }
}

fn at_least_one(blocks: u64) -> usize {
    usize::try_from(blocks).unwrap_or(usize::MAX).max(1)
}

/// Owns the cache of leaf tables, and maps and allocates the blocks of inodes.
pub(crate) struct BlockMap<S: BlockSource> {
    store: Store<S>,
    inodes: Rc<InodeTable<S>>,
    /// By inode and window.
    leaves: RefCell<Cache<(u32, u64), Leaf>>,
}

impl<S: BlockSource> BlockMap<S> {
    /// `cache_bytes` is the capacity of the cache.
    pub(crate) fn new(store: Store<S>, inodes: Rc<InodeTable<S>>, cache_bytes: usize) -> BlockMap<S> {
        BlockMap { store, inodes, leaves: RefCell::new(Cache::new(cache_bytes)) }
    }

    /// Counters of the cache.
    pub(crate) fn cache_counts(&self) -> CacheCounts {
        self.leaves.borrow().counts()
    }

    /// Returns whether a symbolic link's target is stored in its inode.
    pub(crate) fn is_fast_symlink(&self, link: &Inode) -> bool {
        let attribute_sectors = if link.attribute_block == 0 { 0 } else { self.store.geometry().block_sectors() };
        link.sectors <= attribute_sectors
    }

    /// Returns whether an inode's block numbers refer to blocks.
    pub(crate) fn has_blocks(&self, inode: &Inode) -> bool {
        match inode.kind {
            Kind::File | Kind::Directory => true,
            Kind::SymbolicLink => !self.is_fast_symlink(inode),
            Kind::CharacterDevice | Kind::BlockDevice | Kind::Fifo | Kind::Socket => false,
        }
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.store.geometry().block_bytes as u64
    }

    fn per_block(&self) -> u64 {
        self.store.geometry().numbers_per_block().into()
    }

    /// The run of at most `most` blocks at `logical`. It does not cross the end of a table.
    pub(crate) async fn run(&self, inode: &Inode, logical: u64, most: u64) -> Result<Run, Error> {
        match self.cached_run(inode, logical, most) {
            Some(run) => run,
            None => {
                let leaf = self.load_leaf(inode, logical, self.window(logical)).await?;
                self.run_in(&leaf, inode, logical, most)
            }
        }
    }

    /// As [`BlockMap::run`], if no table has to be read; `None` otherwise.
    pub(crate) fn cached_run(&self, inode: &Inode, logical: u64, most: u64) -> Option<Result<Run, Error>> {
        if logical < DIRECT_BLOCKS as u64 {
            let numbers = &inode.blocks[logical as usize..DIRECT_BLOCKS];
            let numbers = &numbers[..at_least_one(most).min(numbers.len())];
            return Some(self.run_of(numbers, Structure::Inode(inode.number), inode.home_block));
        }
        let leaf = self.leaves.borrow_mut().get((inode.number, self.window(logical)))?;
        Some(self.run_in(&leaf, inode, logical, most))
    }

    /// The window of a block that is not direct.
    fn window(&self, logical: u64) -> u64 {
        (logical - DIRECT_BLOCKS as u64) / self.per_block()
    }

    fn run_in(&self, leaf: &Leaf, inode: &Inode, logical: u64, most: u64) -> Result<Run, Error> {
        let most = at_least_one(most);
        // Smaller than a table's 1024 numbers.
        let within = ((logical - DIRECT_BLOCKS as u64) % self.per_block()) as usize;
        if leaf.block == 0 {
            return Ok(Run::Hole { blocks: (self.per_block() - within as u64).min(most as u64) });
        }
        let numbers = leaf.numbers.borrow();
        let rest = numbers.get(within..).unwrap_or(&[]);
        self.run_of(&rest[..most.min(rest.len())], Structure::IndirectBlock(inode.number), leaf.block.into())
    }

    /// The leaf table of a block that is not direct.
    async fn leaf(&self, inode: &Inode, logical: u64) -> Result<Leaf, Error> {
        let window = self.window(logical);
        let cached = self.leaves.borrow_mut().get((inode.number, window));
        match cached {
            Some(leaf) => Ok(leaf),
            None => self.load_leaf(inode, logical, window).await,
        }
    }

    async fn load_leaf(&self, inode: &Inode, logical: u64, window: u64) -> Result<Leaf, Error> {
        let steps = Steps::new(logical, self.per_block());
        let tables = self.tables(inode, &steps).await?;
        let mut leaf = Leaf { block: 0, numbers: Rc::default() };
        if let Some(&block) = tables.get(steps.depth - 1) {
            let numbers = self.store.read_block(block, |bytes| {
                bytes.chunks_exact(4).map(|number| read_u32(number, 0)).collect::<Vec<u32>>()
            });
            leaf = Leaf { block, numbers: Rc::new(RefCell::new(numbers.await?)) };
        }
        self.remember_leaf(inode.number, window, &leaf);
        Ok(leaf)
    }

    fn remember_leaf(&self, number: u32, window: u64, leaf: &Leaf) {
        let cost = LEAF_COST + leaf.numbers.borrow().len() * size_of::<u32>();
        self.leaves.borrow_mut().insert((number, window), leaf.clone(), cost);
    }

    /// The existing tables on the path, outermost first.
    async fn tables(&self, inode: &Inode, steps: &Steps) -> Result<Vec<u32>, Error> {
        let mut tables = Vec::with_capacity(steps.depth);
        let (mut structure, mut holder) = (Structure::Inode(inode.number), inode.home_block);
        let mut table = inode.blocks[steps.slot];
        for (level, &place) in steps.places().iter().enumerate() {
            if table == 0 {
                break;
            }
            self.check_block(table, 1, structure, holder)?;
            tables.push(table);
            if level + 1 == steps.depth {
                break;
            }
            (structure, holder) = (Structure::IndirectBlock(inode.number), table.into());
            table = self.number_in(table, place).await?;
        }
        Ok(tables)
    }

    /// The block number at an index of a table, or 0 beyond its end.
    async fn number_in(&self, table: u32, place: usize) -> Result<u32, Error> {
        self.store
            .read_block(table, |bytes| bytes.get(place * 4..place * 4 + 4).map_or(0, |number| read_u32(number, 0)))
            .await
    }

    /// The run at the start of a slice of block numbers, which is not empty.
    fn run_of(&self, numbers: &[u32], structure: Structure, holder: u64) -> Result<Run, Error> {
        let first = numbers.first().copied().unwrap_or(0);
        if first == 0 {
            let blocks = numbers.iter().take_while(|&&number| number == 0).count().max(1);
            return Ok(Run::Hole { blocks: blocks as u64 });
        }
        let expected = (u64::from(first)..).zip(numbers);
        let blocks = expected.take_while(|&(expected, &number)| u64::from(number) == expected).count() as u64;
        self.check_block(first, blocks, structure, holder)?;
        Ok(Run::Blocks { first, blocks })
    }

    fn check_block(&self, first: u32, blocks: u64, structure: Structure, holder: u64) -> Result<(), Error> {
        let geometry = self.store.geometry();
        let least = u64::from(geometry.first_data_block) + 1;
        let most = u64::from(geometry.blocks) - 1;
        let last = u64::from(first) + blocks - 1;
        if u64::from(first) >= least && last <= most {
            return Ok(());
        }
        let value = if u64::from(first) < least { first.into() } else { last };
        let problem = Problem::OutOfRange { field: "a block number", value, least, most };
        Err(Error::corrupt(structure, holder, problem))
    }
}
