//! The messages, one per row.

use alloc::vec::Vec;

use crate::HEADER_BYTES;
use crate::record::{Attributes, Changes, Qid};
use crate::wire::{Data, Field, Reader, Text, Writer};

/// Declares messages: their types and fields, in wire order.
macro_rules! messages {
    ($(#[$about:meta])* $name:ident { $(
        $(#[$kind_about:meta])*
        $kind:ident = $number:literal { $($(#[$field_about:meta])* $field:ident: $type:ty,)* }
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name<'a> { $(
            $(#[$kind_about])*
            $kind { $($(#[$field_about])* $field: $type,)* },
        )* }

        impl<'a> $name<'a> {
            /// Encodes the message at the start of `out`; returns its bytes, or `None` if there is no room.
            pub fn encode(&self, tag: u16, out: &mut [u8]) -> Option<usize> {
                let mut writer = Writer::new(out);
                0_u32.write(&mut writer);
                match self { $(
                    Self::$kind { $($field,)* } => {
                        let kind: u8 = $number;
                        kind.write(&mut writer);
                        tag.write(&mut writer);
                        $($field.write(&mut writer);)*
                    }
                )* }
                let written = writer.finish()?;
                let length = written.len();
                written.first_chunk_mut().map(|first| *first = (length as u32).to_le_bytes())?;
                Some(length)
            }

            /// Decodes a message that fills `bytes`, and its tag; `None` if it is malformed or unknown.
            pub fn decode(bytes: &'a [u8]) -> Option<(u16, Self)> {
                let mut reader = Reader::new(bytes);
                let length = u32::read(&mut reader)?;
                let kind = u8::read(&mut reader)?;
                let tag = u16::read(&mut reader)?;
                let message = match kind {
                    $($number => Self::$kind { $($field: <$type>::read(&mut reader)?,)* },)*
                    _ => return None,
                };
                (length as usize == bytes.len() && reader.is_empty()).then_some((tag, message))
            }
        }
    };
}

messages! {
    /// A client's request.
    Request {
        /// Negotiates the version and resets the session: all fids are clunked.
        Version = 100 {
            /// Maximum message size, in bytes.
            max_bytes: u32,
            /// Protocol version.
            version: Text<'a>,
        }
        /// Attaches a fid to the root.
        Attach = 104 {
            /// New fid.
            fid: u32,
            /// Authentication fid, or [`NO_FID`](crate::NO_FID).
            authentication: u32,
            /// User name.
            user: Text<'a>,
            /// Path of the tree, where there are several.
            folder: Text<'a>,
            /// User id.
            user_number: u32,
        }
        /// Walks names from a fid to a new fid.
        Walk = 110 {
            /// Start.
            fid: u32,
            /// New fid.
            new_fid: u32,
            /// Names.
            names: Vec<Text<'a>>,
        }
        /// Opens a fid.
        Open = 12 {
            /// Fid.
            fid: u32,
            /// Flags: see [`open_flags`](crate::open_flags).
            flags: u32,
        }
        /// Creates and opens a file; the fid of its folder becomes that of the file.
        Create = 14 {
            /// Fid.
            fid: u32,
            /// Name.
            name: Text<'a>,
            /// Flags.
            flags: u32,
            /// Mode.
            mode: u32,
            /// Group id.
            group: u32,
        }
        /// Reads from an open file.
        Read = 116 {
            /// Fid.
            fid: u32,
            /// Offset in bytes.
            offset: u64,
            /// Maximum bytes.
            count: u32,
        }
        /// Writes to an open file.
        Write = 118 {
            /// Fid.
            fid: u32,
            /// Offset in bytes.
            offset: u64,
            /// Data.
            data: Data<'a>,
        }
        /// Reads entries of an open folder.
        ReadEntries = 40 {
            /// Fid.
            fid: u32,
            /// Position: 0, or the offset of an entry.
            offset: u64,
            /// Maximum bytes.
            count: u32,
        }
        /// Gets attributes.
        GetAttributes = 24 {
            /// Fid.
            fid: u32,
            /// Requested attributes.
            wanted: u64,
        }
        /// Sets attributes.
        SetAttributes = 26 {
            /// Fid.
            fid: u32,
            /// Changes.
            changes: Changes,
        }
        /// Reads the target of a symbolic link.
        ReadLink = 22 {
            /// Fid.
            fid: u32,
        }
        /// Makes writes durable.
        Sync = 50 {
            /// Fid of an open file or folder.
            fid: u32,
            /// Whether data without metadata suffices.
            data_only: u32,
        }
        /// Creates a folder.
        MakeDirectory = 72 {
            /// Parent folder.
            fid: u32,
            /// Name.
            name: Text<'a>,
            /// Mode.
            mode: u32,
            /// Group id.
            group: u32,
        }
        /// Creates a symbolic link.
        MakeLink = 16 {
            /// Parent folder.
            fid: u32,
            /// Name.
            name: Text<'a>,
            /// Target.
            target: Text<'a>,
            /// Group id.
            group: u32,
        }
        /// Creates a hard link.
        HardLink = 70 {
            /// Folder of the new name.
            directory: u32,
            /// The file.
            fid: u32,
            /// New name.
            name: Text<'a>,
        }
        /// Renames.
        Rename = 74 {
            /// Old folder.
            from: u32,
            /// Old name.
            old_name: Text<'a>,
            /// New folder.
            to: u32,
            /// New name.
            new_name: Text<'a>,
        }
        /// Removes a name.
        Unlink = 76 {
            /// Parent folder.
            fid: u32,
            /// Name.
            name: Text<'a>,
            /// [`UNLINK_DIRECTORY`](crate::UNLINK_DIRECTORY), or 0.
            flags: u32,
        }
        /// Releases a fid (clunk).
        Forget = 120 {
            /// Fid.
            fid: u32,
        }
    }
}

messages! {
    /// A server's reply.
    Reply {
        /// The request failed.
        Failed = 7 {
            /// See [`errno`](crate::errno).
            error: u32,
        }
        /// To Version.
        Version = 101 {
            /// Maximum message size in bytes, at most the requested one.
            max_bytes: u32,
            /// Protocol version, or `unknown`.
            version: Text<'a>,
        }
        /// To Attach.
        Attached = 105 {
            /// The root.
            qid: Qid,
        }
        /// To Walk. The new fid is valid only if there are as many qids as names.
        Walked = 111 {
            /// Qids of the names found.
            qids: Vec<Qid>,
        }
        /// To Open.
        Opened = 13 {
            /// Its qid.
            qid: Qid,
            /// Preferred transfer size in bytes; 0: unknown.
            unit: u32,
        }
        /// To Create.
        Created = 15 {
            /// The file.
            qid: Qid,
            /// As in Opened.
            unit: u32,
        }
        /// To Read. Empty at the end of the file.
        ReadDone = 117 {
            /// Data.
            data: Data<'a>,
        }
        /// To Write.
        Written = 119 {
            /// Bytes written.
            count: u32,
        }
        /// To ReadEntries. Empty at the end.
        EntriesRead = 41 {
            /// Entries, for [`entries`](crate::entries).
            data: Data<'a>,
        }
        /// To GetAttributes.
        Attributes = 25 {
            /// Attributes.
            attributes: Attributes,
        }
        /// To SetAttributes.
        AttributesSet = 27 {}
        /// To ReadLink.
        Target = 23 {
            /// Target.
            target: Text<'a>,
        }
        /// To Sync.
        Synced = 51 {}
        /// To MakeDirectory.
        DirectoryMade = 73 {
            /// The folder.
            qid: Qid,
        }
        /// To MakeLink.
        LinkMade = 17 {
            /// The link.
            qid: Qid,
        }
        /// To HardLink.
        Linked = 71 {}
        /// To Rename.
        Renamed = 75 {}
        /// To Unlink.
        Unlinked = 77 {}
        /// To Forget.
        Forgotten = 121 {}
    }
}

const _: () = assert!(HEADER_BYTES == size_of::<u32>() + size_of::<u8>() + size_of::<u16>());
