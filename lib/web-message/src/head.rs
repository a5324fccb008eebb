//! Request heads, in the format of the contract HttpExchange: four lines, then header fields.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::is_token;

/// Maximum header fields of a request.
pub const MAX_HEADERS: usize = 256;

/// A request head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Method.
    pub method: String,
    /// Decoded path, without `.` and `..`, relative to the application's mount point; begins with `/`.
    pub path: String,
    /// Query as sent, without `?`; may be empty.
    pub query: String,
    /// The peer's address.
    pub peer: String,
    /// Fields with lower-case names, in order.
    pub headers: Vec<(String, String)>,
}

/// Why a head is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// Not UTF-8.
    NotText,
    /// Fewer than four lines.
    Short,
    /// The method is not a token.
    BadMethod,
    /// The path does not begin with `/`.
    BadPath,
    /// A field without a name or colon.
    BadHeader,
    /// More than [`MAX_HEADERS`].
    TooManyHeaders,
}

impl fmt::Display for HeadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            HeadError::NotText => "the head is no UTF-8",
            HeadError::Short => "the head ends before its fourth line does",
            HeadError::BadMethod => "the method is no word",
            HeadError::BadPath => "the path does not begin with `/`",
            HeadError::BadHeader => "a header has no name or no colon",
            HeadError::TooManyHeaders => "there are too many headers",
        })
    }
}

impl RequestHead {
    /// Parses a head. Although the server is trusted, malformed heads do not panic.
    pub fn parse(bytes: &[u8]) -> Result<RequestHead, HeadError> {
        let text = core::str::from_utf8(bytes).map_err(|_| HeadError::NotText)?;
        let mut lines = text.split_terminator('\n');
        let mut line = || lines.next().map(String::from).ok_or(HeadError::Short);
        let (method, path, query, peer) = (line()?, line()?, line()?, line()?);
        if !is_token(&method) {
            return Err(HeadError::BadMethod);
        }
        if !path.starts_with('/') {
            return Err(HeadError::BadPath);
        }
        let mut headers = Vec::new();
        for line in lines {
            if headers.len() == MAX_HEADERS {
                return Err(HeadError::TooManyHeaders);
            }
            let (name, value) = line.split_once(':').ok_or(HeadError::BadHeader)?;
            if !is_token(name) {
                return Err(HeadError::BadHeader);
            }
            headers.push((name.to_ascii_lowercase(), String::from(value.trim_matches([' ', '\t']))));
        }
        Ok(RequestHead { method, path, query, peer, headers })
    }

    /// The value of the first field with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The values of all fields with this lower-case name.
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The content type, in lower case and without parameters; empty if not given.
    pub fn content_type(&self) -> String {
        let value = self.header("content-type").unwrap_or("");
        let kind = value.split_once(';').map_or(value, |(kind, _)| kind);
        kind.trim_matches([' ', '\t']).to_ascii_lowercase()
    }

    /// The content length, if given.
    pub fn content_length(&self) -> Option<u64> {
        let value = self.header("content-length")?;
        // `parse` would accept a plus sign.
        value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let head = RequestHead::parse(
            b"GET\n/a b\nx=1\n10.0.2.2:4711\nhost: here\ncookie: a=1\ncookie:b=2\ncontent-type: text/HTML; charset=x\n",
        )
        .expect("a head");
        assert_eq!((head.method.as_str(), head.path.as_str(), head.query.as_str()), ("GET", "/a b", "x=1"));
        assert_eq!(head.peer, "10.0.2.2:4711");
        assert_eq!(head.header("host"), Some("here"));
        assert_eq!(head.headers_named("cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(head.content_type(), "text/html");
        assert_eq!(head.header("accept"), None);
    }

    #[test]
    fn a_head_without_headers_and_query_is_whole() {
        let head = RequestHead::parse(b"HEAD\n/\n\n::1\n").expect("a head");
        assert!(head.query.is_empty() && head.headers.is_empty() && head.content_type().is_empty());
    }

    #[test]
    fn a_length_is_digits_alone() {
        for (text, length) in [("7", Some(7)), ("+7", None), ("", None), ("7x", None), ("99999999999999999999", None)] {
            let head = RequestHead::parse(std::format!("POST\n/\n\n::1\ncontent-length: {text}\n").as_bytes());
            assert_eq!(head.expect("a head").content_length(), length, "{text}");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for (bytes, error) in [
            (&b""[..], HeadError::Short),
            (b"GET\n/\n", HeadError::Short),
            (b"G T\n/\n\n::1\n", HeadError::BadMethod),
            (b"GET\nx\n\n::1\n", HeadError::BadPath),
            (b"GET\n/\n\n::1\nno colon\n", HeadError::BadHeader),
            (b"GET\n/\n\n::1\n: nameless\n", HeadError::BadHeader),
            (b"GET\n/\xff\n\n::1\n", HeadError::NotText),
        ] {
            assert_eq!(RequestHead::parse(bytes), Err(error), "{bytes:?}");
        }
        let mut many = Vec::from(*b"GET\n/\n\n::1\n");
        for _ in 0..=MAX_HEADERS {
            many.extend_from_slice(b"a: b\n");
        }
        assert_eq!(RequestHead::parse(&many), Err(HeadError::TooManyHeaders));
    }
}
