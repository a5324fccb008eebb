//! What surrounds the code: header, sealed arrays, record, and where functions begin. All of it is checked here, as the
//! proofs of functions rest on it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use wasm_record::layout::{
    ARGUMENTS, Bounds, HEADER_BOUNDS, HEADER_MAGIC, HEADER_WORDS, MAX_GLOBALS, MAX_TABLES, RUNTIME, SLOT_BYTES, TABLES,
    global,
};
use wasm_record::{Record, Signature};

use crate::convention::Convention;
use crate::{Module, Place, Rule, Violation};

/// Places of the header's words, in bytes.
const RECORD: u64 = 8;
const RECORD_BYTES: u64 = 16;
const FUNCTIONS: u64 = 24;
const FUNCTION_COUNT: u64 = 32;
const ENTRIES: u64 = 40;
const ENTRY_COUNT: u64 = 48;
const HEADER_BYTES: u64 = HEADER_WORDS as u64 * 8;
/// Number of the header's words that are addresses.
const HEADER_POINTERS: u64 = 3;
const POINTER_BYTES: u64 = 8;
const SIGNATURE_BYTES: u64 = 4;

/// What the code of an image's modules may refer to.
pub struct Environment<'a> {
    pub module: &'a Module<'a>,
    /// The text of each function.
    functions: Vec<Range<usize>>,
    /// The text of each entry.
    entries: Vec<Range<usize>>,
    /// The convention of each entry's signature.
    conventions: Vec<Convention>,
    /// The function at an address.
    by_address: BTreeMap<u64, u32>,
    parts: Vec<Part>,
    /// Where the data begins that is not relocated: its bytes are what code reads.
    pub plain_data: u64,
}

/// A module: the only one, or one of a bundle. Its functions call each other alone, as each has a context of its own.
pub struct Part {
    functions: Range<u32>,
    entries: Range<u32>,
    /// The signature of each function.
    signatures: Vec<u32>,
    /// Address of the array of its functions' addresses.
    pub function_array: u64,
    /// Address of the array of its functions' signatures.
    pub signature_array: u64,
    tables: u32,
    /// Whether its memory lies in a window.
    pub has_window: bool,
    /// Size of the context, in bytes.
    context_bytes: u32,
}

fn wrong(address: u64, why: &'static str) -> Violation {
    Violation { place: Place::Module, address, rule: Rule::Layout, why }
}

/// Where the arrays are, and what they have.
struct Arrays {
    functions: u64,
    entries: u64,
    signatures: u64,
    end: u64,
    function_count: u64,
    entry_count: u64,
    bounds: Bounds,
}

impl Arrays {
    /// The arrays follow the header and each other.
    fn read(module: &Module<'_>) -> Result<Arrays, Violation> {
        let base = module.data_address;
        let word = |place: u64| {
            let bytes = module.data.get(place as usize..).and_then(|rest| rest.first_chunk());
            bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| wrong(base, "the header is cut off"))
        };
        if word(0)? != HEADER_MAGIC {
            return Err(wrong(base, "there is no header of a module"));
        }
        let (function_count, entry_count) = (word(FUNCTION_COUNT)?, word(ENTRY_COUNT)?);
        let bounds = Bounds::of(word(HEADER_BOUNDS as u64)?);
        let bounds = bounds.ok_or_else(|| wrong(base, "the header names bounds that there are not"))?;
        let behind = |at: u64, count: u64, bytes: u64| count.checked_mul(bytes).and_then(|bytes| at.checked_add(bytes));
        let functions = base.saturating_add(HEADER_BYTES);
        let laid_out = behind(functions, function_count, POINTER_BYTES).and_then(|entries| {
            let signatures = behind(entries, entry_count, POINTER_BYTES)?;
            Some((entries, signatures, behind(signatures, function_count, SIGNATURE_BYTES)?))
        });
        let data_end = base.checked_add(module.data.len() as u64);
        match laid_out.zip(data_end) {
            Some(((entries, signatures, end), data_end)) if end <= data_end => {
                Ok(Arrays { functions, entries, signatures, end, function_count, entry_count, bounds })
            }
            _ => Err(wrong(base, "the arrays reach beyond the data")),
        }
    }
}

impl<'a> Environment<'a> {
    /// Reads and checks what surrounds the code.
    pub fn read(module: &'a Module<'a>) -> Result<Environment<'a>, Violation> {
        let base = module.data_address;
        let arrays = Arrays::read(module)?;
        let pointers = pointers(module)?;
        let pointer = |address: u64| {
            let found = pointers.get(&address).copied();
            found.ok_or_else(|| wrong(address, "a word that is to be an address is not relocated"))
        };
        if pointer(base + FUNCTIONS)? != arrays.functions || pointer(base + ENTRIES)? != arrays.entries {
            return Err(wrong(base, "the arrays do not follow the header"));
        }
        if pointers.len() as u64 != HEADER_POINTERS + arrays.function_count + arrays.entry_count {
            return Err(wrong(base, "a word is relocated that is no address of the header or the arrays"));
        }
        let record = record(module, pointer(base + RECORD)?)?;
        let starts = |at: u64, count: u64| -> Result<Vec<usize>, Violation> {
            let places = (0..count).map(|number| at + number * POINTER_BYTES);
            places.map(|place| start(module, place, pointer(place)?)).collect()
        };
        let functions = starts(arrays.functions, arrays.function_count)?;
        let entries = starts(arrays.entries, arrays.entry_count)?;
        let ends = ends(module, &functions, &entries)?;
        let range = |start: &usize| *start..ends.get(start).copied().unwrap_or(*start);
        let by_address =
            functions.iter().zip(0u32..).map(|(start, index)| (module.text_address + *start as u64, index));
        Ok(Environment {
            module,
            by_address: by_address.collect(),
            functions: functions.iter().map(range).collect(),
            entries: entries.iter().map(range).collect(),
            conventions: record.signatures.iter().map(Convention::of).collect(),
            parts: parts(module, &arrays, &record)?,
            plain_data: arrays.end,
        })
    }

    /// All functions and entries, with their modules.
    pub fn places(&self) -> impl Iterator<Item = (&Part, Place)> {
        self.parts.iter().flat_map(|part| {
            let functions = part.functions.clone().map(Place::Function);
            functions.chain(part.entries.clone().map(Place::Entry)).map(move |place| (part, place))
        })
    }

    /// The text of a function or entry.
    pub fn range(&self, place: Place) -> Range<usize> {
        match place {
            Place::Function(index) => self.functions.get(index as usize),
            Place::Entry(index) => self.entries.get(index as usize),
            Place::Module => None,
        }
        .cloned()
        .unwrap_or(0..0)
    }

    /// The convention of a signature of a module.
    pub fn convention(&self, part: &Part, signature: u32) -> Option<Convention> {
        let index = part.entries.start.checked_add(signature)?;
        self.conventions.get(index as usize).copied().filter(|_| part.entries.contains(&index))
    }

    /// The convention of a function of a module.
    pub fn convention_of(&self, part: &Part, function: u32) -> Option<Convention> {
        let index = function.checked_sub(part.functions.start)?;
        self.convention(part, part.signature(index)?)
    }

    /// The convention of the module's function at an address.
    pub fn convention_at(&self, part: &Part, address: u64) -> Option<Convention> {
        self.convention_of(part, *self.by_address.get(&address)?)
    }

    /// Bytes of the data at an address.
    pub fn data(&self, address: u64, bytes: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(address.checked_sub(self.module.data_address)?).ok()?;
        self.module.data.get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
    }
}

impl Part {
    /// Number of its functions.
    pub fn function_count(&self) -> u64 {
        self.signatures.len() as u64
    }

    /// The signature of one of its functions, which are counted from its first.
    pub fn signature(&self, function: u32) -> Option<u32> {
        self.signatures.get(function as usize).copied()
    }

    /// The index among its signatures of an entry.
    pub fn signature_of_entry(&self, entry: u32) -> Option<u32> {
        entry.checked_sub(self.entries.start)
    }

    /// Whether code may write this part of the context: arguments and globals.
    pub fn is_writable(&self, range: &Range<i64>) -> bool {
        let globals = i64::from(global(self.tables, 0))..i64::from(self.context_bytes);
        is_within(range, &[i64::from(ARGUMENTS)..i64::from(TABLES), globals])
    }

    /// Whether code may read this part of the context: all but the runtime's own words.
    pub fn is_readable(&self, range: &Range<i64>) -> bool {
        is_within(range, &[0..i64::from(RUNTIME), i64::from(ARGUMENTS)..i64::from(self.context_bytes)])
    }

    /// The table whose word is at an offset of the context, and whether the word is that of its size.
    pub fn table_word(&self, offset: i64) -> Option<(u8, bool)> {
        let offset = u32::try_from(offset).ok()?.checked_sub(TABLES)?;
        let (table, within) = (offset / SLOT_BYTES, offset % SLOT_BYTES);
        (table < self.tables && within.is_multiple_of(8)).then_some((table as u8, within == 8))
    }
}

fn is_within(range: &Range<i64>, parts: &[Range<i64>]) -> bool {
    parts.iter().any(|part| range.start >= part.start && range.end <= part.end)
}

/// The relocated words of the data. A word that overlaps its end is among them.
fn pointers(module: &Module<'_>) -> Result<BTreeMap<u64, u64>, Violation> {
    let mut pointers = BTreeMap::new();
    let end = module.data_address.saturating_add(module.data.len() as u64);
    let text_end = module.text_address.saturating_add(module.text.len() as u64);
    let overlaps = |place: u64, start: u64, end: u64| place.saturating_add(POINTER_BYTES) > start && place < end;
    for &(place, address) in &module.relocations {
        if overlaps(place, module.text_address, text_end) {
            return Err(wrong(place, "code is relocated"));
        }
        if overlaps(place, module.data_address, end) && pointers.insert(place, address).is_some() {
            return Err(wrong(place, "a word is relocated twice"));
        }
    }
    Ok(pointers)
}

fn record<'a>(module: &Module<'a>, address: u64) -> Result<Record<'a>, Violation> {
    let base = module.data_address;
    let bytes = module.data.get(RECORD_BYTES as usize..).and_then(|rest| rest.first_chunk());
    let bytes = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let start = address.checked_sub(base).and_then(|start| usize::try_from(start).ok());
    let end = start.zip(usize::try_from(bytes).ok()).and_then(|(start, bytes)| start.checked_add(bytes));
    let found = start.zip(end).and_then(|(start, end)| module.data.get(start..end));
    let found = found.ok_or_else(|| wrong(address, "the record lies outside of the data"))?;
    Record::parse(found).map_err(|_| wrong(address, "the record is malformed"))
}

/// The modules: one, or those of a bundle, which have all of its functions and entries in their order.
fn parts(module: &Module<'_>, arrays: &Arrays, record: &Record<'_>) -> Result<Vec<Part>, Violation> {
    let unfit = || wrong(module.data_address, "the record does not fit the arrays");
    let (mut functions, mut entries) = (0u32, 0u32);
    let mut parts = Vec::new();
    let mut add = |own: &Record<'_>| {
        let part = part(module, arrays, own, [functions, entries])?;
        (functions, entries) = (part.functions.end, part.entries.end);
        parts.push(part);
        Ok((functions, entries))
    };
    if record.parts.is_empty() {
        add(record)?;
    }
    let mut signatures: Vec<Signature> = Vec::new();
    let mut place = (0, 0);
    for one in &record.parts {
        let own =
            Record::parse(one.record).map_err(|_| wrong(module.data_address, "the record of a part is malformed"))?;
        if place != (one.functions, one.entries) || !own.parts.is_empty() {
            return Err(unfit());
        }
        place = add(&own)?;
        signatures.extend(own.signatures);
    }
    let is_whole = u64::from(functions) == arrays.function_count && u64::from(entries) == arrays.entry_count;
    let is_same = record.parts.is_empty() || signatures == record.signatures;
    if is_whole && is_same && record.functions.len() as u64 == arrays.function_count { Ok(parts) } else { Err(unfit()) }
}

/// A module whose first function and entry are these.
fn part(
    module: &Module<'_>,
    arrays: &Arrays,
    record: &Record<'_>,
    [functions, entries]: [u32; 2],
) -> Result<Part, Violation> {
    let end = |start: u32, count: usize| u32::try_from(count).ok().and_then(|count| start.checked_add(count));
    let ends = end(functions, record.functions.len()).zip(end(entries, record.signatures.len()));
    let ends = ends.filter(|(functions, entries)| {
        u64::from(*functions) <= arrays.function_count && u64::from(*entries) <= arrays.entry_count
    });
    let fits = record.tables.len() <= MAX_TABLES && record.globals.len() <= MAX_GLOBALS;
    let Some((functions_end, entries_end)) = ends.filter(|_| fits) else {
        return Err(wrong(module.data_address, "the record does not fit the arrays"));
    };
    let signature_array = arrays.signatures + u64::from(functions) * SIGNATURE_BYTES;
    for (number, function) in record.functions.iter().enumerate() {
        let at = signature_array + number as u64 * SIGNATURE_BYTES;
        let sealed = module.data.get((at - module.data_address) as usize..).and_then(|rest| rest.first_chunk());
        let is_same = sealed.is_some_and(|bytes| u32::from_le_bytes(*bytes) == function.signature);
        if !is_same || function.signature as usize >= record.signatures.len() {
            return Err(wrong(at, "a function's signature differs from that in the record"));
        }
    }
    let tables = record.tables.len() as u32;
    Ok(Part {
        functions: functions..functions_end,
        entries: entries..entries_end,
        signatures: record.functions.iter().map(|function| function.signature).collect(),
        function_array: arrays.functions + u64::from(functions) * POINTER_BYTES,
        signature_array,
        tables,
        has_window: arrays.bounds == Bounds::Guarded && record.memory.is_some(),
        context_bytes: global(tables, record.globals.len() as u32),
    })
}

/// Where a function starts in the text, by its address, which is at a place of the data.
fn start(module: &Module<'_>, place: u64, address: u64) -> Result<usize, Violation> {
    let offset = address.checked_sub(module.text_address).and_then(|offset| usize::try_from(offset).ok());
    let offset = offset.filter(|&offset| offset < module.text.len());
    offset.ok_or_else(|| wrong(place, "an address of a function is not in the code"))
}

/// Where each function ends: where the next one starts.
fn ends(module: &Module<'_>, functions: &[usize], entries: &[usize]) -> Result<BTreeMap<usize, usize>, Violation> {
    let mut starts: Vec<usize> = functions.iter().chain(entries).copied().collect();
    starts.sort_unstable();
    if let Some(pair) = starts.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(module.text_address + pair[0] as u64, "two functions start at the same place"));
    }
    let next = starts.iter().skip(1).copied().chain([module.text.len()]);
    Ok(starts.iter().copied().zip(next).collect())
}
