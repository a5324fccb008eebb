//! Removes a program from the running system.

use client::installer::{Request, finish};
use client::namespace::Namespace;
use stdio::Output;

sip::startup!("uninstall/manifest.toml");

/// Sends the request to the installer and prints its report.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    finish(&mut namespace, Request::Uninstall(&startup.name), startup.dry_run, Output::new(startup.output))
}
