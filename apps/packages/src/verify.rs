//! Verifies the whole running system again.

use client::installer::{Request, finish};
use client::namespace::Namespace;
use stdio::Output;

sip::startup!("verify/manifest.toml");

/// Sends the request to the installer and prints its report.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    finish(&mut namespace, Request::Verify, false, Output::new(startup.output))
}
