//! Positions of characters on a screen of a given width.

use unicode_width::UnicodeWidthChar;

const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// A cell, relative to the start of the prompt. `column` equals the number of columns when a row is full and the
/// terminal has not wrapped yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub row: usize,
    pub column: usize,
}

impl Place {
    /// Returns the cursor's cell after `character` is written here.
    pub fn after(self, character: char, columns: usize) -> Place {
        if character == '\n' {
            return Place { row: self.row + 1, column: 0 };
        }
        let width = width(character).min(columns);
        if self.column + width > columns {
            return Place { row: self.row + 1, column: width };
        }
        Place { row: self.row, column: self.column + width }
    }

    /// Returns the cursor's cell after all of `text`.
    pub fn after_text(self, text: &str, columns: usize) -> Place {
        text.chars().fold(self, |place, character| place.after(character, columns))
    }

    /// A full row is the start of the next one.
    pub fn settled(self, columns: usize) -> Place {
        if self.column >= columns { Place { row: self.row + 1, column: 0 } } else { self }
    }
}

/// Returns the width of a character in columns as shown; a control character is shown as `^` and a letter.
pub fn width(character: char) -> usize {
    character.width().unwrap_or(2)
}

/// Returns the width of a text in columns.
pub fn text_width(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Returns whether a character shares a cell with the one before it.
pub fn joins_previous(previous: Option<char>, character: char) -> bool {
    match previous {
        None => false,
        Some(previous) => width(character) == 0 || previous == ZERO_WIDTH_JOINER,
    }
}
