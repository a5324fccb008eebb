//! Parts of manifests, for findings about them.

use core::fmt;

/// A part of a manifest, called as in its source: `contract[1].name` of a program's, `program[1].devices[0]` of a
/// system's. Readers of the source replace it by a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    table: &'static str,
    row: Option<usize>,
    key: &'static str,
    item: Option<usize>,
}

impl Field {
    /// A key of a non-repeated table.
    pub const fn of(table: &'static str, key: &'static str) -> Field {
        Field { table, row: None, key, item: None }
    }

    /// A key of one of several tables of the same name, counted from 0.
    pub const fn row(table: &'static str, row: usize, key: &'static str) -> Field {
        Field { table, row: Some(row), key, item: None }
    }

    /// A table as a whole.
    pub const fn table(table: &'static str, row: Option<usize>) -> Field {
        Field { table, row, key: "", item: None }
    }

    /// A key of the same table.
    pub const fn key(self, key: &'static str) -> Field {
        Field { key, item: None, ..self }
    }

    /// The same field of another table of its name, or of all of them.
    pub const fn of_row(self, row: Option<usize>) -> Field {
        Field { row, ..self }
    }

    /// Returns whether it is a part of a system manifest.
    pub(crate) fn is_of_system(self) -> bool {
        matches!((self.table, self.row), ("system" | "bind" | "deny", _) | ("program", Some(_)))
    }

    /// Returns the enclosing field: the list of an item, the table of a key.
    pub const fn outer(self) -> Option<Field> {
        match (self.item, self.key.is_empty()) {
            (Some(_), _) => Some(Field { item: None, ..self }),
            (None, false) => Some(Field { key: "", ..self }),
            (None, true) => None,
        }
    }

    /// An item of the key's list, counted from 0.
    pub const fn item(self, item: usize) -> Field {
        Field { item: Some(item), ..self }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table)?;
        if let Some(row) = self.row {
            write!(f, "[{row}]")?;
        }
        if !self.key.is_empty() {
            write!(f, ".{}", self.key)?;
        }
        match self.item {
            Some(item) => write!(f, "[{item}]"),
            None => Ok(()),
        }
    }
}

/// A field and the label shown at its place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The field.
    pub field: Field,
    /// A phrase.
    pub label: &'static str,
}
