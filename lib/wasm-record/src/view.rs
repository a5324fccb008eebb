//! A record as its bytes: what a program reads of it at its start.

use crate::list::{Item, List};
use crate::reader::Reader;
use crate::record::{
    Data, Export, ExportKind, Function, Global, Limits, Malformed, Mode, Part, Signature, Table, VERSION, limits, mode,
};

/// A record whose lists are read when they are asked for. Looking at one costs the same however long it is.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// As in [`Record`](crate::Record).
    pub signatures: List<'a, Signature>,
    /// As there.
    pub functions: List<'a, Function<'a>>,
    /// As there.
    pub imported: u32,
    /// As there.
    pub memory: Option<Limits>,
    /// As there.
    pub tables: List<'a, Table>,
    /// As there.
    pub globals: List<'a, Global>,
    /// As there.
    pub exports: List<'a, Export<'a>>,
    /// As there.
    pub elements: List<'a, ElementView<'a>>,
    /// As there.
    pub data: List<'a, Data<'a>>,
    /// As there.
    pub start: Option<u32>,
    /// As there.
    pub attachment: &'a [u8],
    /// As there.
    pub parts: List<'a, Part<'a>>,
}

impl<'a> View<'a> {
    /// Looks at a record.
    ///
    /// # Errors
    /// Its lists do not lie in it. Whether their items are malformed is found when they are read.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != VERSION {
            return Err(Malformed { offset: 0 });
        }
        let view = View {
            signatures: List::parse(&mut reader)?,
            functions: List::parse(&mut reader)?,
            imported: reader.u32()?,
            memory: reader.optional(limits)?,
            tables: List::parse(&mut reader)?,
            globals: List::parse(&mut reader)?,
            exports: List::parse(&mut reader)?,
            elements: List::parse(&mut reader)?,
            data: List::parse(&mut reader)?,
            start: reader.optional(Reader::u32)?,
            attachment: reader.bytes()?,
            parts: List::parse(&mut reader)?,
        };
        reader.end()?;
        Ok(view)
    }

    /// Returns a function; `None` if there is none.
    pub fn function(&self, function: u32) -> Option<Function<'a>> {
        self.functions.get(function as usize).ok()?
    }

    /// Returns the signature of a function.
    pub fn signature(&self, function: u32) -> Option<Signature> {
        self.signatures.get(self.function(function)?.signature as usize).ok()?
    }

    /// Returns an export of a kind by its name.
    pub fn export(&self, kind: ExportKind, name: &str) -> Option<u32> {
        let is_it = |export: &Export<'_>| export.kind == kind && export.name == name;
        self.exports.iter().flatten().find(is_it).map(|export| export.index)
    }
}

/// An element segment.
#[derive(Clone, Copy, Debug)]
pub struct ElementView<'a> {
    /// What happens at the start.
    pub mode: Mode,
    /// Indices of functions, or [`NULL`](crate::NULL).
    pub items: Numbers<'a>,
}

impl<'a> Item<'a> for ElementView<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<ElementView<'a>, Malformed> {
        Ok(ElementView { mode: mode(reader)?, items: Numbers(reader.numbers()?) })
    }
}

/// Numbers in the bytes of a record.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a>(&'a [[u8; 4]]);

impl<'a> Numbers<'a> {
    /// No numbers.
    pub const NONE: Numbers<'static> = Numbers(&[]);

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }
}
