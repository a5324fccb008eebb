//! A folder of a volume as the store wants it.

use alloc::string::String;
use alloc::vec::Vec;

use contracts::access::AccessError;
use contracts::directory::{NameError, NodeKind};
use contracts::file::FileError;
use contracts::file_io;
use contracts::file_writer::{Existing, FileWriter};
use contracts::installer_client::PACKAGE_BYTES_MAX;
use contracts::namespace::Namespace;
use install::Medium;
use sip::exheap::ExVec;

use crate::store::Shelf;

/// Bytes that are written at once.
const PIECE_BYTES: usize = 256 << 10;

/// A folder, open.
pub(crate) struct Folder {
    names: Namespace,
}

impl Folder {
    /// Opens the folder at this path of the namespace; nothing if there is none in a folder that is there.
    pub(crate) fn existing(namespace: &mut Namespace, path: &str) -> Result<Option<Folder>, AccessError> {
        match namespace.open_directory(path) {
            Err(AccessError::Name(NameError::NotFound)) => namespace.open_folder_of(path).map(|_| None),
            other => Ok(Some(Folder { names: other? })),
        }
    }

    /// Opens the folder at this path of the namespace; makes it if there is none, in a folder that is there.
    pub(crate) fn open(namespace: &mut Namespace, path: &str) -> Result<Folder, AccessError> {
        let names = match namespace.open_directory(path) {
            Err(AccessError::Name(NameError::NotFound)) => {
                let (mut above, name) = namespace.open_folder_of(path)?;
                above.make_directory(name)?;
                above.sync()?;
                above.open_directory(name)?
            }
            other => other?,
        };
        Ok(Folder { names })
    }
}

impl Medium for Folder {
    type Error = AccessError;

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), AccessError> {
        let mut writer = FileWriter::open(&mut self.names, name, Existing::Replace)?;
        for piece in bytes.chunks(PIECE_BYTES) {
            writer.write(ExVec::from_slice(piece)?, piece.len())?;
        }
        writer.finish().map(drop)
    }

    fn sync(&mut self, name: &str) -> Result<(), AccessError> {
        self.names.open_file(name)?.sync()
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), AccessError> {
        self.names.rename(from, to)
    }

    fn sync_folder(&mut self) -> Result<(), AccessError> {
        self.names.sync()
    }

    fn remove(&mut self, name: &str) -> Result<(), AccessError> {
        match self.names.remove_file(name) {
            Err(AccessError::Name(NameError::NotFound)) => Ok(()),
            other => other,
        }
    }
}

impl Shelf for Folder {
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, AccessError> {
        let mut file = match self.names.open_file(name) {
            Err(AccessError::Name(NameError::NotFound) | AccessError::File(FileError::NotFound)) => return Ok(None),
            other => other?,
        };
        let mut bytes = Vec::new();
        file_io::read_all(&mut file, |block, count| {
            // What is longer is no file of this store, and its digest tells so.
            let room = PACKAGE_BYTES_MAX.saturating_sub(bytes.len());
            bytes.extend_from_slice(&block[..count.min(room)]);
            Ok::<_, AccessError>(block)
        })?;
        Ok(Some(bytes))
    }

    fn names(&mut self) -> Result<Vec<String>, AccessError> {
        let mut names = Vec::new();
        self.names.for_each_name(|name| {
            if name.kind == NodeKind::File {
                names.push(name.text());
            }
        })?;
        Ok(names)
    }
}
