//! Serving the manager of the volume.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::file_system::{self, CacheCounters, ExpReady, VolumeStatistics, states};
use fat::Error;

use crate::{Shared, answers};

/// Does what the manager asks, until it closes. Whether the volume was unmounted.
pub(crate) async fn serve(shared: Rc<Shared>, control: file_system::Exp<states::Start>) -> bool {
    let mut control = control.success();
    loop {
        control = match control.receive_async().await {
            ExpReady::GetStatistics { next } => {
                let statistics = statistics(&shared).await;
                next.statistics(statistics)
            }
            ExpReady::Sync { next } => match shared.volume.sync().await {
                Ok(()) => next.done(),
                Err(error) => {
                    shared.note(error);
                    next.failed(answers::file_system_error(error))
                }
            },
            ExpReady::Unmount { next } => match shared.volume.unmount().await {
                Ok(()) | Err(Error::ShutDown) => {
                    drop(next.done());
                    return true;
                }
                Err(error) => {
                    shared.note(error);
                    next.failed(answers::file_system_error(error))
                }
            },
            ExpReady::ChannelClosed(_) => return false,
        };
    }
}

/// The numbers. Where the disk does not give them, those that are known without it.
async fn statistics(shared: &Shared) -> VolumeStatistics {
    let cache = shared.volume.cache();
    let counters =
        CacheCounters { hits: cache.hits, misses: cache.misses, bytes: cache.bytes, limit_bytes: cache.limit_bytes };
    let none = CacheCounters { hits: 0, misses: 0, bytes: 0, limit_bytes: 0 };
    let mut told = VolumeStatistics {
        size_bytes: 0,
        free_bytes: 0,
        available_bytes: 0,
        nodes: 0,
        free_nodes: 0,
        block_bytes: 0,
        read_only: 0,
        unwritten_bytes: cache.unwritten_bytes,
        open: 0,
        node_cache: none,
        number_cache: none,
        data_cache: counters,
        label: padded(""),
        kind: padded("FAT"),
    };
    match shared.volume.statistics().await {
        Ok(found) => {
            told.size_bytes = found.size_bytes;
            told.free_bytes = found.free_bytes;
            told.available_bytes = found.free_bytes;
            told.block_bytes = found.cluster_bytes;
            told.read_only = u32::from(found.is_read_only);
            told.open = found.open;
            told.label = padded(&found.label);
            told.kind = padded(&kind(shared, found.bits, found.is_read_only));
        }
        Err(error) => shared.note(error),
    }
    told
}

fn kind(shared: &Shared, bits: u32, is_read_only: bool) -> String {
    let why = match (is_read_only, shared.may_write) {
        (false, _) => "",
        (true, false) => "; it was mounted to be read only",
        (true, true) => "; its disk cannot be written to",
    };
    format!("FAT{bits}{why}")
}

/// A text cut to fit at a character's end and padded with zeros.
fn padded<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    let end =
        text.char_indices().map(|(at, character)| at + character.len_utf8()).take_while(|end| *end <= BYTES).last();
    let end = end.unwrap_or(0);
    out[..end].copy_from_slice(&text.as_bytes()[..end]);
    out
}
