//! Asks `circle-left` before it answers.

use client::namespace::Namespace;

sip::startup!("right/manifest.toml");

/// Serves `/service/right`.
pub fn main(startup: Startup) -> i32 {
    crate::answer_by_asking(startup.clients, Namespace::new(startup.namespace), "/service/left")
}
