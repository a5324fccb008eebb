//! Paths, dates, ranges, conditions, heads of applications, log lines and pages.

use http::access_log::{self, Line};
use http::conditional::{Validators, Verdict, judge, range_applies};
use http::range::{ByteRange, Ranges};
use http::request::{header_space, parse};
use http::{application, content_type, date, gzip, listing, range, target};
use proptest::prelude::*;

fn decoded(path: &str) -> Option<String> {
    let mut into = String::from("old");
    target::decode(path, &mut into).ok().map(|()| into)
}

#[test]
fn paths_stay_below_the_root() {
    for (path, wanted) in [
        ("/", Some("/")),
        ("/a/b.html", Some("/a/b.html")),
        ("//a///b/", Some("/a/b/")),
        ("/a/./b/../c", Some("/a/c")),
        ("/a/..", Some("/")),
        ("/a/.", Some("/a/")),
        ("/%61%20b", Some("/a b")),
        ("/a%2fb", Some("/a/b")),
        ("/%C3%A4", Some("/ä")),
        ("/..", None),
        ("/a/../../b", None),
        ("/%2e%2e/b", None),
        ("/a/%2E./%2e./b", None),
        ("/..%2fb", None),
        ("/%00", None),
        ("/%0a", None),
        ("/%7f", None),
        ("/%ff", None),
        ("/%", None),
        ("/%4", None),
        ("/%zz", None),
        ("a", None),
    ] {
        assert_eq!(decoded(path).as_deref(), wanted, "{path}");
    }
    for (path, hidden) in
        [("/.git/x", true), ("/a/.b", true), ("/.well-known/x", false), ("/a/.well-known", true), ("/a.b", false)]
    {
        assert_eq!(target::is_hidden(path), hidden, "{path}");
    }
}

#[test]
fn dates_are_those_of_the_standard() {
    let second = 784_111_777;
    assert_eq!(&date::header(second), b"Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(&date::log(second), b"06/Nov/1994:08:49:37 +0000");
    assert_eq!(&date::listing(second), b"1994-11-06 08:49");
    let now = 1_700_000_000;
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(date::parse(text, now), Some(second), "{text}");
    }
    for text in [
        "",
        "Sun",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun Nov ä 08:49:37 1994",
    ] {
        assert_eq!(date::parse(text, now), None, "{text}");
    }
}

#[test]
fn ranges_are_cut_to_what_is_there() {
    let one = |start, length| Ranges::One(ByteRange { start, length });
    for (value, wanted) in [
        ("bytes=0-0", one(0, 1)),
        ("bytes=0-", one(0, 100)),
        ("bytes=90-200", one(90, 10)),
        ("bytes=-5", one(95, 5)),
        ("bytes=-500", one(0, 100)),
        ("BYTES=1-2", one(1, 2)),
        ("bytes=100-", Ranges::NotSatisfiable),
        ("bytes=-0", Ranges::NotSatisfiable),
        ("bytes=5-4", Ranges::Whole),
        ("bytes=", Ranges::Whole),
        ("bytes=a-b", Ranges::Whole),
        ("bytes=--5", Ranges::Whole),
        ("lines=0-1", Ranges::Whole),
        ("bytes=200-,5-5", one(5, 1)),
        ("bytes=99999999999999999999999-", Ranges::NotSatisfiable),
        ("bytes=0-99999999999999999999999", one(0, 100)),
        ("bytes=0-80,0-80", Ranges::Whole),
    ] {
        assert_eq!(range::parse(value.as_bytes(), 100), wanted, "{value}");
    }
    let parts = [ByteRange { start: 0, length: 1 }, ByteRange { start: 98, length: 2 }];
    assert_eq!(range::parse(b"bytes=0-0, -2", 100), Ranges::Many(parts.into()));
    assert_eq!(range::parse(format!("bytes=0-0{}", ",1-1".repeat(50)).as_bytes(), 100), Ranges::Whole);
    assert_eq!(range::parse(b"bytes=0-", 0), Ranges::NotSatisfiable);
}

fn verdict(method: &str, fields: &str) -> (Verdict, bool) {
    let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut space = header_space();
    let request = parse(head.as_bytes(), &mut space, 4096).unwrap().unwrap();
    let there = Validators { etag: b"\"x\"", modified_s: 784_111_777 };
    (judge(&request, there, 1_700_000_000), range_applies(&request, there, 1_700_000_000))
}

#[test]
fn conditions_are_judged_in_their_order() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let before = "Sun, 06 Nov 1994 08:49:36 GMT";
    for (fields, wanted) in [
        (String::new(), Verdict::Serve),
        ("If-None-Match: \"x\"\r\n".into(), Verdict::NotModified),
        ("If-None-Match: \"y\", W/\"x\"\r\n".into(), Verdict::NotModified),
        ("If-None-Match: *\r\n".into(), Verdict::NotModified),
        ("If-None-Match: \"y\"\r\n".into(), Verdict::Serve),
        (format!("If-None-Match: \"y\"\r\nIf-Modified-Since: {date}\r\n"), Verdict::Serve),
        (format!("If-Modified-Since: {date}\r\n"), Verdict::NotModified),
        (format!("If-Modified-Since: {before}\r\n"), Verdict::Serve),
        ("If-Modified-Since: nonsense\r\n".into(), Verdict::Serve),
        ("If-Match: \"x\"\r\n".into(), Verdict::Serve),
        ("If-Match: W/\"x\"\r\n".into(), Verdict::Failed),
        ("If-Match: \"y\"\r\n".into(), Verdict::Failed),
        (format!("If-Unmodified-Since: {before}\r\n"), Verdict::Failed),
        (format!("If-Unmodified-Since: {date}\r\n"), Verdict::Serve),
    ] {
        assert_eq!(verdict("GET", &fields).0, wanted, "{fields:?}");
    }
    assert_eq!(verdict("PUT", "If-None-Match: *\r\n").0, Verdict::Failed);
    assert!(verdict("GET", "If-Range: \"x\"\r\n").1);
    assert!(!verdict("GET", "If-Range: W/\"x\"\r\n").1);
    assert!(!verdict("GET", "If-Range: \"y\"\r\n").1);
    assert!(verdict("GET", &format!("If-Range: {date}\r\n")).1);
    assert!(!verdict("GET", &format!("If-Range: {before}\r\n")).1);
}

#[test]
fn several_fields_of_a_condition_are_one_list() {
    let before = "Sun, 06 Nov 1994 08:49:36 GMT";
    for (fields, wanted) in [
        ("If-None-Match: \"y\"\r\nIf-None-Match: \"x\"\r\n".into(), Verdict::NotModified),
        ("If-None-Match: \"y\"\r\nIf-None-Match: \"z\"\r\n".into(), Verdict::Serve),
        ("If-Match: \"y\"\r\nIf-Match: \"x\"\r\n".into(), Verdict::Serve),
        ("If-Match: \"y\"\r\nIf-Match: \"z\"\r\n".into(), Verdict::Failed),
        // Several dates are no valid date.
        (format!("If-Unmodified-Since: {before}\r\nIf-Unmodified-Since: {before}\r\n"), Verdict::Serve),
    ] {
        assert_eq!(verdict("GET", &fields).0, wanted, "{fields:?}");
    }
}

#[test]
fn several_fields_of_accepted_codings_are_one_list() {
    for (fields, wanted) in [
        ("Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n", true),
        ("Accept-Encoding: *\r\nAccept-Encoding: gzip;q=0\r\n", false),
        ("Accept-Encoding: br\r\nAccept-Encoding: deflate\r\n", false),
        ("", false),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut space = header_space();
        let request = parse(head.as_bytes(), &mut space, 4096).unwrap().unwrap();
        assert_eq!(gzip::is_accepted(&request), wanted, "{fields:?}");
    }
}

#[test]
fn the_coding_with_the_greater_weight_is_sent() {
    for (value, wanted) in [
        ("gzip;q=0.001, identity;q=0.5", false),
        ("gzip;q=0.5, identity;q=0.001", true),
        ("gzip;q=0.5, identity;q=0.5", true),
        ("gzip;q=0.001", true),
        ("gzip;q=0.000", false),
        ("GZIP; Q=0.8, identity; q=0.9", false),
        ("gzip;q=0.5, *;q=0.8", false),
        ("gzip, *;q=0.8", true),
        ("identity", false),
        ("identity;q=0, *;q=0.1", true),
        ("gzip;q=1.001", false),
        ("gzip;q=0.0001", false),
        ("gzip;q=x", false),
        ("gzip;q=0.:", false),
        ("gzip;q=1.", true),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {value}\r\n\r\n");
        let mut space = header_space();
        let request = parse(head.as_bytes(), &mut space, 4096).unwrap().unwrap();
        assert_eq!(gzip::is_accepted(&request), wanted, "{value:?}");
    }
}

#[test]
fn heads_of_applications_cannot_break_the_answer() {
    let checked = |head: &[u8]| {
        let mut fields = Vec::new();
        application::answer_head(head, &mut fields).map(|()| fields)
    };
    let head = b"content-type: text/plain\nSet-Cookie: a=b\nSet-Cookie: c\nContent-Length: 9\nconnection: x\n";
    let wanted = b"content-type: text/plain\r\nSet-Cookie: a=b\r\nSet-Cookie: c\r\n";
    assert_eq!(checked(head).unwrap(), wanted);
    for head in [&b"no colon\n"[..], b"a b: c\n", b": c\n", b"a: b\rc: d\n", b"a: \0\n", b"a: \xff\n", b"a : b\n"] {
        assert!(checked(head).is_err(), "{head:?}");
    }
    assert!(checked(&b"a: b\n".repeat(10_000)).is_err());
    assert!([0, 99, 100, 199, 600, 1000].iter().all(|status| !application::is_status(*status)));
}

#[test]
fn log_lines_stay_lines() {
    let mut log = Vec::new();
    let line = Line {
        address: "::1",
        date: b"06/Nov/1994:08:49:37 +0000",
        request: Some(("GET", "/\"x\\", 1)),
        status: 200,
        content_bytes: 12,
        referer: Some(b"a\"\n"),
        user_agent: None,
    };
    access_log::push(&mut log, &line);
    let wanted = "::1 - - [06/Nov/1994:08:49:37 +0000] \"GET /\\x22x\\x5c HTTP/1.1\" 200 12 \"a\\x22\\x0a\" \"-\"\n";
    assert_eq!(String::from_utf8(log).unwrap(), wanted);
}

#[test]
fn pages_show_names_as_they_are() {
    let name = listing::Name { name: "<a>&\"%/".into(), is_folder: false, size_bytes: Some(7), modified_s: Some(0) };
    let page = listing::page("/<x>/", vec![name], true);
    assert!(page.contains("&lt;a&gt;&amp;&quot;%/") && page.contains("./%3Ca%3E%26%22%25/") && !page.contains("<a>"));
    assert!(page.contains("<h1>/&lt;x&gt;/</h1>"));
}

#[test]
fn types_and_codings_are_known() {
    assert_eq!(content_type::of("/a/b.HTML"), "text/html; charset=utf-8");
    assert_eq!(content_type::of("/a.d/b"), content_type::UNKNOWN);
    assert_eq!(content_type::of("/a.abcdefghijklmnop"), content_type::UNKNOWN);
    for known in ["7z", "zst", "webmanifest", "js", "png"] {
        assert_ne!(content_type::of(&format!("x.{known}")), content_type::UNKNOWN, "{known}");
    }
    let coded = gzip::compress(&b"abc".repeat(1000));
    assert!(coded.len() < 200 && coded.starts_with(&[0x1f, 0x8b, 8]));
    assert_eq!(coded[coded.len() - 4..], 3000u32.to_le_bytes());
}

proptest! {
    #[test]
    fn decoded_paths_have_nothing_that_leads_up(path in "/[a./%25eEfF\u{e4}]{0,30}") {
        if let Some(path) = decoded(&path) {
            prop_assert!(path.starts_with('/') && !path.contains("//"));
            prop_assert!(path.split('/').all(|part| part != "." && part != ".."));
        }
    }

    #[test]
    fn dates_come_back(second in 0i64..253_402_300_800) {
        let text = date::header(second);
        prop_assert_eq!(date::parse(core::str::from_utf8(&text).unwrap(), second), Some(second));
    }

    #[test]
    fn any_text_is_no_date_or_one(text in "\\PC{0,40}") {
        let _ = date::parse(&text, 0);
    }

    #[test]
    fn ranges_lie_within(value in "bytes=[0-9,-]{0,30}", size in 0u64..200) {
        let ranges = match range::parse(value.as_bytes(), size) {
            Ranges::One(one) => vec![one],
            Ranges::Many(many) => many,
            Ranges::Whole | Ranges::NotSatisfiable => Vec::new(),
        };
        prop_assert!(ranges.iter().all(|range| range.length > 0 && range.start + range.length <= size));
    }
}
