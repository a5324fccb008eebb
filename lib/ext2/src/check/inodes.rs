//! All inodes: their fields, and the blocks they claim.

use super::journal::JOURNAL_INODE;
use super::node::{Node, ZERO_FIELDS, flag};
use super::state::{Checker, known};
use super::superblock::feature;
use super::tree::{Claim, Step, Tree};
use super::{CheckError, Fault};
use crate::format::ROOT_INODE;
use crate::format::inode::{BLOCK_NUMBERS, DIRECT_BLOCKS, Kind, field};
use crate::format::superblock::field as superblock;
use crate::format::{read_u16, read_u32, write_u32};
use block_source::BlockSource;

const BAD_BLOCKS_INODE: u32 = 1;
const BOOT_INODE: u32 = 5;
const RESIZE_INODE: u32 = 7;
/// Files from this size on need the feature `large_file`.
const LARGE_FILE: u64 = 1 << 31;
/// Offsets of times and of their extensions. The two lowest bits of an extension extend the time.
const TIMES: [(usize, usize); 4] = [
    (field::CHANGE_TIME, field::CHANGE_EXTRA),
    (field::MODIFY_TIME, field::MODIFY_EXTRA),
    (field::ACCESS_TIME, field::ACCESS_EXTRA),
    (field::MADE_TIME, field::MADE_TIME + 4),
];

/// Result of walking an inode's blocks.
#[derive(Default)]
struct Walked {
    /// Number of blocks, including tables.
    blocks: u64,
    /// The last block of the file that is not a hole.
    last: Option<u64>,
    tangled: bool,
}

impl<S: BlockSource> Checker<'_, S> {
    pub(super) async fn check_inodes(&mut self) -> Result<(), CheckError> {
        let geometry = self.volume.geometry;
        let (inode_bytes, per_block) = (geometry.inode_bytes as usize, geometry.block_bytes / geometry.inode_bytes);
        self.list_bad_blocks().await?;
        for group in 0..geometry.groups {
            let table = self.descriptor(group).inode_table;
            for first in (0..geometry.inodes_per_group).step_by(per_block as usize) {
                let block = table + first / per_block;
                if self.bad_blocks.contains(&block) {
                    continue;
                }
                let mut bytes = self.read_block(block).await?;
                let mut changed = false;
                let count = per_block.min(geometry.inodes_per_group - first);
                for (index, place) in (0..count).zip(bytes.chunks_exact_mut(inode_bytes)) {
                    let mut node =
                        Node { number: group * geometry.inodes_per_group + first + index + 1, bytes: place.to_vec() };
                    self.check_inode(&mut node).await?;
                    if node.bytes != place {
                        place.copy_from_slice(&node.bytes);
                        changed = true;
                    }
                }
                if changed {
                    self.write_block(block, &bytes).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads the list of bad blocks.
    async fn list_bad_blocks(&mut self) -> Result<(), CheckError> {
        self.bad_blocks.clear();
        let node = self.load(BAD_BLOCKS_INODE).await?;
        let (numbers, _) = self.legal_numbers(&node);
        let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
        // Bounds the list in case of cyclic tables.
        let mut left = self.volume.geometry.blocks;
        // The list itself needs this block.
        let own = self.place_of(BAD_BLOCKS_INODE).0;
        while let Step::Claim(claim) = tree.next() {
            left -= 1;
            if left == 0 {
                self.bad_blocks.clear();
                break;
            }
            if claim.depth > 0 {
                let mut bytes = self.read_block(claim.block).await?;
                self.take_illegal(&mut bytes, &claim, u64::MAX);
                tree.enter(&claim, bytes);
            } else if self.is_in_inode_table(claim.block) && claim.block != own {
                self.bad_blocks.insert(claim.block);
            }
        }
        Ok(())
    }

    async fn check_inode(&mut self, node: &mut Node) -> Result<(), CheckError> {
        match node.number {
            BAD_BLOCKS_INODE => self.check_bad_blocks(node).await,
            RESIZE_INODE => self.check_resize_inode(node).await,
            number if number == self.journal => {
                self.use_inode(node);
                self.check_content(node, false).await
            }
            ROOT_INODE => self.check_root(node).await,
            number if number < self.volume.first_inode => self.check_reserved(node).await,
            _ => {
                if node.links() > 0 {
                    return self.check_used(node).await;
                }
                let deleted = node.deleted();
                let low = deleted != 0 && deleted < self.volume.inodes() && self.knows_times();
                let fault = Fault::NoTimeOfDeletion { inode: node.number };
                let stray = low || deleted == 0 && node.mode() != 0;
                if stray && !self.orphans.has(node.number) && self.report(fault).await? {
                    node.set_deleted(self.dead_time());
                }
                Ok(())
            }
        }
    }

    /// Returns whether the volume was always used with a clock, so that small times are invalid. The time of the last
    /// write proves nothing: a repair sets it, and a second check must give the same result.
    fn knows_times(&self) -> bool {
        [superblock::MOUNT_TIME, superblock::MADE_TIME].into_iter().all(|offset| {
            let time = read_u32(&self.superblock, offset);
            time == 0 || time >= self.volume.inodes()
        })
    }

    /// Returns the deletion time to set: one that cannot be mistaken for an inode number.
    pub(super) fn dead_time(&self) -> u32 {
        self.device.now_s().max(self.volume.inodes())
    }

    fn use_inode(&mut self, node: &Node) {
        let number = node.number as usize;
        self.inodes[number] = known::USED | node.kind().map_or(0, Kind::entry_number);
        self.links[number] = node.links();
    }

    /// Checks the bad blocks inode, which holds only block numbers.
    async fn check_bad_blocks(&mut self, node: &mut Node) -> Result<(), CheckError> {
        let stray = node.mode() != 0
            || node.links() != 0
            || node.attribute_block() != 0
            || node.flags() != 0
            || node.deleted() != 0;
        let owned = node.field(field::OWNER_LOW, 2) != 0 || node.field(field::GROUP_LOW, 2) != 0;
        if (stray || owned) && self.report(Fault::ReservedInode { inode: node.number }).await? {
            node.bytes.fill(0);
        }
        self.use_inode(node);
        self.walk(node).await.map(|_| ())
    }

    async fn check_reserved(&mut self, node: &mut Node) -> Result<(), CheckError> {
        // Without a mode, block numbers have no meaning; with an impossible attribute block, no field has. The
        // journal's is to be empty.
        let attributes = node.attribute_block();
        let is_unread = if attributes == 0 { node.sectors() == 0 } else { !self.is_legal(attributes) };
        let is_passed = is_unread && node.flags() & flag::CASE_FOLDED == 0;
        if node.mode() == 0 && node.number != JOURNAL_INODE && is_passed {
            self.use_inode(node);
            return Ok(());
        }
        let may_be_file = node.number == BOOT_INODE && node.kind() == Some(Kind::File);
        let fault = Fault::ReservedInode { inode: node.number };
        if !node.is_blank() && !may_be_file && self.report(fault).await? {
            node.bytes.fill(0);
        }
        self.use_inode(node);
        self.check_content(node, false).await
    }

    async fn check_root(&mut self, node: &mut Node) -> Result<(), CheckError> {
        if node.is_blank() {
            // It is recreated after everything else was checked.
            return Ok(());
        }
        if node.kind() != Some(Kind::Directory) {
            let looks = self.holds_folder(node).await?;
            let fault = if looks { Fault::LooksLikeFolder { inode: ROOT_INODE } } else { Fault::RootNotFolder };
            if self.report(fault).await? {
                if !looks {
                    node.bytes.fill(0);
                    return Ok(());
                }
                node.set_mode(Kind::Directory.mode_bits() | node.mode() & 0o7777);
                node.set_flags(node.flags() & !flag::INDEX);
            }
        }
        self.check_used(node).await
    }

    async fn check_used(&mut self, node: &mut Node) -> Result<(), CheckError> {
        let inode = node.number;
        if node.deleted() != 0 && !self.orphans.has(inode) && self.report(Fault::TimeOfDeletion { inode }).await? {
            node.set_deleted(0);
        }
        if !self.check_kind(node).await? {
            return Ok(());
        }
        self.check_fields(node).await?;
        self.check_extra(node).await?;
        self.use_inode(node);
        let special =
            matches!(node.kind(), Some(Kind::CharacterDevice | Kind::BlockDevice | Kind::Fifo | Kind::Socket));
        if special && node.size() != 0 && self.report(Fault::Size { inode, says: node.size(), right: 0 }).await? {
            node.set_size(0);
        }
        if node.kind() == Some(Kind::SymbolicLink)
            && !self.is_link(node).await?
            && self.report(Fault::SymbolicLink { inode }).await?
        {
            self.clear_inode(node);
            return Ok(());
        }
        if self.known(inode) & known::KIND == Kind::Directory.entry_number() {
            self.folders.try_reserve(1).map_err(|_| CheckError::NoMemory)?;
            self.folders.push(super::state::Folder { number: inode, ..Default::default() });
        }
        self.check_content(node, true).await
    }

    /// Frees an inode, and resets its state.
    pub(super) fn clear_inode(&mut self, node: &mut Node) {
        if node.number < self.volume.first_inode {
            node.bytes.fill(0);
        } else {
            node.clear(self.dead_time());
        }
        self.forget_inode(node.number);
    }

    pub(super) fn forget_inode(&mut self, number: u32) {
        self.inodes[number as usize] = 0;
        self.links[number as usize] = 0;
        if let Some(index) = self.folder_index(number) {
            self.folders.remove(index);
        }
    }

    /// Checks the file type; returns whether the inode is still in use.
    async fn check_kind(&mut self, node: &mut Node) -> Result<bool, CheckError> {
        let inode = node.number;
        let sure = matches!(node.kind(), Some(Kind::File | Kind::Directory | Kind::SymbolicLink));
        if !sure && self.holds_folder(node).await? {
            if self.report(Fault::LooksLikeFolder { inode }).await? {
                node.set_mode(Kind::Directory.mode_bits() | node.mode() & 0o7777);
            }
        } else if node.kind().is_none() {
            let numbers = node.numbers();
            let sound = numbers.iter().all(|&block| block == 0 || self.is_legal(block) && !self.found.has(block));
            let file = sound && node.size() <= self.volume.largest_file();
            if self.report(Fault::Mode { inode, says: node.mode(), file }).await? {
                if !file {
                    self.clear_inode(node);
                    return Ok(false);
                }
                node.set_mode(Kind::File.mode_bits() | node.mode() & 0o777);
            }
        }
        Ok(true)
    }

    /// Returns whether the first block is that of a folder with this inode number, without contradiction.
    async fn holds_folder(&mut self, node: &Node) -> Result<bool, CheckError> {
        let numbers = node.numbers();
        let named = || numbers.into_iter().filter(|&block| block != 0);
        if numbers[0] == 0 || named().any(|block| !self.is_legal(block) || self.found.has(block)) {
            return Ok(false);
        }
        let device = matches!(node.kind(), Some(Kind::CharacterDevice | Kind::BlockDevice));
        if device && node.links() == 1 && numbers[4..].iter().all(|&block| block == 0) {
            return Ok(false);
        }
        let bytes = self.read_block(numbers[0]).await?;
        Ok(super::entries::begins_folder(&bytes, node.number))
    }

    async fn check_fields(&mut self, node: &mut Node) -> Result<(), CheckError> {
        let inode = node.number;
        let folder = node.kind() == Some(Kind::Directory);
        let plain = folder || node.kind() == Some(Kind::File);
        let mut stray = flag::FOREIGN;
        if !folder || !self.volume.has(feature::DIR_INDEX) {
            stray |= flag::INDEX;
        }
        if !plain {
            stray |= flag::IMMUTABLE | flag::APPEND_ONLY;
        }
        let says = node.flags() & stray;
        if says != 0 && self.report(Fault::Flags { inode, says }).await? {
            node.set_flags(node.flags() & !stray);
        }
        let size_high = Some(("size (upper half)", field::SIZE_HIGH, 4)).filter(|_| folder);
        for (field, offset, bytes) in ZERO_FIELDS.into_iter().chain(size_high) {
            let says = node.field(offset, bytes);
            if says != 0 && self.report(Fault::StrayField { inode, field, says }).await? {
                node.clear_field(offset, bytes);
            }
        }
        Ok(())
    }

    /// Checks the bytes after the first 128.
    async fn check_extra(&mut self, node: &mut Node) -> Result<(), CheckError> {
        let (inode, room) = (node.number, node.extra().len());
        if room < 4 {
            return Ok(());
        }
        let says = read_u16(node.extra(), 0);
        let size = usize::from(says);
        if says != 0 && (!(4..=room).contains(&size) || !size.is_multiple_of(4)) {
            if !self.report(Fault::ExtraSize { inode, says }).await? {
                return Ok(());
            }
            let right = if (4..=room).contains(&size) { size.next_multiple_of(4) } else { 32.min(room) };
            node.extra_mut()[..2].copy_from_slice(&(right as u16).to_le_bytes());
        }
        let size = usize::from(read_u16(node.extra(), 0));
        if size + 4 >= room {
            return Ok(());
        }
        if super::attributes::has_inline(&node.extra()[size..]) {
            if super::attributes::are_inline_sound(&node.extra()[size..]) {
                self.inodes[inode as usize] |= known::ATTRIBUTES;
            } else if self.report(Fault::InlineAttributes { inode }).await? {
                node.extra_mut()[size..].fill(0);
            }
        }
        let end = node.bytes.len();
        for (time, extension) in TIMES.into_iter().filter(|times| times.1 + 4 <= end) {
            let says = read_u32(&node.bytes, extension);
            // A time before 1970 with an extension past 2038: an old version of Linux wrote these.
            let negative = read_u32(&node.bytes, time) >> 31 != 0;
            let fault = Fault::StrayField { inode, field: "time (extension)", says };
            if negative && says & 3 == 3 && self.report(fault).await? {
                write_u32(&mut node.bytes, extension, says & !3);
            }
        }
        Ok(())
    }

    /// Returns whether a symbolic link's target is as long as its size.
    async fn is_link(&mut self, node: &Node) -> Result<bool, CheckError> {
        let size = node.size();
        let ends_at = |bytes: &[u8]| bytes.iter().position(|&byte| byte == 0).map(|end| end as u64);
        if node.is_short_link() {
            return Ok(ends_at(node.short_target()) == Some(size));
        }
        let numbers = node.numbers();
        let one = self.is_legal(numbers[0]) && numbers[1..].iter().all(|&block| block == 0);
        if !one || size == 0 || size >= self.volume.geometry.block_bytes.into() {
            return Ok(false);
        }
        Ok(ends_at(&self.read_block(numbers[0]).await?) == Some(size))
    }

    /// Checks the blocks, and the size and block count that follow from them.
    async fn check_content(&mut self, node: &mut Node, may_be_cleared: bool) -> Result<(), CheckError> {
        let inode = node.number;
        let mut blocks = u64::from(self.check_attribute_block(node).await?);
        let kind = node.kind();
        if node.has_blocks() {
            let walked = self.walk(node).await?;
            if walked.tangled {
                if self.report(Fault::Tangled { inode }).await? {
                    self.clear_inode(node);
                } else {
                    self.inodes[inode as usize] |= known::TANGLED;
                }
                return Ok(());
            }
            if kind == Some(Kind::Directory) && walked.blocks == 0 && may_be_cleared {
                if self.report(Fault::EmptyFolder { inode }).await? {
                    self.clear_inode(node);
                }
                return Ok(());
            }
            blocks += walked.blocks;
            if !self.orphans.has(inode) && kind != Some(Kind::SymbolicLink) {
                self.check_size(node, walked.last).await?;
            }
        }
        if kind == Some(Kind::File) && node.size() >= LARGE_FILE {
            self.needs_large_file = true;
        }
        // A file has fewer blocks than the volume, and those of an unshared file fit.
        let right = u32::try_from(blocks * u64::from(self.volume.geometry.block_bytes / 512)).unwrap_or(u32::MAX);
        let says = node.sectors();
        if says != right && self.report(Fault::Sectors { inode, says, right }).await? {
            node.set_sectors(right);
        }
        Ok(())
    }

    async fn check_size(&mut self, node: &mut Node, last: Option<u64>) -> Result<(), CheckError> {
        let block_bytes = u64::from(self.volume.geometry.block_bytes);
        let (says, end) = (node.size(), last.map_or(0, |last| (last + 1) * block_bytes));
        let folder = node.kind() == Some(Kind::Directory);
        // The upper half of a folder's size is checked as a separate field.
        let says = if folder { says & u64::from(u32::MAX) } else { says };
        let wrong = if folder {
            says != end
        } else {
            last.is_some_and(|last| says < last * block_bytes) || says > self.volume.largest_file()
        };
        if wrong && self.report(Fault::Size { inode: node.number, says, right: end }).await? {
            node.set_size(end);
        }
        Ok(())
    }

    /// Claims the blocks of an inode, and removes impossible numbers. Those in tables are only recorded: the tables'
    /// owners are unknown until all inodes have been read.
    async fn walk(&mut self, node: &mut Node) -> Result<Walked, CheckError> {
        let inode = node.number;
        let (numbers, illegal) = self.legal_numbers(node);
        if let Some((count, first)) = illegal
            && self.report(Fault::IllegalBlocks { inode, table: None, count, first }).await?
        {
            node.set_numbers(&numbers);
        }
        let per_block = u64::from(self.volume.geometry.block_bytes / 4);
        let limit = self.logical_limit(node);
        let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
        let mut walked = Walked::default();
        while let Step::Claim(claim) = tree.next() {
            walked.blocks += 1;
            if inode == BAD_BLOCKS_INODE && claim.depth == 0 && self.bad_blocks.contains(&claim.block) {
                // It may be used both by this inode and by an inode table.
                continue;
            }
            let had = self.claim(claim.block)?;
            if claim.depth == 0 {
                walked.last = walked.last.max(Some(claim.logical));
                continue;
            }
            if had {
                let Some(rest) = self.revisits.checked_sub(per_block) else {
                    walked.tangled = true;
                    return Ok(walked);
                };
                self.revisits = rest;
            }
            let mut bytes = self.read_block(claim.block).await?;
            if self.take_illegal(&mut bytes, &claim, limit).is_some() {
                self.inodes[inode as usize] |= known::ILLEGAL_TABLES;
            }
            tree.enter(&claim, bytes);
        }
        Ok(walked)
    }

    /// Marks a block as used; returns whether it already was.
    pub(super) fn claim(&mut self, block: u32) -> Result<bool, CheckError> {
        let had = self.found.insert(block);
        if had {
            let shared = match self.shared.take() {
                Some(shared) => shared,
                None => super::bits::Bits::new(self.volume.geometry.blocks)?,
            };
            self.shared.insert(shared).insert(block);
        }
        Ok(had)
    }

    /// Returns an inode's own block numbers without the impossible ones; how many those are, and the first.
    pub(super) fn legal_numbers(&self, node: &Node) -> ([u32; BLOCK_NUMBERS], Option<(u32, u32)>) {
        let mut numbers = node.numbers();
        let mut illegal = None;
        // Three levels would exceed the maximum size of a folder.
        let slots = if self.logical_limit(node) == u64::MAX { BLOCK_NUMBERS } else { DIRECT_BLOCKS + 3 };
        for (slot, number) in numbers.iter_mut().enumerate() {
            if *number != 0 && (!self.is_legal(*number) || slot >= slots) {
                let (count, first) = illegal.unwrap_or((0, *number));
                illegal = Some((count + 1, first));
                *number = 0;
            }
        }
        (numbers, illegal)
    }

    /// Removes impossible numbers from a table; returns their count, and the first.
    pub(super) fn take_illegal(&self, bytes: &mut [u8], table: &Claim, limit: u64) -> Option<(u32, u32)> {
        let mut illegal = None;
        for (index, number) in bytes.chunks_exact_mut(4).enumerate() {
            let block = read_u32(number, 0);
            let beyond = table.depth == 1 && table.logical + index as u64 >= limit;
            if block != 0 && (!self.is_legal(block) || beyond) {
                let (count, first) = illegal.unwrap_or((0, block));
                illegal = Some((count + 1, first));
                number.fill(0);
            }
        }
        illegal
    }

    /// Returns the limit of logical blocks of a file.
    pub(super) fn logical_limit(&self, node: &Node) -> u64 {
        match node.kind() {
            Some(Kind::Directory) => self.volume.folder_blocks(),
            _ => u64::MAX,
        }
    }
}
