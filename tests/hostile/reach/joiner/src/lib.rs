//! Connects two children by one channel, of which it keeps no end: one opens a file, the other may not and reads it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use hostile_reach_contract::courier;
use sip::Status;
use sip::process::{Child, create};
use stdio::report;

sip::startup!();

/// Endpoints of the giver, by index.
const GIVER_NAMESPACE: usize = 0;
const GIVER_COURIER: usize = 1;
/// Endpoints of the taker.
const TAKER_COURIER: usize = 0;
const TAKER_OUTPUT: usize = 1;

/// Exits with the taker's status.
pub fn main(startup: Startup) -> i32 {
    match join(startup) {
        Ok(status) => status,
        Err(status) => {
            report::error(format_args!("the two could not be joined: {}", status.text()));
            2
        }
    }
}

fn join(startup: Startup) -> Result<i32, Status> {
    let (importer, exporter) = courier::new_channel()?;
    let giver = started("hostile-reach-giver")?.parameter(0, &startup.path)?;
    let giver = giver.endpoint(GIVER_NAMESPACE, startup.namespace)?.endpoint(GIVER_COURIER, exporter)?.start()?;
    let taker = started("hostile-reach-taker")?;
    let taker = taker.endpoint(TAKER_COURIER, importer)?.endpoint(TAKER_OUTPUT, startup.output)?.start()?;
    let end = taker.wait()?;
    giver.wait()?;
    Ok(if end.is_success() { 0 } else { 1 })
}

fn started(program: &str) -> Result<Child, Status> {
    create(program).map_err(|error| {
        report::error(format_args!("{program}: {error}"));
        Status::NotFound
    })
}
