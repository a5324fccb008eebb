//! The record of a module: all of it but its code.

use alloc::vec::Vec;
use core::fmt;

use crate::list::{self, Item};
use crate::reader::Reader;
use crate::view::{ElementView, View};
use crate::writer;

/// Version of the format, its first number.
pub(crate) const VERSION: u32 = 2;

/// The record ends early, or holds a number that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where, in bytes.
    pub offset: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record of the module is malformed at byte {}", self.offset)
    }
}

impl core::error::Error for Malformed {}

macro_rules! numbered {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $item_doc:literal])* $item:ident = $value:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $item_doc])* $item = $value,)*
        }

        impl $name {
            fn read(reader: &mut Reader<'_>) -> Result<$name, Malformed> {
                let malformed = reader.malformed();
                match reader.u8()? {
                    $($value => Ok($name::$item),)*
                    _ => Err(malformed),
                }
            }
        }
    };
}

numbered! {
    /// The type of a value.
    ValueType {
        /// A 32-bit integer.
        I32 = 0,
        /// A 64-bit integer.
        I64 = 1,
        /// A 32-bit float, as its bits.
        F32 = 2,
        /// A 64-bit float, as its bits.
        F64 = 3,
        /// A vector of 128 bits.
        V128 = 4,
        /// A reference to a function, as its index or [`NULL`](crate::NULL).
        FuncRef = 5,
        /// A reference of the host's, as a number or [`NULL`](crate::NULL).
        ExternRef = 6,
    }
}

numbered! {
    /// What an export is.
    ExportKind {
        /// A function.
        Function = 0,
        /// A table.
        Table = 1,
        /// Linear memory.
        Memory = 2,
        /// A global.
        Global = 3,
    }
}

/// Parameters and results of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// Types of the parameters.
    pub parameters: Vec<ValueType>,
    /// Types of the results.
    pub results: Vec<ValueType>,
}

impl PartialOrd for ValueType {
    fn partial_cmp(&self, other: &ValueType) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ValueType {
    fn cmp(&self, other: &ValueType) -> core::cmp::Ordering {
        (*self as u8).cmp(&(*other as u8))
    }
}

/// A function, imported or defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Index of its signature.
    pub signature: u32,
    /// Its name, for people: from the name section, or of an export or import; may be empty.
    pub name: &'a str,
}

/// Minimum and maximum size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size at the start, in pages of linear memory or entries of a table.
    pub min: u64,
    /// Maximum size.
    pub max: u64,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Number of entries.
    pub limits: Limits,
    /// [`ValueType::FuncRef`] or [`ValueType::ExternRef`].
    pub kind: ValueType,
}

/// A global and its value at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its type.
    pub kind: ValueType,
    /// Its bits; the upper ones are zero if it is a number.
    pub value: u128,
}

/// An export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub kind: ExportKind,
    /// Its index among those of its kind.
    pub index: u32,
}

/// What happens with a segment at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Passive,
    /// It is copied to a memory or table of this index, from this offset, and dropped.
    Active {
        /// Index of the table; 0 for memory.
        target: u32,
        /// First byte or entry.
        offset: u64,
    },
    /// It is dropped.
    Declared,
}

/// An element segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// What happens at the start.
    pub mode: Mode,
    /// Indices of functions, or [`NULL`](crate::NULL).
    pub items: Vec<u32>,
}

/// A data segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// What happens at the start.
    pub mode: Mode,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// All of a module but its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// The distinct signatures; code has an entry for each.
    pub signatures: Vec<Signature>,
    /// Imported functions first.
    pub functions: Vec<Function<'a>>,
    /// Number of imported functions.
    pub imported: u32,
    /// Linear memory, if it has any.
    pub memory: Option<Limits>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Globals.
    pub globals: Vec<Global>,
    /// Exports.
    pub exports: Vec<Export<'a>>,
    /// Element segments.
    pub elements: Vec<Element>,
    /// Data segments.
    pub data: Vec<Data<'a>>,
    /// The function to call first.
    pub start: Option<u32>,
    /// Bytes for the template, from whoever composed the image.
    pub attachment: &'a [u8],
    /// The modules that this is a bundle of; none if it is a single module. Those of a bundle are no bundles themselves.
    pub parts: Vec<Part<'a>>,
}

/// A module of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Where its functions begin among those of the bundle.
    pub functions: u32,
    /// Where its entries, one for each of its signatures, begin among those of the bundle.
    pub entries: u32,
    /// Its encoded record, whose indices are its own.
    pub record: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a record. Indices are not checked against each other.
    ///
    /// # Errors
    /// It is malformed.
    pub fn parse(bytes: &'a [u8]) -> Result<Record<'a>, Malformed> {
        let view = View::parse(bytes)?;
        let element = |element: ElementView<'_>| Element { mode: element.mode, items: element.items.iter().collect() };
        Ok(Record {
            signatures: view.signatures.iter().collect::<Result<_, _>>()?,
            functions: view.functions.iter().collect::<Result<_, _>>()?,
            imported: view.imported,
            memory: view.memory,
            tables: view.tables.iter().collect::<Result<_, _>>()?,
            globals: view.globals.iter().collect::<Result<_, _>>()?,
            exports: view.exports.iter().collect::<Result<_, _>>()?,
            elements: view.elements.iter().map(|one| one.map(element)).collect::<Result<_, _>>()?,
            data: view.data.iter().collect::<Result<_, _>>()?,
            start: view.start,
            attachment: view.attachment,
            parts: view.parts.iter().collect::<Result<_, _>>()?,
        })
    }

    /// Writes the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        writer::u32(&mut out, VERSION);
        list::write(&mut out, &self.signatures, |out, signature| {
            writer::list(out, &signature.parameters, |out, kind| out.push(*kind as u8));
            writer::list(out, &signature.results, |out, kind| out.push(*kind as u8));
        });
        list::write(&mut out, &self.functions, |out, function| {
            writer::u32(out, function.signature);
            writer::bytes(out, function.name.as_bytes());
        });
        writer::u32(&mut out, self.imported);
        writer::list(&mut out, self.memory.as_slice(), write_limits);
        list::write(&mut out, &self.tables, |out, table| {
            write_limits(out, &table.limits);
            out.push(table.kind as u8);
        });
        list::write(&mut out, &self.globals, |out, global| {
            out.push(global.kind as u8);
            writer::u128(out, global.value);
        });
        list::write(&mut out, &self.exports, |out, export| {
            writer::bytes(out, export.name.as_bytes());
            out.push(export.kind as u8);
            writer::u32(out, export.index);
        });
        list::write(&mut out, &self.elements, |out, element| {
            write_mode(out, element.mode);
            writer::list(out, &element.items, |out, item| writer::u32(out, *item));
        });
        list::write(&mut out, &self.data, |out, data| {
            write_mode(out, data.mode);
            writer::bytes(out, data.bytes);
        });
        writer::list(&mut out, self.start.as_slice(), |out, start| writer::u32(out, *start));
        writer::bytes(&mut out, self.attachment);
        list::write(&mut out, &self.parts, |out, part| {
            writer::u32(out, part.functions);
            writer::u32(out, part.entries);
            writer::bytes(out, part.record);
        });
        out
    }

    /// Returns the signature of a function.
    pub fn signature(&self, function: u32) -> Option<&Signature> {
        self.signatures.get(self.functions.get(function as usize)?.signature as usize)
    }

    /// Returns an export of a kind by its name.
    pub fn export(&self, kind: ExportKind, name: &str) -> Option<u32> {
        self.exports.iter().find(|export| export.kind == kind && export.name == name).map(|export| export.index)
    }
}

impl<'a> Item<'a> for Signature {
    fn read(reader: &mut Reader<'a>) -> Result<Signature, Malformed> {
        Ok(Signature { parameters: reader.list(ValueType::read)?, results: reader.list(ValueType::read)? })
    }
}

impl<'a> Item<'a> for Function<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Function<'a>, Malformed> {
        Ok(Function { signature: reader.u32()?, name: reader.text()? })
    }
}

impl<'a> Item<'a> for Table {
    fn read(reader: &mut Reader<'a>) -> Result<Table, Malformed> {
        Ok(Table { limits: limits(reader)?, kind: ValueType::read(reader)? })
    }
}

impl<'a> Item<'a> for Global {
    fn read(reader: &mut Reader<'a>) -> Result<Global, Malformed> {
        Ok(Global { kind: ValueType::read(reader)?, value: reader.u128()? })
    }
}

impl<'a> Item<'a> for Export<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Export<'a>, Malformed> {
        Ok(Export { name: reader.text()?, kind: ExportKind::read(reader)?, index: reader.u32()? })
    }
}

impl<'a> Item<'a> for Data<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Data<'a>, Malformed> {
        Ok(Data { mode: mode(reader)?, bytes: reader.bytes()? })
    }
}

impl<'a> Item<'a> for Part<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Part<'a>, Malformed> {
        Ok(Part { functions: reader.u32()?, entries: reader.u32()?, record: reader.bytes()? })
    }
}

pub(crate) fn limits(reader: &mut Reader<'_>) -> Result<Limits, Malformed> {
    Ok(Limits { min: reader.u64()?, max: reader.u64()? })
}

fn write_limits(out: &mut Vec<u8>, limits: &Limits) {
    writer::u64(out, limits.min);
    writer::u64(out, limits.max);
}

pub(crate) fn mode(reader: &mut Reader<'_>) -> Result<Mode, Malformed> {
    let malformed = reader.malformed();
    match reader.u8()? {
        0 => Ok(Mode::Passive),
        1 => Ok(Mode::Active { target: reader.u32()?, offset: reader.u64()? }),
        2 => Ok(Mode::Declared),
        _ => Err(malformed),
    }
}

fn write_mode(out: &mut Vec<u8>, mode: Mode) {
    match mode {
        Mode::Passive => out.push(0),
        Mode::Active { target, offset } => {
            out.push(1);
            writer::u32(out, target);
            writer::u64(out, offset);
        }
        Mode::Declared => out.push(2),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn sample() -> Record<'static> {
        Record {
            signatures: vec![Signature {
                parameters: vec![ValueType::I32, ValueType::V128],
                results: vec![ValueType::F64],
            }],
            functions: vec![Function { signature: 0, name: "main" }, Function { signature: 0, name: "" }],
            imported: 1,
            memory: Some(Limits { min: 1, max: 2 }),
            tables: vec![Table { limits: Limits { min: 3, max: 4 }, kind: ValueType::FuncRef }],
            globals: vec![Global { kind: ValueType::I64, value: 5 }],
            exports: vec![Export { name: "_start", kind: ExportKind::Function, index: 1 }],
            elements: vec![
                Element { mode: Mode::Active { target: 0, offset: 1 }, items: vec![0, crate::NULL] },
                Element { mode: Mode::Declared, items: vec![] },
            ],
            data: vec![Data { mode: Mode::Passive, bytes: b"data" }],
            start: Some(1),
            attachment: b"attached",
            parts: vec![Part { functions: 1, entries: 2, record: b"part" }],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample().encode();
        assert_eq!(Record::parse(&bytes), Ok(sample()));
        let empty = Record::default().encode();
        assert_eq!(Record::parse(&empty), Ok(Record::default()));
    }

    #[test]
    fn a_cut_or_changed_record_is_an_error_or_another_record() {
        let bytes = sample().encode();
        for end in 0..bytes.len() {
            assert!(Record::parse(&bytes[..end]).is_err(), "{end}");
        }
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 0xff;
            // Neither panics nor allocates without end.
            let _ = Record::parse(&changed);
        }
    }
}
