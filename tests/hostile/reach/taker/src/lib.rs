//! Has no folder and may bind nothing; reads the file received over the channel given by its parent.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use client::file_io::OpenFile;
use contracts::{file, pipe};
use hostile_reach_contract::courier;
use sip::exheap::ExVec;
use stdio::Output;

sip::startup!();

/// Maximum bytes read.
const BYTES: usize = 512;

/// Reads one file.
pub fn main(startup: Startup) -> i32 {
    match startup.courier.receive() {
        courier::ImpReady::Take { end, next } => {
            drop(next.taken());
            match end.downcast::<file::Imp<file::states::Ready>>() {
                Ok(file) => print(file, startup.output),
                Err(_) => 1,
            }
        }
        courier::ImpReady::ChannelClosed(_) => 1,
    }
}

/// Prints the file's content.
fn print(file: file::Imp<file::states::Ready>, output: pipe::Imp<pipe::states::Ready>) -> i32 {
    let (mut file, mut output) = (OpenFile::new(file), Output::new(output));
    let Ok(block) = ExVec::from_slice(&[0; BYTES]) else { return output.finish_with(2) };
    match file.read_at(block, 0) {
        Ok((data, count)) if count > 0 && output.write(&data[..count]).is_ok() => output.finish_with(0),
        _ => output.finish_with(1),
    }
}
