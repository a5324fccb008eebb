//! Shows an installed program and everything it can reach.

use client::installer::{Request, finish};
use client::namespace::Namespace;
use stdio::Output;

sip::startup!("explain/manifest.toml");

/// Queries the installer and prints its report.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    finish(&mut namespace, Request::Explain(&startup.name), false, Output::new(startup.output))
}
