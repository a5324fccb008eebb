//! Reads a template: its description, and what of its file stays.

use alloc::vec::Vec;
use core::fmt;

use elf::ElfBytes;
use elf::abi as elf_abi;
use elf::endian::LittleEndian;
use image_check::{Image, ImageError, ImageSegment};
use wasm_record::layout::{TEMPLATE_MAGIC, TEMPLATE_WORDS};
use wasm_record::{Imports, ImportsError};

use crate::PAGE;

/// The symbol behind the template's segments, where the module goes.
const END_SYMBOL: &[u8] = b"__sing_module";

/// A template's image, checked.
#[derive(Clone, Debug)]
pub struct Template<'a> {
    pub(crate) image: Image<'a>,
    /// Whether each segment is writable in the file until it is relocated, and its exact range.
    pub(crate) loads: Vec<Load<'a>>,
    /// The range that is sealed after relocation.
    pub(crate) sealed: Option<(u64, u64)>,
    /// Executable sections, and that of contracts: name, flags, address, size.
    pub(crate) sections: Vec<Section>,
    /// Functions: address, size, name.
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) relocations: Vec<(u64, u64)>,
    /// Where the module goes.
    pub(crate) end: u64,
    pub(crate) host: u64,
    pub(crate) builtin: u64,
    /// What modules can import.
    pub imports: Imports,
}

/// A function's address, size and name.
pub(crate) type Symbol = (u64, u64, Vec<u8>);

#[derive(Clone, Debug)]
pub(crate) struct Load<'a> {
    pub(crate) flags: u32,
    pub(crate) address: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) content: &'a [u8],
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static [u8],
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// Why an image is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// It is no valid image.
    Image(ImageError),
    /// It has no description of a template, or several.
    NotATemplate,
    /// Its description is damaged.
    Damaged,
    /// Its list of imports is malformed.
    Imports(ImportsError),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Image(error) => write!(f, "the template's image is refused: {error}"),
            TemplateError::NotATemplate => {
                f.write_str("the image is no template of this version; build the template again")
            }
            TemplateError::Damaged => f.write_str("the template's description is damaged"),
            TemplateError::Imports(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for TemplateError {}

type File<'a> = ElfBytes<'a, LittleEndian>;

impl<'a> Template<'a> {
    /// Reads a template from its image file.
    ///
    /// # Errors
    /// It is no valid image, or no template.
    pub fn parse(file: &'a [u8]) -> Result<Template<'a>, TemplateError> {
        let image = Image::check(file).map_err(TemplateError::Image)?;
        let elf = File::minimal_parse(file).map_err(|_| TemplateError::Damaged)?;
        let description = find_description(&image)?;
        let pointer = |number: u64| {
            let offset = description + number * 8;
            let found = image.relocations.iter().find(|relocation| relocation.offset == offset);
            found.map(|relocation| relocation.addend).ok_or(TemplateError::Damaged)
        };
        let imports = text_at(&image, pointer(2)?, word_at(&image, description + 24)?)?;
        let imports = Imports::parse(imports).map_err(TemplateError::Imports)?;
        let (symbols, end) = symbols(&elf);
        let end = end.filter(|&end| end >= image.bytes && end % PAGE == 0).ok_or(TemplateError::NotATemplate)?;
        Ok(Template {
            loads: loads(file, &elf)?,
            sealed: sealed(&elf),
            sections: sections(&elf),
            symbols,
            relocations: image.relocations.iter().map(|one| (one.offset, one.addend)).collect(),
            end,
            host: pointer(4)?,
            builtin: pointer(5)?,
            imports,
            image,
        })
    }

    /// The contracts that its code uses.
    pub fn contracts(&self) -> &[image_check::ContractRecord] {
        &self.image.contracts
    }
}

/// Finds the description, of which there is one.
fn find_description(image: &Image<'_>) -> Result<u64, TemplateError> {
    let mut found = image.segments.iter().filter(|segment| !segment.executable).flat_map(|segment| {
        let first = segment.address + segment.lead;
        let words = segment.content.windows(TEMPLATE_MAGIC.len()).enumerate();
        words.filter(|(_, bytes)| *bytes == TEMPLATE_MAGIC).map(move |(at, _)| first + at as u64)
    });
    // The magic itself stands in code as a constant too, but not aligned with relocated words behind it.
    let is_one = |address: &u64| {
        let has = |number: u64| image.relocations.iter().any(|one| one.offset == address + number * 8);
        address.is_multiple_of(8) && has(2) && has(4) && has(TEMPLATE_WORDS as u64 - 1)
    };
    let mut ones = found.by_ref().filter(is_one);
    match (ones.next(), ones.next()) {
        (Some(address), None) => Ok(address),
        _ => Err(TemplateError::NotATemplate),
    }
}

fn bytes_at<'a>(image: &Image<'a>, address: u64, bytes: u64) -> Result<&'a [u8], TemplateError> {
    let holds = |segment: &&ImageSegment<'a>| {
        let first = segment.address + segment.lead;
        address >= first && address - first <= segment.content.len() as u64
    };
    let segment = image.segments.iter().find(holds).ok_or(TemplateError::Damaged)?;
    let start = (address - segment.address - segment.lead) as usize;
    let end = usize::try_from(bytes).ok().and_then(|bytes| start.checked_add(bytes)).ok_or(TemplateError::Damaged)?;
    segment.content.get(start..end).ok_or(TemplateError::Damaged)
}

fn word_at(image: &Image<'_>, address: u64) -> Result<u64, TemplateError> {
    let bytes = bytes_at(image, address, 8)?;
    bytes.first_chunk().map(|chunk| u64::from_le_bytes(*chunk)).ok_or(TemplateError::Damaged)
}

fn text_at<'a>(image: &Image<'a>, address: u64, bytes: u64) -> Result<&'a str, TemplateError> {
    core::str::from_utf8(bytes_at(image, address, bytes)?).map_err(|_| TemplateError::Damaged)
}

/// The loadable segments as the file has them. The check has read them all before.
fn loads<'a>(file: &'a [u8], elf: &File<'a>) -> Result<Vec<Load<'a>>, TemplateError> {
    let headers = elf.segments().into_iter().flat_map(|table| table.iter());
    headers
        .filter(|header| header.p_type == elf_abi::PT_LOAD && header.p_memsz > 0)
        .map(|header| {
            let start = header.p_offset as usize;
            let content = file.get(start..start + header.p_filesz as usize).ok_or(TemplateError::Damaged)?;
            Ok(Load { flags: header.p_flags, address: header.p_vaddr, memory_bytes: header.p_memsz, content })
        })
        .collect()
}

fn sealed(elf: &File<'_>) -> Option<(u64, u64)> {
    let mut headers = elf.segments()?.iter();
    headers.find(|header| header.p_type == elf_abi::PT_GNU_RELRO).map(|header| (header.p_vaddr, header.p_memsz))
}

/// Executable sections and that of contracts.
fn sections(elf: &File<'_>) -> Vec<Section> {
    let Ok((Some(headers), Some(names))) = elf.section_headers_with_strtab() else { return Vec::new() };
    let executable = u64::from(elf_abi::SHF_ALLOC | elf_abi::SHF_EXECINSTR);
    headers
        .iter()
        .filter_map(|header| {
            let is_code = header.sh_flags & executable == executable && header.sh_size > 0;
            let name: &'static [u8] = match names.get_raw(header.sh_name as usize) {
                _ if is_code => b".text",
                Ok(b".sing.contracts") => b".sing.contracts",
                _ => return None,
            };
            Some(Section { name, flags: header.sh_flags, address: header.sh_addr, bytes: header.sh_size })
        })
        .collect()
}

/// Functions, and the address behind the segments.
fn symbols(elf: &File<'_>) -> (Vec<Symbol>, Option<u64>) {
    let Ok(Some((table, names))) = elf.symbol_table() else { return (Vec::new(), None) };
    let mut functions = Vec::new();
    let mut end = None;
    for symbol in table.iter() {
        let Ok(name) = names.get_raw(symbol.st_name as usize) else { continue };
        if name == END_SYMBOL {
            end = Some(symbol.st_value);
        } else if symbol.st_symtype() == elf_abi::STT_FUNC {
            functions.push((symbol.st_value, symbol.st_size, name.to_vec()));
        }
    }
    (functions, end)
}
