//! The request head: request line and header fields (RFC 9112, sections 2 to 6).
//!
//! Key types: [`Request`], [`Rejection`]; [`parse`] turns bytes into one of the two. Where RFC 9112 lets a server
//! choose between repairing and rejecting an ambiguous message, this rejects: request smuggling depends on two parties
//! that parse a request differently (section 11.2). Deliberately not here: semantics of headers beyond the request's
//! length and the connection's persistence.

use core::mem::MaybeUninit;

use crate::text::{is_host, list_members};

/// Maximum header fields of a request.
pub const MAX_HEADERS: usize = 100;

/// Storage for the fields of a head while it is parsed.
pub type HeaderSpace<'b> = [MaybeUninit<httparse::Header<'b>>; MAX_HEADERS];

/// Returns storage for [`parse`].
pub const fn header_space<'b>() -> HeaderSpace<'b> {
    [const { MaybeUninit::uninit() }; MAX_HEADERS]
}

/// Request method (RFC 9110, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Transfer the content.
    Get,
    /// As GET, without the content.
    Head,
    /// Resource-specific processing.
    Post,
    /// Replace the content.
    Put,
    /// Delete the resource.
    Delete,
    /// Describe the options.
    Options,
    /// Modify the content (RFC 5789).
    Patch,
    /// Echo the request.
    Trace,
    /// Open a tunnel.
    Connect,
    /// Any other.
    Other,
}

/// Framing of the content (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// `Content-Length`.
    Length(u64),
    /// Chunked, up to the empty last chunk.
    Chunked,
}

/// Why a request is rejected. The connection is closed after the response, since the start of the next request is
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The response status.
    pub status: u16,
    /// Human-readable reason.
    pub reason: &'static str,
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'h, 'b> {
    /// The method.
    pub method: Method,
    /// The method as it was sent.
    pub method_text: &'b str,
    /// The target as it was sent.
    pub target: &'b str,
    /// The path within it, as sent: begins with `/`, or is `*`.
    pub path: &'b str,
    /// The query behind `?`, as sent.
    pub query: Option<&'b str>,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// Host and port that the request is for; empty if not given.
    pub host: &'b str,
    /// Framing of the content.
    pub framing: Framing,
    /// Whether the connection persists.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the content.
    pub expects_continue: bool,
    /// Length of the head with the empty line, in bytes.
    pub head_bytes: usize,
    headers: &'h [httparse::Header<'b>],
}

impl<'h, 'b> Request<'h, 'b> {
    /// Returns the fields in the order received: name as sent, value trimmed.
    pub fn headers(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + use<'h, 'b> {
        self.headers.iter().map(|header| (header.name, header.value))
    }

    /// Returns the value of the first field with this name.
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        self.headers().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the value of the field with this name, if there is exactly one and it is text.
    pub fn single(&self, name: &str) -> Option<&'b str> {
        let mut values = self.headers().filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = values.next()?;
        if values.next().is_some() { None } else { core::str::from_utf8(first).ok() }
    }
}

/// Parses a head from the start of `bytes`; `None` while it is incomplete. A head of more than `max_bytes` is
/// rejected.
pub fn parse<'h, 'b>(
    bytes: &'b [u8],
    space: &'h mut HeaderSpace<'b>,
    max_bytes: usize,
) -> Result<Option<Request<'h, 'b>>, Rejection> {
    let mut head = httparse::Request::new(&mut []);
    let head_bytes = match head.parse_with_uninit_headers(bytes, space) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if has_bare_line_feed(&bytes[..bytes.len().min(max_bytes)]) => {
            return Err(BARE_LINE_FEED);
        }
        Ok(httparse::Status::Partial) if bytes.len() < max_bytes => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(too_large(bytes, max_bytes)),
        Err(httparse::Error::TooManyHeaders) => return Err(too_many_fields(bytes)),
        Err(httparse::Error::Version) => return wrong_version(bytes).map_or(Ok(None), Err),
        Err(error) => return Err(reject(400, words(error))),
    };
    if has_bare_line_feed(&bytes[..head_bytes.min(max_bytes)]) {
        return Err(BARE_LINE_FEED);
    }
    if head_bytes > max_bytes {
        return Err(too_large(bytes, max_bytes));
    }
    let (Some(method_text), Some(target), Some(minor_version)) = (head.method, head.path, head.version) else {
        return Err(reject(400, "the request line is not whole"));
    };
    let headers: &'h [httparse::Header<'b>] = head.headers;
    let fields = Fields::collect(headers, minor_version)?;
    let method = method(method_text);
    let target_parts = split_target(method, target)?;
    let host = target_parts.host.or(fields.host).unwrap_or("");
    Ok(Some(Request {
        method,
        method_text,
        target,
        path: target_parts.path,
        query: target_parts.query,
        minor_version,
        host,
        framing: fields.framing(minor_version)?,
        keep_alive: fields.keep_alive(minor_version),
        expects_continue: fields.expects_continue && minor_version > 0,
        head_bytes,
        headers,
    }))
}

/// Finds the end of a head in bytes that arrive piecemeal, scanning each byte once.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndFinder {
    scanned: usize,
}

impl EndFinder {
    /// Returns whether `bytes`, which begin with those of the previous call, contain an empty line after a non-empty
    /// one.
    pub fn found(&mut self, bytes: &[u8]) -> bool {
        // The preceding line feeds may belong to the part already scanned.
        let from = self.scanned.saturating_sub(3);
        self.scanned = bytes.len();
        let rest = bytes.get(from..).unwrap_or(&[]);
        rest.windows(3).any(|window| window == b"\n\r\n") || rest.windows(2).any(|window| window == b"\n\n")
    }
}

/// Request properties derived from the header fields.
struct Fields<'b> {
    host: Option<&'b str>,
    length: Option<u64>,
    has_transfer_encoding: bool,
    /// `chunked` is the last transfer coding, and the only one.
    only_chunked: bool,
    unknown_coding: bool,
    close: bool,
    keep: bool,
    expects_continue: bool,
}

impl<'b> Fields<'b> {
    fn collect(headers: &[httparse::Header<'b>], minor_version: u8) -> Result<Fields<'b>, Rejection> {
        let mut fields = Fields {
            host: None,
            length: None,
            has_transfer_encoding: false,
            only_chunked: false,
            unknown_coding: false,
            close: false,
            keep: false,
            expects_continue: false,
        };
        for header in headers {
            // The length distinguishes most names.
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("host") => fields.take_host(header.value)?,
                6 if header.name.eq_ignore_ascii_case("expect") => fields.take_expectation(header.value)?,
                10 if header.name.eq_ignore_ascii_case("connection") => fields.take_connection(header.value),
                14 if header.name.eq_ignore_ascii_case("content-length") => fields.take_length(header.value)?,
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => fields.take_codings(header.value)?,
                _ => {}
            }
        }
        // RFC 9112, section 3.2.
        if fields.host.is_none() && minor_version > 0 {
            return Err(reject(400, "there is no host field"));
        }
        Ok(fields)
    }

    fn take_host(&mut self, value: &'b [u8]) -> Result<(), Rejection> {
        if self.host.is_some() {
            return Err(reject(400, "there are several host fields"));
        }
        match core::str::from_utf8(value) {
            Ok(host) if is_host(host) => self.host = Some(host),
            _ => return Err(reject(400, "the host field names no host")),
        }
        Ok(())
    }

    fn take_expectation(&mut self, value: &[u8]) -> Result<(), Rejection> {
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(reject(417, "there is an expectation that is not known here"));
        }
        self.expects_continue = true;
        Ok(())
    }

    fn take_connection(&mut self, value: &[u8]) {
        for member in list_members(value) {
            self.close |= member.eq_ignore_ascii_case(b"close");
            self.keep |= member.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// RFC 9110, section 8.6: digits only. A list of equal lengths could be repaired; it is rejected.
    fn take_length(&mut self, value: &[u8]) -> Result<(), Rejection> {
        if self.length.is_some() {
            return Err(reject(400, "there are several content-length fields"));
        }
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(reject(400, "the content-length is not a number"));
        }
        let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
        match value.iter().try_fold(0, add) {
            Some(length) => self.length = Some(length),
            None => return Err(reject(413, "the content is too long")),
        }
        Ok(())
    }

    /// RFC 9112, section 6.1.
    fn take_codings(&mut self, value: &[u8]) -> Result<(), Rejection> {
        self.has_transfer_encoding = true;
        for coding in list_members(value) {
            if self.only_chunked {
                return Err(reject(400, "something follows the transfer coding `chunked`"));
            }
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.only_chunked = true;
            } else {
                self.unknown_coding = true;
            }
        }
        Ok(())
    }

    /// RFC 9112, sections 6.1 and 6.3.
    fn framing(&self, minor_version: u8) -> Result<Framing, Rejection> {
        if !self.has_transfer_encoding {
            return Ok(self.length.map_or(Framing::None, Framing::Length));
        }
        if self.length.is_some() {
            return Err(reject(400, "there are a content-length and a transfer-encoding"));
        }
        if minor_version == 0 {
            return Err(reject(400, "HTTP/1.0 has no transfer codings"));
        }
        if !self.only_chunked {
            return Err(reject(400, "the last transfer coding is not `chunked`"));
        }
        if self.unknown_coding {
            return Err(reject(501, "there is a transfer coding that is not known here"));
        }
        Ok(Framing::Chunked)
    }

    /// RFC 9112, section 9.3.
    fn keep_alive(&self, minor_version: u8) -> bool {
        !self.close && (minor_version > 0 || self.keep)
    }
}

struct TargetParts<'b> {
    host: Option<&'b str>,
    path: &'b str,
    query: Option<&'b str>,
}

/// RFC 9112, section 3.2: origin-form, absolute-form, and `*` of OPTIONS.
fn split_target(method: Method, target: &str) -> Result<TargetParts<'_>, Rejection> {
    if target.contains('#') {
        return Err(reject(400, "the target has a fragment"));
    }
    if method == Method::Connect {
        return Err(reject(501, "there are no tunnels here"));
    }
    if target == "*" && method == Method::Options {
        return Ok(TargetParts { host: None, path: target, query: None });
    }
    let (host, rest) = if target.starts_with('/') { (None, target) } else { split_absolute(target)? };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    Ok(TargetParts { host, path: if path.is_empty() { "/" } else { path }, query })
}

fn split_absolute(target: &str) -> Result<(Option<&str>, &str), Rejection> {
    const SCHEME: &str = "http://";
    // RFC 9110, section 7.4: a resource of https must not be served over an insecure connection.
    if target.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://")) {
        return Err(reject(421, "this connection is not a secured one"));
    }
    let has_scheme = target.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    let Some(rest) = target.get(SCHEME.len()..).filter(|_| has_scheme) else {
        return Err(reject(400, "the target is not a path"));
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    // RFC 9110, section 4.2.1: a URI of the scheme http has a host.
    if host.is_empty() || !is_host(host) {
        return Err(reject(400, "the target names no host"));
    }
    Ok((Some(host), rest))
}

fn method(text: &str) -> Method {
    match text {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        "TRACE" => Method::Trace,
        "CONNECT" => Method::Connect,
        _ => Method::Other,
    }
}

const fn reject(status: u16, reason: &'static str) -> Rejection {
    Rejection { status, reason }
}

const BARE_LINE_FEED: Rejection = reject(400, "a line ends without a carriage return");

/// Returns whether there is a bare line feed, which some parsers accept as a line end (RFC 9112, section 2.2) and
/// others do not.
fn has_bare_line_feed(bytes: &[u8]) -> bool {
    let mut before = 0;
    bytes.iter().any(|&byte| {
        let bare = byte == b'\n' && before != b'\r';
        before = byte;
        bare
    })
}

/// Rejects an unsupported version (RFC 9110, section 15.6.6) or none at all; `None` while the bytes are a prefix of a
/// version, so that the result does not depend on how they are split.
fn wrong_version(bytes: &[u8]) -> Option<Rejection> {
    const FORM: &[u8; 8] = b"HTTP/0.0";
    let start = empty_lines(bytes);
    if has_bare_line_feed(&bytes[..start]) {
        return Some(BARE_LINE_FEED);
    }
    let version = bytes[start..].splitn(3, |byte| *byte == b' ').nth(2).unwrap_or(&[]);
    let fits = |(found, form): (&u8, &u8)| if *form == b'0' { found.is_ascii_digit() } else { found == form };
    if !version.iter().zip(FORM).all(fits) {
        return Some(reject(400, "the request line does not end with a version"));
    }
    (version.len() >= FORM.len()).then_some(reject(505, "the version of HTTP is not 1.0 or 1.1"))
}

/// RFC 6585, section 5, unless a line before the first excess field is malformed: that would have been detected if the
/// head had arrived line by line.
fn too_many_fields(bytes: &[u8]) -> Rejection {
    let start = empty_lines(bytes);
    let feeds = bytes[start..].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let end = feeds.map(|(at, _)| start + at + 1).nth(MAX_HEADERS).unwrap_or(bytes.len());
    if has_bare_line_feed(&bytes[..end]) { BARE_LINE_FEED } else { reject(431, "there are too many header fields") }
}

/// Returns the length of the empty lines in front of a request.
fn empty_lines(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// RFC 9110, section 15.5.15, if the target is too long; otherwise RFC 6585, section 5.
fn too_large(bytes: &[u8], max_bytes: usize) -> Rejection {
    let start = empty_lines(bytes);
    let looked_at = &bytes[start.min(bytes.len())..bytes.len().min(max_bytes.max(start))];
    if looked_at.contains(&b'\n') {
        reject(431, "the header fields are too long")
    } else {
        reject(414, "the target is too long")
    }
}

fn words(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "the name of a header field is none",
        httparse::Error::HeaderValue => "the value of a header field has bytes that cannot be there",
        httparse::Error::NewLine => "a line does not end as it must",
        httparse::Error::Token => "the request line is none",
        httparse::Error::Status | httparse::Error::TooManyHeaders | httparse::Error::Version => "the head is none",
    }
}
