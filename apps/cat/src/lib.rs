//! Prints files, byte for byte.
//!
//! Whole blocks go from the file system to the reader without a copy; only the last, shorter one is copied.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::access::AccessError;
use contracts::file_io::{new_block, read_all};
use contracts::namespace::Namespace;
use contracts::pipe_io::{Input, Output, PipeBroken};
use contracts::{path, report};
use sip::exheap::ExVec;

sip::startup!();

enum Trouble {
    File(AccessError),
    /// Whoever read the output has ended: there is nobody to print for.
    NoReader,
}

impl From<AccessError> for Trouble {
    fn from(error: AccessError) -> Trouble {
        Trouble::File(error)
    }
}

impl From<PipeBroken> for Trouble {
    fn from(_: PipeBroken) -> Trouble {
        Trouble::NoReader
    }
}

/// Prints each file; one that cannot be read is reported, and the others are still printed.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    if startup.paths.is_empty() {
        return copy_input(startup.input.map(Input::new), output);
    }
    let mut namespace = Namespace::new(startup.namespace);
    let mut status = 0;
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        match copy_file(&mut namespace, &full, &mut output) {
            Ok(()) => {}
            Err(Trouble::File(error)) => status = report::path_error(asked, &error),
            Err(Trouble::NoReader) => return 1,
        }
    }
    output.finish_with(status)
}

fn copy_file(namespace: &mut Namespace, full: &str, output: &mut Output) -> Result<(), Trouble> {
    let mut file = namespace.open_file(full)?;
    read_all(&mut file, |block, count| {
        if count < block.len() {
            let rest = ExVec::from_slice(&block[..count]).map_err(AccessError::System)?;
            output.write_block(rest)?;
            return Ok(block);
        }
        output.write_block(block)?;
        new_block().map_err(|status| Trouble::File(status.into()))
    })
}

fn copy_input(input: Option<Input>, mut output: Output) -> i32 {
    let Some(mut input) = input else {
        report::error(format_args!("no file is named and nothing feeds the standard input; usage: cat PATH..."));
        return 1;
    };
    loop {
        match input.block() {
            Ok(Some(block)) => {
                if output.write_block(block).is_err() {
                    return 1;
                }
            }
            Ok(None) => return output.finish_with(0),
            Err(broken) => {
                report::error(format_args!("standard input was cut off: {broken}"));
                return output.finish_with(1);
            }
        }
    }
}
