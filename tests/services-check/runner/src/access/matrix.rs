//! The tables of principals by operations, as the files `matrix.txt` and `volume.txt` have them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Operations of the probe.
const COUNT: usize = 12;

/// A table, and the probe's operations for it, in the probe's order.
pub(super) struct Table {
    text: &'static str,
    pub(super) operations: [&'static str; COUNT],
}

/// Names of the directory service.
pub(super) const NAMES: Table = Table {
    text: include_str!("matrix.txt"),
    operations: [
        "pass", "list", "look", "follow", "get-acl", "connect", "make", "link", "take-out", "register", "hear",
        "set-acl",
    ],
};

/// Files and folders of a volume.
pub(super) const FILES: Table = Table {
    text: include_str!("volume.txt"),
    operations: [
        "pass", "list", "look", "follow", "get-acl", "read", "change", "make", "link", "take-out", "rename", "set-acl",
    ],
};

/// Principal of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Principal {
    /// The probe, started without an invocation.
    Plain,
    /// The probe, invoked by the suite.
    Invoked,
    /// The probe, invoked by the suite in the role `reader`.
    Reader,
    /// The probe, invoked by the suite in the role `editor`.
    Editor,
    /// Another program, invoked by the suite.
    Stranger,
    /// A program that no rule of the system covers, invoked by the suite.
    Outsider,
}

/// One folder.
pub(super) struct Case {
    /// Its path, relative to the parent folder of all.
    pub(super) folder: String,
    /// Its list, without the suite's own entry; empty if it has none.
    pub(super) list: String,
    /// A bit for each operation permitted to each principal.
    pub(super) may: Vec<(Principal, u32)>,
}

impl Principal {
    const ALL: [(Principal, &'static str); 6] = [
        (Principal::Plain, "plain"),
        (Principal::Invoked, "invoked"),
        (Principal::Reader, "reader"),
        (Principal::Editor, "editor"),
        (Principal::Stranger, "stranger"),
        (Principal::Outsider, "outsider"),
    ];

    /// The program of the principal.
    pub(super) fn program(self) -> &'static str {
        match self {
            Principal::Stranger => "access-stranger",
            Principal::Outsider => "outsider",
            _ => "access-probe",
        }
    }

    /// Whether it is invoked, and in which role.
    pub(super) fn invocation(self) -> Option<Option<&'static str>> {
        match self {
            Principal::Plain => None,
            Principal::Invoked | Principal::Stranger | Principal::Outsider => Some(None),
            Principal::Reader => Some(Some("reader")),
            Principal::Editor => Some(Some("editor")),
        }
    }
}

impl Table {
    /// The folders of the table, parents first.
    pub(super) fn cases(&self) -> Result<Vec<Case>, String> {
        let mut cases: Vec<Case> = Vec::new();
        let lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            if let Some(entry) = line.strip_prefix('|') {
                let case = cases.last_mut().ok_or("an entry before any folder")?;
                case.list += &format!("{}\n", entry.trim());
            } else if let Some((who, what)) = line.split_once(": ") {
                let (principal, _) =
                    Principal::ALL.iter().find(|(_, word)| *word == who).ok_or_else(|| format!("`{who}` is nobody"))?;
                let case = cases.last_mut().ok_or("a principal before any folder")?;
                case.may.push((*principal, self.bits(what)?));
            } else {
                cases.push(Case { folder: line.to_string(), list: String::new(), may: Vec::new() });
            }
        }
        match cases.iter().find(|case| case.may.len() != Principal::ALL.len()) {
            Some(case) => Err(format!("the table does not tell of everybody in {}", case.folder)),
            None => Ok(cases),
        }
    }

    fn bits(&self, words: &str) -> Result<u32, String> {
        match words {
            "everything" => Ok((1 << COUNT) - 1),
            "nothing" => Ok(0),
            words => words.split(' ').try_fold(0, |bits, word| {
                let bit = self.operations.iter().position(|operation| *operation == word);
                bit.map(|bit| bits | 1 << bit).ok_or_else(|| format!("`{word}` is no operation"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../../docs/access-control.md");

    fn cell(table: &Table, bits: u32) -> String {
        let words: Vec<&str> = table
            .operations
            .iter()
            .enumerate()
            .filter(|(bit, _)| bits & 1 << bit != 0)
            .map(|(_, word)| *word)
            .collect();
        match words.len() {
            0 => "nothing".to_string(),
            count if count == COUNT => "everything".to_string(),
            _ => words.join(", "),
        }
    }

    /// Formats the table as in the documentation. Principals with the same rights share a cell's text, not the cell.
    fn shown(table: &Table) -> String {
        let words: Vec<&str> = Principal::ALL.iter().map(|(_, word)| *word).collect();
        let mut text =
            format!("| folder and list | {} |\n| --- |{}\n", words.join(" | "), " --- |".repeat(words.len()));
        for case in table.cases().unwrap() {
            let entries: Vec<String> =
                case.list.lines().map(|line| format!("`{}`", line.replace('|', "\\|"))).collect();
            let list = if entries.is_empty() { "no list".to_string() } else { entries.join("<br>") };
            let cells: Vec<String> = case.may.iter().map(|(_, bits)| cell(table, *bits)).collect();
            text += &format!("| **{}**<br>{list} | {} |\n", case.folder, cells.join(" | "));
        }
        text
    }

    #[test]
    fn the_page_shows_the_tables() {
        for table in [NAMES, FILES] {
            let table = shown(&table);
            assert!(PAGE.contains(&table), "put this into docs/access-control.md:\n{table}");
        }
    }
}
