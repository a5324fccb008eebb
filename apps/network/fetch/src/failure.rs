//! Failures of a fetch, as text.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use client::access::AccessError;
use http::response::ResponseError;
use http::url::UrlError;
use network::NetError;
use text::{bytes, printable};

/// Why a fetch failed. `Display` continues a sentence that begins with the address.
#[derive(Debug)]
pub enum Failure {
    /// The URL cannot be fetched.
    Url(UrlError),
    /// The connection failed.
    Net(NetError),
    /// The response is malformed.
    Response(ResponseError),
    /// The content is framed incorrectly.
    Framing,
    /// The content ended early.
    CutShort {
        /// Bytes received.
        came: u64,
        /// Bytes announced.
        announced: Option<u64>,
    },
    /// The server closed the connection without a response.
    NoAnswer,
    /// The server returned an error status.
    Status(u16, Vec<u8>),
    /// The server redirects, and redirects are not followed.
    Redirect(String),
    /// Too many redirects: this many.
    TooManyRedirects(u64),
    /// The redirect target cannot be fetched.
    BadRedirect(String, UrlError),
    /// The overall time limit passed.
    Limit,
    /// A file operation failed.
    File(String, AccessError),
    /// The file became shorter while it was sent.
    Shrunk(String),
    /// The reader of the output has ended.
    Output,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Url(error) => error.fmt(formatter),
            Failure::Net(NetError::Silent) => {
                formatter.write_str("the server timed out; try again, or allow more time with --wait")
            }
            Failure::Net(error) => error.fmt(formatter),
            Failure::Response(error) => error.fmt(formatter),
            Failure::Framing => formatter.write_str("malformed HTTP body; the content is incomplete"),
            Failure::CutShort { came, announced: Some(announced) } => {
                write!(formatter, "truncated after {} of {}; try again", bytes(*came), bytes(*announced))
            }
            Failure::CutShort { came, announced: None } => {
                write!(formatter, "truncated after {}; try again", bytes(*came))
            }
            Failure::NoAnswer => formatter.write_str("the server closed the connection without a response; try again"),
            Failure::Status(status, reason) => {
                let reason = printable(reason);
                let blank = if reason.is_empty() { "" } else { " " };
                write!(formatter, "HTTP status {status}{blank}{reason}{}", remedy(*status))
            }
            Failure::Redirect(to) => {
                write!(formatter, "moved to {}; --redirects 1 follows", printable(to.as_bytes()))
            }
            Failure::TooManyRedirects(most) => {
                write!(formatter, "more than {most} redirects; --redirects allows more")
            }
            Failure::BadRedirect(to, error) => write!(formatter, "redirect to {}: {error}", printable(to.as_bytes())),
            Failure::Limit => formatter.write_str("--limit exceeded"),
            Failure::File(path, error) => write!(formatter, "{path}: {error}"),
            Failure::Shrunk(path) => write!(formatter, "{path}: the file shrank during the upload; try again"),
            Failure::Output => formatter.write_str("broken pipe"),
        }
    }
}

fn remedy(status: u16) -> &'static str {
    match status {
        401 | 403 => "; access denied",
        404 => "; check the path",
        405 => "; method not allowed",
        413 => "; the file is too large",
        429 | 503 => "; try again later",
        500..=599 => "; server error",
        _ => "",
    }
}

impl From<UrlError> for Failure {
    fn from(error: UrlError) -> Failure {
        Failure::Url(error)
    }
}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Failure {
        Failure::Net(error)
    }
}

impl From<ResponseError> for Failure {
    fn from(error: ResponseError) -> Failure {
        Failure::Response(error)
    }
}

/// For a file that the caller names.
impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Failure {
        Failure::File(String::new(), error)
    }
}
