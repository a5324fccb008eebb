//! The journal: commits are logged before they are written in place.
//!
//! The format is ext3's, so that `e2fsck` and Linux can replay it. A volume without a journal has one while it is
//! mounted for writing ([`life`]); mounting replays a journal left by a crash ([`replay`]). Each transaction follows
//! its predecessor in the ring, and the log on the disk starts at the last transaction or the one before.

mod life;
mod replay;

use alloc::vec::Vec;

use crate::error::{Error, ReadOnlyReason};
use crate::format::error::JournalProblem;
use crate::format::journal::{
    HEADER_BYTES, JournalSuperblock, MAGIC, Refusal, TAG_BYTES, TAG_ESCAPED, TAG_LAST, TAG_SAME_UUID, UUID_BYTES,
    field, kind, read, tags_per_block, write, write_header,
};
use crate::source::BlockSource;
use crate::store::Store;

/// UUID of journals that are removed at unmount.
const TRANSIENT: [u8; UUID_BYTES] = *b"while mounted, 1";
/// As `TRANSIENT`, on a volume of revision 0, which must be revision 1 to have a journal.
const TRANSIENT_OLD: [u8; UUID_BYTES] = *b"while mounted, 0";

/// An extent of a journal: its first block in the journal and on the volume, and its length.
type Row = (u32, u32, u32);

/// Location and state of a journal.
pub(crate) struct Journal {
    /// Extents of its blocks.
    rows: Vec<Row>,
    /// Indirect blocks of its file.
    tables: Vec<u32>,
    /// Inode of the journal.
    inode: u32,
    blocks: u32,
    first: u32,
    /// Sequence number of the next transaction, and its position in the ring.
    sequence: u32,
    head: u32,
    /// Content of its first block.
    superblock: Vec<u8>,
    uuid: [u8; UUID_BYTES],
    block_bytes: usize,
}

/// A block of a transaction, except the commit block.
#[derive(Clone, Copy)]
enum Item {
    /// Index of the first block that it describes, and their number.
    Descriptor(usize, usize),
    /// A copy of a block.
    Copy(usize),
}

impl Journal {
    fn new(rows: Vec<Row>, tables: Vec<u32>, inode: u32, superblock: Vec<u8>) -> Result<Journal, JournalProblem> {
        let block_bytes = superblock.len();
        let file_blocks = rows.last().map_or(0, |row| row.0 + row.2);
        // One of 1024, 2048 and 4096.
        let parsed = JournalSuperblock::parse(&superblock, block_bytes as u32, file_blocks);
        let parsed = parsed.map_err(|refusal| match refusal {
            Refusal::Magic(found) => JournalProblem::Magic(found),
            Refusal::Field(field) => JournalProblem::Field(field),
            Refusal::Features(flags) => JournalProblem::Features(flags),
        })?;
        Ok(Journal {
            rows,
            tables,
            inode,
            blocks: parsed.blocks,
            first: parsed.first,
            sequence: parsed.sequence.wrapping_add(1),
            head: parsed.first,
            superblock,
            uuid: parsed.uuid,
            block_bytes,
        })
    }

    fn is_transient(&self) -> bool {
        self.uuid == TRANSIENT || self.uuid == TRANSIENT_OLD
    }

    /// Maximum metadata blocks of a transaction: two transactions must fit into the ring.
    pub(crate) fn max_blocks(&self) -> usize {
        let per_descriptor = tags_per_block(self.block_bytes as u32) as usize;
        let half = (self.blocks - self.first) as usize / 2 - 1;
        half * per_descriptor / (per_descriptor + 1) - 1
    }

    /// Returns the ring position `blocks` blocks after another.
    fn behind(&self, position: u32, blocks: u32) -> u32 {
        let ring = u64::from(self.blocks - self.first);
        let offset = u64::from(position - self.first) + u64::from(blocks);
        self.first + (offset % ring) as u32
    }

    /// Returns the volume block of a journal block, and the number of contiguous blocks from there, at most to the end
    /// of the ring.
    fn place(&self, position: u32) -> (u32, u32) {
        let index = self.rows.partition_point(|row| row.0 <= position).saturating_sub(1);
        let Some(&(first, block, count)) = self.rows.get(index) else { return (0, 0) };
        let within = position - first;
        (block + within, (count - within).min(self.blocks - position))
    }

    /// Returns whether any block of an extent belongs to the journal.
    fn has(&self, first: u32, count: u32) -> bool {
        let touches = |start: u32, blocks: u32| {
            u64::from(start) < u64::from(first) + u64::from(count)
                && u64::from(start) + u64::from(blocks) > u64::from(first)
        };
        self.rows.iter().any(|row| touches(row.1, row.2)) || self.tables.iter().any(|&table| touches(table, 1))
    }

    /// Sets the start of the log in the first block; 0 means an empty log.
    fn set_start(&mut self, sequence: u32, start: u32) {
        write(&mut self.superblock, field::START_SEQUENCE, sequence);
        write(&mut self.superblock, field::START, start);
    }

    /// Returns the blocks of a transaction with this many metadata blocks, in order.
    fn items(&self, blocks: usize) -> Vec<Item> {
        let per_descriptor = tags_per_block(self.block_bytes as u32) as usize;
        let mut items = Vec::with_capacity(blocks + blocks.div_ceil(per_descriptor));
        for first in (0..blocks).step_by(per_descriptor) {
            let count = per_descriptor.min(blocks - first);
            items.push(Item::Descriptor(first, count));
            items.extend((first..first + count).map(Item::Copy));
        }
        items
    }

    /// Fills in a descriptor block: for each block its number and whether it is escaped.
    fn describe(&self, target: &mut [u8], blocks: impl ExactSizeIterator<Item = (u32, bool)>) {
        target.fill(0);
        write_header(target, kind::DESCRIPTOR, self.sequence);
        let (count, mut offset) = (blocks.len(), HEADER_BYTES);
        for (index, (block, is_escaped)) in blocks.enumerate() {
            let mut flags = if is_escaped { TAG_ESCAPED } else { 0 };
            flags |= if index > 0 { TAG_SAME_UUID } else { 0 };
            flags |= if index + 1 == count { TAG_LAST } else { 0 };
            write(target, offset, block);
            write(target, offset + 4, flags);
            offset += TAG_BYTES;
            if index == 0 {
                target[offset..offset + UUID_BYTES].copy_from_slice(&self.uuid);
                offset += UUID_BYTES;
            }
        }
    }
}

/// Returns whether a copy of a block could be mistaken for a journal metadata block.
fn needs_escape(bytes: &[u8]) -> bool {
    read(bytes, field::MAGIC) == MAGIC
}

impl<S: BlockSource> Store<S> {
    /// Returns whether any block of an extent belongs to the journal.
    pub(crate) fn journal_has(&self, first: u32, count: u32) -> bool {
        self.journal().borrow().as_ref().is_some_and(|journal| journal.has(first, count))
    }

    /// Logs a transaction of the frozen blocks with these numbers durably.
    pub(crate) async fn log(&self, blocks: &[u32]) -> Result<(), Error> {
        self.write_log(blocks).await?;
        self.flush().await?;
        self.write_commit(blocks.len()).await?;
        self.flush().await
    }

    /// Writes descriptors and copies.
    async fn write_log(&self, blocks: &[u32]) -> Result<(), Error> {
        let (items, head) = {
            let journal = self.journal().borrow();
            let Some(journal) = journal.as_ref() else { return Ok(()) };
            if blocks.len() > journal.max_blocks() {
                return Err(self.fail(ReadOnlyReason::TooLarge));
            }
            (journal.items(blocks.len()), journal.head)
        };
        let mut done = 0;
        let items = &items;
        self.each(|| {
            let journal = self.journal().borrow();
            let journal = journal.as_ref().filter(|_| done < items.len())?;
            let (block, row) = journal.place(journal.behind(head, done as u32));
            let count = (row as usize).clamp(1, self.geometry().page_blocks).min(items.len() - done);
            let part = &items[done..done + count];
            done += count;
            let fill = move |target: &mut [u8]| self.fill_log(part, blocks, target);
            Some(self.write_metadata(block, count, fill))
        })
        .await
    }

    fn fill_log(&self, items: &[Item], blocks: &[u32], target: &mut [u8]) {
        let journal = self.journal().borrow();
        let Some(journal) = journal.as_ref() else { return };
        for (item, target) in items.iter().zip(target.chunks_exact_mut(journal.block_bytes)) {
            match *item {
                Item::Descriptor(first, count) => {
                    let described = blocks[first..first + count].iter();
                    let is_escaped = |block: u32| self.with_frozen(block, needs_escape).unwrap_or(false);
                    journal.describe(target, described.map(|&block| (block, is_escaped(block))));
                }
                Item::Copy(index) => {
                    self.with_frozen(blocks[index], |bytes| target.copy_from_slice(bytes));
                    if needs_escape(target) {
                        write(target, field::MAGIC, 0);
                    }
                }
            }
        }
    }

    /// Writes the commit block of a transaction with this many blocks, and moves the start of the log to that
    /// transaction.
    async fn write_commit(&self, blocks: usize) -> Result<(), Error> {
        let (commit, superblock, sequence) = {
            let mut journal = self.journal().borrow_mut();
            let Some(journal) = journal.as_mut() else { return Ok(()) };
            let (start, sequence) = (journal.head, journal.sequence);
            let items = blocks + blocks.div_ceil(tags_per_block(journal.block_bytes as u32) as usize);
            // At most half the ring.
            let end = journal.behind(start, items as u32);
            journal.head = journal.behind(end, 1);
            journal.sequence = sequence.wrapping_add(1);
            journal.set_start(sequence, start);
            (journal.place(end).0, journal.place(0).0, sequence)
        };
        let now_s = self.now_s();
        let mut places = [commit, superblock].into_iter();
        self.each(|| {
            let block = places.next()?;
            let fill = move |target: &mut [u8]| {
                if block == commit {
                    target.fill(0);
                    write_header(target, kind::COMMIT, sequence);
                    write(target, field::COMMIT_SECONDS + 4, now_s);
                } else if let Some(journal) = self.journal().borrow().as_ref() {
                    target.copy_from_slice(&journal.superblock);
                }
            };
            Some(self.write_metadata(block, 1, fill))
        })
        .await
    }

    /// Writes an empty log to the disk.
    async fn write_empty(&self) -> Result<(), Error> {
        let place = {
            let mut journal = self.journal().borrow_mut();
            let Some(journal) = journal.as_mut() else { return Ok(()) };
            journal.set_start(journal.sequence, 0);
            (journal.head, journal.sequence) = (journal.first, journal.sequence.wrapping_add(1));
            journal.place(0).0
        };
        let fill = |target: &mut [u8]| {
            if let Some(journal) = self.journal().borrow().as_ref() {
                target.copy_from_slice(&journal.superblock);
            }
        };
        self.write_metadata(place, 1, fill).await
    }
}
