//! A whole answer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use sip::exheap::ExVec;
use web_message::{AnswerHead, Escaped, FAVICON, HeaderError, SetCookie};

/// The bytes of an answer.
pub(crate) enum Body {
    /// Copied into a block when they are sent.
    Bytes(Vec<u8>),
    /// The first bytes of a block.
    Block(ExVec<u8>, usize),
}

/// A whole answer, which [`Exchange::reply`](crate::Exchange::reply) sends. Its status is 200 if nothing else is said.
#[must_use = "a reply does nothing until it is sent"]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) head: AnswerHead,
    pub(crate) body: Body,
}

impl Reply {
    /// A page.
    pub fn html(page: String) -> Reply {
        Reply::of("text/html; charset=utf-8", Body::Bytes(page.into_bytes()))
    }

    /// Plain text.
    pub fn text(text: String) -> Reply {
        Reply::of("text/plain; charset=utf-8", Body::Bytes(text.into_bytes()))
    }

    /// JSON.
    pub fn json(text: String) -> Reply {
        Reply::of("application/json", Body::Bytes(text.into_bytes()))
    }

    /// The first `count` bytes of a block, sent without a copy.
    pub fn block(content_type: &'static str, block: ExVec<u8>, count: usize) -> Reply {
        let count = count.min(block.len());
        Reply::of(content_type, Body::Block(block, count))
    }

    /// A small page that says what was wrong, with the status for it.
    pub fn error(status: u16, explanation: impl fmt::Display) -> Reply {
        let explanation = explanation.to_string();
        let text = Escaped(&explanation);
        let page = format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{status}</title>{FAVICON}</head>\
             <body><h1>{status}</h1><p>{text}</p></body></html>\n"
        );
        Reply::html(page).with_status(status)
    }

    /// Nothing has that path.
    pub fn not_found() -> Reply {
        Reply::error(404, "Nothing has that path here.")
    }

    /// The path is asked for in a way that it does not answer to; `allowed` are those it does, with commas.
    pub fn wrong_method(allowed: &'static str) -> Reply {
        let reply = Reply::error(405, format_args!("This path answers to {allowed}."));
        // A list of methods is a value that a header can have.
        reply.with_header("allow", allowed).unwrap_or_else(|_| Reply::error(405, "Wrong method."))
    }

    /// With this status instead.
    pub fn with_status(self, status: u16) -> Reply {
        Reply { status, ..self }
    }

    /// With one more header.
    pub fn with_header(self, name: &str, value: &str) -> Result<Reply, HeaderError> {
        Ok(Reply { head: self.head.with(name, value)?, ..self })
    }

    /// Has the browser remember a cookie.
    pub fn with_cookie(self, cookie: &SetCookie) -> Reply {
        Reply { head: self.head.with_cookie(cookie), ..self }
    }

    /// Has nobody keep the answer for another time.
    pub fn not_kept(self) -> Reply {
        Reply { head: self.head.not_kept(), ..self }
    }

    fn of(content_type: &'static str, body: Body) -> Reply {
        Reply { status: 200, head: AnswerHead::of_type(content_type), body }
    }
}
