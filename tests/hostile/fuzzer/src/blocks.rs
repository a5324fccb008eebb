//! Blocks of every type: creation, splitting, attachment, typing, and a check at every access.

use alloc::rc::Rc;

use hostile_contract::{Record, pattern};
use sip::exheap::{ExBlock, ExBox, ExVec, Lent};

use crate::world::{World, finding};

/// Maximum bytes of a new block.
const MAX_BYTES: usize = 20_000;

/// A block that this program owns or has on loan. All but `Untyped` are sealed: their contents are a function of their
/// first word.
pub(crate) enum Block {
    Bytes(ExVec<u8>),
    Words(ExVec<u64>),
    Record(ExBox<Record>),
    Loan(Lent<ExVec<u8>>),
    Untyped(ExBlock),
}

impl Block {
    /// Checks that its contents are unchanged.
    pub(crate) fn check(&mut self) {
        match self {
            Block::Bytes(bytes) => check_bytes(bytes),
            Block::Words(words) => check_words(words),
            Block::Record(record) => {
                check_words(&[record.first].into_iter().chain(record.rest).collect::<alloc::vec::Vec<_>>())
            }
            Block::Loan(bytes) => check_bytes(bytes),
            Block::Untyped(_) => {}
        }
    }

    /// Fills it with new contents.
    pub(crate) fn seal(&mut self, seed: u64) {
        match self {
            Block::Bytes(bytes) => seal_bytes(bytes, seed),
            Block::Words(words) => seal_words(words, seed),
            Block::Record(record) => {
                let mut words = [0; 8];
                seal_words(&mut words, seed);
                record.first = words[0];
                record.rest.copy_from_slice(&words[1..]);
            }
            Block::Loan(bytes) => seal_bytes(bytes, seed),
            Block::Untyped(_) => {}
        }
    }

    fn into_untyped(self, world: &World) -> Option<ExBlock> {
        // Attaching and detaching gives access to a block without its type.
        let mut holder = ExVec::<u8>::new(64).ok()?;
        let attached = match self {
            Block::Bytes(bytes) => holder.attach(bytes),
            Block::Words(words) => holder.attach(words),
            Block::Record(record) => holder.attach(record),
            Block::Untyped(block) => return Some(block),
            Block::Loan(_) => return None,
        };
        match attached {
            Ok(_) if world.numbers.once_in(4) => None,
            Ok(_) => holder.detach().ok().flatten(),
            Err((block, _)) => Some(block),
        }
    }
}

fn seal_words(words: &mut [u64], seed: u64) {
    pattern::fill(words, seed);
    if let Some(first) = words.first_mut() {
        *first = seed;
    }
}

fn check_words(words: &[u64]) {
    let Some(&seed) = words.first() else { return };
    if words.iter().zip(0..).skip(1).any(|(&found, index)| found != pattern::word(seed, index)) {
        finding("a block of words was overwritten");
    }
}

fn seal_bytes(bytes: &mut [u8], seed: u64) {
    for (index, chunk) in (0..).zip(bytes.chunks_mut(8)) {
        let word = if index == 0 { seed } else { pattern::word(seed, index) };
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Sealed bytes, by this program or another.
pub(crate) fn check_bytes(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first_chunk() else { return };
    let seed = u64::from_le_bytes(*first);
    let differs = |(index, chunk): (u64, &[u8])| *chunk != pattern::word(seed, index).to_le_bytes()[..chunk.len()];
    if (1..).zip(rest.chunks(8)).any(differs) {
        finding("a block of bytes was overwritten");
    }
}

/// Performs an operation on blocks.
pub(crate) fn step(world: &Rc<World>) {
    let numbers = &world.numbers;
    match numbers.below(9) {
        0 => drop(new_bytes(world).map(|bytes| world.add_block(Block::Bytes(bytes)))),
        1 => drop(new_words(world).map(|words| world.add_block(Block::Words(words)))),
        2 => drop(new_record(world).map(|record| world.add_block(Block::Record(record)))),
        3 => touch(world),
        4 => split(world),
        5 => attach(world),
        6 => give_a_type(world),
        7 => through_the_pool(world),
        _ => drop(world.take(&world.blocks)),
    }
}

pub(crate) fn new_bytes(world: &World) -> Option<ExVec<u8>> {
    let numbers = &world.numbers;
    let length = if numbers.once_in(3) { 64 * numbers.below(4) } else { numbers.below(MAX_BYTES) };
    let mut bytes = ExVec::<u8>::new(length).ok()?;
    if bytes.iter().any(|&byte| byte != 0) {
        finding("a new block is not zero");
    }
    seal_bytes(&mut bytes, numbers.next());
    Some(bytes)
}

pub(crate) fn new_words(world: &World) -> Option<ExVec<u64>> {
    let numbers = &world.numbers;
    let mut words = ExVec::<u64>::new(numbers.below(MAX_BYTES / 8)).ok()?;
    if words.iter().any(|&word| word != 0) {
        finding("a new block is not zero");
    }
    seal_words(&mut words, numbers.next());
    Some(words)
}

pub(crate) fn new_record(world: &World) -> Option<ExBox<Record>> {
    let mut words = [0; 8];
    seal_words(&mut words, world.numbers.next());
    let [first, rest @ ..] = words;
    ExBox::new(Record { first, rest }).ok()
}

fn touch(world: &World) {
    let Some(mut block) = world.take(&world.blocks) else { return };
    block.check();
    block.seal(world.numbers.next());
    if world.numbers.once_in(40) {
        // The program keeps it until its end.
        core::mem::forget(block);
    } else {
        world.add_block(block);
    }
}

fn split(world: &World) {
    let Some(mut block) = world.take(&world.blocks) else { return };
    block.check();
    let at = world.numbers.below(400);
    let rest = match &mut block {
        Block::Bytes(bytes) => bytes.split_off(at * 64).ok().map(Block::Bytes),
        Block::Words(words) => words.split_off(at * world.numbers.below(10)).ok().map(Block::Words),
        Block::Untyped(block) => block.split_off(at * 64).ok().map(Block::Untyped),
        Block::Record(_) | Block::Loan(_) => None,
    };
    for mut part in rest.into_iter().chain([block]) {
        part.seal(world.numbers.next());
        world.add_block(part);
    }
}

fn attach(world: &World) {
    let (Some(parent), Some(child)) = (world.take(&world.blocks), world.take(&world.blocks)) else { return };
    let Some(child) = child.into_untyped(world) else { return world.add_block(parent) };
    match parent {
        Block::Untyped(mut parent) => {
            if let Err((child, _)) = parent.attach(child) {
                world.add_block(Block::Untyped(child));
            } else if world.numbers.once_in(2)
                && let Ok(Some(child)) = parent.detach()
            {
                world.add_block(Block::Untyped(child));
            }
            world.add_block(Block::Untyped(parent));
        }
        other => {
            world.add_block(other);
            world.add_block(Block::Untyped(child));
        }
    }
}

/// Casts a block to a type, right or wrong.
fn give_a_type(world: &World) {
    let Some(block) = world.take(&world.blocks) else { return };
    let Some(block) = block.into_untyped(world) else { return };
    let typed = if world.numbers.once_in(2) {
        block.into_vec::<u8>().map(Block::Bytes)
    } else {
        block.into_vec::<u64>().map(Block::Words)
    };
    match typed {
        Ok(mut block) => {
            block.seal(world.numbers.next());
            world.add_block(block);
        }
        Err(block) => world.add_block(Block::Untyped(block)),
    }
}

/// Puts a block where other threads find it, or takes one of theirs.
fn through_the_pool(world: &World) {
    let block = world.take(&world.blocks);
    // No calls while the pool is locked.
    let other = world.pool.lock().pop();
    world.pool.lock().extend(block);
    if let Some(mut other) = other {
        other.check();
        world.add_block(other);
    }
}
