//! Prints files unchanged: `cat` of this system, over WASI. What it does with its operands is `lib/cat`, which the native
//! program has, too.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Stdin, Stdout, Write};
use std::process::ExitCode;

use cat::{Files, PassError};

/// Bytes that are read at once: a block of this system's files.
const BYTES: usize = 64 << 10;

fn main() -> ExitCode {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let mut files = Wasi { input: Some(io::stdin()), output: io::stdout(), piece: vec![0; BYTES] };
    match cat::concatenate(&mut files, &paths) {
        Ok(0) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Files over WASI.
struct Wasi {
    input: Option<Stdin>,
    output: Stdout,
    piece: Vec<u8>,
}

impl Files for Wasi {
    type Reader = Box<dyn Read>;
    type Error = io::Error;

    fn input(&mut self) -> Option<Box<dyn Read>> {
        self.input.take().map(|input| Box::new(input) as Box<dyn Read>)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(path)?))
    }

    fn pass(&mut self, reader: &mut Box<dyn Read>) -> Result<bool, PassError<io::Error>> {
        let count = reader.read(&mut self.piece).map_err(PassError::Unreadable)?;
        let written = self.output.write_all(&self.piece[..count]).and_then(|()| self.output.flush());
        written.map(|()| count > 0).map_err(|_| PassError::NoReader)
    }

    fn report(&mut self, path: &str, error: io::Error) {
        eprintln!("{path}: {error}");
    }

    fn report_nothing(&mut self) {
        eprintln!("no file is named and standard input is not connected; usage: wasm-cat PATH...");
    }
}
