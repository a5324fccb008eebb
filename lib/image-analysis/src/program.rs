//! The functions of an image, and the addresses that its code and data mention.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use elf::ElfBytes;
use elf::abi::STT_FUNC;
use elf::endian::LittleEndian;
use image_check::{Data, Image, ImageError};

use crate::calls::Call;
use crate::frame;
use crate::names;

/// A function of an image.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its path; empty for one without a symbol.
    pub name: String,
    /// Address of its first instruction.
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Its calls.
    pub calls: Vec<Call>,
    /// Bytes of stack that it uses by itself; `None` if that depends on the run.
    pub stack: Option<u32>,
    /// Whether it can return.
    pub returns: bool,
    /// Address of an instruction that computes with floating-point numbers.
    pub float: Option<u64>,
    /// Address of an instruction that it reaches and that ends the program.
    pub traps: Option<u64>,
    /// Functions whose address it takes.
    pub taken: Vec<usize>,
}

/// Why an image cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is no valid image.
    Image(ImageError),
    /// It has no symbols, or none for its code.
    NoSymbols,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Image(error) => error.fmt(f),
            Error::NoSymbols => write!(
                f,
                "the image has no symbols, by which assertions name functions; build it with `cargo sing build`, without stripping it"
            ),
        }
    }
}

impl core::error::Error for Error {}

/// An image as functions and calls.
#[derive(Clone, Debug)]
pub struct Program {
    /// Functions by ascending address.
    pub functions: Vec<Function>,
    /// The function at which the program starts.
    pub entry: Option<usize>,
    /// Functions whose addresses are in data, by the address of that word: of tables of methods, mostly.
    pub in_data: Vec<(u64, usize)>,
    /// Addresses of data that code or other data mentions: beginnings of tables.
    pub mentioned: BTreeSet<u64>,
}

/// Code of an image and what is needed to read it.
pub(crate) struct Code<'a> {
    pub(crate) image: &'a Image<'a>,
    /// Start and end of each function, ascending.
    pub(crate) ranges: Vec<(u64, u64)>,
}

impl Code<'_> {
    /// Returns the function that begins at the address.
    pub(crate) fn function_at(&self, address: u64) -> Option<usize> {
        self.ranges.binary_search_by_key(&address, |range| range.0).ok()
    }

    /// Returns the bytes of code from the address to `end`.
    pub(crate) fn bytes(&self, start: u64, end: u64) -> Option<&[u8]> {
        let segment = self.image.segments.iter().find(|segment| {
            let first = segment.address + segment.lead;
            segment.executable && first <= start && end <= first + segment.content.len() as u64
        })?;
        let first = segment.address + segment.lead;
        segment.content.get((start - first) as usize..(end - first) as usize)
    }

    /// Returns the function whose address is in the word of data.
    pub(crate) fn relocated(&self, address: u64) -> Option<usize> {
        let relocations = &self.image.relocations;
        let found = relocations.iter().find(|relocation| relocation.offset == address)?;
        self.function_at(found.addend)
    }

    /// Returns the file's content of a data segment from the address on.
    pub(crate) fn data(&self, address: u64) -> Option<&[u8]> {
        self.image.segments.iter().filter(|segment| !segment.executable).find_map(|segment| {
            let offset = address.checked_sub(segment.address + segment.lead)?;
            segment.content.get(usize::try_from(offset).ok()?..).filter(|rest| !rest.is_empty())
        })
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.image.segments.iter().any(|segment| {
            segment.executable && (segment.address..segment.address + segment.memory_bytes).contains(&address)
        })
    }
}

impl Program {
    /// Reads an image file; calls `pause` regularly so that others can run.
    ///
    /// # Errors
    /// It is no valid image, or has no symbols.
    pub fn read(file: &[u8], data: Data, pause: &dyn Fn()) -> Result<Program, Error> {
        let image = Image::check_in_steps(file, data, pause).map_err(Error::Image)?;
        let symbols = symbols(file).ok_or(Error::NoSymbols)?;
        let (ranges, names) = functions(&image, symbols);
        if names.iter().all(|name| name.is_empty()) {
            return Err(Error::NoSymbols);
        }
        let code = Code { image: &image, ranges };
        let mut program = Program {
            functions: Vec::new(),
            entry: code.function_at(image.entry),
            in_data: Vec::new(),
            mentioned: BTreeSet::new(),
        };
        for relocation in &image.relocations {
            match code.function_at(relocation.addend) {
                Some(function) => program.in_data.push((relocation.offset, function)),
                None => drop(program.mentioned.insert(relocation.addend)),
            }
        }
        for (name, &(start, end)) in names.into_iter().zip(&code.ranges) {
            pause();
            program.functions.push(Function {
                name,
                start,
                end,
                calls: Vec::new(),
                stack: None,
                returns: true,
                float: None,
                traps: None,
                taken: Vec::new(),
            });
        }
        frame::read_all(&code, &mut program, pause);
        Ok(program)
    }

    /// Returns the functions of this name: several, if it is generic.
    pub fn named(&self, name: &str) -> Vec<usize> {
        let named = self.functions.iter().enumerate().filter(|(_, function)| function.name == name);
        named.map(|(index, _)| index).collect()
    }

    /// Display name of a function.
    pub fn name(&self, function: usize) -> String {
        match self.functions.get(function) {
            Some(function) if function.name.is_empty() => alloc::format!("a function at {:#x}", function.start),
            Some(function) => function.name.to_string(),
            None => String::from("a function outside the image"),
        }
    }
}

/// Address, size and name of each function with a symbol.
fn symbols(file: &[u8]) -> Option<Vec<(u64, u64, String)>> {
    let elf = ElfBytes::<LittleEndian>::minimal_parse(file).ok()?;
    let (table, strings) = elf.symbol_table().ok()??;
    let functions = table.iter().filter(|symbol| symbol.st_symtype() == STT_FUNC && symbol.st_size > 0);
    let named = functions.map(|symbol| {
        let name = strings.get(symbol.st_name as usize).unwrap_or_default();
        (symbol.st_value, symbol.st_size, names::path(name))
    });
    Some(named.collect())
}

/// Splits the code into functions: those with symbols, and what lies between them. Overlapping symbols, which no
/// compiler makes, are cut.
fn functions(image: &Image<'_>, mut symbols: Vec<(u64, u64, String)>) -> (Vec<(u64, u64)>, Vec<String>) {
    symbols.sort();
    symbols.dedup_by_key(|symbol| symbol.0);
    let (mut ranges, mut names) = (Vec::new(), Vec::new());
    let mut add = |start: u64, end: u64, name: String| {
        if start < end {
            ranges.push((start, end));
            names.push(name);
        }
    };
    for segment in image.segments.iter().filter(|segment| segment.executable) {
        let first = segment.address + segment.lead;
        let last = first + segment.content.len() as u64;
        let within = symbols.iter().filter(|symbol| (first..last).contains(&symbol.0));
        let mut covered = first;
        let mut within = within.peekable();
        while let Some((start, size, name)) = within.next() {
            add(covered, *start, String::new());
            let next = within.peek().map_or(last, |next| next.0);
            covered = start.saturating_add(*size).min(next);
            add(*start, covered, name.clone());
        }
        add(covered, last, String::new());
    }
    (ranges, names)
}
