//! Typed access to TOML with source places, collecting diagnostics.
//!
//! Deliberately not here: the set of keys (see [`crate::shapes`]), and their meaning.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use diagnostics::{Label, nearest};
use install::Field;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{self, Code, Diagnostic};
use crate::shapes::{Key, Kind, Presence, Shape};

/// A place in the file, counted from where the file starts.
pub(crate) type Span = Range<usize>;

/// A place and its label.
pub(crate) struct Mark {
    pub(crate) span: Span,
    pub(crate) text: String,
}

/// A diagnostic before the files are known.
struct Found {
    code: diagnostic::Kind,
    message: String,
    marks: Vec<Mark>,
    remedy: String,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> At<T> {
    pub(crate) fn new(value: T, span: Span) -> At<T> {
        At { value, span }
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At { value: change(self.value), span: self.span }
    }
}

/// Diagnostics so far.
#[derive(Default)]
pub(crate) struct Report {
    items: RefCell<Vec<Found>>,
    /// Source places of the manifest's fields.
    places: RefCell<BTreeMap<Field, Span>>,
}

impl Report {
    pub(crate) fn add(
        &self,
        code: impl Into<diagnostic::Kind>,
        message: String,
        span: &Span,
        label: &str,
        remedy: String,
    ) {
        self.add_labels(code, message, vec![Mark { span: span.clone(), text: label.into() }], remedy);
    }

    /// Adds a diagnostic with a second place: the first of two items.
    pub(crate) fn add_second(
        &self,
        code: impl Into<diagnostic::Kind>,
        message: String,
        span: (&Span, &str),
        other: (&Span, &str),
        remedy: String,
    ) {
        let labels = [span, other].map(|(span, text)| Mark { span: span.clone(), text: text.into() });
        self.add_labels(code, message, labels.into(), remedy);
    }

    pub(crate) fn add_labels(
        &self,
        code: impl Into<diagnostic::Kind>,
        message: String,
        marks: Vec<Mark>,
        remedy: String,
    ) {
        self.items.borrow_mut().push(Found { code: code.into(), message, marks, remedy });
    }

    /// Returns the number of diagnostics so far.
    pub(crate) fn count(&self) -> usize {
        self.items.borrow().len()
    }

    /// Sets the source places of the manifest's fields, replacing those collected table by table.
    pub(crate) fn place(&self, places: BTreeMap<Field, Span>) {
        *self.places.borrow_mut() = places;
    }

    /// Returns the source place of a field. A missing field has the place of its table, or the start of the file.
    pub(crate) fn span(&self, field: Field) -> Span {
        let places = self.places.borrow();
        let outwards = std::iter::successors(Some(field), |field| field.outer());
        outwards.filter_map(|field| places.get(&field)).next().cloned().unwrap_or(0..0)
    }

    /// Reports a violation of a rule.
    pub(crate) fn add_finding(&self, finding: install::Finding) {
        let mark = |place: &install::Place| Mark { span: self.span(place.field), text: place.label.into() };
        let marks = finding.places.iter().map(mark).collect();
        self.add_labels(finding.code, finding.what, marks, finding.remedy);
    }

    /// Returns all diagnostics, sorted by place. `starts`: the offset of each file.
    pub(crate) fn finish(self, starts: &[usize]) -> Vec<Diagnostic> {
        let mut items = self.items.into_inner();
        items.sort_by_key(|item| item.marks.first().map_or(0, |mark| mark.span.start));
        let label = |mark: Mark| {
            let file = starts.iter().rposition(|&start| start <= mark.span.start).unwrap_or(0);
            let within = |place: usize| place.saturating_sub(starts[file]);
            let span = diagnostics::Span { file, start: within(mark.span.start), end: within(mark.span.end) };
            Label { span, text: mark.text }
        };
        let diagnostic = |Found { code, message, marks, remedy }| Diagnostic {
            code,
            message,
            labels: marks.into_iter().map(label).collect(),
            remedy,
        };
        items.into_iter().map(diagnostic).collect()
    }
}

/// A table that is being read key by key. `close` reports keys outside its shape.
pub(crate) struct Table<'r, 'i> {
    report: &'r Report,
    table: &'r DeTable<'i>,
    shape: &'static Shape,
    /// Display name: `[program]`.
    name: String,
    /// Start of the table.
    pub(crate) span: Span,
    /// The table as a part of a program's manifest, if it is one.
    field: Option<Field>,
    /// Keys that were read: in the end all keys of the shape.
    asked: RefCell<Vec<&'static str>>,
}

impl<'r, 'i> Table<'r, 'i> {
    pub(crate) fn new(report: &'r Report, table: &'r DeTable<'i>, shape: &'static Shape, span: Span) -> Self {
        Table { report, table, shape, name: shape.name.into(), span, field: None, asked: RefCell::default() }
    }

    /// Sets another name for messages.
    pub(crate) fn called(self, name: String) -> Self {
        Table { name, ..self }
    }

    /// Returns the value of a key, if present.
    pub(crate) fn get(&self, key: &'static str) -> Option<&'r Spanned<DeValue<'i>>> {
        self.key(key);
        let value = self.table.get(key)?;
        if let Some(field) = self.field {
            let mut places = self.report.places.borrow_mut();
            let items = value.get_ref().as_array().into_iter().flatten().enumerate();
            places.extend(items.map(|(index, item)| (field.key(key).item(index), item.span())));
            places.insert(field.key(key), value.span());
        }
        Some(value)
    }

    /// Sets the field for source places.
    fn placed(self, field: Field) -> Self {
        self.report.places.borrow_mut().insert(field, self.span.clone());
        Table { field: Some(field), ..self }
    }

    /// Returns the description of a key.
    fn key(&self, name: &'static str) -> &'static Key {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&name) {
            asked.push(name);
        }
        match self.shape.key(name) {
            Some(key) => key,
            // Independent of the manifest: the set of keys that are read is fixed.
            None => unreachable!("{} has no key `{name}` in shapes.rs", self.shape.name),
        }
    }

    fn wrong_type(&self, key: &str, wanted: &str, value: &Spanned<DeValue<'i>>) {
        wrong_type(self.report, &format!("`{key}` of {}", self.name), wanted, value);
    }

    fn missing(&self, key: &str, wanted: &str) {
        let message = format!("{} has no `{key}`", self.name);
        let remedy = format!("add `{key} = ...`, {wanted}");
        self.report.add(Code::MissingKey, message, &self.span, &format!("`{key}` is missing here"), remedy);
    }

    /// Returns a text.
    pub(crate) fn text(&self, key: &'static str) -> Option<At<String>> {
        let value = self.get(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some(At::new(text.into(), value.span())),
            None => {
                self.wrong_type(key, "a text in quotes", value);
                None
            }
        }
    }

    /// Returns a required text.
    pub(crate) fn required_text(&self, key: &'static str) -> Option<At<String>> {
        debug_assert_eq!(self.key(key).presence, Presence::Required, "`{key}` of {}", self.shape.name);
        if !self.table.contains_key(key) {
            self.key(key);
            self.missing(key, "a text in quotes");
            return None;
        }
        self.text(key)
    }

    /// Returns an integer; one that exceeds every type is reported as out of the key's range.
    pub(crate) fn integer(&self, key: &'static str) -> Option<At<i64>> {
        self.integer_or(key, Code::WrongType, "out of range")
    }

    /// Returns an integer that a rule checks; one that exceeds every type is reported as out of the key's range.
    pub(crate) fn judged(&self, key: &'static str) -> Option<At<u32>> {
        self.integer(key).and_then(|number| self.fitting(key, number))
    }

    /// As `judged`, for a required key.
    pub(crate) fn required_judged(&self, key: &'static str) -> Option<At<u32>> {
        self.required_integer(key).and_then(|number| self.fitting(key, number))
    }

    fn fitting(&self, key: &'static str, number: At<i64>) -> Option<At<u32>> {
        let value = u32::try_from(number.value).ok();
        if value.is_none() {
            let message = format!("`{key} = {}` is out of range", number.value);
            let remedy = range_remedy(self.range(key));
            self.report.add(Code::WrongType, message, &number.span, "out of range", remedy);
        }
        value.map(|value| At::new(value, number.span))
    }

    /// As `integer`, with the code and the label for a number out of range.
    fn integer_or(&self, key: &'static str, code: Code, label: &str) -> Option<At<i64>> {
        let value = self.get(key)?;
        match integer(value.get_ref()) {
            Some(number) => return Some(At::new(number, value.span())),
            None if is_integer(value.get_ref()) => self.out_of_range(key, code, value, label),
            None => self.wrong_type(key, "a whole number", value),
        }
        None
    }

    /// Reports a number out of the key's range, or those in its list.
    fn out_of_range(&self, key: &'static str, code: Code, value: &Spanned<DeValue<'i>>, label: &str) {
        let message = format!(
            "`{key} = {}` is out of range",
            value.get_ref().as_integer().map(ToString::to_string).unwrap_or_default()
        );
        self.report.add(code, message, &value.span(), label, range_remedy(self.range(key)));
    }

    /// Returns the minimum and maximum of a key's numbers.
    fn range(&self, key: &'static str) -> (i64, i64) {
        match self.key(key).kind {
            Kind::Number(least, most) | Kind::List(&Kind::Number(least, most)) => (least, most),
            _ => (0, i64::from(u32::MAX)),
        }
    }

    /// Returns a required integer.
    fn required_integer(&self, key: &'static str) -> Option<At<i64>> {
        debug_assert_eq!(self.key(key).presence, Presence::Required, "`{key}` of {}", self.shape.name);
        if !self.table.contains_key(key) {
            self.key(key);
            self.missing(key, "a whole number");
            return None;
        }
        self.integer(key)
    }

    /// Returns an integer; one out of the key's range is reported under `code`.
    pub(crate) fn number(&self, key: &'static str, code: Code, label: &str) -> Option<At<u32>> {
        let (least, most) = self.range(key);
        let number = self.integer_or(key, code, label)?;
        let value = u32::try_from(number.value).ok().filter(|_| (least..=most).contains(&number.value));
        if value.is_none() {
            let message = format!("`{key} = {}` is out of range", number.value);
            self.report.add(code, message, &number.span, label, range_remedy((least, most)));
        }
        value.map(|value| At::new(value, number.span))
    }

    /// Returns `true` or `false`; `false` if it is missing.
    pub(crate) fn flag(&self, key: &'static str) -> At<bool> {
        let Some(value) = self.get(key) else { return At::new(false, self.span.clone()) };
        match value.get_ref().as_bool() {
            Some(flag) => At::new(flag, value.span()),
            None => {
                self.wrong_type(key, "`true` or `false`", value);
                At::new(false, value.span())
            }
        }
    }

    /// Returns a list of texts; empty if it is missing.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<At<String>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(key, "a list of texts, `[\"a\", \"b\"]`", value);
            return Vec::new();
        };
        let mut out = Vec::new();
        for item in items {
            match item.get_ref().as_str() {
                Some(text) => out.push(At::new(text.into(), item.span())),
                None => self.wrong_type(key, "a list of texts, `[\"a\", \"b\"]`", item),
            }
        }
        out
    }

    /// Returns a list of texts whose length no rule checks, since a compiled manifest has no such list: the limit
    /// applies to the source.
    pub(crate) fn bounded_texts(&self, key: &'static str) -> Vec<At<String>> {
        let texts = self.texts(key);
        if let (Some(value), Some(finding)) = (self.table.get(key), self.long_list(&format!("`{key}`"), texts.len())) {
            self.report.add(finding.code, finding.what, &value.span(), "this list is too long", finding.remedy);
        }
        texts
    }

    /// Returns a finding for an overlong list of this table.
    fn long_list(&self, list: &str, length: usize) -> Option<install::Finding> {
        let list = format!("{list} of {}", self.name);
        install::long_list(&list, &list, length, Field::table("system", None))
    }

    /// Returns a list of integers; empty if it is missing.
    pub(crate) fn integers(&self, key: &'static str) -> Vec<At<i64>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(key, "a list of whole numbers, `[1, 2]`", value);
            return Vec::new();
        };
        let mut out = Vec::new();
        for item in items {
            match integer(item.get_ref()) {
                Some(number) => out.push(At::new(number, item.span())),
                None if is_integer(item.get_ref()) => self.out_of_range(key, Code::WrongType, item, "out of range"),
                None => self.wrong_type(key, "a list of whole numbers, `[1, 2]`", item),
            }
        }
        out
    }

    /// Returns a text that is one of a few words.
    pub(crate) fn word<T>(&self, key: &'static str, parse: impl Fn(&str) -> Option<T>) -> Option<At<T>> {
        let text = self.text(key)?;
        match self.key(key).kind {
            Kind::Word(words) => self.as_word(key, &text, parse, words),
            _ => None,
        }
    }

    /// Returns a required text that is one of a few words.
    pub(crate) fn required_word<T>(&self, key: &'static str, parse: impl Fn(&str) -> Option<T>) -> Option<At<T>> {
        let is_there = self.required_text(key).is_some();
        is_there.then(|| self.word(key, parse)).flatten()
    }

    /// Parses a text that must be one of a few words.
    pub(crate) fn as_word<T>(
        &self,
        key: &str,
        text: &At<String>,
        parse: impl Fn(&str) -> Option<T>,
        words: &[&str],
    ) -> Option<At<T>> {
        let meaning = parse(&text.value);
        if meaning.is_none() {
            let message = format!("`{}` is no {key} of {}", text.value, self.name);
            self.report.add(
                Code::UnknownWord,
                message,
                &text.span,
                "this word is not known",
                one_of(&text.value, words),
            );
        }
        meaning.map(|meaning| At::new(meaning, text.span.clone()))
    }

    /// Returns a nested table, if present.
    pub(crate) fn table(&self, key: &'static str) -> Option<Table<'r, 'i>> {
        let value = self.get(key)?;
        match value.get_ref().as_table() {
            Some(table) => Some(self.inner(key, table, value.span()).placed(Field::table(key, None))),
            None => {
                self.wrong_type(key, "a table", value);
                None
            }
        }
    }

    fn inner(&self, key: &'static str, table: &'r DeTable<'i>, span: Span) -> Table<'r, 'i> {
        match self.key(key).kind {
            Kind::Table(shape) | Kind::Tables(shape) => Table::new(self.report, table, shape, span),
            _ => unreachable!("`{key}` of {} is no table in shapes.rs", self.shape.name),
        }
    }

    /// Returns the tables `[[key]]`.
    pub(crate) fn tables(&self, key: &'static str) -> Vec<Table<'r, 'i>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(key, &format!("a list of tables, `[[{key}]]`"), value);
            return Vec::new();
        };
        let mut out = Vec::new();
        for (row, item) in items.iter().enumerate() {
            match item.get_ref().as_table() {
                Some(table) => {
                    out.push(self.inner(key, table, item.span()).placed(Field::table(key, Some(row))));
                }
                None => self.wrong_type(key, &format!("a list of tables, `[[{key}]]`"), item),
            }
        }
        out
    }

    /// Returns the tables `[[key]]` of a system manifest, which include those of its bases: the limit applies to each
    /// file.
    pub(crate) fn bounded_tables(&self, key: &'static str) -> Vec<Table<'r, 'i>> {
        let tables = self.tables(key);
        if let (Some(value), Some(finding)) = (self.table.get(key), self.long_list(&format!("[[{key}]]"), tables.len()))
        {
            let remedy = "move some of them to a system that this one is based on: `base = \"...\"`".to_string();
            self.report.add(finding.code, finding.what, &value.span(), "the first is here", remedy);
        }
        tables
    }

    /// Returns the keys and values of a table with user-defined names.
    pub(crate) fn entries(&self, key: &'static str) -> Vec<(At<String>, &'r Spanned<DeValue<'i>>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value);
            return Vec::new();
        };
        let entries = table.iter();
        entries.map(|(key, value)| (At::new(key.get_ref().to_string(), key.span()), value)).collect()
    }

    /// Reports every key that is not in the shape. All keys of the shape have been read.
    pub(crate) fn close(&self) {
        debug_assert!(
            self.shape.names().all(|name| self.asked.borrow().contains(&name)),
            "shapes.rs has keys of {} that nobody reads: only {:?} are",
            self.shape.name,
            self.asked.borrow()
        );
        for (key, _) in self.table.iter().filter(|(key, _)| self.shape.key(key.get_ref()).is_none()) {
            let message = format!("{} has no key `{}`", self.name, key.get_ref());
            let known: Vec<&str> = self.shape.names().collect();
            self.report.add(
                Code::UnknownKey,
                message,
                &key.span(),
                "this key means nothing",
                one_of(key.get_ref(), &known),
            );
        }
    }
}

/// Reports a value of the wrong type.
pub(crate) fn wrong_type(report: &Report, what: &str, wanted: &str, value: &Spanned<DeValue<'_>>) {
    let found = match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    let message = format!("{what} is {wanted}, not {found}");
    report.add(Code::WrongType, message, &value.span(), &format!("this is {found}"), format!("write {wanted}"));
}

/// Returns the remedy for a number out of range.
pub(crate) fn range_remedy((least, most): (i64, i64)) -> String {
    if least == most { format!("write {least}") } else { format!("write a number from {least} to {most}") }
}

/// Returns whether it is an integer, of any size.
pub(crate) fn is_integer(value: &DeValue<'_>) -> bool {
    value.as_integer().is_some()
}

/// Returns the number, if it fits 64 bits.
pub(crate) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Returns a remedy: the word that was probably meant, or all possible ones.
pub(crate) fn one_of(word: &str, words: &[&str]) -> String {
    match nearest(word, words.iter().copied()) {
        Some(known) => format!("did you mean `{known}`?"),
        _ if words.is_empty() => "there are none; remove it".into(),
        _ if words.len() == 1 => format!("write {}", list(words)),
        _ => format!("write one of {}", list(words)),
    }
}

/// Formats a list: `a`, `b` and `c`.
pub(crate) fn list(words: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_ref())).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".into(),
    }
}
