//! From a path to an inode.

use alloc::vec::Vec;

use crate::error::{Corruption, Error, Problem, Structure};
use crate::source::BlockSource;
use crate::volume::Volume;
use crate::wire::inode::{Inode, Kind, SHORT_TARGET_BYTES};

/// Symbolic links that are followed for one path.
pub const LINK_LIMIT: usize = 40;
/// Bytes of the longest path.
pub const PATH_LIMIT: usize = 4096;

/// What to do with a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// Go on to what it leads to.
    Follow,
    /// Answer with the link itself.
    Keep,
}

impl<S: BlockSource> Volume<S> {
    /// Walks a path from the folder with the inode number `base`.
    ///
    /// `base` is a root: neither `..` nor a link leads out of it, and a link that begins with `/`
    /// starts there. Who holds a folder's channel holds what lies below it, not what lies above.
    pub async fn resolve(&self, base: u32, path: &[u8], last: LastLink) -> Result<Inode, Error> {
        if path.len() > PATH_LIMIT {
            return Err(Error::NameTooLong);
        }
        // Numbers, not inodes: a hostile chain of links can make this long.
        let mut above: Vec<u32> = Vec::new();
        let mut here = self.inode(base).await?;
        let mut rest = path.to_vec();
        let mut links = 0;
        while let Some((name, after)) = split_first(&rest) {
            if here.kind != Kind::Directory {
                return Err(Error::NotADirectory);
            }
            match name {
                b"." => {}
                b".." => here = self.inode(above.pop().unwrap_or(base)).await?,
                _ => {
                    let number = self.find(&here, name).await?;
                    let inode = self.inode(number).await?;
                    let at_end = after.is_empty();
                    if inode.kind == Kind::SymbolicLink && (!at_end || last == LastLink::Follow) {
                        links += 1;
                        if links > LINK_LIMIT {
                            return Err(Error::TooManyLinks);
                        }
                        let mut target = self.link_target(&inode).await?;
                        if target.first() == Some(&b'/') {
                            here = self.inode(base).await?;
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
        // What is left is nothing, or the slashes after a name, which promise a folder.
        if !rest.is_empty() && here.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        Ok(here)
    }

    /// Where a symbolic link leads: a path, from the folder that the link is in.
    pub async fn link_target(&self, link: &Inode) -> Result<Vec<u8>, Error> {
        if link.kind != Kind::SymbolicLink {
            return Err(Error::NotFound);
        }
        let block_bytes = self.superblock().block_bytes;
        let attribute_sectors = if link.attribute_block == 0 { 0 } else { block_bytes / 512 };
        let is_short = link.sectors <= attribute_sectors;
        let most = if is_short { SHORT_TARGET_BYTES - 1 } else { block_bytes as usize };
        // Checked to be at most a block before anything of that size is allocated.
        let bytes = usize::try_from(link.size).ok().filter(|bytes| (1..=most).contains(bytes)).ok_or({
            let problem = Problem::OutOfRange { field: "a link's size", value: link.size, least: 1, most: most as u64 };
            Error::Corrupt(Corruption { structure: Structure::Inode(link.number), block: link.home_block, problem })
        })?;
        if is_short {
            return Ok(link.short_target()[..bytes].to_vec());
        }
        let mut target = alloc::vec![0; bytes];
        self.read_content(link, 0, &mut target).await?;
        Ok(target)
    }
}

/// The first name of a path and what follows it, slashes first; `None` if no name is left.
fn split_first(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = path.iter().position(|&byte| byte != b'/')?;
    let name = &path[start..];
    let end = name.iter().position(|&byte| byte == b'/').unwrap_or(name.len());
    Some(name.split_at(end))
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
}
