//! Text formats for web applications.
//!
//! Untrusted input: [`RequestHead`], [`pairs`] of a query or a form, [`cookies`]. Output that input cannot inject into:
//! [`AnswerHead`], [`Reply`], [`Escaped`] for HTML, [`JsonWriter`], [`SetCookie`]. [`Options`] are those that the server's
//! administrator gave the application. Neighbours: `userland/web-application` passes these texts over channels.
//! Deliberately not here: HTTP framing, which only the web server parses and writes.
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
mod reply;

pub use answer::{AnswerHead, HeaderError};
pub use cookie::{SetCookie, cookies};
pub use form::{BadNumber, Form, FormError, MAX_PAIRS, encode, pairs};
pub use head::{HeadError, MAX_HEADERS, RequestHead};
pub use html::{Escaped, FAVICON};
pub use json::JsonWriter;
pub use options::{OptionError, Options};
pub use reply::Reply;

/// Whether a byte may occur in a token: a method, field name or cookie name (RFC 9110, section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a text is a token.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}
