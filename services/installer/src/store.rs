//! Keeping what was installed: package files, and the list of those that count.
//!
//! A change writes the package file under a name of its own and has it on the medium, then replaces the list in one
//! step. Whatever happens in between, the list that is found afterwards is the old one or the new one, and every file
//! that it names is whole. Files that no list names are taken out after the next change.
//! Deliberately not here: what is worth keeping, and the medium itself.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use install::{Medium, name_beside, replace};
use package::Package;

use crate::index::{Index, Kept};

/// Name of the list.
const INDEX: &str = "installed";
/// How the names of package files end.
const PACKAGE: &str = ".package";

/// A medium that can be read, too.
pub trait Shelf: Medium {
    /// The bytes of a file; none if there is no such file.
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The names of all files.
    fn names(&mut self) -> Result<Vec<String>, Self::Error>;
}

/// The installed packages and their index.
pub struct Store<S> {
    shelf: S,
    index: Index,
    /// Whether a list was found.
    had_list: bool,
}

impl<S: Shelf> Store<S>
where
    S::Error: fmt::Display,
{
    /// Opens a store; one that there is nothing in is empty.
    ///
    /// # Errors
    /// It cannot be read, or its list makes no sense: a sentence for people. Nothing is changed.
    pub fn open(mut shelf: S) -> Result<Store<S>, String> {
        let found = shelf.read(INDEX).map_err(|error| error.to_string())?;
        let had_list = found.is_some();
        let index = found.map_or(Ok(Index::default()), |bytes| Index::parse(&bytes)).map_err(|what| {
            format!(
                "its file `{INDEX}` is damaged: {what}; put it back from a copy, or remove it and install anew what the \
                 package files beside it have"
            )
        })?;
        Ok(Store { shelf, index, had_list })
    }

    /// Returns the index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The package file of a program that is kept.
    ///
    /// # Errors
    /// It is not there, is of another program or version, or cannot be read: a sentence for people. What else may be
    /// wrong with it the kernel tells.
    pub fn package(&mut self, kept: &Kept) -> Result<Vec<u8>, String> {
        let file = kept.file();
        match self.shelf.read(&file).map_err(|error| format!("{file}: {error}"))? {
            None => Err(format!("{file} is missing; install the program again")),
            Some(bytes) => match Package::parse(&bytes).map(|package| package.manifest) {
                Ok(manifest) if manifest.name == kept.name && manifest.version == kept.version => Ok(bytes),
                Ok(_) => Err(format!("{file} is of another program or version; install the program again")),
                Err(_) => Err(format!("{file} is damaged; install the program again")),
            },
        }
    }

    /// Brings the package file onto the medium. It does not count yet. No file that counts has its name: a program is
    /// replaced by a newer version alone.
    ///
    /// # Errors
    /// The medium's, as a sentence; or the list has no room.
    pub fn bring(&mut self, kept: &Kept, package: &[u8]) -> Result<(), String> {
        self.index.with(kept.clone()).fits()?;
        replace(&mut self.shelf, &kept.file(), package).map_err(|error| error.to_string())
    }

    /// Takes the package file away that was brought, and is not to count.
    pub fn discard(&mut self, kept: &Kept) {
        if self.index.program(&kept.name).map(Kept::file) != Some(kept.file()) {
            // A leftover file is harmless.
            let _ = self.shelf.remove(&kept.file());
        }
    }

    /// From now on the program counts that was brought.
    ///
    /// # Errors
    /// The medium's, as a sentence, or the list has no room; the old list counts then.
    pub fn keep(&mut self, kept: Kept) -> Result<(), String> {
        self.change(self.index.with(kept))
    }

    /// From now on the program of this name does not count.
    ///
    /// # Errors
    /// As for [`keep`](Store::keep).
    pub fn drop_program(&mut self, name: &str, is_of_the_image: bool) -> Result<(), String> {
        self.change(self.index.without(name, is_of_the_image))
    }

    fn change(&mut self, index: Index) -> Result<(), String> {
        index.fits()?;
        replace(&mut self.shelf, INDEX, index.text().as_bytes()).map_err(|error| error.to_string())?;
        self.index = index;
        // Where there was no list, it may be lost, and the files be all that is left.
        if self.had_list {
            self.tidy();
        }
        Ok(())
    }

    /// Removes files that the index does not name. Failure to remove one is harmless.
    fn tidy(&mut self) {
        let counting: Vec<String> = self.index.kept.iter().map(Kept::file).collect();
        let beside = name_beside("");
        let is_ours = |name: &str| name.ends_with(PACKAGE) || name.ends_with(&beside);
        for name in self.shelf.names().unwrap_or_default() {
            if is_ours(&name) && !counting.contains(&name) {
                let _ = self.shelf.remove(&name);
            }
        }
    }
}
