//! Formatting a disk: an empty volume with `lost+found`, written through a [`BlockSource`].
//!
//! Only metadata is written: the superblock and its copies, descriptors, bitmaps, whole inode tables (a repair would
//! take stale content for files), and the two directories. The old superblock is overwritten first and the new one
//! written last, so that interrupted formatting leaves no volume rather than half of one.

use super::metadata::{GroupUse, Metadata};
use super::output::Output;
use super::{BLOCK_SIZES, BYTES_PER_INODE, INODE_BYTES, LOST_NAME, MakeError, default_inodes};
use crate::format::ROOT_INODE;
use crate::format::features::{
    COMPATIBLE_DIR_INDEX, INCOMPATIBLE_FILE_TYPE, READ_ONLY_LARGE_FILE, READ_ONLY_SPARSE_SUPER,
};
use crate::format::fresh::{self, EMPTY_USED_INODES, Identity, NewFolder};
use crate::format::geometry::{Backups, FIRST_INODE, Geometry, PlanError, Wish};
use crate::format::superblock::OLD_INODE_BYTES;
use crate::format::{group, superblock};
use block_source::BlockSource;

/// Minimum size of volumes with 4 KiB blocks by default.
const LARGE_BLOCKS_FROM: u64 = 16 << 20;
/// Minimum size of volumes with fewer inodes for their size.
const FEW_INODES_FROM: u64 = 512 << 20;
const BYTES_PER_INODE_OF_LARGE: u64 = 16 << 10;
/// Maximum percentage of reserved blocks.
const MAX_RESERVED_PERCENT: u32 = 50;
/// `lost+found` is preallocated, because there may be no room when it is needed.
const LOST_BYTES: u32 = 16 << 10;
/// It needs no indirect block.
const LOST_MAX_BLOCKS: u32 = 12;
/// Directories of a new volume.
const FOLDERS: u32 = 2;
/// Kind of a directory in an entry with a kind.
const ENTRY_FOLDER: u8 = 2;

/// Compatibility of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Revision 1 with the features `filetype`, `sparse_super`, `large_file` and `dir_index`.
    #[default]
    Usual,
    /// Revision 0, without features.
    Plain,
}

/// Parameters of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MakeOptions {
    /// Block size in bytes: 1024, 2048 or 4096; `None` for a default based on the disk size.
    pub block_bytes: Option<u32>,
    /// Minimum number of inodes; `None` for a default based on the disk size.
    pub inodes: Option<u32>,
    /// Percentage of blocks reserved for user 0, at most 50.
    pub reserved_percent: u32,
    /// Compatibility of the volume.
    pub style: Style,
    /// Volume label, padded with zeros.
    pub label: [u8; 16],
    /// UUID of the volume: random bytes.
    pub uuid: [u8; 16],
    /// Seed of the hashes of its directories: random bytes.
    pub hash_seed: [u8; 16],
}

/// Properties of the new volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of free blocks.
    pub free_blocks: u32,
    /// Blocks reserved for user 0.
    pub reserved_blocks: u32,
    /// Number of inodes.
    pub inodes: u32,
    /// Number of block groups.
    pub groups: u32,
}

/// Formats a disk as an empty volume. All of its content is lost.
pub async fn make_empty<S: BlockSource>(source: &S, options: &MakeOptions) -> Result<Made, MakeError> {
    if source.is_read_only() {
        return Err(MakeError::ReadOnly);
    }
    let geometry = plan(source.size_bytes(), options)?;
    let identity = identity(&geometry, options, source.now_s());
    let mut output = Output::new(source, geometry.block_bytes);
    output.clear_beginning().await?;
    output.flush().await?;
    let lost_blocks = (LOST_BYTES / geometry.block_bytes).min(LOST_MAX_BLOCKS);
    let metadata = Metadata { geometry: &geometry, identity: &identity, used_inodes: EMPTY_USED_INODES };
    let mut free_blocks = 0;
    for group in 0..geometry.groups {
        free_blocks += metadata.free_blocks(group, group_use(group, lost_blocks));
        write_group(&mut output, &metadata, group, group_use(group, lost_blocks)).await?;
    }
    write_folders(&mut output, &geometry, &identity, lost_blocks).await?;
    output.flush().await?;
    // The primary superblock is written last: until then, this is no volume.
    for group in (0..geometry.groups).rev().filter(|&group| geometry.has_superblock(group)) {
        write_descriptors(&mut output, &metadata, group, lost_blocks).await?;
        if group == 0 {
            output.flush().await?;
        }
        let within = if group == 0 { superblock::OFFSET % u64::from(geometry.block_bytes) } else { 0 } as usize;
        let fill = |bytes: &mut [u8]| {
            metadata.superblock(&mut bytes[within..within + superblock::BYTES], group, free_blocks);
        };
        output.block(geometry.group_first(group), fill).await?;
    }
    output.flush().await?;
    Ok(Made {
        block_bytes: geometry.block_bytes,
        blocks: geometry.blocks,
        free_blocks,
        reserved_blocks: identity.reserved_blocks,
        inodes: geometry.inodes(),
        groups: geometry.groups,
    })
}

fn plan(disk_bytes: u64, options: &MakeOptions) -> Result<Geometry, MakeError> {
    if options.reserved_percent > MAX_RESERVED_PERCENT {
        return Err(MakeError::Reserved { asked: options.reserved_percent, most: MAX_RESERVED_PERCENT });
    }
    let usual = if disk_bytes < LARGE_BLOCKS_FROM { 1024 } else { 4096 };
    let block_bytes = options.block_bytes.unwrap_or(usual);
    if !BLOCK_SIZES.contains(&block_bytes) {
        return Err(MakeError::BlockSize(block_bytes));
    }
    let per_inode = if disk_bytes < FEW_INODES_FROM { BYTES_PER_INODE } else { BYTES_PER_INODE_OF_LARGE };
    let (inode_bytes, backups) = match options.style {
        Style::Usual => (INODE_BYTES, Backups::Sparse),
        Style::Plain => (OLD_INODE_BYTES, Backups::Every),
    };
    let wish = Wish {
        volume_bytes: disk_bytes,
        block_bytes,
        inodes: options.inodes.unwrap_or(default_inodes(disk_bytes, per_inode)),
        inode_bytes,
        backups,
    };
    let min_bytes = Geometry::min_bytes(block_bytes, inode_bytes);
    Geometry::plan(&wish).map_err(|error| match (error, options.inodes) {
        (PlanError::Large, _) => MakeError::TooLarge { disk_bytes, block_bytes },
        (PlanError::Small, Some(asked)) if disk_bytes >= min_bytes => MakeError::Inodes(asked),
        (PlanError::Inodes, Some(asked)) => MakeError::Inodes(asked),
        (PlanError::Small | PlanError::Inodes, _) => MakeError::TooSmall { disk_bytes, min_bytes },
    })
}

fn identity(geometry: &Geometry, options: &MakeOptions, made: u32) -> Identity {
    let usual = options.style == Style::Usual;
    let features = |set: u32| if usual { set } else { 0 };
    // At most half of the blocks, so it fits.
    let reserved = u64::from(geometry.blocks) * u64::from(options.reserved_percent) / 100;
    Identity {
        label: options.label,
        uuid: options.uuid,
        hash_seed: options.hash_seed,
        made,
        reserved_blocks: reserved as u32,
        revision: u32::from(usual),
        compatible: features(COMPATIBLE_DIR_INDEX),
        incompatible: features(INCOMPATIBLE_FILE_TYPE),
        read_only_compatible: features(READ_ONLY_SPARSE_SUPER | READ_ONLY_LARGE_FILE),
    }
}

/// Writes a group's bitmaps and its empty inode table.
async fn write_group<S: BlockSource>(
    output: &mut Output<'_, S>,
    metadata: &Metadata<'_>,
    group: u32,
    used: GroupUse,
) -> Result<(), MakeError> {
    let first_bitmap = metadata.geometry.first_bitmap(group);
    output.block(first_bitmap, |bytes| metadata.block_bitmap(bytes, group, used)).await?;
    output.block(first_bitmap + 1, |bytes| metadata.inode_bitmap(bytes, group)).await?;
    output.zeros(first_bitmap + 2, metadata.geometry.inode_table_blocks()).await
}

/// Writes the copy of all descriptors in this group.
async fn write_descriptors<S: BlockSource>(
    output: &mut Output<'_, S>,
    metadata: &Metadata<'_>,
    in_group: u32,
    lost_blocks: u32,
) -> Result<(), MakeError> {
    let geometry = metadata.geometry;
    let per_block = geometry.block_bytes / group::BYTES as u32;
    for block in 0..geometry.descriptor_blocks {
        let fill = |bytes: &mut [u8]| {
            let first = block * per_block;
            for (row, group) in bytes.chunks_exact_mut(group::BYTES).zip(first..geometry.groups) {
                metadata.descriptor(row, group, group_use(group, lost_blocks));
            }
        };
        output.block(geometry.group_first(in_group) + 1 + block, fill).await?;
    }
    Ok(())
}

/// The folders are in the first group.
fn group_use(group: u32, lost_blocks: u32) -> GroupUse {
    match group {
        0 => GroupUse { data_blocks: 1 + lost_blocks, folders: FOLDERS },
        _ => GroupUse::default(),
    }
}

/// Writes the root and `lost+found`: their blocks and inodes.
async fn write_folders<S: BlockSource>(
    output: &mut Output<'_, S>,
    geometry: &Geometry,
    identity: &Identity,
    lost_blocks: u32,
) -> Result<(), MakeError> {
    let root_block = geometry.group_first(0) + geometry.overhead(0);
    let kind = if identity.incompatible & INCOMPATIBLE_FILE_TYPE != 0 { ENTRY_FOLDER } else { 0 };
    output
        .block(root_block, |bytes| {
            fresh::folder_block(bytes, ROOT_INODE, ROOT_INODE, kind, Some((FIRST_INODE, LOST_NAME)))
        })
        .await?;
    let mut blocks = [0; LOST_MAX_BLOCKS as usize];
    for (index, slot) in (0..lost_blocks).zip(&mut blocks) {
        *slot = root_block + 1 + index;
        let fill = |bytes: &mut [u8]| match index {
            0 => fresh::folder_block(bytes, FIRST_INODE, ROOT_INODE, kind, None),
            _ => fresh::unused_block(bytes),
        };
        output.block(*slot, fill).await?;
    }
    let folder = |mode, links, blocks| NewFolder { mode, links, time: identity.made, blocks };
    let root_blocks = [root_block];
    let root = (ROOT_INODE, folder(0o040_755, 3, &root_blocks[..]));
    let lost = (FIRST_INODE, folder(0o040_700, 2, &blocks[..lost_blocks as usize]));
    let per_block = geometry.block_bytes / geometry.inode_bytes;
    // If both are in one block, it is written twice, with both.
    for at in [ROOT_INODE, FIRST_INODE].map(|number| (number - 1) / per_block) {
        let fill = |bytes: &mut [u8]| {
            for (number, new) in [&root, &lost].into_iter().filter(|(number, _)| (number - 1) / per_block == at) {
                let index = ((number - 1) % per_block) as usize;
                let inode_bytes = geometry.inode_bytes as usize;
                fresh::folder_inode(&mut bytes[index * inode_bytes..][..inode_bytes], new, geometry.block_bytes);
            }
        };
        output.block(geometry.first_bitmap(0) + 2 + at, fill).await?;
    }
    Ok(())
}
