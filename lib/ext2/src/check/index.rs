//! Hash index of a folder: it must refer to each block once, and to each name by its hash.

use alloc::vec::Vec;

use super::bits::Bits;
use super::state::Checker;
use super::{CheckError, entries};
use crate::format::hash::{Algorithm, Hasher};
use crate::format::superblock::field;
use crate::format::{read_u16, read_u32};
use block_source::BlockSource;

/// Offset of the root's info: after `.` and the header of `..`.
const ROOT_INFO: usize = 24;
/// Offsets in it.
const RESERVED: usize = 0;
const HASH_VERSION: usize = 4;
const INFO_BYTES: usize = 5;
const LEVELS: usize = 6;
const FLAGS: usize = 7;
/// Header of an index block other than the root: an unused entry.
const NODE_HEADER: usize = 8;
/// Size of a pair of hash and block, in bytes.
const PAIR_BYTES: usize = 8;
/// The bits of a pair's block number.
const BLOCK_MASK: u32 = 0x0fff_ffff;
/// Superblock flag: names are hashed as unsigned bytes.
const UNSIGNED_HASH: u32 = 2;

/// The minimum and maximum hash of the names in each block of a folder.
pub(super) struct Ranges {
    hasher: Hasher,
    blocks: Vec<(u32, u32)>,
}

impl Ranges {
    pub(super) fn add(&mut self, position: usize, name: &[u8]) {
        let hash = self.hasher.hash(name);
        if let Some(range) = self.blocks.get_mut(position) {
            *range = (range.0.min(hash), range.1.max(hash));
        }
    }
}

/// An index block yet to be traversed.
struct Level {
    bytes: Vec<u8>,
    /// Offset of its pairs, their number, and the next one.
    pairs: usize,
    count: usize,
    next: usize,
    /// Maximum hash below it.
    most: u32,
}

impl Level {
    fn new(bytes: Vec<u8>, pairs: usize, most: u32) -> Option<Level> {
        let limit = (bytes.len() - pairs) / PAIR_BYTES;
        let count = usize::from(read_u16(&bytes, pairs + 2));
        let sound = usize::from(read_u16(&bytes, pairs)) == limit && (1..=limit).contains(&count);
        sound.then_some(Level { bytes, pairs, count, next: 0, most })
    }

    /// Returns the lowest hash covered by the pair at this position.
    fn hash(&self, position: usize) -> u32 {
        if position == 0 { 0 } else { read_u32(&self.bytes, self.pairs + position * PAIR_BYTES) & !1 }
    }

    fn block(&self, position: usize) -> u32 {
        read_u32(&self.bytes, self.pairs + position * PAIR_BYTES + 4) & BLOCK_MASK
    }
}

impl<S: BlockSource> Checker<'_, S> {
    /// Returns the collector for the names of an indexed folder; `None` if its hash version is unknown.
    pub(super) async fn ranges(&mut self, blocks: &[u32]) -> Result<Option<Ranges>, CheckError> {
        let Some(&root) = blocks.first() else { return Ok(None) };
        let root = self.read_block(root).await?;
        let algorithm = match root[ROOT_INFO + HASH_VERSION] {
            0 => Algorithm::Legacy,
            1 => Algorithm::HalfMd4,
            2 => Algorithm::Tea,
            _ => return Ok(None),
        };
        let unsigned = read_u32(&self.superblock, field::FLAGS) & UNSIGNED_HASH != 0;
        let seed = core::array::from_fn(|index| read_u32(&self.superblock, field::HASH_SEED + index * 4));
        let blocks = super::bits::filled(blocks.len(), (u32::MAX, 0))?;
        Ok(Some(Ranges { hasher: Hasher { algorithm, unsigned, seed }, blocks }))
    }

    /// Returns whether the index leads to each block once, and only to names within the hash range that it gives.
    pub(super) async fn is_index_sound(&mut self, blocks: &[u32], ranges: &Ranges) -> Result<bool, CheckError> {
        let Some(&root) = blocks.first() else { return Ok(false) };
        let root = self.read_block(root).await?;
        let info = &root[ROOT_INFO..];
        let (info_bytes, levels) = (usize::from(info[INFO_BYTES]), usize::from(info[LEVELS]));
        if !entries::has_dots(&root)
            || read_u32(info, RESERVED) != 0
            || info_bytes != 8
            || levels > 1
            || info[FLAGS] & 1 != 0
        {
            return Ok(false);
        }
        let Some(root) = Level::new(root, ROOT_INFO + info_bytes, u32::MAX) else { return Ok(false) };
        let mut reached = Bits::new(blocks.len() as u32)?;
        reached.insert(0);
        let mut count = 1;
        let mut open = Vec::from([root]);
        while let Some(level) = open.last_mut() {
            if level.next == level.count {
                open.pop();
                continue;
            }
            let (position, least) = (level.next, level.hash(level.next));
            let most = if position + 1 < level.count { level.hash(position + 1) } else { level.most };
            let place = level.block(position);
            level.next += 1;
            if least > most || place as usize >= blocks.len() || reached.insert(place) {
                return Ok(false);
            }
            count += 1;
            if open.len() > levels {
                let (from, to) = ranges.blocks[place as usize];
                let first = position == 0;
                if from <= to && (to > most || from < least && !first) {
                    return Ok(false);
                }
                continue;
            }
            let bytes = self.read_block(blocks[place as usize]).await?;
            let is_node = entries::entry(&bytes, 0)
                .is_some_and(|entry| entry.inode == 0 && entry.bytes == bytes.len() && entry.name.is_empty());
            match Level::new(bytes, NODE_HEADER, most) {
                Some(level) if is_node => open.push(level),
                _ => return Ok(false),
            }
        }
        Ok(count == blocks.len())
    }
}
