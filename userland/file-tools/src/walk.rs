//! Depth-first traversal of a tree of folders without recursion, so that any depth is fine.
//!
//! Key type: [`Walk`]. The program decides which folders to enter, and acts on names in their open folder. Neighbour:
//! [`crate::trail`]. Deliberately not here: following symbolic links.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::{IntoIter, Vec};

use client::access::AccessError;
use client::namespace::{Name, Namespace};
use contracts::directory::NodeKind;

use crate::trail::Trail;

/// A step of a walk.
pub enum Step {
    /// A name in the current folder.
    Name(Name),
    /// A folder has no more names; the walk is back in its parent, where the folder has this name.
    Left(String),
}

/// A walk through a tree, sorted by name.
pub struct Walk {
    trail: Trail,
    levels: Vec<Level>,
}

struct Level {
    names: IntoIter<Name>,
    volume: Rc<str>,
}

impl Walk {
    /// Starts in an open folder, displayed as `path`. `volume` is the mount point of its volume: see [`volume_of`].
    pub fn new(folder: Namespace, path: String, volume: &str) -> Result<Walk, AccessError> {
        let mut walk = Walk { trail: Trail::new(folder, path), levels: Vec::new() };
        walk.read(volume.into())?;
        Ok(walk)
    }

    fn read(&mut self, volume: Rc<str>) -> Result<(), AccessError> {
        let names = sorted_names(self.trail.folder()?)?.into_iter();
        self.levels.push(Level { names, volume });
        Ok(())
    }

    /// Returns the next step; `None` once the first folder has no more names.
    pub fn step(&mut self) -> Option<Step> {
        match self.levels.last_mut()?.names.next() {
            Some(name) => Some(Step::Name(name)),
            None => {
                self.levels.pop();
                self.trail.leave().map(Step::Left)
            }
        }
    }

    /// Enters the folder of the last step.
    pub fn enter(&mut self, name: &str, kind: NodeKind) -> Result<(), AccessError> {
        let volume = match (kind, self.levels.last()) {
            (NodeKind::Mount, _) | (_, None) => self.trail.path_of(name).into(),
            (_, Some(level)) => Rc::clone(&level.volume),
        };
        self.trail.enter(name)?;
        let read = self.read(volume);
        if read.is_err() {
            self.trail.leave();
        }
        read
    }

    /// Returns the current position.
    pub fn here(&mut self) -> &mut Trail {
        &mut self.trail
    }

    /// Returns the mount point of the current volume. With a node number it identifies a file.
    pub fn volume(&self) -> Rc<str> {
        self.levels.last().map_or_else(|| Rc::from("/"), |level| Rc::clone(&level.volume))
    }
}

/// Returns the names in an open folder, sorted by bytes.
pub fn sorted_names(folder: &mut Namespace) -> Result<Vec<Name>, AccessError> {
    let mut names = Vec::new();
    folder.for_each_name(|name| names.push(name))?;
    names.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(names)
}

/// Returns whether a walk can enter a node of this kind.
pub fn is_folder(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Directory | NodeKind::Mount)
}
