//! Starts services that were stopped or failed.

use client::namespace::Namespace;
use client::services;
use stdio::report;

sip::startup!("start/manifest.toml");

/// Starts each named service.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut status = 0;
    for name in &startup.names {
        if let Err(error) = services::start(&mut namespace, name) {
            status = report::path_error(name, &error);
        }
    }
    status
}
