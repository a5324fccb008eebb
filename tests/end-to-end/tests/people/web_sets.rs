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
/// What a request may be answered with that was understood: most of the paths are not there.
const UNDERSTOOD: [u16; 7] = [200, 204, 301, 304, 404, 405, 501];
/// Where the application answers that sends content back.
const ECHO: &str = "/fault/echo";

/// Long enough that the server reads a piece by itself.
const PAUSE: Duration = Duration::from_millis(2);

fn disk() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::create_dir(folder.path().join("strict")).expect("a folder can be made");
    std::fs::write(folder.path().join("index.html"), "<p>here").expect("a file can be written");
    Image::of(folder.path(), Format { mebibytes: 8, ..Format::default() })
}

/// Sends bytes on a connection of their own, in pieces with a pause after each, and gives all answers up to its end.
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

/// What is wrong with the answers to a case.
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
            // Whatever the request asks for.
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

/// The content of each request comes to an application as it was sent, and content that is framed wrong does not.
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
            // The head may have been answered when the content turned out to be wrong; then the answer is cut.
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

/// The same request, for the application that sends its content back; none if its target is no plain path.
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
