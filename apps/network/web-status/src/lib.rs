//! A live status page: machine, processes, services, and the channels between processes with their contracts.
//!
//! `/` is a page whose script renders `/status.json` each second; without scripts it shows `/table`. A snapshot is
//! cached briefly, so that many viewers cost as much as one. `/health` is a health check for monitoring, and the only
//! page with the option `show=health`. `/metrics` is for Prometheus, and the only page with `show=metrics`, at `/` then.
//! Neighbours: [`snapshot`] collects the data, [`render`] and [`metrics`] format it.
//! Deliberately not here: changing anything.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod health;
mod metrics;
mod render;
mod snapshot;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use core::cell::RefCell;

use client::namespace::Namespace;
use sip::Status;
use stdio::report;
use web_application::message::Options;
use web_application::{Answered, Exchange, Gone, Reply, serve};

use crate::snapshot::{Snapshot, Watch};

sip::startup!();

const PAGE: &str = include_str!("page.html");

/// Serves requests until the web server closes the channel.
pub fn main(startup: Startup) -> i32 {
    let shown = match shown(&startup.options) {
        Ok(shown) => shown,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let watch = Rc::new(RefCell::new(Watch::new(startup.namespace.map(Namespace::new))));
    serve(startup.application, move |exchange| answer(exchange, shown, Rc::clone(&watch)))
}

/// Content available to clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Everything.
    All,
    /// The health check only.
    Health,
    /// Metrics only.
    Metrics,
}

fn shown(options: &str) -> Result<Shown, String> {
    let options = Options::parse(options, &["show"]).map_err(|error| error.to_string())?;
    match options.value("show") {
        None | Some("all") => Ok(Shown::All),
        Some("health") => Ok(Shown::Health),
        Some("metrics") => Ok(Shown::Metrics),
        Some(other) => Err(format!("the option `show` is `{other}`; it takes `all`, `health` or `metrics`")),
    }
}

async fn answer(exchange: Exchange, shown: Shown, watch: Rc<RefCell<Watch>>) -> Result<Answered, Gone> {
    if !matches!(exchange.head().method.as_str(), "GET" | "HEAD") {
        return exchange.reply(Reply::wrong_method("GET, HEAD")).await;
    }
    let reply = match exchange.head().path.as_str() {
        "/health" if shown != Shown::Metrics => health::reply(watch.borrow_mut().namespace()),
        _ if shown == Shown::Health => Reply::not_found(),
        "/" if shown == Shown::Metrics => metrics(&exchange, &watch),
        _ if shown == Shown::Metrics => Reply::not_found(),
        "/metrics" => metrics(&exchange, &watch),
        // The page may be requested with or without a trailing slash, so its links use the query.
        "/" if exchange.head().query == "table" => looked(&watch, |snapshot| Reply::html(render::table(snapshot))),
        "/" => Reply::html(String::from(PAGE)),
        "/status.json" => looked(&watch, |snapshot| Reply::json(render::json(snapshot))),
        "/table" => looked(&watch, |snapshot| Reply::html(render::table(snapshot))),
        _ => Reply::not_found(),
    };
    exchange.reply(reply).await
}

fn metrics(exchange: &Exchange, watch: &RefCell<Watch>) -> Reply {
    looked_at(watch, |snapshot| metrics::reply(exchange.head(), snapshot))
}

fn looked(watch: &RefCell<Watch>, render: impl FnOnce(&Snapshot) -> Reply) -> Reply {
    looked_at(watch, |snapshot| Ok(render(snapshot)))
}

fn looked_at(watch: &RefCell<Watch>, render: impl FnOnce(&Snapshot) -> Result<Reply, Status>) -> Reply {
    match watch.borrow_mut().look().and_then(render) {
        Ok(reply) => reply.not_kept(),
        Err(status) => Reply::error(503, format_args!("The system cannot be looked at: {}.", status.text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_to_show_is_refused() {
        assert!(shown("") == Ok(Shown::All) && shown("show=health") == Ok(Shown::Health));
        assert!(shown("show=metrics") == Ok(Shown::Metrics));
        assert_eq!(
            shown("show=x").err().unwrap_or_default(),
            "the option `show` is `x`; it takes `all`, `health` or `metrics`"
        );
        assert!(shown("other=1").is_err());
    }
}
