//! All folders: their blocks and entries.

use alloc::vec::Vec;

use super::entries::{self, Entry};
use super::index::Ranges;
use super::names::{Names, name_hash};
use super::node::{Node, flag};
use super::state::{Checker, known};
use super::superblock::KIND_FOLDER;
use super::tree::{Step, Tree};
use super::{CheckError, Fault};
use crate::format::ROOT_INODE;
use block_source::BlockSource;

/// State of a folder during its traversal.
pub(super) struct Visit {
    pub(super) node: Node,
    /// Its blocks.
    pub(super) blocks: Vec<u32>,
    names: Names,
    /// Hash ranges of its blocks, if it has an index.
    ranges: Option<Ranges>,
}

/// One block of a folder with its repairs.
struct Page {
    bytes: Vec<u8>,
    /// Its position in the folder.
    position: usize,
    changed: bool,
    /// Whether names changed or moved, which invalidates the index.
    moved: bool,
}

/// Returns whether an entry's file type differs from the inode's. It may be unset.
fn is_wrong_kind(says: u8, right: u8) -> bool {
    says != right && says != 0
}

impl<S: BlockSource> Checker<'_, S> {
    pub(super) async fn check_folders(&mut self) -> Result<(), CheckError> {
        if let Some(root) = self.folder_index(ROOT_INODE) {
            self.folders[root].parent = ROOT_INODE;
        }
        for index in 0..self.folders.len() {
            let number = self.folders[index].number;
            if self.known(number) & known::TANGLED == 0 {
                self.check_folder(number).await?;
            }
        }
        Ok(())
    }

    async fn check_folder(&mut self, number: u32) -> Result<(), CheckError> {
        let mut node = self.load(number).await?;
        let mapped = self.data_blocks(&node).await?;
        let blocks: Vec<u32> = mapped.iter().map(|&(_, block)| block).collect();
        let holes = mapped.last().map_or(0, |&(last, _)| last + 1 - mapped.len() as u64);
        if holes > 0 {
            self.close_holes(&mut node, &blocks, holes).await?;
        }
        let ranges = if node.flags() & flag::INDEX == 0 { None } else { self.ranges(&blocks).await? };
        let mut visit = Visit { node, blocks, names: Names::default(), ranges };
        for position in 0..visit.blocks.len() {
            self.check_page(&mut visit, position).await?;
        }
        if visit.node.flags() & flag::INDEX != 0 {
            let sound = match &visit.ranges {
                Some(ranges) => self.is_index_sound(&visit.blocks, ranges).await?,
                None => false,
            };
            if !sound && self.report(Fault::Index { folder: number }).await? {
                self.drop_index(&mut visit.node).await?;
            }
        }
        let names = core::mem::take(&mut visit.names);
        self.check_duplicates(&mut visit, names).await
    }

    /// Returns the allocated blocks of a folder, by their position.
    pub(super) async fn data_blocks(&mut self, node: &Node) -> Result<Vec<(u64, u32)>, CheckError> {
        let (numbers, _) = self.legal_numbers(node);
        let limit = self.logical_limit(node);
        let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
        let mut blocks = Vec::new();
        while let Step::Claim(claim) = tree.next() {
            if claim.depth > 0 {
                let mut bytes = self.read_block(claim.block).await?;
                self.take_illegal(&mut bytes, &claim, limit);
                tree.enter(&claim, bytes);
            } else if claim.logical < limit {
                blocks.try_reserve(1).map_err(|_| CheckError::NoMemory)?;
                blocks.push((claim.logical, claim.block));
            }
        }
        Ok(blocks)
    }

    async fn close_holes(&mut self, node: &mut Node, blocks: &[u32], count: u64) -> Result<(), CheckError> {
        let fault = Fault::Holes { folder: node.number, count };
        if self.may_fix(&fault) {
            self.mark();
            if !self.remap(node, blocks).await? {
                self.report_no_room(fault);
                return Ok(());
            }
        }
        self.report(fault).await.map(|_| ())
    }

    /// Removes a folder's index.
    pub(super) async fn drop_index(&mut self, node: &mut Node) -> Result<(), CheckError> {
        if node.flags() & flag::INDEX != 0 {
            node.set_flags(node.flags() & !flag::INDEX);
            self.store(node).await?;
        }
        Ok(())
    }

    async fn check_page(&mut self, visit: &mut Visit, position: usize) -> Result<(), CheckError> {
        let bytes = self.read_block(visit.blocks[position]).await?;
        let mut page = Page { bytes, position, changed: false, moved: false };
        let mut offset = 0;
        if position == 0 {
            offset = self.check_dots(visit, &mut page).await?;
        }
        let mut before = None;
        while offset < page.bytes.len() {
            let Some(entry) = entries::entry(&page.bytes, offset) else {
                offset = self.pass_damage(visit, &mut page, before, offset).await?;
                continue;
            };
            let (end, inode) = (entry.end(), entry.inode);
            before = Some(offset);
            if inode != 0 {
                self.check_entry(visit, &mut page, offset).await?;
            }
            offset = end;
        }
        if page.moved {
            self.drop_index(&mut visit.node).await?;
        }
        if page.changed {
            self.write_block(visit.blocks[position], &page.bytes).await?;
        }
        Ok(())
    }

    /// Skips bytes that are not an entry; returns the offset at which to continue.
    async fn pass_damage(
        &mut self,
        visit: &Visit,
        page: &mut Page,
        before: Option<usize>,
        offset: usize,
    ) -> Result<usize, CheckError> {
        let first = before.is_none() && offset == 0;
        let end = entries::resume(&page.bytes, offset, if first { 12 } else { 4 });
        let at = (page.position * page.bytes.len() + offset) as u64;
        if !self.report(Fault::Entry { folder: visit.node.number, offset: at }).await? {
            return Ok(end);
        }
        let max_inode = self.volume.inodes();
        // `..` takes the bytes after it if no other entry precedes them.
        let dots = (page.position == 0 && before.is_none()).then(|| entries::entries(&page.bytes).nth(1)).flatten();
        let before = before.or(dots.map(|dots| dots.offset));
        entries::repair(&mut page.bytes, before, offset, end, max_inode);
        (page.changed, page.moved) = (true, true);
        // Either there is an entry now, or the preceding one reaches to the end.
        Ok(if entries::entry(&page.bytes, offset).is_some_and(|entry| entry.end() == end) { offset } else { end })
    }

    /// Checks the first two entries; returns the offset of the others.
    async fn check_dots(&mut self, visit: &mut Visit, page: &mut Page) -> Result<usize, CheckError> {
        let folder = visit.node.number;
        let kind = if self.volume.has_kinds() { KIND_FOLDER } else { 0 };
        if !entries::has_dots(&page.bytes) {
            if !self.report(Fault::Dots { folder }).await? {
                return Ok(0);
            }
            let parent = entries::entries(&page.bytes).find(|entry| entry.name == b"..").map(|entry| entry.inode);
            let parent = parent.filter(|&parent| self.is_folder(parent)).unwrap_or(ROOT_INODE);
            page.bytes = entries::with_dots(&page.bytes, folder, parent, kind);
            (page.changed, page.moved) = (true, true);
        }
        let dots: Vec<(usize, u32, u8, usize)> = entries::entries(&page.bytes)
            .take(2)
            .map(|entry| (entry.offset, entry.inode, entry.kind, entry.end()))
            .collect();
        let [(at_dot, says, ..), (_, dot_dot, _, end)] = dots[..] else { return Ok(0) };
        if says != folder && self.report(Fault::Dot { folder, says }).await? {
            entries::set_inode(&mut page.bytes, at_dot, folder);
            page.changed = true;
        }
        for (name, &(offset, _, says, _)) in [&b"."[..], b".."].into_iter().zip(&dots) {
            let fault = Fault::EntryKind { folder, name: name.to_vec(), says, right: kind };
            if is_wrong_kind(says, kind) && self.report(fault).await? {
                entries::set_kind(&mut page.bytes, offset, kind);
                page.changed = true;
            }
        }
        self.count_name(folder, true);
        self.count_name(dot_dot, true);
        if let Some(index) = self.folder_index(folder) {
            self.folders[index].dot_dot = dot_dot;
        }
        Ok(end)
    }

    /// Checks an entry in use.
    async fn check_entry(&mut self, visit: &mut Visit, page: &mut Page, offset: usize) -> Result<(), CheckError> {
        let Some(entry) = entries::entry(&page.bytes, offset) else { return Ok(()) };
        let (folder, inode) = (visit.node.number, entry.inode);
        if let Some(fault) = self.reason_to_remove(folder, &entry) {
            if self.report(fault).await? {
                entries::remove(&mut page.bytes, offset);
                page.changed = true;
            }
            return Ok(());
        }
        let mut name = entry.name.to_vec();
        let says = entry.kind;
        if name.iter().any(|&byte| byte == 0 || byte == b'/')
            && self.report(Fault::BadName { folder, name: name.clone() }).await?
        {
            name.iter_mut().filter(|byte| matches!(**byte, 0 | b'/')).for_each(|byte| *byte = b'.');
            entries::set_name(&mut page.bytes, offset, &name);
            (page.changed, page.moved) = (true, true);
        }
        let right = if self.volume.has_kinds() { self.known(inode) & known::KIND } else { 0 };
        if is_wrong_kind(says, right)
            && self.report(Fault::EntryKind { folder, name: name.clone(), says, right }).await?
        {
            entries::set_kind(&mut page.bytes, offset, right);
            page.changed = true;
        }
        if let Some(index) = self.folder_index(inode) {
            self.folders[index].parent = folder;
        }
        self.count_name(inode, true);
        if let Some(ranges) = &mut visit.ranges {
            ranges.add(page.position, &name);
        }
        visit.names.add(name_hash(&name))
    }

    /// Returns why an entry is invalid, if it is.
    fn reason_to_remove(&self, folder: u32, entry: &Entry<'_>) -> Option<Fault> {
        let (inode, name) = (entry.inode, || entry.name.to_vec());
        let numbered = inode >= self.volume.first_inode && inode <= self.volume.inodes();
        if inode == folder || inode == ROOT_INODE || entry.name.is_empty() || entries::is_dot(entry.name) {
            return Some(Fault::ForbiddenName { folder, name: name() });
        }
        if !numbered || !self.is_used(inode) {
            return Some(Fault::Nowhere { folder, name: name(), inode });
        }
        let has_name = self.folder_index(inode).is_some_and(|index| self.folders[index].parent != 0);
        has_name.then(|| Fault::SecondFolderName { folder, name: name(), inode })
    }
}
