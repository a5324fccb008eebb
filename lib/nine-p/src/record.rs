//! Records in messages: qids, attributes, changes and directory entries.

use crate::wire::{Field, Reader, Text, Writer};

/// Declares a record of consecutive fields.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $kind,)*
        }

        impl Field<'_> for $name {
            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                Some(Self { $($field: <$kind>::read(reader)?,)* })
            }

            fn write(&self, writer: &mut Writer<'_>) {
                $(self.$field.write(writer);)*
            }
        }
    };
}

record! {
    /// A qid: the identity of a node, independent of its names.
    Qid {
        /// Type bits.
        kind: u8,
        /// Version; servers may leave it 0.
        version: u32,
        /// Inode number.
        path: u64,
    }
}

impl Qid {
    /// In `kind`: a folder.
    pub const DIRECTORY: u8 = 0x80;
    /// In `kind`: a symbolic link.
    pub const LINK: u8 = 0x02;

    /// Whether it is a folder.
    pub fn is_directory(&self) -> bool {
        self.kind & Self::DIRECTORY != 0
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.kind & Self::LINK != 0
    }
}

record! {
    /// Attributes of a node. Times are since 1970-01-01 00:00 UTC.
    Attributes {
        /// Mask of requested or valid attributes.
        valid: u64,
        /// Qid.
        qid: Qid,
        /// Type and permissions, as in stat(2).
        mode: u32,
        /// User id.
        owner: u32,
        /// Group id.
        group: u32,
        /// Number of hard links.
        links: u64,
        /// Device number of a special file.
        device: u64,
        /// Size in bytes.
        size: u64,
        /// Preferred transfer size in bytes.
        block_size: u64,
        /// Allocated blocks of 512 bytes.
        blocks: u64,
        /// Access time, in seconds.
        accessed_s: u64,
        /// Its nanoseconds.
        accessed_ns: u64,
        /// Modification time, in seconds.
        modified_s: u64,
        /// Its nanoseconds.
        modified_ns: u64,
        /// Attribute change time, in seconds.
        changed_s: u64,
        /// Its nanoseconds.
        changed_ns: u64,
        /// Creation time, in seconds.
        born_s: u64,
        /// Its nanoseconds.
        born_ns: u64,
        /// Unused.
        generation: u64,
        /// Unused.
        data_version: u64,
    }
}

impl Attributes {
    /// In `valid`: the fields of stat(2).
    pub const BASIC: u64 = 0x7ff;
    /// In `mode`: the type.
    pub const KIND: u32 = 0o170_000;
    /// In `mode`: a folder.
    pub const DIRECTORY: u32 = 0o040_000;
    /// In `mode`: a file.
    pub const FILE: u32 = 0o100_000;
    /// In `mode`: a symbolic link.
    pub const LINK: u32 = 0o120_000;
}

record! {
    /// Attributes to change.
    Changes {
        /// Mask of valid fields.
        valid: u32,
        /// Permissions.
        mode: u32,
        /// User id.
        owner: u32,
        /// Group id.
        group: u32,
        /// Size in bytes.
        size: u64,
        /// Access time, in seconds.
        accessed_s: u64,
        /// Its nanoseconds.
        accessed_ns: u64,
        /// Modification time, in seconds.
        modified_s: u64,
        /// Its nanoseconds.
        modified_ns: u64,
    }
}

impl Changes {
    /// In `valid`: `mode`.
    pub const MODE: u32 = 0x1;
    /// In `valid`: `owner`.
    pub const OWNER: u32 = 0x2;
    /// In `valid`: `group`.
    pub const GROUP: u32 = 0x4;
    /// In `valid`: `size`.
    pub const SIZE: u32 = 0x8;
    /// In `valid`: set the access time, to now without `ACCESSED_SET`.
    pub const ACCESSED: u32 = 0x10;
    /// In `valid`: set the modification time, to now without `MODIFIED_SET`.
    pub const MODIFIED: u32 = 0x20;
    /// In `valid`: set the access time to `accessed_s`.
    pub const ACCESSED_SET: u32 = 0x80;
    /// In `valid`: set the modification time to `modified_s`.
    pub const MODIFIED_SET: u32 = 0x100;
}

/// A directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Qid.
    pub qid: Qid,
    /// Position of the next entry.
    pub offset: u64,
    /// Type, as `d_type` in readdir(3).
    pub kind: u8,
    /// Name.
    pub name: &'a [u8],
}

impl<'a> Entry<'a> {
    /// `kind` of unknown type.
    pub const UNKNOWN: u8 = 0;
    /// `kind` of a folder.
    pub const DIRECTORY: u8 = 4;
    /// `kind` of a file.
    pub const FILE: u8 = 8;
    /// `kind` of a symbolic link.
    pub const LINK: u8 = 10;

    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(Self {
            qid: Qid::read(reader)?,
            offset: u64::read(reader)?,
            kind: u8::read(reader)?,
            name: Text::read(reader)?.0,
        })
    }

    /// Encodes the entry at the start of `out`; returns its length, or `None` if there is no room.
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(out);
        self.qid.write(&mut writer);
        self.offset.write(&mut writer);
        self.kind.write(&mut writer);
        Text(self.name).write(&mut writer);
        writer.finish().map(|written| written.len())
    }
}

/// The entries in the data of EntriesRead, up to the first that is truncated.
pub fn entries(data: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut reader = Reader::new(data);
    core::iter::from_fn(move || Entry::read(&mut reader))
}
