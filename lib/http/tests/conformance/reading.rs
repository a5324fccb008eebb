//! A connection as a server reads it: a sequence of heads and contents.

use http::body::BodyReader;
use http::request::{Request, header_space, parse};

use crate::cases::Expected;

const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_BODY_BYTES: u64 = 8 << 20;

/// A connection as a server reads it.
struct Reading<'l> {
    /// Called with each request.
    look: &'l mut dyn FnMut(&Request<'_, '_>),
    waiting: Vec<u8>,
    content: Option<(String, BodyReader, usize, bool)>,
    found: Vec<Expected>,
    has_ended: bool,
}

impl Reading<'_> {
    fn push(&mut self, bytes: &[u8]) {
        if self.has_ended {
            self.waiting.extend_from_slice(bytes);
            return;
        }
        self.waiting.extend_from_slice(bytes);
        while !self.has_ended && self.step() {}
    }

    /// Processes buffered bytes; false if more are needed.
    fn step(&mut self) -> bool {
        match self.content.take() {
            Some((method, reader, count, keeps)) => self.read_content(method, reader, count, keeps),
            None => self.read_head(),
        }
    }

    fn read_head(&mut self) -> bool {
        let mut space = header_space();
        match parse(&self.waiting, &mut space, MAX_HEAD_BYTES) {
            Ok(None) => return false,
            Ok(Some(request)) => {
                (self.look)(&request);
                let method = request.method_text.to_string();
                let (keeps, head_bytes) = (request.keep_alive, request.head_bytes);
                match BodyReader::new(request.framing, MAX_BODY_BYTES) {
                    Ok(reader) => self.content = Some((method, reader, 0, keeps)),
                    Err(_) => self.end(Expected::Refused(413)),
                }
                self.waiting.drain(..head_bytes);
            }
            Err(rejection) => self.end(Expected::Refused(rejection.status)),
        }
        true
    }

    fn read_content(&mut self, method: String, mut reader: BodyReader, mut count: usize, keeps: bool) -> bool {
        let Ok(piece) = reader.next(&self.waiting) else {
            self.end(Expected::ContentBad(method));
            return true;
        };
        count += piece.data.len();
        self.waiting.drain(..piece.consumed);
        if reader.has_ended() {
            self.found.push(Expected::Request(method, count));
            self.has_ended = !keeps;
            return true;
        }
        let goes_on = piece.consumed > 0;
        self.content = Some((method, reader, count, keeps));
        goes_on
    }

    fn end(&mut self, why: Expected) {
        self.found.push(why);
        self.has_ended = true;
    }

    /// The outcomes, once no more bytes come.
    fn finish(mut self) -> Vec<Expected> {
        let rest_is_empty = self.waiting.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        match self.content.take() {
            Some((method, ..)) => self.found.push(Expected::ContentWaits(method)),
            None if !self.has_ended && !rest_is_empty => self.found.push(Expected::Waits),
            None if matches!(self.found.last(), Some(Expected::Request(..))) && !rest_is_empty => {
                self.found.push(Expected::Closes);
            }
            None => {}
        }
        self.found
    }
}

/// The outcomes for bytes that arrive in these pieces.
pub fn outcome<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    look: &mut dyn FnMut(&Request<'_, '_>),
) -> Vec<Expected> {
    let mut reading = Reading { look, waiting: Vec::new(), content: None, found: Vec::new(), has_ended: false };
    for piece in pieces {
        reading.push(piece);
    }
    reading.finish()
}
