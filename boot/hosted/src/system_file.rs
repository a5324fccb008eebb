//! Reading the system image from the host.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why the system image cannot be read.
#[derive(Debug)]
pub struct SystemFileError {
    path: PathBuf,
    reason: io::Error,
}

impl fmt::Display for SystemFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.reason.kind() {
            io::ErrorKind::NotFound => {
                write!(formatter, "system image {path}: there is no such file; make it with `cargo sing build`")
            }
            io::ErrorKind::PermissionDenied => {
                write!(formatter, "system image {path}: permission denied; make it readable for this user")
            }
            io::ErrorKind::IsADirectory => {
                write!(formatter, "system image {path}: this is a folder; give the path of the image file")
            }
            _ => write!(formatter, "system image {path}: it cannot be read ({}); check the path", self.reason),
        }
    }
}

impl std::error::Error for SystemFileError {}

/// Reads the system image. The kernel validates it.
pub fn read(path: &Path) -> Result<Vec<u8>, SystemFileError> {
    fs::read(path).map_err(|reason| SystemFileError { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_the_path() {
        let missing = read(Path::new("/no/such/file")).expect_err("no file").to_string();
        assert!(missing.contains("/no/such/file") && missing.contains("no such file"), "{missing}");
        let folder = read(Path::new("/")).expect_err("a folder").to_string();
        assert!(folder.contains("folder"), "{folder}");
    }
}
