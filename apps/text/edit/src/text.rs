//! Editable text with undo. Deliberately not here: screen and file.

use alloc::string::String;
use alloc::vec::Vec;

/// Maximum size of the undo history in bytes.
const HISTORY_BYTES: usize = 16 << 20;

/// A position between two characters: a line and a byte in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Counted from 0.
    pub line: usize,
    /// Byte offset, on a character boundary.
    pub byte: usize,
}

/// One change: at this position, the text before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    at: Place,
    removed: String,
    inserted: String,
}

/// Lines of text with their history.
#[derive(Debug)]
pub struct Text {
    lines: Vec<String>,
    done: Vec<Change>,
    undone: Vec<Change>,
    /// Size in bytes of both.
    history_bytes: usize,
    /// Whether the next insertion may be merged into the last step.
    joins: bool,
    /// Number of changes in effect when the text was saved; `None` if that state can no longer be reached.
    saved: Option<usize>,
}

impl Text {
    /// Splits a file's text into lines. A trailing line feed gives an empty last line, so that saving reproduces the
    /// file.
    pub fn new(text: &str) -> Text {
        let lines = text.split('\n').map(String::from).collect();
        Text { lines, done: Vec::new(), undone: Vec::new(), history_bytes: 0, joins: false, saved: Some(0) }
    }

    /// The lines; at least one.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns a line, counted from 0.
    pub fn line(&self, line: usize) -> &str {
        self.lines.get(line).map_or("", String::as_str)
    }

    /// Position after the last character.
    pub fn end(&self) -> Place {
        let line = self.lines.len() - 1;
        Place { line, byte: self.lines[line].len() }
    }

    /// Size of the resulting file in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum::<usize>() - 1
    }

    /// Whether the text has unsaved changes.
    pub fn is_changed(&self) -> bool {
        self.saved != Some(self.done.len())
    }

    /// Marks the current state as saved.
    pub fn set_saved(&mut self) {
        self.saved = Some(self.done.len());
        self.joins = false;
    }

    /// Ends the current undo step.
    pub fn end_step(&mut self) {
        self.joins = false;
    }

    /// Inserts text; returns the position after it.
    pub fn insert(&mut self, at: Place, text: &str) -> Place {
        let end = self.replace(at, at, text);
        // A step is a word, not a whole paragraph.
        let may_join = self.joins && !text.contains(char::is_whitespace);
        let is_behind = |last: &Change| last.removed.is_empty() && end_of(last.at, &last.inserted) == at;
        if let [.., last, _] = self.done.as_slice()
            && may_join
            && is_behind(last)
            && self.saved != Some(self.done.len() - 1)
            && let Some(joined) = self.done.pop()
            && let Some(last) = self.done.last_mut()
        {
            last.inserted.push_str(&joined.inserted);
        }
        self.joins = true;
        end
    }

    /// Removes the text between two positions.
    pub fn remove(&mut self, from: Place, to: Place) {
        if from < to {
            self.replace(from, to, "");
            self.joins = false;
        }
    }

    /// Returns the text between two positions.
    pub fn between(&self, from: Place, to: Place) -> String {
        if from.line == to.line {
            return String::from(&self.lines[from.line][from.byte..to.byte]);
        }
        let mut text = String::from(&self.lines[from.line][from.byte..]);
        for line in &self.lines[from.line + 1..to.line] {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\n');
        text.push_str(&self.lines[to.line][..to.byte]);
        text
    }

    fn replace(&mut self, from: Place, to: Place, text: &str) -> Place {
        let change = Change { at: from, removed: self.between(from, to), inserted: String::from(text) };
        self.history_bytes -= self.undone.drain(..).map(|undone| bytes_of(&undone)).sum::<usize>();
        if self.saved.is_some_and(|saved| saved > self.done.len()) {
            self.saved = None;
        }
        let end = self.apply(from, to, text);
        self.history_bytes += bytes_of(&change);
        self.done.push(change);
        self.forget_oldest();
        end
    }

    fn forget_oldest(&mut self) {
        while self.history_bytes > HISTORY_BYTES && self.done.len() > 1 {
            self.history_bytes -= bytes_of(&self.done.remove(0));
            self.saved = self.saved.and_then(|saved| saved.checked_sub(1));
        }
    }

    fn apply(&mut self, from: Place, to: Place, text: &str) -> Place {
        let tail = String::from(&self.lines[to.line][to.byte..]);
        self.lines[from.line].truncate(from.byte);
        let mut pieces = text.split('\n');
        self.lines[from.line].push_str(pieces.next().unwrap_or_default());
        let fresh: Vec<String> = pieces.map(String::from).collect();
        let last = from.line + fresh.len();
        self.lines.splice(from.line + 1..to.line + 1, fresh);
        let end = Place { line: last, byte: self.lines[last].len() };
        self.lines[last].push_str(&tail);
        end
    }

    /// Undoes the last step; returns its position, if there was one.
    pub fn undo(&mut self) -> Option<Place> {
        let change = self.done.pop()?;
        let end = self.apply(change.at, end_of(change.at, &change.inserted), &change.removed);
        self.undone.push(change);
        self.joins = false;
        Some(end)
    }

    /// Redoes the last undone step; returns its end, if there was one.
    pub fn redo(&mut self) -> Option<Place> {
        let change = self.undone.pop()?;
        let end = self.apply(change.at, end_of(change.at, &change.removed), &change.inserted);
        self.done.push(change);
        self.joins = false;
        Some(end)
    }
}

fn bytes_of(change: &Change) -> usize {
    change.removed.len() + change.inserted.len() + size_of::<Change>()
}

/// Returns the position after a text that begins at `at`.
fn end_of(at: Place, text: &str) -> Place {
    match text.rsplit_once('\n') {
        None => Place { byte: at.byte + text.len(), ..at },
        Some((before, last)) => Place { line: at.line + 1 + before.matches('\n').count(), byte: last.len() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: usize, byte: usize) -> Place {
        Place { line, byte }
    }

    #[test]
    fn a_file_stays_what_it_is() {
        for file in ["", "a", "a\n", "a\n\nb", "\r\nx\r\n"] {
            let text = Text::new(file);
            assert_eq!((text.lines().join("\n").as_str(), text.bytes()), (file, file.len()));
            assert!(!text.is_changed());
        }
    }

    #[test]
    fn lines_are_broken_and_joined() {
        let mut text = Text::new("ab\ncd");
        assert_eq!(text.insert(place(0, 1), "x\ny\n"), place(2, 0));
        assert_eq!(text.lines(), ["ax", "y", "b", "cd"]);
        text.remove(place(0, 1), place(3, 1));
        assert_eq!(text.lines(), ["ad"]);
        assert_eq!(text.end(), place(0, 2));
    }

    #[test]
    fn steps_are_taken_back_word_by_word() {
        let mut text = Text::new("");
        let mut at = place(0, 0);
        for letter in ["o", "n", "e", " ", "t", "w", "o"] {
            at = text.insert(at, letter);
        }
        text.end_step();
        text.insert(at, "!");
        let mut seen = Vec::new();
        while text.undo().is_some() {
            seen.push(String::from(text.line(0)));
        }
        assert_eq!(seen, ["one two", "one", ""]);
        while text.redo().is_some() {}
        assert_eq!(text.line(0), "one two!");
    }

    #[test]
    fn it_knows_whether_it_is_saved() {
        let mut text = Text::new("a");
        text.insert(place(0, 1), "b");
        assert!(text.is_changed());
        text.set_saved();
        let end = text.insert(place(0, 2), "c");
        assert!(text.is_changed());
        text.undo();
        assert!(!text.is_changed());
        text.undo();
        assert!(text.is_changed());
        // The saved state cannot be reached any more.
        text.insert(place(0, 1), "x");
        text.undo();
        text.undo();
        assert!(text.is_changed());
        assert_eq!(end, place(0, 3));
    }

    #[test]
    fn any_changes_can_be_taken_back_and_done_again() {
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % below
        };
        let mut text = Text::new("one\ntwo ä\n\nthree");
        let before = text.lines().to_vec();
        for _ in 0..300 {
            let [left, right] = [0, 0].map(|_| {
                let line = random(text.lines().len());
                let bounds: Vec<usize> =
                    (0..=text.line(line).len()).filter(|at| text.line(line).is_char_boundary(*at)).collect();
                place(line, bounds[random(bounds.len())])
            });
            match random(3) {
                0 => text.remove(left.min(right), left.max(right)),
                1 => drop(text.insert(left, "é\n")),
                _ => drop(text.insert(left, "x")),
            }
        }
        let after = text.lines().to_vec();
        while text.undo().is_some() {}
        assert_eq!(text.lines(), before);
        while text.redo().is_some() {}
        assert_eq!(text.lines(), after);
    }
}
