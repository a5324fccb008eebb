//! Resolution of paths, a part at a time, from an open folder. Neither `..` nor a link leads out of it.
//!
//! Key function: [`walk`]. It is generic over [`Place`], so that it is tested without a file system.

use alloc::string::String;
use alloc::vec::Vec;

use contracts::directory::{NodeAttributes, NodeKind};

use crate::abi::Errno;
use crate::folder::Folder;

/// Maximum number of links on a path, as Linux has it.
const MAX_LINKS: usize = 40;
/// Maximum number of parts still to be resolved.
const MAX_PARTS: usize = 4096;

/// A folder, as far as paths are concerned.
pub trait Place: Clone {
    /// Attributes of a name.
    type Attributes;

    /// Kind and attributes of a name; a link is not followed.
    fn look(&self, name: &str) -> Result<(NodeKind, Self::Attributes), Errno>;
    /// Target of a link.
    fn target(&self, name: &str) -> Result<String, Errno>;
    /// Enters a folder.
    fn enter(&self, name: &str, kind: NodeKind) -> Result<Self, Errno>;
}

impl Place for Folder {
    type Attributes = NodeAttributes;

    fn look(&self, name: &str) -> Result<(NodeKind, NodeAttributes), Errno> {
        self.attributes(name)
    }

    fn target(&self, name: &str) -> Result<String, Errno> {
        self.read_link(name)
    }

    fn enter(&self, name: &str, kind: NodeKind) -> Result<Folder, Errno> {
        self.child(name, kind)
    }
}

/// What happens to a link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// The link is what was asked for.
    Keep,
    /// Its target is.
    Follow,
}

/// What a path leads to.
pub struct Found<P: Place> {
    /// The folder that has the name.
    pub folder: P,
    /// The name; empty for the folder itself.
    pub name: String,
    /// What has the name; none if nothing has.
    pub node: Option<(NodeKind, P::Attributes)>,
    /// The path ends in a slash, so that it names a folder.
    pub is_folder_wanted: bool,
}

/// Resolves a path. That its last name does not exist is no error.
///
/// # Errors
/// The path leads out of the folder, is empty, or a part of it is missing or no folder.
pub fn walk<P: Place>(start: &P, path: &str, last_link: LastLink) -> Result<Found<P>, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut walk = Walk { folders: Vec::from([start.clone()]), parts: Vec::new(), is_folder_wanted: false };
    walk.push(path, true)?;
    let mut links = 0;
    while let Some(part) = walk.parts.pop() {
        if part == ".." {
            walk.up()?;
            continue;
        }
        let is_last = walk.parts.is_empty();
        let folder = walk.folder();
        let node = match folder.look(&part) {
            Err(Errno::NOENT) if is_last => None,
            other => Some(other?),
        };
        match node {
            Some((NodeKind::Link, _)) if !is_last || last_link == LastLink::Follow => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = folder.target(&part)?;
                walk.push(&target, is_last)?;
            }
            node if is_last => {
                return Ok(Found { folder, name: part, node, is_folder_wanted: walk.is_folder_wanted });
            }
            Some((kind @ (NodeKind::Directory | NodeKind::Mount), _)) => {
                let entered = folder.enter(&part, kind)?;
                walk.folders.push(entered);
            }
            _ => return Err(Errno::NOTDIR),
        }
    }
    let folder = walk.folder();
    let node = Some(folder.look("")?);
    Ok(Found { folder, name: String::new(), node, is_folder_wanted: true })
}

/// The state of a resolution.
struct Walk<P: Place> {
    /// The folders entered; the first is where the path began.
    folders: Vec<P>,
    /// Parts still to be resolved, the next one last.
    parts: Vec<String>,
    is_folder_wanted: bool,
}

impl<P: Place> Walk<P> {
    /// Puts a path before the parts to be resolved.
    fn push(&mut self, path: &str, is_last: bool) -> Result<(), Errno> {
        if path.starts_with('/') {
            return Err(Errno::NOTCAPABLE);
        }
        if is_last {
            self.is_folder_wanted |= path.ends_with('/') || path.ends_with("/.") || path == ".";
        }
        self.parts.extend(path::parts(path).map(String::from).collect::<Vec<_>>().into_iter().rev());
        if self.parts.len() > MAX_PARTS {
            return Err(Errno::NAMETOOLONG);
        }
        match self.parts.iter().all(|part| part.len() <= path::PART_BYTES) {
            true => Ok(()),
            false => Err(Errno::NAMETOOLONG),
        }
    }

    fn folder(&self) -> P {
        // Never empty: `up` leaves the first.
        self.folders[self.folders.len() - 1].clone()
    }

    fn up(&mut self) -> Result<(), Errno> {
        if self.folders.len() == 1 {
            return Err(Errno::NOTCAPABLE);
        }
        self.folders.pop();
        Ok(())
    }
}

impl<P: Place> Found<P> {
    /// The kind of what was found.
    ///
    /// # Errors
    /// Nothing was, or no folder where the path wants one.
    pub fn kind(&self) -> Result<NodeKind, Errno> {
        let (kind, _) = self.node.as_ref().ok_or(Errno::NOENT)?;
        match kind {
            NodeKind::Directory | NodeKind::Mount => Ok(*kind),
            _ if self.is_folder_wanted => Err(Errno::NOTDIR),
            _ => Ok(*kind),
        }
    }
}

#[cfg(test)]
mod tests;
