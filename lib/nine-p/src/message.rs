//! The messages: one row for each.

use alloc::vec::Vec;

use crate::HEADER_BYTES;
use crate::record::{Attributes, Changes, Qid};
use crate::wire::{Data, Field, Reader, Text, Writer};

/// Declares messages: their numbers and fields, in the order in which they stand.
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
            /// Writes the message at the start of `out`; the bytes of it, if it has room.
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

            /// Reads a message that takes up all of `bytes`, and its tag. Nothing, if it is none of these.
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
    /// What a client asks.
    Request {
        /// Agrees on the protocol and begins anew: all fids are gone.
        Version = 100 {
            /// The longest message, in bytes.
            max_bytes: u32,
            /// The protocol.
            version: Text<'a>,
        }
        /// Has a fid name the folder itself.
        Attach = 104 {
            /// The new fid.
            fid: u32,
            /// A fid of an authentication, or none.
            authentication: u32,
            /// The user's name.
            user: Text<'a>,
            /// Which folder, where there are several.
            folder: Text<'a>,
            /// The user's number.
            user_number: u32,
        }
        /// Has a fid name what is found by the names, one in the other, from a fid on.
        Walk = 110 {
            /// Where to begin.
            fid: u32,
            /// The new fid.
            new_fid: u32,
            /// The names.
            names: Vec<Text<'a>>,
        }
        /// Opens what a fid names.
        Open = 12 {
            /// The fid.
            fid: u32,
            /// How: see [`open_flags`](crate::open_flags).
            flags: u32,
        }
        /// Makes a file in the folder that a fid names, and has the fid name the open file.
        Create = 14 {
            /// The fid.
            fid: u32,
            /// The file's name.
            name: Text<'a>,
            /// How to open it.
            flags: u32,
            /// Its permissions.
            mode: u32,
            /// Its group.
            group: u32,
        }
        /// Reads from an open file.
        Read = 116 {
            /// The fid.
            fid: u32,
            /// From where on.
            offset: u64,
            /// How many bytes.
            count: u32,
        }
        /// Writes to an open file.
        Write = 118 {
            /// The fid.
            fid: u32,
            /// From where on.
            offset: u64,
            /// What.
            data: Data<'a>,
        }
        /// Reads names in an open folder.
        ReadEntries = 40 {
            /// The fid.
            fid: u32,
            /// Where to begin: 0, or the offset of an entry.
            offset: u64,
            /// How many bytes of entries.
            count: u32,
        }
        /// Asks what is known of a node.
        GetAttributes = 24 {
            /// The fid.
            fid: u32,
            /// What is wanted.
            wanted: u64,
        }
        /// Changes what is known of a node.
        SetAttributes = 26 {
            /// The fid.
            fid: u32,
            /// What to change.
            changes: Changes,
        }
        /// Asks where a symbolic link leads.
        ReadLink = 22 {
            /// The fid.
            fid: u32,
        }
        /// Makes what was written durable.
        Sync = 50 {
            /// The fid of an open file or folder.
            fid: u32,
            /// Whether content alone will do.
            data_only: u32,
        }
        /// Makes a folder.
        MakeDirectory = 72 {
            /// The folder that it is in.
            fid: u32,
            /// Its name.
            name: Text<'a>,
            /// Its permissions.
            mode: u32,
            /// Its group.
            group: u32,
        }
        /// Makes a symbolic link.
        MakeLink = 16 {
            /// The folder that it is in.
            fid: u32,
            /// Its name.
            name: Text<'a>,
            /// Where it leads.
            target: Text<'a>,
            /// Its group.
            group: u32,
        }
        /// Makes one more name for a file.
        HardLink = 70 {
            /// The folder that the name is in.
            directory: u32,
            /// The file.
            fid: u32,
            /// The name.
            name: Text<'a>,
        }
        /// Gives what has a name another one.
        Rename = 74 {
            /// The folder that it is in.
            from: u32,
            /// Its name.
            old_name: Text<'a>,
            /// The folder that it goes to.
            to: u32,
            /// Its new name.
            new_name: Text<'a>,
        }
        /// Takes a name out.
        Unlink = 76 {
            /// The folder that it is in.
            fid: u32,
            /// The name.
            name: Text<'a>,
            /// [`UNLINK_DIRECTORY`](crate::UNLINK_DIRECTORY), or 0.
            flags: u32,
        }
        /// Gives a fid up.
        Forget = 120 {
            /// The fid.
            fid: u32,
        }
    }
}

messages! {
    /// What a server answers.
    Reply {
        /// Why it was not done.
        Failed = 7 {
            /// See [`errno`](crate::errno).
            error: u32,
        }
        /// To Version.
        Version = 101 {
            /// The longest message, in bytes; no more than was asked for.
            max_bytes: u32,
            /// The protocol, or `unknown`.
            version: Text<'a>,
        }
        /// To Attach.
        Attached = 105 {
            /// The folder.
            qid: Qid,
        }
        /// To Walk. The new fid is there only if there are as many as there were names.
        Walked = 111 {
            /// What was found.
            qids: Vec<Qid>,
        }
        /// To Open.
        Opened = 13 {
            /// What it is.
            qid: Qid,
            /// Bytes that are read or written in one piece; 0: not known.
            unit: u32,
        }
        /// To Create.
        Created = 15 {
            /// The file.
            qid: Qid,
            /// As in Opened.
            unit: u32,
        }
        /// To Read. Nothing at the end of the file.
        ReadDone = 117 {
            /// The content.
            data: Data<'a>,
        }
        /// To Write.
        Written = 119 {
            /// How many bytes.
            count: u32,
        }
        /// To ReadEntries. Nothing at the end.
        EntriesRead = 41 {
            /// Entries, for [`entries`](crate::entries).
            data: Data<'a>,
        }
        /// To GetAttributes.
        Attributes = 25 {
            /// What is known.
            attributes: Attributes,
        }
        /// To SetAttributes.
        AttributesSet = 27 {}
        /// To ReadLink.
        Target = 23 {
            /// Where it leads.
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
