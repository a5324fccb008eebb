//! The line as text with a cursor: motions and changes, kill ring and undo. Independent of the screen.

use alloc::string::String;
use alloc::vec::Vec;

use crate::layout::joins_previous;

/// Maximum entries of the kill ring.
const KILL_RING: usize = 16;
/// Maximum undo steps.
const UNDO_DEPTH: usize = 200;

/// Kind of the last command, for merging of consecutive commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Insert,
    Kill,
    Yank { start: usize, length: usize, ring: usize },
    Other,
}

/// Text and cursor. The cursor is a byte offset on a character boundary.
#[derive(Clone, Debug)]
pub struct Buffer {
    text: String,
    cursor: usize,
    kills: Vec<String>,
    undo: Vec<(String, usize)>,
    last: Last,
}

impl Buffer {
    pub fn new() -> Buffer {
        Buffer { text: String::new(), cursor: 0, kills: Vec::new(), undo: Vec::new(), last: Last::Other }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Takes the text and clears the undo steps; the kill ring is kept for the next line.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        self.undo.clear();
        self.last = Last::Other;
        core::mem::take(&mut self.text)
    }

    /// Replaces the whole text, the cursor at its end; can be undone.
    pub fn set(&mut self, text: &str) {
        self.remember();
        self.text.clear();
        self.text.push_str(text);
        self.cursor = text.len();
        self.last = Last::Other;
    }

    pub fn insert(&mut self, text: &str) {
        if self.last != Last::Insert {
            self.remember();
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A blank ends the undo step, so that undo removes a word, not the whole line.
        self.last = if text == " " { Last::Other } else { Last::Insert };
    }

    /// Replaces the bytes from `start` to the cursor with `text`.
    pub fn replace_before_cursor(&mut self, start: usize, text: &str) {
        let start = if self.text.is_char_boundary(start) { start.min(self.cursor) } else { self.cursor };
        self.remember();
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
        self.last = Last::Other;
    }

    pub fn move_left(&mut self) -> bool {
        self.move_to(self.left_of(self.cursor))
    }

    pub fn move_right(&mut self) -> bool {
        self.move_to(self.right_of(self.cursor))
    }

    pub fn move_word_left(&mut self) -> bool {
        self.move_to(self.word_left(char::is_alphanumeric))
    }

    pub fn move_word_right(&mut self) -> bool {
        self.move_to(self.word_right())
    }

    pub fn move_home(&mut self) -> bool {
        self.move_to(0)
    }

    pub fn move_end(&mut self) -> bool {
        self.move_to(self.text.len())
    }

    pub fn delete_left(&mut self) -> bool {
        self.delete(self.left_of(self.cursor), self.cursor)
    }

    pub fn delete_right(&mut self) -> bool {
        self.delete(self.cursor, self.right_of(self.cursor))
    }

    pub fn kill_to_end(&mut self) -> bool {
        self.kill(self.cursor, self.text.len())
    }

    pub fn kill_to_start(&mut self) -> bool {
        self.kill(0, self.cursor)
    }

    /// Kills back to the last blank.
    pub fn kill_big_word_left(&mut self) -> bool {
        self.kill(self.word_left(|c| !c.is_whitespace()), self.cursor)
    }

    pub fn kill_word_left(&mut self) -> bool {
        self.kill(self.word_left(char::is_alphanumeric), self.cursor)
    }

    pub fn kill_word_right(&mut self) -> bool {
        self.kill(self.cursor, self.word_right())
    }

    /// Inserts the most recent kill.
    pub fn yank(&mut self) -> bool {
        self.yank_entry(0)
    }

    /// After a yank: replaces it with the previous kill.
    pub fn yank_older(&mut self) -> bool {
        let Last::Yank { start, length, ring } = self.last else { return false };
        self.text.replace_range(start..start + length, "");
        self.cursor = start;
        self.yank_entry((ring + 1) % self.kills.len().max(1))
    }

    /// Exchanges the characters on both sides of the cursor.
    pub fn transpose(&mut self) -> bool {
        let middle = if self.cursor == self.text.len() { self.left_of(self.cursor) } else { self.cursor };
        let (start, end) = (self.left_of(middle), self.right_of(middle));
        if start == middle || middle == end {
            return false;
        }
        self.remember();
        let mut swapped = String::from(&self.text[middle..end]);
        swapped.push_str(&self.text[start..middle]);
        self.text.replace_range(start..end, &swapped);
        self.cursor = end;
        self.last = Last::Other;
        true
    }

    pub fn undo(&mut self) -> bool {
        self.last = Last::Other;
        let Some((text, cursor)) = self.undo.pop() else { return false };
        self.text = text;
        self.cursor = cursor;
        true
    }

    fn remember(&mut self) {
        if self.undo.len() == UNDO_DEPTH {
            self.undo.remove(0);
        }
        self.undo.push((self.text.clone(), self.cursor));
    }

    fn move_to(&mut self, target: usize) -> bool {
        let moved = target != self.cursor;
        self.cursor = target;
        self.last = Last::Other;
        moved
    }

    fn delete(&mut self, start: usize, end: usize) -> bool {
        if start == end {
            return false;
        }
        self.remember();
        self.text.replace_range(start..end, "");
        self.cursor = start;
        self.last = Last::Other;
        true
    }

    fn kill(&mut self, start: usize, end: usize) -> bool {
        if start == end {
            return false;
        }
        let killed = String::from(&self.text[start..end]);
        let backwards = end == self.cursor;
        let joins = self.last == Last::Kill;
        self.delete(start, end);
        self.last = Last::Kill;
        match self.kills.last_mut() {
            Some(last) if joins && backwards => last.insert_str(0, &killed),
            Some(last) if joins => last.push_str(&killed),
            _ => {
                if self.kills.len() == KILL_RING {
                    self.kills.remove(0);
                }
                self.kills.push(killed);
            }
        }
        true
    }

    fn yank_entry(&mut self, ring: usize) -> bool {
        let Some(index) = self.kills.len().checked_sub(ring + 1) else { return false };
        let text = self.kills[index].clone();
        let start = self.cursor;
        self.remember();
        self.text.insert_str(start, &text);
        self.cursor = start + text.len();
        self.last = Last::Yank { start, length: text.len(), ring };
        true
    }

    fn left_of(&self, from: usize) -> usize {
        let mut target = from;
        for (offset, character) in self.text[..from].char_indices().rev() {
            target = offset;
            let previous = self.text[..offset].chars().next_back();
            if !joins_previous(previous, character) {
                break;
            }
        }
        target
    }

    fn right_of(&self, from: usize) -> usize {
        let mut after = self.text[from..].char_indices();
        let Some((_, mut previous)) = after.next() else { return from };
        for (offset, character) in after {
            if !joins_previous(Some(previous), character) {
                return from + offset;
            }
            previous = character;
        }
        self.text.len()
    }

    fn word_left(&self, is_word: fn(char) -> bool) -> usize {
        let mut target = self.cursor;
        let mut inside = false;
        for (offset, character) in self.text[..self.cursor].char_indices().rev() {
            if is_word(character) {
                inside = true;
            } else if inside {
                break;
            }
            target = offset;
        }
        target
    }

    fn word_right(&self) -> usize {
        let mut inside = false;
        for (offset, character) in self.text[self.cursor..].char_indices() {
            if character.is_alphanumeric() {
                inside = true;
            } else if inside {
                return self.cursor + offset;
            }
        }
        self.text.len()
    }
}
