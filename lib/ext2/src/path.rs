//! Path resolution.

use alloc::vec::Vec;

use crate::error::Error;
use crate::format::inode::{Inode, Kind};
use crate::source::BlockSource;
use crate::volume::Volume;

/// Maximum symbolic links followed for one path.
pub const LINK_LIMIT: usize = 40;
/// Maximum length of a path in bytes.
pub const PATH_LIMIT: usize = 4096;

/// Handling of a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// Follows it.
    Follow,
    /// Returns the link itself.
    Keep,
}

impl<S: BlockSource> Volume<S> {
    /// Walks a path from the folder with the inode number `base`.
    ///
    /// `base` is a root: neither `..` nor a link leads out of it, and a link that begins with `/` starts there. A
    /// folder's channel grants access to what lies below it, not above.
    pub async fn resolve(&self, base: u32, path: &[u8], last: LastLink) -> Result<Inode, Error> {
        self.resolve_noting(base, path, last, &mut Vec::new()).await
    }

    /// As [`Volume::resolve`], and records the numbers of the folders in which a name was looked up, in that order:
    /// those whose ACLs decide about a client's access. They are recorded also if the path cannot be resolved.
    pub async fn resolve_noting(
        &self,
        base: u32,
        path: &[u8],
        last: LastLink,
        folders: &mut Vec<u32>,
    ) -> Result<Inode, Error> {
        if path.len() > PATH_LIMIT {
            return Err(Error::NameTooLong);
        }
        // Numbers, not inodes: a hostile chain of links can make this long.
        let mut above: Vec<u32> = Vec::new();
        self.0.admission.check_mounted()?;
        let mut here = self.0.inodes.get(base).await?;
        let mut rest = path.to_vec();
        let mut links = 0;
        while let Some((name, after)) = split_first(&rest) {
            if here.kind != Kind::Directory {
                return Err(Error::NotADirectory);
            }
            match name {
                b"." => {}
                b".." => here = self.0.inodes.get(above.pop().unwrap_or(base)).await?,
                _ => {
                    folders.push(here.number);
                    let inode = self.look_up(here.number, name).await?;
                    let at_end = after.is_empty();
                    if inode.kind == Kind::SymbolicLink && (!at_end || last == LastLink::Follow) {
                        links += 1;
                        if links > LINK_LIMIT {
                            return Err(Error::TooManyLinks);
                        }
                        let mut target = self.link_target(inode.number).await?;
                        if target.first() == Some(&b'/') {
                            here = self.0.inodes.get(base).await?;
                            above.clear();
                        }
                        target.extend_from_slice(after);
                        rest = target;
                        continue;
                    }
                    above.push(here.number);
                    here = inode;
                }
            }
            rest = after.to_vec();
        }
        // The rest is empty, or trailing slashes, which require a directory.
        if !rest.is_empty() && here.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        Ok(here)
    }

    /// Returns the folder in which a path ends, and the last name of the path, which need not exist. Symbolic links on
    /// the way are followed, one at the end is not; `base` is a root as for [`Volume::resolve`]. [`Error::BadName`] if
    /// the path ends without a name.
    pub async fn resolve_parent(&self, base: u32, path: &[u8]) -> Result<(u32, Vec<u8>), Error> {
        self.resolve_parent_noting(base, path, &mut Vec::new()).await
    }

    /// As [`Volume::resolve_parent`], and records the folders as [`Volume::resolve_noting`] does. The returned folder
    /// is not among them, as no name was looked up there.
    pub async fn resolve_parent_noting(
        &self,
        base: u32,
        path: &[u8],
        folders: &mut Vec<u32>,
    ) -> Result<(u32, Vec<u8>), Error> {
        let (folder, name) = split_last(path);
        if name.is_empty() || name == b"." || name == b".." {
            return Err(Error::BadName);
        }
        let inode = self.resolve_noting(base, folder, LastLink::Follow, folders).await?;
        if inode.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        Ok((inode.number, name.to_vec()))
    }
}

/// Returns the first name of a path and the rest after it, slashes first; `None` if no name is left.
fn split_first(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = path.iter().position(|&byte| byte != b'/')?;
    let name = &path[start..];
    let end = name.iter().position(|&byte| byte == b'/').unwrap_or(name.len());
    Some(name.split_at(end))
}

/// Returns a path's last name, without trailing slashes, and the part before it.
fn split_last(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let start = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    (&path[..start], &path[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_at_its_first_name() {
        assert_eq!(split_first(b""), None);
        assert_eq!(split_first(b"//"), None);
        assert_eq!(split_first(b"/a//b/"), Some((&b"a"[..], &b"//b/"[..])));
        assert_eq!(split_first(b"name"), Some((&b"name"[..], &b""[..])));
    }

    #[test]
    fn a_path_is_split_at_its_last_name() {
        assert_eq!(split_last(b"name"), (&b""[..], &b"name"[..]));
        assert_eq!(split_last(b"/a//b/"), (&b"/a//"[..], &b"b"[..]));
        assert_eq!(split_last(b"//"), (&b""[..], &b""[..]));
    }
}
