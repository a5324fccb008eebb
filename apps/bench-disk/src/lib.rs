//! Measures how fast files are read and written, through the contracts that every program uses.
//!
//! Each task prints how long it took, as text for a person or as lines `bench NAME NANOSECONDS` for the host tool,
//! which does the same tasks on Linux. Deliberately not here: judging the figures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod figures;
mod tasks;

use alloc::string::String;

use client::access::AccessError;
use client::namespace::Namespace;
use stdio::{Output, PipeBroken, report};

use crate::figures::{Figures, Form};
use crate::tasks::Bench;

sip::startup!();

/// Why there is no figure.
pub enum Error {
    /// Something was wrong with this path.
    At(String, AccessError),
    /// There is no such task.
    NoTask(String),
    /// Whoever read the output has ended.
    NoReader,
}

impl From<PipeBroken> for Error {
    fn from(_: PipeBroken) -> Error {
        Error::NoReader
    }
}

/// Does the task as often as was asked.
pub fn main(startup: Startup) -> i32 {
    let positive = |number: i64| u64::try_from(number).unwrap_or(0).max(1);
    let form = if startup.figures { Form::Figures } else { Form::Text };
    let mut output = Output::new(startup.output);
    let mut bench = Bench {
        namespace: Namespace::new(startup.namespace),
        figures: Figures::new(form),
        path: path::absolute(&startup.working_folder, &startup.path),
        // A block is at least a byte and at most what a count of 32 bits can say.
        block_bytes: positive(startup.block_bytes).min(u32::MAX.into()) as usize,
        size_bytes: positive(startup.size_mib).saturating_mul(1 << 20),
        count: positive(startup.count),
    };
    let mut result = Ok(());
    for round in 0..positive(startup.rounds) {
        bench.figures.begin_round(round);
        result = bench.run(&startup.task).and_then(|()| bench.figures.print(&mut output));
        if result.is_err() {
            break;
        }
    }
    match result {
        Ok(()) => output.finish_with(0),
        Err(Error::NoReader) => 1,
        Err(Error::At(path, error)) => output.finish_with(report::path_error(&path, &error)),
        Err(Error::NoTask(task)) => {
            report::error(format_args!(
                "{task} is no task; there are all, read, random, latency, write, files and tree"
            ));
            output.finish_with(2)
        }
    }
}
