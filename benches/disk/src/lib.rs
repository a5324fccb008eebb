//! Measures file read and write speed through the contracts that every program uses.
//!
//! Each task prints its time, as text for a person or as lines `bench NAME NANOSECONDS` for the host tool, which runs
//! the same tasks on Linux. Deliberately not here: judging the figures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod device;
mod figures;
mod tasks;
mod web_files;

use alloc::string::String;

use client::access::AccessError;
use client::namespace::Namespace;
use stdio::{Output, PipeBroken, report};

use crate::figures::{Figures, Form};
use crate::tasks::Bench;

sip::startup!();

/// Why a task has no result.
pub enum Error {
    /// Access to this path failed.
    At(String, AccessError),
    /// No task has this name.
    NoTask(String),
    /// The reader of the output has ended.
    NoReader,
}

impl From<PipeBroken> for Error {
    fn from(_: PipeBroken) -> Error {
        Error::NoReader
    }
}

/// Runs the task for the requested number of rounds.
pub fn main(startup: Startup) -> i32 {
    let positive = |number: i64| u64::try_from(number).unwrap_or(0).max(1);
    let form = if startup.figures { Form::Figures } else { Form::Text };
    let mut output = Output::new(startup.output);
    let mut bench = Bench {
        namespace: Namespace::new(startup.namespace),
        figures: Figures::new(form),
        path: path::absolute(&startup.working_folder, &startup.path),
        // A block has at least one byte and at most `u32::MAX`.
        block_bytes: positive(startup.block_bytes).min(u32::MAX.into()) as usize,
        size_bytes: positive(startup.size_mib).saturating_mul(1 << 20),
        count: positive(startup.count),
        web_folders: None,
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
                "unknown task {task}; use all, read, random, latency, write, files, tree, web or device"
            ));
            output.finish_with(2)
        }
    }
}
