//! Request content: wrong framing, and framing split anywhere. Sections are those of RFC 9112.

use http::body::{BodyError, BodyReader};
use http::request::Framing;
use proptest::prelude::*;

const MAX_BYTES: u64 = 1000;

/// Decodes content that arrives in pieces of these lengths, cyclically; returns the content and the bytes consumed.
fn read(framing: Framing, bytes: &[u8], pieces: &[usize]) -> Result<Option<(Vec<u8>, usize)>, BodyError> {
    let mut reader = BodyReader::new(framing, MAX_BYTES)?;
    let mut content = Vec::new();
    let (mut at, mut end) = (0, 0);
    let mut lengths = pieces.iter().cycle();
    while !reader.has_ended() {
        if at == end {
            if end == bytes.len() {
                return Ok(None);
            }
            end = bytes.len().min(end + lengths.next().unwrap());
        }
        let piece = reader.next(&bytes[at..end])?;
        content.extend_from_slice(&bytes[at..end][piece.data.clone()]);
        at += piece.consumed;
    }
    Ok(Some((content, at)))
}

fn chunked(bytes: &str) -> Result<Option<(Vec<u8>, usize)>, BodyError> {
    read(Framing::Chunked, bytes.as_bytes(), &[usize::MAX / 2])
}

#[test]
fn chunks_are_put_together() {
    for text in [
        "3\r\nabc\r\n0\r\n\r\n",
        "003\r\nabc\r\n000\r\n\r\n",
        "1\r\na\r\n2;x=\"y\"\r\nbc\r\n0\r\n\r\n",
        "3 ; x\r\nabc\r\n0;last\r\nTrailer: x\r\nOther:\r\n\r\n",
    ] {
        let wanted = Some((b"abc".to_vec(), text.len()));
        assert_eq!(chunked(text), Ok(wanted.clone()), "{text:?}");
        assert_eq!(chunked(&format!("{text}GET /")), Ok(wanted), "{text:?}");
        for length in 1..text.len() {
            assert!(read(Framing::Chunked, text.as_bytes(), &[length]).is_ok_and(|read| read.is_some()), "{text:?}");
            assert_eq!(chunked(&text[..length]), Ok(None), "{text:?} cut at {length}");
        }
    }
}

#[test]
fn what_is_here_of_content_can_be_judged_before_it_is_read() {
    let is_malformed = |text: &str| {
        let reader = BodyReader::new(Framing::Chunked, MAX_BYTES).expect("chunks");
        reader.is_malformed(text.as_bytes())
    };
    for text in ["", "3", "3\r\nab", "3\r\nabc\r\n2", "3\r\nabc\r\n0\r\n\r\nGET", "ffff\r\n"] {
        assert!(!is_malformed(text), "{text:?}");
    }
    for text in ["x", "0x3\r\n", "3\r\nabcd", "3\r\nabc\r\ng\r\n"] {
        assert!(is_malformed(text), "{text:?}");
    }
}

#[test]
fn chunks_that_could_be_read_in_two_ways_are_refused() {
    for (text, why) in [
        ("\r\nabc", "no size (7.1)"),
        ("g\r\n", "not hexadecimal"),
        ("0x3\r\nabc\r\n", "a prefix"),
        ("+3\r\nabc\r\n", "a sign"),
        ("-1\r\n", "a sign"),
        (" 3\r\nabc\r\n", "a space before the size"),
        ("3 \r\nabc\r\n", "a space behind the size, and no extension (7.1.1)"),
        ("3\nabc\r\n0\r\n\r\n", "a bare line feed"),
        ("3\rabc", "a bare carriage return"),
        ("3\r\nabcd\r\n", "more data than the size says"),
        ("3\r\nab\r\n0\r\n\r\n", "less data than the size says"),
        ("3\r\nabc0\r\n\r\n", "no line's end behind the data"),
        ("3\r\nabc\n0\r\n\r\n", "a bare line feed behind the data"),
        ("3;a\nb\r\nabc\r\n", "a bare line feed in an extension"),
        ("3;a\0\r\nabc\r\n", "a NUL in an extension"),
        ("00000000000000003\r\nabc\r\n", "too many digits"),
        ("0\r\n X: y\r\n\r\n", "a folded trailer"),
        ("0\r\nX\r\n\r\n", "a trailer without colon"),
        ("0\r\nX : y\r\n\r\n", "a space before the colon of a trailer"),
        ("0\r\nX: y\n\r\n", "a bare line feed in a trailer"),
        ("0\r\n\n", "a bare line feed at the end"),
    ] {
        assert_eq!(chunked(text), Err(BodyError::Malformed), "{why}: {text:?}");
    }
}

#[test]
fn what_is_too_much_is_refused_before_it_comes() {
    assert_eq!(chunked("3e9\r\n"), Err(BodyError::TooLarge));
    assert_eq!(chunked("ffffffffffffffff\r\n"), Err(BodyError::TooLarge));
    assert_eq!(chunked("10000000000000000\r\n"), Err(BodyError::Malformed));
    assert_eq!(read(Framing::Length(1001), b"", &[1]), Err(BodyError::TooLarge));
    assert_eq!(chunked(&format!("1;{}", "x".repeat(5000))), Err(BodyError::TooLarge));
    assert_eq!(chunked(&format!("0\r\n{}", "x: y\r\n".repeat(3000))), Err(BodyError::TooLarge));
    let many = "1;xxxxxxxxx\r\na\r\n".repeat(900);
    assert_eq!(chunked(&many), Err(BodyError::TooLarge));
}

#[test]
fn a_length_is_kept() {
    assert_eq!(read(Framing::Length(3), b"abcdef", &[2]), Ok(Some((b"abc".to_vec(), 3))));
    assert_eq!(read(Framing::Length(3), b"ab", &[2]), Ok(None));
    assert_eq!(read(Framing::None, b"ab", &[2]), Ok(Some((Vec::new(), 0))));
}

proptest! {
    #[test]
    fn content_survives_any_chunks_and_any_split(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..10),
        pieces in proptest::collection::vec(1usize..50, 1..10),
    ) {
        let mut bytes = Vec::new();
        for chunk in &chunks {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        prop_assert_eq!(read(Framing::Chunked, &bytes, &pieces), Ok(Some((chunks.concat(), bytes.len()))));
    }

    /// The result is independent of how the bytes are split.
    #[test]
    fn splits_do_not_matter(text in "[0-9a-c;: \r\n]{0,40}", pieces in proptest::collection::vec(1usize..9, 1..5)) {
        prop_assert_eq!(chunked(&text), read(Framing::Chunked, text.as_bytes(), &pieces));
    }
}

#[test]
fn what_is_left_is_known_where_the_head_told() {
    let mut reader = BodyReader::new(Framing::Length(5), 10).expect("it is allowed");
    assert_eq!(reader.left(), Some(5));
    reader.next(b"ab").expect("content");
    assert_eq!(reader.left(), Some(3));
    reader.next(b"cde").expect("content");
    assert_eq!(reader.left(), Some(0));
    assert_eq!(BodyReader::new(Framing::None, 10).expect("it is allowed").left(), Some(0));
    assert_eq!(BodyReader::new(Framing::Chunked, 10).expect("it is allowed").left(), None);
}
