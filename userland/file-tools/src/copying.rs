//! Copies files and trees, for command-line programs.
//!
//! Key type: [`Copier`]. Reports nodes that cannot be copied, and copies the rest. Neighbours: [`crate::walk`],
//! [`client::file_writer`]. Deliberately not here: the choice of the destination.

use alloc::string::{String, ToString};
use core::fmt;

use client::access::AccessError;
use client::file_io::OpenFile;
use client::file_writer::{FileWriter, Zeros};
use client::namespace::{Name, Namespace};
use contracts::directory::{CreateMode, NameError, NodeAttributes, NodeChanges, NodeKind, NodeParts};
use sip::exheap::ExVec;
use stdio::report;

use crate::trail::Trail;
use crate::volume::volume_of;
use crate::walk::{Step, Walk, is_folder};

/// Bytes per read and write.
const BLOCK_BYTES: usize = 256 * 1024;
/// Permission bits of a copy that keeps none.
const PLAIN_PERMISSIONS: u32 = 0o777;

/// Attributes that a copy keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Permissions.
    Permissions,
    /// Permissions, times and owner; an error if the volume cannot store them.
    All,
    /// Permissions, and times and owner if the volume can store them.
    AllThatCanBe,
}

/// Treatment of folders and symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// Refuse folders; copy the target of a link.
    Refuse,
    /// Copy folders recursively, and links as links.
    Copy,
}

/// An absolute path, and its displayed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The absolute path.
    pub full: String,
    /// The path as given.
    pub shown: String,
}

impl Place {
    /// Resolves an operand.
    pub fn new(working_folder: &str, asked: &str) -> Place {
        Place { full: path::absolute(working_folder, asked), shown: asked.to_string() }
    }

    /// Returns the place of a name in this folder.
    pub fn below(&self, name: &str) -> Place {
        Place { full: path::join(&self.full, name), shown: path::join(&self.shown, name) }
    }

    /// Returns the last part of the path; empty for the root.
    pub fn name(&self) -> &str {
        path::split_last(&self.full).map_or("", |(_, name)| name)
    }

    /// Returns whether this is the other place or below it, by their paths.
    pub fn is_in(&self, other: &Place) -> bool {
        let rest = self.full.strip_prefix(other.full.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Pairs the operands of `cp` and `mv` with their destinations: the last one is a folder or, for a single source, the
/// new path. `act` gets source and destination, reports errors, and returns whether it succeeded. Returns the exit
/// status.
pub fn each_destination(
    namespace: &mut Namespace,
    working_folder: &str,
    paths: &[String],
    usage: &str,
    mut act: impl FnMut(&mut Namespace, &Place, &Place) -> bool,
) -> i32 {
    let Some((to, from)) = paths.split_last().filter(|(_, from)| !from.is_empty()) else {
        report::error(format_args!("it takes at least two paths; usage: {usage}"));
        return 2;
    };
    let to = Place::new(working_folder, to);
    let folder = namespace.open_directory(&to.full);
    if let (Err(error), [_, _, ..]) = (&folder, from) {
        report::error(format_args!("{}: the target of several sources must be an existing folder: {error}", to.shown));
        return 1;
    }
    let into_folder = folder.is_ok();
    let mut status = 0;
    for asked in from {
        let from = Place::new(working_folder, asked);
        let to = if into_folder { to.below(from.name()) } else { to.clone() };
        if !act(namespace, &from, &to) {
            status = 1;
        }
    }
    status
}

/// Error of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyError {
    Access(AccessError),
    SameFile,
    IntoItself,
    FolderRefused,
    NotAFile,
    /// The destination is a folder.
    FolderInTheWay,
    /// The destination exists and is not a folder.
    NameInTheWay,
}

impl fmt::Display for CopyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            CopyError::Access(error) => return error.fmt(formatter),
            CopyError::SameFile => "it would be copied onto itself; give another name",
            CopyError::IntoItself => "a folder cannot be copied into itself; give a place outside of it",
            CopyError::FolderRefused => "it is a folder; give -r to copy it with all that is in it",
            CopyError::NotAFile => "it is neither a file, a folder nor a link",
            CopyError::FolderInTheWay => "a folder has that name; remove it first, or give another name",
            CopyError::NameInTheWay => "the name exists and is not a folder; remove it first, or give another name",
        })
    }
}

impl<E: Into<AccessError>> From<E> for CopyError {
    fn from(error: E) -> CopyError {
        CopyError::Access(error.into())
    }
}

/// An error and its path.
struct Failure {
    path: String,
    error: CopyError,
}

type Outcome<T = ()> = Result<T, Failure>;

trait With<T> {
    /// Adds the path of an error.
    fn with(self, path: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T, E: Into<CopyError>> With<T> for Result<T, E> {
    fn with(self, path: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| Failure { path: path(), error: error.into() })
    }
}

/// One side of a copy: a name in an open folder.
struct Side<'a> {
    folder: &'a mut Namespace,
    name: &'a str,
    /// The displayed path of the folder.
    path: &'a str,
    /// Mount point of the folder's volume.
    volume: &'a str,
}

impl Side<'_> {
    fn shown(&self) -> String {
        path::join(self.path, self.name)
    }
}

/// Copies files and trees.
pub struct Copier {
    keep: Keep,
    folders: Folders,
    block: Option<ExVec<u8>>,
    /// Whether an error was reported.
    failed: bool,
}

impl Copier {
    /// Creates a copier.
    pub fn new(keep: Keep, folders: Folders) -> Copier {
        Copier { keep, folders, block: None, failed: false }
    }

    /// Copies `from` to the path `to`. Returns whether all of it was copied; errors were reported.
    pub fn copy(&mut self, namespace: &mut Namespace, from: &Place, to: &Place) -> bool {
        self.failed = false;
        let outcome = self.copy_place(namespace, from, to);
        self.settle(outcome);
        !self.failed
    }

    /// Reports a failure; returns whether to go on.
    fn settle(&mut self, outcome: Outcome) -> bool {
        let Err(Failure { path, error }) = outcome else { return true };
        self.failed = true;
        report::path_error(&path, &error);
        !matches!(error, CopyError::Access(error) if error.concerns_all())
    }

    fn copy_place(&mut self, namespace: &mut Namespace, from: &Place, to: &Place) -> Outcome {
        let shown_from = || from.shown.clone();
        let shown_to = || to.shown.clone();
        let volume_from = volume_of(namespace, &from.full).with(shown_from)?;
        let volume_to = volume_of(namespace, &to.full).with(shown_to)?;
        let (mut folder_from, name_from) = namespace.open_folder_of(&from.full).with(shown_from)?;
        let (mut folder_to, name_to) = namespace.open_folder_of(&to.full).with(shown_to)?;
        let (kind, _) = folder_from.own_attributes(name_from).with(shown_from)?;
        let above =
            |place: &Place| path::split_last(&place.shown).map_or(String::new(), |(above, _)| above.to_string());
        let mut source = Side { folder: &mut folder_from, name: name_from, path: &above(from), volume: &volume_from };
        let mut target = Side { folder: &mut folder_to, name: name_to, path: &above(to), volume: &volume_to };
        if !is_folder(kind) {
            return self.copy_name(&mut source, kind, &mut target);
        }
        if self.folders == Folders::Refuse {
            return Err(CopyError::FolderRefused).with(shown_from);
        }
        if to.is_in(from) {
            return Err(CopyError::IntoItself).with(shown_from);
        }
        self.copy_tree(&mut source, &mut target)
    }

    /// Copies a node that is not a folder.
    fn copy_name(&mut self, source: &mut Side<'_>, kind: NodeKind, target: &mut Side<'_>) -> Outcome {
        match (kind, self.folders) {
            (NodeKind::Link, Folders::Copy) => self.copy_link(source, target),
            (NodeKind::File | NodeKind::Link, _) => self.copy_file(source, target),
            _ => Err(CopyError::NotAFile).with(|| source.shown()),
        }
    }

    fn copy_link(&mut self, source: &mut Side<'_>, target: &mut Side<'_>) -> Outcome {
        let leads_to = source.folder.read_link(source.name).with(|| source.shown())?;
        match target.folder.own_attributes(target.name) {
            Err(AccessError::Name(NameError::NotFound)) => {}
            Ok((kind, _)) if is_folder(kind) => {
                return Err(CopyError::FolderInTheWay).with(|| target.shown());
            }
            Ok((_, attributes)) => {
                let (_, of_source) = source.folder.own_attributes(source.name).with(|| source.shown())?;
                if attributes.node == of_source.node && source.volume == target.volume {
                    return Err(CopyError::SameFile).with(|| source.shown());
                }
                target.folder.remove_file(target.name).with(|| target.shown())?;
            }
            Err(error) => return Err(error).with(|| target.shown()),
        }
        target.folder.make_link(target.name, &leads_to).with(|| target.shown())?;
        self.keep_attributes(source, target, NodeKind::Link)
    }

    fn copy_file(&mut self, source: &mut Side<'_>, target: &mut Side<'_>) -> Outcome {
        let mut file = source.folder.open_file(source.name).with(|| source.shown())?;
        let attributes = file.attributes().with(|| source.shown())?;
        let existing = match target.folder.own_attributes(target.name) {
            Err(AccessError::Name(NameError::NotFound)) => None,
            Ok((kind, _)) if is_folder(kind) => {
                return Err(CopyError::FolderInTheWay).with(|| target.shown());
            }
            Ok(_) => Some(target.folder.open_file(target.name)),
            Err(error) => return Err(error).with(|| target.shown()),
        };
        let copy = match existing {
            Some(Ok(mut existing)) => {
                let node = existing.attributes().with(|| target.shown())?.node;
                if node == attributes.node && source.volume == target.volume {
                    return Err(CopyError::SameFile).with(|| source.shown());
                }
                existing.set_size(0).with(|| target.shown())?;
                existing
            }
            // A dangling link is opened below, for the file system's error.
            None | Some(Err(_)) => target
                .folder
                .create_own_file(target.name, attributes.permissions & PLAIN_PERMISSIONS, CreateMode::OpenExisting)
                .with(|| target.shown())?,
        };
        self.copy_content(source, &mut file, target, copy)?;
        self.keep_attributes(source, target, NodeKind::File)
    }

    fn copy_content(&mut self, source: &Side<'_>, file: &mut OpenFile, target: &Side<'_>, copy: OpenFile) -> Outcome {
        let mut writer = FileWriter::new(copy, 0, Zeros::Skip);
        let mut block = match self.block.take() {
            Some(block) => block,
            None => ExVec::new(BLOCK_BYTES).with(|| source.shown())?,
        };
        loop {
            let (filled, count) = file.read_at(block, writer.offset()).with(|| source.shown())?;
            block = writer.write(filled, count).with(|| target.shown())?;
            if count < block.len() {
                break;
            }
        }
        self.block = Some(block);
        writer.finish().with(|| target.shown())?;
        Ok(())
    }

    fn copy_tree(&mut self, source: &mut Side<'_>, target: &mut Side<'_>) -> Outcome {
        make_folder(target.folder, target.name).with(|| target.shown())?;
        let mut copy = target.folder.open_directory(target.name).with(|| target.shown())?;
        // The copy itself, if the walk reaches it.
        let (_, itself) = copy.own_attributes("").with(|| target.shown())?;
        let folder = source.folder.open_directory(source.name).with(|| source.shown())?;
        let mut walk = Walk::new(folder, source.shown(), source.volume).with(|| source.shown())?;
        let mut to = Trail::new(copy, target.shown());
        while let Some(step) = walk.step() {
            let outcome = match step {
                Step::Name(name) if is_folder(name.kind) => {
                    let is_itself = name.node == itself.node && *walk.volume() == *target.volume;
                    self.enter(&mut walk, &name, &mut to, is_itself)
                }
                Step::Name(name) => self.copy_below(&mut walk, &name, &mut to, target.volume),
                Step::Left(name) => {
                    to.leave();
                    self.leave(&mut walk, &name, &mut to, target.volume)
                }
            };
            if !self.settle(outcome) {
                return Ok(());
            }
        }
        self.keep_attributes(source, target, NodeKind::Directory)
    }

    fn enter(&mut self, walk: &mut Walk, name: &Name, to: &mut Trail, is_itself: bool) -> Outcome {
        let shown_from = |walk: &mut Walk| walk.here().path_of(&name.text());
        if is_itself {
            return Err(CopyError::IntoItself).with(|| shown_from(walk));
        }
        let part = name.part().with(|| shown_from(walk))?;
        let made = to.folder().map_err(CopyError::Access).and_then(|folder| make_folder(folder, part));
        made.with(|| to.path_of(part))?;
        to.enter(part).with(|| to.path_of(part))?;
        let entered = walk.enter(part, name.kind);
        if entered.is_err() {
            to.leave();
        }
        entered.with(|| shown_from(walk))
    }

    fn copy_below(&mut self, walk: &mut Walk, name: &Name, to: &mut Trail, volume_to: &str) -> Outcome {
        let part = name.part().with(|| walk.here().path_of(&name.text()))?;
        self.with_sides(walk, part, to, volume_to, |copier, source, target| copier.copy_name(source, name.kind, target))
    }

    /// A folder's attributes are set last: creating names in it changes its times.
    fn leave(&mut self, walk: &mut Walk, name: &str, to: &mut Trail, volume_to: &str) -> Outcome {
        self.with_sides(walk, name, to, volume_to, |copier, source, target| {
            copier.keep_attributes(source, target, NodeKind::Directory)
        })
    }

    fn with_sides(
        &mut self,
        walk: &mut Walk,
        name: &str,
        to: &mut Trail,
        volume_to: &str,
        act: impl FnOnce(&mut Copier, &mut Side<'_>, &mut Side<'_>) -> Outcome,
    ) -> Outcome {
        let volume_from = walk.volume();
        let (path_from, path_to) = (String::from(walk.here().path()), String::from(to.path()));
        let folder = walk.here().folder().with(|| path_from.clone())?;
        let mut source = Side { folder, name, path: &path_from, volume: &volume_from };
        let folder = to.folder().with(|| path_to.clone())?;
        let mut target = Side { folder, name, path: &path_to, volume: volume_to };
        act(self, &mut source, &mut target)
    }

    fn keep_attributes(&mut self, source: &mut Side<'_>, target: &mut Side<'_>, kind: NodeKind) -> Outcome {
        if self.keep == Keep::Permissions && kind != NodeKind::Directory {
            return Ok(());
        }
        let (found, attributes) = source.folder.own_attributes(source.name).with(|| source.shown())?;
        if found == NodeKind::Mount && self.keep == Keep::Permissions {
            return Ok(());
        }
        match target.folder.set_attributes(target.name, changes(&attributes, self.keep)) {
            Err(AccessError::Name(NameError::NotSupported | NameError::NotPermitted)) if self.keep != Keep::All => {
                Ok(())
            }
            other => other.with(|| target.shown()),
        }
    }
}

/// Returns the changes that give a copy the attributes of the original. Unknown times are left alone.
fn changes(attributes: &NodeAttributes, keep: Keep) -> NodeChanges {
    let NodeAttributes { modified_s, accessed_s, permissions, owner, group, .. } = *attributes;
    if keep == Keep::Permissions {
        let permissions = permissions & PLAIN_PERMISSIONS;
        return NodeChanges { modified_s, accessed_s, permissions, owner, group, which: NodeParts::PERMISSIONS };
    }
    let which = NodeParts::PERMISSIONS
        | NodeParts::OWNER
        | NodeParts::GROUP
        | NodeParts::MODIFIED.when(modified_s != 0)
        | NodeParts::ACCESSED.when(accessed_s != 0);
    NodeChanges { modified_s, accessed_s, permissions, owner, group, which }
}

/// Creates a folder, unless it exists.
fn make_folder(folder: &mut Namespace, name: &str) -> Result<(), CopyError> {
    match folder.make_directory(name) {
        Err(AccessError::Name(NameError::AlreadyExists)) if folder.open_directory(name).is_ok() => Ok(()),
        Err(AccessError::Name(NameError::AlreadyExists)) => Err(CopyError::NameInTheWay),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_know_what_lies_in_them() {
        let place = |asked: &str| Place::new("/fs/disk0", asked);
        assert!(place("a/b").is_in(&place("a")));
        assert!(place("a").is_in(&place("/fs/disk0/a")));
        assert!(!place("ab").is_in(&place("a")));
        assert!(place("a").is_in(&place("/")));
        assert_eq!(place("x/").name(), "x");
        assert_eq!(place("/").name(), "");
        assert_eq!(place("x").below("y"), Place { full: "/fs/disk0/x/y".into(), shown: "x/y".into() });
    }

    #[test]
    fn unknown_times_are_not_copied() {
        let attributes = NodeAttributes {
            size_bytes: 0,
            allocated_bytes: 0,
            node: 1,
            modified_s: 5,
            accessed_s: 0,
            changed_s: 0,
            permissions: 0o4755,
            links: 1,
            owner: 3,
            group: 4,
        };
        let all = changes(&attributes, Keep::All).which;
        assert_eq!(all, NodeParts::PERMISSIONS | NodeParts::OWNER | NodeParts::GROUP | NodeParts::MODIFIED);
        let plain = changes(&attributes, Keep::Permissions);
        assert_eq!((plain.which, plain.permissions), (NodeParts::PERMISSIONS, 0o755));
    }
}
