//! What surrounds the code: header, sealed arrays, record, and where functions begin. All of it is checked here, as the
//! proofs of functions rest on it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use wasm_record::Record;
use wasm_record::layout::{ARGUMENTS, HEADER_MAGIC, HEADER_WORDS, MAX_GLOBALS, MAX_TABLES, SLOT_BYTES, TABLES, global};

use crate::convention::Convention;
use crate::{Module, Place, Rule, Violation};

/// Places of the header's words that are addresses.
const RECORD_WORD: u64 = 8;
const FUNCTIONS_WORD: u64 = 24;
const ENTRIES_WORD: u64 = 40;
const HEADER_BYTES: u64 = HEADER_WORDS as u64 * 8;

/// What the code of a module may refer to.
pub struct Environment<'a> {
    pub module: &'a Module<'a>,
    /// What each function expects, and its place in the text.
    pub functions: Vec<(Range<usize>, u32)>,
    entries: Vec<Range<usize>>,
    /// The convention of each signature.
    pub conventions: Vec<Convention>,
    /// The function at an address.
    pub by_address: BTreeMap<u64, u32>,
    /// Address of the array of functions' addresses.
    pub function_array: u64,
    /// Address of the array of functions' signatures.
    pub signature_array: u64,
    /// Number of tables.
    pub tables: u32,
    /// Size of the context, in bytes.
    pub context_bytes: u32,
}

fn wrong(address: u64, why: &'static str) -> Violation {
    Violation { place: Place::Module, address, rule: Rule::Layout, why }
}

impl<'a> Environment<'a> {
    /// Reads and checks what surrounds the code.
    pub fn read(module: &'a Module<'a>) -> Result<Environment<'a>, Violation> {
        let base = module.data_address;
        let word = |place: u64| word(module, place).ok_or_else(|| wrong(base + place, "the header is cut off"));
        if word(0)? != HEADER_MAGIC {
            return Err(wrong(base, "there is no header"));
        }
        let pointers = pointers(module)?;
        let pointer = |place: u64| {
            let found = pointers.get(&(base + place)).copied();
            found.ok_or_else(|| wrong(base + place, "a word that is to be an address is not relocated"))
        };
        let (function_count, entry_count) = (word(32)?, word(48)?);
        let arrays = pointer(FUNCTIONS_WORD)?;
        let entries_at = arrays.checked_add(function_count.saturating_mul(8));
        let signatures_at = entries_at.and_then(|at| at.checked_add(entry_count.saturating_mul(8)));
        let end = signatures_at.and_then(|at| at.checked_add(function_count.saturating_mul(4)));
        let data_end = base.checked_add(module.data.len() as u64);
        let (Some(entries_at), Some(signatures_at), Some(end), Some(data_end)) =
            (entries_at, signatures_at, end, data_end)
        else {
            return Err(wrong(base, "the arrays reach beyond the address space"));
        };
        if arrays != base + HEADER_BYTES || pointer(ENTRIES_WORD)? != entries_at || end > data_end {
            return Err(wrong(base, "the arrays do not follow the header"));
        }
        if pointers.len() as u64 != 3 + function_count + entry_count {
            return Err(wrong(base, "a word of the data is relocated that is no address of the header or the arrays"));
        }
        let record = record(module, pointer(RECORD_WORD)?, word(16)?)?;
        let sound = record.functions.len() as u64 == function_count && record.signatures.len() as u64 == entry_count;
        if !sound || record.tables.len() > MAX_TABLES || record.globals.len() > MAX_GLOBALS {
            return Err(wrong(base, "the record does not fit the arrays"));
        }
        let starts = |at: u64, count: u64| -> Result<Vec<usize>, Violation> {
            (0..count).map(|number| start(module, &pointers, at + number * 8)).collect()
        };
        let function_starts = starts(arrays, function_count)?;
        let entry_starts = starts(entries_at, entry_count)?;
        let ends = ends(module, &function_starts, &entry_starts)?;
        let mut functions = Vec::with_capacity(function_starts.len());
        for (number, (start, function)) in function_starts.iter().zip(&record.functions).enumerate() {
            let at = signatures_at + number as u64 * 4;
            let sealed = module.data.get((at - base) as usize..).and_then(|rest| rest.first_chunk());
            let sealed = sealed.map(|bytes| u32::from_le_bytes(*bytes));
            if sealed != Some(function.signature) || u64::from(function.signature) >= entry_count {
                return Err(wrong(at, "a function's signature differs from that in the record"));
            }
            functions.push((*start..ends[start], function.signature));
        }
        let by_address = functions.iter().enumerate();
        let by_address =
            by_address.map(|(number, (range, _))| (module.text_address + range.start as u64, number as u32)).collect();
        Ok(Environment {
            module,
            functions,
            entries: entry_starts.iter().map(|start| *start..ends[start]).collect(),
            conventions: record.signatures.iter().map(Convention::of).collect(),
            by_address,
            function_array: arrays,
            signature_array: signatures_at,
            tables: record.tables.len() as u32,
            context_bytes: global(record.tables.len() as u32, record.globals.len() as u32),
        })
    }

    /// All functions and entries.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let functions = (0..self.functions.len() as u32).map(Place::Function);
        functions.chain((0..self.entries.len() as u32).map(Place::Entry))
    }

    /// The text of a function or entry.
    pub fn range(&self, place: Place) -> Range<usize> {
        match place {
            Place::Function(index) => self.functions.get(index as usize).map(|(range, _)| range.clone()),
            Place::Entry(index) => self.entries.get(index as usize).cloned(),
            Place::Module => None,
        }
        .unwrap_or(0..0)
    }

    /// The convention of a function.
    pub fn convention(&self, function: u32) -> Option<Convention> {
        let (_, signature) = self.functions.get(function as usize)?;
        self.conventions.get(*signature as usize).copied()
    }

    /// Whether code may write this part of the context: arguments and globals.
    pub fn is_writable(&self, range: &Range<i64>) -> bool {
        let arguments = i64::from(ARGUMENTS)..i64::from(TABLES);
        let globals = i64::from(global(self.tables, 0))..i64::from(self.context_bytes);
        [arguments, globals].iter().any(|part| range.start >= part.start && range.end <= part.end)
    }

    /// Whether code may read this part of the context: all but the runtime's own words.
    pub fn is_readable(&self, range: &Range<i64>) -> bool {
        let bounds = 0..i64::from(wasm_record::layout::RUNTIME);
        let rest = i64::from(ARGUMENTS)..i64::from(self.context_bytes);
        [bounds, rest].iter().any(|part| range.start >= part.start && range.end <= part.end)
    }

    /// The table whose words are at an offset of the context, and whether the word is that of its size.
    pub fn table_word(&self, offset: i64) -> Option<(u8, bool)> {
        let offset = u32::try_from(offset).ok()?.checked_sub(TABLES)?;
        let (table, within) = (offset / SLOT_BYTES, offset % SLOT_BYTES);
        (table < self.tables && within.is_multiple_of(8)).then_some((table as u8, within == 8))
    }

    /// Bytes of the data at an address.
    pub fn data(&self, address: u64, bytes: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(address.checked_sub(self.module.data_address)?).ok()?;
        self.module.data.get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
    }
}

fn word(module: &Module<'_>, place: u64) -> Option<u64> {
    module.data.get(place as usize..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The relocated words of the data. A word that overlaps its end is among them.
fn pointers(module: &Module<'_>) -> Result<BTreeMap<u64, u64>, Violation> {
    let mut pointers = BTreeMap::new();
    let end = module.data_address.saturating_add(module.data.len() as u64);
    let text_end = module.text_address.saturating_add(module.text.len() as u64);
    for &(place, address) in module.relocations {
        if place.saturating_add(8) > module.text_address && place < text_end {
            return Err(wrong(place, "code is relocated"));
        }
        if place.saturating_add(8) <= module.data_address || place >= end {
            continue;
        }
        if pointers.insert(place, address).is_some() {
            return Err(wrong(place, "a word is relocated twice"));
        }
    }
    Ok(pointers)
}

fn record<'a>(module: &Module<'a>, address: u64, bytes: u64) -> Result<Record<'a>, Violation> {
    let found = address.checked_sub(module.data_address).and_then(|start| {
        let start = usize::try_from(start).ok()?;
        module.data.get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
    });
    let found = found.ok_or_else(|| wrong(address, "the record lies outside of the data"))?;
    Record::parse(found).map_err(|_| wrong(address, "the record is malformed"))
}

/// Where a function starts in the text, by the word at an address.
fn start(module: &Module<'_>, pointers: &BTreeMap<u64, u64>, place: u64) -> Result<usize, Violation> {
    let address = pointers.get(&place).ok_or_else(|| wrong(place, "an address of a function is not relocated"))?;
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
