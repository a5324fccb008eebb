//! The visible rows of a text, and search. Deliberately not here: the terminal.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tool_kit::view::{row_starts, window};

/// Treatment of long lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// Wrapped to the next row.
    Wrapped,
    /// Chopped.
    Chopped,
}

/// A row position: a line, and a row in that line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Counted from 0.
    pub line: usize,
    /// Counted from 0.
    pub row: usize,
}

/// A growing text and the position in it.
pub struct Pager {
    bytes: Vec<u8>,
    /// Start of each line.
    starts: Vec<usize>,
    /// First visible row.
    top: Place,
    columns: usize,
    rows: usize,
    long: Long,
    has_numbers: bool,
    search: Option<String>,
}

/// A row on the screen: pieces, inverted or not.
pub type Row = Vec<(String, bool)>;

impl Pager {
    /// Creates a pager without text.
    pub fn new(long: Long, has_numbers: bool) -> Pager {
        Pager {
            bytes: Vec::new(),
            starts: Vec::from([0]),
            top: Place::default(),
            columns: 80,
            rows: 23,
            long,
            has_numbers,
            search: None,
        }
    }

    /// Appends text.
    pub fn push(&mut self, bytes: &[u8]) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        self.starts.extend(ends.map(|(index, _)| before + index + 1));
    }

    /// Sets the columns and rows for the text.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns.max(1), rows.max(1));
        self.top.row = 0;
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        let is_empty_rest = self.starts.last() == Some(&self.bytes.len());
        self.starts.len() - usize::from(is_empty_rest)
    }

    /// Returns the text of a line.
    fn line(&self, line: usize) -> String {
        let end = self.starts.get(line + 1).map_or(self.bytes.len(), |next| next - 1);
        let bytes = self.bytes.get(self.starts[line]..end).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn text_columns(&self) -> usize {
        let numbers = if self.has_numbers { NUMBER_COLUMNS } else { 0 };
        self.columns.saturating_sub(numbers).max(1)
    }

    fn rows_of(&self, line: usize) -> usize {
        match self.long {
            Long::Chopped => 1,
            Long::Wrapped => row_starts(&self.line(line), self.text_columns()).len(),
        }
    }

    fn next(&self, place: Place) -> Option<Place> {
        if place.row + 1 < self.rows_of(place.line) {
            return Some(Place { row: place.row + 1, ..place });
        }
        (place.line + 1 < self.lines()).then_some(Place { line: place.line + 1, row: 0 })
    }

    fn previous(&self, place: Place) -> Option<Place> {
        if place.row > 0 {
            return Some(Place { row: place.row - 1, ..place });
        }
        let line = place.line.checked_sub(1)?;
        Some(Place { line, row: self.rows_of(line) - 1 })
    }

    /// Returns the first row of the last screen.
    fn bottom(&self) -> Place {
        let Some(line) = self.lines().checked_sub(1) else { return Place::default() };
        let mut place = Place { line, row: self.rows_of(line) - 1 };
        for _ in 1..self.rows {
            match self.previous(place) {
                Some(before) => place = before,
                None => break,
            }
        }
        place
    }

    /// Scrolls down by this many rows, at most to the last screen.
    pub fn down(&mut self, rows: usize) {
        let bottom = self.bottom();
        for _ in 0..rows {
            match self.next(self.top) {
                Some(next) if self.top < bottom => self.top = next,
                _ => return,
            }
        }
    }

    /// Scrolls up by this many rows.
    pub fn up(&mut self, rows: usize) {
        for _ in 0..rows {
            match self.previous(self.top) {
                Some(before) => self.top = before,
                None => return,
            }
        }
    }

    /// Rows per screen.
    pub fn page(&self) -> usize {
        self.rows
    }

    /// Goes to a line, counted from 1.
    pub fn go_to(&mut self, line: usize) {
        let last = self.lines().saturating_sub(1);
        self.top = Place { line: line.saturating_sub(1).min(last), row: 0 }.min(self.bottom());
    }

    /// Goes to the end.
    pub fn go_to_end(&mut self) {
        self.top = self.bottom();
    }

    /// Whether the last row is visible.
    pub fn is_at_end(&self) -> bool {
        self.top >= self.bottom()
    }

    /// Line at the top, counted from 1.
    pub fn top_line(&self) -> usize {
        (self.top.line + 1).min(self.lines())
    }

    /// Sets the text to search for; without capital letters, the search is case-insensitive.
    pub fn set_search(&mut self, text: &str) {
        self.search = Some(String::from(text)).filter(|text| !text.is_empty());
    }

    /// Goes to the next matching line below the top; returns whether there is one.
    pub fn find_below(&mut self) -> bool {
        self.find((self.top.line + 1)..self.lines(), |range, found| range.clone().find(|line| found(*line)))
    }

    /// Goes to the next matching line above the top; returns whether there is one.
    pub fn find_above(&mut self) -> bool {
        self.find(0..self.top.line, |range, found| range.clone().rev().find(|line| found(*line)))
    }

    /// Goes to the first matching line at or below the top; returns whether there is one.
    pub fn find_here(&mut self) -> bool {
        self.find(self.top.line..self.lines(), |range, found| range.clone().find(|line| found(*line)))
    }

    fn find(
        &mut self,
        lines: core::ops::Range<usize>,
        first: impl Fn(&core::ops::Range<usize>, &dyn Fn(usize) -> bool) -> Option<usize>,
    ) -> bool {
        let Some(text) = self.search.clone() else { return false };
        let has_text = |line: usize| !matches_in(&self.line(line), &text).is_empty();
        let Some(line) = first(&lines, &has_text) else { return false };
        // The match goes to the top of the screen even near the end.
        self.top = Place { line, row: 0 };
        true
    }

    /// Returns the visible rows.
    pub fn shown(&self) -> Vec<Row> {
        let mut shown = Vec::with_capacity(self.rows);
        let mut place = (self.lines() > 0).then_some(self.top);
        while let Some(here) = place
            && shown.len() < self.rows
        {
            shown.push(self.row(here));
            place = self.next(here);
        }
        shown
    }

    fn row(&self, place: Place) -> Row {
        let line = self.line(place.line);
        let columns = self.text_columns();
        let starts = row_starts(&line, columns);
        let start = starts.get(place.row).copied().unwrap_or(line.len());
        let end = starts.get(place.row + 1).copied().unwrap_or(line.len());
        let mut row = Row::new();
        if self.has_numbers {
            let number = if place.row == 0 { format!("{:6} ", place.line + 1) } else { " ".repeat(NUMBER_COLUMNS) };
            row.push((number, false));
        }
        let mut at = start;
        for found in self.search.iter().flat_map(|text| matches_in(&line, text)) {
            let (from, to) = (found.start.clamp(at, end), found.end.clamp(at, end));
            row.push((line[at..from].into(), false));
            row.push((line[from..to].into(), true));
            at = to;
        }
        row.push((line[at..end].into(), false));
        without_tabs(row, columns)
    }
}

const NUMBER_COLUMNS: usize = 7;

/// Expands tabs to spaces; tab stops count from the start of the row.
fn without_tabs(row: Row, columns: usize) -> Row {
    let mut column = 0;
    let expand = |(text, inverted): (String, bool)| {
        let blanks = " ".repeat(column);
        let whole = window(&format!("{blanks}{text}"), 0, columns + NUMBER_COLUMNS + column);
        let shown = String::from(whole.strip_prefix(blanks.as_str()).unwrap_or(&whole));
        column += tool_kit::view::text_columns(&shown);
        (shown, inverted)
    };
    row.into_iter().map(expand).filter(|(text, _)| !text.is_empty()).collect()
}

/// Returns the matches in a line. A text without capital letters is matched case-insensitively.
pub fn matches_in(line: &str, text: &str) -> Vec<core::ops::Range<usize>> {
    let folds = !text.chars().any(char::is_uppercase);
    let wanted: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut from = 0;
    while from < line.len() {
        match prefix_bytes(&line[from..], &wanted, folds) {
            Some(bytes) if bytes > 0 => {
                found.push(from..from + bytes);
                from += bytes;
            }
            _ => from += line[from..].chars().next().map_or(1, char::len_utf8),
        }
    }
    found
}

/// Returns the length in bytes of the prefix of a line that matches the wanted characters.
fn prefix_bytes(line: &str, wanted: &[char], folds: bool) -> Option<usize> {
    let mut characters = line.chars();
    let mut bytes = 0;
    for wanted in wanted {
        let character = characters.next()?;
        let is_same = character == *wanted || (folds && character.to_lowercase().eq(core::iter::once(*wanted)));
        if !is_same {
            return None;
        }
        bytes += character.len_utf8();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(text: &str, columns: usize, rows: usize) -> Pager {
        let mut pager = Pager::new(Long::Wrapped, false);
        pager.push(text.as_bytes());
        pager.resize(columns, rows);
        pager
    }

    fn shown(pager: &Pager) -> Vec<String> {
        pager.shown().into_iter().map(|row| row.into_iter().map(|(text, _)| text).collect()).collect()
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let mut pager = pager("1\n2\n3\n4\n5\n", 10, 2);
        assert_eq!(pager.lines(), 5);
        assert_eq!(shown(&pager), ["1", "2"]);
        pager.down(2);
        assert_eq!(shown(&pager), ["3", "4"]);
        pager.down(2);
        assert_eq!(shown(&pager), ["4", "5"]);
        assert!(pager.is_at_end());
        pager.up(9);
        assert_eq!(shown(&pager), ["1", "2"]);
        pager.go_to(3);
        assert_eq!((shown(&pager), pager.top_line()), (["3", "4"].map(String::from).to_vec(), 3));
        pager.go_to_end();
        assert_eq!(shown(&pager), ["4", "5"]);
    }

    #[test]
    fn long_lines_wrap_and_a_tabulator_is_blanks() {
        let mut wrapped = pager("abcdef\nx", 4, 2);
        assert_eq!(shown(&wrapped), ["abcd", "ef"]);
        wrapped.down(1);
        assert_eq!(shown(&wrapped), ["ef", "x"]);
        assert_eq!(shown(&pager("a\tb", 20, 1)), ["a       b"]);
    }

    #[test]
    fn what_is_searched_is_found_and_inverted() {
        let mut pager = pager("one\ntwo\nThree two\n4\n5\n", 20, 2);
        pager.set_search("two");
        assert!(pager.find_here());
        assert_eq!(pager.top_line(), 2);
        assert!(pager.find_below());
        assert_eq!(pager.top_line(), 3);
        assert!(!pager.find_below());
        assert_eq!(pager.shown()[0], [("Three ".into(), false), ("two".into(), true)]);
        assert!(pager.find_above());
        assert_eq!(pager.top_line(), 2);
        pager.set_search("three");
        assert!(pager.find_below());
        pager.set_search("tHree");
        assert!(!pager.find_here());
    }

    #[test]
    fn text_may_come_later() {
        let mut pager = pager("", 10, 3);
        assert_eq!((pager.lines(), shown(&pager).len()), (0, 0));
        pager.push(b"a\nb");
        pager.push(b"c\n\n");
        assert_eq!(shown(&pager), ["a", "bc", ""]);
        assert!(pager.is_at_end());
    }
}
