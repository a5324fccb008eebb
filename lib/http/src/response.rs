//! The response head, as a client parses it (RFC 9112, sections 4 and 6.3).
//!
//! Key type: [`Response`]; [`parse`] turns bytes into one. Ambiguous heads are rejected, as in [`crate::request`].
//! Neighbour: [`crate::body`] decodes the content. Deliberately not here: the meaning of a status.

use core::fmt;

use crate::request::{Framing, HeaderSpace};
use crate::text::list_members;

/// Why a response is rejected. `Display` continues a sentence that begins with the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// It is not HTTP.
    NotHttp,
    /// Its head exceeds the limit.
    TooLong,
    /// It has too many fields.
    TooManyHeaders,
    /// Its length is malformed, or given twice.
    BadLength,
    /// Its transfer coding is unknown.
    UnknownCoding,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ResponseError::NotHttp => "what answers there does not speak HTTP; check the port",
            ResponseError::TooLong => "the head of the answer is longer than it may be",
            ResponseError::TooManyHeaders => "the answer has more than 100 header fields",
            ResponseError::BadLength => "the answer contradicts itself about its length",
            ResponseError::UnknownCoding => "the answer is coded in a way that was not asked for",
        })
    }
}

/// How the end of a response's content is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As for requests.
    Framed(Framing),
    /// Until the server closes the connection.
    UntilEnd,
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Response<'h, 'b> {
    /// 100 to 999.
    pub status: u16,
    /// Human-readable reason phrase.
    pub reason: &'b str,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// Length of the head with the empty line, in bytes.
    pub head_bytes: usize,
    headers: &'h [httparse::Header<'b>],
}

impl<'h, 'b> Response<'h, 'b> {
    /// Returns the fields in the order received: name as sent, value trimmed.
    pub fn headers(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + use<'h, 'b> {
        self.headers.iter().map(|header| (header.name, header.value))
    }

    /// Returns the value of the first field with this name.
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        self.headers().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns how the content is delimited; `to_head`: the request's method was HEAD.
    ///
    /// # Errors
    /// The framing is malformed.
    pub fn extent(&self, to_head: bool) -> Result<Extent, ResponseError> {
        let named = |name: &'static str| {
            self.headers().filter(move |(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        if to_head || matches!(self.status, 100..=199 | 204 | 304) {
            return Ok(Extent::Framed(Framing::None));
        }
        let mut codings = named("transfer-encoding").flat_map(list_members);
        let mut lengths = named("content-length").flat_map(|value| value.split(|byte| *byte == b','));
        match (codings.next(), lengths.next()) {
            (None, None) => Ok(Extent::UntilEnd),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none() => {
                Ok(Extent::Framed(Framing::Chunked))
            }
            (Some(_), None) => Err(ResponseError::UnknownCoding),
            (Some(_), Some(_)) => Err(ResponseError::BadLength),
            (None, Some(first)) => {
                let first = length(first).ok_or(ResponseError::BadLength)?;
                let is_same = lengths.all(|other| length(other) == Some(first));
                if is_same { Ok(Extent::Framed(Framing::Length(first))) } else { Err(ResponseError::BadLength) }
            }
        }
    }
}

fn length(digits: &[u8]) -> Option<u64> {
    let digits = core::str::from_utf8(crate::text::trim(digits)).ok()?;
    // `parse` would accept a plus sign.
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses a head from the start of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// It is malformed, or longer than `max_bytes`.
pub fn parse<'h, 'b>(
    bytes: &'b [u8],
    space: &'h mut HeaderSpace<'b>,
    max_bytes: usize,
) -> Result<Option<Response<'h, 'b>>, ResponseError> {
    let looked_at = &bytes[..bytes.len().min(max_bytes)];
    let mut found = httparse::Response::new(&mut []);
    match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut found, looked_at, space) {
        Ok(httparse::Status::Partial) if bytes.len() >= max_bytes => Err(ResponseError::TooLong),
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(head_bytes)) => match (found.code, found.version) {
            (Some(status), Some(minor_version)) if status >= 100 => {
                let reason = found.reason.unwrap_or_default();
                Ok(Some(Response { status, reason, minor_version, head_bytes, headers: found.headers }))
            }
            _ => Err(ResponseError::NotHttp),
        },
        Err(httparse::Error::TooManyHeaders) => Err(ResponseError::TooManyHeaders),
        Err(_) => Err(ResponseError::NotHttp),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;
    use crate::request::header_space;

    fn extent(fields: &str, to_head: bool) -> Result<Extent, ResponseError> {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let mut space = header_space();
        parse(head.as_bytes(), &mut space, 4096)?.ok_or(ResponseError::NotHttp)?.extent(to_head)
    }

    #[test]
    fn a_head_is_read() {
        let bytes = b"HTTP/1.0 404 Not  Found\r\nLocation: /a \r\nlocation: /b\r\n\r\ncontent";
        let mut space = header_space();
        let head = parse(bytes, &mut space, 4096).expect("a head").expect("a whole one");
        assert_eq!((head.status, head.reason, head.minor_version), (404, "Not  Found", 0));
        assert_eq!(head.header("LOCATION"), Some(&b"/a"[..]));
        assert_eq!(&bytes[head.head_bytes..], b"content");
        assert_eq!(head.extent(false), Ok(Extent::UntilEnd));
    }

    #[test]
    fn a_head_that_is_not_whole_or_none_at_all() {
        let look = |bytes: &[u8], most| {
            let mut space = header_space();
            parse(bytes, &mut space, most).map(|head| head.is_some())
        };
        assert_eq!(look(b"HTTP/1.1 200 OK\r\nA: b\r\n", 4096), Ok(false));
        assert_eq!(look(b"", 4096), Ok(false));
        assert_eq!(look(b"HTTP/1.1 200 OK\r\nA: b\r\n", 10), Err(ResponseError::TooLong));
        for wrong in ["SSH-2.0-x\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "\0"]
        {
            assert_eq!(look(wrong.as_bytes(), 4096), Err(ResponseError::NotHttp), "{wrong}");
        }
        let many = "A: b\r\n".repeat(101);
        assert_eq!(look(format!("HTTP/1.1 200 OK\r\n{many}\r\n").as_bytes(), 4096), Err(ResponseError::TooManyHeaders));
    }

    #[test]
    fn how_far_the_content_goes() {
        let framed = |framing| Ok(Extent::Framed(framing));
        assert_eq!(extent("Content-Length: 12\r\n", false), framed(Framing::Length(12)));
        assert_eq!(extent("Content-Length: 12\r\n", true), framed(Framing::None));
        assert_eq!(extent("Content-Length: 12, 12\r\nContent-Length: 12\r\n", false), framed(Framing::Length(12)));
        assert_eq!(extent("Transfer-Encoding: Chunked\r\n", false), framed(Framing::Chunked));
        assert_eq!(extent("", false), Ok(Extent::UntilEnd));
        for wrong in [
            "Content-Length: 1, 2\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert_eq!(extent(wrong, false), Err(ResponseError::BadLength), "{wrong}");
        }
        assert_eq!(extent("Transfer-Encoding: gzip, chunked\r\n", false), Err(ResponseError::UnknownCoding));
        assert!(ResponseError::UnknownCoding.to_string().contains("coded"));
    }
}
