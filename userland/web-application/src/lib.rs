//! Framework for programs that answer requests of a web server as its child process.
//!
//! [`serve`] accepts requests and has an asynchronous function answer each, many concurrently on one thread. The
//! function gets an [`Exchange`] and can only return by answering it: nothing else creates an [`Answered`]. Neighbours:
//! the contracts `WebApplication` and `HttpExchange` below, `web-message` for the texts. Deliberately not here: HTTP
//! itself and the limits on clients, which are the server's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod exchange;
mod reply;

use alloc::rc::Rc;
use core::future::Future;

use contracts::web_application::{Exp, ExpReady, states};
use sip::executor;
use stdio::report;
use task_sync::Semaphore;

pub use exchange::{Answer, Answered, BodyError, Exchange, Gone};
pub use reply::{Body, Reply};
pub use web_message as message;

/// Maximum requests in flight per application; it accepts no others meanwhile.
pub const MAX_PENDING: usize = 64;

/// Reports that the application is ready and answers each request with `answer`, until the server closes the channel
/// and the last one is answered. Returns the exit status for `main`.
pub fn serve<A, F>(application: Exp<states::Start>, answer: A) -> i32
where
    A: Fn(Exchange) -> F + 'static,
    F: Future<Output = Result<Answered, Gone>> + 'static,
{
    match executor::block_on(accept(application, Rc::new(answer))) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for requests: {}", status.text()));
            1
        }
    }
}

async fn accept<A, F>(application: Exp<states::Start>, answer: Rc<A>)
where
    A: Fn(Exchange) -> F + 'static,
    F: Future<Output = Result<Answered, Gone>> + 'static,
{
    let places = Semaphore::new(MAX_PENDING);
    let mut application = application.ready();
    loop {
        let place = places.acquire(1).await;
        let ExpReady::Serve { head, exchange, next } = application.receive_async().await else { break };
        let answer = Rc::clone(&answer);
        executor::spawn(async move {
            let _place = place;
            match Exchange::new(head, exchange) {
                // Whether the response was delivered makes no difference here.
                Ok(exchange) => drop(answer(exchange).await),
                Err(error) => report::error(format_args!("a request of the server cannot be read: {error}")),
            }
        });
        application = next.taken();
    }
    // The server has closed the channel; requests in flight are still answered. If the server has ended, so have the
    // channels of its requests, and they end soon.
    drop(places.acquire(MAX_PENDING).await);
}
