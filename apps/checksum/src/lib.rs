//! Prints a checksum of files, read block by block.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod crc32;

use alloc::format;
use alloc::string::String;

use contracts::access::AccessError;
use contracts::file_io::read_all;
use contracts::namespace::Namespace;
use contracts::pipe_io::{Input, Output};
use contracts::text::printable;
use contracts::{path, report};
use sha2::{Digest, Sha256};

use crate::crc32::Crc32;

sip::startup!();

enum Checksum {
    Sha256(Sha256),
    Crc32(Crc32),
}

impl Checksum {
    fn named(algorithm: &str) -> Option<Checksum> {
        match algorithm {
            "sha256" => Some(Checksum::Sha256(Sha256::new())),
            "crc32" => Some(Checksum::Crc32(Crc32::new())),
            _ => None,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Checksum::Sha256(state) => state.update(bytes),
            Checksum::Crc32(state) => state.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Checksum::Sha256(state) => state.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            Checksum::Crc32(state) => format!("{:08x}", state.value()),
        }
    }
}

/// Prints a line for each file: its checksum, two blanks, its path as it was asked for.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut namespace = Namespace::new(startup.namespace);
    let algorithm = startup.algorithm.as_str();
    if Checksum::named(algorithm).is_none() {
        report::error(format_args!("there is no algorithm `{algorithm}`; use sha256 or crc32"));
        return 1;
    }
    if startup.paths.is_empty() {
        return sum_input(startup.input.map(Input::new), algorithm, output);
    }
    let mut status = 0;
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        match sum_file(&mut namespace, &full, algorithm) {
            Ok(sum) => {
                if output.write(format!("{sum}  {}\n", printable(asked.as_bytes())).as_bytes()).is_err() {
                    return 1;
                }
            }
            Err(error) => status = report::path_error(asked, &error),
        }
    }
    output.finish_with(status)
}

fn sum_file(namespace: &mut Namespace, full: &str, algorithm: &str) -> Result<String, AccessError> {
    let mut file = namespace.open_file(full)?;
    // `main` has looked that the algorithm is there.
    let mut sum = Checksum::named(algorithm).unwrap_or(Checksum::Crc32(Crc32::new()));
    read_all(&mut file, |block, count| {
        sum.update(&block[..count]);
        Ok::<_, AccessError>(block)
    })?;
    Ok(sum.finish())
}

fn sum_input(input: Option<Input>, algorithm: &str, mut output: Output) -> i32 {
    let (Some(mut input), Some(mut sum)) = (input, Checksum::named(algorithm)) else {
        report::error(format_args!("no file is named and nothing feeds the standard input; usage: checksum PATH..."));
        return 1;
    };
    loop {
        match input.block() {
            Ok(Some(block)) => sum.update(&block),
            Ok(None) => break,
            Err(broken) => {
                report::error(format_args!("standard input was cut off: {broken}"));
                return output.finish_with(1);
            }
        }
    }
    output.write(format!("{}  -\n", sum.finish()).as_bytes()).map_or(1, |()| output.finish_with(0))
}
