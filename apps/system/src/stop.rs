//! Stops services until they are started again.

use client::namespace::Namespace;
use client::services;
use stdio::report;

sip::startup!("stop/manifest.toml");

/// Stops each named service.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut status = 0;
    for name in &startup.names {
        if let Err(error) = services::stop(&mut namespace, name) {
            status = report::path_error(name, &error);
        }
    }
    status
}
