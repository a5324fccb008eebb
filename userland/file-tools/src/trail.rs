//! A way down through folders, of which only some are kept open: what programs that go through trees stand on.
//!
//! Key type: [`Trail`]. However deep it leads, no path that a server is asked for is long, and there are few
//! channels. Neighbour: [`crate::walk`]. Deliberately not here: what is in the folders.

use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;

/// Of so many folders below each other, one stays open: so many names make a path that is short enough.
const STRIDE: usize = 8;

/// An open folder and the way on from there.
pub struct Trail {
    base: Namespace,
    steps: Vec<Step>,
    path: String,
}

struct Step {
    name: String,
    /// Bytes of the path above this folder.
    above: usize,
    folder: Option<Namespace>,
}

impl Trail {
    /// Begins in an open folder, which people know by `path`.
    pub fn new(base: Namespace, path: String) -> Trail {
        Trail { base, steps: Vec::new(), path }
    }

    /// How people know the folder where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How people know a name in that folder.
    pub fn path_of(&self, name: &str) -> String {
        path::join(&self.path, name)
    }

    /// How many folders below its beginning it is.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Goes into a folder with this name.
    pub fn enter(&mut self, name: &str) -> Result<(), AccessError> {
        let folder = self.folder()?.open_directory(name)?;
        let depth = self.steps.len();
        if !depth.is_multiple_of(STRIDE)
            && let Some(here) = self.steps.last_mut()
        {
            here.folder = None;
        }
        let above = self.path.len();
        self.path = self.path_of(name);
        self.steps.push(Step { name: String::from(name), above, folder: Some(folder) });
        Ok(())
    }

    /// Goes back to the folder above; gives the name of the one it was in. `None` where it began.
    pub fn leave(&mut self) -> Option<String> {
        let step = self.steps.pop()?;
        self.path.truncate(step.above);
        Some(step.name)
    }

    /// The folder where it is.
    pub fn folder(&mut self) -> Result<&mut Namespace, AccessError> {
        let depth = self.steps.len();
        let open = self.steps.iter().rposition(|step| step.folder.is_some()).map_or(0, |index| index + 1);
        if open < depth {
            let names: Vec<&str> = self.steps[open..].iter().map(|step| step.name.as_str()).collect();
            let way = names.join("/");
            let nearest = match open {
                0 => &mut self.base,
                _ => self.steps[open - 1].folder.as_mut().ok_or(AccessError::ServerEnded)?,
            };
            let folder = nearest.open_directory(&way)?;
            self.steps[depth - 1].folder = Some(folder);
        }
        match self.steps.last_mut() {
            None => Ok(&mut self.base),
            Some(step) => step.folder.as_mut().ok_or(AccessError::ServerEnded),
        }
    }
}
