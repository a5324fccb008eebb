//! The state machine: keys to changes of the line, and the line to the screen.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::buffer::Buffer;
use crate::completion::{self, Candidate};
use crate::history::History;
use crate::keys::{Decoder, Key};
use crate::layout::Place;
use crate::paint::{Highlighter, Painter, Pastes, Style};

/// Minimum plausible width of a terminal, in columns.
const COLUMNS_MIN: usize = 8;
/// Maximum lines of the history.
const HISTORY_LINES: usize = 1000;

/// Events for the owner. After all but [`Event::CompletionWanted`] the editor is idle until the next
/// [`Editor::begin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The line was entered.
    Line(String),
    /// Ctrl-C: the line is abandoned.
    Cancelled,
    /// Ctrl-D on an empty line.
    EndOfInput,
    /// Tab: answer with [`Editor::complete`].
    CompletionWanted {
        /// The whole line.
        line: String,
        /// Byte offset of the cursor in it.
        cursor: usize,
    },
}

/// An incremental search through the history.
#[derive(Clone, Debug)]
struct Search {
    query: String,
    /// Index of the line found.
    found: Option<usize>,
    /// Whether the last search step found nothing.
    failed: bool,
    /// The line before the search.
    before: String,
}

/// Edits one line at a time on a terminal.
#[derive(Clone, Debug)]
pub struct Editor {
    decoder: Decoder,
    buffer: Buffer,
    history: History,
    prompt: String,
    columns: usize,
    highlighter: Option<Highlighter>,
    colours: bool,
    pasting: bool,
    search: Option<Search>,
    /// Index into the history of the line shown; its length for the line being written.
    position: usize,
    draft: String,
    /// Row of the cursor, relative to the row in which the prompt begins.
    cursor_row: usize,
    /// Whether the screen is out of date: keys that arrive together are drawn once.
    stale: bool,
}

impl Editor {
    /// Creates an idle editor for a terminal of that many columns, without colours.
    pub fn new(columns: usize) -> Editor {
        Editor {
            decoder: Decoder::new(),
            buffer: Buffer::new(),
            history: History::new(HISTORY_LINES),
            prompt: String::new(),
            columns: columns.max(COLUMNS_MIN),
            highlighter: None,
            colours: false,
            pasting: false,
            search: None,
            position: 0,
            draft: String::new(),
            cursor_row: 0,
            stale: false,
        }
    }

    /// Sets the terminal's width; takes effect at the next redraw.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns.max(COLUMNS_MIN);
    }

    /// Enables colours, with an optional highlighter for the line.
    pub fn set_colours(&mut self, highlighter: Option<Highlighter>) {
        self.colours = true;
        self.highlighter = highlighter;
    }

    /// Disables colours; the initial state.
    pub fn set_plain(&mut self) {
        self.colours = false;
        self.highlighter = None;
    }

    /// Returns the history. The caller adds lines, since not every line belongs there.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    /// The history.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Starts a line: shows the prompt. The cursor must be at the start of a row.
    pub fn begin(&mut self, prompt: &str, out: &mut Vec<u8>) {
        self.prompt = prompt.to_string();
        self.buffer.take();
        self.search = None;
        self.pasting = false;
        self.position = self.history.len();
        self.draft.clear();
        self.cursor_row = 0;
        Painter::new(out).mark_pastes(Pastes::Marked);
        self.draw(out);
    }

    /// Erases the line from the screen, to make room for other output; [`Editor::show`] redraws it.
    pub fn hide(&mut self, out: &mut Vec<u8>) {
        let mut painter = Painter::new(out);
        painter.up(self.cursor_row);
        painter.column(0);
        painter.clear_below();
        self.cursor_row = 0;
        self.stale = false;
    }

    /// Redraws the line. The cursor must be at the start of a row.
    pub fn show(&mut self, out: &mut Vec<u8>) {
        self.cursor_row = 0;
        self.draw(out);
    }

    /// Processes bytes from the terminal, up to and including the first that triggers an event; returns the number
    /// consumed, and the event. Output is appended to `out`.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Option<Event>) {
        for (offset, &byte) in input.iter().enumerate() {
            for key in self.decoder.push(byte).into_iter().flatten() {
                let event = if self.search.is_some() { self.search_key(key, out) } else { self.key(key, out) };
                if event.is_some() {
                    self.refresh(out);
                    return (offset + 1, event);
                }
            }
        }
        self.refresh(out);
        (input.len(), None)
    }

    /// Responds to [`Event::CompletionWanted`]: the candidate replaces the text from byte offset `start` to the
    /// cursor.
    pub fn complete(&mut self, start: usize, candidates: &[Candidate], out: &mut Vec<u8>) {
        let typed = self.buffer.text().get(start..self.buffer.cursor()).unwrap_or("").to_string();
        match candidates {
            [] => Painter::new(out).bell(),
            [only] => {
                self.buffer.replace_before_cursor(start, &format!("{}{}", only.text, only.suffix));
                self.draw(out);
            }
            several => {
                let common = completion::common_prefix(several);
                if common.len() > typed.len() {
                    self.buffer.replace_before_cursor(start, common);
                    self.draw(out);
                } else {
                    self.list(several, out);
                }
            }
        }
    }

    fn list(&mut self, candidates: &[Candidate], out: &mut Vec<u8>) {
        self.go_to_end(out);
        let mut painter = Painter::new(out);
        painter.new_row();
        for row in completion::rows(candidates, self.columns) {
            painter.text(&row);
            painter.new_row();
        }
        self.show(out);
    }

    fn key(&mut self, key: Key, out: &mut Vec<u8>) -> Option<Event> {
        if self.pasting {
            self.paste_key(key);
            return None;
        }
        let changed = match key {
            Key::Char(character) => return self.insert_and_draw(character, out),
            Key::Enter => return Some(self.finish(out)),
            Key::Control('C') => return Some(self.cancel(out)),
            Key::Control('D') if self.buffer.text().is_empty() => {
                self.leave(out);
                return Some(Event::EndOfInput);
            }
            Key::Tab => {
                return Some(Event::CompletionWanted {
                    line: self.buffer.text().to_string(),
                    cursor: self.buffer.cursor(),
                });
            }
            Key::Control('L') => {
                self.refresh(out);
                Painter::new(out).clear_screen();
                self.cursor_row = 0;
                true
            }
            Key::Control('R') => {
                let before = self.buffer.text().to_string();
                self.search = Some(Search { query: String::new(), found: None, failed: false, before });
                true
            }
            Key::PasteStart => {
                self.pasting = true;
                return None;
            }
            Key::Up | Key::Control('P') => self.older(),
            Key::Down | Key::Control('N') => self.newer(),
            Key::Alt('<') => self.show_history(0),
            Key::Alt('>') => self.show_history(self.history.len()),
            Key::Alt('.') => self.insert_last_word(),
            _ => self.edit(key),
        };
        if changed {
            self.stale = true;
        } else {
            Painter::new(out).bell();
        }
        None
    }

    /// Handles keys that only concern the line; returns whether anything changed.
    fn edit(&mut self, key: Key) -> bool {
        let buffer = &mut self.buffer;
        match key {
            Key::Left | Key::Control('B') => buffer.move_left(),
            Key::Right | Key::Control('F') => buffer.move_right(),
            Key::WordLeft | Key::Alt('b' | 'B') => buffer.move_word_left(),
            Key::WordRight | Key::Alt('f' | 'F') => buffer.move_word_right(),
            Key::Home | Key::Control('A') => buffer.move_home() || buffer.text().is_empty(),
            Key::End | Key::Control('E') => buffer.move_end() || buffer.text().is_empty(),
            Key::Backspace | Key::Control('H') => buffer.delete_left(),
            Key::Delete | Key::Control('D') => buffer.delete_right(),
            Key::Control('K') => buffer.kill_to_end(),
            Key::Control('U') => buffer.kill_to_start(),
            Key::Control('W') => buffer.kill_big_word_left(),
            Key::AltBackspace => buffer.kill_word_left(),
            Key::Alt('d' | 'D') => buffer.kill_word_right(),
            Key::Control('Y') => buffer.yank(),
            Key::Alt('y' | 'Y') => buffer.yank_older(),
            Key::Control('T') => buffer.transpose(),
            Key::Control('_') => buffer.undo(),
            _ => false,
        }
    }

    fn paste_key(&mut self, key: Key) {
        match key {
            Key::PasteEnd => {
                self.pasting = false;
                self.stale = true;
            }
            Key::Char(character) => self.buffer.insert(character.encode_utf8(&mut [0; 4])),
            Key::Enter => self.buffer.insert("\n"),
            Key::Tab => self.buffer.insert("\t"),
            // Any other key in a paste is ignored; otherwise a web page could press keys.
            _ => {}
        }
    }

    fn insert_and_draw(&mut self, character: char, out: &mut Vec<u8>) -> Option<Event> {
        let at_end = self.buffer.cursor() == self.buffer.text().len();
        let before = self.place_of(self.buffer.text().len());
        self.buffer.insert(character.encode_utf8(&mut [0; 4]));
        let after = before.after(character, self.columns);
        // Fast path without redraw: one character appended at the end.
        if at_end && !self.stale && !self.colours && after.row == before.row && after.column < self.columns {
            Painter::new(out).text(character.encode_utf8(&mut [0; 4]));
        } else {
            self.stale = true;
        }
        None
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Event {
        self.leave(out);
        Event::Line(self.buffer.take())
    }

    fn cancel(&mut self, out: &mut Vec<u8>) -> Event {
        self.go_to_end(out);
        let mut painter = Painter::new(out);
        painter.text("\x03");
        painter.mark_pastes(Pastes::Plain);
        painter.new_row();
        self.buffer.take();
        Event::Cancelled
    }

    /// Leaves the line as is and moves to the row below it.
    fn leave(&mut self, out: &mut Vec<u8>) {
        self.stale |= self.search.take().is_some();
        self.go_to_end(out);
        let mut painter = Painter::new(out);
        painter.mark_pastes(Pastes::Plain);
        painter.new_row();
    }

    fn older(&mut self) -> bool {
        self.position.checked_sub(1).is_some_and(|index| self.show_history(index))
    }

    fn newer(&mut self) -> bool {
        self.position < self.history.len() && self.show_history(self.position + 1)
    }

    fn show_history(&mut self, index: usize) -> bool {
        if index == self.position {
            return false;
        }
        if self.position >= self.history.len() {
            self.draft = self.buffer.text().to_string();
        }
        let Some(text) = self.history.get(index).map(String::from).or_else(|| Some(self.draft.clone())) else {
            return false;
        };
        self.position = index;
        self.buffer.set(&text);
        true
    }

    fn insert_last_word(&mut self) -> bool {
        let last = self.history.iter().next_back().and_then(|line| line.split_whitespace().next_back());
        let Some(word) = last.map(String::from) else { return false };
        self.buffer.insert(&word);
        true
    }

    fn search_key(&mut self, key: Key, out: &mut Vec<u8>) -> Option<Event> {
        let mut search = self.search.take()?;
        match key {
            Key::Char(character) => {
                search.query.push(character);
                let end = search.found.map_or(self.history.len(), |found| found + 1);
                let found = self.history.find_older(&search.query, end);
                self.search_step(&mut search, found);
            }
            Key::Backspace | Key::Control('H') => {
                search.query.pop();
                let found = self.history.find_older(&search.query, self.history.len());
                self.search_step(&mut search, found);
            }
            Key::Control('R') => {
                let end = search.found.unwrap_or(self.history.len());
                let found = self.history.find_older(&search.query, end);
                self.search_step(&mut search, found);
            }
            Key::Control('S') => {
                let start = search.found.map_or(self.history.len(), |found| found + 1);
                let found = self.history.find_newer(&search.query, start);
                self.search_step(&mut search, found);
            }
            Key::Control('G') => {
                self.buffer.set(&search.before);
                self.stale = true;
                return None;
            }
            Key::Control('C') => {
                self.stale = true;
                return Some(self.cancel(out));
            }
            // Any other key accepts the line found and then has its usual effect.
            _ => {
                if let Some(found) = search.found {
                    self.position = found;
                    self.draft = search.before;
                }
                self.stale = true;
                return self.key(key, out);
            }
        }
        self.search = Some(search);
        self.stale = true;
        None
    }

    fn search_step(&mut self, search: &mut Search, found: Option<usize>) {
        if search.query.is_empty() {
            search.failed = false;
            search.found = None;
            return self.buffer.set(&search.before);
        }
        search.failed = found.is_none();
        if let Some(index) = found {
            search.found = Some(index);
            let text = self.history.get(index).unwrap_or_default().to_string();
            self.buffer.set(&text);
        }
    }

    fn shown_prompt(&self) -> String {
        match &self.search {
            None => self.prompt.clone(),
            Some(search) if search.failed => format!("(nothing has `{}`): ", search.query),
            Some(search) => format!("(search `{}`): ", search.query),
        }
    }

    /// Returns the cell of a byte offset of the line.
    fn place_of(&self, offset: usize) -> Place {
        let start = Place::default().after_text(&self.shown_prompt(), self.columns);
        start.after_text(self.buffer.text().get(..offset).unwrap_or(""), self.columns)
    }

    /// Redraws if the screen is stale.
    fn refresh(&mut self, out: &mut Vec<u8>) {
        if self.stale {
            self.draw(out);
        }
    }

    /// Draws prompt and line from the row in which the prompt begins.
    fn draw(&mut self, out: &mut Vec<u8>) {
        self.stale = false;
        let end = self.place_of(self.buffer.text().len());
        let target = self.place_of(self.buffer.cursor()).settled(self.columns);
        let prompt = self.shown_prompt();
        let mut painter = Painter::new(out);
        painter.up(self.cursor_row);
        painter.column(0);
        painter.clear_below();
        painter.styled(&prompt, if self.colours { Style::Prompt } else { Style::Plain });
        let text = self.buffer.text();
        let mut shown = 0;
        for span in self.highlighter.map(|highlight| highlight(text)).unwrap_or_default() {
            let (Some(between), Some(part)) = (text.get(shown..span.start), text.get(span.start..span.end)) else {
                continue;
            };
            painter.text(between);
            painter.styled(part, span.style);
            shown = span.end;
        }
        painter.text(text.get(shown..).unwrap_or(""));
        // A full row leaves the terminal's cursor on it; the next row may not exist yet.
        if end.column >= self.columns {
            painter.new_row();
        }
        painter.up(end.settled(self.columns).row - target.row);
        painter.column(target.column);
        self.cursor_row = target.row;
    }

    /// Moves the terminal's cursor after the line.
    fn go_to_end(&mut self, out: &mut Vec<u8>) {
        self.refresh(out);
        let end = self.place_of(self.buffer.text().len()).settled(self.columns);
        let mut painter = Painter::new(out);
        painter.down(end.row.saturating_sub(self.cursor_row));
        painter.column(end.column);
        self.cursor_row = end.row;
    }
}
