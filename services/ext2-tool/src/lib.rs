//! Formats and checks ext2 disks, and reports on standard output.
//!
//! The exit status is the outcome: 0 done or clean, 1 repaired, 4 faulty, 8 failed, or 16 and more for one of the
//! reasons of the contract `VolumeManager`; then the first line of the output has the reason.
//! Deliberately not here: disk I/O (`disk-source`), exclusive use of disks (the manager), and the format (`lib/ext2`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod checking;
mod formatting;
mod limits;
mod outcome;
mod seed;

use client::namespace::Namespace;
use disk_source::DiskSource;
use sip::executor;
use stdio::Output;

use outcome::Refusal;

sip::startup!();

/// Exit status if a resource of the machine is missing.
const STATUS_FAILED: i32 = 8;
/// Maximum number of concurrent disk requests.
const CHANNELS: usize = 1;

/// Runs the task and returns the exit status.
pub fn main(startup: Startup) -> i32 {
    let Startup { namespace, output, task, disk, block_bytes, nodes, reserved_percent, plain, label, mode } = startup;
    let mut output = Output::new(output);
    let work = async {
        let mut namespace = Namespace::new(namespace);
        match task.as_str() {
            "format" => {
                let request = formatting::Request { block_bytes, nodes, reserved_percent, plain, label: &label };
                let options = request.options(&mut namespace)?;
                let source = open(namespace, &disk).await?;
                formatting::format(&source, &options, &disk, &mut output).await
            }
            "check" => {
                let mode = checking::mode(&mode)?;
                let source = open(namespace, &disk).await?;
                checking::check_disk(&source, mode, &disk, &mut output).await
            }
            other => Err(Refusal::task(other)),
        }
    };
    let status = match executor::block_on(work) {
        Ok(Ok(status)) => status,
        Ok(Err(refusal)) => {
            // If the pipe is broken, the exit status still reports it.
            let _ = output.write(alloc::format!("{disk}: {refusal}\n").as_bytes());
            refusal.status()
        }
        Err(_) => STATUS_FAILED,
    };
    output.finish_with(status)
}

async fn open(namespace: Namespace, path: &str) -> Result<DiskSource, Refusal> {
    DiskSource::open(namespace, path, CHANNELS, None).await.map_err(Refusal::access)
}
