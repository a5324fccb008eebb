//! Test SIP: checks the server of one folder against the contracts `Directory` and `File`. Every file server must give
//! the same replies, except for operations that it reports as unsupported.
//!
//! [`folders`] and [`files`] are the checks, [`readers`] those for read-only clients, [`suite`] counts them.
//! Deliberately not here: links and lists, which not every file system has.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod files;
mod folders;
mod readers;
mod suite;

use alloc::format;

use client::namespace::Namespace;
use stdio::{Output, report};

use suite::Suite;

sip::startup!();

/// Prints a line for each reply that violates the contracts, and the number of right ones.
pub fn main(startup: Startup) -> i32 {
    let folder = match Namespace::new(startup.namespace).open_directory(&startup.folder) {
        Ok(folder) => folder,
        Err(error) => return report::path_error(&startup.folder, &error),
    };
    let mut suite = Suite::new(folder);
    let ran = match startup.read_only {
        true => readers::check(&mut suite),
        false => folders::check(&mut suite).and_then(|()| files::check(&mut suite)),
    };
    if let Err(error) = ran {
        return report::path_error(&startup.folder, &error);
    }
    for failure in suite.failures() {
        report::error(format_args!("{}: {failure}", startup.folder));
    }
    let text = format!("{} of {} answers are right\n", suite.right(), suite.checks());
    let mut output = Output::new(startup.output);
    let status = i32::from(suite.right() != suite.checks());
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(status))
}
