//! Sets the modification time of files to now or another time, and creates missing files.

use client::access::AccessError;
use client::file_writer::NEW_PERMISSIONS;
use client::namespace::Namespace;
use contracts::directory::{CreateMode, NameError, NodeChanges, NodeParts};
use file_tools::feed::for_each_path;
use file_tools::volume::end_of_links;
use stdio::report;
use text::Moment;

sip::startup!("touch/manifest.toml");

/// Touches each path. A failure is reported; the others are still touched.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let seconds = match startup.time.as_deref().map(|text| (text, Moment::parse(text))) {
        None => i64::try_from(sip::time::wall() / 1_000_000_000).unwrap_or(0),
        Some((_, Some(moment))) => moment.to_unix().unwrap_or(0),
        Some((text, None)) => {
            report::error(format_args!("`{text}` is not a time; write it like 2026-11-21 03:06:38"));
            return 2;
        }
    };
    for_each_path(&startup.working_folder, &startup.paths, |_, full| {
        touch(&mut namespace, full, seconds, startup.no_create)
    })
}

fn touch(namespace: &mut Namespace, full: &str, seconds: i64, no_create: bool) -> Result<(), AccessError> {
    let full = end_of_links(namespace, full)?;
    match namespace.attributes(&full) {
        Err(AccessError::Name(NameError::NotFound)) if no_create => return Ok(()),
        Err(AccessError::Name(NameError::NotFound)) => {
            drop(namespace.create_file(&full, NEW_PERMISSIONS, CreateMode::OpenExisting)?);
        }
        other => drop(other?),
    }
    let which = NodeParts::MODIFIED | NodeParts::ACCESSED;
    let changes = NodeChanges { modified_s: seconds, accessed_s: seconds, permissions: 0, owner: 0, group: 0, which };
    namespace.set_attributes(&full, changes)
}
