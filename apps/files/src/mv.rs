//! Renames and moves files and folders.

use core::fmt;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use file_tools::copying::{Copier, Folders, Keep, Place, each_destination};
use file_tools::removing::{self, RemoveError};
use stdio::report;

sip::startup!("mv/manifest.toml");

/// Why a move failed.
enum MoveError {
    Access(AccessError),
    Remove(RemoveError),
    /// The copy is incomplete, which was reported.
    NotCopied,
}

impl From<AccessError> for MoveError {
    fn from(error: AccessError) -> MoveError {
        MoveError::Access(error)
    }
}

impl fmt::Display for MoveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveError::Access(error) => error.fmt(formatter),
            MoveError::Remove(error) => write!(formatter, "copied, but the source could not be removed: {error}"),
            MoveError::NotCopied => formatter.write_str("not moved, because the copy is incomplete"),
        }
    }
}

/// Moves each path to the last one.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    each_destination(&mut namespace, &startup.working_folder, &startup.paths, "mv FROM... TO", |namespace, from, to| {
        match move_to(namespace, from, to) {
            Ok(()) => true,
            Err(error) => report::path_error(&from.shown, &error) == 0,
        }
    })
}

fn move_to(namespace: &mut Namespace, from: &Place, to: &Place) -> Result<(), MoveError> {
    match namespace.rename(&from.full, &to.full) {
        Err(AccessError::Name(NameError::NotSupported)) => to_other_volume(namespace, from, to),
        other => Ok(other?),
    }
}

/// Removes the original only once its copy is on the medium.
fn to_other_volume(namespace: &mut Namespace, from: &Place, to: &Place) -> Result<(), MoveError> {
    if namespace.names(&to.full).is_ok_and(|names| !names.is_empty()) {
        return Err(AccessError::Name(NameError::NotEmpty).into());
    }
    if !Copier::new(Keep::AllThatCanBe, Folders::Copy).copy(namespace, from, to) {
        return Err(MoveError::NotCopied);
    }
    namespace.open_folder_of(&to.full)?.0.sync()?;
    removing::remove(namespace, &from.full, &from.shown, removing::Folders::Remove).map_err(MoveError::Remove)
}
