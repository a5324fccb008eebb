//! Test SIP: a file system for the volume manager to supervise. It serves until it fails, or stops responding.
//!
//! Deliberately not here: files, and any use of its disk beyond the name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::file_system::{CacheCounters, ExpReady, VolumeStatistics};
use sip::Deadline;

sip::startup!();

/// Service time before it fails, in milliseconds.
const SERVES_MS: u64 = 20;

/// Reports ready and its statistics; replies to no other request.
pub fn main(startup: Startup) -> i32 {
    let Startup { clients, control, disk, namespace: _namespace } = startup;
    let _clients = clients.ready();
    let end = if disk.ends_with('0') { Deadline::after_ms(SERVES_MS) } else { Deadline::NEVER };
    let mut control = control.success();
    loop {
        control = match control.receive_by(end) {
            Ok(ExpReady::GetStatistics { next }) => next.statistics(no_numbers()),
            Ok(ExpReady::Sync { next: _asked }) => return silent(end),
            Ok(ExpReady::Unmount { next: _asked }) => return silent(end),
            Ok(ExpReady::ChannelClosed(_)) | Err(_) => return 1,
        };
    }
}

fn silent(end: Deadline) -> i32 {
    sip::thread::sleep(end);
    1
}

fn no_numbers() -> VolumeStatistics {
    let none = CacheCounters { hits: 0, misses: 0, bytes: 0, limit_bytes: 0 };
    VolumeStatistics {
        size_bytes: 0,
        free_bytes: 0,
        available_bytes: 0,
        nodes: 0,
        free_nodes: 0,
        block_bytes: 512,
        read_only: 1,
        unwritten_bytes: 0,
        open: 0,
        node_cache: none,
        number_cache: none,
        data_cache: none,
        label: [0; 32],
        kind: [0; 96],
    }
}
