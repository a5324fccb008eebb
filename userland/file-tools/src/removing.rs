//! Removes files and trees, for command-line programs.
//!
//! Reports nodes that cannot be removed, and removes the rest. Neighbour: [`crate::walk`]. Deliberately not here:
//! asking for confirmation.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NameError, NodeKind};
use stdio::report;

use crate::walk::{Step, Walk};

/// Treatment of folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// An error.
    Leave,
    /// Remove them recursively.
    Remove,
}

/// Error of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveError {
    /// The file system refused it.
    Access(AccessError),
    /// It is a folder, and folders must not be removed.
    IsFolder,
    /// A volume is mounted there.
    IsMount,
    /// It is the root of the namespace, or registered by a service.
    NotOfAVolume,
    /// A name in it could not be removed, which was reported.
    Partly,
}

impl<E: Into<AccessError>> From<E> for RemoveError {
    fn from(error: E) -> RemoveError {
        RemoveError::Access(error.into())
    }
}

impl fmt::Display for RemoveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RemoveError::Access(error) => return error.fmt(formatter),
            RemoveError::IsFolder => "it is a folder; `rm -r` removes it with all that is in it, `rmdir` an empty one",
            RemoveError::IsMount => "a volume is mounted there; unmount it with `umount`",
            RemoveError::NotOfAVolume => "it is not a file or folder of a volume; `stop` ends a service",
            RemoveError::Partly => "not everything in it could be removed",
        })
    }
}

/// Removes the node at an absolute path, displayed as `shown`. Errors below it are reported.
pub fn remove(namespace: &mut Namespace, full: &str, shown: &str, folders: Folders) -> Result<(), RemoveError> {
    let (mut folder, name) = namespace.open_folder_of(full)?;
    if name.is_empty() {
        return Err(RemoveError::NotOfAVolume);
    }
    match folder.own_attributes(name)?.0 {
        NodeKind::Mount => Err(RemoveError::IsMount),
        NodeKind::Service => Err(RemoveError::NotOfAVolume),
        NodeKind::Directory if folders == Folders::Leave => Err(RemoveError::IsFolder),
        NodeKind::Directory => {
            // An empty folder needs no walk.
            match folder.remove_directory(name) {
                Err(AccessError::Name(NameError::NotEmpty)) => {}
                other => return Ok(other?),
            }
            empty(Walk::new(folder.open_directory(name)?, String::from(shown), "/")?)?;
            Ok(folder.remove_directory(name)?)
        }
        _ => Ok(folder.remove_file(name)?),
    }
}

/// Removes all names of a walk.
fn empty(mut walk: Walk) -> Result<(), RemoveError> {
    // For each open level, whether a name is left in it.
    let mut left_over = Vec::from([false]);
    while let Some(step) = walk.step() {
        let outcome = match &step {
            Step::Name(name) if name.kind == NodeKind::Mount => Err(RemoveError::IsMount),
            Step::Name(name) if name.kind == NodeKind::Directory => {
                let entered = name.part().and_then(|part| walk.enter(part, name.kind));
                if entered.is_ok() {
                    left_over.push(false);
                }
                entered.map_err(RemoveError::Access)
            }
            Step::Name(name) => {
                let removed = name.part().and_then(|part| walk.here().folder()?.remove_file(part));
                removed.map_err(RemoveError::Access)
            }
            // Names left below were reported, and keep their folders.
            Step::Left(_) if left_over.pop() == Some(true) => Err(RemoveError::Partly),
            Step::Left(name) => {
                walk.here().folder().and_then(|folder| folder.remove_directory(name)).map_err(RemoveError::Access)
            }
        };
        let Err(error) = outcome else { continue };
        if let Some(here) = left_over.last_mut() {
            *here = true;
        }
        if error != RemoveError::Partly {
            let name = match step {
                Step::Name(name) => name.text(),
                Step::Left(name) => name,
            };
            report::path_error(&walk.here().path_of(&name), &error);
        }
        if matches!(error, RemoveError::Access(error) if error.concerns_all()) {
            return Err(RemoveError::Partly);
        }
    }
    if left_over.first() == Some(&true) { Err(RemoveError::Partly) } else { Ok(()) }
}
