//! Canaries: words that no other program may read or write.

use alloc::vec::Vec;

use hostile_contract::Place;
use hostile_contract::pattern;
use hostile_contract::talk::{self, ExpReady, ImpReadyAfterGive, ImpStart};
use sip::Status;
use sip::exheap::{ExBox, ExVec};

/// Words of the canary on the stack.
pub(crate) const STACK_WORDS: usize = 512;
/// Words of each canary whose address is published.
const TOLD_WORDS: usize = 512;
/// Sizes of the canaries in the private heap: small ones share pages, large ones have their own.
const HEAP_WORDS: [usize; 8] = [TOLD_WORDS, 1, 3, 8, 40, 700, 4096, 20_000];
/// Sizes of the canaries in blocks.
const BLOCK_WORDS: [usize; 4] = [TOLD_WORDS, 8, 33, 9000];
const ATTACHED: usize = 4;
const QUEUED_BYTES: usize = 4096;

const HEAP_SEED: u64 = 1000;
const STACK_SEED: u64 = 2000;
const BLOCK_SEED: u64 = 3000;
const ATTACHED_SEED: u64 = 4000;
const QUEUED_SEED: u64 = 5000;

/// Content found instead of a canary.
pub(crate) struct Damage {
    pub(crate) place: Place,
    pub(crate) index: u64,
    pub(crate) found: u64,
}

/// Addresses published to every client.
pub(crate) struct Places {
    pub(crate) heap: u64,
    pub(crate) stack: u64,
    pub(crate) block: u64,
    pub(crate) bytes: u64,
}

/// All canaries but the stack's.
pub(crate) struct Canaries {
    heap: Vec<Vec<u64>>,
    blocks: Vec<ExVec<u64>>,
    /// A block with others attached.
    tree: ExBox<u64>,
    /// A channel to itself; between two checks a block is queued in it.
    talk: Option<(talk::Imp<talk::states::ReadyAfterGive>, talk::Exp<talk::states::Ready>)>,
}

/// The canary of the stack.
pub(crate) fn stack_canary() -> [u64; STACK_WORDS] {
    core::array::from_fn(|index| pattern::word(STACK_SEED, index as u64))
}

impl Canaries {
    pub(crate) fn new() -> Result<Canaries, Status> {
        let heap = (HEAP_SEED..)
            .zip(HEAP_WORDS)
            .map(|(seed, length)| (0..length as u64).map(|index| pattern::word(seed, index)).collect())
            .collect();
        let blocks =
            (BLOCK_SEED..).zip(BLOCK_WORDS).map(|(seed, length)| block(seed, length)).collect::<Result<_, _>>()?;
        let mut tree = ExBox::new(0u64)?;
        for seed in (ATTACHED_SEED..).take(ATTACHED) {
            tree.attach(block(seed, 64)?).map_err(|(_, status)| status)?;
        }
        let (client, server) = talk::new_channel()?;
        let server = server.success();
        let ImpStart::Success { next: client } = client.receive() else { return Err(Status::Closed) };
        let talk = Some((client.give(queued()?), server));
        Ok(Canaries { heap, blocks, tree, talk })
    }

    pub(crate) fn places(&self, on_stack: &[u64; STACK_WORDS]) -> Places {
        Places {
            heap: address(&self.heap[0]),
            stack: address(on_stack),
            block: address(&self.blocks[0]),
            bytes: (TOLD_WORDS * size_of::<u64>()) as u64,
        }
    }

    /// Returns the first damaged canary.
    pub(crate) fn damage(&mut self, on_stack: &[u64]) -> Option<Damage> {
        let heap = (HEAP_SEED..).zip(&self.heap).find_map(|(seed, words)| damage(Place::Heap, words, seed));
        heap.or_else(|| damage(Place::Stack, on_stack, STACK_SEED))
            .or_else(|| (BLOCK_SEED..).zip(&self.blocks).find_map(|(seed, words)| damage(Place::Block, words, seed)))
            .or_else(|| self.attached_damage())
            .or_else(|| self.queued_damage())
    }

    fn attached_damage(&mut self) -> Option<Damage> {
        let lost = Damage { place: Place::Attached, index: u64::MAX, found: 0 };
        let mut children = Vec::new();
        while let Ok(Some(child)) = self.tree.detach() {
            match child.into_vec::<u64>() {
                Ok(child) => children.push(child),
                Err(_) => return Some(lost),
            }
        }
        if children.len() != ATTACHED {
            return Some(lost);
        }
        children.reverse();
        let found = (ATTACHED_SEED..).zip(&children).find_map(|(seed, words)| damage(Place::Attached, words, seed));
        for child in children {
            if self.tree.attach(child).is_err() {
                return Some(lost);
            }
        }
        found
    }

    /// Receives the block from the queue, and sends it again.
    fn queued_damage(&mut self) -> Option<Damage> {
        let lost = Damage { place: Place::Queued, index: u64::MAX, found: 0 };
        let Some((client, server)) = self.talk.take() else { return Some(lost) };
        let ExpReady::Give { data, next } = server.receive() else { return Some(lost) };
        let found = first_changed_byte(&data);
        let server = next.given_back(data);
        let ImpReadyAfterGive::GivenBack { data, next: client } = client.receive() else { return Some(lost) };
        self.talk = Some((client.give(data), server));
        found
    }
}

fn damage(place: Place, words: &[u64], seed: u64) -> Option<Damage> {
    pattern::first_damage(words, seed).map(|(index, found)| Damage { place, index, found })
}

fn first_changed_byte(bytes: &[u8]) -> Option<Damage> {
    if bytes.len() != QUEUED_BYTES {
        return Some(Damage { place: Place::Queued, index: u64::MAX, found: bytes.len() as u64 });
    }
    let changed = (0..).zip(bytes).find(|&(index, &byte)| byte != pattern::word(QUEUED_SEED, index) as u8);
    changed.map(|(index, &byte)| Damage { place: Place::Queued, index, found: u64::from(byte) })
}

fn queued() -> Result<ExVec<u8>, Status> {
    let mut block = ExVec::<u8>::new(QUEUED_BYTES)?;
    for (index, byte) in (0..).zip(block.as_mut_slice()) {
        *byte = pattern::word(QUEUED_SEED, index) as u8;
    }
    Ok(block)
}

fn block(seed: u64, length: usize) -> Result<ExVec<u64>, Status> {
    let mut words = ExVec::new(length)?;
    pattern::fill(&mut words, seed);
    Ok(words)
}

fn address(words: &[u64]) -> u64 {
    words.as_ptr().addr() as u64
}
