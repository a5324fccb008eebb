//! The terminal of a full-screen program: shows pages, receives keys, and polls the size.
//!
//! Key types: [`Screen`], [`PageText`]. It uses two channels to the console, so that a page can be shown during a
//! wait for keys; the console restores the previous screen when they close. Deliberately not here: the meaning of
//! keys.

use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::namespace::Namespace;
use client::terminal::CONSOLE;
use contracts::console::{self, states};
use contracts::directory::NameError;
use line_editor::{Decoder, Key};
use sip::Deadline;
use sip::exheap::ExVec;
use terminal::page::{CURSOR, INVERSE_OFF, INVERSE_ON, PAGE_START};

const KEY_BYTES: usize = 1024;
/// Interval in milliseconds at which the terminal size is polled, and at which a refused page is retried.
const POLL_MS: u64 = 250;

/// Size of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns of a row.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

/// Event at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Keys were pressed.
    Keys(Vec<Key>),
    /// The terminal was resized.
    Resized,
    /// The deadline passed.
    Nothing,
    /// The terminal is gone.
    Gone,
}

/// Why a page was not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowError {
    /// A line is being edited, or another program shows its page.
    Busy,
    /// The console is gone.
    Gone,
}

enum Keyboard {
    Idle(console::Imp<states::Ready>),
    Reading(console::Imp<states::ReadyAfterRead>),
    Gone,
}

/// A terminal that shows pages.
pub struct Screen {
    pages: Option<console::Imp<states::Ready>>,
    keyboard: Keyboard,
    decoder: Decoder,
    size: Size,
}

impl Screen {
    /// Opens the console; `None` if it is not an interactive terminal.
    ///
    /// # Errors
    ///
    /// If the console cannot be opened.
    pub fn open(namespace: &mut Namespace) -> Result<Option<Screen>, AccessError> {
        let pages = open_console(namespace)?;
        let keyboard = Keyboard::Idle(open_console(namespace)?);
        let mut screen =
            Screen { pages: Some(pages), keyboard, decoder: Decoder::new(), size: Size { columns: 80, rows: 24 } };
        Ok(screen.poll_size().then_some(screen))
    }

    /// The size at the last poll.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Polls the size. Returns whether it is an interactive terminal.
    fn poll_size(&mut self) -> bool {
        let Some(pages) = self.pages.take() else { return false };
        match wait(pages.get_info(), REQUEST_LIMIT) {
            Ok(console::ImpReadyAfterGetInfo::Info { terminal, columns, rows, next }) => {
                self.pages = Some(next);
                if columns > 0 && rows > 0 {
                    self.size = Size { columns: columns as usize, rows: rows as usize };
                }
                terminal
            }
            Ok(console::ImpReadyAfterGetInfo::ChannelClosed(_)) | Err(_) => false,
        }
    }

    /// Replaces the visible page.
    ///
    /// # Errors
    ///
    /// If another program has the screen, or there is no terminal any more.
    pub fn show(&mut self, page: &PageText) -> Result<(), ShowError> {
        let Some(pages) = self.pages.take() else { return Err(ShowError::Gone) };
        let Ok(block) = ExVec::from_slice(&page.bytes) else {
            self.pages = Some(pages);
            return Err(ShowError::Busy);
        };
        match pages.write(block).receive() {
            console::ImpReadyAfterWrite::Written { next } => {
                self.pages = Some(next);
                Ok(())
            }
            console::ImpReadyAfterWrite::Failed { error, next } => {
                self.pages = Some(next);
                Err(if error == console::ConsoleError::Busy { ShowError::Busy } else { ShowError::Gone })
            }
            console::ImpReadyAfterWrite::ChannelClosed(_) => Err(ShowError::Gone),
        }
    }

    /// Retries [`show`](Screen::show) until no other program has the screen. Returns whether there still is a
    /// terminal.
    pub fn show_when_free(&mut self, page: &PageText) -> bool {
        loop {
            match self.show(page) {
                Ok(()) => return true,
                Err(ShowError::Gone) => return false,
                Err(ShowError::Busy) => sip::time::sleep_until(Deadline::after_ms(POLL_MS)),
            }
        }
    }

    /// Waits for keys or a resize.
    pub fn wait(&mut self, deadline: Deadline) -> Event {
        loop {
            let next_poll = Deadline::after_ms(POLL_MS);
            let is_last = deadline.as_ns() <= next_poll.as_ns();
            match self.read(if is_last { deadline } else { next_poll }) {
                Event::Nothing => {}
                event => return event,
            }
            let before = self.size;
            if !self.poll_size() {
                return Event::Gone;
            }
            if self.size != before {
                return Event::Resized;
            }
            if is_last {
                return Event::Nothing;
            }
        }
    }

    fn read(&mut self, deadline: Deadline) -> Event {
        let reading = match core::mem::replace(&mut self.keyboard, Keyboard::Gone) {
            Keyboard::Reading(reading) => reading,
            Keyboard::Idle(idle) => match ExVec::new(KEY_BYTES) {
                Ok(block) => idle.read(block),
                Err(_) => return Event::Gone,
            },
            Keyboard::Gone => return Event::Gone,
        };
        match reading.receive_by(deadline) {
            Err(reading) => {
                self.keyboard = Keyboard::Reading(reading);
                Event::Nothing
            }
            Ok(console::ImpReadyAfterRead::ReadDone { data, count, next }) => {
                self.keyboard = Keyboard::Idle(next);
                match data.get(..count as usize) {
                    None | Some([]) => Event::Gone,
                    Some(bytes) => Event::Keys(self.decode(bytes)),
                }
            }
            Ok(console::ImpReadyAfterRead::ReadFailed { error: console::ConsoleError::Busy, next, .. }) => {
                // Another program has the terminal; the page is refused too until it releases it.
                self.keyboard = Keyboard::Idle(next);
                sip::time::sleep_until(Deadline::after_ms(POLL_MS));
                Event::Resized
            }
            Ok(console::ImpReadyAfterRead::ReadFailed { .. } | console::ImpReadyAfterRead::ChannelClosed(_)) => {
                Event::Gone
            }
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().flat_map(|&byte| self.decoder.push(byte)).flatten().collect()
    }
}

fn open_console(namespace: &mut Namespace) -> Result<console::Imp<states::Ready>, AccessError> {
    namespace.open(CONSOLE, console::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        console::ImpStart::Success { next } => Ok(next),
        console::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::NotPermitted)),
        console::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}

/// Builds the bytes of a page, from its top.
pub struct PageText {
    bytes: Vec<u8>,
}

impl Default for PageText {
    fn default() -> PageText {
        PageText::new()
    }
}

impl PageText {
    /// Creates an empty page.
    pub fn new() -> PageText {
        PageText { bytes: Vec::from([PAGE_START]) }
    }

    /// Appends text; its control characters have no effect and are shown.
    pub fn text(&mut self, text: &str) {
        let has_meaning = |byte: u8| matches!(byte, b'\n' | INVERSE_ON | INVERSE_OFF | CURSOR);
        for character in text.chars() {
            if u8::try_from(character).is_ok_and(has_meaning) {
                self.bytes.extend_from_slice(&[b'^', character as u8 + 0x40]);
            } else {
                self.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    /// Appends text in inverse video.
    pub fn inverted(&mut self, text: &str) {
        self.bytes.push(INVERSE_ON);
        self.text(text);
        self.bytes.push(INVERSE_OFF);
    }

    /// Puts the cursor here.
    pub fn cursor(&mut self) {
        self.bytes.push(CURSOR);
    }

    /// Ends the row.
    pub fn end_row(&mut self) {
        self.bytes.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_say_what_only_the_page_says() {
        let mut page = PageText::new();
        page.text("a\nb\u{e}\u{f}\u{11}\u{ff}");
        page.inverted("c");
        page.cursor();
        page.end_row();
        assert_eq!(page.bytes, "\u{c}a^Jb^N^O^Q\u{ff}\u{e}c\u{f}\u{11}\n".as_bytes());
    }
}
