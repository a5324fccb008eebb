//! A host folder as a medium with atomic file replacement.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use install::Medium;

/// A folder of the host's file system.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at this path, which is created on the first write.
    pub fn at(path: impl Into<PathBuf>) -> Folder {
        Folder { path: path.into() }
    }
}

impl Medium for Folder {
    type Error = io::Error;

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.path)?;
        File::create(self.path.join(name))?.write_all(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        File::open(self.path.join(name))?.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}
