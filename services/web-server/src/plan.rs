//! Chooses the response to a request, from its head and the cached files.
//!
//! Key types: [`Plan`], [`Action`]; [`make`] parses the head. Deliberately not here: anything that waits.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use http::application;
use http::conditional::{self, Verdict};
use http::range::{self, ByteRange, Ranges};
use http::request::{self, Framing, Method, Rejection, Request};
use http::{gzip, target};

use crate::Server;
use crate::cache::Entry;
use crate::store::is_file_systems_own;

/// Name of a folder's index page.
pub(crate) const INDEX: &str = "index.html";

/// Ranges of the head that the log line quotes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) method: Range<u32>,
    pub(crate) target: Range<u32>,
    pub(crate) referer: Option<Range<u32>>,
    pub(crate) user_agent: Option<Range<u32>>,
    pub(crate) minor_version: u8,
}

/// Selected content of a file.
pub(crate) enum Content {
    /// All of it.
    Whole,
    /// All of it, with content coding `gzip`.
    Coded,
    /// A part.
    Part(ByteRange),
    /// Several parts.
    Parts(Vec<ByteRange>),
    /// 304, 412 and 416: nothing.
    Nothing(u16),
    /// 304 for the `gzip` representation.
    CodedNotModified,
}

/// Response to a request.
pub(crate) enum Action {
    /// With an open file.
    Send(Rc<Entry>, Content),
    /// With the file at this path, which must be opened first.
    Open(String),
    /// By the application with this index; the head passed to it.
    Application(usize, Vec<u8>),
    /// With the allowed methods.
    Options,
    /// 405.
    NotAllowed,
    /// With a status page.
    Page(u16, &'static str),
}

/// The planned response to a request.
pub(crate) struct Plan {
    pub(crate) noted: Noted,
    pub(crate) head_bytes: usize,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
    pub(crate) is_head: bool,
    pub(crate) minor_version: u8,
    pub(crate) action: Action,
}

/// Parses the head of a request at the start of `bytes`; `None` if it is incomplete. `address`: the client's. `opened`:
/// the file opened by a previous plan of the same head.
pub(crate) fn make(
    server: &Server,
    bytes: &[u8],
    address: &str,
    opened: Option<Rc<Entry>>,
) -> Result<Option<Plan>, Rejection> {
    let mut space = request::header_space();
    let Some(request) = request::parse(bytes, &mut space, server.limits.header_bytes)? else {
        return Ok(None);
    };
    server.update_clock();
    let action = action(server, &request, address, opened);
    Ok(Some(Plan {
        noted: note(bytes, &request),
        head_bytes: request.head_bytes,
        framing: request.framing,
        keep_alive: request.keep_alive,
        expects_continue: request.expects_continue,
        is_head: request.method == Method::Head,
        minor_version: request.minor_version,
        action,
    }))
}

fn action(server: &Server, request: &Request<'_, '_>, address: &str, opened: Option<Rc<Entry>>) -> Action {
    if let Some(entry) = opened {
        return select(server, request, entry);
    }
    if request.path == "*" {
        return Action::Options;
    }
    let mut path = server.scratch.borrow_mut();
    if target::decode(request.path, &mut path).is_err() {
        return Action::Page(400, "the path is invalid");
    }
    for (index, application) in server.applications.iter().enumerate() {
        if let Some(rest) = application.rest_of(&path) {
            return Action::Application(index, application_head(request, rest, address));
        }
    }
    match request.method {
        Method::Get | Method::Head => {}
        Method::Options => return Action::Options,
        Method::Other => return Action::Page(501, "the method is not supported"),
        _ => return Action::NotAllowed,
    }
    if target::is_hidden(&path) {
        return Action::Page(404, "");
    }
    if path.ends_with('/') {
        path.push_str(INDEX);
    }
    match server.cache.find(&path, server.now_ns()) {
        Some(entry) => select(server, request, entry),
        None if is_file_systems_own(&path) => Action::Page(404, ""),
        None => Action::Open(path.clone()),
    }
}

/// The request head as passed to an application.
fn application_head(request: &Request<'_, '_>, path: &str, address: &str) -> Vec<u8> {
    let mut head = Vec::with_capacity(request.head_bytes + 64);
    application::request_head(request, path, address, &mut head);
    head
}

/// Selects the requested content of an open file.
fn select(server: &Server, request: &Request<'_, '_>, entry: Rc<Entry>) -> Action {
    let now = server.wall_s();
    if request.header("range").is_none()
        && let Some(there) = entry.coded_validators()
        && gzip::is_accepted(request)
    {
        let content = match conditional::judge(request, there, now) {
            Verdict::NotModified => Content::CodedNotModified,
            Verdict::Failed => Content::Nothing(412),
            Verdict::Serve => Content::Coded,
        };
        return Action::Send(entry, content);
    }
    let content = match conditional::judge(request, entry.validators(), now) {
        Verdict::NotModified => Content::Nothing(304),
        Verdict::Failed => Content::Nothing(412),
        Verdict::Serve if request.method == Method::Get => match request.header("range") {
            Some(range) if conditional::range_applies(request, entry.validators(), now) => {
                match range::parse(range, entry.attributes.size_bytes) {
                    Ranges::Whole => Content::Whole,
                    Ranges::One(part) => Content::Part(part),
                    Ranges::Many(parts) => Content::Parts(parts),
                    Ranges::NotSatisfiable => Content::Nothing(416),
                }
            }
            _ => Content::Whole,
        },
        Verdict::Serve => Content::Whole,
    };
    Action::Send(entry, content)
}

fn note(bytes: &[u8], request: &Request<'_, '_>) -> Noted {
    let mut noted = Noted {
        method: place(bytes, request.method_text.as_bytes()),
        target: place(bytes, request.target.as_bytes()),
        minor_version: request.minor_version,
        ..Noted::default()
    };
    for (name, value) in request.headers() {
        match name.len() {
            7 if name.eq_ignore_ascii_case("referer") => noted.referer = Some(place(bytes, value)),
            10 if name.eq_ignore_ascii_case("user-agent") => noted.user_agent = Some(place(bytes, value)),
            _ => {}
        }
    }
    noted
}

/// Range of the subslice `part` in `bytes`, which are shorter than 4 GiB.
fn place(bytes: &[u8], part: &[u8]) -> Range<u32> {
    let start = (part.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize) as u32;
    start..start.wrapping_add(part.len() as u32)
}
