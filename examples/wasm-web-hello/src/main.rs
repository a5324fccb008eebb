//! The web application `web-hello` as a WebAssembly program: a single page with a greeting.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use sing_guest_web::message::{Escaped, FAVICON, Options, RequestHead, pairs};
use sing_guest_web::{BODY_BYTES, Reply, options, serve};

fn main() -> ExitCode {
    let options = match Options::parse(&options(), &["greeting"]) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let greeting = options.value("greeting").unwrap_or("Hello");
    match serve(BODY_BYTES, |head, _body| greet(head, greeting)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers one request.
fn greet(head: &RequestHead, greeting: &str) -> Reply {
    match (head.path.as_str(), pairs(head.query.as_bytes())) {
        ("/", Ok(form)) => Reply::html(page(greeting, form.value("name").unwrap_or("world"))),
        ("/", Err(error)) => Reply::error(400, error),
        _ => Reply::not_found(),
    }
}

fn page(greeting: &str, name: &str) -> String {
    let (greeting, name) = (Escaped(greeting), Escaped(name));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{greeting}</title>{FAVICON}</head>\
         <body><h1>{greeting}, {name}!</h1>\
         <form><label>Your name: <input name=\"name\"></label> <button>Greet</button></form></body></html>\n"
    )
}
