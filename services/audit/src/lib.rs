//! The kernel's audit log and measurements as read-only files: refusals with their principals, and the hashes of kernel
//! and system image.
//!
//! The kernel keeps the log; a client sees it as of the time it opened the file ([`snapshots`]). Deliberately not
//! here: access control, which the system manifest's rules do, and any way to change an entry.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod snapshots;

use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;
use core::fmt::Write;

use contracts::file::{Exp, ExpReady, FileAttributes, FileError, states};
use provider::accept;
use sip::Status;
use sip::diagnostics::{Measured, measurement};

use crate::snapshots::{Number, Snapshots};

sip::startup!();

/// Permission bits of the files.
const READ_ONLY: u32 = 0o444;
/// Nanoseconds per second.
const SECOND_NS: u64 = 1_000_000_000;

/// Contents of a file, and its node number.
#[derive(Clone, Copy)]
enum Contents {
    /// The audit log.
    Refusals = 1,
    /// SHA-256 of kernel and system image, as `sha256sum` prints them.
    Measurements = 2,
}

/// Serves clients of `/status/audit` and `/status/measurement`.
pub fn main(startup: Startup) -> i32 {
    let clients = startup.clients.ready();
    let measurement_clients = startup.measurement_clients.ready();
    let (refusals, measurements) = (SnapshotFile::new(Contents::Refusals), SnapshotFile::new(Contents::Measurements));
    let serving = sip::executor::block_on(async {
        let serving = accept(measurement_clients, move |client| serve(measurements.clone(), client));
        drop(sip::executor::spawn(serving));
        accept(clients, move |client| serve(refusals.clone(), client)).await;
    });
    match serving {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn text(contents: Contents) -> Result<String, Status> {
    match contents {
        Contents::Refusals => sip::audit::read(0).map(|(text, _)| text),
        Contents::Measurements => {
            let mut text = String::new();
            for (of, name) in [(Measured::Kernel, "kernel"), (Measured::System, "system")] {
                match measurement(of) {
                    Ok(digest) => {
                        // Writing to a String cannot fail.
                        let _ = digest.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
                        let _ = writeln!(text, "  {name}");
                    }
                    // Not measured on this machine.
                    Err(Status::NotFound) => {}
                    Err(status) => return Err(status),
                }
            }
            Ok(text)
        }
    }
}

/// A file and its snapshots.
#[derive(Clone)]
struct SnapshotFile {
    contents: Contents,
    snapshots: Rc<RefCell<Snapshots>>,
}

impl SnapshotFile {
    fn new(contents: Contents) -> SnapshotFile {
        SnapshotFile { contents, snapshots: Rc::default() }
    }

    /// The text for a client of this snapshot.
    fn text(&self, number: Number) -> Rc<str> {
        self.snapshots.borrow().text(number)
    }
}

async fn serve(file: SnapshotFile, client: Exp<states::Start>) {
    match text(file.contents) {
        Ok(text) => {
            let number = file.snapshots.borrow_mut().take(text);
            serve_text(file, number, client).await;
        }
        Err(Status::NotPermitted) => drop(client.refused(FileError::NotPermitted)),
        Err(_) => drop(client.refused(FileError::Exhausted)),
    }
}

/// Serves one snapshot, read only.
async fn serve_text(file: SnapshotFile, number: Number, client: Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => next.attributes(attributes(file.contents, &file.text(number))),
            ExpReady::Read { mut data, offset, count, next } => {
                let copied = copy(file.text(number).as_bytes(), offset, count, &mut data);
                next.read_done(data, copied)
            }
            ExpReady::Write { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::Append { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::SetSize { next, .. } => next.failed(FileError::ReadOnly),
            ExpReady::Sync { next } => next.done(),
            // Nobody writes to it.
            ExpReady::Lock { next, .. } => next.failed(FileError::ReadOnly),
            ExpReady::Unlock { next, .. } => next.done(),
            ExpReady::TestLock { next, .. } => next.free(),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn attributes(contents: Contents, text: &str) -> FileAttributes {
    FileAttributes {
        size_bytes: text.len() as u64,
        allocated_bytes: 0,
        node: contents as u64,
        // Fits: the clock is not negative.
        modified_s: (sip::time::wall() / SECOND_NS) as i64,
        permissions: READ_ONLY,
        links: 1,
    }
}

/// Copies at most `count` bytes from `offset`; returns the number copied.
fn copy(text: &[u8], offset: u64, count: u32, into: &mut [u8]) -> u32 {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let rest = &text[start..];
    let length = rest.len().min(count as usize).min(into.len());
    into[..length].copy_from_slice(&rest[..length]);
    // Fits: at most `count`.
    length as u32
}
