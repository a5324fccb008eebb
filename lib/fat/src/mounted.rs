//! A mounted volume while an operation holds it: nodes and their reference counts.
//!
//! Key type: [`Mounted`]. The FAT crate keeps a node's number valid while it is pinned; here is one pin per referenced
//! node, and its reference count. A file that is removed while open is renamed to a hidden name, and unlinked with its
//! last handle. Deliberately not here: paths.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hadris_fat::async_::FatFs;
use hadris_fat_raw::{Slot, short_name};
use hadris_fs::{Attributes, DirCursor, ErrorKind, Extent, Name, NodeId, OpenMode, RenameMode, SetAttr};

use crate::device::Device;
use crate::error::Error;
use crate::{BlockSource, DiskError};

type Outcome<T> = Result<T, hadris_io::Error<DiskError>>;

/// Hidden names tried for a removed file.
const MAX_REMOVED: u32 = 0x10000;
/// Attributes that mark a hidden name, for people and other systems.
const REMOVED_ATTRIBUTES: Attributes = Attributes::HIDDEN.union(Attributes::SYSTEM);

/// The volume and its referenced nodes.
pub(crate) struct Mounted<S: BlockSource> {
    pub(crate) fs: FatFs<Device<S>>,
    /// Reference counts.
    holders: BTreeMap<NodeId, u32>,
    /// Removed files that are still open: the folder and name under which they are hidden.
    removed: BTreeMap<NodeId, (NodeId, String)>,
    next_removed: u32,
}

impl<S: BlockSource> Mounted<S> {
    pub(crate) fn new(fs: FatFs<Device<S>>) -> Mounted<S> {
        Mounted { fs, holders: BTreeMap::new(), removed: BTreeMap::new(), next_removed: 0 }
    }

    /// Adds a reference; `pin` states whether the caller transfers a pin with it.
    fn hold(&mut self, node: NodeId, pin: Pin) {
        let holders = self.holders.entry(node).or_insert(0);
        *holders += 1;
        let is_new = *holders == 1;
        if pin == Pin::Brought && !is_new {
            self.fs.forget(node, 1);
        }
    }

    /// Adds a reference to a node that is referenced already.
    pub(crate) fn share(&mut self, node: NodeId) {
        self.hold(node, Pin::Had);
    }

    /// Drops a reference.
    pub(crate) fn release(&mut self, node: NodeId) {
        let Some(holders) = self.holders.get_mut(&node) else { return };
        *holders -= 1;
        if *holders == 0 {
            self.holders.remove(&node);
            self.fs.forget(node, 1);
        }
    }

    /// Looks up `name` in a folder. The caller must release the node.
    pub(crate) async fn find(&mut self, folder: NodeId, name: &str) -> Result<NodeId, Error> {
        let node = self.fs.lookup(folder, Name::new(name)).await?;
        self.hold(node, Pin::Brought);
        if self.removed.contains_key(&node) {
            self.release(node);
            return Err(Error::NotFound);
        }
        Ok(node)
    }

    /// Returns the name by which a listed node can be looked up. An unpaired surrogate in a long name is listed as
    /// U+FFFD, which finds nothing or another node; then it is the short name.
    pub(crate) async fn name_that_finds(
        &mut self,
        folder: NodeId,
        node: NodeId,
        listed: String,
    ) -> Result<String, Error> {
        match self.fs.lookup(folder, Name::new(&listed)).await {
            Ok(found) => {
                self.fs.forget(found, 1);
                if found == node {
                    return Ok(listed);
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let mut place = [Extent::new(0, 0)];
        self.fs.records(node, &mut place).await?;
        let mut bytes = [0; hadris_fat_raw::ENTRY_SIZE];
        self.fs.read_raw(place[0].offset(), &mut bytes).await?;
        let Slot::Short(entry) = Slot::parse(&bytes) else { return Ok(listed) };
        let page = self.fs.code_page();
        let mut text = [0; short_name::DISPLAY_MAX];
        let length = short_name::display(&entry.name(), entry.nt_case(), |byte| page.decode(byte), &mut text);
        Ok(String::from_utf8_lossy(&text[..length]).into_owned())
    }

    pub(crate) async fn create(&mut self, folder: NodeId, name: &str, attributes: &SetAttr) -> Result<NodeId, Error> {
        let node = self.fs.create(folder, Name::new(name), attributes).await?;
        self.hold(node, Pin::Brought);
        Ok(node)
    }

    pub(crate) async fn make_folder(&mut self, folder: NodeId, name: &str) -> Result<NodeId, Error> {
        let node = self.fs.mkdir(folder, Name::new(name), &SetAttr::new()).await?;
        self.hold(node, Pin::Brought);
        Ok(node)
    }

    /// Opens a file that the caller references.
    pub(crate) async fn open(&mut self, node: NodeId) -> Result<(), Error> {
        let mode = if self.fs.is_read_only() { OpenMode::Read } else { OpenMode::Write };
        Ok(self.fs.open(node, mode).await?)
    }

    /// Undoes one `open`; a removed file is unlinked with its last reference.
    pub(crate) async fn close(&mut self, node: NodeId) -> Result<(), Error> {
        let closed = self.fs.close(node).await;
        let is_last = self.holders.get(&node) == Some(&1);
        self.release(node);
        if is_last && let Some((folder, name)) = self.removed.remove(&node) {
            let removed = self.fs.unlink(folder, Name::new(&name)).await;
            self.release(folder);
            removed?;
        }
        Ok(closed?)
    }

    /// Whether a listing includes the node.
    pub(crate) fn is_shown(&self, node: NodeId) -> bool {
        !self.removed.contains_key(&node)
    }

    pub(crate) async fn remove_file(&mut self, folder: NodeId, name: &str) -> Result<(), Error> {
        let node = self.find(folder, name).await?;
        let outcome = match self.fs.unlink(folder, Name::new(name)).await {
            Err(error) if error.kind() == ErrorKind::Busy => self.set_aside(folder, name, node).await,
            other => other.map_err(Error::from),
        };
        self.release(node);
        outcome
    }

    pub(crate) async fn remove_folder(&mut self, folder: NodeId, name: &str) -> Result<(), Error> {
        self.find(folder, name).await.map(|node| self.release(node))?;
        Ok(self.fs.rmdir(folder, Name::new(name)).await?)
    }

    pub(crate) async fn rename(
        &mut self,
        from_folder: NodeId,
        from: &str,
        to_folder: NodeId,
        to: &str,
    ) -> Result<(), Error> {
        // A removed file can be neither moved nor replaced.
        self.find(from_folder, from).await.map(|node| self.release(node))?;
        let (old, new) = (Name::new(from), Name::new(to));
        match self.fs.rename(from_folder, old, to_folder, new, RenameMode::Replace).await {
            Err(error) if error.kind() == ErrorKind::Busy => {}
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(Error::IntoItself),
            other => return Ok(other?),
        }
        let replaced = self.find(to_folder, to).await?;
        let outcome = self.rename_over(from_folder, from, to_folder, to, replaced).await;
        self.release(replaced);
        outcome
    }

    /// Renames over an open file.
    async fn rename_over(
        &mut self,
        from_folder: NodeId,
        from: &str,
        to_folder: NodeId,
        to: &str,
        replaced: NodeId,
    ) -> Result<(), Error> {
        let source = self.find(from_folder, from).await?;
        let is_folder = self.fs.stat(source).await.map(|stat| stat.file_type().is_dir());
        self.release(source);
        if is_folder? {
            return Err(Error::NotADirectory);
        }
        self.set_aside(to_folder, to, replaced).await?;
        let (old, new) = (Name::new(from), Name::new(to));
        let outcome = self.fs.rename(from_folder, old, to_folder, new, RenameMode::NoReplace).await;
        if outcome.is_err()
            && let Some((folder, name)) = self.removed.remove(&replaced)
        {
            let back = self.fs.rename(folder, Name::new(&name), to_folder, new, RenameMode::NoReplace).await;
            self.release(folder);
            back?;
        }
        Ok(outcome?)
    }

    /// Renames an open file to a hidden name: in the root, so that its folder can be removed, or in its folder if the
    /// root is full.
    async fn set_aside(&mut self, folder: NodeId, name: &str, node: NodeId) -> Result<(), Error> {
        let root = self.fs.root();
        let (place, hidden) = match self.hide(folder, name, root).await {
            Err(error) if error.kind() == ErrorKind::NoSpace => (folder, self.hide(folder, name, folder).await?),
            other => (root, other?),
        };
        self.share(place);
        self.removed.insert(node, (place, hidden));
        // The attributes are for after a crash; while the volume is mounted, the name suffices.
        let marked = self.fs.setattr(node, &SetAttr::new().with_attributes(REMOVED_ATTRIBUTES)).await;
        marked.or(Ok(()))
    }

    async fn hide(&mut self, folder: NodeId, name: &str, place: NodeId) -> Outcome<String> {
        for _ in 0..MAX_REMOVED {
            let hidden = removed_name(self.next_removed);
            self.next_removed = (self.next_removed + 1) % MAX_REMOVED;
            let (old, new) = (Name::new(name), Name::new(&hidden));
            match self.fs.rename(folder, old, place, new, RenameMode::NoReplace).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                other => return other.map(|()| hidden),
            }
        }
        Err(ErrorKind::NoSpace.into())
    }

    /// Unlinks files that a crash left under hidden names.
    pub(crate) async fn remove_leftovers(&mut self) -> Result<(), Error> {
        let root = self.fs.root();
        let mut leftovers = Vec::new();
        let mut cursor = DirCursor::START;
        while let Some(entry) = self.fs.readdir(root, cursor).await? {
            cursor = entry.next_cursor();
            let is_marked = entry.metadata().attributes().contains(REMOVED_ATTRIBUTES);
            if let Ok(name) = entry.name().to_str()
                && is_marked
                && is_removed_name(name)
                && entry.file_type().is_file()
            {
                leftovers.push(String::from(name));
            }
        }
        for name in leftovers {
            self.fs.unlink(root, Name::new(&name)).await?;
        }
        Ok(())
    }

    /// Number of referenced files and folders.
    pub(crate) fn held(&self) -> usize {
        self.holders.len()
    }

    /// Removed files that are still open, to be unlinked before the volume is unmounted.
    pub(crate) async fn end_removed(&mut self) -> Result<(), Error> {
        while let Some((node, (folder, name))) = self.removed.pop_first() {
            while self.fs.unlink(folder, Name::new(&name)).await.is_err_and(|error| error.kind() == ErrorKind::Busy) {
                self.fs.close(node).await?;
            }
            self.release(folder);
        }
        Ok(())
    }
}

/// Whether a new reference transfers a pin, or relies on the existing one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pin {
    Brought,
    Had,
}

/// The hidden name of a removed file; a short name.
fn removed_name(number: u32) -> String {
    format!("$DEL{number:04X}.$$$")
}

/// Whether this is a hidden name, which clients may not use.
pub(crate) fn is_removed_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let digits = name.strip_prefix("$DEL").and_then(|rest| rest.strip_suffix(".$$$"));
    digits.is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_removed_files_are_known() {
        assert!(is_removed_name(&removed_name(0xABC)));
        assert!(is_removed_name("$del0001.$$$"));
        assert!(!is_removed_name("$DEL001.$$$") && !is_removed_name("DEL00001.$$$"));
    }
}
