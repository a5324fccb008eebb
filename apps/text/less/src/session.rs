//! Interactive session of the pager: key bindings and the status row.

use alloc::format;
use alloc::string::{String, ToString};

use file_tools::feed::{Error, INPUT_NAME, Reader};
use line_editor::Key;
use sip::Deadline;
use text::printable;
use tool_kit::screen::{Event, PageText, Screen, ShowError};

use crate::pager::{Long, Pager};
use crate::source::{MAX_BYTES, Source, State};

/// Interval at which newly read text is polled for while the screen is not full, in milliseconds.
const LOOK_MS: u64 = 50;
const HELP: &str = "space b: page  j k: row  g G: start, end  5g: line 5  / ? n N: search  :n :p: file  q: quit";

/// Why the display of a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The user quits.
    Quit,
    /// The next text is requested.
    Next,
    /// The previous text is requested.
    Previous,
}

/// Prompt in the last row.
enum Prompt {
    None,
    /// Search downwards or upwards.
    Search {
        text: String,
        direction: Direction,
    },
    /// Colon command.
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Below,
    Above,
}

/// A terminal that shows texts.
pub struct Session {
    screen: Screen,
    pager: Pager,
    long: Long,
    has_numbers: bool,
    name: String,
    place: (usize, usize),
    state: State,
    prompt: Prompt,
    /// Numeric prefix typed before a key.
    number: String,
    message: String,
    direction: Direction,
    /// Whether to go to the end once everything is read.
    wants_end: bool,
}

impl Session {
    /// Starts a session on this screen.
    pub fn new(screen: Screen, long: Long, has_numbers: bool) -> Session {
        Session {
            screen,
            pager: Pager::new(long, has_numbers),
            long,
            has_numbers,
            name: String::new(),
            place: (1, 1),
            state: State::Reading,
            prompt: Prompt::None,
            number: String::new(),
            message: String::new(),
            direction: Direction::Below,
            wants_end: false,
        }
    }

    /// Shows one text until the user switches to another or quits. `place` is its number and the total.
    ///
    /// # Errors
    ///
    /// A sentence, if it cannot be shown.
    pub fn show(&mut self, name: &str, reader: Reader, place: (usize, usize)) -> Result<End, String> {
        self.name = if name == INPUT_NAME { String::new() } else { printable(name.as_bytes()) };
        self.place = place;
        self.pager = Pager::new(self.long, self.has_numbers);
        self.wants_end = false;
        self.state = State::Reading;
        self.resize();
        let source = Source::read(reader).map_err(|status| format!("no thread can be made: {}", status.text()))?;
        let mut is_first = true;
        loop {
            self.take(&source);
            match self.screen.show(&self.page()) {
                Ok(()) => {}
                Err(ShowError::Gone) => return Ok(End::Quit),
                Err(ShowError::Busy) if is_first => {
                    return Err("another program has the terminal; bring this one to the foreground first".into());
                }
                Err(ShowError::Busy) => {}
            }
            is_first = false;
            let deadline = match self.state {
                State::Reading => Deadline::after_ms(LOOK_MS),
                _ => Deadline::NEVER,
            };
            match self.screen.wait(deadline) {
                Event::Gone => return Ok(End::Quit),
                Event::Nothing => {}
                Event::Resized => self.resize(),
                Event::Keys(keys) => {
                    self.message.clear();
                    for key in keys {
                        if let Some(end) = self.press(key) {
                            return Ok(end);
                        }
                    }
                }
            }
        }
    }

    /// Appends newly read text.
    fn take(&mut self, source: &Source) {
        if self.state != State::Reading {
            return;
        }
        let (bytes, state) = source.take();
        self.pager.push(&bytes);
        self.state = state;
        if self.wants_end {
            self.pager.go_to_end();
        }
    }

    fn resize(&mut self) {
        let size = self.screen.size();
        self.pager.resize(size.columns, size.rows.saturating_sub(1));
    }

    fn page(&self) -> PageText {
        let mut page = PageText::new();
        let shown = self.pager.shown();
        for row in &shown {
            for (text, inverted) in row {
                if *inverted { page.inverted(text) } else { page.text(text) }
            }
            page.end_row();
        }
        for _ in shown.len()..self.pager.page() {
            page.text("~");
            page.end_row();
        }
        match &self.prompt {
            Prompt::Search { text, direction } => {
                page.text(if *direction == Direction::Below { "/" } else { "?" });
                page.text(text);
            }
            Prompt::Command => page.text(":"),
            Prompt::None if !self.number.is_empty() => page.text(&format!(":{}", self.number)),
            Prompt::None => page.inverted(&self.status()),
        }
        page.cursor();
        page
    }

    fn status(&self) -> String {
        if !self.message.is_empty() {
            return self.message.clone();
        }
        let mut status = self.name.clone();
        if self.place.1 > 1 {
            status += &format!(" (file {} of {})", self.place.0, self.place.1);
        }
        let lines = self.pager.lines();
        let at_end = self.pager.is_at_end();
        status += &match &self.state {
            State::Failed(Error::File(error)) => format!(" {error}"),
            State::Failed(_) => " (truncated: its program ended)".into(),
            State::CutOff if at_end => format!(" (the first {} MiB; there is more)", MAX_BYTES >> 20),
            State::Ended if at_end => " (END)".into(),
            State::Reading => format!(" line {} (reading)", self.pager.top_line()),
            State::Ended | State::CutOff => format!(" line {} of {lines}", self.pager.top_line()),
        };
        status.trim_start().to_string()
    }

    fn press(&mut self, key: Key) -> Option<End> {
        match core::mem::replace(&mut self.prompt, Prompt::None) {
            Prompt::None => self.press_command(key),
            Prompt::Search { text, direction } => {
                self.press_in_search(key, text, direction);
                None
            }
            Prompt::Command => match key {
                Key::Char('n') => Some(End::Next),
                Key::Char('p') => Some(End::Previous),
                Key::Char('q') => Some(End::Quit),
                _ => None,
            },
        }
    }

    fn press_in_search(&mut self, key: Key, mut text: String, direction: Direction) {
        match key {
            Key::Enter => {
                if !text.is_empty() {
                    self.pager.set_search(&text);
                }
                self.direction = direction;
                let found = match direction {
                    Direction::Below => self.pager.find_here(),
                    Direction::Above => self.pager.find_above(),
                };
                self.say_unless(found);
                return;
            }
            Key::Char(character) => text.push(character),
            Key::Backspace if text.is_empty() => return,
            Key::Backspace => drop(text.pop()),
            Key::Control('C' | 'G') => return,
            _ => {}
        }
        self.prompt = Prompt::Search { text, direction };
    }

    fn say_unless(&mut self, found: bool) {
        if !found {
            self.message = String::from(match self.state {
                State::Reading => "not found so far",
                _ => "not found",
            });
        }
    }

    fn press_command(&mut self, key: Key) -> Option<End> {
        if let Key::Char(digit @ '0'..='9') = key {
            if self.number.len() < 9 {
                self.number.push(digit);
            }
            return None;
        }
        let number = core::mem::take(&mut self.number).parse::<usize>().ok();
        let page = self.pager.page();
        self.wants_end = false;
        match key {
            Key::Char('q' | 'Q') | Key::Control('C') => return Some(End::Quit),
            Key::Char(' ' | 'f') | Key::PageDown | Key::Control('F' | 'V') => self.pager.down(number.unwrap_or(page)),
            Key::Char('b') | Key::PageUp | Key::Control('B') => self.pager.up(number.unwrap_or(page)),
            Key::Char('d') | Key::Control('D') => self.pager.down(number.unwrap_or(page / 2)),
            Key::Char('u') | Key::Control('U') => self.pager.up(number.unwrap_or(page / 2)),
            Key::Char('j' | 'e') | Key::Enter | Key::Down | Key::Control('N') => self.pager.down(number.unwrap_or(1)),
            Key::Char('k' | 'y') | Key::Up | Key::Control('P') => self.pager.up(number.unwrap_or(1)),
            Key::Char('g' | '<') | Key::Home => self.pager.go_to(number.unwrap_or(1)),
            Key::Char('G' | '>') | Key::End => match number {
                Some(line) => self.pager.go_to(line),
                None => {
                    self.wants_end = self.state == State::Reading;
                    self.pager.go_to_end();
                }
            },
            Key::Char('/') => self.prompt = Prompt::Search { text: String::new(), direction: Direction::Below },
            Key::Char('?') => self.prompt = Prompt::Search { text: String::new(), direction: Direction::Above },
            Key::Char('n') => self.find_again(self.direction),
            Key::Char('N') => self.find_again(match self.direction {
                Direction::Below => Direction::Above,
                Direction::Above => Direction::Below,
            }),
            Key::Char(':') => self.prompt = Prompt::Command,
            Key::Char('h') => self.message = HELP.into(),
            _ => {}
        }
        None
    }

    fn find_again(&mut self, direction: Direction) {
        let found = match direction {
            Direction::Below => self.pager.find_below(),
            Direction::Above => self.pager.find_above(),
        };
        self.say_unless(found);
    }
}
