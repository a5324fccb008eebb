//! Files of a system manifest: itself, its base, the base's base, and so on.
//!
//! Deliberately not here: locating the files, which is up to the caller.

use diagnostics::SourceFile;
use manifest_model::is_name;
use toml::Spanned;
use toml::de::DeTable;

use crate::diagnostic::Code;
use crate::reader::{At, Report, list};

/// The source of a system manifest.
#[derive(Clone, Debug)]
pub struct SystemFile {
    /// Its name in messages.
    pub file: String,
    /// Its content.
    pub text: String,
}

/// A file whose text is moved to its offset, so that every span identifies the file too.
pub(crate) struct Placed {
    pub(crate) source: SourceFile,
    /// Offset of its spans: 0 for the first file, after the preceding files for its bases.
    pub(crate) start: usize,
    pub(crate) moved: String,
}

/// Returns the file and its bases, as far as they can be read. `find` returns a system manifest by name.
pub(crate) fn chain(report: &Report, first: SystemFile, find: &dyn Fn(&str) -> Option<SystemFile>) -> Vec<Placed> {
    let mut files: Vec<Placed> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut next = Some(first);
    while let Some(SystemFile { file, text }) = next.take() {
        let start = files.last().map_or(0, |last| last.moved.len() + 1);
        // TOML ignores leading blanks.
        let moved = format!("{}{text}", " ".repeat(start));
        let base = DeTable::parse(&moved).ok().and_then(|table| base_of(&table));
        files.push(Placed { source: SourceFile::new(file, text), start, moved });
        let Some(base) = base else { break };
        if let Some(first) = names.iter().position(|name| *name == base.value) {
            let others = &names[first + 1..];
            let way = if others.is_empty() { String::new() } else { format!(" by way of {}", list(others)) };
            let message = format!("the system `{}` is based on itself{way}", base.value);
            let remedy = "let one of these systems do without a base".to_string();
            report.add(Code::BaseCycle, message, &base.span, "this base has been there before", remedy);
            break;
        }
        next = if is_name(&base.value) { find(&base.value) } else { None };
        if next.is_none() {
            let message = format!("there is no system `{}` to be based on", base.value);
            let remedy = "name a file of the same folder, without `.toml`".to_string();
            report.add(Code::UnknownBase, message, &base.span, "not a system", remedy);
        }
        names.push(base.value);
    }
    files
}

/// Returns `base` of `[system]`, if it is a text; any other type is reported when the table is read.
fn base_of(table: &Spanned<DeTable<'_>>) -> Option<At<String>> {
    let base = table.get_ref().get("system")?.get_ref().as_table()?.get("base")?;
    Some(At::new(base.get_ref().as_str()?.into(), base.span()))
}
