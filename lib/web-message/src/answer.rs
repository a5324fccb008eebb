//! Response heads.

use alloc::string::String;
use core::fmt;

use crate::{SetCookie, is_token};

/// Maximum size of a response head.
const MAX_BYTES: usize = 16 * 1024;

/// Header fields reserved for the server.
const SERVERS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "date"];

/// Why a field was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The name is not a token, or is reserved for the server.
    BadName,
    /// The value has control characters.
    BadValue,
    /// The head would exceed the server's limit.
    TooLong,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            HeaderError::BadName => "a header cannot have that name here",
            HeaderError::BadValue => "a header's value cannot have control characters",
            HeaderError::TooLong => "the head would be too long",
        })
    }
}

/// A response head, safe against header injection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerHead {
    text: String,
}

impl AnswerHead {
    /// Creates a head with a content type.
    pub fn of_type(content_type: &'static str) -> AnswerHead {
        let mut head = AnswerHead::default();
        head.add("content-type", content_type);
        head
    }

    /// Adds a field.
    pub fn with(mut self, name: &str, value: &str) -> Result<AnswerHead, HeaderError> {
        let name = name.to_ascii_lowercase();
        if !is_token(&name) || SERVERS.contains(&name.as_str()) {
            return Err(HeaderError::BadName);
        }
        if value.chars().any(char::is_control) {
            return Err(HeaderError::BadValue);
        }
        if self.text.len() + name.len() + value.len() + 3 > MAX_BYTES {
            return Err(HeaderError::TooLong);
        }
        self.add(&name, value);
        Ok(self)
    }

    /// Sets a cookie.
    pub fn with_cookie(mut self, cookie: &SetCookie) -> AnswerHead {
        self.add("set-cookie", cookie.as_str());
        self
    }

    /// Disables caching.
    pub fn not_kept(mut self) -> AnswerHead {
        self.add("cache-control", "no-store");
        self
    }

    fn add(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        self.text.push_str(": ");
        self.text.push_str(value);
        self.text.push('\n');
    }

    /// The serialized head.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_lines() {
        let cookie = SetCookie::new("a", "1").expect("a cookie");
        let head = AnswerHead::of_type("text/html").with("X-Kind", "small one").expect("a head");
        let head = head.with_cookie(&cookie).not_kept();
        let text = core::str::from_utf8(head.as_bytes()).expect("text");
        assert_eq!(
            text,
            "content-type: text/html\nx-kind: small one\nset-cookie: a=1; Path=/; HttpOnly; SameSite=Lax\n\
             cache-control: no-store\n"
        );
    }

    #[test]
    fn nothing_makes_a_line_of_its_own() {
        let head = AnswerHead::default();
        for name in ["", "a b", "a:b", "a\nb", "Content-Length", "transfer-encoding"] {
            assert_eq!(head.clone().with(name, "x"), Err(HeaderError::BadName), "{name}");
        }
        for value in ["a\nb: c", "a\r", "\0", "\u{85}"] {
            assert_eq!(head.clone().with("a", value), Err(HeaderError::BadValue), "{value:?}");
        }
        let long = "x".repeat(MAX_BYTES);
        assert_eq!(head.with("a", &long), Err(HeaderError::TooLong));
    }
}
