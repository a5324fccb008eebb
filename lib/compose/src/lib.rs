//! Template image and compiled module to sealed image.
//!
//! Key items: [`Template`], [`compose`]. What a module adds is two segments behind those of the template: read-only data
//! (header, addresses of functions, constants, record) and code. The template's own segments stay as they are, byte for
//! byte, so that they can be compared with the signed template's. Neighbours: `wasm-translate` compiled the module,
//! `image-check` judges the result like any image. Deliberately not here: manifests, packages, signatures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod file;
mod template;

pub use template::{Template, TemplateError};

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use abi::limits::PAGE_BYTES;
use image_check::{Image, faults};
use wasm_record::layout::{HEADER_BOUNDS, HEADER_MAGIC, HEADER_WORDS};
use wasm_translate::{Target, Translated};

use file::{Added, write};
use template::Symbol;

const PAGE: u64 = PAGE_BYTES as u64;
/// Alignment of constants, in bytes.
const CONSTANT_ALIGNMENT: usize = 16;

/// Why no image can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposeError {
    /// Code is too far from what it refers to; or a reference lies outside of it.
    Reference {
        /// Offset in the text.
        offset: u32,
    },
}

impl fmt::Display for ComposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ComposeError::Reference { offset } = self;
        write!(f, "the reference at {offset:#x} of the code cannot be resolved")
    }
}

impl core::error::Error for ComposeError {}

/// Where the parts of the added data lie, in bytes from its start.
struct Layout {
    functions: usize,
    entries: usize,
    signatures: usize,
    constants: usize,
    record: usize,
    end: usize,
}

impl Layout {
    fn of(translated: &Translated) -> Layout {
        let functions = HEADER_WORDS * 8;
        let entries = functions + translated.functions.len() * 8;
        let signatures = entries + translated.entries.len() * 8;
        let constants = (signatures + translated.signatures.len() * 4).next_multiple_of(CONSTANT_ALIGNMENT);
        let record = (constants + translated.constants.len()).next_multiple_of(CONSTANT_ALIGNMENT);
        Layout { functions, entries, signatures, constants, record, end: record + translated.record.len() }
    }
}

/// A module's data and code at their addresses.
#[derive(Clone, Debug)]
pub struct Linked {
    /// Address of the data.
    pub data_address: u64,
    /// Header, addresses of functions and entries, signatures, constants, record.
    pub data: Vec<u8>,
    /// Words of the data that are addresses: place, address.
    pub relocations: Vec<(u64, u64)>,
    /// Address of the code.
    pub text_address: u64,
    /// Code.
    pub text: Vec<u8>,
}

/// Composes an image file.
///
/// # Errors
/// A reference cannot be resolved, which a module within the limits of an image does not have.
pub fn compose(template: &Template<'_>, translated: &Translated) -> Result<Vec<u8>, ComposeError> {
    let linked = link(translated, template.end, template.relocations.len(), [template.host, template.builtin])?;
    let symbols = names(translated, linked.text_address);
    let faults = told_faults(translated, linked.text_address, &symbols);
    let relocations = template.relocations.iter().chain(&linked.relocations).copied().collect();
    let Linked { data_address: base, data, text_address: text, text: code, .. } = linked;
    Ok(write(template, &Added { base, data, relocations, text, code, symbols, faults }))
}

/// Lays a module out at an address: its data, a table of its relocations and this many others, and its code. `host` and
/// `builtin` are the addresses of the template's functions.
///
/// # Errors
/// As for [`compose`].
pub fn link(
    translated: &Translated,
    base: u64,
    other_relocations: usize,
    [host, builtin]: [u64; 2],
) -> Result<Linked, ComposeError> {
    let layout = Layout::of(translated);
    // The size of the relocations is that of the pointers, all known here.
    let pointers = 3 + translated.functions.len() + translated.entries.len();
    let data_bytes = file::data_bytes(layout.end, other_relocations + pointers);
    let text = base + (data_bytes as u64).next_multiple_of(PAGE);
    let mut data = alloc::vec![0u8; layout.end];
    let mut relocations = Vec::with_capacity(pointers);
    let mut point = |data: &mut [u8], at: usize, address: u64| {
        put(data, at, &address.to_le_bytes());
        relocations.push((base + at as u64, address));
    };
    put(&mut data, 0, &HEADER_MAGIC.to_le_bytes());
    point(&mut data, 8, base + layout.record as u64);
    put(&mut data, 16, &(translated.record.len() as u64).to_le_bytes());
    point(&mut data, 24, base + layout.functions as u64);
    put(&mut data, 32, &(translated.functions.len() as u64).to_le_bytes());
    point(&mut data, 40, base + layout.entries as u64);
    put(&mut data, 48, &(translated.entries.len() as u64).to_le_bytes());
    put(&mut data, HEADER_BOUNDS, &(translated.bounds as u64).to_le_bytes());
    let starts = translated.functions.iter().chain(&translated.entries);
    for (number, start) in starts.enumerate() {
        point(&mut data, layout.functions + number * 8, text + u64::from(*start));
    }
    for (number, signature) in translated.signatures.iter().enumerate() {
        put(&mut data, layout.signatures + number * 4, &signature.to_le_bytes());
    }
    put(&mut data, layout.constants, &translated.constants);
    for entry in &translated.table_entries {
        let distance =
            (text + u64::from(entry.target)).wrapping_sub(base + layout.constants as u64 + u64::from(entry.table));
        put(&mut data, layout.constants + entry.offset as usize, &(distance as u32).to_le_bytes());
    }
    put(&mut data, layout.record, &translated.record);
    let address = |target: Target| match target {
        Target::Host => host,
        Target::Builtin => builtin,
        Target::FunctionTable => base + layout.functions as u64,
        Target::SignatureTable => base + layout.signatures as u64,
        Target::Constants | Target::SealedTables => base + layout.constants as u64,
    };
    let code = resolve(translated, text, address)?;
    Ok(Linked { data_address: base, data, relocations, text_address: text, text: code })
}

/// The module that was added to a template, for [`native_verifier::verify`]. `None` if the image has other segments behind
/// those of the template than one of read-only data and one of code.
pub fn added<'a>(template: &Template<'_>, image: &Image<'a>) -> Option<native_verifier::Module<'a>> {
    let first = image.segments.partition_point(|segment| segment.address < template.end);
    let [data, text] = image.segments.get(first..)? else { return None };
    let is_sound = !data.writable && !data.executable && text.executable && data.lead == 0 && text.lead == 0;
    (is_sound && data.address == template.end).then(|| native_verifier::Module {
        data_address: data.address,
        data: data.content,
        text_address: text.address,
        text: text.content,
        relocations: image.relocations.iter().map(|one| (one.offset, one.addend)).collect(),
        host: template.host,
        builtin: template.builtin,
    })
}

/// The text, with its references resolved.
fn resolve(translated: &Translated, text: u64, address: impl Fn(Target) -> u64) -> Result<Vec<u8>, ComposeError> {
    let mut code = translated.text.clone();
    for relocation in &translated.relocations {
        let failed = ComposeError::Reference { offset: relocation.offset };
        let field = text + u64::from(relocation.offset);
        let distance = address(relocation.target).wrapping_add_signed(relocation.addend).wrapping_sub(field) as i64;
        let distance = i32::try_from(distance).map_err(|_| failed.clone())?;
        let place = code.get_mut(relocation.offset as usize..relocation.offset as usize + 4).ok_or(failed)?;
        place.copy_from_slice(&distance.to_le_bytes());
    }
    Ok(code)
}

/// What the image says of its faults. A run of traps of one kind, which is how code has them behind each function, is
/// told once.
fn told_faults(translated: &Translated, text: u64, symbols: &[Symbol]) -> Vec<u8> {
    let mut functions: Vec<(u32, &str)> = symbols
        .iter()
        .filter_map(|(address, _, name)| Some((u32::try_from(*address).ok()?, core::str::from_utf8(name).ok()?)))
        .collect();
    functions.sort_unstable();
    let mut traps: Vec<(u32, &str)> = Vec::new();
    for trap in &translated.traps {
        let kind = trap.kind.text();
        let address = (text + u64::from(trap.offset)) as u32;
        if traps.last().is_none_or(|(_, last)| *last != kind) {
            traps.push((address, kind));
        }
    }
    faults::encode(&functions, &traps)
}

/// Names of functions, for debuggers and epitaphs: address, size, name.
fn names(translated: &Translated, text: u64) -> Vec<Symbol> {
    let Ok(record) = wasm_record::Record::parse(&translated.record) else { return Vec::new() };
    // Functions lie in their order, and the entries behind them.
    let ends = translated.functions.iter().skip(1).chain(translated.entries.first());
    let ends = ends.copied().chain([translated.text.len() as u32]);
    let starts = record.functions.iter().zip(&translated.functions).zip(ends).enumerate();
    starts
        .map(|(index, ((function, &start), end))| {
            let name = match function.name {
                "" => format!("function {index}").into_bytes(),
                name => name.as_bytes().to_vec(),
            };
            (text + u64::from(start), u64::from(end.saturating_sub(start)), name)
        })
        .collect()
}

/// Puts bytes into data that has room for them, by its layout.
fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = data.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
