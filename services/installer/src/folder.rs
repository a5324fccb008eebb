//! A store's medium in a folder of a volume.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::file_writer::{Existing, FileWriter};
use client::installer::PACKAGE_BYTES_MAX;
use client::namespace::Namespace;
use contracts::directory::{NameError, NodeKind};
use contracts::file::FileError;
use install::Medium;
use sip::exheap::ExVec;

use crate::store::Shelf;
use crate::{Unusable, guard};

/// Bytes per write request.
const PIECE_BYTES: usize = 256 << 10;

/// The state of the store's path.
enum Found {
    /// The parent folder exists, the store's does not.
    Nothing,
    /// An empty folder that others may write to.
    Empty(Folder),
    /// A folder that only the installer can change.
    Guarded(Folder),
}

impl Found {
    fn at(namespace: &mut Namespace, path: &str) -> Result<Found, Unusable> {
        let names = match namespace.open_directory(path) {
            Err(AccessError::Name(NameError::NotFound)) => {
                return Ok(namespace.open_folder_of(path).map(|_| Found::Nothing)?);
            }
            other => other?,
        };
        let mut folder = Folder { names };
        let list = namespace.acl(path)?.filter(|list| list.inherited_from.is_none());
        if list.is_some_and(|list| guard::is_guarded(&list.text, &sip::principal::own())) {
            return Ok(Found::Guarded(folder));
        }
        if folder.is_empty()? {
            return Ok(Found::Empty(folder));
        }
        let why = "other programs may write to it, so its contents cannot be trusted; remove that folder and \
                   install the programs again";
        Err(Unusable::Because(why.into()))
    }
}

/// An open folder.
pub(crate) struct Folder {
    names: Namespace,
}

impl Folder {
    /// Opens an existing store folder; `None` if it is empty, or missing from an existing parent.
    pub(crate) fn existing(namespace: &mut Namespace, path: &str) -> Result<Option<Folder>, Unusable> {
        Ok(match Found::at(namespace, path)? {
            Found::Guarded(folder) => Some(folder),
            Found::Nothing | Found::Empty(_) => None,
        })
    }

    /// Opens the store folder, creating it in an existing parent.
    pub(crate) fn open(namespace: &mut Namespace, path: &str) -> Result<Folder, Unusable> {
        let found = Found::at(namespace, path)?;
        let (mut above, name) = namespace.open_folder_of(path)?;
        match found {
            Found::Guarded(folder) => Ok(folder),
            Found::Empty(folder) => folder.claim(&mut above, name),
            Found::Nothing => {
                above.make_directory(name)?;
                let folder = Folder { names: above.open_directory(name)? };
                folder.claim(&mut above, name)
            }
        }
    }

    /// Sets the ACL of an empty folder so that only the installer can write to it.
    fn claim(mut self, above: &mut Namespace, name: &str) -> Result<Folder, Unusable> {
        above.set_acl(name, &guard::list(&sip::principal::own())).map_err(|error| {
            Unusable::Because(format!("cannot set an access control list that denies others writing to it: {error}"))
        })?;
        // It may have been written to before the ACL was set.
        if !self.is_empty()? {
            above.set_acl(name, "")?;
            return Err(Unusable::Because("another program has written to it; remove that folder".into()));
        }
        above.sync()?;
        Ok(self)
    }

    fn is_empty(&mut self) -> Result<bool, AccessError> {
        let mut is_empty = true;
        self.names.for_each_name(|_| is_empty = false)?;
        Ok(is_empty)
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
        let mut pieces = file.pieces();
        while let Some(piece) = pieces.next()? {
            // A longer file was not written by the store; it is truncated, and verification fails.
            let room = PACKAGE_BYTES_MAX.saturating_sub(bytes.len());
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        }
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
