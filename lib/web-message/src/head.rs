//! The head of a request, as the contract HttpExchange has it: four lines, then headers.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::is_token;

/// Headers that a request may have.
pub const MAX_HEADERS: usize = 256;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Decoded, without `.` and `..`, from where the application serves; begins with `/`.
    pub path: String,
    /// As sent, without `?`; empty where there is none.
    pub query: String,
    /// The other end's address.
    pub peer: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
}

/// Why a head could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// It is no UTF-8.
    NotText,
    /// It ends before its fourth line does.
    Short,
    /// Its method is no word.
    BadMethod,
    /// Its path does not begin with `/`.
    BadPath,
    /// A header has no name, or no colon.
    BadHeader,
    /// It has more than [`MAX_HEADERS`].
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
    /// Reads a head. The server is trusted to have made it well, but not to the point of a panic.
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

    /// The value of the first header with this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The values of all headers with this name, which is in lower case.
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The type of the body, in lower case and without parameters; empty where nothing is said of it.
    pub fn content_type(&self) -> String {
        let value = self.header("content-type").unwrap_or("");
        let kind = value.split_once(';').map_or(value, |(kind, _)| kind);
        kind.trim_matches([' ', '\t']).to_ascii_lowercase()
    }

    /// How long the body is said to be.
    pub fn content_length(&self) -> Option<u64> {
        let value = self.header("content-length")?;
        // `parse` alone would also take a plus sign.
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
