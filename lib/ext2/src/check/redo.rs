//! The repair log: the pending in-place changes, in blocks that were free, located by a pointer in the superblock. Once
//! that pointer is written, the repair is atomic: a check after a crash reads the volume as if the whole log were in
//! place, and writes it.
//!
//! The pointer is in unused bytes of the superblock. It holds a hash of the rest of the superblock: any other tool that
//! changes the volume changes the superblock (its times, its state), which invalidates the log.
//!
//! ```text
//! log:      a header of one sector; entries; contents, each beginning at a sector
//! header:   MAGIC, entries u64, bytes of a sector u64
//! entry:    destination u64, source u64 (in the log or, for a copy, elsewhere on the disk)
//! pointer:  POINTER_MAGIC u32, first block u32, bytes of the log u64, hash of the log u64, hash of the superblock u64
//! ```

use alloc::vec::Vec;

use super::CheckError;
use super::device::{Device, PAGE_BYTES};
use super::fault::Fault;
use super::overlay::Piece;
use super::state::Checker;
use super::superblock::examine;
use crate::format::superblock::{BYTES, OFFSET};
use crate::format::{read_u32, write_u32};
use block_source::BlockSource;

/// Magic number of a log.
const MAGIC: &[u8; 8] = b"EXT2REDO";
/// Offset of the pointer in the superblock, and its magic number.
const POINTER: usize = 0x3d8;
const POINTER_BYTES: usize = 32;
const POINTER_MAGIC: u32 = 0x4f44_4552;
const ENTRY_BYTES: u64 = 16;
/// Initial value of the hashes: FNV-1a.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Location of a log.
#[derive(Clone, Copy)]
struct Pointer {
    block: u32,
    bytes: u64,
    hash: u64,
}

fn hash(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn read_u64(bytes: &[u8], offset: usize) -> u64 {
    u64::from(read_u32(bytes, offset)) | u64::from(read_u32(bytes, offset + 4)) << 32
}

fn write_u64(bytes: &mut [u8], offset: usize, value: u64) {
    write_u32(bytes, offset, value as u32);
    write_u32(bytes, offset + 4, (value >> 32) as u32);
}

fn hash_of_superblock(superblock: &[u8]) -> u64 {
    let (before, rest) = superblock.split_at(POINTER);
    hash(hash(HASH_START, before), &rest[POINTER_BYTES..])
}

impl Pointer {
    /// Returns the pointer in a superblock, if that is unchanged since.
    fn of(superblock: &[u8]) -> Option<Pointer> {
        let own = &superblock[POINTER..POINTER + POINTER_BYTES];
        let valid = read_u32(own, 0) == POINTER_MAGIC && read_u64(own, 24) == hash_of_superblock(superblock);
        valid.then(|| Pointer { block: read_u32(own, 4), bytes: read_u64(own, 8), hash: read_u64(own, 16) })
    }

    fn put(self, superblock: &mut [u8]) {
        let of_superblock = hash_of_superblock(superblock);
        let own = &mut superblock[POINTER..POINTER + POINTER_BYTES];
        write_u32(own, 0, POINTER_MAGIC);
        write_u32(own, 4, self.block);
        write_u64(own, 8, self.bytes);
        write_u64(own, 16, self.hash);
        write_u64(own, 24, of_superblock);
    }
}

/// Removes the pointer from a superblock.
pub(super) fn clear_pointer(superblock: &mut [u8]) {
    if read_u32(superblock, POINTER) == POINTER_MAGIC {
        superblock[POINTER..POINTER + POINTER_BYTES].fill(0);
    }
}

impl<S: BlockSource> Checker<'_, S> {
    /// Resumes a repair that was interrupted while it was written.
    pub(super) async fn take_up_repair(&mut self) -> Result<(), CheckError> {
        clear_pointer(&mut self.superblock);
        let Some(pointer) = Pointer::of(&self.device.read_disk(OFFSET, BYTES).await?) else { return Ok(()) };
        let block_bytes = u64::from(self.volume.geometry.block_bytes);
        let blocks = pointer.bytes.div_ceil(block_bytes);
        let start = u64::from(pointer.block) * block_bytes;
        let lies_in_volume = u64::from(pointer.block).saturating_add(blocks) <= self.volume.geometry.blocks.into();
        if !lies_in_volume || !self.device.load_log(start, pointer).await? {
            return Ok(());
        }
        // Both fit: the log lies in the volume.
        for block in pointer.block..pointer.block + blocks as u32 {
            self.reserved.insert(block);
        }
        let bytes = self.device.read(OFFSET, BYTES).await?;
        self.volume = examine(&bytes, self.device.bytes())?;
        self.superblock = bytes;
        self.left_before += u64::from(!self.report(Fault::RepairCutOff).await?);
        Ok(())
    }

    /// Adds a log of all changes but those in new blocks, and a pointer to it in a superblock. Returns whether there
    /// was a run of free blocks for it.
    pub(super) async fn log_changes(&mut self, superblock: &mut [u8]) -> Result<bool, CheckError> {
        let (block_bytes, piece_bytes) = (u64::from(self.volume.geometry.block_bytes), self.device.piece_bytes());
        let mut targets: Vec<(u64, Option<u64>)> = Vec::new();
        for (offset, piece) in self.device.overlay.range(0, u64::MAX) {
            if !self.new_blocks.has((offset / block_bytes) as u32) {
                targets.try_reserve(1).map_err(|_| CheckError::NoMemory)?;
                targets.push((offset, if let Piece::Copy(from) = piece { Some(*from) } else { None }));
            }
        }
        let header_bytes = (targets.len() as u64 + 2) * ENTRY_BYTES;
        let contents = targets.iter().filter(|target| target.1.is_none()).count() as u64;
        let bytes = header_bytes.next_multiple_of(piece_bytes) + contents * piece_bytes;
        let Some(block) =
            self.take_row(bytes.div_ceil(block_bytes.max(piece_bytes)) * (piece_bytes.div_ceil(block_bytes)))
        else {
            return Ok(false);
        };
        let start = u64::from(block) * block_bytes;
        let mut head = super::bits::filled(header_bytes.next_multiple_of(piece_bytes) as usize, 0u8)?;
        head[..MAGIC.len()].copy_from_slice(MAGIC);
        write_u64(&mut head, 8, targets.len() as u64);
        write_u64(&mut head, 16, piece_bytes);
        let mut content = start + head.len() as u64;
        let mut sum = HASH_START;
        for (index, (offset, from)) in targets.iter().enumerate() {
            let entry = (index + 2) * ENTRY_BYTES as usize;
            write_u64(&mut head, entry, *offset);
            write_u64(&mut head, entry + 8, from.unwrap_or(content));
            if from.is_none() {
                let bytes = self.device.read(*offset, piece_bytes as usize).await?;
                sum = hash(sum, &bytes);
                self.device.overlay.insert(content, Piece::of(&bytes)?)?;
                content += piece_bytes;
            }
        }
        sum = hash(sum, &head);
        for (at, bytes) in (start..).step_by(piece_bytes as usize).zip(head.chunks(piece_bytes as usize)) {
            self.device.overlay.insert(at, Piece::of(bytes)?)?;
        }
        Pointer { block, bytes, hash: sum }.put(superblock);
        Ok(true)
    }

    /// Allocates a run of free blocks, aligned to a sector.
    fn take_row(&mut self, count: u64) -> Option<u32> {
        let geometry = &self.volume.geometry;
        let step = (self.device.piece_bytes() / u64::from(geometry.block_bytes)).max(1) as u32;
        let count = u32::try_from(count).ok()?;
        let is_free = |block: u32| !self.found.has(block) && !self.reserved.has(block);
        let mut first = geometry.first_data_block.next_multiple_of(step);
        let end = geometry.blocks;
        while first.checked_add(count)? <= end {
            match (first..first + count).rev().find(|&block| !is_free(block)) {
                Some(taken) => first = (taken + 1).next_multiple_of(step),
                None => {
                    for block in first..first + count {
                        self.new_blocks.insert(block);
                    }
                    return Some(first);
                }
            }
        }
        None
    }
}

impl<S: BlockSource> Device<'_, S> {
    /// Loads a log into the changes; returns whether it was complete.
    async fn load_log(&mut self, start: u64, pointer: Pointer) -> Result<bool, CheckError> {
        let (piece_bytes, disk_bytes) = (self.piece_bytes(), self.bytes());
        if !start.is_multiple_of(piece_bytes) || !pointer.bytes.is_multiple_of(piece_bytes) {
            return Ok(false);
        }
        let head = self.read_disk(start, 512).await?;
        let count = read_u64(&head, 8);
        let fits = count.checked_add(2).and_then(|entries| entries.checked_mul(ENTRY_BYTES));
        let head_bytes = fits.map_or(u64::MAX, |bytes| bytes.next_multiple_of(piece_bytes));
        if &head[..MAGIC.len()] != MAGIC || read_u64(&head, 16) != piece_bytes || head_bytes > pointer.bytes {
            return Ok(false);
        }
        let mut sum = HASH_START;
        for at in (start + head_bytes..start + pointer.bytes).step_by(piece_bytes as usize) {
            sum = hash(sum, &self.read_disk(at, piece_bytes as usize).await?);
        }
        for at in (start..start + head_bytes).step_by(piece_bytes as usize) {
            sum = hash(sum, &self.read_disk(at, piece_bytes as usize).await?);
        }
        if sum != pointer.hash {
            return Ok(false);
        }
        for index in 2..count + 2 {
            let at = start + index * ENTRY_BYTES;
            let sector = self.read_disk(at / 512 * 512, 512).await?;
            let within = (at % 512) as usize;
            let (to, from) = (read_u64(&sector, within), read_u64(&sector, within + 8));
            let is_sector = |at: u64| at.is_multiple_of(piece_bytes) && at <= disk_bytes.saturating_sub(piece_bytes);
            if is_sector(to) && is_sector(from) {
                self.overlay.insert(to, Piece::Copy(from))?;
            }
        }
        Ok(true)
    }
}

const _: () = assert!(PAGE_BYTES.is_multiple_of(4096) && POINTER + POINTER_BYTES <= BYTES - 8);
