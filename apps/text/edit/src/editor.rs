//! The cursor, the effect of keys, and the visible part of the text. Deliberately not here: terminal and file.

use alloc::string::String;

use line_editor::{Key, character_width};
use tool_kit::view::{byte_at_column, text_columns};

use crate::text::{Place, Text};

/// A text with a cursor and a visible part.
pub struct Editor {
    /// The text.
    pub text: Text,
    cursor: Place,
    /// Target column of vertical movement.
    column: Option<usize>,
    /// First visible line and column.
    top: usize,
    left: usize,
    rows: usize,
    columns: usize,
    /// Lines that were cut.
    cut: String,
    /// Whether the last key also cut a line, so that the next cut is appended.
    cuts: bool,
}

impl Editor {
    /// Places the cursor at the start of the text.
    pub fn new(text: Text) -> Editor {
        let start = Place::default();
        Editor {
            text,
            cursor: start,
            column: None,
            top: 0,
            left: 0,
            rows: 1,
            columns: 1,
            cut: String::new(),
            cuts: false,
        }
    }

    /// Cursor position.
    pub fn cursor(&self) -> Place {
        self.cursor
    }

    /// First visible line and column.
    pub fn corner(&self) -> (usize, usize) {
        (self.top, self.left)
    }

    /// Column of the cursor in its line.
    pub fn cursor_column(&self) -> usize {
        text_columns(&self.line()[..self.cursor.byte])
    }

    /// Sets the rows and columns for the text. The visible part follows the cursor.
    pub fn resize(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows.max(1), columns.max(1));
        self.follow();
    }

    fn line(&self) -> &str {
        self.text.line(self.cursor.line)
    }

    fn follow(&mut self) {
        let line = self.cursor.line;
        if line < self.top || line >= self.top + self.rows {
            // A jump centres the cursor; a step scrolls by one line.
            let is_step = line + 1 == self.top || line == self.top + self.rows;
            self.top = match (is_step, line < self.top) {
                (true, true) => line,
                (true, false) => line + 1 - self.rows,
                (false, _) => line.saturating_sub(self.rows / 2),
            };
        }
        let column = self.cursor_column();
        if column < self.left || column >= self.left + self.columns {
            let is_first_page = column < self.columns;
            self.left = if is_first_page { 0 } else { column.saturating_sub(self.columns / 2) };
        }
    }

    /// Moves the cursor to a position in the text.
    pub fn go_to(&mut self, place: Place) {
        let line = place.line.min(self.text.lines().len() - 1);
        let mut byte = place.byte.min(self.text.line(line).len());
        while !self.text.line(line).is_char_boundary(byte) {
            byte -= 1;
        }
        self.cursor = Place { line, byte };
        self.column = None;
        self.text.end_step();
        self.follow();
    }

    /// Handles a key. Returns whether the key has a meaning here.
    pub fn press(&mut self, key: Key) -> bool {
        let cuts = core::mem::take(&mut self.cuts);
        match key {
            Key::Char(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            Key::Enter => self.insert("\n"),
            Key::Tab => self.insert("\t"),
            Key::Backspace | Key::Control('H') => self.remove_to(self.left_of(self.cursor)),
            Key::Delete | Key::Control('D') => self.remove_to(self.right_of(self.cursor)),
            Key::AltBackspace => self.remove_to(self.word_left()),
            Key::Control('K') => self.cut_line(cuts),
            Key::Control('Y') => {
                let cut = self.cut.clone();
                self.text.end_step();
                self.insert(&cut);
                self.text.end_step();
            }
            Key::Control('U' | 'Z' | '_') => return self.take_back(Text::undo),
            Key::Control('R') => return self.take_back(Text::redo),
            _ => return self.moves(key),
        }
        true
    }

    fn moves(&mut self, key: Key) -> bool {
        let line = self.cursor.line;
        let last = self.text.lines().len() - 1;
        match key {
            Key::Up | Key::Control('P') => self.go_vertically(line.saturating_sub(1)),
            Key::Down => self.go_vertically((line + 1).min(last)),
            Key::PageUp => self.go_vertically(line.saturating_sub(self.rows)),
            Key::PageDown => self.go_vertically((line + self.rows).min(last)),
            Key::Left | Key::Control('B') => self.go_to(self.left_of(self.cursor)),
            Key::Right => self.go_to(self.right_of(self.cursor)),
            Key::WordLeft | Key::Alt('b') => self.go_to(self.word_left()),
            Key::WordRight | Key::Alt('f') => self.go_to(self.word_right()),
            Key::Home | Key::Control('A') => self.go_to(Place { line, byte: 0 }),
            Key::End | Key::Control('E') => self.go_to(Place { line, byte: self.line().len() }),
            Key::Alt('<') => self.go_to(Place::default()),
            Key::Alt('>') => self.go_to(self.text.end()),
            _ => return false,
        }
        true
    }

    fn go_vertically(&mut self, line: usize) {
        let column = self.column.unwrap_or_else(|| self.cursor_column());
        self.go_to(Place { line, byte: byte_at_column(self.text.line(line), column) });
        self.column = Some(column);
    }

    /// Inserts text at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.cursor = self.text.insert(self.cursor, text);
        self.column = None;
        self.follow();
    }

    fn remove_to(&mut self, other: Place) {
        let (from, to) = (self.cursor.min(other), self.cursor.max(other));
        self.text.remove(from, to);
        self.go_to(from);
    }

    /// Cuts the line with its end; consecutive cuts are pasted together.
    fn cut_line(&mut self, joins: bool) {
        let line = self.cursor.line;
        let from = Place { line, byte: 0 };
        let to = if line + 1 < self.text.lines().len() { Place { line: line + 1, byte: 0 } } else { self.text.end() };
        if !joins {
            self.cut.clear();
        }
        self.cut += &self.text.between(from, to);
        self.text.remove(from, to);
        self.go_to(from);
        self.cuts = true;
    }

    fn take_back(&mut self, step: fn(&mut Text) -> Option<Place>) -> bool {
        let place = step(&mut self.text);
        if let Some(place) = place {
            self.go_to(place);
        }
        place.is_some()
    }

    /// Moves to the next match after the cursor, wrapping around; returns whether there is one. Text without capital
    /// letters is matched case-insensitively.
    pub fn find(&mut self, text: &str) -> bool {
        let from = self.right_of(self.cursor);
        let count = self.text.lines().len();
        let found = (0..=count).find_map(|step| {
            let line = (from.line + step) % count;
            let start = if step == 0 { from.byte } else { 0 };
            find_in(self.text.line(line), start, text).map(|byte| Place { line, byte })
        });
        if let Some(place) = found {
            self.go_to(place);
        }
        found.is_some()
    }

    fn left_of(&self, place: Place) -> Place {
        let before = &self.text.line(place.line)[..place.byte];
        let mut byte = place.byte;
        for (offset, character) in before.char_indices().rev() {
            byte = offset;
            // A zero-width character is part of the preceding one.
            if character_width(character) > 0 {
                break;
            }
        }
        match (byte < place.byte, place.line.checked_sub(1)) {
            (true, _) => Place { byte, ..place },
            (false, Some(line)) => Place { line, byte: self.text.line(line).len() },
            (false, None) => place,
        }
    }

    fn right_of(&self, place: Place) -> Place {
        let line = self.text.line(place.line);
        let mut characters = line[place.byte..].char_indices().skip(1);
        if place.byte < line.len() {
            let next = characters.find(|(_, character)| character_width(*character) > 0);
            return Place { byte: next.map_or(line.len(), |(offset, _)| place.byte + offset), ..place };
        }
        if place.line + 1 < self.text.lines().len() { Place { line: place.line + 1, byte: 0 } } else { place }
    }

    fn word_left(&self) -> Place {
        let before = &self.line()[..self.cursor.byte];
        let end = before.trim_end_matches(|character: char| !character.is_alphanumeric());
        if end.is_empty() {
            return if self.cursor.byte == 0 { self.left_of(self.cursor) } else { Place { byte: 0, ..self.cursor } };
        }
        let start = end.trim_end_matches(char::is_alphanumeric);
        Place { byte: start.len(), ..self.cursor }
    }

    fn word_right(&self) -> Place {
        let rest = &self.line()[self.cursor.byte..];
        if rest.is_empty() {
            return self.right_of(self.cursor);
        }
        let behind = rest.trim_start_matches(|character: char| !character.is_alphanumeric());
        let behind = behind.trim_start_matches(char::is_alphanumeric);
        Place { byte: self.line().len() - behind.len(), ..self.cursor }
    }
}

/// Returns the first byte at or after `from` at which the text matches in a line.
fn find_in(line: &str, from: usize, text: &str) -> Option<usize> {
    let folds = !text.chars().any(char::is_uppercase);
    let is_at = |rest: &str| {
        let mut characters = rest.chars();
        text.chars().all(|wanted| {
            characters.next().is_some_and(|character| {
                character == wanted || (folds && character.to_lowercase().eq(core::iter::once(wanted)))
            })
        })
    };
    line.get(from..)?.char_indices().map(|(offset, _)| from + offset).find(|byte| is_at(&line[*byte..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(text: &str) -> Editor {
        let mut editor = Editor::new(Text::new(text));
        editor.resize(3, 10);
        editor
    }

    fn press(editor: &mut Editor, keys: &[Key]) {
        for key in keys {
            editor.press(*key);
        }
    }

    fn text(editor: &Editor) -> String {
        editor.text.lines().join("\n")
    }

    #[test]
    fn keys_edit() {
        let mut editor = editor("one\ntwo\n");
        press(&mut editor, &[Key::Down, Key::End, Key::Char('!'), Key::Enter, Key::Tab, Key::Char('字')]);
        assert_eq!(text(&editor), "one\ntwo!\n\t字\n");
        press(&mut editor, &[Key::Backspace, Key::Backspace, Key::Backspace, Key::Left, Key::Delete]);
        assert_eq!(text(&editor), "one\ntwo\n");
        assert_eq!(editor.cursor(), Place { line: 1, byte: 3 });
        press(&mut editor, &[Key::Home, Key::Backspace]);
        assert_eq!(text(&editor), "onetwo\n");
        press(&mut editor, &[Key::Control('U'); 5]);
        press(&mut editor, &[Key::Control('R'); 9]);
        assert_eq!(text(&editor), "onetwo\n");
    }

    #[test]
    fn the_cursor_keeps_its_column() {
        let mut editor = editor("long line\nx\nlong line");
        press(&mut editor, &[Key::End, Key::Left, Key::Down]);
        assert_eq!(editor.cursor(), Place { line: 1, byte: 1 });
        press(&mut editor, &[Key::Down]);
        assert_eq!(editor.cursor(), Place { line: 2, byte: 8 });
        press(&mut editor, &[Key::WordLeft, Key::WordLeft, Key::WordLeft]);
        assert_eq!(editor.cursor(), Place { line: 1, byte: 1 });
        press(&mut editor, &[Key::WordRight, Key::WordRight]);
        assert_eq!(editor.cursor(), Place { line: 2, byte: 4 });
    }

    #[test]
    fn lines_are_cut_and_pasted() {
        let mut editor = editor("a\nb\nc");
        press(&mut editor, &[Key::Control('K'), Key::Control('K'), Key::End, Key::Enter, Key::Control('Y')]);
        assert_eq!(text(&editor), "c\na\nb\n");
        press(&mut editor, &[Key::Up, Key::Control('K'), Key::Alt('<'), Key::Control('Y')]);
        assert_eq!(text(&editor), "b\nc\na\n");
    }

    #[test]
    fn what_is_shown_follows_the_cursor() {
        let mut editor = editor(&"0123456789abcdef\n".repeat(9));
        press(&mut editor, &[Key::Down, Key::Down]);
        assert_eq!(editor.corner(), (0, 0));
        press(&mut editor, &[Key::Down]);
        assert_eq!(editor.corner(), (1, 0));
        press(&mut editor, &[Key::End]);
        assert_eq!((editor.corner().1, editor.cursor_column()), (11, 16));
        press(&mut editor, &[Key::Alt('>')]);
        assert_eq!(editor.corner(), (8, 0));
    }

    #[test]
    fn a_search_goes_round() {
        let mut editor = editor("Some text\nmore text\nSOME");
        assert!(editor.find("text"));
        assert_eq!(editor.cursor(), Place { line: 0, byte: 5 });
        assert!(editor.find("some"));
        assert_eq!(editor.cursor(), Place { line: 2, byte: 0 });
        assert!(editor.find("Some"));
        assert_eq!(editor.cursor(), Place::default());
        assert!(!editor.find("nothing"));
        // From itself, the search wraps to the only match.
        assert!(editor.find("Some"));
        assert_eq!(editor.cursor(), Place::default());
    }
}
