//! Makes a faulty disk fail as planned, for tests that work through the shell.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use faulty_contract::faulty_disk::{self, FaultCounts, states};
use faulty_contract::number;
use sip::Deadline;
use stdio::{Output, report};

sip::startup!();

/// Timeout for a disk to appear.
const TIMEOUT_MS: u64 = 5_000;
const AGAIN_AFTER_MS: u64 = 5;

type Controller = faulty_disk::Imp<states::Ready>;

/// Sends one command.
pub fn main(startup: Startup) -> i32 {
    let plan = faulty_contract::plan_of_parameters!(startup);
    let mut namespace = Namespace::new(startup.namespace);
    let controller = match open(&mut namespace, &startup.path) {
        Ok(controller) => controller,
        Err(error) => return report::path_error(&startup.path, &error),
    };
    let answer = match &*startup.order {
        "plan" => match controller.set_plan(plan).receive() {
            faulty_disk::ImpReadyAfterSetPlan::Done { .. } => Ok(String::new()),
            faulty_disk::ImpReadyAfterSetPlan::ChannelClosed(_) => Err(AccessError::ServerEnded),
        },
        "cut" => match controller.cut(number(startup.seed)).receive() {
            faulty_disk::ImpReadyAfterCut::Done { .. } => Ok(String::new()),
            faulty_disk::ImpReadyAfterCut::Failed { .. } => Err(NameError::DeviceError.into()),
            faulty_disk::ImpReadyAfterCut::ChannelClosed(_) => Err(AccessError::ServerEnded),
        },
        "on" => match controller.power_on().receive() {
            faulty_disk::ImpReadyAfterPowerOn::Done { .. } => Ok(String::new()),
            faulty_disk::ImpReadyAfterPowerOn::ChannelClosed(_) => Err(AccessError::ServerEnded),
        },
        "counts" => match controller.get_counts().receive() {
            faulty_disk::ImpReadyAfterGetCounts::Counts { counts, .. } => Ok(lines(&counts)),
            faulty_disk::ImpReadyAfterGetCounts::ChannelClosed(_) => Err(AccessError::ServerEnded),
        },
        other => {
            report::error(format_args!("`{other}` is no order; give it plan, cut, on or counts"));
            return 1;
        }
    };
    match answer {
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(error) => report::path_error(&startup.path, &error),
    }
}

/// Waits for a disk to appear: the shell starts before the disks of the test system.
fn open(namespace: &mut Namespace, path: &str) -> Result<Controller, AccessError> {
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        let opened = namespace.open(path, faulty_disk::new_channel, |importer| match importer.receive() {
            faulty_disk::ImpStart::Success { next } => Ok(next),
            faulty_disk::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
            faulty_disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        });
        match opened {
            Err(AccessError::Name(NameError::NotFound)) if !deadline.has_passed() => {
                sip::time::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS));
            }
            other => return other,
        }
    }
}

fn lines(counts: &FaultCounts) -> String {
    let FaultCounts { reads, writes, flushes, failed, bytes_read, bytes_written, unflushed_writes, is_off } = counts;
    format!(
        "reads {reads}\nwrites {writes}\nflushes {flushes}\nfailed {failed}\nbytes-read {bytes_read}\n\
         bytes-written {bytes_written}\nunflushed-writes {unflushed_writes}\nis-off {is_off}\n"
    )
}
