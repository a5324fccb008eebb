//! What was refused in the system, and to whom, as a file that anybody reads who may bind to it.
//!
//! The kernel keeps the lines; a client sees those that were there when it opened the file. Deliberately not here:
//! who may read it, which the system manifest's rules say, and any way to change a line.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;

use contracts::file::{Exp, ExpReady, FileAttributes, FileError, states};
use sip::Status;

sip::startup!();

/// Permission bits of a file that all may read and nobody may write.
const READ_ONLY: u32 = 0o444;
/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;
/// Number of the file's node; it is the only one here.
const NODE: u64 = 1;

/// Serves whoever binds to `/status/audit`.
pub fn main(startup: Startup) -> i32 {
    let clients = startup.clients.ready();
    match sip::executor::block_on(contracts::provider::accept(clients, serve)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

async fn serve(client: Exp<states::Start>) {
    match sip::audit::read(0) {
        Ok((text, _)) => serve_text(text, client).await,
        Err(Status::NotPermitted) => drop(client.refused(FileError::NotPermitted)),
        Err(_) => drop(client.refused(FileError::Exhausted)),
    }
}

/// Serves a file of this content, which nobody changes.
async fn serve_text(text: String, client: Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => next.attributes(attributes(&text)),
            ExpReady::Read { mut data, offset, count, next } => {
                let copied = copy(text.as_bytes(), offset, count, &mut data);
                next.read_done(data, copied)
            }
            ExpReady::Write { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::Append { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::SetSize { next, .. } => next.failed(FileError::ReadOnly),
            ExpReady::Sync { next } => next.done(),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn attributes(text: &str) -> FileAttributes {
    FileAttributes {
        size_bytes: text.len() as u64,
        allocated_bytes: 0,
        node: NODE,
        // Not before 1970.
        modified_s: (sip::time::wall() / SECOND_NS) as i64,
        permissions: READ_ONLY,
        links: 1,
    }
}

/// Copies at most `count` bytes from `offset` on; how many.
fn copy(text: &[u8], offset: u64, count: u32, into: &mut [u8]) -> u32 {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let rest = &text[start..];
    let length = rest.len().min(count as usize).min(into.len());
    into[..length].copy_from_slice(&rest[..length]);
    // Not more than `count`.
    length as u32
}
