//! Serving the volume manager: numbers, sync, unmount.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::file_system::{self, CacheCounters, ExpReady, VolumeStatistics, states};
use ext2::CacheCounts;

use crate::{Shared, answers};

/// Serves the manager until it closes its end or has unmounted the volume, which ends the process.
pub(crate) async fn serve(shared: Rc<Shared>, controller: file_system::Exp<states::Start>) {
    let mut controller = controller.success();
    loop {
        controller = match controller.receive_async().await {
            ExpReady::GetStatistics { next } => next.statistics(statistics(&shared)),
            ExpReady::Sync { next } => match shared.volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => {
                    shared.note(&error);
                    next.failed(answers::file_system_error(&error))
                }
            },
            ExpReady::Unmount { next } => match shared.volume.unmount().await {
                Ok(()) => {
                    drop(next.done());
                    sip::process::exit(0)
                }
                Err(error) => {
                    shared.note(&error);
                    next.failed(answers::file_system_error(&error))
                }
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn statistics(shared: &Shared) -> VolumeStatistics {
    let (numbers, superblock) = (shared.volume.statistics(), shared.volume.superblock());
    let bytes = |blocks: u32| u64::from(blocks) * u64::from(numbers.block_bytes);
    let counters = |counts: CacheCounts, limit: usize| CacheCounters {
        hits: counts.hits,
        misses: counts.misses,
        bytes: counts.bytes as u64,
        limit_bytes: limit as u64,
    };
    VolumeStatistics {
        size_bytes: bytes(numbers.blocks),
        free_bytes: bytes(numbers.free_blocks),
        available_bytes: bytes(numbers.free_blocks.saturating_sub(numbers.reserved_blocks)),
        nodes: numbers.inodes.into(),
        free_nodes: numbers.free_inodes.into(),
        block_bytes: numbers.block_bytes,
        read_only: u32::from(shared.volume.read_only_reason().is_some()),
        unwritten_bytes: numbers.dirty_bytes,
        open: numbers.open.into(),
        node_cache: counters(numbers.caches.inodes, numbers.limits.inode_bytes),
        number_cache: counters(numbers.caches.numbers, numbers.limits.number_bytes),
        data_cache: counters(numbers.caches.data, numbers.limits.data_bytes),
        label: fitted(&superblock.label),
        kind: fitted(kind(shared).as_bytes()),
    }
}

/// What the volume is, and why it can only be read where that is so.
fn kind(shared: &Shared) -> String {
    let superblock = shared.volume.superblock();
    let blocks = superblock.block_bytes;
    match shared.volume.read_only_reason() {
        None => format!("ext2 revision {}, blocks of {blocks} bytes", superblock.revision),
        Some(reason) => format!("ext2 revision {}; {reason}", superblock.revision),
    }
}

/// Bytes cut to fit and padded with zeros.
fn fitted<const BYTES: usize>(text: &[u8]) -> [u8; BYTES] {
    let mut fitted = [0; BYTES];
    let count = text.len().min(BYTES);
    fitted[..count].copy_from_slice(&text[..count]);
    fitted
}
