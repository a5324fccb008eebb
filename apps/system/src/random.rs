//! Prints random bytes in hexadecimal, 32 per line.

use alloc::string::String;
use core::fmt::Write;

use client::namespace::Namespace;
use client::random::{RandomError, SOURCE, Source};
use sip::exheap::ExVec;
use stdio::{Output, report};

sip::startup!("random/manifest.toml");

const MAX_BYTES: usize = 65_536;
const LINE_BYTES: usize = 32;

/// Prints the bytes.
pub fn main(startup: Startup) -> i32 {
    let count = match usize::try_from(startup.count) {
        Ok(count) if count <= MAX_BYTES => count,
        _ => {
            report::error(format_args!("{}: give a number of bytes from 0 to {MAX_BYTES}", startup.count));
            return 2;
        }
    };
    let bytes = match random_bytes(Namespace::new(startup.namespace), count) {
        Ok(bytes) => bytes,
        Err(error) => return report::path_error(SOURCE, &error),
    };
    let mut output = Output::new(startup.output);
    for line in bytes.chunks(LINE_BYTES) {
        let mut text = String::with_capacity(2 * LINE_BYTES + 1);
        for byte in line {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        if output.write(text.as_bytes()).is_err() {
            return 1;
        }
    }
    output.finish_with(0)
}

fn random_bytes(mut namespace: Namespace, count: usize) -> Result<ExVec<u8>, RandomError> {
    let (_source, bytes) = Source::open(&mut namespace)?.fill(ExVec::new(count)?)?;
    Ok(bytes)
}
