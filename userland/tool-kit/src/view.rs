//! Text layout on a screen: character widths, tabs, control characters, rows of long lines.

use alloc::string::String;
use alloc::vec::Vec;

use line_editor::character_width;

/// Distance between tab stops in columns.
const TAB_COLUMNS: usize = 8;

/// Width of a character at this column of its line.
pub fn columns_of(character: char, column: usize) -> usize {
    if character == '\t' { TAB_COLUMNS - column % TAB_COLUMNS } else { character_width(character) }
}

/// Width in columns of a text at the start of a line.
pub fn text_columns(text: &str) -> usize {
    text.chars().fold(0, |column, character| column + columns_of(character, column))
}

/// Returns the byte of a line at or before which `column` lies.
pub fn byte_at_column(line: &str, column: usize) -> usize {
    let mut at = 0;
    for (byte, character) in line.char_indices() {
        at += columns_of(character, at);
        if at > column {
            return byte;
        }
    }
    line.len()
}

/// Returns the end of the row of this width that begins at byte `from` of a line; it has at least one character.
pub fn row_end(line: &str, from: usize, columns: usize) -> usize {
    let mut column = 0;
    for (offset, character) in line[from..].char_indices() {
        column += columns_of(character, column);
        if column > columns && offset > 0 {
            return from + offset;
        }
    }
    line.len()
}

/// Returns the start of each row of a line; the first is 0.
pub fn row_starts(line: &str, columns: usize) -> Vec<usize> {
    let mut starts = Vec::from([0]);
    let mut end = row_end(line, 0, columns);
    while end < line.len() {
        starts.push(end);
        end = row_end(line, end, columns);
    }
    starts
}

/// Returns the columns `left..left + columns` of a text with tabs expanded. A wide character that does not fit is
/// omitted.
pub fn window(text: &str, left: usize, columns: usize) -> String {
    let mut shown = String::new();
    let mut column = 0;
    for character in text.chars() {
        let (start, width) = (column, columns_of(character, column));
        column += width;
        if start >= left + columns {
            break;
        }
        if character == '\t' || start < left && column > left {
            let visible = column.min(left + columns).saturating_sub(start.max(left));
            shown.extend(core::iter::repeat_n(' ', visible));
        } else if start >= left && column <= left + columns {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabulators_and_wide_characters_have_columns() {
        assert_eq!(text_columns("a\tb"), 9);
        assert_eq!(text_columns("字\u{1}é"), 5);
        assert_eq!(byte_at_column("a\tb", 3), 1);
        assert_eq!(byte_at_column("字x", 1), 0);
        assert_eq!(byte_at_column("字x", 2), 3);
        assert_eq!(byte_at_column("ab", 9), 2);
    }

    #[test]
    fn long_lines_have_rows() {
        assert_eq!(row_starts("abcdefg", 3), [0, 3, 6]);
        assert_eq!(row_starts("abc", 3), [0]);
        assert_eq!(row_starts("", 3), [0]);
        assert_eq!(row_starts("a字b", 2), [0, 1, 4]);
        // Even where nothing fits, each row has a character.
        assert_eq!(row_starts("字字", 1), [0, 3]);
    }

    #[test]
    fn a_window_shows_columns() {
        assert_eq!(window("abcdef", 2, 3), "cde");
        assert_eq!(window("a\tb", 0, 20), "a       b");
        assert_eq!(window("a\tb", 4, 3), "   ");
        assert_eq!(window("字字字", 1, 4), " 字");
        assert_eq!(window("ab", 5, 3), "");
    }
}
