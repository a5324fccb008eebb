//! Ends processes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::processes::{none, select};
use contracts::report;
use sip::process::{StopReason, stop_any};

sip::startup!();

/// Ends every process that the arguments name.
pub fn main(startup: Startup) -> i32 {
    let processes = match sip::diagnostics::processes() {
        Ok(processes) => processes,
        Err(status) => {
            report::error(format_args!("the processes cannot be listed: {}", status.text()));
            return 1;
        }
    };
    let mut failed = 0;
    for target in &startup.targets {
        let meant = select(&processes, target);
        if meant.is_empty() {
            report::error(format_args!("{}", none(target)));
            failed = 1;
        }
        for process in meant {
            if let Err(status) = stop_any(process.id, StopReason::Requested) {
                report::error(format_args!("process {} could not be ended: {}", process.id, status.text()));
                failed = 1;
            }
        }
    }
    failed
}
