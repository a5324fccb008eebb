//! From a block of a file to a block of the volume.
//!
//! The first twelve numbers stand in the inode; the others in leaf tables, which single, double and
//! triple indirect blocks lead to. The walk is at most three deep whatever the numbers say, so that
//! a table that names itself leads to wrong data at worst, never round in a circle.

use alloc::rc::Rc;

use crate::error::{Error, Problem, Structure};
use crate::source::BlockSource;
use crate::volume::Volume;
use crate::wire::inode::{DIRECT_BLOCKS, Inode};
use crate::wire::read_u32;

/// Consecutive blocks of a file that are one piece of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Blocks that were never written and read as zeros.
    Hole { blocks: u64 },
    /// Blocks of the volume, checked to lie in it.
    Blocks { first: u32, blocks: u64 },
}

impl Run {
    pub(crate) fn blocks(self) -> u64 {
        match self {
            Run::Hole { blocks } | Run::Blocks { blocks, .. } => blocks,
        }
    }
}

/// A leaf table and the block that it was read from; an absent one is a hole as long as a table.
#[derive(Clone)]
pub(crate) struct Leaf {
    block: u64,
    numbers: Option<Rc<[u32]>>,
}

/// Bytes that a cached leaf counts for besides its numbers.
const LEAF_COST: usize = size_of::<Leaf>() + 64;

impl<S: BlockSource> Volume<S> {
    /// The run that begins with this block of a file. It ends where the table does at the latest.
    pub(crate) async fn run(&self, inode: &Inode, logical: u64) -> Result<Run, Error> {
        if logical < DIRECT_BLOCKS as u64 {
            let numbers = &inode.blocks[logical as usize..DIRECT_BLOCKS];
            return self.run_of(numbers, Structure::Inode(inode.number), inode.home_block);
        }
        let per_block = u64::from(self.superblock().numbers_per_block());
        let beyond_direct = logical - DIRECT_BLOCKS as u64;
        // Smaller than a table's 1024 numbers.
        let (window, within) = (beyond_direct / per_block, (beyond_direct % per_block) as usize);
        let cached = self.numbers.borrow_mut().get((inode.number, window));
        let leaf = match cached {
            Some(leaf) => leaf,
            None => self.load_leaf(inode, window).await?,
        };
        match leaf.numbers {
            None => Ok(Run::Hole { blocks: per_block - within as u64 }),
            Some(numbers) => {
                let rest = numbers.get(within..).unwrap_or(&[]);
                self.run_of(rest, Structure::IndirectBlock(inode.number), leaf.block)
            }
        }
    }

    /// Walks to the leaf table with this index among those of the inode.
    async fn load_leaf(&self, inode: &Inode, window: u64) -> Result<Leaf, Error> {
        let per_block = u64::from(self.superblock().numbers_per_block());
        let (slot, steps) = match window {
            0 => (DIRECT_BLOCKS, [None, None]),
            _ if window <= per_block => (DIRECT_BLOCKS + 1, [Some(window - 1), None]),
            _ => {
                let index = window - 1 - per_block;
                (DIRECT_BLOCKS + 2, [Some(index / per_block), Some(index % per_block)])
            }
        };
        let mut structure = Structure::Inode(inode.number);
        let mut holder = inode.home_block;
        let mut table = inode.blocks[slot];
        for step in steps.into_iter().flatten() {
            if table == 0 {
                break;
            }
            self.check_block(table, 1, structure, holder)?;
            let bytes = self.block(table).await?;
            (structure, holder) = (Structure::IndirectBlock(inode.number), table.into());
            // An inode's size was checked to be one that three levels reach, so the step is in the table.
            let number = usize::try_from(step * 4).ok().and_then(|offset| bytes.get(offset..offset + 4));
            table = number.map_or(0, |number| read_u32(number, 0));
        }
        let mut leaf = Leaf { block: table.into(), numbers: None };
        let mut cost = LEAF_COST;
        if table != 0 {
            self.check_block(table, 1, structure, holder)?;
            let bytes = self.block(table).await?;
            cost += bytes.len();
            leaf.numbers = Some(bytes.chunks_exact(4).map(|number| read_u32(number, 0)).collect());
        }
        self.numbers.borrow_mut().insert((inode.number, window), leaf.clone(), cost);
        Ok(leaf)
    }

    /// The run at the beginning of a table's rest, which is not empty.
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
        let superblock = self.superblock();
        let least = u64::from(superblock.first_data_block) + 1;
        let most = u64::from(superblock.blocks) - 1;
        let last = u64::from(first) + blocks - 1;
        if u64::from(first) >= least && last <= most {
            return Ok(());
        }
        let value = if u64::from(first) < least { first.into() } else { last };
        let problem = Problem::OutOfRange { field: "a block number", value, least, most };
        Err(Error::corrupt(structure, holder, problem))
    }
}
