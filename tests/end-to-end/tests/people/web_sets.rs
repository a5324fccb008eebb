//! Requests of independent test sets, sent to the running server: see `lib/http/tests/conformance/README.md`.

#[path = "../../../../lib/http/tests/conformance/cases.rs"]
mod cases;

use std::time::Duration;

use cases::{Case, Expected, read};
use end_to_end::{Format, Image, WebAnswer, WebClient, WebTrial};

test_needs::needs!(E2fsprogs);

const SETS: [&str; 2] = [
    include_str!("../../../../lib/http/tests/conformance/llhttp.cases"),
    include_str!("../../../../lib/http/tests/conformance/gunicorn.cases"),
];
/// Statuses of well-formed requests; most of the paths do not exist.
const UNDERSTOOD: [u16; 7] = [200, 204, 301, 304, 404, 405, 501];
/// Path of the application that echoes bodies.
const ECHO: &str = "/fault/echo";

/// Delay after which the server reads a piece separately.
const PAUSE: Duration = Duration::from_millis(2);

fn disk() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::create_dir(folder.path().join("strict")).expect("a folder can be made");
    std::fs::write(folder.path().join("index.html"), "<p>here").expect("a file can be written");
    Image::of(folder.path(), Format { mebibytes: 8, ..Format::default() })
}

/// Sends bytes on a new connection, in pieces with pauses, and returns all responses.
fn answers(port: u16, case: &Case, bytes: &[u8], piece: usize, pause: Duration) -> Vec<WebAnswer> {
    let mut client = WebClient::connect(port);
    for piece in bytes.chunks(piece) {
        if !client.send(piece) {
            break;
        }
        std::thread::sleep(pause);
    }
    client.finish();
    let mut heads = case.expected.iter().map(|expected| *expected == Expected::Request("HEAD".into(), 0));
    let mut answers = Vec::new();
    while let Some(answer) = client.answer(heads.next().unwrap_or(false)) {
        answers.push(answer);
    }
    client.ended();
    answers
}

/// Returns the problem with the responses to a case.
fn complaint(expected: &[Expected], answers: &[WebAnswer]) -> Option<String> {
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    let mut left = answers.iter();
    for expected in expected {
        let answer = match expected {
            Expected::Waits | Expected::Closes => continue,
            _ => left.next(),
        };
        let is_right = match (expected, answer) {
            (_, None) => false,
            (Expected::Refused(status), Some(answer)) => answer.status == *status && answer.closes(),
            // Regardless of the request's purpose.
            (Expected::ContentBad(_), Some(answer)) => answer.status >= 400 && answer.closes(),
            (_, Some(answer)) => UNDERSTOOD.contains(&answer.status) && answer.is_whole,
        };
        if !is_right {
            return Some(format!("expected {expected:?}, answered {statuses:?}"));
        }
    }
    left.next().is_some().then(|| format!("more answers than requests: {statuses:?}"))
}

#[test]
fn requests_of_others_are_answered_as_they_must() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut complaints = Vec::new();
    for case in SETS.into_iter().flat_map(read) {
        for (piece, pause) in [(usize::MAX, Duration::ZERO), (7, Duration::ZERO), (7, PAUSE)] {
            let answers = answers(trial.ordinary, &case, &case.bytes, piece, pause);
            let said = complaint(&case.expected, &answers);
            complaints.extend(said.map(|text| format!("{} in pieces of {piece}, {pause:?}: {text}", case.name)));
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    trial.end();
}

/// An application receives each body as it was sent, and no malformed body.
#[test]
fn content_of_others_requests_comes_to_applications() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut complaints = Vec::new();
    let mut tried = 0;
    for case in SETS.into_iter().flat_map(read) {
        let [first] = case.expected.as_slice() else { continue };
        if !matches!(first, Expected::Request(..) | Expected::ContentBad(_)) {
            continue;
        }
        let Some(bytes) = to_echo(&case.bytes) else { continue };
        tried += 1;
        let answers = answers(trial.ordinary, &case, &bytes, usize::MAX, Duration::ZERO);
        let is_right = match (first, answers.as_slice()) {
            (Expected::Request(method, _), [answer]) if method == "HEAD" => answer.status == 200,
            (Expected::Request(_, count), [answer]) => answer.status == 200 && answer.content.len() == *count,
            // The response may have started before the body turns out malformed; then it is truncated.
            (_, [answer]) => answer.status >= 400 && answer.closes() || !answer.is_whole,
            _ => false,
        };
        if !is_right {
            let statuses: Vec<_> = answers.iter().map(|answer| (answer.status, answer.closes())).collect();
            complaints.push(format!("{}: expected {first:?}, answered {statuses:?}", case.name));
        }
    }
    assert!(tried > 80, "only {tried} cases were tried");
    assert!(complaints.is_empty(), "{} of {tried} cases:\n{}", complaints.len(), complaints.join("\n"));
    trial.end();
}

/// The same request to the echo application; `None` if its target is not a plain path.
fn to_echo(bytes: &[u8]) -> Option<Vec<u8>> {
    let line_end = bytes.windows(2).position(|window| window == b"\r\n").filter(|end| *end > 0)?;
    let line = std::str::from_utf8(&bytes[..line_end]).ok()?;
    let [method, target, version] = *line.split(' ').collect::<Vec<_>>() else { return None };
    if !target.starts_with('/') {
        return None;
    }
    let mut changed = format!("{method} {ECHO} {version}").into_bytes();
    changed.extend_from_slice(&bytes[line_end..]);
    Some(changed)
}
