//! Request heads that are ambiguous or malformed. Sections are those of RFC 9112.

use http::request::{EndFinder, Framing, Method, Rejection, Request, header_space, parse};
use proptest::prelude::*;

const MAX_BYTES: usize = 16 * 1024;

fn with<T>(bytes: &[u8], look: impl FnOnce(Result<Option<Request<'_, '_>>, Rejection>) -> T) -> T {
    let mut space = header_space();
    look(parse(bytes, &mut space, MAX_BYTES))
}

/// 0: served; 1: incomplete; else the status.
fn status(bytes: &[u8]) -> u16 {
    with(bytes, |parsed| match parsed {
        Ok(Some(_)) => 0,
        Ok(None) => 1,
        Err(rejection) => rejection.status,
    })
}

fn get(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn heads_that_have_one_reading_are_served() {
    for head in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhOST:\ta:8080 \t\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(status(head.as_bytes()), 0, "{head:?}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for (fields, wanted, why) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400, "both framings (6.1)"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400, "both framings (6.1)"),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", 400, "two lengths (RFC 9110, 8.6)"),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", 400, "two lengths (6.3)"),
        ("Content-Length: 5, 5\r\n", 400, "a list of lengths (6.3)"),
        ("Content-Length: +5\r\n", 400, "a sign"),
        ("Content-Length: -5\r\n", 400, "a sign"),
        ("Content-Length: 0x5\r\n", 400, "not decimal"),
        ("Content-Length:\r\n", 400, "an empty length"),
        ("Content-Length: 5 5\r\n", 400, "a space in a length"),
        ("Content-Length: 99999999999999999999999\r\n", 413, "a length that overflows"),
        ("Transfer-Encoding: gzip\r\n", 400, "the last coding is not chunked (6.3)"),
        ("Transfer-Encoding: chunked, gzip\r\n", 400, "chunked is not last (6.3)"),
        ("Transfer-Encoding: chunked, chunked\r\n", 400, "chunked twice (6.1)"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400, "chunked twice (6.1)"),
        ("Transfer-Encoding: gzip, chunked\r\n", 501, "an unknown coding (6.1)"),
        ("Transfer-Encoding: xchunked\r\n", 400, "not chunked"),
        ("Transfer-Encoding: \"chunked\"\r\n", 400, "not chunked"),
        ("Transfer-Encoding: chunked;q=1\r\n", 400, "not chunked"),
        ("Transfer-Encoding:\r\n", 400, "no coding"),
        ("Transfer-Encoding : chunked\r\n", 400, "a space before the colon (5.1)"),
        ("X: a\r\n b\r\n", 400, "a folded line (5.2)"),
        (" X: a\r\n", 400, "white space before the first field (2.2)"),
        ("X: a\nY: b\r\n", 400, "a bare line feed (2.2)"),
        ("X: a\rY: b\r\n", 400, "a bare carriage return (2.2)"),
        ("X: a\0b\r\n", 400, "a NUL (RFC 9110, 5.5)"),
        ("X\0: a\r\n", 400, "a NUL in a name"),
        ("X\r\n", 400, "no colon"),
        (": a\r\n", 400, "no name"),
        ("Host: b\r\n", 400, "two hosts (3.2)"),
        ("Expect: nonsense\r\n", 417, "an unknown expectation (RFC 9110, 10.1.1)"),
    ] {
        assert_eq!(status(get(fields).as_bytes()), wanted, "{why}: {fields:?}");
    }
    let http_1_0 = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(status(http_1_0), 400, "codings of HTTP/1.0 (6.1)");
}

#[test]
fn request_lines_and_hosts_that_make_no_sense_are_refused() {
    for (head, wanted) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTX/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET https://a/x HTTP/1.1\r\nHost: a\r\n\r\n", 421),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("\x16\x03\x01\x02\r\n\r\n", 400),
    ] {
        assert_eq!(status(head.as_bytes()), wanted, "{head:?}");
    }
}

#[test]
fn floods_have_bounds() {
    let long_value = get(&format!("X: {}\r\n", "a".repeat(MAX_BYTES)));
    assert_eq!(status(long_value.as_bytes()), 431);
    assert_eq!(status(&long_value.as_bytes()[..MAX_BYTES]), 431);
    assert_eq!(status(get(&"X: a\r\n".repeat(200)).as_bytes()), 431);
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(MAX_BYTES));
    assert_eq!(status(&long_target.as_bytes()[..MAX_BYTES]), 414);
}

#[test]
fn an_absolute_target_tells_the_host() {
    with(b"GET http://b:81?q HTTP/1.1\r\nHost: a\r\n\r\n", |parsed| {
        let request = parsed.unwrap().unwrap();
        assert_eq!((request.host, request.path, request.query), ("b:81", "/", Some("q")));
        assert_eq!(request.method, Method::Get);
    });
}

#[test]
fn connections_stay_as_the_versions_say() {
    let keeps = |head: &str| with(head.as_bytes(), |parsed| parsed.unwrap().unwrap().keep_alive);
    assert!(keeps(&get("")));
    assert!(!keeps(&get("Connection: x, CLOSE\r\n")));
    assert!(!keeps("GET / HTTP/1.0\r\n\r\n"));
    assert!(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

#[test]
fn pipelined_requests_are_cut_at_the_same_place_wherever_they_are_split() {
    let first = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let both = format!("{first}abcGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for end in 0..both.len() {
        let bytes = &both.as_bytes()[..end];
        let wanted = (end >= first.len()).then_some((first.len(), Framing::Length(3)));
        let found = with(bytes, |parsed| parsed.unwrap().map(|request| (request.head_bytes, request.framing)));
        assert_eq!(found, wanted, "{end}");
    }
    let mut finder = EndFinder::default();
    let found = (0..=both.len()).find(|end| finder.found(&both.as_bytes()[..*end]));
    assert_eq!(found, Some(first.len()));
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        status(&bytes);
    }

    /// A head made of interesting pieces has the same result with more bytes after it.
    #[test]
    fn what_follows_a_head_does_not_change_it(
        pieces in proptest::collection::vec(prop_oneof![
            Just("GET / HTTP/1.1\r\n"), Just("Host: a\r\n"), Just("\r\n"), Just("\n"), Just("\r"), Just(" "),
            Just("Content-Length: 1\r\n"), Just("Transfer-Encoding: chunked\r\n"), Just("X: y\r\n"), Just(":"),
        ], 0..10),
        rest in "[a-z\r\n]{0,10}",
    ) {
        let head = pieces.concat();
        let alone = with(head.as_bytes(), |parsed| parsed.map(|request| request.map(|request| request.head_bytes)));
        if let Ok(Some(head_bytes)) = alone {
            let longer = format!("{head}{rest}");
            let again = with(longer.as_bytes(), |parsed| parsed.unwrap().map(|request| request.head_bytes));
            prop_assert_eq!(again, Some(head_bytes));
        }
    }
}
