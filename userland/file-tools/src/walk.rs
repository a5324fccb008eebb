//! Going through a tree of folders, name by name, without a call that calls itself: no depth is too deep.
//!
//! Key type: [`Walk`]. The program decides which folders to go into and does what it does about names in the
//! open folder in which they are. Neighbour: [`crate::trail`]. Deliberately not here: following symbolic links.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::{IntoIter, Vec};

use client::access::AccessError;
use client::namespace::{Name, Namespace};
use contracts::directory::NodeKind;

use crate::trail::Trail;

/// What comes next on a walk.
pub enum Step {
    /// A name in the folder where the walk is.
    Name(Name),
    /// A folder has no more names, and the walk is back in the one above, in which it has this name.
    Left(String),
}

/// A walk through a tree, in the order of names.
pub struct Walk {
    trail: Trail,
    levels: Vec<Level>,
}

struct Level {
    names: IntoIter<Name>,
    volume: Rc<str>,
}

impl Walk {
    /// Begins in an open folder, which people know by `path`. `volume` is where its volume is mounted: see
    /// [`volume_of`].
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

    /// What comes next. `None` once the folder in which the walk began has no more names.
    pub fn step(&mut self) -> Option<Step> {
        match self.levels.last_mut()?.names.next() {
            Some(name) => Some(Step::Name(name)),
            None => {
                self.levels.pop();
                self.trail.leave().map(Step::Left)
            }
        }
    }

    /// Goes into a folder that was just named; its names come next.
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

    /// Where the walk is.
    pub fn here(&mut self) -> &mut Trail {
        &mut self.trail
    }

    /// Where the volume of the names here is mounted. With the number of a node, it tells which one it is.
    pub fn volume(&self) -> Rc<str> {
        self.levels.last().map_or_else(|| Rc::from("/"), |level| Rc::clone(&level.volume))
    }
}

/// The names in an open folder, in the order of their bytes.
pub fn sorted_names(folder: &mut Namespace) -> Result<Vec<Name>, AccessError> {
    let mut names = Vec::new();
    folder.for_each_name(|name| names.push(name))?;
    names.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(names)
}

/// Whether a walk can go into a node of this kind.
pub fn is_folder(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Directory | NodeKind::Mount)
}
