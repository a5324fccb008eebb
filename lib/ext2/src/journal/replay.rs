//! Replay of a journal left by a crash.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Journal, Row};
use crate::error::{Error, ReadOnlyReason};
use crate::format::error::{FormatError, JournalProblem};
use crate::format::features::{COMPATIBLE_HAS_JOURNAL, INCOMPATIBLE_RECOVER};
use crate::format::inode::{BLOCK_NUMBERS, DIRECT_BLOCKS, Inode, Kind, View};
use crate::format::journal::{MAGIC, TAG_ESCAPED, field, kind, read, revoked, tags, write};
use crate::format::read_u32;
use crate::format::superblock::{self, Superblock};
use crate::source::BlockSource;
use crate::store::Store;

/// A block in the log to be written in place.
struct Copy {
    position: u32,
    is_escaped: bool,
}

/// Contents of the log.
#[derive(Default)]
struct Log {
    /// By volume block: its last copy.
    copies: BTreeMap<u32, Copy>,
    /// Sequence number after the last transaction.
    end: u32,
}

/// A partially read transaction.
#[derive(Default)]
struct Transaction {
    copies: Vec<(u32, Copy)>,
    revoked: Vec<u32>,
}

impl<S: BlockSource> Store<S> {
    /// Finds the journal and replays it: on the disk if that may be written, else in memory. An unusable journal makes
    /// the volume read-only; if it needs recovery, the volume is unusable.
    pub(crate) async fn open_journal(&self) -> Result<(), Error> {
        let superblock = self.superblock();
        let needs_replay = superblock.incompatible & INCOMPATIBLE_RECOVER != 0;
        if superblock.compatible & COMPATIBLE_HAS_JOURNAL == 0 {
            if needs_replay {
                self.forbid(ReadOnlyReason::Journal(JournalProblem::Inode));
            }
            return Ok(());
        }
        let journal = match self.find_journal(&superblock).await? {
            Ok(journal) => journal,
            Err(problem) if needs_replay => return Err(FormatError::Journal(problem).into()),
            Err(problem) => {
                self.forbid(ReadOnlyReason::Journal(problem));
                return Ok(());
            }
        };
        let start = read(&journal.superblock, field::START);
        let has_error = read(&journal.superblock, field::ERROR) != 0;
        *self.journal().borrow_mut() = Some(journal);
        if needs_replay {
            self.replay(start).await?;
        }
        if has_error {
            self.forbid(ReadOnlyReason::Faulty);
        }
        Ok(())
    }

    /// Reads the journal's inode, block numbers and superblock.
    async fn find_journal(&self, superblock: &Superblock) -> Result<Result<Journal, JournalProblem>, Error> {
        if superblock.journal_device != 0 || superblock.journal_inode == 0 {
            return Ok(Err(JournalProblem::External));
        }
        let number = superblock.journal_inode;
        if number > superblock.inodes {
            return Ok(Err(JournalProblem::Inode));
        }
        let Some((numbers, size)) = self.journal_numbers(number).await? else { return Ok(Err(JournalProblem::Inode)) };
        let blocks = size / self.block_bytes() as u64;
        let Some(blocks) = u32::try_from(blocks).ok().filter(|&blocks| blocks > 0 && blocks < superblock.blocks) else {
            return Ok(Err(JournalProblem::Inode));
        };
        let Some((rows, tables)) = self.journal_rows(&numbers, blocks).await? else {
            return Ok(Err(JournalProblem::Inode));
        };
        let first = self.read_block(rows[0].1, <[u8]>::to_vec).await?;
        Ok(Journal::new(rows, tables, number, first))
    }

    /// Returns the block numbers and the size in bytes of the journal's inode, or if that is unused, of its copy in the
    /// superblock.
    async fn journal_numbers(&self, number: u32) -> Result<Option<([u32; BLOCK_NUMBERS], u64)>, Error> {
        let (block, start) = self.allocator().inode_place(number).await?;
        let largest = self.superblock().largest_file();
        let parse = |bytes: &[u8]| {
            let view = bytes.get(start..).and_then(View::new)?;
            Inode::parse(number, block.into(), &view, largest).ok()
        };
        let inode = self.read_block(block, parse).await?.filter(|inode| inode.kind == Kind::File);
        if let Some(inode) = inode {
            return Ok(Some((inode.blocks, inode.size)));
        }
        let own = self.geometry().first_data_block;
        let start = if own == 0 { superblock::OFFSET as usize } else { 0 };
        let copy = |bytes: &[u8]| {
            let bytes = bytes.get(start..start + superblock::BYTES)?;
            let number = |index: usize| read_u32(bytes, superblock::field::JOURNAL_BACKUP + index * 4);
            let size = u64::from(number(BLOCK_NUMBERS)) << 32 | u64::from(number(BLOCK_NUMBERS + 1));
            let is_there = bytes[superblock::field::JOURNAL_BACKUP_KIND] == superblock::BACKUP_OF_NUMBERS;
            is_there.then(|| (core::array::from_fn(number), size))
        };
        self.read_block(own, copy).await
    }

    /// Returns the extents of a file's blocks and of its tables; `None` if it has holes or blocks outside the volume.
    async fn journal_rows(
        &self,
        numbers: &[u32; BLOCK_NUMBERS],
        blocks: u32,
    ) -> Result<Option<(Vec<Row>, Vec<u32>)>, Error> {
        let mut rows: Vec<Row> = Vec::new();
        let mut tables = Vec::new();
        // Stack of blocks to visit: a number, and the levels of tables below it.
        let mut left: Vec<(u32, u32)> = numbers[DIRECT_BLOCKS..].iter().copied().zip([1, 2, 3]).rev().collect();
        left.extend(numbers[..DIRECT_BLOCKS].iter().rev().map(|&number| (number, 0)));
        let mut position = 0;
        while position < blocks {
            let Some((number, level)) = left.pop() else { return Ok(None) };
            if !self.geometry().contains(number, 1) {
                return Ok(None);
            }
            if level > 0 {
                tables.push(number);
                let parse =
                    |bytes: &[u8]| bytes.chunks_exact(4).map(|number| read_u32(number, 0)).collect::<Vec<u32>>();
                let numbers = self.read_block(number, parse).await?;
                left.extend(numbers.into_iter().rev().map(|number| (number, level - 1)));
                continue;
            }
            match rows.last_mut() {
                Some(row) if row.1 + row.2 == number => row.2 += 1,
                _ => rows.push((position, number, 1)),
            }
            position += 1;
        }
        Ok(Some((rows, tables)))
    }

    async fn replay(&self, start: u32) -> Result<(), Error> {
        let log = if start == 0 { None } else { Some(self.read_log(start).await?) };
        let may_write = self.read_only_reason().is_none();
        let own = self.geometry().first_data_block;
        if let Some(log) = &log {
            if may_write {
                // The superblock may remove the journal, so it is written last.
                let mut copies = log.copies.iter().filter(|(block, _)| **block != own);
                self.each(|| copies.next().map(|(&block, copy)| self.write_copy(block, copy))).await?;
                self.flush().await?;
                if let Some(copy) = log.copies.get(&own) {
                    self.write_copy(own, copy).await?;
                    self.flush().await?;
                }
            } else {
                for (&block, copy) in &log.copies {
                    let bytes = self.read_copy(copy).await?;
                    self.overlay(block, &bytes)?;
                }
            }
        }
        self.read_superblock_again().await?;
        let still_has = self.superblock().compatible & COMPATIBLE_HAS_JOURNAL != 0;
        if still_has {
            if let (Some(log), Some(journal)) = (&log, self.journal().borrow_mut().as_mut()) {
                // Skips a transaction that may have been started.
                journal.sequence = log.end.wrapping_add(1);
            }
            if may_write {
                self.write_empty().await?;
                self.flush().await?;
            }
        } else {
            *self.journal().borrow_mut() = None;
        }
        if may_write {
            self.write_superblock(|superblock| superblock.incompatible &= !INCOMPATIBLE_RECOVER).await?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Reads the log from its start to the last transaction with a commit block.
    async fn read_log(&self, start: u32) -> Result<Log, Error> {
        let mut log = Log { end: self.expected_sequence(), ..Log::default() };
        // By block: the last transaction that revoked it.
        let mut revocations: BTreeMap<u32, u32> = BTreeMap::new();
        let mut all: Vec<(u32, u32, Copy)> = Vec::new();
        let mut transaction = Transaction::default();
        let (mut position, mut left) = (start, self.ring_blocks());
        while left > 0 {
            let bytes = self.read_log_block(position).await?;
            if read(&bytes, field::MAGIC) != MAGIC || read(&bytes, field::SEQUENCE) != log.end {
                break;
            }
            let first = self.behind(position, 1);
            let mut used = 1;
            match read(&bytes, field::KIND) {
                kind::DESCRIPTOR => {
                    for (index, tag) in (0..).zip(tags(&bytes)) {
                        let copy =
                            Copy { position: self.behind(first, index), is_escaped: tag.flags & TAG_ESCAPED != 0 };
                        transaction.copies.push((tag.block, copy));
                        used += 1;
                    }
                }
                kind::REVOKE => transaction.revoked.extend(revoked(&bytes)),
                kind::COMMIT => {
                    let done = core::mem::take(&mut transaction);
                    revocations.extend(done.revoked.into_iter().map(|block| (block, log.end)));
                    all.extend(done.copies.into_iter().map(|(block, copy)| (block, log.end, copy)));
                    log.end = log.end.wrapping_add(1);
                }
                _ => break,
            }
            position = self.behind(position, used);
            left = left.saturating_sub(used);
        }
        for (block, sequence, copy) in all {
            // Sequence numbers wrap around.
            let is_revoked = revocations.get(&block).is_some_and(|&by| by.wrapping_sub(sequence) as i32 >= 0);
            if !is_revoked {
                if block >= self.geometry().blocks {
                    return Err(FormatError::Journal(JournalProblem::Target(block)).into());
                }
                log.copies.insert(block, copy);
            }
        }
        Ok(log)
    }

    fn expected_sequence(&self) -> u32 {
        self.journal().borrow().as_ref().map_or(0, |journal| read(&journal.superblock, field::START_SEQUENCE))
    }

    fn ring_blocks(&self) -> u32 {
        self.journal().borrow().as_ref().map_or(0, |journal| journal.blocks - journal.first)
    }

    fn behind(&self, position: u32, blocks: u32) -> u32 {
        self.journal().borrow().as_ref().map_or(0, |journal| journal.behind(position, blocks))
    }

    async fn read_log_block(&self, position: u32) -> Result<Vec<u8>, Error> {
        let place = self.journal().borrow().as_ref().map_or(0, |journal| journal.place(position).0);
        self.read_block(place, <[u8]>::to_vec).await
    }

    /// Reads the content of a logged block.
    async fn read_copy(&self, copy: &Copy) -> Result<Vec<u8>, Error> {
        let mut bytes = self.read_log_block(copy.position).await?;
        if copy.is_escaped {
            write(&mut bytes, field::MAGIC, MAGIC);
        }
        Ok(bytes)
    }

    async fn write_copy(&self, block: u32, copy: &Copy) -> Result<(), Error> {
        let bytes = self.read_copy(copy).await?;
        self.write_metadata(block, 1, |target| target.copy_from_slice(&bytes)).await?;
        self.forget_blocks(block, 1);
        Ok(())
    }

    /// Rereads the superblock if the log contained it.
    async fn read_superblock_again(&self) -> Result<(), Error> {
        let block = self.geometry().first_data_block;
        let start = if block == 0 { superblock::OFFSET as usize } else { 0 };
        let parse = |bytes: &[u8]| {
            let view = bytes.get(start..).and_then(superblock::View::new).ok_or(FormatError::TooSmall(0))?;
            Superblock::parse(&view)
        };
        let found = self.read_block(block, parse).await??;
        let before = self.superblock();
        let shape = |one: &Superblock| {
            let groups = (one.blocks_per_group, one.inodes_per_group, one.inodes, one.inode_bytes);
            (one.block_bytes, one.blocks, groups, one.first_inode)
        };
        if shape(&found) != shape(&before) {
            return Err(FormatError::Journal(JournalProblem::Target(block)).into());
        }
        self.with_superblock(|superblock| *superblock = found);
        Ok(())
    }
}
