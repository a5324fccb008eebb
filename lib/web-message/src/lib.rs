//! What web applications hear and say, as text.
//!
//! Heard, and so never trusted: [`RequestHead`], [`pairs`] of a query or a form, [`cookies`]. Said, and so written in
//! a way that nothing which was heard can change the meaning of the rest: [`AnswerHead`], [`Escaped`] in HTML,
//! [`JsonWriter`], [`SetCookie`]. [`Options`] is what the one who set up the server wrote for the application.
//! Neighbours: `userland/web-application` moves these texts over channels. Deliberately not here: HTTP's own framing,
//! which the web server alone reads and writes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod answer;
mod cookie;
mod form;
mod head;
mod html;
mod json;
mod options;

pub use answer::{AnswerHead, HeaderError};
pub use cookie::{SetCookie, cookies};
pub use form::{BadNumber, Form, FormError, MAX_PAIRS, encode, pairs};
pub use head::{HeadError, MAX_HEADERS, RequestHead};
pub use html::{Escaped, FAVICON};
pub use json::JsonWriter;
pub use options::{OptionError, Options};

/// Whether a byte may stand in a method, a header's name or a cookie's name (RFC 9110, section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a text is one or more of those bytes.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}
