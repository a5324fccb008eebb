//! Shows the attributes of files and folders.

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::{Namespace, kind_word};
use contracts::directory::{NodeAttributes, NodeKind};
use file_tools::kind_text::mode;
use stdio::{Output, report};
use text::{Moment, bytes, count, printable};

sip::startup!("stat/manifest.toml");

/// Describes each path. A symbolic link is not followed.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut namespace = Namespace::new(startup.namespace);
    let mut status = 0;
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        match describe(&mut namespace, &full) {
            Ok(text) => {
                if output.write(text.as_bytes()).is_err() {
                    return 1;
                }
            }
            Err(error) => status = report::path_error(asked, &error),
        }
    }
    output.finish_with(status)
}

fn describe(namespace: &mut Namespace, full: &str) -> Result<String, AccessError> {
    let (kind, attributes) = namespace.attributes(full)?;
    let NodeAttributes { size_bytes, allocated_bytes, node, permissions, links, owner, group, .. } = attributes;
    let mut name = printable(full.as_bytes());
    if kind == NodeKind::Link {
        name = format!("{name} -> {}", printable(namespace.read_link(full)?.as_bytes()));
    }
    Ok(format!(
        "     name  {name}\n\
         \x20    kind  {}\n\
         \x20    size  {} bytes ({})\n\
         allocated  {} bytes ({})\n\
         \x20    node  {node}\n\
         \x20    mode  {:04o} {}\n\
         \x20   links  {links}\n\
         \x20   owner  {owner}:{group}\n\
         \x20modified  {}\n\
         \x20accessed  {}\n\
         \x20 changed  {}\n",
        kind_word(kind),
        count(size_bytes),
        bytes(size_bytes),
        count(allocated_bytes),
        bytes(allocated_bytes),
        permissions,
        mode(kind, permissions),
        time(attributes.modified_s),
        time(attributes.accessed_s),
        time(attributes.changed_s),
    ))
}

fn time(seconds: i64) -> String {
    match seconds {
        0 => String::from("-"),
        seconds => format!("{} UTC", Moment::from_unix(seconds)),
    }
}
