//! Atomic replacement of a file: a reader finds the old file or the new one, complete, whatever happened in between.
//!
//! The new bytes are durable in a temporary file before the rename; the rename is durable before the replacement
//! returns. Deliberately not here: the content of the file.

use alloc::format;
use alloc::string::String;

/// Storage of files: a folder of a disk.
pub trait Medium {
    /// Error of the medium.
    type Error;

    /// Creates or truncates a file and writes these bytes, which need not be durable yet.
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Returns when the bytes of the file are on the medium.
    fn sync(&mut self, name: &str) -> Result<(), Self::Error>;

    /// Renames a file, replacing any file of the new name. The replacement is atomic.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Self::Error>;

    /// Returns when the names of the folder are on the medium.
    fn sync_folder(&mut self) -> Result<(), Self::Error>;

    /// Removes a file; it is no error if there is none.
    fn remove(&mut self, name: &str) -> Result<(), Self::Error>;
}

/// Returns the name of the temporary file for new bytes.
pub fn name_beside(name: &str) -> String {
    format!("{name}.new")
}

/// Replaces the content of file `name` atomically.
///
/// # Errors
/// The medium's. Before the rename the old file is unchanged; if only the last step failed, the new one is in place but
/// may be lost on power failure.
pub fn replace<M: Medium>(medium: &mut M, name: &str, bytes: &[u8]) -> Result<(), M::Error> {
    let beside = name_beside(name);
    // Left over from an interrupted replacement.
    medium.remove(&beside)?;
    let written = medium.write(&beside, bytes).and_then(|()| medium.sync(&beside));
    let renamed = written.and_then(|()| medium.rename(&beside, name));
    if let Err(error) = renamed {
        // The first error is reported.
        let _ = medium.remove(&beside);
        return Err(error);
    }
    medium.sync_folder()
}
