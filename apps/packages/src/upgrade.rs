//! Replaces an installed program with a newer version.

use client::installer::{Request, finish};
use client::namespace::Namespace;
use stdio::Output;

sip::startup!("upgrade/manifest.toml");

/// Sends the request to the installer and prints its report.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let path = path::absolute(&startup.working_folder, &startup.package);
    finish(&mut namespace, Request::Upgrade(&path, startup.more), startup.dry_run, Output::new(startup.output))
}
