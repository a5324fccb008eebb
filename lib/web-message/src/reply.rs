//! Complete responses.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::{AnswerHead, Escaped, FAVICON, HeaderError, SetCookie};

/// A complete response, of which only the body depends on how it is sent. The default status is 200.
#[must_use = "a reply does nothing until it is sent"]
pub struct Reply<B = Vec<u8>> {
    /// The status.
    pub status: u16,
    /// Header fields.
    pub head: AnswerHead,
    /// The body.
    pub body: B,
}

impl<B: From<Vec<u8>>> Reply<B> {
    /// An HTML page.
    pub fn html(page: String) -> Reply<B> {
        Reply::of("text/html; charset=utf-8", page.into_bytes().into())
    }

    /// Plain text.
    pub fn text(text: String) -> Reply<B> {
        Reply::of("text/plain; charset=utf-8", text.into_bytes().into())
    }

    /// Text of this content type.
    pub fn text_of(content_type: &'static str, text: String) -> Reply<B> {
        Reply::of(content_type, text.into_bytes().into())
    }

    /// JSON.
    pub fn json(text: String) -> Reply<B> {
        Reply::of("application/json", text.into_bytes().into())
    }

    /// A small error page with this status.
    pub fn error(status: u16, explanation: impl fmt::Display) -> Reply<B> {
        let explanation = explanation.to_string();
        let text = Escaped(&explanation);
        let page = format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{status}</title>{FAVICON}</head>\
             <body><h1>{status}</h1><p>{text}</p></body></html>\n"
        );
        Reply::html(page).with_status(status)
    }

    /// 404 Not Found.
    pub fn not_found() -> Reply<B> {
        Reply::error(404, "Not found.")
    }

    /// 405 Method Not Allowed; `allowed` lists the allowed methods, separated by commas.
    pub fn wrong_method(allowed: &'static str) -> Reply<B> {
        let reply = Reply::error(405, format_args!("Allowed methods: {allowed}."));
        // A list of methods is a valid header value.
        reply.with_header("allow", allowed).unwrap_or_else(|_| Reply::error(405, "Wrong method."))
    }

    /// Sets the status.
    pub fn with_status(self, status: u16) -> Reply<B> {
        Reply { status, ..self }
    }

    /// Adds a header.
    pub fn with_header(self, name: &str, value: &str) -> Result<Reply<B>, HeaderError> {
        Ok(Reply { head: self.head.with(name, value)?, ..self })
    }

    /// Sets a cookie.
    pub fn with_cookie(self, cookie: &SetCookie) -> Reply<B> {
        Reply { head: self.head.with_cookie(cookie), ..self }
    }

    /// Forbids caching of the response.
    pub fn not_kept(self) -> Reply<B> {
        Reply { head: self.head.not_kept(), ..self }
    }

    /// A body of this content type.
    pub fn of(content_type: &'static str, body: B) -> Reply<B> {
        Reply { status: 200, head: AnswerHead::of_type(content_type), body }
    }
}
