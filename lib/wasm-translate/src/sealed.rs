//! Tables that nothing changes, which are most: what is in them is known, and lies in the read-only data, so that an
//! indirect call compares with a constant and reads no table of the instance.
//!
//! Key type: [`Sealed`]. The instance has its tables all the same, for what reads them otherwise.

use alloc::vec::Vec;

use wasm_record::{ExportKind, Mode, NULL, ValueType};
use wasmparser::Operator;

use crate::module::{Body, Module};

/// Maximum entries of all tables that are sealed: the copy takes four bytes of each.
const MAX_ENTRIES: usize = 1 << 16;

/// The tables of a module that neither its code nor anybody else changes.
#[derive(Default)]
pub struct Sealed {
    /// Their entries, one table after the other.
    bytes: Vec<u8>,
    /// Of each table, where its entries start in bytes, and how many they are.
    places: Vec<Option<(u32, u32)>>,
}

impl Sealed {
    /// Finds them.
    pub fn of(module: &Module<'_>, bodies: &[Body<'_>]) -> Sealed {
        let mut left = MAX_ENTRIES;
        let mut entries: Vec<_> =
            (0..module.tables.len() as u32).map(|table| initial(module, table, &mut left)).collect();
        for body in bodies {
            if entries.iter().all(Option::is_none) {
                break;
            }
            leave_out_changed(body, &mut entries);
        }
        let mut sealed = Sealed::default();
        for table in entries {
            sealed.places.push(table.map(|table| {
                let place = (sealed.bytes.len() as u32, table.len() as u32);
                sealed.bytes.extend(table.iter().flat_map(|entry| entry.to_le_bytes()));
                place
            }));
        }
        sealed
    }

    /// The entries of all, for the start of the constants.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the entries of a table start there, in bytes, and how many they are.
    pub fn place(&self, table: u32) -> Option<(u32, u32)> {
        self.places.get(table as usize).copied().flatten()
    }
}

/// What a table has once the module is instantiated; `None` if others may change it, if it has nothing, or more than is
/// left.
fn initial(module: &Module<'_>, table: u32, left: &mut usize) -> Option<Vec<u32>> {
    let own = module.tables.get(table as usize).filter(|_| table >= module.imported_tables)?;
    let is_exported = module.exports.iter().any(|export| export.kind == ExportKind::Table && export.index == table);
    let is_filled =
        module.elements.iter().any(|one| matches!(one.mode, Mode::Active { target, .. } if target == table));
    if own.kind != ValueType::FuncRef || !is_filled || is_exported {
        return None;
    }
    let count = usize::try_from(own.limits.min).ok()?;
    *left = left.checked_sub(count)?;
    let mut entries = alloc::vec![NULL; count];
    for element in &module.elements {
        if let Mode::Active { target, offset } = element.mode
            && target == table
        {
            // One that does not fit ends the instantiation with a trap.
            let start = usize::try_from(offset).ok()?;
            entries.get_mut(start..start.checked_add(element.items.len())?)?.copy_from_slice(&element.items);
        }
    }
    Some(entries)
}

/// Forgets the tables that a function changes; all, if it cannot be read: then its validation fails.
fn leave_out_changed(body: &Body<'_>, entries: &mut [Option<Vec<u32>>]) {
    let Body::Code(body, _) = body else { return };
    let Ok(mut reader) = body.get_operators_reader() else { return entries.fill(None) };
    while !reader.eof() {
        let changed = match reader.read() {
            Ok(
                Operator::TableSet { table }
                | Operator::TableGrow { table }
                | Operator::TableFill { table }
                | Operator::TableInit { table, .. }
                | Operator::TableCopy { dst_table: table, .. },
            ) => table,
            Ok(_) => continue,
            Err(_) => return entries.fill(None),
        };
        if let Some(entry) = entries.get_mut(changed as usize) {
            *entry = None;
        }
    }
}
