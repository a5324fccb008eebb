//! The state of a console.
//!
//! On a terminal, lines are edited, Ctrl-C and Ctrl-Z are events, and output is sanitized. Otherwise input and output
//! are unmodified byte streams.

use alloc::string::String;
use alloc::vec::Vec;

use command_language::HighlightKind;
use line_editor::{Candidate, Editor, Event, Span, Style};

use crate::page::Page;
use crate::secret::SecretLine;

/// Maximum type-ahead in bytes; the excess is dropped.
pub const TYPED_AHEAD_BYTES: usize = 64 * 1024;
/// Maximum output buffered while a page is shown, in bytes; the excess is dropped.
const HELD_OUTPUT_BYTES: usize = 64 * 1024;
/// Number of unread Ctrl-C after which a full-screen program is interrupted like any other.
const IGNORED_INTERRUPTS: usize = 3;
/// Maximum line length of a byte stream; longer lines are split.
const LINE_BYTES: usize = 1 << 20;
const CONTROL_C: u8 = 0x03;
const CONTROL_Z: u8 = 0x1a;
const FORM_FEED: u8 = 0x0c;
const CARRIAGE_RETURN: u8 = b'\r';

/// The kind of the pending read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// None.
    Nothing,
    /// A line of text.
    Text,
    /// A command line.
    Command,
    /// A line without echo.
    Secret,
    /// Raw bytes.
    Bytes,
}

/// Signals for the job control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C without a pending read: kill the job.
    Interrupt,
    /// Ctrl-Z while no command is edited: suspend the job.
    Stop,
}

/// The result of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// A line, without its newline.
    Line(Vec<u8>),
    /// The user cancelled it.
    Interrupted,
    /// End of input.
    EndOfInput,
    /// Completion is requested at byte `cursor`: reply with [`Terminal::complete`].
    Complete {
        /// The line so far.
        text: String,
        /// Cursor position, in bytes.
        cursor: usize,
    },
}

/// The state of the console.
#[derive(Debug)]
pub struct Terminal {
    interactive: bool,
    colours: bool,
    editor: Editor,
    secret: SecretLine,
    /// Prompt of a line without echo.
    secret_prompt: String,
    reading: Reading,
    /// Unread input.
    pending: Vec<u8>,
    ended: bool,
    /// Whether the terminal's cursor is in the first column.
    at_row_start: bool,
    /// The last output byte was the first of a character that may turn out to be a control character.
    after_c2: bool,
    /// The last output byte was a carriage return: the row is still to be cleared.
    after_return: bool,
    /// The page of a full-screen program.
    page: Option<Page>,
    /// Output of others while the page is shown.
    held_output: Vec<u8>,
}

impl Terminal {
    /// Creates a console; `interactive`: it is a terminal.
    pub fn new(interactive: bool, columns: usize) -> Terminal {
        Terminal {
            interactive,
            colours: true,
            editor: Editor::new(columns),
            secret: SecretLine::default(),
            secret_prompt: String::new(),
            reading: Reading::Nothing,
            pending: Vec::new(),
            ended: false,
            at_row_start: true,
            after_c2: false,
            after_return: false,
            page: None,
            held_output: Vec::new(),
        }
    }

    /// Enables or disables colours.
    pub fn set_colours(&mut self, wanted: bool) {
        self.colours = wanted;
    }

    /// Sets the terminal's width.
    pub fn set_columns(&mut self, columns: usize) {
        self.editor.set_columns(columns);
    }

    /// Whether it is a terminal.
    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// The kind of the pending read.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// Whether the device has reported the end of input.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether to read more input. On a terminal always: Ctrl-C must be seen, and excess type-ahead is dropped.
    pub fn has_room(&self) -> bool {
        self.interactive || self.pending.len() < TYPED_AHEAD_BYTES
    }

    /// Processes bytes from the device; none at all means end of input. Returns the last signal among them, if any, and
    /// drops the type-ahead before it.
    pub fn input(&mut self, bytes: &[u8]) -> Option<Signal> {
        if bytes.is_empty() {
            self.ended = true;
            return None;
        }
        let room = if self.interactive { TYPED_AHEAD_BYTES.saturating_sub(self.pending.len()) } else { bytes.len() };
        let kept = &bytes[..bytes.len().min(room)];
        self.pending.extend_from_slice(kept);
        if self.page.is_some() && self.ignores_interrupts() {
            self.pending.clear();
            return Some(Signal::Interrupt);
        }
        if let Some((_, signal)) = self.last_signal(&bytes[kept.len()..]) {
            self.pending.clear();
            return Some(signal);
        }
        let (at, signal) = self.last_signal(&self.pending)?;
        self.pending.drain(..=at);
        Some(signal)
    }

    /// Whether a full-screen program leaves several Ctrl-C unread: it hangs, and is interrupted.
    fn ignores_interrupts(&self) -> bool {
        let unread = self.pending.iter().filter(|&&byte| byte == CONTROL_C).count();
        self.reading == Reading::Nothing && unread >= IGNORED_INTERRUPTS
    }

    /// Position and kind of the last signal byte. In the line editor, Ctrl-C is the editor's.
    fn last_signal(&self, bytes: &[u8]) -> Option<(usize, Signal)> {
        if !self.interactive || self.page.is_some() {
            return None;
        }
        let signal = |byte| match (byte, self.reading) {
            (CONTROL_C, Reading::Nothing) => Some(Signal::Interrupt),
            (CONTROL_Z, Reading::Nothing | Reading::Text) => Some(Signal::Stop),
            _ => None,
        };
        bytes.iter().enumerate().rev().find_map(|(at, &byte)| Some((at, signal(byte)?)))
    }

    /// Echoes a signal, as the line editor does.
    pub fn show_signal(&mut self, signal: Signal, out: &mut Vec<u8>) {
        if self.reading == Reading::Text {
            self.editor.hide(out);
        }
        out.extend_from_slice(match signal {
            Signal::Interrupt => b"^C\r\n",
            Signal::Stop => b"^Z\r\n",
        });
        self.at_row_start = true;
        if self.reading == Reading::Text {
            self.editor.show(out);
            self.at_row_start = false;
        }
    }

    /// Starts to read a line. The prompt is shown on a terminal only.
    pub fn begin_line(&mut self, reading: Reading, prompt: &str, out: &mut Vec<u8>) {
        self.reading = reading;
        if !self.interactive {
            return;
        }
        match (self.colours, reading) {
            (true, Reading::Command) => self.editor.set_colours(Some(highlight)),
            _ => self.editor.set_plain(),
        }
        self.start_row(out);
        if reading == Reading::Secret {
            self.secret = SecretLine::default();
            self.secret_prompt = String::from(prompt);
            self.show_secret_prompt(out);
        } else {
            self.editor.begin(prompt, out);
        }
        self.at_row_start = false;
    }

    fn show_secret_prompt(&self, out: &mut Vec<u8>) {
        let shown = self.secret_prompt.chars().filter(|each| !each.is_control());
        out.extend_from_slice(shown.collect::<String>().as_bytes());
    }

    /// Processes buffered input for the line. Call again after each input until it returns an event; all but
    /// [`LineEvent::Complete`] end the read.
    pub fn line_event(&mut self, out: &mut Vec<u8>) -> Option<LineEvent> {
        let event = match (self.interactive, self.reading) {
            (true, Reading::Secret) => self.secret_event(out),
            (true, _) => self.edited_event(out),
            (false, _) => self.stream_event(),
        };
        if !matches!(event, None | Some(LineEvent::Complete { .. })) {
            self.reading = Reading::Nothing;
            self.at_row_start = true;
        }
        event
    }

    /// Replies to [`LineEvent::Complete`] with candidates for the text from byte `start` to the cursor. A trailing
    /// blank of a candidate is used only if it is the only one.
    pub fn complete<'a>(&mut self, start: usize, candidates: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        let candidates: Vec<Candidate> = candidates.map(candidate).collect();
        self.editor.complete(start, &candidates, out);
    }

    /// Cancels the pending read, if any, on behalf of another reader.
    pub fn stop_reading(&mut self, out: &mut Vec<u8>) {
        if self.interactive && matches!(self.reading, Reading::Text | Reading::Command) {
            self.editor.hide(out);
            self.at_row_start = true;
        }
        if self.interactive && self.reading == Reading::Secret {
            out.extend_from_slice(b"\r\n");
            self.at_row_start = true;
        }
        self.reading = Reading::Nothing;
    }

    /// Starts to read bytes.
    pub fn begin_bytes(&mut self) {
        self.reading = Reading::Bytes;
    }

    /// Returns at most `count` bytes of input: `None` if there are none yet, empty at the end of input. A result ends
    /// the read.
    pub fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        if self.pending.is_empty() && !self.ended {
            return None;
        }
        self.reading = Reading::Nothing;
        let count = count.min(self.pending.len());
        Some(self.pending.drain(..count).collect())
    }

    /// Whether output is passed through.
    pub fn is_stream(&self) -> bool {
        !self.interactive
    }

    /// Sanitizes a program's output for display.
    pub fn output(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.interactive {
            return out.extend_from_slice(bytes);
        }
        if self.page.is_some() {
            let room = HELD_OUTPUT_BYTES.saturating_sub(self.held_output.len());
            return self.held_output.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let editing = matches!(self.reading, Reading::Text | Reading::Command);
        if editing {
            self.editor.hide(out);
            self.at_row_start = true;
        }
        let asking = self.reading == Reading::Secret;
        if asking {
            out.extend_from_slice(b"\r\x1b[K");
            self.at_row_start = true;
        }
        for &byte in bytes {
            self.put_harmless(byte, out);
        }
        if editing {
            self.start_row(out);
            self.editor.show(out);
            self.at_row_start = false;
        }
        if asking {
            self.start_row(out);
            self.show_secret_prompt(out);
            self.at_row_start = false;
        }
    }

    /// Whether a page can be shown: on a terminal while no line is edited.
    pub fn takes_pages(&self) -> bool {
        self.interactive && matches!(self.reading, Reading::Nothing | Reading::Bytes)
    }

    /// Shows a full-screen program's page.
    pub fn show_page(&mut self, page: Page, out: &mut Vec<u8>) {
        match &self.page {
            Some(before) => page.replace(before, out),
            None => page.enter(out),
        }
        self.page = Some(page);
    }

    /// Leaves the page, restores the screen, and shows output written meanwhile.
    pub fn end_page(&mut self, out: &mut Vec<u8>) {
        if self.page.take().is_none() {
            return;
        }
        Page::leave(out);
        let held = core::mem::take(&mut self.held_output);
        self.output(&held, out);
    }

    /// Sanitizes program output: control characters are shown as `^X`. A form feed clears the screen; a carriage return
    /// clears the row, except before a newline.
    fn put_harmless(&mut self, byte: u8, out: &mut Vec<u8>) {
        if core::mem::take(&mut self.after_c2) {
            if (0x80..0xa0).contains(&byte) {
                return out.extend_from_slice(b"^?");
            }
            out.push(0xc2);
        }
        if byte != b'\n' {
            self.empty_row(out);
        }
        match byte {
            b'\n' => out.extend_from_slice(b"\r\n"),
            CARRIAGE_RETURN => out.push(CARRIAGE_RETURN),
            FORM_FEED => out.extend_from_slice(b"\x1b[H\x1b[J"),
            b'\t' | 0x20..=0x7e => out.push(byte),
            0x7f => out.extend_from_slice(b"^?"),
            0..=0x1f => out.extend_from_slice(&[b'^', byte + 0x40]),
            0xc2 => self.after_c2 = true,
            _ => out.push(byte),
        }
        self.after_return = byte == CARRIAGE_RETURN;
        self.at_row_start = matches!(byte, b'\n' | FORM_FEED);
    }

    /// Clears the row, after a carriage return.
    fn empty_row(&mut self, out: &mut Vec<u8>) {
        if core::mem::take(&mut self.after_return) {
            out.extend_from_slice(b"\x1b[K");
            self.at_row_start = true;
        }
    }

    fn start_row(&mut self, out: &mut Vec<u8>) {
        self.empty_row(out);
        if !self.at_row_start {
            out.extend_from_slice(b"\r\n");
            self.at_row_start = true;
        }
    }

    fn secret_event(&mut self, out: &mut Vec<u8>) -> Option<LineEvent> {
        let (taken, event) = self.secret.feed(&self.pending);
        self.pending.drain(..taken);
        let event = event.or_else(|| self.ended.then_some(LineEvent::EndOfInput))?;
        out.extend_from_slice(if event == LineEvent::Interrupted { b"^C\r\n" } else { b"\r\n" });
        Some(event)
    }

    fn edited_event(&mut self, out: &mut Vec<u8>) -> Option<LineEvent> {
        let (taken, event) = self.editor.feed(&self.pending, out);
        self.pending.drain(..taken);
        match event {
            Some(Event::Line(line)) => {
                if self.reading == Reading::Command {
                    self.editor.history_mut().add(&line);
                }
                Some(LineEvent::Line(line.into_bytes()))
            }
            Some(Event::Cancelled) => Some(LineEvent::Interrupted),
            Some(Event::EndOfInput) => Some(LineEvent::EndOfInput),
            Some(Event::CompletionWanted { line, cursor }) => Some(LineEvent::Complete { text: line, cursor }),
            None if self.ended => Some(LineEvent::EndOfInput),
            None => None,
        }
    }

    fn stream_event(&mut self) -> Option<LineEvent> {
        let newline = self.pending.iter().take(LINE_BYTES).position(|&byte| byte == b'\n');
        let (length, end) = match newline {
            Some(at) => (at, at + 1),
            None if self.pending.len() >= LINE_BYTES => (LINE_BYTES, LINE_BYTES),
            None if self.ended && self.pending.is_empty() => return Some(LineEvent::EndOfInput),
            None if self.ended => (self.pending.len(), self.pending.len()),
            None => return None,
        };
        let mut line: Vec<u8> = self.pending.drain(..end).collect();
        line.truncate(length);
        Some(LineEvent::Line(line))
    }
}

/// The label is the last path component: a list of long paths with a common prefix is hard to read.
fn candidate(text: &str) -> Candidate {
    let (text, suffix) = text.strip_suffix(' ').map_or((text, ""), |text| (text, " "));
    let folder = text.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
    Candidate { text: String::from(text), label: String::from(&text[folder..]), suffix }
}

fn highlight(line: &str) -> Vec<Span> {
    let style = |kind| match kind {
        HighlightKind::Command => Style::Command,
        HighlightKind::Keyword => Style::Keyword,
        HighlightKind::Quoted => Style::Text,
        HighlightKind::Variable => Style::Variable,
        HighlightKind::Sign => Style::Operator,
        HighlightKind::Comment => Style::Comment,
        HighlightKind::Wrong => Style::Wrong,
    };
    let parts = command_language::highlight(line);
    parts.into_iter().map(|part| Span { start: part.start, end: part.end, style: style(part.kind) }).collect()
}
