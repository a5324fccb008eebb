//! Asks `circle-right` before it answers.

use client::namespace::Namespace;

sip::startup!("left/manifest.toml");

/// Serves `/service/left`.
pub fn main(startup: Startup) -> i32 {
    crate::answer_by_asking(startup.clients, Namespace::new(startup.namespace), "/service/right")
}
