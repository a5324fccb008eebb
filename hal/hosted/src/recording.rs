//! The file of a recording, which is written as the machine runs.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::host;

/// The file; none once it could not be written.
#[derive(Debug)]
pub(crate) struct Recording(Mutex<Option<File>>);

impl Recording {
    /// Writes to this file.
    pub(crate) fn new(file: File) -> Self {
        Self(Mutex::new(Some(file)))
    }

    /// Appends bytes. The first failure is reported, and ends the recording, not the machine.
    pub(crate) fn append(&self, bytes: &[u8]) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Err(error)) = file.as_mut().map(|file| file.write_all(bytes)) else { return };
        *file = None;
        host::say(&format!(
            "the recording cannot be written ({error}); it ends here and is of no use, and the system goes on"
        ));
    }
}
