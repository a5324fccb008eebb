//! What others expect of a parser of HTTP, against this one, with the bytes split everywhere.

#[path = "conformance/cases.rs"]
mod cases;

use cases::{Case, Expected, read};
use http::body::BodyReader;
use http::request::{header_space, parse};

const MOST_HEAD_BYTES: usize = 16 * 1024;
const MOST_BODY_BYTES: u64 = 8 << 20;

/// A connection, as a server reads it.
#[derive(Default)]
struct Reading {
    waiting: Vec<u8>,
    content: Option<(String, BodyReader, usize, bool)>,
    found: Vec<Expected>,
    has_ended: bool,
}

impl Reading {
    fn push(&mut self, bytes: &[u8]) {
        if self.has_ended {
            self.waiting.extend_from_slice(bytes);
            return;
        }
        self.waiting.extend_from_slice(bytes);
        while !self.has_ended && self.step() {}
    }

    /// Looks at what waits; false if more has to come.
    fn step(&mut self) -> bool {
        match self.content.take() {
            Some((method, reader, count, keeps)) => self.read_content(method, reader, count, keeps),
            None => self.read_head(),
        }
    }

    fn read_head(&mut self) -> bool {
        let mut space = header_space();
        match parse(&self.waiting, &mut space, MOST_HEAD_BYTES) {
            Ok(None) => return false,
            Ok(Some(request)) => {
                let method = request.method_text.to_string();
                let (keeps, head_bytes) = (request.keep_alive, request.head_bytes);
                match BodyReader::new(request.framing, MOST_BODY_BYTES) {
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

    /// What was found, when nothing more comes.
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

fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Expected> {
    let mut reading = Reading::default();
    for piece in pieces {
        reading.push(piece);
    }
    reading.finish()
}

fn check(cases: &[Case]) {
    let mut complaints = Vec::new();
    for case in cases {
        let Case { name, set, expected, bytes, .. } = case;
        let whole = outcome([bytes.as_slice()]);
        if whole != *expected {
            complaints.push(format!("{name} (the set: {set}): expected {expected:?}, found {whole:?}"));
            continue;
        }
        for at in 1..bytes.len() {
            let (first, second) = bytes.split_at(at);
            let split = outcome([first, second]);
            if split != whole {
                complaints.push(format!("{name}: whole {whole:?}, split behind byte {at} {split:?}"));
                break;
            }
        }
        let trickled = outcome(bytes.chunks(1));
        if trickled != whole {
            complaints.push(format!("{name}: whole {whole:?}, byte by byte {trickled:?}"));
        }
    }
    assert!(complaints.is_empty(), "{} of {} cases:\n{}", complaints.len(), cases.len(), complaints.join("\n"));
}

#[test]
fn requests_of_llhttp() {
    let cases = read(include_str!("conformance/llhttp.cases"));
    assert!(cases.len() > 100, "the set is not whole");
    check(&cases);
}

#[test]
fn requests_of_gunicorn() {
    let cases = read(include_str!("conformance/gunicorn.cases"));
    assert!(cases.len() > 100, "the set is not whole");
    check(&cases);
}

/// Where the answer is not the set's, somebody has thought about it.
#[test]
fn differences_have_reasons() {
    let sets = [include_str!("conformance/llhttp.cases"), include_str!("conformance/gunicorn.cases")];
    for case in sets.into_iter().flat_map(read) {
        let differs = written(&case.expected) != case.set.split(';').next().unwrap_or("");
        assert_eq!(differs, !case.why.is_empty(), "{}: `{}`, `{}`", case.name, case.set, case.why);
    }
}

fn written(expected: &[Expected]) -> String {
    let words: Vec<String> = expected
        .iter()
        .map(|expected| match expected {
            Expected::Request(method, count) => format!("{method} {count}"),
            Expected::ContentWaits(method) => format!("{method} waits"),
            Expected::ContentBad(method) => format!("{method} bad"),
            Expected::Waits => "waits".into(),
            Expected::Closes => "closes".into(),
            Expected::Refused(status) => status.to_string(),
        })
        .collect();
    words.join(", ")
}
