//! Tables: references as numbers. Code checks an index against the number of entries, and what it finds there before it
//! is called.

use alloc::vec::Vec;

use wasm_record::{NULL, Table};

/// Maximum number of entries of a table.
const MAX_ENTRIES: u64 = 10_000_000;

/// A table of an instance.
pub(crate) struct Entries {
    pub(crate) entries: Vec<u32>,
    max: u64,
}

impl Entries {
    /// A table with its minimum of null references; `None` if there is not enough memory.
    pub(crate) fn new(table: &Table) -> Option<Entries> {
        let mut new = Entries { entries: Vec::new(), max: table.limits.max.min(MAX_ENTRIES) };
        new.grow(NULL, table.limits.min).map(|_| new)
    }

    /// Adds entries; returns the former number, or `None` if there is not enough memory.
    pub(crate) fn grow(&mut self, value: u32, number: u64) -> Option<u64> {
        let former = self.entries.len();
        let wanted = (former as u64).checked_add(number).filter(|&wanted| wanted <= self.max)?;
        let wanted = usize::try_from(wanted).ok()?;
        self.entries.try_reserve_exact(wanted - former).ok()?;
        self.entries.resize(wanted, value);
        Some(former as u64)
    }
}
