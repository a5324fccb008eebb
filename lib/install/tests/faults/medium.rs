//! An in-memory disk that counts its operations.

use std::collections::BTreeMap;
use std::convert::Infallible;

use install::Medium;

/// Files by name.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    /// Number of operations.
    pub touched: usize,
}

impl Memory {
    /// Creates a medium with one file.
    pub fn with(name: &str, bytes: &[u8]) -> Memory {
        Memory { files: BTreeMap::from([(name.to_string(), bytes.to_vec())]), touched: 0 }
    }

    /// Content of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }
}

impl Medium for Memory {
    type Error = Infallible;

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Infallible> {
        self.touched += 1;
        self.files.insert(name.into(), bytes.to_vec());
        Ok(())
    }

    fn sync(&mut self, _: &str) -> Result<(), Infallible> {
        self.touched += 1;
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Infallible> {
        self.touched += 1;
        if let Some(bytes) = self.files.remove(from) {
            self.files.insert(to.into(), bytes);
        }
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), Infallible> {
        self.touched += 1;
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Infallible> {
        self.touched += 1;
        self.files.remove(name);
        Ok(())
    }
}
