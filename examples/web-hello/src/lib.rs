//! The smallest web application: a single page with a greeting. `docs/web-applications.md` explains it line by line.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use stdio::report;
use web_application::message::{Escaped, FAVICON, Options, pairs};
use web_application::{Answered, Exchange, Gone, Reply, serve};

sip::startup!();

/// Serves requests until the web server closes the channel.
pub fn main(startup: Startup) -> i32 {
    let options = match Options::parse(&startup.options, &["greeting"]) {
        Ok(options) => options,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let greeting: Rc<str> = options.value("greeting").unwrap_or("Hello").into();
    serve(startup.application, move |exchange| greet(exchange, Rc::clone(&greeting)))
}

/// Answers one request.
async fn greet(exchange: Exchange, greeting: Rc<str>) -> Result<Answered, Gone> {
    let reply = match (exchange.head().path.as_str(), pairs(exchange.head().query.as_bytes())) {
        ("/", Ok(form)) => Reply::html(page(&greeting, form.value("name").unwrap_or("world"))),
        ("/", Err(error)) => Reply::error(400, error),
        _ => Reply::not_found(),
    };
    exchange.reply(reply).await
}

fn page(greeting: &str, name: &str) -> String {
    let (greeting, name) = (Escaped(greeting), Escaped(name));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{greeting}</title>{FAVICON}</head>\
         <body><h1>{greeting}, {name}!</h1>\
         <form><label>Your name: <input name=\"name\"></label> <button>Greet</button></form></body></html>\n"
    )
}
