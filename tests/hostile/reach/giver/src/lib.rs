//! Opens a file, as a rule permits, and gives it to the peer that its parent connected.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::file;
use hostile_reach_contract::courier;
use stdio::report;

sip::startup!();

/// Gives one file.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    match opened(&mut namespace, &startup.path) {
        Ok(file) => match startup.courier.take(file).receive() {
            courier::ExpReadyAfterTake::Taken { .. } => 0,
            courier::ExpReadyAfterTake::ChannelClosed(_) => 1,
        },
        Err(error) => {
            report::error(format_args!("{}: {error}", startup.path));
            1
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
