//! Test SIP: tries every operation governed by access control lists in one folder.
//!
//! The exit status has a bit for each permitted operation, by its index in [`OF_NAMES`], or [`OF_FILES`] in a volume;
//! it is negative if one of them failed for another reason. Deliberately not here: the expected result; that is in the
//! runner.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NameError, ProviderScope};
use contracts::file::FileError;
use contracts::service_provider;
use knock_answer_contract::knock_answer;
use sip::Status;
use sip::exheap::ExVec;

sip::startup!();

/// One operation in a folder.
type Operation = fn(&mut Namespace, &str) -> Result<(), AccessError>;

/// Every operation on a file or a folder of a volume, in the order of the runner's keywords for them.
const OF_FILES: &[Operation] = &[
    |namespace, folder| namespace.open_directory(&format!("{folder}/folder")).map(drop),
    |namespace, folder| namespace.names(folder).map(drop),
    |namespace, folder| namespace.attributes(&format!("{folder}/folder")).map(drop),
    |namespace, folder| namespace.read_link(&format!("{folder}/link")).map(drop),
    |namespace, folder| namespace.acl(&format!("{folder}/folder")).map(drop),
    |namespace, folder| namespace.open_file(&format!("{folder}/file"))?.read_at(ExVec::new(1)?, 0).map(drop),
    |namespace, folder| {
        let written = namespace.open_file(&format!("{folder}/file"))?.write_at(ExVec::new(1)?, 0, 1)?;
        written.all().map(drop)
    },
    |namespace, folder| namespace.make_directory(&format!("{folder}/made")),
    |namespace, folder| namespace.make_link(&format!("{folder}/made-link"), "folder"),
    |namespace, folder| namespace.remove_directory(&format!("{folder}/to-take-out")),
    |namespace, folder| namespace.rename(&format!("{folder}/to-rename"), &format!("{folder}/renamed")),
    |namespace, folder| namespace.set_acl(&format!("{folder}/folder"), "allow all **"),
];

/// Every operation on names, in the order of the runner's keywords for them.
const OF_NAMES: &[Operation] = &[
    |namespace, folder| namespace.open_directory(&format!("{folder}/folder")).map(drop),
    |namespace, folder| namespace.names(folder).map(drop),
    |namespace, folder| namespace.attributes(&format!("{folder}/service")).map(drop),
    |namespace, folder| namespace.read_link(&format!("{folder}/link")).map(drop),
    |namespace, folder| namespace.acl(&format!("{folder}/folder")).map(drop),
    |namespace, folder| {
        let (importer, exporter) = knock_answer::new_channel()?;
        let bound = namespace.bind(&format!("{folder}/service"), exporter);
        drop(importer);
        bound
    },
    |namespace, folder| namespace.create_directory(&format!("{folder}/made")),
    |namespace, folder| namespace.link(&format!("{folder}/made-link"), "folder"),
    |namespace, folder| namespace.deregister(&format!("{folder}/to-take-out")),
    |namespace, folder| {
        let (importer, exporter) = service_provider::new_channel()?;
        let _clients = exporter.ready();
        let service_provider::ImpStart::Ready { next } = importer.receive() else {
            return Err(AccessError::System(Status::WrongState));
        };
        namespace.register(&format!("{folder}/registered"), ProviderScope::Name, next)
    },
    |namespace, folder| namespace.notify(folder).map(drop),
    |namespace, folder| namespace.set_acl(&format!("{folder}/folder"), "allow all **"),
];

/// Tries all operations.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut permitted = 0;
    let operations = if startup.volume { OF_FILES } else { OF_NAMES };
    for (bit, operation) in operations.iter().enumerate() {
        match operation(&mut namespace, &startup.folder) {
            Ok(()) => permitted |= 1 << bit,
            Err(AccessError::Name(NameError::NotPermitted) | AccessError::File(FileError::NotPermitted)) => {}
            Err(error) => {
                stdio::report::error(format_args!("operation {bit} in {}: {error}", startup.folder));
                return -1;
            }
        }
    }
    permitted
}
