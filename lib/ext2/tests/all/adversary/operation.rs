//! Operations on a volume and their outcomes: the same for the model, for a volume mounted here and for one mounted by
//! Linux.

use std::collections::BTreeMap;
use std::fmt;

/// Maximum open files.
pub const SLOTS: usize = 6;

/// Names from the root on; empty for the root.
pub type Path = Vec<Vec<u8>>;

/// An operation.
#[derive(Clone, PartialEq, Eq)]
pub enum Operation {
    Create {
        path: Path,
        permissions: u16,
        owner: u32,
    },
    MakeFolder {
        path: Path,
        permissions: u16,
    },
    MakeLink {
        path: Path,
        target: Vec<u8>,
    },
    /// Adds a link to a file.
    AddName {
        existing: Path,
        path: Path,
    },
    Unlink {
        path: Path,
    },
    RemoveFolder {
        path: Path,
    },
    Rename {
        from: Path,
        to: Path,
    },
    /// Creates files with these numbers in their names.
    CreateMany {
        folder: Path,
        first: u32,
        count: u32,
        name_bytes: usize,
    },
    UnlinkMany {
        folder: Path,
        first: u32,
        count: u32,
        name_bytes: usize,
    },
    SetAttributes {
        path: Path,
        permissions: Option<u16>,
        owner: Option<u32>,
        group: Option<u32>,
        modified: Option<u32>,
    },
    /// Sets the extended attribute `user.` of this name.
    SetExtended {
        path: Path,
        name: &'static str,
        bytes: usize,
        seed: u64,
    },
    RemoveExtended {
        path: Path,
        name: &'static str,
    },
    Open {
        path: Path,
        slot: usize,
    },
    Close {
        slot: usize,
    },
    Read {
        slot: usize,
        offset: u64,
        bytes: usize,
    },
    Write {
        slot: usize,
        offset: u64,
        bytes: usize,
        seed: u64,
    },
    Append {
        slot: usize,
        bytes: usize,
        seed: u64,
    },
    SetSize {
        slot: usize,
        size: u64,
    },
    List {
        path: Path,
    },
    Look {
        path: Path,
    },
    Sync,
    /// Unmounts and mounts again, after closing all files.
    Remount,
}

/// Kind of a named node.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    File,
    Folder,
    Link,
}

/// Metadata of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub sort: Sort,
    /// `None` for a folder.
    pub size: Option<u64>,
    pub permissions: u16,
    pub owner: u32,
    pub group: u32,
    pub links: u32,
    /// Unknown if it depends on the clock used.
    pub modified: Option<u32>,
    pub target: Option<Vec<u8>>,
    /// Its `user.` extended attributes.
    pub extended: Extended,
}

/// Extended attributes by their names.
pub type Extended = BTreeMap<Vec<u8>, Vec<u8>>;

/// Outcome of an operation.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Data(Vec<u8>),
    AppendedAt(u64),
    Names(BTreeMap<Vec<u8>, Sort>),
    Facts(Facts),
    /// The operation is impossible, and nothing was changed.
    Refused,
    /// The volume is full; this many bytes of a write, or files of several, were completed.
    NoRoom(usize),
    /// Any other error.
    Broken(String),
}

/// Returns the name of a file created in bulk.
pub fn many_name(number: u32, name_bytes: usize) -> Vec<u8> {
    let mut name = format!("{number:06}-").into_bytes();
    let letter = b'a' + (number % 26) as u8;
    name.resize(name_bytes.clamp(name.len(), 255), letter);
    name
}

impl fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |path: &Path| {
            let names: Vec<String> = path.iter().map(|name| shown_name(name)).collect();
            format!("/{}", names.join("/"))
        };
        match self {
            Operation::Create { path, permissions, owner } => {
                write!(formatter, "create {} {permissions:o} {owner}", text(path))
            }
            Operation::MakeFolder { path, permissions } => write!(formatter, "mkdir {} {permissions:o}", text(path)),
            Operation::MakeLink { path, target } => {
                write!(formatter, "symlink {} -> {}", text(path), shown_name(target))
            }
            Operation::AddName { existing, path } => write!(formatter, "link {} {}", text(existing), text(path)),
            Operation::Unlink { path } => write!(formatter, "unlink {}", text(path)),
            Operation::RemoveFolder { path } => write!(formatter, "rmdir {}", text(path)),
            Operation::Rename { from, to } => write!(formatter, "rename {} {}", text(from), text(to)),
            Operation::CreateMany { folder, first, count, name_bytes } => {
                write!(formatter, "create {count} files from {first} of {name_bytes} letters in {}", text(folder))
            }
            Operation::UnlinkMany { folder, first, count, name_bytes } => {
                write!(formatter, "unlink {count} files from {first} of {name_bytes} letters in {}", text(folder))
            }
            Operation::SetAttributes { path, permissions, owner, group, modified } => {
                let permissions = permissions.map(|bits| format!("{bits:o}"));
                write!(formatter, "attributes {} {permissions:?} {owner:?} {group:?} {modified:?}", text(path))
            }
            Operation::SetExtended { path, name, bytes, seed } => {
                write!(formatter, "setfattr {} {name} {bytes} noise {seed}", text(path))
            }
            Operation::RemoveExtended { path, name } => write!(formatter, "setfattr {} -x {name}", text(path)),
            Operation::Open { path, slot } => write!(formatter, "open {} as #{slot}", text(path)),
            Operation::Close { slot } => write!(formatter, "close #{slot}"),
            Operation::Read { slot, offset, bytes } => write!(formatter, "read #{slot} {bytes} at {offset}"),
            Operation::Write { slot, offset, bytes, seed } => {
                write!(formatter, "write #{slot} {bytes} at {offset} noise {seed}")
            }
            Operation::Append { slot, bytes, seed } => write!(formatter, "append #{slot} {bytes} noise {seed}"),
            Operation::SetSize { slot, size } => write!(formatter, "size #{slot} {size}"),
            Operation::List { path } => write!(formatter, "list {}", text(path)),
            Operation::Look { path } => write!(formatter, "look {}", text(path)),
            Operation::Sync => formatter.write_str("sync"),
            Operation::Remount => formatter.write_str("remount"),
        }
    }
}

/// Shortens a long name for display.
pub fn shown_name(name: &[u8]) -> String {
    if name.len() <= 24 {
        return name.escape_ascii().to_string();
    }
    format!("{}..({} bytes)", name[..12].escape_ascii(), name.len())
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => formatter.write_str("done"),
            Outcome::Data(bytes) => write!(formatter, "{} bytes, {:?}..", bytes.len(), &bytes[..bytes.len().min(8)]),
            Outcome::AppendedAt(offset) => write!(formatter, "appended at {offset}"),
            Outcome::Names(names) => {
                let names: Vec<String> =
                    names.iter().map(|(name, sort)| format!("{} {sort:?}", shown_name(name))).collect();
                write!(formatter, "{names:?}")
            }
            Outcome::Facts(facts) => facts.fmt(formatter),
            Outcome::Refused => formatter.write_str("refused"),
            Outcome::NoRoom(done) => write!(formatter, "no room after {done}"),
            Outcome::Broken(why) => write!(formatter, "BROKEN: {why}"),
        }
    }
}
