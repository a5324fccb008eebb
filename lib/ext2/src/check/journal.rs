//! Journal recovery: replays the journal before anything else is checked.
//!
//! The store does the same at mount; here nothing about the volume is trusted.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::node::Node;
use super::state::{Checker, Replayed};
use super::superblock::feature;
use super::{CheckError, Fault};
use crate::format::error::{FormatError, JournalProblem};
use crate::format::features::{COMPATIBLE_HAS_JOURNAL, INCOMPATIBLE_RECOVER};
use crate::format::inode::{BLOCK_NUMBERS, Kind};
use crate::format::journal::{self, JournalSuperblock, Refusal, TAG_ESCAPED, kind, read, revoked, tags, write};
use crate::format::superblock::{BACKUP_OF_NUMBERS, field};
use crate::format::{read_u32, write_u32};
use block_source::BlockSource;

/// Inode of an internal journal.
pub(super) const JOURNAL_INODE: u32 = 8;
/// Mode of a journal: a file for its owner alone.
const FILE_MODE: u16 = 0o100_600;
/// Bytes of the superblock's copy of the journal's block numbers.
const BACKUP_BYTES: usize = 68;

/// A usable journal.
struct Journal {
    /// Whether it was located by the superblock's copy of its block numbers: the inode is to be restored by the log.
    is_of_copy: bool,
    /// Its blocks, the first of which is its superblock.
    blocks: Vec<u32>,
    says: JournalSuperblock,
}

impl Journal {
    /// Returns the block `count` blocks after another in the ring.
    fn behind(&self, position: u32, count: u32) -> u32 {
        let ring = u64::from(self.says.blocks - self.says.first);
        self.says.first + ((u64::from(position - self.says.first) + u64::from(count)) % ring) as u32
    }

    fn place(&self, position: u32) -> u32 {
        self.blocks.get(position as usize).copied().unwrap_or(0)
    }
}

/// A block in the log.
#[derive(Clone, Copy)]
struct Copy {
    position: u32,
    is_escaped: bool,
}

/// Contents of the log: the last copy of each block, and the sequence number after the last transaction.
struct Log {
    copies: BTreeMap<u32, Copy>,
    end: u32,
}

impl<S: BlockSource> Checker<'_, S> {
    /// Finds and validates the journal, and replays it. Returns whether there was anything to replay.
    pub(super) async fn check_journal(&mut self) -> Result<bool, CheckError> {
        self.journal = 0;
        let number = |offset| read_u32(&self.superblock, offset);
        let (inode, device) = (number(field::JOURNAL_INODE), number(field::JOURNAL_DEVICE));
        let recover = self.volume.incompatible & INCOMPATIBLE_RECOVER != 0;
        let elsewhere = device != 0 || self.superblock[field::JOURNAL_UUID..][..16] != [0; 16];
        if !self.volume.has(feature::HAS_JOURNAL) {
            let fault = if recover { Fault::JournalMissing } else { Fault::JournalFields };
            if (recover || inode != 0 || elsewhere) && self.report(fault).await? {
                self.forget_journal().await?;
            } else if inode == JOURNAL_INODE {
                // It is kept, and so are its blocks.
                self.journal = JOURNAL_INODE;
            }
            return Ok(false);
        }
        if inode == 0 && device != 0 {
            // An external journal is ignored if no transactions are pending in it.
            let waits = CheckError::Volume(FormatError::Journal(JournalProblem::External));
            return if recover { Err(waits) } else { Ok(false) };
        }
        let found = if inode == JOURNAL_INODE { self.find_journal().await? } else { Err(Refusal::Field("the inode")) };
        let log = match found {
            Ok(journal) if recover => self.read_log(&journal).await?.map(|log| (journal, Some(log))),
            Ok(journal) => Some((journal, None)),
            // It is intact, but unsupported here.
            Err(Refusal::Features(flags)) if recover => {
                return Err(CheckError::Volume(FormatError::Journal(JournalProblem::Features(flags))));
            }
            Err(Refusal::Features(_)) => {
                self.journal = JOURNAL_INODE;
                return Ok(false);
            }
            Err(_) => None,
        };
        let Some((journal, log)) = log else {
            if self.report(Fault::JournalDamaged).await? {
                self.forget_journal().await?;
            }
            return Ok(false);
        };
        self.journal = JOURNAL_INODE;
        if elsewhere && self.report(Fault::JournalFields).await? {
            self.forget_elsewhere();
            self.write_superblock().await?;
        }
        match log {
            Some(log) => {
                self.replay(&journal, &log).await?;
                let is_restored = !journal.is_of_copy || self.journal_node(false).await?.is_some();
                if !is_restored && self.report(Fault::JournalDamaged).await? {
                    self.forget_journal().await?;
                }
                Ok(true)
            }
            None => self.check_leftovers(&journal).await.map(|()| false),
        }
    }

    async fn find_journal(&mut self) -> Result<Result<Journal, Refusal>, CheckError> {
        let recover = self.volume.incompatible & INCOMPATIBLE_RECOVER != 0;
        let (node, is_of_copy) = match self.journal_node(false).await? {
            Some(node) => (node, false),
            None if recover => match self.journal_node(true).await? {
                Some(node) => (node, true),
                None => return Ok(Err(Refusal::Field("the inode"))),
            },
            None => return Ok(Err(Refusal::Field("the inode"))),
        };
        let block_bytes = self.volume.geometry.block_bytes;
        let blocks = node.size() / u64::from(block_bytes);
        let mapped = self.journal_blocks(&node).await?;
        let whole = (0..blocks).zip(&mapped).filter(|(logical, found)| found.0 == *logical).count() as u64 == blocks;
        let blocks: Vec<u32> = mapped.into_iter().map(|(_, block)| block).collect();
        let Some(&first) = blocks.first().filter(|_| whole) else { return Ok(Err(Refusal::Field("the inode"))) };
        let bytes = self.read_block(first).await?;
        let parsed = JournalSuperblock::parse(&bytes, block_bytes, blocks.len() as u32);
        Ok(parsed.map(|says| Journal { is_of_copy, blocks, says }))
    }

    /// Returns the journal's inode if it is usable: the one in its place, or what the superblock's copy of its block
    /// numbers and size makes of an unused one. A journal is created with a copy, which is durable before the inode.
    async fn journal_node(&mut self, of_copy: bool) -> Result<Option<Node>, CheckError> {
        let mut node = self.load(JOURNAL_INODE).await?;
        if of_copy {
            let is_there = self.superblock[field::JOURNAL_BACKUP_KIND] == BACKUP_OF_NUMBERS;
            if !is_there || node.kind().is_some() {
                return Ok(None);
            }
            let number = |index: usize| read_u32(&self.superblock, field::JOURNAL_BACKUP + index * 4);
            node.set_mode(FILE_MODE);
            node.set_links(1);
            node.set_numbers(&core::array::from_fn(number));
            node.set_size(u64::from(number(BLOCK_NUMBERS)) << 32 | u64::from(number(BLOCK_NUMBERS + 1)));
        }
        let blocks = node.size() / u64::from(self.volume.geometry.block_bytes);
        let is_plain = node.kind() == Some(Kind::File) && node.links() > 0 && self.legal_numbers(&node).1.is_none();
        Ok(Some(node).filter(|_| is_plain && blocks <= self.volume.geometry.blocks.into()))
    }

    /// Returns the journal's blocks; none if one of them is metadata.
    async fn journal_blocks(&mut self, node: &Node) -> Result<Vec<(u64, u32)>, CheckError> {
        // Three levels would exceed the maximum size of a journal.
        if node.numbers()[14] != 0 {
            return Ok(Vec::new());
        }
        let mapped = self.data_blocks(node).await?;
        let clear = mapped.iter().all(|&(_, block)| !self.is_metadata(block));
        Ok(if clear { mapped } else { Vec::new() })
    }

    /// Checks a journal marked as empty that is not: its transactions are older than the volume.
    async fn check_leftovers(&mut self, journal: &Journal) -> Result<(), CheckError> {
        if journal.says.start != 0 && self.report(Fault::JournalStale).await? {
            self.empty_journal(journal, journal.says.sequence).await?;
        }
        Ok(())
    }

    /// Reads the log from its start to the last transaction with a commit block; `None` if it is unreadable.
    async fn read_log(&mut self, journal: &Journal) -> Result<Option<Log>, CheckError> {
        let says = journal.says;
        let mut end = says.sequence;
        let mut revocations: BTreeMap<u32, u32> = BTreeMap::new();
        let mut all: Vec<(u32, u32, Copy)> = Vec::new();
        let (mut copies, mut taken_back) = (Vec::new(), Vec::new());
        let mut left = if says.start == 0 { 0 } else { says.blocks - says.first };
        let mut position = says.start;
        while left > 0 {
            let bytes = self.read_block(journal.place(position)).await?;
            let mine = read(&bytes, journal::field::MAGIC) == journal::MAGIC;
            if !mine || read(&bytes, journal::field::SEQUENCE) != end {
                break;
            }
            let mut used = 1;
            match read(&bytes, journal::field::KIND) {
                kind::DESCRIPTOR => {
                    for tag in tags(&bytes) {
                        let is_escaped = tag.flags & TAG_ESCAPED != 0;
                        copies.push((tag.block, Copy { position: journal.behind(position, used), is_escaped }));
                        used += 1;
                    }
                }
                kind::REVOKE => taken_back.extend(revoked(&bytes)),
                kind::COMMIT => {
                    revocations.extend(taken_back.drain(..).map(|block| (block, end)));
                    all.extend(copies.drain(..).map(|(block, copy)| (block, end, copy)));
                    end = end.wrapping_add(1);
                }
                _ => break,
            }
            position = journal.behind(position, used);
            left = left.saturating_sub(used);
        }
        // Sequence numbers wrap.
        let is_revoked = |block: u32, sequence: u32| {
            revocations.get(&block).is_some_and(|&by| by.wrapping_sub(sequence) as i32 >= 0)
        };
        all.retain(|&(block, sequence, _)| !is_revoked(block, sequence));
        let possible = all.iter().all(|&(block, ..)| block < self.volume.geometry.blocks);
        let copies = all.into_iter().map(|(block, _, copy)| (block, copy)).collect();
        Ok(possible.then_some(Log { copies, end }))
    }

    /// Replays the log.
    async fn replay(&mut self, journal: &Journal, log: &Log) -> Result<(), CheckError> {
        let repair = self.report(Fault::JournalNotReplayed).await?;
        for (&block, copy) in &log.copies {
            self.copy_block(journal.place(copy.position), block).await?;
            if copy.is_escaped {
                let mut bytes = self.read_block(block).await?;
                write(&mut bytes, journal::field::MAGIC, journal::MAGIC);
                self.write_block(block, &bytes).await?;
            }
        }
        for &block in log.copies.keys().chain(&journal.blocks) {
            self.reserved.insert(block);
        }
        self.read_superblock_again().await?;
        if !repair {
            return Ok(());
        }
        self.replayed = Some(Replayed::Gone);
        if self.volume.has(feature::HAS_JOURNAL) {
            // Skips a transaction that may have been started.
            self.empty_journal(journal, log.end.wrapping_add(1)).await?;
            self.replayed = Some(Replayed::Emptied(journal.place(0)));
        }
        self.volume.incompatible &= !INCOMPATIBLE_RECOVER;
        write_u32(&mut self.superblock, field::INCOMPATIBLE, self.volume.incompatible);
        self.write_superblock().await
    }

    async fn empty_journal(&mut self, journal: &Journal, sequence: u32) -> Result<(), CheckError> {
        let block = journal.place(0);
        let mut bytes = self.read_block(block).await?;
        write(&mut bytes, journal::field::START, 0);
        write(&mut bytes, journal::field::START_SEQUENCE, sequence);
        self.write_block(block, &bytes).await
    }

    /// Removes the journal from the superblock. Its inode is then unused.
    async fn forget_journal(&mut self) -> Result<(), CheckError> {
        self.volume.compatible &= !COMPATIBLE_HAS_JOURNAL;
        self.volume.incompatible &= !INCOMPATIBLE_RECOVER;
        write_u32(&mut self.superblock, field::COMPATIBLE, self.volume.compatible);
        write_u32(&mut self.superblock, field::INCOMPATIBLE, self.volume.incompatible);
        write_u32(&mut self.superblock, field::JOURNAL_INODE, 0);
        self.superblock[field::JOURNAL_BACKUP_KIND] = 0;
        self.superblock[field::JOURNAL_BACKUP..field::JOURNAL_BACKUP + BACKUP_BYTES].fill(0);
        self.forget_elsewhere();
        self.write_superblock().await
    }

    /// Removes the external journal from the superblock.
    fn forget_elsewhere(&mut self) {
        write_u32(&mut self.superblock, field::JOURNAL_DEVICE, 0);
        self.superblock[field::JOURNAL_UUID..field::JOURNAL_UUID + 16].fill(0);
    }
}
