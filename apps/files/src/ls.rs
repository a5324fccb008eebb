//! Lists folders.

mod listing;

use client::namespace::Namespace;
use stdio::Output;

use crate::ls::listing::{Style, list};

sip::startup!("ls/manifest.toml");

/// Lists the paths; without any, the working folder.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut namespace = Namespace::new(startup.namespace);
    let style = Style { long: startup.long, all: startup.all, units: startup.units };
    let (text, status) = list(&mut namespace, &startup.working_folder, &startup.paths, style);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(status))
}
