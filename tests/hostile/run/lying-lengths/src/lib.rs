//! Sends lengths that differ from those of the sent blocks.
//!
//! A server that trusted them would read or write past a block's end.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use client::namespace::Namespace;
use contracts::directory;
use contracts::file::{self, ImpReadyAfterRead, ImpReadyAfterWrite};
use hostile_contract::Record;
use hostile_contract::talk::{self, ImpReadyAfterGive, ImpReadyAfterGiveMany, ImpReadyAfterLend};
use sip::exheap::{ExBox, ExVec};

sip::startup!();

const LENGTHS: [u64; 8] = [1, 63, 64, 65, 4096, u32::MAX as u64, i64::MAX as u64, u64::MAX];
const BLOCK_BYTES: [usize; 4] = [0, 1, 64, 4096];
const FILE: &str = "/fs/vault/ledger";

type Victim = talk::Imp<talk::states::Ready>;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    let worked = match startup.attempt {
        0 => loans(startup.victim),
        1 => empty_blocks(startup.victim),
        2 => startup.namespace.and_then(reads),
        3 => startup.namespace.and_then(writes),
        other => panic!("there is no attempt {other}"),
    };
    match worked {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    }
}

/// Checks whether anything outside a block changed.
fn loans(victim: Victim) -> Option<bool> {
    let mut victim = victim;
    for bytes in BLOCK_BYTES {
        for length in LENGTHS {
            let block = ExVec::<u8>::new(bytes).ok()?;
            let ImpReadyAfterLend::Returned { data, length: changed, next } = victim.lend(block, length).receive()
            else {
                return None;
            };
            if data.len() != bytes || changed > bytes as u64 {
                return Some(true);
            }
            victim = next;
        }
    }
    Some(false)
}

fn empty_blocks(victim: Victim) -> Option<bool> {
    let ImpReadyAfterGive::GivenBack { data, next } = victim.give(ExVec::new(0).ok()?).receive() else { return None };
    let record = ExBox::new(Record { first: 1, rest: [2; 7] }).ok()?;
    let given = next.give_many(ExVec::new(0).ok()?, record, ExVec::new(0).ok()?);
    let ImpReadyAfterGiveMany::GivenRecord { record, .. } = given.receive() else { return None };
    Some(!data.is_empty() || record.first != 0)
}

fn open(names: directory::Imp<directory::states::Ready>) -> Option<file::Imp<file::states::Ready>> {
    let open = |importer: file::Imp<file::states::Start>| match importer.receive() {
        file::ImpStart::Success { next } => Ok(next),
        file::ImpStart::Refused { error, .. } => Err(error.into()),
        file::ImpStart::ChannelClosed(_) => Err(client::access::AccessError::ServerEnded),
    };
    Namespace::new(names).open(FILE, file::new_channel, open).ok()
}

fn reads(names: directory::Imp<directory::states::Ready>) -> Option<bool> {
    let mut file = open(names)?;
    for bytes in BLOCK_BYTES {
        for count in LENGTHS {
            for offset in [0, 1, u64::MAX, u64::MAX - 4095, i64::MAX as u64] {
                let data = ExVec::<u8>::new(bytes).ok()?;
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                file = match file.read(data, offset, count).receive() {
                    ImpReadyAfterRead::ReadDone { data, count, .. } if count as usize > data.len() => {
                        return Some(true);
                    }
                    ImpReadyAfterRead::ReadDone { next, .. } | ImpReadyAfterRead::ReadFailed { next, .. } => next,
                    ImpReadyAfterRead::ChannelClosed(_) => return None,
                };
            }
        }
    }
    Some(false)
}

/// No write may succeed: there are no such bytes.
fn writes(names: directory::Imp<directory::states::Ready>) -> Option<bool> {
    let mut file = open(names)?;
    for count in [1, 64, 4096, u32::MAX] {
        let data = ExVec::<u8>::new(0).ok()?;
        file = match file.write(data, 0, count).receive() {
            ImpReadyAfterWrite::WriteDone { .. } => return Some(true),
            ImpReadyAfterWrite::WriteFailed { written, .. } if written > 0 => return Some(true),
            ImpReadyAfterWrite::WriteFailed { next, .. } => next,
            ImpReadyAfterWrite::ChannelClosed(_) => return None,
        };
    }
    Some(false)
}
