//! Expected content of a volume, as plain maps.
//!
//! Nodes and the pages of their content are shared between copies, so that a copy for each moment of a history is
//! cheap.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::adversary::noise::noise;
use crate::adversary::operation::{Extended, Facts, Operation, Outcome, Path, SLOTS, Sort, many_name};

const PAGE_BYTES: u64 = 1024;
pub const ROOT: usize = 0;
/// Maximum target length of symbolic links, fast ones and those in a block of 1 KiB.
const LONGEST_TARGET: usize = 1000;

/// Content of a file; absent pages are zero.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Content {
    pub size: u64,
    pages: BTreeMap<u64, Rc<[u8; PAGE_BYTES as usize]>>,
}

impl Content {
    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let bytes = self.size.saturating_sub(offset).min(bytes as u64) as usize;
        let mut read = vec![0; bytes];
        let end = offset + bytes as u64;
        for (page, content) in self.pages.range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)) {
            let start = page * PAGE_BYTES;
            let (from, to) = (start.max(offset), (start + PAGE_BYTES).min(end));
            let source = &content[(from - start) as usize..(to - start) as usize];
            read[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
        read
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len() as u64;
        for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            let start = page * PAGE_BYTES;
            let (from, to) = (start.max(offset), (start + PAGE_BYTES).min(end));
            let content = Rc::make_mut(self.pages.entry(page).or_insert_with(|| Rc::new([0; PAGE_BYTES as usize])));
            content[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
        }
        self.size = self.size.max(end);
    }

    fn set_size(&mut self, size: u64) {
        drop(self.pages.split_off(&size.div_ceil(PAGE_BYTES)));
        if let Some(last) = self.pages.get_mut(&(size / PAGE_BYTES)) {
            Rc::make_mut(last)[(size % PAGE_BYTES) as usize..].fill(0);
        }
        self.size = size;
    }

    /// Non-empty pieces, as offset and length; adjacent ones are joined.
    pub fn pieces(&self) -> Vec<(u64, u64)> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for page in self.pages.keys() {
            let start = page * PAGE_BYTES;
            match pieces.last_mut() {
                Some((first, bytes)) if *first + *bytes == start => *bytes += PAGE_BYTES,
                _ => pieces.push((start, PAGE_BYTES)),
            }
        }
        pieces
    }

    fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }
}

/// Kinds of nodes.
#[derive(Clone, PartialEq, Eq)]
pub enum Kind {
    File(Content),
    Folder { entries: BTreeMap<Vec<u8>, usize> },
    Link(Vec<u8>),
}

/// A file, folder or symbolic link.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    pub permissions: u16,
    pub owner: u32,
    pub group: u32,
    pub modified: Option<u32>,
    pub extended: Extended,
    /// Links of a file or symbolic link.
    pub names: u32,
}

/// Expected content of a volume.
#[derive(Clone)]
pub struct Model {
    pub nodes: BTreeMap<usize, Rc<Node>>,
    next: usize,
    pub slots: [Option<usize>; SLOTS],
    /// Time of the next operation, in seconds since 1970.
    pub now: Option<u32>,
    /// Maximum file size.
    pub largest_file: u64,
}

type Step<T> = Result<T, Outcome>;

impl Model {
    /// A volume as created by mke2fs.
    pub fn fresh(largest_file: u64) -> Model {
        let folder = |entries| Kind::Folder { entries };
        let node = |kind, permissions| Node {
            kind,
            permissions,
            owner: 0,
            group: 0,
            modified: None,
            extended: Extended::new(),
            names: 1,
        };
        let root = node(folder([(b"lost+found".to_vec(), 1)].into()), 0o755);
        let lost = node(folder(BTreeMap::new()), 0o700);
        let nodes = BTreeMap::from([(ROOT, Rc::new(root)), (1, Rc::new(lost))]);
        Model { nodes, next: 2, slots: [None; SLOTS], now: None, largest_file }
    }

    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[&number]
    }

    /// Approximate total bytes of all files' content.
    pub fn content_bytes(&self) -> u64 {
        let bytes = |node: &Rc<Node>| match &node.kind {
            Kind::File(content) => content.bytes() + 256,
            Kind::Folder { entries } => 4096 + entries.keys().map(|name| 16 + name.len() as u64).sum::<u64>(),
            Kind::Link(_) => 1024,
        };
        self.nodes.values().map(bytes).sum()
    }

    pub fn facts(&self, number: usize) -> Facts {
        let node = self.node(number);
        let (sort, size, links, target) = match &node.kind {
            Kind::File(content) => (Sort::File, Some(content.size), node.names, None),
            Kind::Link(target) => (Sort::Link, Some(target.len() as u64), node.names, Some(target.clone())),
            Kind::Folder { entries } => {
                let below = entries.values().filter(|number| self.sort(**number) == Sort::Folder).count() as u32;
                (Sort::Folder, None, 2 + below, None)
            }
        };
        let Node { permissions, owner, group, modified, .. } = *node;
        Facts { sort, size, permissions, owner, group, links, modified, target, extended: node.extended.clone() }
    }

    pub fn sort(&self, number: usize) -> Sort {
        match self.node(number).kind {
            Kind::File(_) => Sort::File,
            Kind::Folder { .. } => Sort::Folder,
            Kind::Link(_) => Sort::Link,
        }
    }

    pub fn find(&self, path: &[Vec<u8>]) -> Option<usize> {
        path.iter().try_fold(ROOT, |at, name| match &self.node(at).kind {
            Kind::Folder { entries } => entries.get(name).copied(),
            _ => None,
        })
    }

    pub fn entries(&self, number: usize) -> Option<&BTreeMap<Vec<u8>, usize>> {
        match &self.node(number).kind {
            Kind::Folder { entries } => Some(entries),
            _ => None,
        }
    }

    /// Returns all names with their nodes, folders before their content.
    pub fn walk(&self) -> Vec<(Path, usize)> {
        let mut found = vec![(Path::new(), ROOT)];
        let mut at = 0;
        while let Some((path, number)) = found.get(at).cloned() {
            for (name, below) in self.entries(number).into_iter().flatten() {
                let path = path.iter().chain([name]).cloned().collect();
                found.push((path, *below));
            }
            at += 1;
        }
        found
    }

    /// Applies an operation, and returns the expected outcome.
    pub fn apply(&mut self, operation: &Operation) -> Outcome {
        self.try_apply(operation).unwrap_or_else(|refused| refused)
    }

    fn try_apply(&mut self, operation: &Operation) -> Step<Outcome> {
        match operation {
            Operation::Create { path, permissions, owner } => {
                self.add(path, Kind::File(Content::default()), *permissions, *owner).map(|_| Outcome::Done)
            }
            Operation::MakeFolder { path, permissions } => {
                let kind = Kind::Folder { entries: BTreeMap::new() };
                self.add(path, kind, *permissions, 0).map(|_| Outcome::Done)
            }
            Operation::MakeLink { path, target } if (1..=LONGEST_TARGET).contains(&target.len()) => {
                self.add(path, Kind::Link(target.clone()), 0o777, 0).map(|_| Outcome::Done)
            }
            Operation::MakeLink { .. } => Err(Outcome::Refused),
            Operation::AddName { existing, path } => self.add_name(existing, path),
            Operation::Unlink { path } => self.unlink(path),
            Operation::RemoveFolder { path } => self.remove_folder(path),
            Operation::Rename { from, to } => self.rename(from, to),
            Operation::CreateMany { folder, first, count, name_bytes } => {
                for number in *first..first + count {
                    let path = below(folder, many_name(number, *name_bytes));
                    self.add(&path, Kind::File(Content::default()), 0o644, 0)?;
                }
                Ok(Outcome::Done)
            }
            Operation::UnlinkMany { folder, first, count, name_bytes } => {
                for number in *first..first + count {
                    self.unlink(&below(folder, many_name(number, *name_bytes)))?;
                }
                Ok(Outcome::Done)
            }
            Operation::SetAttributes { path, permissions, owner, group, modified } => {
                let number = self.find(path).ok_or(Outcome::Refused)?;
                let node = self.change(number);
                node.permissions = permissions.unwrap_or(node.permissions);
                node.owner = owner.unwrap_or(node.owner);
                node.group = group.unwrap_or(node.group);
                node.modified = modified.or(node.modified);
                Ok(Outcome::Done)
            }
            Operation::SetExtended { path, name, bytes, seed } => {
                self.extended_mut(path)?.insert(name.as_bytes().to_vec(), noise(*seed, *bytes));
                Ok(Outcome::Done)
            }
            Operation::RemoveExtended { path, name } => {
                self.extended_mut(path)?.remove(name.as_bytes()).map(|_| Outcome::Done).ok_or(Outcome::Refused)
            }
            Operation::List { path } => {
                let entries = self.find(path).and_then(|number| self.entries(number)).ok_or(Outcome::Refused)?;
                Ok(Outcome::Names(entries.iter().map(|(name, number)| (name.clone(), self.sort(*number))).collect()))
            }
            Operation::Look { path } => {
                self.find(path).map(|number| Outcome::Facts(self.facts(number))).ok_or(Outcome::Refused)
            }
            Operation::Sync => Ok(Outcome::Done),
            Operation::Remount => {
                (0..SLOTS).for_each(|slot| self.close(slot));
                Ok(Outcome::Done)
            }
            operation => self.apply_to_open_file(operation),
        }
    }

    fn apply_to_open_file(&mut self, operation: &Operation) -> Step<Outcome> {
        match operation {
            Operation::Open { path, slot } => {
                let number =
                    self.find(path).filter(|number| self.sort(*number) == Sort::File).ok_or(Outcome::Refused)?;
                self.close(*slot);
                self.slots[*slot] = Some(number);
            }
            Operation::Close { slot } => self.close(*slot),
            Operation::Read { slot, offset, bytes } => {
                return Ok(Outcome::Data(self.open_content(*slot)?.read(*offset, *bytes)));
            }
            Operation::Write { slot, offset, bytes, seed } => {
                return self.write(*slot, *offset, &noise(*seed, *bytes));
            }
            Operation::Append { slot, bytes, seed } => {
                let end = self.open_content(*slot)?.size;
                self.write(*slot, end, &noise(*seed, *bytes))?;
                return Ok(Outcome::AppendedAt(end));
            }
            Operation::SetSize { slot, size } => {
                let old = self.open_content(*slot)?.size;
                if *size > self.largest_file {
                    return Err(Outcome::Refused);
                }
                let now = self.now.filter(|_| old != *size);
                let node = self.change(self.slots[*slot].unwrap_or(ROOT));
                node.modified = now;
                if let Kind::File(content) = &mut node.kind {
                    content.set_size(*size);
                }
            }
            _ => {}
        }
        Ok(Outcome::Done)
    }

    pub fn open_content(&self, slot: usize) -> Step<&Content> {
        match self.slots[slot].map(|number| &self.node(number).kind) {
            Some(Kind::File(content)) => Ok(content),
            _ => Err(Outcome::Refused),
        }
    }

    /// Writes the first bytes of a write that was not possible as a whole.
    pub fn write(&mut self, slot: usize, offset: u64, bytes: &[u8]) -> Step<Outcome> {
        self.open_content(slot)?;
        if offset.saturating_add(bytes.len() as u64) > self.largest_file {
            return Err(Outcome::Refused);
        }
        let now = self.now.filter(|_| !bytes.is_empty());
        let node = self.change(self.slots[slot].unwrap_or(ROOT));
        node.modified = now;
        if let Kind::File(content) = &mut node.kind {
            content.write(offset, bytes);
        }
        Ok(Outcome::Done)
    }

    /// Extended attributes of a file or folder; links have none.
    fn extended_mut(&mut self, path: &Path) -> Step<&mut Extended> {
        let number = self.find(path).filter(|number| self.sort(*number) != Sort::Link).ok_or(Outcome::Refused)?;
        Ok(&mut self.change(number).extended)
    }

    fn change(&mut self, number: usize) -> &mut Node {
        Rc::make_mut(self.nodes.get_mut(&number).expect("a node that is there"))
    }

    /// Returns the folder of the path's last name, and the name.
    fn parent<'a>(&self, path: &'a [Vec<u8>]) -> Step<(usize, &'a Vec<u8>)> {
        let (name, folder) = path.split_last().ok_or(Outcome::Refused)?;
        let folder = self.find(folder).filter(|number| self.sort(*number) == Sort::Folder).ok_or(Outcome::Refused)?;
        if name.is_empty() || name.len() > 255 || name.contains(&b'/') || matches!(&name[..], b"." | b"..") {
            return Err(Outcome::Refused);
        }
        Ok((folder, name))
    }

    fn entries_mut(&mut self, folder: usize) -> &mut BTreeMap<Vec<u8>, usize> {
        let now = self.now;
        let node = self.change(folder);
        node.modified = now;
        match &mut node.kind {
            Kind::Folder { entries } => entries,
            _ => unreachable!("the caller has checked that it is a folder"),
        }
    }

    fn add(&mut self, path: &Path, kind: Kind, permissions: u16, owner: u32) -> Step<usize> {
        let (folder, name) = self.parent(path)?;
        if self.entries(folder).is_some_and(|entries| entries.contains_key(name)) {
            return Err(Outcome::Refused);
        }
        let number = self.next;
        self.next += 1;
        let node = Node {
            kind,
            permissions,
            owner,
            group: owner / 2,
            modified: self.now,
            extended: Extended::new(),
            names: 1,
        };
        self.nodes.insert(number, Rc::new(node));
        self.entries_mut(folder).insert(name.clone(), number);
        Ok(number)
    }

    fn add_name(&mut self, existing: &Path, path: &Path) -> Step<Outcome> {
        let number = self.find(existing).filter(|number| self.sort(*number) != Sort::Folder).ok_or(Outcome::Refused)?;
        let (folder, name) = self.parent(path)?;
        if self.entries(folder).is_some_and(|entries| entries.contains_key(name)) {
            return Err(Outcome::Refused);
        }
        self.entries_mut(folder).insert(name.clone(), number);
        self.change(number).names += 1;
        Ok(Outcome::Done)
    }

    fn unlink(&mut self, path: &Path) -> Step<Outcome> {
        let (folder, name) = self.parent(path)?;
        let number = self.find(path).filter(|number| self.sort(*number) != Sort::Folder).ok_or(Outcome::Refused)?;
        self.entries_mut(folder).remove(name);
        self.change(number).names -= 1;
        self.forget(number);
        Ok(Outcome::Done)
    }

    fn remove_folder(&mut self, path: &Path) -> Step<Outcome> {
        let (folder, name) = self.parent(path)?;
        let number = self.find(path).ok_or(Outcome::Refused)?;
        if !self.entries(number).is_some_and(BTreeMap::is_empty) {
            return Err(Outcome::Refused);
        }
        self.entries_mut(folder).remove(name);
        self.nodes.remove(&number);
        Ok(Outcome::Done)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Step<Outcome> {
        let (from_folder, from_name) = self.parent(from)?;
        let (to_folder, to_name) = self.parent(to)?;
        let number = self.find(from).ok_or(Outcome::Refused)?;
        if to.len() > from.len() && to.starts_with(from) {
            return Err(Outcome::Refused);
        }
        if let Some(replaced) = self.find(to) {
            if replaced == number {
                return Ok(Outcome::Done);
            }
            let both = (self.sort(number) == Sort::Folder, self.sort(replaced) == Sort::Folder);
            match both {
                (true, true) if self.entries(replaced).is_some_and(BTreeMap::is_empty) => {
                    self.nodes.remove(&replaced);
                }
                (false, false) => {
                    self.change(replaced).names -= 1;
                    self.entries_mut(to_folder).remove(to_name);
                    self.forget(replaced);
                }
                _ => return Err(Outcome::Refused),
            }
        }
        self.entries_mut(from_folder).remove(from_name);
        self.entries_mut(to_folder).insert(to_name.clone(), number);
        if from_folder != to_folder && self.sort(number) == Sort::Folder {
            // Its `..` changes, which may or may not change its time.
            self.change(number).modified = None;
        }
        Ok(Outcome::Done)
    }

    fn close(&mut self, slot: usize) {
        if let Some(number) = self.slots[slot].take() {
            self.forget(number);
        }
    }

    /// Removes an unlinked file that is not open.
    fn forget(&mut self, number: usize) {
        if self.node(number).names == 0 && !self.slots.contains(&Some(number)) {
            self.nodes.remove(&number);
        }
    }
}

/// The path of a name in a folder.
pub fn below(folder: &Path, name: Vec<u8>) -> Path {
    let mut path = folder.clone();
    path.push(name);
    path
}
