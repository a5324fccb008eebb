//! The boot image: one module with all that a boot loader passes to the kernel of a bare machine.
//!
//! All numbers are little-endian. A boot image is a header and three parts: the parameters of the first program, the
//! system image (crate `package`), the kernel's symbols. Header: magic (8 bytes), version (u32), for each part its
//! offset (u32), length in bytes (u32) and CRC-32 (u32), then the CRC-32 of all that precedes (u32). Parts are aligned
//! to 16 bytes. The system image has no CRC-32: its own hash and signatures are verified anyway, and a second pass over
//! it would make the start longer.
//!
//! Key types: [`BootImage`], [`Symbols`]. Neighbours: the host tool encodes, `boot/x86_64` parses. Deliberately not
//! here: the meaning of parameters; and trust, since a CRC-32 detects corruption, not malice.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

const MAGIC: &[u8; 8] = b"SINGBOOT";
const VERSION: u32 = 1;
const PART_BYTES: usize = 12;
const HEADER_BYTES: usize = 8 + 4 + 3 * PART_BYTES + 4;
const ALIGNMENT: usize = 16;
/// Size of a symbol table entry: address and name offset.
const SYMBOL_BYTES: usize = 8;
/// Longer names are truncated.
const NAME_BYTES_MAX: usize = 1024;

/// A part of a boot image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Magic, version and the offsets of the parts.
    Header,
    /// Names and values for the first program.
    Parameters,
    /// Manifest and packages.
    System,
    /// Names of the kernel's functions.
    Symbols,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Header => "header",
            Part::Parameters => "parameters",
            Part::System => "system image",
            Part::Symbols => "symbols",
        })
    }
}

/// Why a boot image is unusable. Each message has the problem, its location and a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootImageError {
    /// The first bytes are not those of a boot image.
    NotABootImage,
    /// Another version than this kernel's.
    Version {
        /// The version found.
        found: u32,
    },
    /// The image is truncated.
    TooShort {
        /// The truncated part.
        part: Part,
        /// Required length, in bytes.
        wanted: u64,
        /// Actual length, in bytes.
        length: usize,
    },
    /// The checksum of a part is wrong, or its content is malformed.
    Damaged {
        /// The part.
        part: Part,
        /// Its offset.
        offset: usize,
    },
}

impl fmt::Display for BootImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootImageError::NotABootImage => f.write_str(
                "the boot module is not a boot image: its first 8 bytes are not `SINGBOOT`; give the file that `cargo sing image` or `cargo sing run` made",
            ),
            BootImageError::Version { found } => {
                write!(
                    f,
                    "the boot image has version {found}, this kernel reads version {VERSION}; make it with the kernel's own `cargo sing`"
                )
            }
            BootImageError::TooShort { part, wanted, length } => {
                write!(
                    f,
                    "the boot image is cut short: its {part} would end at byte {wanted}, but it has {length} bytes; copy or make it again"
                )
            }
            BootImageError::Damaged { part, offset } => {
                write!(f, "the boot image is damaged in its {part}, at byte {offset}; copy or make it again")
            }
        }
    }
}

impl core::error::Error for BootImageError {}

/// A parsed boot image. The checksums of header, parameters and symbols are verified; the system image is not.
#[derive(Clone, Copy, Debug)]
pub struct BootImage<'a> {
    parameters: &'a [u8],
    /// The system image, for `package-check`.
    pub system: &'a [u8],
    /// Names of the kernel's functions.
    pub symbols: Symbols<'a>,
}

impl<'a> BootImage<'a> {
    /// Parses a boot image. Bytes after the last part are ignored.
    ///
    /// # Errors
    /// The magic or version is wrong, or the image is truncated or damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<BootImage<'a>, BootImageError> {
        let magic = bytes.get(..MAGIC.len());
        if magic.is_some_and(|magic| magic != MAGIC) {
            return Err(BootImageError::NotABootImage);
        }
        let header = bytes.get(..HEADER_BYTES).ok_or(BootImageError::TooShort {
            part: Part::Header,
            wanted: HEADER_BYTES as u64,
            length: bytes.len(),
        })?;
        match number(header, MAGIC.len()) {
            Some(VERSION) => {}
            found => return Err(BootImageError::Version { found: found.unwrap_or(0) }),
        }
        let (covered, checksum) = header.split_at(HEADER_BYTES - 4);
        if Some(crc32fast::hash(covered)) != number(checksum, 0) {
            return Err(BootImageError::Damaged { part: Part::Header, offset: 0 });
        }
        let image = BootImage {
            parameters: part(bytes, Part::Parameters)?,
            system: part(bytes, Part::System)?,
            symbols: Symbols { bytes: part(bytes, Part::Symbols)? },
        };
        if ParameterReader(image.parameters).any(|parameter| parameter.is_none()) {
            let offset = number(bytes, entry_offset(Part::Parameters)).unwrap_or(0) as usize;
            return Err(BootImageError::Damaged { part: Part::Parameters, offset });
        }
        Ok(image)
    }

    /// The names and values, in the order in which they were encoded.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let parameters = ParameterReader(self.parameters).flatten();
        parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Encodes a boot image. `symbols` are addresses and names of the kernel's functions, in any order; an empty name
    /// ends the function before it.
    ///
    /// # Panics
    /// A part is 4 GiB or more, or an address is.
    pub fn encode(parameters: &[(String, String)], system: &[u8], symbols: &[(u64, String)]) -> Vec<u8> {
        let parameters = encode_parameters(parameters);
        let symbols = encode_symbols(symbols);
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&VERSION.to_le_bytes());
        let mut body = Vec::new();
        let parts = [
            (parameters.as_slice(), crc32fast::hash(&parameters)),
            (system, 0),
            (symbols.as_slice(), crc32fast::hash(&symbols)),
        ];
        for (bytes, checksum) in parts {
            body.resize((HEADER_BYTES + body.len()).next_multiple_of(ALIGNMENT) - HEADER_BYTES, 0);
            header.extend_from_slice(&length(HEADER_BYTES + body.len()));
            header.extend_from_slice(&length(bytes.len()));
            header.extend_from_slice(&checksum.to_le_bytes());
            body.extend_from_slice(bytes);
        }
        let checksum = crc32fast::hash(&header);
        header.extend_from_slice(&checksum.to_le_bytes());
        header.extend_from_slice(&body);
        header
    }
}

/// The kernel's symbol table.
///
/// Format: number of symbols (u32); for each its address (u32) and the offset of its name in the names (u32), by
/// ascending address; then the names, each with its length (u16). Lookup does not allocate, and tolerates damage,
/// because it runs while the kernel fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols<'a> {
    bytes: &'a [u8],
}

impl<'a> Symbols<'a> {
    /// The function that contains the address, and the offset in it. `None` if no symbol is at or before the address.
    pub fn locate(&self, address: u64) -> Option<(&'a str, usize)> {
        let count = number(self.bytes, 0)? as usize;
        let (table, names) = self.bytes.get(4..)?.split_at_checked(count.checked_mul(SYMBOL_BYTES)?)?;
        let start = |index: usize| number(table, index * SYMBOL_BYTES);
        // The last symbol at or before the address.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if u64::from(start(middle)?) <= address { low = middle + 1 } else { high = middle }
        }
        let index = low.checked_sub(1)?;
        let offset = address.checked_sub(u64::from(start(index)?))?;
        let name = names.get(number(table, index * SYMBOL_BYTES + 4)? as usize..)?;
        let (bytes, text) = name.split_first_chunk::<2>()?;
        let text = text.get(..usize::from(u16::from_le_bytes(*bytes)))?;
        let text = core::str::from_utf8(text).ok().filter(|text| !text.is_empty())?;
        Some((text, usize::try_from(offset).ok()?))
    }
}

/// Parses names and values; a malformed rest is one `None`.
struct ParameterReader<'a>(&'a [u8]);

impl<'a> Iterator for ParameterReader<'a> {
    type Item = Option<(&'a str, &'a str)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let parameter = self.text().and_then(|name| Some((name, self.text()?)));
        if parameter.is_none() {
            self.0 = &[];
        }
        Some(parameter)
    }
}

impl<'a> ParameterReader<'a> {
    fn text(&mut self) -> Option<&'a str> {
        let length = number(self.0, 0)? as usize;
        let (text, rest) = self.0.get(4..)?.split_at_checked(length)?;
        self.0 = rest;
        core::str::from_utf8(text).ok()
    }
}

/// The bytes of a part, if they are complete and the checksum is right.
fn part(bytes: &[u8], part: Part) -> Result<&[u8], BootImageError> {
    let entry = entry_offset(part);
    let [offset, length, checksum] = [0, 4, 8].map(|field| number(bytes, entry + field).unwrap_or(0));
    let end = u64::from(offset) + u64::from(length);
    let start = offset as usize;
    let content = usize::try_from(end).ok().and_then(|end| bytes.get(start..end));
    let content = content.ok_or(BootImageError::TooShort { part, wanted: end, length: bytes.len() })?;
    if part != Part::System && crc32fast::hash(content) != checksum {
        return Err(BootImageError::Damaged { part, offset: start });
    }
    Ok(content)
}

/// Offset of a part's entry in the header.
fn entry_offset(part: Part) -> usize {
    let index = match part {
        Part::Header | Part::Parameters => 0,
        Part::System => 1,
        Part::Symbols => 2,
    };
    MAGIC.len() + 4 + index * PART_BYTES
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a boot image is smaller than 4 GiB").to_le_bytes()
}

fn encode_parameters(parameters: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in parameters.iter().flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(&length(text.len()));
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn encode_symbols(symbols: &[(u64, String)]) -> Vec<u8> {
    // The first of several symbols at an address in sort order is kept, so that the table is reproducible; equal names
    // are stored once.
    let mut by_address: BTreeMap<u64, &str> = BTreeMap::new();
    for (address, name) in symbols {
        let known = by_address.entry(*address).or_insert(name);
        if known.is_empty() || (!name.is_empty() && name.as_str() < *known) {
            *known = name;
        }
    }
    let mut out = length(by_address.len()).to_vec();
    let mut names = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (address, name) in by_address {
        let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        let offset = *known.entry(name).or_insert_with(|| {
            let offset = names.len();
            names.extend_from_slice(&(name.len() as u16).to_le_bytes());
            names.extend_from_slice(name.as_bytes());
            offset
        });
        let address = u32::try_from(address).expect("the kernel lies in the first 4 GiB");
        out.extend_from_slice(&address.to_le_bytes());
        out.extend_from_slice(&length(offset));
    }
    out.extend_from_slice(&names);
    out
}
