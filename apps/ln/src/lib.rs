//! Makes further names for files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::access::AccessError;
use contracts::copying::each_destination;
use contracts::directory::NameError;
use contracts::namespace::Namespace;
use contracts::report;

sip::startup!();

/// Makes a name for each of the paths, at the last one.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let symbolic = startup.symbolic;
    each_destination(
        &mut namespace,
        &startup.working_folder,
        &startup.paths,
        "ln TARGET... PATH",
        |namespace, from, to| {
            let made = match symbolic {
                // A symbolic link keeps what was written, to be understood from its own folder.
                true => namespace.make_link(&to.full, &from.shown),
                false => namespace.hard_link(&from.full, &to.full),
            };
            match made {
                Ok(()) => return true,
                Err(AccessError::Name(NameError::NotSupported)) if !symbolic => {
                    let why = "its file system has no such names, or it lies on another volume; `ln -s` may do";
                    report::path_error(&to.shown, &why);
                }
                Err(error) => {
                    report::path_error(&to.shown, &error);
                }
            }
            false
        },
    )
}
