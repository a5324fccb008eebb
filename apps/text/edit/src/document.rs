//! The file behind a text: reads and writes it, and detects writes by others.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::file_io::{BLOCK_BYTES, OpenFile};
use client::file_writer::NEW_PERMISSIONS;
use client::namespace::Namespace;
use contracts::directory::{CreateMode, NameError};
use contracts::file::FileError;
use sip::exheap::ExVec;

/// Maximum size of an edited file in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Identifies the version of a file that was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    size_bytes: u64,
    modified_s: i64,
}

/// An edited file.
pub struct Document {
    /// Name as typed.
    pub name: String,
    full: String,
    /// `None` until the file exists.
    stamp: Option<Stamp>,
}

impl Document {
    /// Reads the file; the text is `None` if no file has that name yet. An error is a sentence.
    pub fn read(namespace: &mut Namespace, name: &str, full: &str) -> Result<(Document, Option<String>), String> {
        let document = |stamp| Document { name: name.into(), full: full.into(), stamp };
        let mut file = match namespace.open_file(full) {
            Ok(file) => file,
            Err(AccessError::Name(NameError::NotFound) | AccessError::File(FileError::NotFound)) => {
                return Ok((document(None), None));
            }
            Err(error) => return Err(error.to_string()),
        };
        let stamp = stamp_of(&mut file).map_err(|error| error.to_string())?;
        if stamp.size_bytes > MAX_BYTES as u64 {
            return Err(format!("larger than {} MiB, too large to edit; `less` shows it", MAX_BYTES >> 20));
        }
        let mut bytes = Vec::new();
        let mut pieces = file.pieces();
        while let Some(piece) = pieces.next().map_err(|error| error.to_string())? {
            bytes.extend_from_slice(piece);
            if bytes.len() > MAX_BYTES {
                return Err(format!("grew past {} MiB while being read; `less` shows it", MAX_BYTES >> 20));
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok((document(Some(stamp)), Some(text))),
            Err(error) => Err(format!(
                "not text: byte {} is not UTF-8, and saving would change it",
                error.utf8_error().valid_up_to()
            )),
        }
    }

    /// Whether the file differs from the last read or written content.
    pub fn is_changed_by_others(&self, namespace: &mut Namespace) -> bool {
        let now = namespace.open_file(&self.full).and_then(|mut file| stamp_of(&mut file));
        match (self.stamp, now) {
            (Some(known), Ok(now)) => known != now,
            (None, Ok(_)) => true,
            // A removed file is created again.
            (_, Err(_)) => false,
        }
    }

    /// Continues under another file name.
    pub fn rename(&mut self, name: &str, full: &str) {
        (self.name, self.full) = (name.into(), full.into());
        self.stamp = None;
    }

    /// Overwrites the file with the lines and waits until they are on the medium. The file keeps its names, owner and
    /// access control list.
    pub fn write(&mut self, namespace: &mut Namespace, lines: &[String]) -> Result<(), AccessError> {
        let mut file = namespace.create_file(&self.full, NEW_PERMISSIONS, CreateMode::OpenExisting)?;
        // From here on it is no longer the file that was read.
        let mut offset = 0;
        let mut gathered = Vec::with_capacity(BLOCK_BYTES);
        for (index, line) in lines.iter().enumerate() {
            gathered.extend_from_slice(if index > 0 { b"\n" } else { b"" });
            gathered.extend_from_slice(line.as_bytes());
            if gathered.len() >= BLOCK_BYTES {
                offset = write_piece(&mut file, &gathered, offset)?;
                gathered.clear();
            }
        }
        offset = write_piece(&mut file, &gathered, offset)?;
        file.set_size(offset)?;
        file.sync()?;
        self.stamp = Some(stamp_of(&mut file)?);
        Ok(())
    }
}

fn write_piece(file: &mut OpenFile, bytes: &[u8], offset: u64) -> Result<u64, AccessError> {
    if !bytes.is_empty() {
        file.write_at(ExVec::from_slice(bytes)?, offset, bytes.len())?.all()?;
    }
    Ok(offset + bytes.len() as u64)
}

fn stamp_of(file: &mut OpenFile) -> Result<Stamp, AccessError> {
    let attributes = file.attributes()?;
    Ok(Stamp { size_bytes: attributes.size_bytes, modified_s: attributes.modified_s })
}
