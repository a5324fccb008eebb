//! A full-screen program's page: its bytes laid out as rows, and the differences that bring a terminal from one page to
//! the next.
//! A page is text: line feeds end rows, excess text is cut off. [`INVERSE_ON`], [`INVERSE_OFF`] and [`CURSOR`] are the
//! only control characters with a meaning; others are shown as `^X`, so a page cannot control the terminal.
//! Deliberately not here: access to the screen.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use line_editor::character_width;

/// Starts every page.
pub const PAGE_START: u8 = 0x0c;
/// Starts inverse text.
pub const INVERSE_ON: u8 = 0x0e;
/// Ends inverse text.
pub const INVERSE_OFF: u8 = 0x0f;
/// Cursor position; without one the cursor is hidden.
pub const CURSOR: u8 = 0x11;

/// Default size of a terminal that does not report its own.
const USUAL_COLUMNS: usize = 80;
const USUAL_ROWS: usize = 24;

/// A page laid out for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    columns: usize,
    rows: Vec<String>,
    cursor: Option<(usize, usize)>,
}

impl Page {
    /// Lays out a page's bytes on a terminal; zero columns or rows mean an unknown size.
    pub fn new(bytes: &[u8], columns: usize, rows: usize) -> Page {
        let columns = if columns == 0 { USUAL_COLUMNS } else { columns };
        let rows = if rows == 0 { USUAL_ROWS } else { rows };
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix(char::from(PAGE_START)).unwrap_or(&text);
        let mut cursor = None;
        let mut laid_out: Vec<String> = Vec::with_capacity(rows);
        for (index, line) in text.split('\n').take(rows).enumerate() {
            let mut row = Row { shown: String::new(), column: 0, columns };
            for character in line.chars() {
                row.put(character, index, &mut cursor);
            }
            laid_out.push(row.shown);
        }
        laid_out.resize(rows, String::new());
        Page { columns, rows: laid_out, cursor }
    }

    /// Switches the terminal to its alternate screen and shows this page.
    pub fn enter(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[?1049h\x1b[2J");
        self.draw(None, out);
    }

    /// Switches back from the alternate screen.
    pub fn leave(out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0m\x1b[?25h\x1b[?1049l");
    }

    /// Updates the screen from `before` to this page: only rows that differ are written.
    pub fn replace(&self, before: &Page, out: &mut Vec<u8>) {
        let is_same_size = (self.columns, self.rows.len()) == (before.columns, before.rows.len());
        if !is_same_size {
            out.extend_from_slice(b"\x1b[2J");
        }
        self.draw(is_same_size.then_some(before), out);
    }

    fn draw(&self, before: Option<&Page>, out: &mut Vec<u8>) {
        let mut text = String::from("\x1b[?25l");
        for (index, row) in self.rows.iter().enumerate() {
            let old = before.map_or("", |page| page.rows.get(index).map_or("", String::as_str));
            if row != old {
                // The row is emptied first: after its last column, emptying would take that column away.
                let _ = write!(text, "\x1b[{};1H\x1b[K{row}", index + 1);
            }
        }
        if let Some((row, column)) = self.cursor {
            let _ = write!(text, "\x1b[{};{}H\x1b[?25h", row + 1, column.min(self.columns - 1) + 1);
        }
        out.extend_from_slice(text.as_bytes());
    }
}

struct Row {
    shown: String,
    column: usize,
    columns: usize,
}

impl Row {
    fn put(&mut self, character: char, row: usize, cursor: &mut Option<(usize, usize)>) {
        match u8::try_from(character) {
            Ok(CURSOR) => *cursor = Some((row, self.column)),
            Ok(INVERSE_ON) => self.shown.push_str("\x1b[7m"),
            Ok(INVERSE_OFF) => self.shown.push_str("\x1b[0m"),
            Ok(control @ 0..=0x1f) => {
                self.text('^');
                self.text(char::from(control + 0x40));
            }
            Ok(0x7f..=0x9f) => {
                self.text('^');
                self.text('?');
            }
            _ => self.text(character),
        }
    }

    fn text(&mut self, character: char) {
        let after = self.column + character_width(character);
        if after <= self.columns {
            self.shown.push(character);
        }
        // Text after a truncated part does not move into its columns.
        self.column = after.max(self.column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8], columns: usize, rows: usize) -> Vec<String> {
        Page::new(bytes, columns, rows).rows
    }

    #[test]
    fn rows_are_cut_to_the_terminal() {
        assert_eq!(rows(b"\x0cabcdef\nx\ny\nz", 4, 3), ["abcd", "x", "y"]);
        assert_eq!(rows("\x0cab字c".as_bytes(), 3, 2), ["ab", ""]);
        assert_eq!(rows(b"\x0c", 0, 0).len(), USUAL_ROWS);
    }

    #[test]
    fn a_page_cannot_steer_the_terminal() {
        let shown = rows("\x0ca\x1b[2Jb\rc\x07\u{9b}1m\x7f\x0c".as_bytes(), 80, 1);
        assert_eq!(shown, ["a^[[2Jb^Mc^G^?1m^?^L"]);
        assert_eq!(rows(b"\x0c\xff\xc2", 80, 1), ["\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn the_cursor_is_where_it_is_marked() {
        let page = Page::new(b"\x0cone\nt\x11wo", 10, 2);
        assert_eq!(page.cursor, Some((1, 1)));
        let mut out = Vec::new();
        page.enter(&mut out);
        assert!(out.ends_with(b"\x1b[2;2H\x1b[?25h"), "{:?}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn only_rows_that_differ_are_written_again() {
        let old = Page::new(b"\x0csame\nold\n", 10, 3);
        let mut out = Vec::new();
        Page::new(b"\x0csame\nnew\n\x11", 10, 3).replace(&old, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "\x1b[?25l\x1b[2;1H\x1b[Knew\x1b[3;1H\x1b[?25h");
        let mut resized = Vec::new();
        Page::new(b"\x0csame\nold\n", 11, 3).replace(&old, &mut resized);
        assert!(resized.starts_with(b"\x1b[2J") && String::from_utf8_lossy(&resized).contains("same"));
    }
}
