//! How a file takes the place of another so that whoever opens it, after whatever happened in between, finds the old
//! one or the new one, whole.
//!
//! The new bytes go to a file beside it and are on the medium before the name changes its meaning; the change of the
//! name is on the medium before it is called done. Deliberately not here: what is in the file.

use alloc::format;
use alloc::string::String;

/// Where files are kept: a folder of a disk.
pub trait Medium {
    /// Why something could not be done.
    type Error;

    /// Makes a file with these bytes; one of the same name is emptied first. They need not be on the medium yet.
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Returns when the bytes of the file are on the medium.
    fn sync(&mut self, name: &str) -> Result<(), Self::Error>;

    /// Gives a file another name, in the place of what had that name. At every moment the name means one of the two.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Self::Error>;

    /// Returns when the names of the folder are on the medium.
    fn sync_folder(&mut self) -> Result<(), Self::Error>;

    /// Takes a file out; it is no error if there is none.
    fn remove(&mut self, name: &str) -> Result<(), Self::Error>;
}

/// The name of the file that new bytes are gathered in.
pub fn name_beside(name: &str) -> String {
    format!("{name}.new")
}

/// Lets the file `name` have these bytes: all of them or none.
///
/// # Errors
/// The medium's. Before the name has changed its meaning the old file is there as it was; where only the last step
/// failed, the new one is there and may be gone again after a loss of power.
pub fn replace<M: Medium>(medium: &mut M, name: &str, bytes: &[u8]) -> Result<(), M::Error> {
    let beside = name_beside(name);
    // What an interrupted replacement left is of no use to anybody.
    medium.remove(&beside)?;
    let written = medium.write(&beside, bytes).and_then(|()| medium.sync(&beside));
    let renamed = written.and_then(|()| medium.rename(&beside, name));
    if let Err(error) = renamed {
        // The first error is the one to be told.
        let _ = medium.remove(&beside);
        return Err(error);
    }
    medium.sync_folder()
}
