//! Ends processes: descendants of the shell that runs it, and any others for users who may control the machine.
//!
//! The service manager grants that right, as for starting and stopping services: it checks who invoked this program.

use alloc::format;
use alloc::string::String;

use client::namespace::Namespace;
use client::processes::{Instances, none, title};
use client::services;
use sip::diagnostics::ProcessRecord;
use sip::process::{StopReason, stop_any};
use stdio::report;

sip::startup!("kill/manifest.toml");

/// Ends every process that the arguments select.
pub fn main(startup: Startup) -> i32 {
    let processes = match sip::diagnostics::processes() {
        Ok(processes) => processes,
        Err(status) => {
            report::error(format_args!("the processes cannot be listed: {}", status.text()));
            return 1;
        }
    };
    let mut namespace = Namespace::new(startup.namespace);
    let instances = Instances::read(&mut namespace);
    let own = parent_of(&processes, sip::process::id());
    let mut failed = 0;
    for target in &startup.targets {
        let meant = instances.select(&processes, target);
        if meant.is_empty() {
            report::error(format_args!("{}", none(target)));
            failed = 1;
        }
        for process in meant {
            let ended = if is_below(&processes, process.id, own) { Ok(()) } else { may_end_others(&mut namespace) };
            let ended = ended.and_then(|()| {
                stop_any(process.id, StopReason::Requested).map_err(|status| String::from(status.text()))
            });
            if let Err(reason) = ended {
                report::error(format_args!("{} could not be ended: {reason}", title(&processes, process.id)));
                failed = 1;
            }
        }
    }
    failed
}

fn may_end_others(namespace: &mut Namespace) -> Result<(), String> {
    services::ask_control(namespace).map_err(|error| format!("not started by this shell, and {error}"))
}

fn parent_of(processes: &[ProcessRecord], id: u64) -> u64 {
    processes.iter().find(|process| process.id == id).map_or(0, |process| process.parent)
}

/// Whether a process is `top` or a descendant of it.
fn is_below(processes: &[ProcessRecord], id: u64, top: u64) -> bool {
    let mut id = id;
    // Bounds the loop, even for inconsistent records.
    for _ in processes {
        if id == top || id == 0 {
            break;
        }
        id = parent_of(processes, id);
    }
    top != 0 && id == top
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, parent: u64) -> ProcessRecord {
        ProcessRecord { id, parent, ..ProcessRecord::default() }
    }

    #[test]
    fn what_a_shell_started_is_below_it() {
        let processes = [record(1, 0), record(4, 1), record(5, 4), record(6, 5), record(7, 1)];
        for id in [4, 5, 6] {
            assert!(is_below(&processes, id, 4), "{id}");
        }
        for id in [1, 7, 9] {
            assert!(!is_below(&processes, id, 4), "{id}");
        }
        assert!(!is_below(&processes, 1, 0), "nobody's process is below nobody");
    }

    #[test]
    fn records_that_go_in_a_circle_end_the_search() {
        assert!(!is_below(&[record(2, 3), record(3, 2)], 2, 9));
    }
}
