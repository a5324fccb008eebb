//! The body of the fuzz target `http_requests`.

use http::access_log::{self, Line};
use http::application;
use http::conditional::{self, Validators};
use http::range::{self, Ranges};
use http::request::Request;
use http::{date, gzip, target};

use crate::cases::Expected;
use crate::reading::outcome;

/// Current time, in seconds since 1970-01-01 00:00 UTC.
const NOW_S: i64 = 1_700_000_000;

/// Runs one input; a panic is a finding. The first byte determines how the rest is split, and the size of the file for
/// ranges.
pub fn run(bytes: &[u8]) {
    let Some((&first, stream)) = bytes.split_first() else { return };
    let mut requests = 0;
    let whole = outcome([stream], &mut |request| {
        requests += 1;
        look(request, u64::from(first));
    });
    let split = outcome(stream.chunks(usize::from(first % 64) + 1), &mut |_| {});
    assert_eq!(whole, split, "the pieces in which bytes come make no difference");
    let answered = |expected: &&Expected| !matches!(expected, Expected::Waits | Expected::Closes);
    assert!(requests <= whole.iter().filter(answered).count(), "each request is answered");
    check_answer_head(stream);
}

/// Runs all that a server does with a request.
fn look(request: &Request<'_, '_>, size: u64) {
    let mut path = String::new();
    if target::decode(request.path, &mut path).is_ok() {
        assert!(path.starts_with('/') && !path.contains("//"), "{path:?}");
        assert!(path.split('/').all(|part| part != "." && part != ".."), "{path:?} leads upward");
        assert!(path.bytes().all(|byte| byte >= 0x20 && byte != 0x7f), "{path:?}");
        let mut again = String::new();
        let mut encoded = String::new();
        target::encode(&path, &mut encoded);
        assert!(target::decode(&encoded, &mut again).is_ok() && again == path, "{encoded:?}");
        target::is_hidden(&path);
        let mut head = Vec::new();
        application::request_head(request, &path, "127.0.0.1", &mut head);
        let lines = head.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 4 + request.headers().count(), "a line for each");
        assert!(std::str::from_utf8(&head).is_ok());
    }
    let there = Validators { etag: b"\"1-2-3\"", modified_s: NOW_S - 100 };
    conditional::judge(request, there, NOW_S);
    conditional::range_applies(request, there, NOW_S);
    gzip::is_accepted(request);
    if let Some(value) = request.header("range") {
        let within = |range: &range::ByteRange| range.length > 0 && range.start + range.length <= size;
        match range::parse(value, size) {
            Ranges::One(range) => assert!(within(&range), "{range:?}"),
            Ranges::Many(ranges) => assert!(ranges.iter().all(within), "{ranges:?}"),
            Ranges::Whole | Ranges::NotSatisfiable => {}
        }
    }
    let line = Line {
        address: "127.0.0.1",
        date: &date::log(NOW_S),
        request: Some((request.method_text, request.target, request.minor_version)),
        status: 200,
        content_bytes: size,
        referer: request.header("referer"),
        user_agent: request.header("user-agent"),
    };
    let mut log = Vec::new();
    access_log::push(&mut log, &line);
    assert!(log.iter().filter(|byte| **byte == b'\n').count() == 1 && log.ends_with(b"\"\n"), "one line");
    assert!(log[..log.len() - 1].iter().all(|byte| (b' '..=b'~').contains(byte)), "of letters that can be shown");
}

/// Arbitrary application output becomes one field per line, or is rejected.
fn check_answer_head(bytes: &[u8]) {
    let mut fields = Vec::new();
    if application::answer_head(bytes, &mut fields).is_err() {
        return;
    }
    let text = String::from_utf8(fields).expect("it was UTF-8");
    for line in text.split_terminator("\r\n") {
        let (name, value) = line.split_once(": ").expect("a name and a value");
        assert!(!name.is_empty() && !value.contains(['\r', '\n', '\0']), "{line:?}");
    }
}
