//! A web application with dynamic content as in the benchmark SPECweb99.
//!
//! The path of a request selects one of the functions below; `/` lists the paths. [`ads`], [`visitor`], [`record`] and
//! [`pages`] work without channels; [`files`], [`log`] and [`cgi`] communicate with other processes. Deliberately not
//! here: the benchmark's own files, which the measurement creates.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ads;
mod cgi;
mod files;
mod log;
mod pages;
mod record;
mod visitor;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;

use client::access::AccessError;
use sip::exheap::ExVec;
use stdio::report;
use web_application::message::{AnswerHead, Form, Options, SetCookie, pairs};
use web_application::{Answered, Body, Exchange, Gone, Reply, serve};

use crate::ads::{MAX_VISITORS, Tables, VISITORS};
use crate::files::{Files, OpenFile, PIECE_BYTES, below, status_of};
use crate::log::Log;
use crate::record::{MAX_FORM_BYTES, Posted};
use crate::visitor::Visitor;

sip::startup!();

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// State shared by all requests.
struct State {
    files: Files,
    has_names: bool,
    /// Root folder of the files.
    root: Option<String>,
    log: Log,
    tables: RefCell<Tables>,
    options_of_child: String,
    /// Whether this process was started for a single request.
    is_child: bool,
}

/// Serves requests until the web server closes the channel.
pub fn main(startup: Startup) -> i32 {
    let options = match Options::parse(&startup.options, &["root", "log", "child"]) {
        Ok(options) => options,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let is_child = options.value("child").is_some();
    let state = Rc::new(State {
        has_names: startup.namespace.is_some(),
        files: Files::new(startup.namespace),
        root: options.value("root").map(String::from),
        log: Log::new(options.value("log")),
        tables: RefCell::new(Tables::new(if is_child { 1 } else { VISITORS }, 0)),
        options_of_child: format!("{} child=yes", startup.options),
        is_child,
    });
    serve(startup.application, move |exchange| answer(exchange, Rc::clone(&state)))
}

async fn answer(exchange: Exchange, state: Rc<State>) -> Result<Answered, Gone> {
    let path = exchange.head().path.clone();
    let is_post = exchange.head().method == "POST";
    match (path.as_str(), is_post) {
        ("/post", true) => post(exchange, &state).await,
        ("/command/reset", true) => reset(exchange, &state).await,
        ("/post" | "/command/reset", false) => exchange.reply(Reply::wrong_method("POST")).await,
        (_, true) => exchange.reply(Reply::wrong_method("GET, HEAD")).await,
        ("/", _) => exchange.reply(Reply::html(String::from(pages::HELP))).await,
        ("/cgi", _) if !state.is_child => cgi::answer(exchange, &state).await,
        ("/get" | "/cgi", _) => get(exchange, &state).await,
        ("/ad", _) => advertise(exchange, &state).await,
        ("/command/fetch", _) => fetch(exchange, &state).await,
        (path, _) => match path.strip_prefix("/static/") {
            Some(file) => plain(exchange, &state, file).await,
            None => exchange.reply(Reply::not_found()).await,
        },
    }
}

/// Responds with the request and a file, embedded in a page.
async fn get(exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    let file = match query(&exchange) {
        Ok(form) => form.value("file").map(String::from),
        Err(reply) => return exchange.reply(reply).await,
    };
    wrapped(exchange, state, file.as_deref(), None, None).await
}

/// Like `get`, with an advertisement for the visitor.
async fn advertise(exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    let file = match query(&exchange) {
        Ok(form) => form.value("file").map(String::from),
        Err(reply) => return exchange.reply(reply).await,
    };
    let visitor = match Visitor::parse(exchange.head()) {
        Ok(visitor) => visitor,
        Err(error) => return exchange.reply(Reply::error(400, error)).await,
    };
    let choice = state.tables.borrow().choose(visitor.number, visitor.last_ad);
    let Some(choice) = choice else {
        return exchange.reply(Reply::error(400, "There is no such visitor or advertisement.")).await;
    };
    let picture = (!choice.expired).then(|| pages::picture("static", &choice.picture()));
    wrapped(exchange, state, file.as_deref(), picture, visitor.remembers(&choice)).await
}

/// Adds a line to the log, and responds with the requested file.
async fn post(mut exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    if exchange.head().content_type() != "application/x-www-form-urlencoded" {
        let reply = Reply::error(415, "Only a form of type application/x-www-form-urlencoded is taken.");
        return exchange.reply(reply).await;
    }
    let body = match exchange.body(MAX_FORM_BYTES).await {
        Ok(body) => body,
        Err(error) => return exchange.reply(error.reply()).await,
    };
    let (posted, cookie) = match (Posted::parse(&body), visitor::posting(exchange.head())) {
        (Ok(posted), Ok(cookie)) => (posted, cookie),
        (Err(error), _) => return exchange.reply(Reply::error(400, error)).await,
        (_, Err(error)) => return exchange.reply(Reply::error(400, error)).await,
    };
    if let Err(error) = state.log.add(&state.files, &posted, cookie).await {
        return exchange.reply(Reply::error(status_of(error), error)).await;
    }
    let file = state.root.is_some().then(|| posted.file());
    wrapped(exchange, state, file.as_deref(), None, visitor::posted(cookie)).await
}

/// Clears the log and generates new tables.
async fn reset(mut exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    let body = match exchange.body(MAX_FORM_BYTES).await {
        Ok(body) => body,
        Err(error) => return exchange.reply(error.reply()).await,
    };
    let form = match pairs(&body) {
        Ok(form) => form,
        Err(error) => return exchange.reply(Reply::error(400, error)).await,
    };
    let (visitors, today) = match (form.number("visitors", MAX_VISITORS.into()), form.number("day", 1_000_000)) {
        (Ok(visitors), Ok(today)) => (visitors.map_or(VISITORS, |visitors| visitors as u32), today.unwrap_or(0) as u32),
        (Err(error), _) => return exchange.reply(Reply::error(400, format_args!("visitors: {error}"))).await,
        (_, Err(error)) => return exchange.reply(Reply::error(400, format_args!("day: {error}"))).await,
    };
    if let Err(error) = state.log.reset(&state.files).await {
        return exchange.reply(Reply::error(status_of(error), error)).await;
    }
    let tables = Tables::new(visitors, today);
    let text = format!("the log is empty; {} visitors on day {today}\n", tables.visitors());
    state.tables.replace(tables);
    exchange.reply(Reply::text(text).not_kept()).await
}

/// Responds with the log.
async fn fetch(exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    match state.log.path() {
        Some(path) => send_file(exchange, state, path, TEXT).await,
        None => {
            let lines = state.log.lines().await;
            exchange.reply(Reply::text(lines).not_kept()).await
        }
    }
}

/// Responds with a file unchanged.
async fn plain(exchange: Exchange, state: &State, file: &str) -> Result<Answered, Gone> {
    match state.root.as_deref().and_then(|root| below(root, file)) {
        Some(path) => send_file(exchange, state, &path, TEXT).await,
        None => exchange.reply(Reply::not_found()).await,
    }
}

fn query(exchange: &Exchange) -> Result<Form, Reply> {
    pairs(exchange.head().query.as_bytes()).map_err(|error| Reply::error(400, error))
}

/// Responds with a page that embeds a file, if one is requested.
async fn wrapped(
    exchange: Exchange,
    state: &State,
    file: Option<&str>,
    picture: Option<String>,
    cookie: Option<SetCookie>,
) -> Result<Answered, Gone> {
    let mut beginning = pages::beginning(exchange.head());
    let with_cookie = |reply: Reply| match &cookie {
        Some(cookie) => reply.with_cookie(cookie).not_kept(),
        None => reply,
    };
    let Some(file) = file else {
        beginning += picture.as_deref().unwrap_or("");
        beginning += pages::WITHOUT_FILE;
        return exchange.reply(with_cookie(Reply::html(beginning))).await;
    };
    let Some(path) = state.root.as_deref().and_then(|root| below(root, file)) else {
        return exchange.reply(Reply::not_found()).await;
    };
    let (opened, first, count) = match read_first(state, &path).await {
        Ok(read) => read,
        Err(error) => return exchange.reply(Reply::error(status_of(error), error)).await,
    };
    let content = &first[..count];
    if count as u64 >= opened.bytes() {
        opened.keep();
        let place = picture.as_ref().and_then(|_| pages::place_of_ad(content)).unwrap_or(0..0);
        let picture = picture.as_deref().unwrap_or("");
        let (before, after) = (&content[..place.start], &content[place.end..]);
        let parts = [beginning.as_bytes(), pages::BEFORE_FILE.as_bytes(), before, picture.as_bytes(), after];
        let gathered = gather(&parts, pages::AFTER_FILE.as_bytes());
        state.files.give_block(first);
        return match gathered {
            Ok(page) => {
                let bytes = page.len();
                exchange.reply(with_cookie(Reply::of(HTML, Body::Block(page, bytes)))).await
            }
            Err(error) => exchange.reply(Reply::error(status_of(error), error)).await,
        };
    }
    // A long file is not searched for its advertisement slot; the advertisement goes above the file instead.
    beginning += picture.as_deref().unwrap_or("");
    beginning += pages::BEFORE_FILE;
    let mut head = AnswerHead::of_type(HTML);
    if let Some(cookie) = &cookie {
        head = head.with_cookie(cookie).not_kept();
    }
    let answer = exchange.begin(200, &head).await?.write(beginning.as_bytes()).await?;
    let answer = send_rest(answer, opened, first, count).await?;
    answer.write(pages::AFTER_FILE.as_bytes()).await?.end().await
}

/// Responds with a file unchanged.
async fn send_file(exchange: Exchange, state: &State, path: &str, kind: &'static str) -> Result<Answered, Gone> {
    let (opened, first, count) = match read_first(state, path).await {
        Ok(read) => read,
        Err(error) => return exchange.reply(Reply::error(status_of(error), error)).await,
    };
    if count as u64 >= opened.bytes() {
        // Cached for other requests, except for the log, which changes with each line.
        if state.log.path() != Some(path) {
            opened.keep();
        }
        return exchange.reply(Reply::of(kind, Body::Block(first, count))).await;
    }
    let answer = exchange.begin(200, &AnswerHead::of_type(kind)).await?;
    send_rest(answer, opened, first, count).await?.end().await
}

/// Opens a file and reads all of it, or its first piece.
async fn read_first<'a>(state: &'a State, path: &str) -> Result<(OpenFile<'a>, ExVec<u8>, usize), AccessError> {
    let room = |opened: &OpenFile<'_>| usize::try_from(opened.bytes()).unwrap_or(PIECE_BYTES).clamp(1, PIECE_BYTES);
    if state.log.path() != Some(path) {
        let opened = state.files.open(path).await?;
        let most = room(&opened);
        let (opened, first, count) = opened.read(0, most).await?;
        // A cached open file may have been truncated meanwhile.
        if count as u64 == opened.bytes().min(most as u64) {
            return Ok((opened, first, count));
        }
    }
    let opened = state.files.open_now(path).await?;
    let most = room(&opened);
    opened.read(0, most).await
}

/// Sends the first piece of a file and then the rest, piece by piece.
async fn send_rest(
    answer: web_application::Answer,
    opened: OpenFile<'_>,
    first: ExVec<u8>,
    count: usize,
) -> Result<web_application::Answer, Gone> {
    let (mut answer, mut opened, mut piece, mut count) = (answer, opened, first, count);
    let mut sent = 0;
    loop {
        sent += count as u64;
        answer = answer.write_block(piece, count).await?;
        if sent >= opened.bytes() {
            opened.keep();
            return Ok(answer);
        }
        match opened.read(sent, PIECE_BYTES).await {
            Ok((next, data, read)) if read > 0 => (opened, piece, count) = (next, data, read),
            // It was truncated, or cannot be read: the client must not mistake this for its end.
            Ok(_) | Err(_) => return Err(answer.cut_off()),
        }
    }
}

fn gather(parts: &[&[u8]], last: &[u8]) -> Result<ExVec<u8>, AccessError> {
    let bytes = parts.iter().map(|part| part.len()).sum::<usize>() + last.len();
    let mut page = ExVec::new(bytes)?;
    let mut at = 0;
    for part in parts.iter().copied().chain([last]) {
        page[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    Ok(page)
}
