//! Records in messages: what names a node, what is known of it, what is to be changed, and names in a folder.

use crate::wire::{Field, Reader, Text, Writer};

/// Declares a record of fields that stand one after the other.
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
    /// What names a node, whatever it is called.
    Qid {
        /// What it is: bits.
        kind: u8,
        /// Its version; servers may leave it 0.
        version: u32,
        /// Its number.
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
    /// What is known of a node. Times are since 1970-01-01 00:00 UTC.
    Attributes {
        /// Which of these were asked for, or are known.
        valid: u64,
        /// Which node.
        qid: Qid,
        /// Kind and permissions, as in stat(2).
        mode: u32,
        /// Number of the user who owns it.
        owner: u32,
        /// Number of the group that owns it.
        group: u32,
        /// Names that lead to it.
        links: u64,
        /// Number of the device that it stands for.
        device: u64,
        /// Bytes of content.
        size: u64,
        /// Bytes that are best read at once.
        block_size: u64,
        /// Units of 512 bytes that it occupies.
        blocks: u64,
        /// Last access.
        accessed_s: u64,
        /// Nanoseconds of it.
        accessed_ns: u64,
        /// Last change of content.
        modified_s: u64,
        /// Nanoseconds of it.
        modified_ns: u64,
        /// Last change of attributes.
        changed_s: u64,
        /// Nanoseconds of it.
        changed_ns: u64,
        /// When it was made.
        born_s: u64,
        /// Nanoseconds of it.
        born_ns: u64,
        /// Not used.
        generation: u64,
        /// Not used.
        data_version: u64,
    }
}

impl Attributes {
    /// In `valid`: all that stat(2) tells.
    pub const BASIC: u64 = 0x7ff;
    /// In `mode`: what it is.
    pub const KIND: u32 = 0o170_000;
    /// In `mode`: a folder.
    pub const DIRECTORY: u32 = 0o040_000;
    /// In `mode`: a file.
    pub const FILE: u32 = 0o100_000;
    /// In `mode`: a symbolic link.
    pub const LINK: u32 = 0o120_000;
}

record! {
    /// What is to be changed.
    Changes {
        /// Which of these.
        valid: u32,
        /// New permissions.
        mode: u32,
        /// New owner.
        owner: u32,
        /// New group.
        group: u32,
        /// New length.
        size: u64,
        /// New last access.
        accessed_s: u64,
        /// Nanoseconds of it.
        accessed_ns: u64,
        /// New last change of content.
        modified_s: u64,
        /// Nanoseconds of it.
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
    /// In `valid`: the last access; to now, unless `ACCESSED_SET` is there too.
    pub const ACCESSED: u32 = 0x10;
    /// In `valid`: the last change; to now, unless `MODIFIED_SET` is there too.
    pub const MODIFIED: u32 = 0x20;
    /// In `valid`: the last access is `accessed_s`.
    pub const ACCESSED_SET: u32 = 0x80;
    /// In `valid`: the last change is `modified_s`.
    pub const MODIFIED_SET: u32 = 0x100;
}

/// A name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Which node.
    pub qid: Qid,
    /// Where the names after this one begin.
    pub offset: u64,
    /// What it is: a number of `d_type`, see readdir(3).
    pub kind: u8,
    /// The name.
    pub name: &'a [u8],
}

impl<'a> Entry<'a> {
    /// `kind` of what the server does not know.
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

    /// Writes the entry at the start of `out`; the bytes of it, if it has room.
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(out);
        self.qid.write(&mut writer);
        self.offset.write(&mut writer);
        self.kind.write(&mut writer);
        Text(self.name).write(&mut writer);
        writer.finish().map(|written| written.len())
    }
}

/// The names in what EntriesRead brought, up to the first that is cut off.
pub fn entries(data: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut reader = Reader::new(data);
    core::iter::from_fn(move || Entry::read(&mut reader))
}
