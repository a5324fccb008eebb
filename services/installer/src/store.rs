//! The store of installed programs: package files, images compiled from them, and their index.
//!
//! A change writes and syncs a new package file, then replaces the index atomically. After a crash at any point the
//! index is the old or the new one, and every file that it names is complete. Files that the index does not name are
//! removed after the next change.
//! Deliberately not here: the installed programs, and the medium itself.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use install::{Medium, name_beside, replace};
use package::Package;

use crate::index::{Index, Kept};

/// File name of the index.
const INDEX: &str = "installed";
/// Extension of package files.
const PACKAGE: &str = ".package";
/// Extension of compiled images.
const IMAGE: &str = ".image";

/// A medium that can also be read.
pub trait Shelf: Medium {
    /// Reads a whole file; `None` if it does not exist.
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Lists all files.
    fn names(&mut self) -> Result<Vec<String>, Self::Error>;
}

/// The installed packages and their index.
pub struct Store<S> {
    shelf: S,
    index: Index,
    /// Whether an index was found.
    had_index: bool,
}

impl<S: Shelf> Store<S>
where
    S::Error: fmt::Display,
{
    /// Opens a store; an empty folder is an empty store.
    ///
    /// # Errors
    /// It cannot be read, or its index is malformed; the text is for a message. Nothing is changed.
    pub fn open(mut shelf: S) -> Result<Store<S>, String> {
        let found = shelf.read(INDEX).map_err(|error| error.to_string())?;
        let had_index = found.is_some();
        let index = found.map_or(Ok(Index::default()), |bytes| Index::parse(&bytes)).map_err(|what| {
            format!(
                "its file `{INDEX}` is damaged: {what}; restore it from a copy, or remove it and reinstall what the \
                 package files beside it have"
            )
        })?;
        Ok(Store { shelf, index, had_index })
    }

    /// Returns the index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Reads the package file of an installed program.
    ///
    /// # Errors
    /// It is missing, unreadable, or of another program or version; the text is for a message. All else is left to the
    /// kernel's verification.
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

    /// Reads the compiled image of an installed program; `None` if there is none that can be read, for which it is made
    /// again.
    pub fn image(&mut self, kept: &Kept) -> Option<Vec<u8>> {
        self.shelf.read(&kept.image_file()).ok().flatten()
    }

    /// Writes and syncs the compiled image of a program, which replaces one that is there.
    ///
    /// # Errors
    /// The medium's, for a message.
    pub fn keep_image(&mut self, kept: &Kept, image: &[u8]) -> Result<(), String> {
        replace(&mut self.shelf, &kept.image_file(), image).map_err(|error| error.to_string())
    }

    /// Writes and syncs a package file, and the image compiled from its module unless that is empty, without entering it
    /// in the index. It never overwrites a file in use: a program is only replaced by a newer version.
    ///
    /// # Errors
    /// The medium's, for a message, or the index is full.
    pub fn stage(&mut self, kept: &Kept, package: &[u8], image: &[u8]) -> Result<(), String> {
        self.index.with(kept.clone()).fits()?;
        replace(&mut self.shelf, &kept.file(), package).map_err(|error| error.to_string())?;
        if image.is_empty() { Ok(()) } else { self.keep_image(kept, image) }
    }

    /// Removes a package file that was staged and is not in the index.
    pub fn discard(&mut self, kept: &Kept) {
        if self.index.program(&kept.name).map(Kept::file) != Some(kept.file()) {
            // A leftover file is harmless.
            let _ = self.shelf.remove(&kept.file());
            let _ = self.shelf.remove(&kept.image_file());
        }
    }

    /// Enters a staged program in the index.
    ///
    /// # Errors
    /// The medium's, for a message, or the index is full; the old index stays valid.
    pub fn commit(&mut self, kept: Kept) -> Result<(), String> {
        self.change(self.index.with(kept))
    }

    /// Removes the program of this name from the index.
    ///
    /// # Errors
    /// As for [`commit`](Store::commit).
    pub fn unlist(&mut self, name: &str, is_of_the_image: bool) -> Result<(), String> {
        self.change(self.index.without(name, is_of_the_image))
    }

    fn change(&mut self, index: Index) -> Result<(), String> {
        index.fits()?;
        replace(&mut self.shelf, INDEX, index.text().as_bytes()).map_err(|error| error.to_string())?;
        self.index = index;
        // Without an index the files may be all that is left of a damaged store.
        if self.had_index {
            self.tidy();
        }
        Ok(())
    }

    /// Removes files that the index does not name. Failure to remove one is harmless.
    fn tidy(&mut self) {
        let files = self.index.kept.iter().flat_map(|kept| [kept.file(), kept.image_file()]);
        let counting: Vec<String> = files.collect();
        let beside = name_beside("");
        let is_ours = |name: &str| name.ends_with(PACKAGE) || name.ends_with(IMAGE) || name.ends_with(&beside);
        for name in self.shelf.names().unwrap_or_default() {
            if is_ours(&name) && !counting.contains(&name) {
                let _ = self.shelf.remove(&name);
            }
        }
    }
}
