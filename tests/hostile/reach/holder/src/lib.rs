//! Opens a file, which a rule permits, and starts a child with it that may not.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::file;
use sip::Status;
use stdio::report;

sip::startup!();

/// Endpoints of the heir, by index.
const HEIR_FILE: usize = 0;
const HEIR_OUTPUT: usize = 1;

/// Exits with the heir's status.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let file = match opened(&mut namespace, &startup.path) {
        Ok(file) => file,
        Err(error) => {
            report::error(format_args!("{}: {error}", startup.path));
            return 2;
        }
    };
    let start = || -> Result<bool, Status> {
        let heir = sip::process::create("hostile-reach-heir").map_err(|_| Status::NotFound)?;
        let heir = heir.endpoint(HEIR_FILE, file)?.endpoint(HEIR_OUTPUT, startup.output)?.start()?;
        Ok(heir.wait()?.is_success())
    };
    match start() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(status) => {
            report::error(format_args!("the heir cannot be started: {}", status.text()));
            2
        }
    }
}

fn opened(namespace: &mut Namespace, path: &str) -> Result<file::Imp<file::states::Ready>, AccessError> {
    namespace.open(path, file::new_channel, |importer| match importer.receive() {
        file::ImpStart::Success { next } => Ok(next),
        file::ImpStart::Refused { error, .. } => Err(error.into()),
        file::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}
