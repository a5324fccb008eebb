//! Creation, use and removal of a journal.
//!
//! A single write of the superblock creates it: before that, everything is in free blocks, and the log already holds
//! the transaction that marks those blocks as used and creates the inode. Until that is written in place, the
//! superblock's copy of the inode's block numbers locates the journal. Removal is a transaction too, whose superblock
//! is written in place last.

use alloc::vec;
use alloc::vec::Vec;

use super::{Journal, Row, TRANSIENT, TRANSIENT_OLD};
use crate::error::Error;
use crate::format::error::FormatError;
use crate::format::features::{COMPATIBLE_HAS_JOURNAL, INCOMPATIBLE_RECOVER};
use crate::format::inode::{self, BLOCK_NUMBERS, DIRECT_BLOCKS};
use crate::format::journal::{JournalSuperblock, MIN_BLOCKS};
use crate::format::superblock;
use crate::format::{write_u16, write_u32};
use crate::source::BlockSource;
use crate::store::{Change, Store};

/// Inode of a new journal.
const JOURNAL_INODE: u32 = 8;
/// Volumes with fewer blocks get no journal.
const MIN_VOLUME_BLOCKS: u32 = 2048;
/// Maximum blocks of a new journal.
const MAX_BLOCKS: u32 = 4096;
/// Fraction of the volume's blocks that a journal takes, within its bounds.
const SHARE: u32 = 64;
/// Minimum free blocks left beside a new journal.
const LEFT_FREE: u32 = 64;

/// Locations of the blocks of a new journal.
struct Plan {
    rows: Vec<Row>,
    tables: Vec<u32>,
    numbers: [u32; BLOCK_NUMBERS],
    /// The content of the tables.
    contents: Vec<Vec<u32>>,
    blocks: u32,
}

impl<S: BlockSource> Store<S> {
    pub(crate) fn has_transient_journal(&self) -> bool {
        self.journal().borrow().as_ref().is_some_and(Journal::is_transient)
    }

    /// Prepares the journal for the first transaction; creates one if there is none and room permits.
    pub(crate) async fn start_journal(&self) -> Result<(), Error> {
        let journal = self.journal().borrow_mut().take();
        if journal.is_some() {
            self.set_journal(journal);
            // Its content was checkpointed, or left by an earlier user that assumed so.
            self.write_empty().await?;
            self.flush().await?;
            self.write_superblock(|superblock| superblock.incompatible |= INCOMPATIBLE_RECOVER).await?;
            return self.flush().await;
        }
        let blocks = self.geometry().blocks;
        let wanted = (blocks / SHARE).clamp(MIN_BLOCKS, MAX_BLOCKS);
        let free = self.superblock().free_blocks;
        for size in [wanted, MIN_BLOCKS] {
            let tables = tables_of(size, self.block_bytes());
            if blocks >= MIN_VOLUME_BLOCKS && free >= size + tables + LEFT_FREE {
                return self.make_journal(size).await;
            }
        }
        Ok(())
    }

    async fn make_journal(&self, size: u32) -> Result<(), Error> {
        let change = self.own_change();
        let plan = self.plan(&change, size).await?;
        let old = self.with_superblock(|superblock| superblock.revision == 0);
        let uuid = if old { TRANSIENT_OLD } else { TRANSIENT };
        let mut first = vec![0; self.block_bytes()];
        let head = JournalSuperblock { blocks: size, first: 1, sequence: 0, start: 0, has_error: false, uuid };
        head.write(&mut first, self.block_bytes() as u32);
        self.write_plan(&plan).await?;
        let (numbers, blocks, tables) = (plan.numbers, plan.blocks, plan.tables.len() as u32);
        let journal = Journal::new(plan.rows, plan.tables, JOURNAL_INODE, first).map_err(FormatError::Journal)?;
        self.set_journal(Some(journal));
        self.with_superblock(|superblock| {
            superblock.revision = 1;
            superblock.compatible |= COMPATIBLE_HAS_JOURNAL;
            superblock.incompatible |= INCOMPATIBLE_RECOVER;
            superblock.journal_inode = JOURNAL_INODE;
        });
        let superblock_block = self.geometry().first_data_block;
        let size_bytes = blocks * self.block_bytes() as u32;
        self.edit(&change, superblock_block, |bytes| store_backup(bytes, superblock_block, &numbers, size_bytes))
            .await?;
        let sectors = (blocks + tables) * (self.block_bytes() as u32 / 512);
        self.edit_journal_inode(&change, &numbers, size_bytes, sectors).await?;
        drop(change);
        let frozen = self.freeze_transaction();
        self.write_log(&frozen).await?;
        self.write_commit(frozen.len()).await?;
        self.flush().await?;
        let (switch, rest): (Vec<u32>, Vec<u32>) = frozen.into_iter().partition(|&block| block == superblock_block);
        self.write_home(switch).await?;
        self.flush().await?;
        self.write_home(rest).await
    }

    /// Allocates the blocks of a journal, in as few extents as possible.
    async fn plan(&self, change: &Change<S>, size: u32) -> Result<Plan, Error> {
        let tables = tables_of(size, self.block_bytes());
        let mut taken: Vec<(u32, u32)> = Vec::new();
        let mut left = size + tables;
        // In the middle of the volume, where seeks of a rotating disk are shortest.
        let mut goal = self.geometry().group_first(self.geometry().groups / 2);
        while left > 0 {
            let (first, count) = match self.allocator().allocate_any_blocks(change, goal, left).await {
                Ok(row) => row,
                Err(error) => {
                    for (first, count) in taken {
                        self.allocator().release_blocks(change, first, count).await?;
                    }
                    return Err(error);
                }
            };
            taken.push((first, count));
            (goal, left) = (first + count, left - count);
        }
        // The tables come first, so that the journal's own blocks are contiguous.
        let mut blocks = taken.iter().flat_map(|&(first, count)| first..first + count);
        let tables: Vec<u32> = blocks.by_ref().take(tables as usize).collect();
        let mut rows: Vec<Row> = Vec::new();
        for (position, block) in (0..).zip(blocks.clone()) {
            match rows.last_mut() {
                Some(row) if row.1 + row.2 == block => row.2 += 1,
                _ => rows.push((position, block, 1)),
            }
        }
        let data: Vec<u32> = blocks.collect();
        let (numbers, contents) = tables_for(&data, &tables, self.block_bytes() / 4);
        Ok(Plan { rows, tables, numbers, contents, blocks: size })
    }

    /// Writes the tables, and zeros into the journal, so that no stale block looks like a transaction.
    async fn write_plan(&self, plan: &Plan) -> Result<(), Error> {
        for (&table, content) in plan.tables.iter().zip(&plan.contents) {
            let fill = |target: &mut [u8]| {
                target.fill(0);
                for (target, number) in target.chunks_exact_mut(4).zip(content) {
                    target.copy_from_slice(&number.to_le_bytes());
                }
            };
            self.write_metadata(table, 1, fill).await?;
        }
        let most = self.geometry().page_blocks as u32;
        let parts = |row: &Row| {
            let (first, count) = (row.1, row.2);
            (0..count).step_by(most as usize).map(move |start| (first + start, most.min(count - start)))
        };
        let mut parts = plan.rows.iter().flat_map(parts);
        self.each(|| {
            let (first, count) = parts.next()?;
            Some(self.write_metadata(first, count as usize, |target| target.fill(0)))
        })
        .await
    }

    async fn edit_journal_inode(
        &self,
        change: &Change<S>,
        numbers: &[u32; BLOCK_NUMBERS],
        size: u32,
        sectors: u32,
    ) -> Result<(), Error> {
        use inode::field;
        let (block, start) = self.allocator().inode_place(JOURNAL_INODE).await?;
        let end = start + self.geometry().inode_bytes as usize;
        let now_s = self.now_s();
        let store = |bytes: &mut [u8]| {
            let Some(own) = bytes.get_mut(start..end) else { return };
            own.fill(0);
            write_u16(own, field::MODE, 0o100_600);
            write_u32(own, field::SIZE_LOW, size);
            for time in [field::ACCESS_TIME, field::CHANGE_TIME, field::MODIFY_TIME] {
                write_u32(own, time, now_s);
            }
            write_u16(own, field::LINKS, 1);
            write_u32(own, field::SECTORS, sectors);
            for (index, &number) in numbers.iter().enumerate() {
                write_u32(own, field::BLOCK_NUMBERS + index * 4, number);
            }
        };
        self.edit(change, block, store).await
    }

    /// Ends the use of the journal, when no change is active and all blocks are in place: removes a journal created for
    /// this mount, and leaves any other empty.
    pub(crate) async fn end_journal(&self) -> Result<(), Error> {
        let Some(is_transient) = self.journal().borrow().as_ref().map(Journal::is_transient) else { return Ok(()) };
        if is_transient {
            return self.take_journal_away().await;
        }
        self.write_empty().await?;
        self.flush().await?;
        self.write_superblock(|superblock| superblock.incompatible &= !INCOMPATIBLE_RECOVER).await?;
        self.flush().await
    }

    async fn take_journal_away(&self) -> Result<(), Error> {
        let (own, inode, old) = {
            let journal = self.journal().borrow();
            let Some(journal) = journal.as_ref() else { return Ok(()) };
            let rows = journal.rows.iter().map(|row| (row.1, row.2));
            let own: Vec<(u32, u32)> = rows.chain(journal.tables.iter().map(|&table| (table, 1))).collect();
            (own, journal.inode, journal.uuid == TRANSIENT_OLD)
        };
        let change = self.own_change();
        for (first, count) in own {
            self.allocator().release_blocks(&change, first, count).await?;
        }
        let (block, start) = self.allocator().inode_place(inode).await?;
        let end = start + self.geometry().inode_bytes as usize;
        self.edit(&change, block, |bytes| bytes.get_mut(start..end).unwrap_or(&mut []).fill(0)).await?;
        self.with_superblock(|superblock| {
            superblock.compatible &= !COMPATIBLE_HAS_JOURNAL;
            superblock.incompatible &= !INCOMPATIBLE_RECOVER;
            superblock.journal_inode = 0;
            let is_plain = superblock.read_only_compatible | superblock.compatible | superblock.incompatible == 0;
            if old && is_plain {
                superblock.revision = 0;
            }
        });
        let superblock_block = self.geometry().first_data_block;
        let clear = |bytes: &mut [u8]| store_backup(bytes, superblock_block, &[0; BLOCK_NUMBERS], 0);
        self.edit(&change, superblock_block, clear).await?;
        drop(change);
        let frozen = self.freeze_transaction();
        self.log(&frozen).await?;
        let (switch, rest): (Vec<u32>, Vec<u32>) = frozen.into_iter().partition(|&block| block == superblock_block);
        self.write_home(rest).await?;
        self.flush().await?;
        self.write_home(switch).await?;
        self.flush().await?;
        self.set_journal(None);
        self.groups().borrow_mut().wake_resting();
        Ok(())
    }
}

/// Number of table blocks for a file of `blocks` blocks.
fn tables_of(blocks: u32, block_bytes: usize) -> u32 {
    let per_table = (block_bytes / 4) as u32;
    let beyond = blocks.saturating_sub(DIRECT_BLOCKS as u32);
    let second = beyond.saturating_sub(per_table);
    // At most 4096 blocks, which never exceed the second level.
    u32::from(beyond > 0) + second.div_ceil(per_table) + u32::from(second > 0)
}

/// Returns the numbers in the inode, and in each of the tables, of a file with these blocks.
fn tables_for(data: &[u32], tables: &[u32], per_table: usize) -> ([u32; BLOCK_NUMBERS], Vec<Vec<u32>>) {
    let mut numbers = [0; BLOCK_NUMBERS];
    let (direct, beyond) = data.split_at(data.len().min(DIRECT_BLOCKS));
    numbers[..direct.len()].copy_from_slice(direct);
    let mut contents: Vec<Vec<u32>> = Vec::new();
    if let Some(&table) = tables.first() {
        numbers[DIRECT_BLOCKS] = table;
        contents.push(beyond.iter().copied().take(per_table).collect());
    }
    if let Some(&table) = tables.get(1) {
        numbers[DIRECT_BLOCKS + 1] = table;
        contents.push(tables[2..].to_vec());
        contents.extend(beyond[per_table.min(beyond.len())..].chunks(per_table).map(<[u32]>::to_vec));
    }
    (numbers, contents)
}

/// Writes the copy of the journal's block numbers into the superblock; without numbers, removes it.
fn store_backup(block: &mut [u8], number: u32, numbers: &[u32; BLOCK_NUMBERS], size: u32) {
    use superblock::field::{JOURNAL_BACKUP, JOURNAL_BACKUP_KIND};
    let start = if number == 0 { superblock::OFFSET as usize } else { 0 };
    let Some(bytes) = block.get_mut(start..start + superblock::BYTES) else { return };
    bytes[JOURNAL_BACKUP_KIND] = if size > 0 { superblock::BACKUP_OF_NUMBERS } else { 0 };
    for (index, &number) in numbers.iter().chain(&[0, size]).enumerate() {
        write_u32(bytes, JOURNAL_BACKUP + index * 4, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_name_every_block_in_order() {
        for (size, per_table) in [(1024, 256), (4096, 256), (4096, 1024), (1036, 1024), (1024, 1024)] {
            let tables: Vec<u32> = (5000..5000 + tables_of(size, per_table * 4)).collect();
            let data: Vec<u32> = (10_000..10_000 + size).collect();
            let (numbers, contents) = tables_for(&data, &tables, per_table);
            assert_eq!(contents.len(), tables.len());
            let content = |table: u32| &contents[(table - 5000) as usize];
            let mut found = numbers[..DIRECT_BLOCKS].to_vec();
            found.extend(content(numbers[DIRECT_BLOCKS]));
            if numbers[DIRECT_BLOCKS + 1] != 0 {
                found.extend(content(numbers[DIRECT_BLOCKS + 1]).iter().flat_map(|&table| content(table)));
            }
            assert_eq!(found, data);
        }
    }
}
