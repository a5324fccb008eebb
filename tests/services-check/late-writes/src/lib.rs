//! Queues many writes on a disk, kills its driver, writes the same sectors through the driver's successor, and checks
//! the content once all old writes have completed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use client::processes::select;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use contracts::disk_events;
use sip::Deadline;
use sip::exheap::ExVec;
use sip::process::{StopReason, stop_any};
use stdio::{Output, report};

sip::startup!();

const WRITES: u64 = 32;
const WRITE_BYTES: usize = 4 << 20;
const SECTOR_BYTES: usize = 512;
const OLD: u8 = 0xAA;
const NEW: u8 = 0xBB;
/// The program that drives the disk.
const DRIVER: &str = "file-disk";
/// Time for the driver to submit the writes.
const HEAD_START_MS: u64 = 1;
/// Timeout for the driver's end and its restart.
const TIMEOUT_MS: u64 = 20_000;

type Channel = disk::Imp<states::Ready>;
type Failed = AccessError;

/// Prints `kept` if all later writes are there.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    match check(&mut namespace, &startup.disk) {
        Ok(0) => {
            let mut output = Output::new(startup.output);
            output.write(b"kept\n").map_or(1, |()| output.finish_with(0))
        }
        Ok(lost) => {
            report::error(format_args!("{lost} of {WRITES} later writes were lost to earlier ones"));
            1
        }
        Err(error) => report::path_error(&startup.disk, &error),
    }
}

/// Number of later writes that were lost.
fn check(namespace: &mut Namespace, path: &str) -> Result<u64, Failed> {
    let (events, exporter) = disk_events::new_channel()?;
    let watching = match open(namespace, path)?.notify(exporter).receive() {
        disk::ImpReadyAfterNotify::Notifying { next } => next,
        disk::ImpReadyAfterNotify::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    let mut prepared = Vec::new();
    for number in 0..WRITES {
        let mut block = ExVec::<u8>::new(WRITE_BYTES)?;
        block.fill(OLD);
        prepared.push((open(namespace, path)?, block, number * WRITE_BYTES as u64));
    }
    let under_way: Vec<_> =
        prepared.into_iter().map(|(channel, block, offset)| channel.write(block, offset, WRITE_BYTES as u32)).collect();
    sip::time::sleep_until(Deadline::after_ms(HEAD_START_MS));
    kill_driver()?;
    match events.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(disk_events::ImpReady::ChannelClosed(_)) => {}
        _ => return Err(NameError::NotSupported.into()),
    }
    drop(watching);
    let mut channel = open(namespace, path)?;
    for number in 0..WRITES {
        let mut block = ExVec::<u8>::new(SECTOR_BYTES)?;
        block.fill(NEW);
        channel = match channel.write(block, last_sector(number), SECTOR_BYTES as u32).receive() {
            disk::ImpReadyAfterWrite::WriteDone { next, .. } => next,
            disk::ImpReadyAfterWrite::WriteFailed { .. } => return Err(NameError::DeviceError.into()),
            disk::ImpReadyAfterWrite::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        };
    }
    // Each reply arrives when its block is returned, regardless of the write's outcome.
    for write in under_way {
        drop(write.receive());
    }
    let mut lost = 0;
    for number in 0..WRITES {
        let block = ExVec::<u8>::new(SECTOR_BYTES)?;
        channel = match channel.read(block, last_sector(number), SECTOR_BYTES as u32).receive() {
            disk::ImpReadyAfterRead::ReadDone { data, next } => {
                lost += u64::from(data.iter().any(|&byte| byte != NEW));
                next
            }
            disk::ImpReadyAfterRead::ReadFailed { .. } => return Err(NameError::DeviceError.into()),
            disk::ImpReadyAfterRead::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        };
    }
    Ok(lost)
}

fn kill_driver() -> Result<(), Failed> {
    for process in select(&sip::diagnostics::processes()?, DRIVER) {
        stop_any(process.id, StopReason::Requested)?;
    }
    Ok(())
}

/// The last sector of a write, which is written last.
fn last_sector(number: u64) -> u64 {
    (number + 1) * WRITE_BYTES as u64 - SECTOR_BYTES as u64
}

fn open(namespace: &mut Namespace, path: &str) -> Result<Channel, Failed> {
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        let opened = namespace.open(path, disk::new_channel, |importer| match importer.receive() {
            disk::ImpStart::Success { next } => Ok(next),
            disk::ImpStart::Refused { .. } => Err(NameError::DeviceError.into()),
            disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        });
        match opened {
            Err(error) if error.may_pass() && !deadline.has_passed() => {}
            other => return other,
        }
    }
}
