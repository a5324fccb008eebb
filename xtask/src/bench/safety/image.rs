//! Images of programs without their checks.
//!
//! Deliberately not here: which code is a check (`checks`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use elf::ElfBytes;
use elf::abi::{SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS};
use elf::endian::LittleEndian;
use elf::section::SectionHeader;
use iced_x86::Mnemonic;
use sing::failure::{Failure, Outcome};

use super::checks::{self, Counts, Kind};
use super::code::Code;

/// Parts of the mangled names of functions that report a failure, in either way of mangling.
const FAILING: [(&str, Kind); 12] = [
    ("9panicking18panic_bounds_check", Kind::Bounds),
    ("5slice5index16slice_index_fail", Kind::Bounds),
    ("3str16slice_error_fail", Kind::Bounds),
    ("17len_mismatch_fail", Kind::Bounds),
    ("3vec", Kind::Bounds),
    // The more special name first: the first that fits counts.
    ("panic_const_async_fn_resumed", Kind::Resumed),
    ("9panicking11panic_const", Kind::Arithmetic),
    ("6option13unwrap_failed", Kind::Unwrap),
    ("6option13expect_failed", Kind::Unwrap),
    ("6result13unwrap_failed", Kind::Unwrap),
    ("4cell22panic_already_borrowed", Kind::Unwrap),
    ("4cell30panic_already_mutably_borrowed", Kind::Unwrap),
];
/// End of the names of the failures of `Vec`, which are nested in its functions.
const OF_VEC: (&str, &str) = ("3vec", "13assert_failed");
const ENTRY_BYTES: usize = 4;

type File<'a> = ElfBytes<'a, LittleEndian>;

/// An image without checks.
pub struct Unchecked {
    /// The file.
    pub image: Vec<u8>,
    /// What was removed from it.
    pub counts: Counts,
    /// Size of its code.
    pub code_bytes: usize,
}

/// Removes the checks from an image.
///
/// # Errors
/// It is not an image with symbols.
pub fn without_checks(program: &str, image: &[u8]) -> Outcome<Unchecked> {
    rewritten(image)
        .ok_or_else(|| Failure::new(format!("the image of `{program}` has no code with symbols")).remedy("rebuild it"))
}

fn rewritten(image: &[u8]) -> Option<Unchecked> {
    let file = File::minimal_parse(image).ok()?;
    let sections: Vec<SectionHeader> = file.section_headers()?.iter().collect();
    let text = sections.iter().find(|section| has_flags(section, SHF_ALLOC | SHF_EXECINSTR))?;
    let place = bytes_of(text)?;
    let code = image.get(place.clone())?;
    let indirect = table_targets(image, &sections, &Code::decode(code, text.sh_addr));
    let failing = failing(&file)?;
    let mut image = image.to_vec();
    let counts = checks::remove(image.get_mut(place.clone())?, text.sh_addr, &failing, &indirect);
    Some(Unchecked { image, counts, code_bytes: place.len() })
}

fn has_flags(section: &SectionHeader, flags: u32) -> bool {
    section.sh_type == SHT_PROGBITS && section.sh_flags & u64::from(flags) == u64::from(flags)
}

fn bytes_of(section: &SectionHeader) -> Option<Range<usize>> {
    let start = usize::try_from(section.sh_offset).ok()?;
    Some(start..start.checked_add(usize::try_from(section.sh_size).ok()?)?)
}

/// The functions that report a failure, by address.
fn failing(file: &File<'_>) -> Option<BTreeMap<u64, Kind>> {
    let (table, names) = file.symbol_table().ok()??;
    let named = |symbol: elf::symbol::Symbol| Some((symbol.st_value, kind(names.get(symbol.st_name as usize).ok()?)?));
    Some(table.iter().filter_map(named).collect())
}

fn kind(name: &str) -> Option<Kind> {
    let (vec, end) = OF_VEC;
    let is_of = |part: &str| name.contains(part) && (part != vec || name.contains(end));
    FAILING.iter().find(|(part, _)| is_of(part)).map(|(_, kind)| *kind)
}

/// Addresses to which tables of jumps may lead: constant data whose address the code takes, read as distances from there
/// for as long as they lead to instructions.
fn table_targets(image: &[u8], sections: &[SectionHeader], code: &Code) -> BTreeSet<u64> {
    let tables = code
        .iter()
        .filter(|(_, instruction)| instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand());
    let bases: BTreeSet<u64> = tables.map(|(_, instruction)| instruction.ip_rel_memory_address()).collect();
    let mut targets = BTreeSet::new();
    for base in bases {
        let entries = data_from(image, sections, base).unwrap_or_default().as_chunks::<ENTRY_BYTES>().0;
        let leads_to = entries.iter().map(|entry| base.wrapping_add_signed(i32::from_le_bytes(*entry).into()));
        targets.extend(leads_to.take_while(|target| code.index(*target).is_some()));
    }
    targets
}

/// The rest of the data section that holds the address.
fn data_from<'a>(image: &'a [u8], sections: &[SectionHeader], address: u64) -> Option<&'a [u8]> {
    let holds = |section: &&SectionHeader| {
        has_flags(section, SHF_ALLOC)
            && !has_flags(section, SHF_EXECINSTR)
            && (section.sh_addr..section.sh_addr + section.sh_size).contains(&address)
    };
    let section = sections.iter().find(holds)?;
    image.get(bytes_of(section)?)?.get(usize::try_from(address - section.sh_addr).ok()?..)
}

#[cfg(test)]
mod tests;
