//! Duplicate names in a folder.
//!
//! Names are compared by hashes of 64 bits first, in bounded memory: of a very large folder only a part of the hashes
//! is held at a time, with a pass over its entries for each part.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::entries;
use super::folders::Visit;
use super::state::Checker;
use super::{CheckError, Fault};
use block_source::BlockSource;

/// Maximum hashes held at once.
const MAX_HASHES: usize = 1 << 20;
/// Memory of the hashes with reallocation on growth, and of a folder's block numbers, in bytes.
pub(super) const MEMORY_BYTES: u64 = 2 * 8 * MAX_HASHES as u64;

/// Hashes of a folder's names.
#[derive(Default)]
pub(super) struct Names {
    hashes: Vec<u64>,
    /// Total number, including those not held.
    count: u64,
}

impl Names {
    pub(super) fn add(&mut self, hash: u64) -> Result<(), CheckError> {
        self.count += 1;
        if self.hashes.len() < MAX_HASHES {
            self.hashes.try_reserve(1).map_err(|_| CheckError::NoMemory)?;
            self.hashes.push(hash);
        }
        Ok(())
    }
}

/// FNV-1a.
pub(super) fn name_hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl<S: BlockSource> Checker<'_, S> {
    /// Finds duplicate names in a folder.
    pub(super) async fn check_duplicates(&mut self, visit: &mut Visit, names: Names) -> Result<(), CheckError> {
        let parts = names.count.div_ceil(MAX_HASHES as u64 / 2).max(1);
        if names.hashes.len() as u64 == names.count {
            return self.check_part(visit, names.hashes, true).await;
        }
        drop(names);
        for part in 0..parts {
            let mut hashes = Vec::new();
            for position in 0..visit.blocks.len() {
                let bytes = self.read_block(visit.blocks[position]).await?;
                for hash in entries::entries(&bytes).filter(|entry| entry.inode != 0).map(|entry| name_hash(entry.name))
                {
                    if hash % parts == part && hashes.len() < MAX_HASHES {
                        hashes.try_reserve(1).map_err(|_| CheckError::NoMemory)?;
                        hashes.push(hash);
                    }
                }
            }
            self.check_part(visit, hashes, false).await?;
        }
        Ok(())
    }

    /// Handles duplicates among these hashes. `complete`: these are all hashes.
    async fn check_part(&mut self, visit: &mut Visit, mut hashes: Vec<u64>, complete: bool) -> Result<(), CheckError> {
        hashes.sort_unstable();
        let mut twice: Vec<u64> = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        twice.dedup();
        if twice.is_empty() {
            return Ok(());
        }
        let mut seen: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for position in 0..visit.blocks.len() {
            let block = visit.blocks[position];
            let mut bytes = self.read_block(block).await?;
            let suspects: Vec<(usize, u32, Vec<u8>)> = entries::entries(&bytes)
                .filter(|entry| entry.inode != 0 && !entries::is_dot(entry.name))
                .filter(|entry| twice.binary_search(&name_hash(entry.name)).is_ok())
                .map(|entry| (entry.offset, entry.inode, entry.name.to_vec()))
                .collect();
            let mut changed = false;
            for (offset, inode, name) in suspects {
                let Some(&first) = seen.get(&name) else {
                    seen.insert(name, inode);
                    continue;
                };
                if !self.report(Fault::DuplicateName { folder: visit.node.number, name: name.clone() }).await? {
                    continue;
                }
                self.drop_index(&mut visit.node).await?;
                let other = if first == inode || !complete { None } else { other_name(&name, &hashes) };
                match other {
                    Some(other) => {
                        let place = hashes.partition_point(|&hash| hash < name_hash(&other));
                        hashes.insert(place, name_hash(&other));
                        entries::set_name(&mut bytes, offset, &other);
                    }
                    None => {
                        entries::remove(&mut bytes, offset);
                        self.count_name(inode, false);
                        self.lose_parent(inode);
                    }
                }
                changed = true;
            }
            if changed {
                self.write_block(block, &bytes).await?;
            }
        }
        Ok(())
    }

    /// Resets the parent of a folder that lost its name.
    fn lose_parent(&mut self, number: u32) {
        if let Some(index) = self.folder_index(number) {
            self.folders[index].parent = 0;
        }
    }
}

/// Returns a name of the same length that is not among the sorted hashes.
fn other_name(name: &[u8], hashes: &[u64]) -> Option<Vec<u8>> {
    let mut other = name.to_vec();
    for number in 0u32..4096 {
        let digits = alloc::format!("~{number:x}");
        let tail = &digits.as_bytes()[digits.len().saturating_sub(name.len())..];
        if tail.len() < digits.len() - 1 {
            return None;
        }
        let start = name.len() - tail.len();
        other[start..].copy_from_slice(tail);
        if hashes.binary_search(&name_hash(&other)).is_err() {
            return Some(other);
        }
        other.copy_from_slice(name);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_as_long_and_new() {
        for name in [&b"a"[..], b"ab", b"abc", b"a longer name"] {
            let mut hashes = Vec::from([name_hash(name)]);
            for _ in 0..10 {
                let other = other_name(name, &hashes).unwrap();
                assert_eq!(other.len(), name.len());
                hashes.push(name_hash(&other));
                hashes.sort_unstable();
            }
        }
    }
}
