//! Independent conformance sets for HTTP parsers, with the bytes split everywhere.

#[path = "conformance/cases.rs"]
mod cases;
#[path = "conformance/reading.rs"]
mod reading;

use cases::{Case, Expected, read};

/// The server's outcome for bytes that arrive in these pieces.
fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Expected> {
    reading::outcome(pieces, &mut |_| {})
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

/// Deviations from a set need a reason.
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
