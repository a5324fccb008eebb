//! Web applications as WebAssembly programs: [`serve`] answers the requests of a web server, whose child the program is.
//!
//! A request has its head and its whole body when it is answered; the bodies of several are received meanwhile, and
//! responses sent, so that a slow client delays nobody else. Neighbours: `lib/web-message` for heads, forms, HTML and
//! [`Reply`]; `userland/web-application` does the same for native programs, with tasks. Deliberately not here: bodies
//! in pieces, for which `contracts` has the contract.
#![forbid(unsafe_code)]

/// Bindings of `WebApplication` and `HttpExchange`, as the tool generates them.
#[rustfmt::skip]
pub mod contracts;
mod pending;

use std::fmt;

use sing_guest::select::{MAX_THINGS, Waitable, wait_any};
use sing_guest::{Deadline, endpoint};
use web_message::RequestHead;

use contracts::web_application::{Exp, ExpReady, states};
use pending::{Pending, Progress};

pub use web_message as message;
/// A complete response.
pub type Reply = web_message::Reply<Vec<u8>>;

/// Maximum requests in flight; the program accepts no others meanwhile. One place of a wait is for new ones.
pub const MAX_PENDING: usize = MAX_THINGS - 1;

/// Limit on the bodies that [`serve`] receives, in bytes, if the program has no other: 1 MiB.
pub const BODY_BYTES: usize = 1 << 20;

/// The program was not started by a web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoServer(());

impl fmt::Display for NoServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("this is a web application: name it among the applications of a web server")
    }
}

impl std::error::Error for NoServer {}

/// Returns the options that the server's administrator gave the program: words `name=value`, for
/// [`Options::parse`](message::Options::parse).
pub fn options() -> String {
    std::env::args().skip(1).collect::<Vec<_>>().join(" ")
}

/// Answers each request, with a body of at most `body_bytes`, by `answer`, until the web server closes the channel and the
/// last one is answered. Longer bodies are refused with 413, incomplete ones with 400.
///
/// The manifest has the channel, `WebApplication` from `parent`, as its first `[[endpoint]]`.
///
/// # Errors
/// The program was started by somebody else, who has no such channel for it.
pub fn serve(body_bytes: usize, mut answer: impl FnMut(&RequestHead, &[u8]) -> Reply) -> Result<(), NoServer> {
    let start: Exp<states::Start> = endpoint(0).ok_or(NoServer(()))?;
    let mut application = Some(start.ready());
    let mut pending: Vec<Pending> = Vec::new();
    while application.is_some() || !pending.is_empty() {
        // Those in progress first, so that new ones do not keep them waiting.
        let mut things: Vec<&dyn Waitable> = pending.iter().map(Pending::channel).collect();
        if let Some(application) = application.as_ref().filter(|_| things.len() < MAX_PENDING) {
            things.push(application);
        }
        let Some(ready) = wait_any(&things, Deadline::NEVER) else { continue };
        drop(things);
        if ready < pending.len() {
            if let Progress::Waiting(next) = pending.swap_remove(ready).go_on(body_bytes, &mut answer) {
                pending.push(next);
            }
        } else if let Some(ExpReady::Serve { head, exchange, next }) = application.take().map(Exp::receive) {
            application = Some(next.taken());
            if let Progress::Waiting(next) = Pending::begin(&head.to_vec(), exchange, body_bytes, &mut answer) {
                pending.push(next);
            }
        }
    }
    Ok(())
}
