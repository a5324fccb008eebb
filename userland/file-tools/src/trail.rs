//! A stack of nested folders, of which only some are kept open.
//!
//! Key type: [`Trail`]. At any depth, paths in requests are short and few channels are open. Neighbour:
//! [`crate::walk`]. Deliberately not here: the names in the folders.

use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;

/// Number of levels between folders that are kept open, so that a path across them is short enough.
const STRIDE: usize = 8;

/// A current folder, and the path to it from an open one.
pub struct Trail {
    base: Namespace,
    steps: Vec<Step>,
    path: String,
}

struct Step {
    name: String,
    /// Length in bytes of the path above this folder.
    above: usize,
    folder: Option<Namespace>,
}

impl Trail {
    /// Starts in an open folder, displayed as `path`.
    pub fn new(base: Namespace, path: String) -> Trail {
        Trail { base, steps: Vec::new(), path }
    }

    /// Returns the displayed path of the current folder.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the displayed path of a name in the current folder.
    pub fn path_of(&self, name: &str) -> String {
        path::join(&self.path, name)
    }

    /// Returns the depth below the start.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Enters a folder of the current one.
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

    /// Leaves the current folder, and returns its name; `None` at the start.
    pub fn leave(&mut self) -> Option<String> {
        let step = self.steps.pop()?;
        self.path.truncate(step.above);
        Some(step.name)
    }

    /// Returns the current folder.
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
