//! `[[domain]]` of a system manifest: hardware domains.

use install::Field;
use manifest_model::{Apart, Category, Domain};

use crate::reader::{At, Table};

/// A domain, and where its fields are.
pub(crate) struct Entry {
    pub(crate) domain: Apart,
    pub(crate) places: Vec<(Field, At<String>)>,
}

/// Reads the domains of all files in the order in which they take programs: those of the system manifest, then those of
/// its bases.
pub(crate) fn read(files: &[Table<'_, '_>]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for file in files {
        for table in file.bounded_tables("domain") {
            entries.extend(read_one(&table, entries.len()));
            table.close();
        }
    }
    entries
}

fn read_one(table: &Table<'_, '_>, row: usize) -> Option<Entry> {
    let name = table.required_text("name");
    let kind = table.required_word("kind", Domain::from_word);
    let who = table.bounded_texts("who");
    let categories: Vec<Category> = table
        .texts("categories")
        .iter()
        .filter_map(|text| table.as_word("category", text, Category::from_word, Category::WORDS))
        .map(|category| category.value)
        .collect();
    let each = table.flag("each").value;
    let (name, kind) = (name?, kind?);
    let patterns = who.iter().enumerate();
    let mut places: Vec<_> =
        patterns.map(|(item, who)| (Field::row("domain", row, "who").item(item), who.clone())).collect();
    places.push((Field::row("domain", row, "name"), name.clone()));
    let who = who.into_iter().map(|who| who.value).collect();
    Some(Entry { domain: Apart { name: name.value, kind: kind.value, who, categories, each }, places })
}
