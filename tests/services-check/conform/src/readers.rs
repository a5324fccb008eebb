//! Results for a read-only client of a folder with a file `there` that contains `text` and a newline.

use client::access::AccessError;
use contracts::directory::{CreateMode, NameError};
use contracts::file::{FileError, LockKind};
use sip::exheap::ExVec;

use crate::suite::{Done, Suite};

const NEW_PERMISSIONS: u32 = 0o644;

/// Runs all checks, without changes.
///
/// # Errors
///
/// The file could not be opened or read.
pub fn check(suite: &mut Suite) -> Done {
    let folder = &mut suite.folder;
    let refused = || Err(AccessError::Name(NameError::NotPermitted));
    let answers = [
        ("create", folder.create_own_file("new", NEW_PERMISSIONS, CreateMode::New).map(drop)),
        ("create what is there", folder.create_own_file("there", NEW_PERMISSIONS, CreateMode::New).map(drop)),
        ("open or create", folder.create_own_file("new", NEW_PERMISSIONS, CreateMode::OpenExisting).map(drop)),
        ("make a folder", folder.create_directory("new")),
        ("rename", folder.rename("there", "new")),
        ("remove", folder.remove_file("there")),
    ];
    let mut file = folder.create_own_file("there", NEW_PERMISSIONS, CreateMode::OpenExisting)?;
    for (what, answer) in answers {
        suite.expect(what, answer, refused());
    }
    let (block, count) = file.read_at(ExVec::new(10)?, 0)?;
    suite.expect("read a file that was opened or created", &block[..count] == b"text\n", true);
    let written = file.write_at(block, 0, 1)?;
    suite.expect("write to it", (written.failed, written.bytes), (Some(FileError::NotPermitted), 0));
    suite.expect("cut it", file.set_size(0), Err(FileError::NotPermitted.into()));
    suite.expect("share it", file.lock(LockKind::Shared, 0, 0), Ok(true));
    suite.expect("lock it", file.lock(LockKind::Exclusive, 0, 0), Err(FileError::NotPermitted.into()));
    suite.expect("ask whether it is locked", file.may_lock(LockKind::Exclusive, 0, 0), Ok(true));
    Ok(())
}
