//! Builtins: growth, and operations on ranges of memory and tables (WebAssembly 2.0, section 4.4). Safe code.

use wasm_record::Numbers;
use wasm_record::layout::Builtin;

use crate::instance::State;
use crate::tables::Entries;

const MEMORY_BOUNDS: &str = "out of bounds memory access";
const TABLE_BOUNDS: &str = "out of bounds table access";
/// The result of growth that fails.
const FAILED: u64 = u32::MAX as u64;

/// Performs a builtin; returns its result, 0 if it has none.
///
/// # Errors
/// The kind of the trap.
#[inline]
pub(crate) fn perform(state: &mut State, builtin: Builtin, arguments: [u64; 4]) -> Result<u64, &'static str> {
    let [a, b, c, d] = arguments;
    match builtin {
        Builtin::MemoryGrow => return Ok(state.memory.as_mut().and_then(|memory| memory.grow(a)).unwrap_or(FAILED)),
        Builtin::MemoryFill => place(state.memory(), a, c).ok_or(MEMORY_BOUNDS)?.fill(b as u8),
        Builtin::MemoryCopy => {
            let memory = state.memory();
            let to = range(memory.len(), a, c).ok_or(MEMORY_BOUNDS)?;
            let from = range(memory.len(), b, c).ok_or(MEMORY_BOUNDS)?;
            memory.copy_within(from, to.start);
        }
        Builtin::MemoryInit => memory_init(state, a as usize, [b, c, d])?,
        Builtin::DataDrop => set(&mut state.dropped_data, a),
        Builtin::TableGrow => {
            let table = state.tables.get_mut(a as usize);
            return Ok(table.and_then(|table| table.grow(b as u32, c)).unwrap_or(FAILED));
        }
        Builtin::TableFill => {
            let entries = entries(&mut state.tables, a).ok_or(TABLE_BOUNDS)?;
            place(entries, b, d).ok_or(TABLE_BOUNDS)?.fill(c as u32);
        }
        Builtin::TableCopy => table_copy(&mut state.tables, a, [b, c, d]).ok_or(TABLE_BOUNDS)?,
        Builtin::TableInit => table_init(state, a & 0xffff_ffff, (a >> 32) as usize, [b, c, d])?,
        Builtin::ElementDrop => set(&mut state.dropped_elements, a),
    }
    Ok(0)
}

/// Copies an element segment into a table: to, from, number.
pub(crate) fn table_init(
    state: &mut State,
    table: u64,
    segment: usize,
    [to, from, number]: [u64; 3],
) -> Result<(), &'static str> {
    let items = match state.module.record().elements.get(segment) {
        Ok(Some(element)) if state.dropped_elements.get(segment) == Some(&false) => element.items,
        _ => Numbers::NONE,
    };
    let from = range(items.len(), from, number);
    let to = entries(&mut state.tables, table).and_then(|entries| place(entries, to, number));
    let (Some(from), Some(to)) = (from, to) else { return Err(TABLE_BOUNDS) };
    for (entry, item) in to.iter_mut().zip(items.iter().skip(from.start)) {
        *entry = item;
    }
    Ok(())
}

/// Copies a data segment into memory: to, from, length.
pub(crate) fn memory_init(state: &mut State, segment: usize, [to, from, length]: [u64; 3]) -> Result<(), &'static str> {
    let bytes: &'static [u8] = match state.module.record().data.get(segment) {
        Ok(Some(data)) if state.dropped_data.get(segment) == Some(&false) => data.bytes,
        _ => &[],
    };
    let from = range(bytes.len(), from, length).map(|range| &bytes[range]);
    let (Some(from), Some(to)) = (from, place(state.memory(), to, length)) else { return Err(MEMORY_BOUNDS) };
    to.copy_from_slice(from);
    Ok(())
}

fn table_copy(tables: &mut [Entries], both: u64, [to, from, number]: [u64; 3]) -> Option<()> {
    let (to_table, from_table) = ((both & 0xffff_ffff) as usize, (both >> 32) as usize);
    if to_table == from_table {
        let table = tables.get_mut(to_table)?.entries.as_mut_slice();
        let to = range(table.len(), to, number)?.start;
        table.copy_within(range(table.len(), from, number)?, to);
        return Some(());
    }
    let [target, source] = tables.get_disjoint_mut([to_table, from_table]).ok()?;
    let source = &source.entries[range(source.entries.len(), from, number)?];
    place(&mut target.entries, to, number)?.copy_from_slice(source);
    Some(())
}

fn entries(tables: &mut [Entries], index: u64) -> Option<&mut [u32]> {
    tables.get_mut(index as usize).map(|table| table.entries.as_mut_slice())
}

fn set(flags: &mut [bool], index: u64) {
    if let Some(flag) = flags.get_mut(index as usize) {
        *flag = true;
    }
}

fn range(length: usize, start: u64, number: u64) -> Option<core::ops::Range<usize>> {
    let end = start.checked_add(number).filter(|&end| end <= length as u64)?;
    Some(start as usize..end as usize)
}

fn place<T>(all: &mut [T], start: u64, number: u64) -> Option<&mut [T]> {
    let range = range(all.len(), start, number)?;
    Some(&mut all[range])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_within() {
        assert_eq!(range(4, 0, 4), Some(0..4));
        assert_eq!(range(4, 4, 0), Some(4..4));
        assert_eq!(range(4, 5, 0), None);
        assert_eq!(range(4, 2, 3), None);
        assert_eq!(range(4, u64::MAX, 2), None);
    }
}
