//! Serving one connection: request after request, until one side ends it.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::tcp_connection;
use http::body::BodyReader;
use http::listing;
use http::request::{EndFinder, Framing, Rejection};
use sip::Deadline;

use crate::Server;
use crate::address::AddressText;
use crate::answers::{self, Cut, Manner, Sent};
use crate::cache::Entry;
use crate::input::{Input, More};
use crate::plan::{self, Action, Noted, Plan};
use crate::store::StoreError;
use crate::wire::{Gone, Wire};

/// Content that nobody reads is passed over up to here, so that the connection can go on.
const MOST_IGNORED_BYTES: u64 = 64 << 10;
/// How long the rest of what a client sends is passed over after the last answer, so that it reads that answer before
/// it hears that nobody listens (RFC 9112, section 9.6).
const LINGER_MS: u64 = 1000;
const MOST_LINGER_BYTES: usize = 1 << 20;

/// What came of waiting for a request.
enum Head {
    /// Its head is whole.
    Whole(Plan),
    /// It makes no sense.
    Rejected(Rejection),
    /// None came, or the client is gone.
    None,
}

/// Serves a client until it or the server has enough.
pub(crate) async fn serve(
    server: Rc<Server>,
    endpoint: tcp_connection::Imp<tcp_connection::states::Ready>,
    address: AddressText,
) {
    let mut wire = Wire::new(endpoint, server.limits.write_time_ms);
    let mut input = Input::default();
    let mut is_first = true;
    loop {
        let (noted, manner, outcome) = match next_head(&server, &mut wire, &mut input, is_first).await {
            Ok(Head::Whole(plan)) => {
                let manner = manner(&server, &plan);
                let noted = plan.noted.clone();
                let outcome = answer(&server, &mut wire, &mut input, manner, plan).await;
                (Some(noted), manner, outcome)
            }
            Ok(Head::Rejected(rejection)) => {
                let manner = Manner { is_head: false, keep_alive: false, minor_version: 1 };
                let sent = answers::send_page(&server, &mut wire, manner, rejection.status, rejection.reason, "").await;
                (None, manner, sent.map(|sent| (sent, 0)))
            }
            Ok(Head::None) | Err(Gone) => break,
        };
        is_first = false;
        match outcome {
            Ok((sent, head_bytes)) => {
                log(&server, &address, &input, noted.as_ref(), sent);
                input.consume(head_bytes);
                if !sent.goes_on || !manner.keep_alive {
                    linger(&mut wire, &mut input).await;
                    break;
                }
            }
            Err(Cut { status }) => {
                log(&server, &address, &input, noted.as_ref(), Sent { status, content_bytes: 0, goes_on: false });
                wire.abort().await;
                break;
            }
        }
    }
}

/// How an answer is given. Where content is to be read that nobody wants, or that the client waits to be asked for,
/// the connection ends with the answer.
fn manner(server: &Server, plan: &Plan) -> Manner {
    let is_short = match plan.framing {
        Framing::None => true,
        Framing::Length(length) => length <= MOST_IGNORED_BYTES && !plan.expects_continue,
        Framing::Chunked => !plan.expects_continue,
    };
    Manner {
        is_head: plan.is_head,
        keep_alive: plan.keep_alive && is_short && !server.is_crowded(),
        minor_version: plan.minor_version,
    }
}

/// Waits for the head of the next request.
async fn next_head(server: &Server, wire: &mut Wire, input: &mut Input, is_first: bool) -> Result<Head, Gone> {
    let limits = &server.limits;
    if input.bytes().is_empty() {
        let idle_ms = match (is_first, server.is_crowded()) {
            (true, _) => limits.header_time_ms,
            (false, true) => limits.keep_alive_time_ms.min(1000),
            (false, false) => limits.keep_alive_time_ms,
        };
        if input.read(wire, idle_ms).await? != More::Data {
            return Ok(Head::None);
        }
    }
    match plan::make(server, input.bytes(), None) {
        Ok(Some(plan)) => return Ok(Head::Whole(plan)),
        Ok(None) => {}
        Err(rejection) => return Ok(Head::Rejected(rejection)),
    }
    // The head comes in pieces: it is read when its end is there, and all of it has to come in time.
    let deadline = Deadline::after_ms(limits.header_time_ms.into());
    let mut finder = EndFinder::default();
    loop {
        if finder.found(input.bytes()) || input.bytes().len() >= limits.header_bytes {
            match plan::make(server, input.bytes(), None) {
                Ok(Some(plan)) => return Ok(Head::Whole(plan)),
                Err(rejection) => return Ok(Head::Rejected(rejection)),
                // Empty lines in front of the request look like its end.
                Ok(None) => {}
            }
        }
        let left_ms = deadline.as_ns().saturating_sub(sip::time::monotonic()).div_ceil(1_000_000);
        let more = match u32::try_from(left_ms) {
            Ok(left_ms) if left_ms > 0 => input.read(wire, left_ms).await?,
            _ => More::Nothing,
        };
        match more {
            More::Data => {}
            More::Nothing => {
                let reason = "the head of the request did not come in time";
                return Ok(Head::Rejected(Rejection { status: 408, reason }));
            }
            More::End => return Ok(Head::None),
        }
    }
}

/// Answers a request. Gives how many bytes of the input are its head; what content follows it was passed over.
async fn answer(
    server: &Rc<Server>,
    wire: &mut Wire,
    input: &mut Input,
    manner: Manner,
    plan: Plan,
) -> Result<(Sent, usize), Cut> {
    let sent = match plan.action {
        Action::Send(entry, content) => answers::send_file(server, wire, manner, &entry, content).await,
        // What happens seldom has its state apart, so that each connection is small.
        action => Box::pin(answer_slowly(server, wire, input, manner, action)).await,
    }?;
    if plan.framing == Framing::None || !sent.goes_on {
        return Ok((sent, plan.head_bytes));
    }
    let passed_over = Box::pin(pass_over(server, wire, input, plan.head_bytes, plan.framing)).await;
    Ok((Sent { goes_on: passed_over, ..sent }, 0))
}

async fn answer_slowly(
    server: &Rc<Server>,
    wire: &mut Wire,
    input: &Input,
    manner: Manner,
    action: Action,
) -> Result<Sent, Cut> {
    match action {
        Action::Send(entry, content) => answers::send_file(server, wire, manner, &entry, content).await,
        Action::Open(path) => open_and_send(server, wire, input, manner, &path).await,
        Action::Options => {
            let fields = b"allow: GET, HEAD, OPTIONS\r\ncontent-length: 0\r\n";
            answers::send_head(server, wire, manner, 200, fields).await
        }
        Action::NotAllowed => answers::send_page(server, wire, manner, 405, "", "allow: GET, HEAD, OPTIONS\r\n").await,
        Action::Page(status, explanation) => answers::send_page(server, wire, manner, status, explanation, "").await,
    }
}

/// Opens a file, and judges the request again now that it is known.
async fn open_and_send(
    server: &Rc<Server>,
    wire: &mut Wire,
    input: &Input,
    manner: Manner,
    path: &str,
) -> Result<Sent, Cut> {
    let opened = match server.store.open_file(path).await {
        Ok(opened) => opened,
        Err(StoreError::IsFolder) => {
            let mut location = String::from("location: ");
            http::target::encode(path, &mut location);
            location.push_str("/\r\n");
            return answers::send_page(server, wire, manner, 301, "", &location).await;
        }
        Err(StoreError::NotFound) => return send_listing(server, wire, manner, path).await,
        Err(error) => return answers::send_trouble(server, wire, manner, error).await,
    };
    let entry = Rc::new(Entry::new(path, opened, server.now_ns(), server.wall_s()));
    server.cache.insert(&entry);
    match plan::make(server, input.bytes(), Some(entry)) {
        Ok(Some(Plan { action: Action::Send(entry, content), .. })) => {
            answers::send_file(server, wire, manner, &entry, content).await
        }
        // The same head was read before.
        _ => Err(Cut { status: 500 }),
    }
}

/// Shows what is in a folder that has no page of its own.
async fn send_listing(server: &Server, wire: &mut Wire, manner: Manner, path: &str) -> Result<Sent, Cut> {
    let Some(folder) = path.strip_suffix(plan::INDEX) else {
        return answers::send_trouble(server, wire, manner, StoreError::NotFound).await;
    };
    match server.store.list(folder.trim_end_matches('/')).await {
        Ok((names, left_out)) => {
            let page = listing::page(folder, names, left_out);
            answers::send_text(server, wire, manner, 200, &page, "").await
        }
        Err(error) => answers::send_trouble(server, wire, manner, error).await,
    }
}

/// Passes over the head of a request and the content that follows it. False if it is too long or makes no sense.
async fn pass_over(server: &Server, wire: &mut Wire, input: &mut Input, head_bytes: usize, framing: Framing) -> bool {
    input.consume(head_bytes);
    let Ok(mut reader) = BodyReader::new(framing, MOST_IGNORED_BYTES) else { return false };
    let deadline = Deadline::after_ms(server.limits.header_time_ms.into());
    while !reader.has_ended() {
        if input.bytes().is_empty()
            && (deadline.has_passed() || input.read(wire, server.limits.header_time_ms).await != Ok(More::Data))
        {
            return false;
        }
        match reader.next(input.bytes()) {
            Ok(piece) => input.consume(piece.consumed),
            Err(_) => return false,
        }
    }
    true
}

/// Ends the connection so that the client gets the last answer.
async fn linger(wire: &mut Wire, input: &mut Input) {
    if wire.finish().await.is_err() {
        return;
    }
    let deadline = Deadline::after_ms(LINGER_MS);
    let mut bytes = 0;
    loop {
        input.consume(usize::MAX / 2);
        let left_ms = deadline.as_ns().saturating_sub(sip::time::monotonic()) / 1_000_000;
        if left_ms == 0 || bytes > MOST_LINGER_BYTES || input.read(wire, left_ms as u32).await != Ok(More::Data) {
            return;
        }
        bytes += input.bytes().len();
    }
}

fn log(server: &Server, address: &AddressText, input: &Input, noted: Option<&Noted>, sent: Sent) {
    server.log.note(server, address, input.bytes(), noted, sent);
}
