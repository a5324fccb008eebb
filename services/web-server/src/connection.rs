//! Serves one connection: requests in sequence until either side ends it.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::tcp_connection;
use http::body::{BodyError, BodyReader};
use http::listing;
use http::request::{self, EndFinder, Framing, Rejection};
use sip::Deadline;

use crate::Server;
use crate::address::AddressText;
use crate::answers::{self, Cut, Manner, Sent, Unsent};
use crate::cache::Entry;
use crate::exchange::{self, Content};
use crate::input::{Input, More};
use crate::plan::{self, Action, Content as Asked, Noted, Plan};
use crate::store::StoreError;
use crate::wire::{Gone, Wire};

/// Maximum unread content that is discarded so that the connection can persist.
pub(crate) const MAX_IGNORED_BYTES: u64 = 64 << 10;
/// Total size of all incomplete heads, in bytes; the client that exceeds it is disconnected.
const MAX_HELD_BYTES: usize = 16 << 20;
/// Maximum number of times a file that keeps changing is opened for one request.
const MAX_OPENINGS: u32 = 3;
/// Time for which input is discarded after the last response, so that the client reads it before a reset (RFC 9112,
/// section 9.6), in milliseconds.
const LINGER_MS: u64 = 1000;
const MAX_LINGER_BYTES: usize = 1 << 20;
/// Reported for malformed content.
pub(crate) const MALFORMED_CONTENT: &str = "the chunked content is malformed";

/// Result of waiting for a request.
enum Head {
    /// A complete head.
    Whole(Plan),
    /// An invalid head.
    Rejected(Rejection),
    /// No request came, or the client is gone.
    None,
}

/// Location of an answered request's head.
enum HeadPlace {
    /// This many bytes at the start of the input.
    Input(usize),
    /// A copy, because the input was consumed.
    Kept(Vec<u8>),
}

/// Serves a client until either side ends the connection.
pub(crate) async fn serve(
    server: Rc<Server>,
    endpoint: tcp_connection::Imp<tcp_connection::states::Ready>,
    address: AddressText,
) {
    let mut wire = Wire::new(endpoint, Rc::clone(&server));
    let mut input = Input::default();
    let mut last_sent: Option<Sent> = None;
    loop {
        let head = next_head(&server, &mut wire, &mut input, &address, last_sent.is_none()).await;
        let _pending = server.ending.enter();
        let (noted, manner, outcome) = match head {
            Ok(Head::Whole(plan)) => {
                let manner = manner(&server, &plan);
                let noted = plan.noted.clone();
                let is_last = plan.framing == Framing::None && input.bytes().len() == plan.head_bytes;
                wire.expect_request(is_last.then(|| server.idle_time_ms()));
                let outcome = answer(&server, &mut wire, &mut input, manner, plan).await;
                (Some(noted), manner, outcome)
            }
            Ok(Head::Rejected(rejection)) => {
                let manner = Manner { is_head: false, keep_alive: false, minor_version: 1 };
                let sent = answers::send_page(&server, &mut wire, manner, rejection.status, rejection.reason, "").await;
                (None, manner, sent.map(|sent| (sent, HeadPlace::Input(0))))
            }
            Ok(Head::None) | Err(Gone) => {
                if let Some(sent) = last_sent.filter(|_| wire.was_cut()) {
                    server.counters.note_cut_later(sent.status, sent.content_bytes);
                }
                break;
            }
        };
        match outcome {
            Ok((sent, place)) => {
                last_sent = Some(sent);
                let head = match &place {
                    HeadPlace::Input(_) => input.bytes(),
                    HeadPlace::Kept(head) => head,
                };
                server.counters.note_answer(sent.status, sent.content_bytes);
                server.log.note(&server, &address, head, noted.as_ref(), sent);
                if let HeadPlace::Input(head_bytes) = place {
                    server.blocks.give_received(input.consume(head_bytes));
                }
                if !sent.goes_on || !manner.keep_alive || server.ending.has_begun() {
                    linger(&mut wire, &mut input).await;
                    break;
                }
            }
            Err(Cut { status }) => {
                server.counters.note_cut();
                let sent = Sent { status, content_bytes: 0, goes_on: false };
                server.log.note(&server, &address, cut_head(&input, noted.as_ref()), noted.as_ref(), sent);
                wire.abort().await;
                break;
            }
        }
    }
}

/// Returns the options for the response. The connection closes after it if unwanted content would have to be read,
/// the client waits for 100 Continue, or the server is shutting down.
fn manner(server: &Server, plan: &Plan) -> Manner {
    let is_short = match plan.framing {
        Framing::None => true,
        Framing::Length(length) => length <= MAX_IGNORED_BYTES && !plan.expects_continue,
        Framing::Chunked => !plan.expects_continue,
    };
    let is_read = matches!(plan.action, Action::Application(..));
    Manner {
        is_head: plan.is_head,
        keep_alive: plan.keep_alive && (is_short || is_read) && !server.is_crowded() && !server.ending.has_begun(),
        minor_version: plan.minor_version,
    }
}

/// Waits for the head of the next request.
async fn next_head(
    server: &Server,
    wire: &mut Wire,
    input: &mut Input,
    address: &AddressText,
    is_first: bool,
) -> Result<Head, Gone> {
    let limits = &server.limits;
    if input.bytes().is_empty() {
        let idle_ms = if is_first { limits.header_time_ms } else { server.idle_time_ms() };
        match input.read(wire, idle_ms).await? {
            More::Data => {}
            // Not an error: close without a reset.
            More::Nothing => {
                wire.finish().await?;
                return Ok(Head::None);
            }
            More::End => return Ok(Head::None),
        }
    }
    match plan::make(server, input.bytes(), address.as_str(), None) {
        Ok(Some(plan)) => return Ok(Head::Whole(plan)),
        Ok(None) => {}
        Err(rejection) => return Ok(Head::Rejected(rejection)),
    }
    // The head arrives in pieces: it is parsed once complete, within one deadline.
    let deadline = Deadline::after_ms(limits.header_time_ms.into());
    let mut finder = EndFinder::default();
    let mut held = Held { server, bytes: 0 };
    loop {
        if finder.found(input.bytes()) || input.bytes().len() >= limits.header_bytes {
            match plan::make(server, input.bytes(), address.as_str(), None) {
                Ok(Some(plan)) => return Ok(Head::Whole(plan)),
                Err(rejection) => return Ok(Head::Rejected(rejection)),
                // Leading empty lines look like the end of a head.
                Ok(None) => {}
            }
        }
        let left_ms = deadline.as_ns().saturating_sub(sip::time::monotonic()).div_ceil(1_000_000);
        let more = match u32::try_from(left_ms) {
            Ok(left_ms) if left_ms > 0 => input.read(wire, left_ms).await?,
            _ => More::Nothing,
        };
        match more {
            More::Data if held.grow_to(input.bytes().len()) => {}
            More::Data => {
                let reason = "too many concurrent requests";
                return Ok(Head::Rejected(Rejection { status: 503, reason }));
            }
            More::Nothing => {
                let reason = "timeout while reading the request head";
                return Ok(Head::Rejected(Rejection { status: 408, reason }));
            }
            // A malformed head is refused even if incomplete; one that is only truncated is dropped.
            More::End => {
                return Ok(match plan::make(server, input.bytes(), address.as_str(), None) {
                    Ok(Some(plan)) => Head::Whole(plan),
                    Ok(None) => Head::None,
                    Err(rejection) => Head::Rejected(rejection),
                });
            }
        }
    }
}

/// Memory held by an incomplete head.
struct Held<'s> {
    server: &'s Server,
    bytes: usize,
}

impl Held<'_> {
    /// Records its size; false if the total exceeds the limit.
    fn grow_to(&mut self, bytes: usize) -> bool {
        let all = self.server.held_bytes.get() - self.bytes + bytes;
        self.server.held_bytes.set(all);
        self.bytes = bytes;
        all <= MAX_HELD_BYTES
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.server.held_bytes.set(self.server.held_bytes.get() - self.bytes);
    }
}

/// Answers a request, and reads or discards its content.
async fn answer(
    server: &Rc<Server>,
    wire: &mut Wire,
    input: &mut Input,
    manner: Manner,
    plan: Plan,
) -> Result<(Sent, HeadPlace), Cut> {
    match plan.action {
        Action::Send(entry, content) if plan.framing == Framing::None => {
            let sent = send_known(server, wire, input.bytes(), manner, &entry, content).await?;
            Ok((sent, HeadPlace::Input(plan.head_bytes)))
        }
        // Boxed so that the common path keeps a connection's future small.
        Action::Application(..) => Box::pin(ask_application(server, wire, input, manner, plan)).await,
        _ => Box::pin(answer_slowly(server, wire, input, manner, plan)).await,
    }
}

/// Forwards a request to an application.
async fn ask_application(
    server: &Rc<Server>,
    wire: &mut Wire,
    input: &mut Input,
    manner: Manner,
    plan: Plan,
) -> Result<(Sent, HeadPlace), Cut> {
    let Action::Application(index, application_head) = plan.action else { return Err(Cut { status: 500 }) };
    let application = server.applications.get(index).ok_or(Cut { status: 500 })?;
    let Ok(reader) = BodyReader::new(plan.framing, server.limits.body_bytes) else {
        let manner = Manner { keep_alive: false, ..manner };
        let sent = answers::send_page(server, wire, manner, 413, "", "").await?;
        return Ok((sent, HeadPlace::Input(plan.head_bytes)));
    };
    let head = Vec::from(input.bytes().get(..plan.head_bytes).unwrap_or(&[]));
    server.blocks.give_received(input.consume(plan.head_bytes));
    // The application may not read the content, so check what has arrived.
    if reader.clone().is_malformed(input.bytes()) {
        return Ok((refuse_content(server, wire, manner).await?, HeadPlace::Kept(head)));
    }
    let mut content = Content::new(input, reader, plan.expects_continue);
    let sent = exchange::answer(server, wire, manner, application, &application_head, &mut content).await?;
    let reader = content.reader;
    let goes_on = sent.goes_on && discard(server, wire, input, reader).await == Discarded::Whole;
    Ok((Sent { goes_on, ..sent }, HeadPlace::Kept(head)))
}

async fn answer_slowly(
    server: &Rc<Server>,
    wire: &mut Wire,
    input: &mut Input,
    manner: Manner,
    plan: Plan,
) -> Result<(Sent, HeadPlace), Cut> {
    if plan.framing == Framing::None {
        let sent = answer_without_content(server, wire, input.bytes(), manner, plan.action).await?;
        return Ok((sent, HeadPlace::Input(plan.head_bytes)));
    }
    let head = Vec::from(input.bytes().get(..plan.head_bytes).unwrap_or(&[]));
    server.blocks.give_received(input.consume(plan.head_bytes));
    let reader = BodyReader::new(plan.framing, MAX_IGNORED_BYTES);
    // Read chunked content first, so that malformed chunks are refused.
    let (reader, passed) = match reader {
        Ok(reader) if plan.framing == Framing::Chunked && !plan.expects_continue => {
            (None, Some(discard(server, wire, input, reader).await))
        }
        reader => (reader.ok(), None),
    };
    let sent = match passed {
        Some(Discarded::Malformed) => refuse_content(server, wire, manner).await?,
        Some(Discarded::Whole) | None => answer_without_content(server, wire, &head, manner, plan.action).await?,
        Some(Discarded::Unfinished) => {
            let manner = Manner { keep_alive: false, ..manner };
            answer_without_content(server, wire, &head, manner, plan.action).await?
        }
    };
    let goes_on = sent.goes_on
        && match reader {
            Some(reader) => discard(server, wire, input, reader).await == Discarded::Whole,
            None => passed == Some(Discarded::Whole),
        };
    Ok((Sent { goes_on, ..sent }, HeadPlace::Kept(head)))
}

/// Refuses malformed content and closes, since the start of the next request is unknown.
async fn refuse_content(server: &Server, wire: &mut Wire, manner: Manner) -> Result<Sent, Cut> {
    let manner = Manner { keep_alive: false, ..manner };
    answers::send_page(server, wire, manner, 400, MALFORMED_CONTENT, "").await
}

async fn answer_without_content(
    server: &Rc<Server>,
    wire: &mut Wire,
    head: &[u8],
    manner: Manner,
    action: Action,
) -> Result<Sent, Cut> {
    match action {
        Action::Send(entry, content) => send_known(server, wire, head, manner, &entry, content).await,
        Action::Open(path) => open_and_send(server, wire, head, manner, &path).await,
        Action::Application(..) => Err(Cut { status: 500 }),
        Action::Options => {
            let fields = b"allow: GET, HEAD, OPTIONS\r\ncontent-length: 0\r\n";
            answers::send_head(server, wire, manner, 200, fields).await
        }
        Action::NotAllowed => answers::send_page(server, wire, manner, 405, "", "allow: GET, HEAD, OPTIONS\r\n").await,
        Action::Page(status, explanation) => answers::send_page(server, wire, manner, status, explanation, "").await,
    }
}

/// Sends the requested part of an open file; reopens it if it has changed.
async fn send_known(
    server: &Rc<Server>,
    wire: &mut Wire,
    head: &[u8],
    manner: Manner,
    entry: &Rc<Entry>,
    content: Asked,
) -> Result<Sent, Cut> {
    match answers::send_file(server, wire, manner, entry, content).await {
        Ok(sent) => Ok(sent),
        Err(Unsent::Cut(cut)) => Err(cut),
        Err(Unsent::Changed) => Box::pin(open_and_send(server, wire, head, manner, &entry.path)).await,
    }
}

/// Opens a file and plans the request again with it; repeats if it changes meanwhile.
async fn open_and_send(
    server: &Rc<Server>,
    wire: &mut Wire,
    head: &[u8],
    manner: Manner,
    path: &str,
) -> Result<Sent, Cut> {
    for _ in 0..MAX_OPENINGS {
        let opened = match server.store.open_file(path).await {
            Ok(opened) => opened,
            Err(StoreError::IsFolder) => return send_redirect(server, wire, head, manner, path).await,
            Err(StoreError::NotFound) => return send_listing(server, wire, manner, path).await,
            Err(error) => return answers::send_error(server, wire, manner, error).await,
        };
        let entry = Rc::new(Entry::new(path, opened, server.update_clock(), server.wall_s()));
        if server.coded.is_no_shorter(&entry.attributes) {
            entry.note_no_shorter();
        }
        server.cache.insert(&entry);
        // The same head was parsed before.
        let plan = plan::make(server, head, "", Some(entry)).ok().flatten();
        let Some(Plan { action: Action::Send(entry, content), .. }) = plan else { return Err(Cut { status: 500 }) };
        match answers::send_file(server, wire, manner, &entry, content).await {
            Ok(sent) => return Ok(sent),
            Err(Unsent::Cut(cut)) => return Err(cut),
            Err(Unsent::Changed) => {}
        }
    }
    let explanation = "the file is being written; try again soon";
    answers::send_page(server, wire, manner, 503, explanation, "").await
}

/// Redirects a folder's path without a trailing `/` to the one with it, keeping the query.
async fn send_redirect(server: &Server, wire: &mut Wire, head: &[u8], manner: Manner, path: &str) -> Result<Sent, Cut> {
    let mut location = String::from("location: ");
    http::target::encode(path, &mut location);
    location.push('/');
    // The same head was parsed before.
    let mut space = request::header_space();
    let request = request::parse(head, &mut space, server.limits.header_bytes).ok().flatten();
    if let Some(query) = request.and_then(|request| request.query) {
        location.push('?');
        location.push_str(query);
    }
    location.push_str("\r\n");
    answers::send_page(server, wire, manner, 301, "", &location).await
}

/// Sends a listing of a folder without an index page.
async fn send_listing(server: &Server, wire: &mut Wire, manner: Manner, path: &str) -> Result<Sent, Cut> {
    let Some(folder) = path.strip_suffix(plan::INDEX) else {
        return answers::send_error(server, wire, manner, StoreError::NotFound).await;
    };
    match server.store.list(folder.trim_end_matches('/')).await {
        Ok((names, left_out)) => {
            let page = listing::page(folder, names, left_out);
            answers::send_text(server, wire, manner, 200, &page, "").await
        }
        Err(error) => answers::send_error(server, wire, manner, error).await,
    }
}

/// Result of discarding a request's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discarded {
    /// All of it; the next request follows.
    Whole,
    /// Too long, or timed out.
    Unfinished,
    /// Malformed framing.
    Malformed,
}

/// Discards the rest of a request's content.
async fn discard(server: &Server, wire: &mut Wire, input: &mut Input, mut reader: BodyReader) -> Discarded {
    let mut passed = 0;
    let deadline = Deadline::coarse_after_ms(server.limits.header_time_ms.into());
    while !reader.has_ended() {
        if input.bytes().is_empty()
            && (deadline.has_passed() || input.read(wire, server.limits.header_time_ms).await != Ok(More::Data))
        {
            return Discarded::Unfinished;
        }
        match reader.next(input.bytes()) {
            Ok(piece) => {
                server.blocks.give_received(input.consume(piece.consumed));
                passed += piece.consumed as u64;
            }
            Err(BodyError::TooLarge) => return Discarded::Unfinished,
            Err(BodyError::Malformed) => return Discarded::Malformed,
        }
        if passed > MAX_IGNORED_BYTES && !reader.has_ended() {
            return Discarded::Unfinished;
        }
    }
    Discarded::Whole
}

/// Lingers so that the client receives the last response before the close.
async fn linger(wire: &mut Wire, input: &mut Input) {
    if wire.finish().await.is_err() {
        return;
    }
    let deadline = Deadline::after_ms(LINGER_MS);
    let mut bytes = 0;
    loop {
        drop(input.consume(usize::MAX / 2));
        let left_ms = deadline.as_ns().saturating_sub(sip::time::monotonic()) / 1_000_000;
        if left_ms == 0 || bytes > MAX_LINGER_BYTES || input.read(wire, left_ms as u32).await != Ok(More::Data) {
            return;
        }
        bytes += input.bytes().len();
    }
}

/// The head of a request whose response was cut; empty if content was read over it.
fn cut_head<'i>(input: &'i Input, noted: Option<&Noted>) -> &'i [u8] {
    let bytes = input.bytes();
    let is_there = noted.is_some_and(|noted| bytes.get(..noted.method.end as usize).is_some());
    if is_there { bytes } else { &[] }
}
