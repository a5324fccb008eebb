//! `sing bench web --tap` in a network of its own: nothing that the client sends can leave the host, not even if the
//! interface that it is meant for is not there yet or not any more.
//!
//! Deliberately not here: what runs in it.

use std::path::Path;
use std::process::Command;

use crate::bench::linux_program;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;
use sing::systems::{self, Platform};

/// Says to the same command that it runs in a network of its own.
const INSIDE: &str = "SING_BENCH_NETWORK";
/// What `sing run --web --tap` starts.
const SYSTEM: &str = "web-tap";

/// Runs this very command in a network namespace that ends with it: its exit status. Nothing where this is it.
///
/// # Errors
/// What it runs cannot be built, or this user may make no namespace.
pub fn enter(repository: &Repository, system: Option<&Path>) -> Outcome<Option<u8>> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(None);
    }
    let remedy = "run it as root, with `unshare` of util-linux and `ip` of iproute2";
    // Before anything is built for it.
    let can = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        let said = can.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stderr).into());
        return Err(Failure::new("this user can make no network namespace for the bench").details(said).remedy(remedy));
    }
    // A namespace has no way to what a build may have to fetch.
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
        None => Err(Failure::new(format!("the bench in a network of its own ended: {status}")).remedy(remedy)),
    }
}
