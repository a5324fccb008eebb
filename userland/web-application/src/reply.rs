//! A complete response.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use sip::exheap::ExVec;
use web_message::{AnswerHead, Escaped, FAVICON, HeaderError, SetCookie};

/// The body of a response.
pub(crate) enum Body {
    /// Copied into a block on sending.
    Bytes(Vec<u8>),
    /// The first bytes of a block.
    Block(ExVec<u8>, usize),
}

/// A complete response, which [`Exchange::reply`](crate::Exchange::reply) sends. The default status is 200.
#[must_use = "a reply does nothing until it is sent"]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) head: AnswerHead,
    pub(crate) body: Body,
}

impl Reply {
    /// An HTML page.
    pub fn html(page: String) -> Reply {
        Reply::of("text/html; charset=utf-8", Body::Bytes(page.into_bytes()))
    }

    /// Plain text.
    pub fn text(text: String) -> Reply {
        Reply::of("text/plain; charset=utf-8", Body::Bytes(text.into_bytes()))
    }

    /// Text of this content type.
    pub fn text_of(content_type: &'static str, text: String) -> Reply {
        Reply::of(content_type, Body::Bytes(text.into_bytes()))
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

    /// A small error page with this status.
    pub fn error(status: u16, explanation: impl fmt::Display) -> Reply {
        let explanation = explanation.to_string();
        let text = Escaped(&explanation);
        let page = format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{status}</title>{FAVICON}</head>\
             <body><h1>{status}</h1><p>{text}</p></body></html>\n"
        );
        Reply::html(page).with_status(status)
    }

    /// 404 Not Found.
    pub fn not_found() -> Reply {
        Reply::error(404, "Not found.")
    }

    /// 405 Method Not Allowed; `allowed` lists the allowed methods, separated by commas.
    pub fn wrong_method(allowed: &'static str) -> Reply {
        let reply = Reply::error(405, format_args!("Allowed methods: {allowed}."));
        // A list of methods is a valid header value.
        reply.with_header("allow", allowed).unwrap_or_else(|_| Reply::error(405, "Wrong method."))
    }

    /// Sets the status.
    pub fn with_status(self, status: u16) -> Reply {
        Reply { status, ..self }
    }

    /// Adds a header.
    pub fn with_header(self, name: &str, value: &str) -> Result<Reply, HeaderError> {
        Ok(Reply { head: self.head.with(name, value)?, ..self })
    }

    /// Sets a cookie.
    pub fn with_cookie(self, cookie: &SetCookie) -> Reply {
        Reply { head: self.head.with_cookie(cookie), ..self }
    }

    /// Forbids caching of the response.
    pub fn not_kept(self) -> Reply {
        Reply { head: self.head.not_kept(), ..self }
    }

    fn of(content_type: &'static str, body: Body) -> Reply {
        Reply { status: 200, head: AnswerHead::of_type(content_type), body }
    }
}
