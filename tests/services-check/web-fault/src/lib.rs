//! A web application that fails in every way, selected by path, for tests of a web server.
//!
//! `/` lists the paths. [`slow`] has well-formed responses, [`nonsense`] malformed ones, and [`ends`] crashes and
//! hangs. Deliberately not here: checks of the web server's reaction.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ends;
mod nonsense;
mod slow;

use alloc::string::String;

use stdio::report;
use web_application::message::{Form, Options, pairs};
use web_application::{Answered, Exchange, Gone, Reply, serve};

sip::startup!();

/// Response to `/`.
const PATHS: &str = "\
/crash              panics
/exit?status=N      exits
/overflow           calls itself without end
/overeat            allocates memory without end
/overeat-blocks     allocates exchange blocks without end
/hang               works without end; nobody else is answered
/wait               never answers; others are
/drop               closes the channel without an answer
/cut                begins an answer of unknown length and closes the channel
/slow?ms=N          answers late
/drip?pieces=N&ms=M answers in pieces, one every M milliseconds
/endless            answers without end
/size?bytes=N       answers with so many bytes
/echo               answers with the body of the request, piece by piece
/unread             answers without reading the body
/headers?count=N&bytes=M   answers with many or long headers
/bad-head?kind=K    answers with a head that makes no sense: colon, nul, cr, blank, text, lines, servers
/status?code=N      answers with a status that may be none
/long-count         answers with more bytes than it gives
/no-content         answers 204 with a body
";

/// Fails as requested until the web server closes the channel.
pub fn main(startup: Startup) -> i32 {
    match Options::parse(&startup.options, &["ready"]) {
        Ok(options) if options.value("ready").is_some() => {
            // The channel stays open, so that this looks like an application that is slow to start.
            sip::time::sleep_until(sip::Deadline::NEVER);
            drop(startup.application);
            0
        }
        Ok(_) => serve(startup.application, fail),
        Err(error) => {
            report::error(format_args!("{error}"));
            1
        }
    }
}

async fn fail(exchange: Exchange) -> Result<Answered, Gone> {
    let path = exchange.head().path.clone();
    let form = pairs(exchange.head().query.as_bytes()).unwrap_or_default();
    match path.as_str() {
        "/" => exchange.reply(Reply::text(String::from(PATHS))).await,
        "/crash" => panic!("a request asked for it"),
        "/exit" => sip::process::exit(number(&form, "status", 0) as i32),
        "/overflow" => exchange.reply(Reply::text(ends::overflow())).await,
        "/overeat" => exchange.reply(Reply::text(ends::overeat())).await,
        "/overeat-blocks" => exchange.reply(Reply::text(ends::overeat_blocks())).await,
        "/hang" => ends::hang(),
        "/wait" => ends::wait(exchange).await,
        "/drop" => exchange.with_channel(async |_, channel| drop(channel)).await,
        "/cut" => slow::cut(exchange, number(&form, "bytes", 10)).await,
        "/slow" => slow::late(exchange, number(&form, "ms", 1000)).await,
        "/drip" => slow::drip(exchange, number(&form, "pieces", 10), number(&form, "ms", 100)).await,
        "/endless" => slow::endless(exchange).await,
        "/size" => slow::size(exchange, number(&form, "bytes", 0)).await,
        "/echo" => slow::echo(exchange).await,
        "/unread" => exchange.reply(Reply::text(String::from("not read\n"))).await,
        "/headers" => nonsense::headers(exchange, number(&form, "count", 1), number(&form, "bytes", 10)).await,
        "/bad-head" => nonsense::bad_head(exchange, form.value("kind").unwrap_or("")).await,
        "/status" => nonsense::status(exchange, number(&form, "code", 0)).await,
        "/long-count" => nonsense::long_count(exchange).await,
        "/no-content" => exchange.reply(Reply::text(String::from("too much\n")).with_status(204)).await,
        _ => exchange.reply(Reply::not_found()).await,
    }
}

/// Returns a number from the query; `otherwise` if it is missing or invalid.
fn number(form: &Form, name: &str, otherwise: u64) -> u64 {
    form.number(name, u64::from(u32::MAX)).ok().flatten().unwrap_or(otherwise)
}
