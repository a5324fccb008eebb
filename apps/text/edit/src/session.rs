//! An editing session: screen content, prompts, saving and quitting.

use alloc::format;
use alloc::string::String;

use client::namespace::Namespace;
use line_editor::Key;
use sip::Deadline;
use stdio::report;
use text::printable;
use tool_kit::screen::{Event, PageText, Screen, ShowError};
use tool_kit::view::window;

use crate::document::{Document, MAX_BYTES};
use crate::editor::Editor;
use crate::text::Place;

/// Rows that are not used for the text.
const OTHER_ROWS: usize = 2;
const HELP: &str = "^S save  ^Q quit  ^F find  ^N next  ^U undo  ^R redo  ^K cut line  ^Y paste  ^G line  ^O save as";

/// Prompt in the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Text to search for.
    Find,
    /// Line number.
    Line,
    /// New file name.
    SaveAs,
    /// Whether to save before quitting.
    Quit,
    /// Whether to overwrite another program's changes.
    Overwrite(Then),
}

/// Action after saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Stay,
    Quit,
}

/// Whether the session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    On,
    Ends,
}

/// An editing session for one file.
pub struct Session {
    screen: Screen,
    namespace: Namespace,
    working_folder: String,
    document: Document,
    editor: Editor,
    question: Option<Question>,
    answer: String,
    message: String,
    wanted: String,
}

impl Session {
    /// Starts with the cursor on this line, counted from 1.
    pub fn new(
        screen: Screen,
        namespace: Namespace,
        working_folder: String,
        document: Document,
        mut editor: Editor,
        line: usize,
    ) -> Session {
        editor.go_to(Place { line: line.saturating_sub(1), byte: 0 });
        Session {
            screen,
            namespace,
            working_folder,
            document,
            editor,
            question: None,
            answer: String::new(),
            message: String::new(),
            wanted: String::new(),
        }
    }

    /// Edits until the user quits; returns the exit status.
    pub fn run(mut self, is_new: bool) -> i32 {
        if is_new {
            self.message = "a new file".into();
        }
        self.resize();
        match self.screen.show(&self.page()) {
            Ok(()) => {}
            Err(ShowError::Gone) => return 1,
            Err(ShowError::Busy) => {
                report::error(format_args!("another program has the terminal; bring this one to the foreground first"));
                return 1;
            }
        }
        loop {
            match self.screen.wait(Deadline::NEVER) {
                Event::Gone => return self.rescue(),
                Event::Nothing => {}
                Event::Resized => self.resize(),
                Event::Keys(keys) => {
                    for key in keys {
                        if self.press(key) == Goes::Ends {
                            return 0;
                        }
                    }
                }
            }
            if !self.screen.show_when_free(&self.page()) {
                return self.rescue();
            }
        }
    }

    fn resize(&mut self) {
        let size = self.screen.size();
        self.editor.resize(size.rows.saturating_sub(OTHER_ROWS), size.columns);
    }

    /// The terminal is gone: saves unsaved text to a file beside the original.
    fn rescue(&mut self) -> i32 {
        if !self.editor.text.is_changed() {
            return 1;
        }
        let name = format!("{}.save", self.document.name);
        self.document.rename(&name, &path::absolute(&self.working_folder, &name));
        match self.document.write(&mut self.namespace, self.editor.text.lines()) {
            Ok(()) => report::error(format_args!("the terminal is gone; unsaved changes are in {name}")),
            Err(error) => report::error(format_args!("the terminal is gone, and {name} cannot be written: {error}")),
        }
        1
    }

    fn page(&self) -> PageText {
        let size = self.screen.size();
        let (top, left) = self.editor.corner();
        let rows = size.rows.saturating_sub(OTHER_ROWS).max(1);
        let (cursor, column) = (self.editor.cursor(), self.editor.cursor_column());
        let mut page = PageText::new();
        for row in 0..rows {
            let line = self.editor.text.lines().get(top + row);
            let shown = line.map_or_else(|| String::from("~"), |line| window(line, left, size.columns));
            if top + row == cursor.line && self.question.is_none() {
                // Splits at the cursor, which is on a character boundary.
                let before = window(line.map_or("", String::as_str), left, column - left);
                page.text(&before);
                page.cursor();
                page.text(shown.strip_prefix(before.as_str()).unwrap_or_default());
            } else {
                page.text(&shown);
            }
            page.end_row();
        }
        page.inverted(&self.status(size.columns));
        page.end_row();
        match self.question {
            Some(question) => {
                page.text(&self.asked(question));
                page.text(&self.answer);
                page.cursor();
            }
            None if self.message.is_empty() => page.text(HELP),
            None => page.text(&self.message),
        }
        page
    }

    fn status(&self, columns: usize) -> String {
        let changed = if self.editor.text.is_changed() { " (changed)" } else { "" };
        let (line, lines) = (self.editor.cursor().line + 1, self.editor.text.lines().len());
        let name = printable(self.document.name.as_bytes());
        let text = format!("{name}{changed}  line {line} of {lines}, column {}", self.editor.cursor_column() + 1);
        format!("{text:columns$}")
    }

    fn asked(&self, question: Question) -> String {
        match question {
            Question::Find if self.wanted.is_empty() => "find: ".into(),
            Question::Find => format!("find (Enter: {}): ", self.wanted),
            Question::Line => "line: ".into(),
            Question::SaveAs => "save as: ".into(),
            Question::Quit => "save changes? y: yes, n: no, ^C: cancel ".into(),
            Question::Overwrite(_) => "the file has changed on disk; overwrite? y or n ".into(),
        }
    }

    fn press(&mut self, key: Key) -> Goes {
        self.message.clear();
        if let Some(question) = self.question.take() {
            return self.press_answer(question, key);
        }
        match key {
            Key::Control('S') => return self.save(Then::Stay),
            Key::Control('Q' | 'X') if !self.editor.text.is_changed() => return Goes::Ends,
            Key::Control('Q' | 'X') => self.ask(Question::Quit),
            Key::Control('F' | 'W') => self.ask(Question::Find),
            Key::Control('N') => self.find(),
            Key::Control('G') => self.ask(Question::Line),
            Key::Control('O') => {
                self.ask(Question::SaveAs);
                self.answer = self.document.name.clone();
            }
            Key::Control('C') => self.message = "^Q quits".into(),
            Key::Control('L') => self.resize(),
            Key::PasteStart | Key::PasteEnd | Key::Unknown => {}
            _ if self.editor.text.bytes() >= MAX_BYTES
                && matches!(key, Key::Char(_) | Key::Enter | Key::Control('Y')) =>
            {
                self.message = format!("files larger than {} MiB cannot be edited", MAX_BYTES >> 20);
            }
            _ => drop(self.editor.press(key)),
        }
        Goes::On
    }

    fn ask(&mut self, question: Question) {
        self.answer.clear();
        self.question = Some(question);
    }

    fn press_answer(&mut self, question: Question, key: Key) -> Goes {
        match (question, key) {
            (_, Key::Control('C' | 'G')) => {}
            (Question::Quit, Key::Char('y' | 'Y')) => return self.save(Then::Quit),
            (Question::Quit, Key::Char('n' | 'N')) => return Goes::Ends,
            (Question::Overwrite(then), Key::Char('y' | 'Y')) => return self.write(then),
            (Question::Overwrite(_), Key::Char('n' | 'N')) => self.message = "not saved".into(),
            (Question::Quit | Question::Overwrite(_), _) => self.question = Some(question),
            (_, Key::Enter) => return self.answered(question),
            (_, key) => {
                match key {
                    Key::Char(character) => self.answer.push(character),
                    Key::Backspace | Key::Control('H') => drop(self.answer.pop()),
                    Key::Control('U') => self.answer.clear(),
                    _ => {}
                }
                self.question = Some(question);
            }
        }
        Goes::On
    }

    fn answered(&mut self, question: Question) -> Goes {
        let answer = core::mem::take(&mut self.answer);
        match question {
            Question::Find => {
                if !answer.is_empty() {
                    self.wanted = answer;
                }
                self.find();
            }
            Question::Line => match answer.trim().parse::<usize>() {
                Ok(line) => self.editor.go_to(Place { line: line.saturating_sub(1), byte: 0 }),
                Err(_) => self.message = format!("`{answer}` is not a line number"),
            },
            Question::SaveAs if !answer.is_empty() => {
                self.document.rename(&answer, &path::absolute(&self.working_folder, &answer));
                return self.save(Then::Stay);
            }
            Question::SaveAs | Question::Quit | Question::Overwrite(_) => {}
        }
        Goes::On
    }

    fn find(&mut self) {
        if self.wanted.is_empty() {
            return self.ask(Question::Find);
        }
        if !self.editor.find(&self.wanted) {
            self.message = format!("`{}` not found", self.wanted);
        }
    }

    fn save(&mut self, then: Then) -> Goes {
        if self.document.is_changed_by_others(&mut self.namespace) {
            self.ask(Question::Overwrite(then));
            return Goes::On;
        }
        self.write(then)
    }

    fn write(&mut self, then: Then) -> Goes {
        match self.document.write(&mut self.namespace, self.editor.text.lines()) {
            Ok(()) => {
                self.editor.text.set_saved();
                self.message = format!("saved, {} bytes", self.editor.text.bytes());
                if then == Then::Quit { Goes::Ends } else { Goes::On }
            }
            Err(error) => {
                self.message = format!("not saved: {error}");
                Goes::On
            }
        }
    }
}
