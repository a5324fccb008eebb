//! Prints a line for each change at or below a name, as its server announces it.

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NameError, NodeKind};
use contracts::namespace_events::{Change, Imp, ImpReady, states};
use file_tools::volume::end_of_links;
use stdio::{Output, report};

sip::startup!("changes/manifest.toml");

/// Prints changes up to the requested number, or until the server or the reader of the output ends.
pub fn main(startup: Startup) -> i32 {
    let full = path::absolute(&startup.working_folder, &startup.path);
    let mut namespace = Namespace::new(startup.namespace);
    let mut events = match subscribe(&mut namespace, &full) {
        Ok(events) => events,
        Err(AccessError::Name(NameError::NotSupported)) => {
            report::error(format_args!("{full}: its file system has no notifications; host folders and services have"));
            return 1;
        }
        Err(AccessError::Name(NameError::Exhausted)) => {
            report::error(format_args!(
                "{full}: too many names below it, or too many watchers; choose a deeper folder"
            ));
            return 1;
        }
        Err(error) => return report::path_error(&full, &error),
    };
    let mut output = Output::new(startup.output);
    let mut left = startup.count;
    while let ImpReady::Changed { change, path, next } = events.receive() {
        let name = String::from_utf8_lossy(&path);
        let line = format!("{:<10}  {}\n", word(change), if name.is_empty() { "." } else { &name });
        left -= 1;
        // Flushes after each line.
        if output.write(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return 1;
        }
        if left == 0 {
            return i32::from(output.finish().is_err());
        }
        events = next.next();
    }
    // Every line has been flushed.
    let _ = output.finish();
    report::error(format_args!("{full}: its server has ended"));
    1
}

/// Subscribes at the server of the folder, or for a file at that of its parent folder.
fn subscribe(namespace: &mut Namespace, full: &str) -> Result<Imp<states::Ready>, AccessError> {
    let full = end_of_links(namespace, full)?;
    match namespace.attributes(&full)?.0 {
        NodeKind::File | NodeKind::Other => {
            let (folder, name) = path::split_last(&full).ok_or(NameError::BadPath)?;
            namespace.open_directory(folder)?.notify(name)
        }
        NodeKind::Service => namespace.notify(&full),
        NodeKind::Directory | NodeKind::Link | NodeKind::Mount => namespace.open_directory(&full)?.notify(""),
    }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Registered => "registered",
        Change::Unavailable => "away",
        Change::Removed => "removed",
        Change::Linked => "link",
        Change::DirectoryCreated => "folder",
        Change::AclChanged => "list",
        Change::Overflow => "changed",
    }
}
