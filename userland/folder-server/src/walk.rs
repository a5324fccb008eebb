//! Path resolution. Symbolic links are followed here, one name at a time if necessary, and never out of the folder.
//!
//! A link's target is relative to the directory that holds the link; `..` removes the last name of that path. An
//! absolute target is a path of the host, so it leads out. Neighbour: `session`. Deliberately not here: operations on
//! the nodes.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;

use nine_p::{MAX_NAMES, Qid, errno};

use crate::session::{Error, Fid};

/// Maximum number of links in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// A name on the host.
pub(crate) type Name = Vec<u8>;

/// A directory that paths are relative to.
#[derive(Clone)]
pub(crate) struct Base {
    root: Rc<Fid>,
    fid: Rc<Fid>,
    /// Absolute path, without links.
    names: Vec<Name>,
}

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

/// The result of resolving a path.
pub(crate) struct Found {
    pub(crate) fid: Fid,
    pub(crate) qid: Qid,
    /// Absolute path, without links.
    pub(crate) names: Vec<Name>,
}

/// A step of a path.
enum Step {
    Down(Name),
    Up,
}

impl Base {
    pub(crate) fn root(root: &Rc<Fid>) -> Base {
        Base { root: Rc::clone(root), fid: Rc::clone(root), names: Vec::new() }
    }

    /// Makes a base of a directory found from here.
    pub(crate) fn below(&self, found: Found) -> Base {
        Base { root: Rc::clone(&self.root), fid: Rc::new(found.fid), names: found.names }
    }

    /// Resolves a path.
    pub(crate) async fn find(&self, path: &str, last: LastLink) -> Result<Found, Error> {
        let mut todo: VecDeque<Step> = names_of(path)?.into_iter().map(Step::Down).collect();
        let (mut at, mut passed) = (Rc::clone(&self.fid), self.names.clone());
        let mut links = 0;
        loop {
            let names: Vec<Name> = todo.iter().map_while(Step::name).cloned().collect();
            let walked = walk(&at, &names, if names.len() < todo.len() { LastLink::Follow } else { last }).await?;
            match walked {
                Walked::All { fid, qid } if names.len() == todo.len() => {
                    let qid = match qid {
                        Some(qid) => qid,
                        None => fid.attributes().await?.qid,
                    };
                    passed.extend(names);
                    return Ok(Found { fid, qid, names: passed });
                }
                Walked::All { .. } => {
                    passed.extend(names.iter().cloned());
                    todo.drain(..=names.len());
                    passed.pop().ok_or(Error::LeadsOut)?;
                    at = Rc::new(walk_directly(&self.root, &passed).await?);
                }
                Walked::Link { before, link, position } => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Error::TooManyLinks);
                    }
                    let target = steps_of(&link.target().await?)?;
                    passed.extend(names.into_iter().take(position));
                    todo.drain(..=position);
                    target.into_iter().rev().for_each(|step| todo.push_front(step));
                    at = Rc::new(before);
                }
            }
        }
    }

    /// Returns the parent directory of a path, and its last name.
    pub(crate) async fn place(&self, path: &str) -> Result<(Found, Name), Error> {
        let name = names_of(path)?.pop().ok_or(Error::BadPath)?;
        let (parent, _) = path::split_last(path).ok_or(Error::BadPath)?;
        let found = self.find(parent, LastLink::Follow).await?;
        if found.qid.is_directory() { Ok((found, name)) } else { Err(Error::Host(errno::ENOTDIR)) }
    }
}

impl Step {
    fn name(&self) -> Option<&Name> {
        match self {
            Step::Down(name) => Some(name),
            Step::Up => None,
        }
    }
}

/// The result of a walk.
enum Walked {
    /// All names were found; the last one, if there was one.
    All { fid: Fid, qid: Option<Qid> },
    /// A link to follow, its directory, and its index in the names.
    Link { before: Fid, link: Fid, position: usize },
}

/// Walks names up to the first link: in one request if there is none, else name by name.
async fn walk(from: &Fid, names: &[Name], last: LastLink) -> Result<Walked, Error> {
    let is_in_the_way =
        |position: usize, qid: &Qid| qid.is_link() && (position + 1 < names.len() || last == LastLink::Follow);
    if names.len() <= MAX_NAMES
        && let Ok((qids, Some(fid))) = from.walk(names).await
        && !qids.iter().enumerate().any(|(position, qid)| is_in_the_way(position, qid))
    {
        return Ok(Walked::All { fid, qid: qids.last().copied() });
    }
    let (mut at, mut found) = (from.duplicate().await?, None);
    for (position, name) in names.iter().enumerate() {
        let (qids, fid) = at.walk(core::slice::from_ref(name)).await?;
        let (Some(qid), Some(fid)) = (qids.first().copied(), fid) else { return Err(Error::Broken) };
        if is_in_the_way(position, &qid) {
            return Ok(Walked::Link { before: at, link: fid, position });
        }
        (at, found) = (fid, Some(qid));
    }
    Ok(Walked::All { fid: at, qid: found })
}

/// Walks a path without links. A link found now was created by the host in the meantime.
async fn walk_directly(from: &Fid, names: &[Name]) -> Result<Fid, Error> {
    match walk(from, names, LastLink::Follow).await? {
        Walked::All { fid, .. } => Ok(fid),
        Walked::Link { .. } => Err(Error::Host(errno::ENOENT)),
    }
}

/// The names of a path.
fn names_of(path: &str) -> Result<Vec<Name>, Error> {
    if !path::is_valid(path) {
        return Err(Error::BadPath);
    }
    let name = |part| name_text::from_text(part).map(|name| name.into_owned()).map_err(|_| Error::BadPath);
    path::parts(path).map(name).collect()
}

/// The steps of a link's target.
fn steps_of(target: &[u8]) -> Result<Vec<Step>, Error> {
    if target.first() == Some(&b'/') {
        return Err(Error::LeadsOut);
    }
    let parts = target.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    Ok(parts.map(|part| if part == b".." { Step::Up } else { Step::Down(part.to_vec()) }).collect())
}

/// Returns whether the text of a target stays below the root for a link in this directory.
pub(crate) fn stays_inside(folder: &[Name], target: &[u8]) -> bool {
    let Ok(steps) = steps_of(target) else { return false };
    let mut depth = folder.len();
    steps.iter().all(|step| {
        let left = match step {
            Step::Down(_) => depth.checked_add(1),
            Step::Up => depth.checked_sub(1),
        };
        depth = left.unwrap_or(depth);
        left.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_recognized() {
        let folder = [b"a".to_vec(), b"b".to_vec()];
        for inside in ["x", "./x", "../x", "../..", "../../c/../d", ""] {
            assert!(stays_inside(&folder, inside.as_bytes()), "{inside}");
        }
        for outside in ["/", "/a/b", "../../..", "../../../a", "x/../../../.."] {
            assert!(!stays_inside(&folder, outside.as_bytes()), "{outside}");
        }
    }

    #[test]
    fn names_are_bytes_of_the_host() {
        assert_eq!(names_of("/a//caf\\xe9/.").ok(), Some(Vec::from([b"a".to_vec(), b"caf\xe9".to_vec()])));
        for bad in ["a/../b", "a\0", "\\xc3\\xa9"] {
            assert_eq!(names_of(bad).err(), Some(Error::BadPath), "{bad:?}");
        }
    }
}
