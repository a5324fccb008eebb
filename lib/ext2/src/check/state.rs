//! State of a check: reported and repaired faults.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::bits::{Bits, filled};
use super::device::{self, Device};
use super::find;
use super::node::Node;
use super::superblock::{self, Volume};
use super::{CheckError, CheckOptions, Cost, Done, Fault, Finding, Mode};
use crate::format::superblock as wire;
use block_source::BlockSource;

/// Superblock state: cleanly unmounted.
pub(super) const STATE_CLEAN: u16 = 1;
/// Superblock state: errors detected.
pub(super) const STATE_ERRORS: u16 = 2;

/// Flags of an inode found so far: the kind in the lower bits, as in a directory entry, and these.
pub(super) mod known {
    pub(crate) const KIND: u8 = 0x07;
    /// It is in use.
    pub(crate) const USED: u8 = 0x08;
    /// Some of its tables hold impossible numbers.
    pub(crate) const ILLEGAL_TABLES: u8 = 0x10;
    /// Its blocks must not be walked.
    pub(crate) const TANGLED: u8 = 0x20;
    /// Attributes in the inode.
    pub(crate) const ATTRIBUTES: u8 = 0x40;
}

/// Position of a folder in the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Folder {
    pub(super) number: u32,
    /// Folder with an entry for it, 0 if none.
    pub(super) parent: u32,
    /// Inode of its `..`.
    pub(super) dot_dot: u32,
    /// Last walk towards the root that passed through.
    pub(super) walk: u32,
}

/// State of a replayed journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replayed {
    /// Kept; its first block is this one.
    Emptied(u32),
    /// Removed.
    Gone,
}

/// Users of an attribute block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttributeUse {
    pub(super) says: u32,
    pub(super) users: u32,
    pub(super) damaged: bool,
}

pub(super) struct Checker<'a, S: BlockSource> {
    pub(super) device: Device<'a, S>,
    /// Repairs that are still allowed.
    pub(super) mode: Mode,
    /// Repairs requested by the caller.
    pub(super) asked: Mode,
    report: &'a mut dyn FnMut(&Finding),
    pub(super) volume: Volume,
    /// Primary superblock, as it is or will be on the disk.
    pub(super) superblock: Vec<u8>,
    /// Group descriptors, likewise.
    pub(super) descriptors: Vec<u8>,
    /// Blocks in use.
    pub(super) found: Bits,
    /// Blocks used at any time during the check, or that a journal lies in or writes: a repair that reused them could
    /// not be resumed after a crash.
    pub(super) reserved: Bits,
    /// Free blocks that the repair has allocated.
    pub(super) new_blocks: Bits,
    /// Inodes used at any time during the check.
    pub(super) used_before: Bits,
    /// Unreadable blocks of inode tables, from the bad blocks inode. Their content is lost.
    pub(super) bad_blocks: BTreeSet<u32>,
    /// Blocks with several owners, if there are any.
    pub(super) shared: Option<Bits>,
    /// [`known`] flags of each inode.
    pub(super) inodes: Vec<u8>,
    /// Link count stored in each inode.
    pub(super) links: Vec<u16>,
    /// Links found so far.
    pub(super) names: Vec<u16>,
    /// All folders, by number.
    pub(super) folders: Vec<Folder>,
    pub(super) attributes: BTreeMap<u32, AttributeUse>,
    /// Inodes on the orphan list.
    pub(super) orphans: Bits,
    /// Those that were being truncated, in list order.
    pub(super) cut_orphans: Vec<u32>,
    /// Inode of the journal, 0 if there is none.
    pub(super) journal: u32,
    /// State of a replayed journal.
    pub(super) replayed: Option<Replayed>,
    /// Whether the resize inode must be recreated.
    pub(super) resize_damaged: bool,
    /// Blocks of tables that may still be walked a second time.
    pub(super) revisits: u64,
    pub(super) needs_large_file: bool,
    /// `lost+found`, once found.
    pub(super) lost: Option<super::lost::Lost>,
    /// Where the search for a free block starts.
    pub(super) next_free: u32,
    round: u32,
    /// Faults of this round: repaired, which needs another round, and not repaired.
    pub(super) repaired_here: u64,
    pub(super) left_here: u64,
    /// Unrepaired fault from before the first round: no superblock.
    pub(super) left_before: u64,
    pub(super) faults: u64,
    pub(super) repaired: u64,
    /// Whether the superblock is marked as faulty because of a fault that is being repaired.
    pub(super) marked: bool,
}

impl<'a, S: BlockSource> Checker<'a, S> {
    /// Finds the superblock.
    pub(super) async fn open(
        source: &'a S,
        options: &CheckOptions,
        report: &'a mut dyn FnMut(&Finding),
    ) -> Result<Checker<'a, S>, CheckError> {
        let mut device = Device::new(source);
        if options.mode != Mode::Report {
            device.prepare_writing()?;
        }
        let found = find::find(&mut device).await?;
        let needed = needed_bytes(&found.volume);
        let Some(rest) = options.memory_bytes.checked_sub(needed) else {
            return Err(CheckError::MemoryLimit { needed, allowed: options.memory_bytes });
        };
        device.overlay.set_limit(rest);
        let mut checker = Checker {
            device,
            mode: options.mode,
            asked: options.mode,
            report,
            volume: found.volume,
            superblock: found.bytes,
            descriptors: Vec::new(),
            found: Bits::default(),
            reserved: Bits::new(found.volume.geometry.blocks)?,
            new_blocks: Bits::new(found.volume.geometry.blocks)?,
            used_before: Bits::new(found.volume.inodes() + 1)?,
            bad_blocks: BTreeSet::new(),
            shared: None,
            inodes: Vec::new(),
            links: Vec::new(),
            names: Vec::new(),
            folders: Vec::new(),
            attributes: BTreeMap::new(),
            orphans: Bits::default(),
            cut_orphans: Vec::new(),
            journal: 0,
            replayed: None,
            resize_damaged: false,
            revisits: 0,
            needs_large_file: false,
            lost: None,
            next_free: 0,
            round: 0,
            repaired_here: 0,
            left_here: 0,
            left_before: 0,
            faults: 0,
            repaired: 0,
            marked: false,
        };
        if let Some(backup) = found.backup {
            let fault = match found.inode_size_only {
                true => Fault::InodeSizeMissing { backup },
                false => Fault::SuperblockLost { backup },
            };
            if !fault.is_note() && checker.mode == Mode::Preen {
                // Writing needs a superblock.
                checker.mode = Mode::Report;
            }
            if checker.may_fix(&fault) {
                checker.write_superblock().await?;
            }
            let is_note = fault.is_note();
            checker.left_before = u64::from(!checker.report(fault).await? && !is_note);
        }
        checker.take_up_repair().await?;
        Ok(checker)
    }

    /// Resets the findings of the previous round.
    pub(super) fn begin_round(&mut self, round: u32) -> Result<(), CheckError> {
        let (blocks, inodes) = (self.volume.geometry.blocks, self.volume.inodes());
        (self.round, self.repaired_here, self.left_here) = (round, 0, 0);
        (self.found, self.shared) = (Bits::default(), None);
        self.found = Bits::new(blocks)?;
        // Freed before reallocation, to bound the memory.
        (self.inodes, self.links, self.names) = (Vec::new(), Vec::new(), Vec::new());
        self.inodes = filled(inodes as usize + 1, 0)?;
        self.links = filled(inodes as usize + 1, 0)?;
        self.names = filled(inodes as usize + 1, 0)?;
        self.folders.clear();
        self.attributes.clear();
        self.revisits = u64::from(blocks);
        self.needs_large_file = false;
        self.lost = None;
        self.next_free = self.volume.geometry.first_data_block;
        Ok(())
    }

    /// Runs one round.
    pub(super) async fn go_round(&mut self) -> Result<(), CheckError> {
        self.check_superblock().await?;
        self.check_groups().await?;
        if self.check_journal().await? {
            // Earlier reads may be stale.
            self.found = Bits::new(self.volume.geometry.blocks)?;
            self.check_superblock().await?;
            self.check_groups().await?;
        }
        self.read_orphans().await?;
        self.check_inodes().await?;
        self.reserve_used();
        self.give_copies().await?;
        self.clear_illegal_tables().await?;
        self.repair_resize_inode().await?;
        self.finish_orphans().await?;
        self.count_attribute_uses().await?;
        self.check_folders().await?;
        self.connect().await?;
        self.check_links().await?;
        self.check_totals().await?;
        self.check_features().await?;
        self.check_backups().await
    }

    pub(super) fn has_repaired_in_round(&self) -> bool {
        self.repaired_here > 0
    }

    /// Returns whether a fault may be repaired.
    pub(super) fn may_fix(&self, fault: &Fault) -> bool {
        match self.mode {
            Mode::Report => false,
            Mode::Preen => fault.cost() == Cost::Nothing,
            Mode::Repair => true,
        }
    }

    /// Reports a fault; returns whether the caller must repair it.
    pub(super) async fn report(&mut self, fault: Fault) -> Result<bool, CheckError> {
        let repair = self.may_fix(&fault);
        if repair {
            self.mark();
        }
        self.report_done(fault, if repair { Done::Repaired } else { Done::Left });
        Ok(repair)
    }

    /// Reports a fault that is not repaired: there is no room, or repairs are not allowed.
    pub(super) fn report_no_room(&mut self, fault: Fault) {
        let done = if self.may_fix(&fault) { Done::NoRoom } else { Done::Left };
        self.report_done(fault, done);
    }

    fn report_done(&mut self, fault: Fault, done: Done) {
        if done == Done::Left && fault.is_note() {
            if self.round == 0 {
                (self.report)(&Finding { fault, done });
            }
            return;
        }
        if done == Done::Repaired {
            self.repaired += 1;
            // These do not affect other checks.
            let alone = matches!(
                fault,
                Fault::NotClean
                    | Fault::ErrorsRecorded
                    | Fault::BackupSuperblock { .. }
                    | Fault::BackupDescriptors { .. }
            );
            self.repaired_here += u64::from(!alone);
        } else {
            self.left_here += 1;
            if self.round > 0 {
                // It was reported in the first round, or follows from a reported fault.
                return;
            }
        }
        self.faults += 1;
        (self.report)(&Finding { fault, done });
    }

    /// Records that there are changes.
    pub(super) fn mark(&mut self) {
        self.marked = true;
    }

    /// Rereads the superblock after recovery of a journal that contained it.
    pub(super) async fn read_superblock_again(&mut self) -> Result<(), CheckError> {
        let bytes = self.device.read(wire::OFFSET, wire::BYTES).await?;
        let volume = superblock::examine(&bytes, self.device.bytes())?;
        if volume.geometry != self.volume.geometry {
            let says = u64::from(volume.geometry.blocks);
            return Err(CheckError::Superblock { field: "blocks_count in the journal's copy", says });
        }
        (self.volume, self.superblock) = (volume, bytes);
        Ok(())
    }

    pub(super) fn is_marked(&self) -> bool {
        self.marked
    }

    pub(super) fn is_first_round(&self) -> bool {
        self.round == 0
    }

    pub(super) async fn write_superblock(&mut self) -> Result<(), CheckError> {
        self.device.write(wire::OFFSET, &self.superblock).await
    }

    pub(super) async fn read_block(&mut self, block: u32) -> Result<Vec<u8>, CheckError> {
        let bytes = self.volume.geometry.block_bytes;
        self.device.read(u64::from(block) * u64::from(bytes), bytes as usize).await
    }

    pub(super) async fn write_block(&mut self, block: u32, bytes: &[u8]) -> Result<(), CheckError> {
        let offset = u64::from(block) * u64::from(self.volume.geometry.block_bytes);
        self.device.write(offset, bytes).await
    }

    /// Copies the content of a block to another.
    pub(super) async fn copy_block(&mut self, from: u32, to: u32) -> Result<(), CheckError> {
        let bytes = self.volume.geometry.block_bytes;
        let offset = |block: u32| u64::from(block) * u64::from(bytes);
        self.device.copy(offset(from), offset(to), bytes as usize).await
    }

    /// Returns the block that holds an inode, and its offset there.
    pub(super) fn place_of(&self, number: u32) -> (u32, usize) {
        let geometry = &self.volume.geometry;
        let (group, index) = ((number - 1) / geometry.inodes_per_group, (number - 1) % geometry.inodes_per_group);
        let per_block = geometry.block_bytes / geometry.inode_bytes;
        let table = self.descriptor(group).inode_table;
        (table + index / per_block, (index % per_block * geometry.inode_bytes) as usize)
    }

    /// Reads an inode of the volume.
    pub(super) async fn load(&mut self, number: u32) -> Result<Node, CheckError> {
        let (block, at) = self.place_of(number);
        let bytes = self.read_block(block).await?;
        Ok(Node { number, bytes: bytes[at..at + self.volume.geometry.inode_bytes as usize].to_vec() })
    }

    pub(super) async fn store(&mut self, node: &Node) -> Result<(), CheckError> {
        let (block, at) = self.place_of(node.number);
        let mut bytes = self.read_block(block).await?;
        bytes[at..at + node.bytes.len()].copy_from_slice(&node.bytes);
        self.write_block(block, &bytes).await
    }

    /// Returns whether an inode lies in a bad block.
    pub(super) fn is_unreadable(&self, inode: u32) -> bool {
        !self.bad_blocks.is_empty() && self.bad_blocks.contains(&self.place_of(inode).0)
    }

    /// [`known`] flags of an inode, 0 for one outside the volume.
    pub(super) fn known(&self, number: u32) -> u8 {
        self.inodes.get(number as usize).copied().unwrap_or(0)
    }

    pub(super) fn is_used(&self, number: u32) -> bool {
        self.known(number) & known::USED != 0
    }

    pub(super) fn is_folder(&self, number: u32) -> bool {
        self.known(number) & (known::USED | known::KIND) == known::USED | superblock::KIND_FOLDER
    }

    /// Increments or decrements the link count of an inode.
    pub(super) fn count_name(&mut self, number: u32, more: bool) {
        if let Some(names) = self.names.get_mut(number as usize) {
            *names = if more { names.saturating_add(1) } else { names.saturating_sub(1) };
        }
    }

    pub(super) fn folder_index(&self, number: u32) -> Option<usize> {
        self.folders.binary_search_by_key(&number, |folder| folder.number).ok()
    }

    /// Reserves the blocks in use.
    fn reserve_used(&mut self) {
        self.reserved.insert_all(&self.found);
        for inode in 1..=self.volume.inodes() {
            if self.is_used(inode) {
                self.used_before.insert(inode);
            }
        }
    }

    /// Takes a block that is and was unused.
    pub(super) fn take_block(&mut self) -> Option<u32> {
        let (first, end) = (self.volume.geometry.first_data_block, self.volume.geometry.blocks);
        let taken = [&self.found, &self.reserved];
        let block =
            Bits::first_gap(taken, self.next_free, end).or_else(|| Bits::first_gap(taken, first, self.next_free))?;
        self.found.insert(block);
        self.new_blocks.insert(block);
        self.next_free = block;
        Some(block)
    }

    /// Returns whether a number can be that of a file's block.
    pub(super) fn is_legal(&self, block: u32) -> bool {
        (self.volume.geometry.first_data_block..self.volume.geometry.blocks).contains(&block)
    }

    pub(super) fn used_blocks(&self) -> u32 {
        let geometry = &self.volume.geometry;
        (geometry.first_data_block..geometry.blocks).filter(|&block| self.found.has(block)).count() as u32
    }
}

/// Memory for the check of a volume, in bytes.
fn needed_bytes(volume: &Volume) -> u64 {
    let geometry = &volume.geometry;
    let (blocks, inodes) = (u64::from(geometry.blocks), u64::from(volume.inodes()));
    let descriptors = u64::from(geometry.descriptor_blocks) * u64::from(geometry.block_bytes);
    let folders = size_of::<Folder>() as u64 * inodes / 4;
    blocks.div_ceil(8) * 5
        + inodes.div_ceil(8) * 2
        + inodes * 5
        + folders
        + descriptors
        + device::MEMORY_BYTES
        + super::names::MEMORY_BYTES
}
