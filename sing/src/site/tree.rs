//! A host folder as a future volume: its contents, what cannot be copied, and the space it needs.
//!
//! Deliberately not here: reading the files' content; that happens when they are copied.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{File as HostFile, Metadata};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use ext2::make::{Attributes, Folder, Foreign, Link, Node};
use rustix::fs::{SeekFrom, seek};

use crate::failure::{Failure, Outcome, plain_reason};

/// Block size of the volume in bytes.
pub const BLOCK_BYTES: u64 = 4096;
/// Inode size in bytes.
const INODE_BYTES: u64 = 256;
/// Maximum notes shown individually.
const SHOWN_NOTES: usize = 5;

/// Contents of a folder.
pub struct Tree {
    /// The folder.
    pub root: Folder,
    /// The files, by key.
    pub files: Vec<PathBuf>,
    /// Total bytes to be copied.
    pub content_bytes: u64,
    /// Changes whenever the content of the folder does.
    pub fingerprint: String,
    blocks: u64,
    inodes: u64,
    notes: Vec<String>,
}

impl Tree {
    /// Scans a folder, except at and below `without`.
    ///
    /// # Errors
    /// The folder itself cannot be read.
    pub fn read(folder: &Path, without: &Path) -> Outcome<Tree> {
        let cannot = |error| Failure::file("read the folder", folder, &error);
        let top = folder.canonicalize().map_err(cannot)?;
        let metadata = std::fs::metadata(&top).map_err(cannot)?;
        std::fs::read_dir(&top).map_err(cannot)?;
        let empty = Folder { attributes: attributes(&metadata), entries: BTreeMap::new() };
        let mut tree = Tree {
            root: empty.clone(),
            files: Vec::new(),
            content_bytes: 0,
            fingerprint: String::new(),
            blocks: 0,
            inodes: 0,
            notes: Vec::new(),
        };
        let look = Look { top: &top, without: &without.canonicalize().unwrap_or_else(|_| without.into()) };
        tree.root = tree.folder(&look, &top, &metadata);
        Ok(tree)
    }

    /// Returns the size in bytes of a volume that holds it all, with room for changes.
    pub fn volume_bytes(&self) -> u64 {
        let needed = self.blocks * BLOCK_BYTES + self.inodes * INODE_BYTES;
        needed + needed / 16 + (16 << 20)
    }

    /// Returns notes on skipped files, one line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.notes.iter().take(SHOWN_NOTES).cloned().collect();
        let more = self.notes.len() - notes.len();
        if more > 0 {
            notes.push(format!("{more} more are skipped or dangling"));
        }
        notes
    }

    fn note(&mut self, path: &Path, what: &str) {
        self.notes.push(format!("{}: {what}", path.display()));
    }

    /// Counts a file of `bytes` content, with its indirect blocks.
    fn count(&mut self, bytes: u64) {
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        self.blocks += blocks + blocks.div_ceil(BLOCK_BYTES / 4) + 3;
        self.inodes += 1;
    }

    fn mark(&mut self, look: &Look<'_>, path: &Path, metadata: &Metadata) {
        let name = path.strip_prefix(look.top).unwrap_or(path);
        let (size, changed, nanoseconds) = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        // Writing to a String cannot fail.
        let _ = writeln!(self.fingerprint, "{name:?} {size} {changed}.{nanoseconds} {:o}", metadata.mode());
    }

    fn folder(&mut self, look: &Look<'_>, path: &Path, metadata: &Metadata) -> Folder {
        self.mark(look, path, metadata);
        let mut folder = Folder { attributes: attributes(metadata), entries: BTreeMap::new() };
        let mut names = Vec::new();
        match std::fs::read_dir(path) {
            Ok(entries) => names.extend(entries.flatten().map(|entry| entry.file_name())),
            Err(error) => self.note(path, &format!("cannot be read ({}); served as empty", plain_reason(&error))),
        }
        names.sort();
        for name in names {
            let inner = path.join(&name);
            // Every ext2 volume has its own folder of this name.
            if inner == look.without || (path == look.top && name == "lost+found") {
                continue;
            }
            if let Some(node) = self.node(look, &inner) {
                folder.entries.insert(name.as_bytes().to_vec(), node);
            }
        }
        // A directory entry takes 8 bytes plus the name, rounded up; a block's last one may waste up to 264 bytes.
        let bytes: u64 = folder.entries.keys().map(|name| (name.len() as u64 + 11) & !3).sum();
        self.count(bytes + bytes / 12 + BLOCK_BYTES);
        folder
    }

    fn node(&mut self, look: &Look<'_>, path: &Path) -> Option<Node> {
        let metadata = match std::fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                self.note(path, &format!("cannot be examined ({}); skipped", plain_reason(&error)));
                return None;
            }
        };
        if metadata.is_dir() {
            Some(Node::Folder(self.folder(look, path, &metadata)))
        } else if metadata.is_symlink() {
            self.link(look, path, &metadata)
        } else if metadata.is_file() {
            self.file(look, path, &metadata)
        } else {
            self.note(path, "neither a file nor a folder; skipped");
            None
        }
    }

    fn file(&mut self, look: &Look<'_>, path: &Path, metadata: &Metadata) -> Option<Node> {
        let file = match HostFile::open(path) {
            Ok(file) => file,
            Err(error) => {
                self.note(path, &format!("cannot be read ({}); skipped", plain_reason(&error)));
                return None;
            }
        };
        self.mark(look, path, metadata);
        let extents = extents(&file, metadata.len());
        let bytes = extents.iter().map(|extent| extent.end - extent.start).sum();
        // Each extent may begin and end within a block, and need its own indirect blocks.
        self.blocks += extents.len() as u64 * 4;
        self.count(bytes);
        self.content_bytes += bytes;
        let key = self.files.len();
        self.files.push(path.to_path_buf());
        Some(Node::Foreign(Foreign { attributes: attributes(metadata), size: metadata.len(), key, extents }))
    }

    fn link(&mut self, look: &Look<'_>, path: &Path, metadata: &Metadata) -> Option<Node> {
        let target = match std::fs::read_link(path) {
            Ok(target) => target,
            Err(error) => {
                self.note(path, &format!("cannot be read ({}); skipped", plain_reason(&error)));
                return None;
            }
        };
        self.mark(look, path, metadata);
        let _ = writeln!(self.fingerprint, "{target:?}");
        let target = match look.inside(path, &target) {
            Some(target) => target,
            None => {
                self.note(path, "the link leads out of the folder; dangling");
                target
            }
        };
        self.count(target.as_os_str().len() as u64);
        Some(Node::Link(Link {
            attributes: attributes(metadata),
            target: target.into_os_string().into_encoded_bytes(),
        }))
    }
}

/// State of a scan.
struct Look<'a> {
    top: &'a Path,
    without: &'a Path,
}

impl Look<'_> {
    /// Returns the target that makes a link in the volume lead to the same place; `None` if that lies outside. Purely
    /// lexical: links on the way are not resolved.
    fn inside(&self, link: &Path, target: &Path) -> Option<PathBuf> {
        let folder = link.parent()?;
        let mut place: Vec<&OsStr> = Vec::new();
        let whole = folder.join(target);
        for component in whole.components() {
            match component {
                Component::Normal(name) => place.push(name),
                Component::ParentDir => drop(place.pop()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        let place: PathBuf = std::iter::once(OsStr::new("/")).chain(place).collect();
        let within = place.strip_prefix(self.top).ok()?;
        if !target.is_absolute() {
            return Some(target.to_path_buf());
        }
        let depth = folder.strip_prefix(self.top).ok()?.components().count();
        let up: PathBuf = std::iter::repeat_n("..", depth).collect();
        let relative = up.join(within);
        Some(if relative.as_os_str().is_empty() { ".".into() } else { relative })
    }
}

fn attributes(metadata: &Metadata) -> Attributes {
    // Clamps to the range of the format.
    let modified = metadata.mtime().clamp(0, i32::MAX.into()) as u32;
    Attributes { permissions: (metadata.mode() & 0o7777) as u16, owner: 0, group: 0, modified }
}

/// Returns the extents of a file that hold data; the whole file if the host does not support this.
fn extents(file: &HostFile, size: u64) -> Vec<Range<u64>> {
    let all = || std::iter::once(0..size).filter(|all| !all.is_empty()).collect();
    let mut extents = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No more data.
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => return all(),
        };
        let Ok(end) = seek(file, SeekFrom::Hole(start)) else { return all() };
        if end <= start || start >= size {
            break;
        }
        extents.push(start..end.min(size));
        at = end;
    }
    extents
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(folder: &Path) -> Tree {
        Tree::read(folder, &folder.join("no-such")).expect("a folder")
    }

    #[test]
    fn links_within_are_kept_and_made_relative() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("a path");
        std::fs::create_dir_all(top.join("a/b")).expect("folders");
        std::fs::write(top.join("file"), "text").expect("a file");
        for (name, target) in [
            ("a/b/relative", PathBuf::from("../../file")),
            ("a/b/absolute", top.join("file")),
            ("itself", top.clone()),
            ("a/out", PathBuf::from("../../out")),
            ("far", PathBuf::from("/etc/hostname")),
        ] {
            symlink(target, top.join(name)).expect("a link");
        }
        let tree = tree(&top);
        let target = |path: &str| {
            let mut folder = &tree.root;
            let mut parts: Vec<&str> = path.split('/').collect();
            let last = parts.pop().expect("a name");
            for part in parts {
                let Some(Node::Folder(inner)) = folder.entries.get(part.as_bytes()) else { panic!("no {part}") };
                folder = inner;
            }
            let Some(Node::Link(link)) = folder.entries.get(last.as_bytes()) else { panic!("no {last}") };
            String::from_utf8_lossy(&link.target).into_owned()
        };
        assert_eq!(target("a/b/relative"), "../../file");
        assert_eq!(target("a/b/absolute"), "../../file");
        assert_eq!(target("itself"), ".");
        assert_eq!(target("far"), "/etc/hostname");
        assert_eq!(tree.notes().len(), 2, "{:?}", tree.notes());
    }

    #[test]
    fn what_is_no_file_is_left_out_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("a socket");
        std::fs::create_dir(folder.path().join("lost+found")).expect("a folder");
        std::fs::write(folder.path().join(OsStr::from_bytes(b"odd \xff name")), "").expect("a file");
        let tree = tree(folder.path());
        assert_eq!(tree.root.entries.keys().collect::<Vec<_>>(), [&b"odd \xff name".to_vec()]);
        assert_eq!(tree.notes().len(), 1, "{:?}", tree.notes());
        assert!(tree.notes()[0].ends_with("socket: neither a file nor a folder; skipped"));
    }

    #[test]
    fn a_change_shows_in_the_fingerprint() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a"), "1").expect("a file");
        let first = tree(folder.path()).fingerprint;
        assert_eq!(first, tree(folder.path()).fingerprint);
        std::fs::write(folder.path().join("a"), "22").expect("a file");
        assert_ne!(first, tree(folder.path()).fingerprint);
    }
}
