//! Network namespace of `sing bench web --tap`: packets of the client cannot leave the host, even without the TAP
//! interface.
//!
//! Deliberately not here: the measurement.

use std::path::Path;
use std::process::Command;

use crate::bench::linux_program;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;
use sing::systems::{self, Platform};

/// Environment variable that marks the re-executed command.
const INSIDE: &str = "SING_BENCH_NETWORK";
/// System started by `sing run --web --tap`.
const SYSTEM: &str = "web-tap";

/// Re-executes this command in a temporary network namespace and returns its exit status; `None` inside it.
///
/// # Errors
/// A needed program cannot be built, or this user may not create namespaces.
pub fn enter(repository: &Repository, system: Option<&Path>) -> Outcome<Option<u8>> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(None);
    }
    let remedy = "run it as root, with `unshare` of util-linux and `ip` of iproute2";
    // Check before building.
    let can = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        let said = can.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stderr).into());
        return Err(Failure::new("cannot create a network namespace for the benchmark").details(said).remedy(remedy));
    }
    // Inside the namespace a build could not download anything.
    let manifest = repository.system_manifest(system.unwrap_or(SYSTEM.as_ref()))?;
    systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    linux_program(repository)?;
    let xtask = std::env::current_exe().map_err(|error| Failure::new(format!("cannot find xtask: {error}")))?;
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]).arg(xtask);
    command.args(std::env::args_os().skip(1)).env(INSIDE, "1");
    let status = command.status().map_err(|error| Failure::file("start", Path::new("unshare"), &error))?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) => Ok(Some(code)),
        None => Err(Failure::new(format!("the benchmark in a network namespace ended: {status}")).remedy(remedy)),
    }
}
