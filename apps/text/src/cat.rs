//! Prints files unchanged.
//!
//! Whole blocks go from the file system to the reader without a copy; only the last, shorter one is copied. What it does
//! with its operands is `lib/cat`, which the WebAssembly program `wasm-cat` has, too.

use cat::{Files, PassError};
use client::access::AccessError;
use client::namespace::Namespace;
use contracts::pipe;
use file_tools::feed::{Error, Reader};
use sip::exheap::ExVec;
use stdio::{Input, Output, report};

sip::startup!("cat/manifest.toml");

/// Prints each file. A file that cannot be read is reported; the others are still printed.
pub fn main(startup: Startup) -> i32 {
    let mut files = Native {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        input: startup.input,
        output: Output::new(startup.output),
    };
    let outcome = cat::concatenate(&mut files, &startup.paths);
    outcome.map_or(1, |status| files.output.finish_with(status))
}

/// Files over this system's contracts.
struct Native {
    namespace: Namespace,
    working_folder: alloc::string::String,
    input: Option<pipe::Exp<pipe::states::Ready>>,
    output: Output,
}

impl Files for Native {
    type Reader = Reader;
    type Error = Error;

    fn input(&mut self) -> Option<Reader> {
        self.input.take().map(|input| Reader::of_input(Input::new(input)))
    }

    fn open(&mut self, path: &str) -> Result<Reader, Error> {
        let file = self.namespace.open_file(&path::absolute(&self.working_folder, path))?;
        Ok(Reader::of_file(file))
    }

    fn pass(&mut self, reader: &mut Reader) -> Result<bool, PassError<Error>> {
        let Some((block, count)) = reader.block().map_err(PassError::Unreadable)? else { return Ok(false) };
        let written = if count < block.len() {
            let rest = ExVec::from_slice(&block[..count]);
            let rest = rest.map_err(|status| PassError::Unreadable(AccessError::System(status).into()))?;
            reader.recycle(block);
            self.output.write_block(rest)
        } else {
            self.output.write_block(block)
        };
        written.map(|()| true).map_err(|_| PassError::NoReader)
    }

    fn report(&mut self, path: &str, error: Error) {
        match error {
            Error::File(error) => _ = report::path_error(path, &error),
            Error::Input(broken) => report::error(format_args!("standard input ended early: {broken}")),
            // Reading never says so.
            Error::NoReader => {}
        }
    }

    fn report_nothing(&mut self) {
        report::error(format_args!("no file is named and standard input is not connected; usage: cat PATH..."));
    }
}
