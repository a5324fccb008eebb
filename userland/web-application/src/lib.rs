//! What a program needs to answer requests of a web server, as a child process of it.
//!
//! [`serve`] takes requests and has each answered by an asynchronous function, many at a time on one thread. The
//! function gets an [`Exchange`] and can only end by answering it: [`Answered`] comes from nowhere else. Neighbours:
//! the contracts `WebApplication` and `HttpExchange` below, `web-message` for the texts. Deliberately not here: HTTP
//! itself and the limits on what clients may do, which are the server's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod exchange;
mod reply;

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};

use contracts::web_application::{Exp, ExpReady, states};
use sip::executor;
use stdio::report;

pub use exchange::{Answer, Answered, BodyError, Exchange, Gone};
pub use reply::Reply;
pub use web_message as message;

/// Requests that an application works on at a time; while there are so many, it takes no other.
pub const MAX_UNDER_WAY: usize = 64;

/// Says that the application is ready and has each request answered by `answer`, until the server closes the
/// channel and the last one is answered. Gives the exit status for `main`.
pub fn serve<A, F>(application: Exp<states::Start>, answer: A) -> i32
where
    A: Fn(Exchange) -> F + 'static,
    F: Future<Output = Result<Answered, Gone>> + 'static,
{
    match executor::block_on(accept(application, Rc::new(answer))) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("requests cannot be waited for: {}", status.text()));
            1
        }
    }
}

async fn accept<A, F>(application: Exp<states::Start>, answer: Rc<A>)
where
    A: Fn(Exchange) -> F + 'static,
    F: Future<Output = Result<Answered, Gone>> + 'static,
{
    let under_way = Rc::new(UnderWay::default());
    let mut application = application.ready();
    loop {
        under_way.fewer_than(MAX_UNDER_WAY).await;
        let ExpReady::Serve { head, exchange, next } = application.receive_async().await else { break };
        let place = Place::new(&under_way);
        let answer = Rc::clone(&answer);
        executor::spawn(async move {
            let _place = place;
            match Exchange::new(head, exchange) {
                // Who answered, and whether there still was somebody to hear it, makes no difference here.
                Ok(exchange) => drop(answer(exchange).await),
                Err(error) => report::error(format_args!("a request of the server cannot be read: {error}")),
            }
        });
        application = next.taken();
    }
    // The server wants nothing more; what it was promised is still done. Where it is gone itself, so are the channels
    // of its requests, and they end soon.
    under_way.fewer_than(1).await;
}

/// How many requests are worked on, and who waits for one of them to end.
#[derive(Default)]
struct UnderWay {
    count: Cell<usize>,
    waiting: RefCell<Option<Waker>>,
}

impl UnderWay {
    /// Waits until there are so few.
    async fn fewer_than(&self, count: usize) {
        poll_fn(|context| {
            if self.count.get() < count {
                return Poll::Ready(());
            }
            self.waiting.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

/// One request that is worked on; counted until it is dropped.
struct Place(Rc<UnderWay>);

impl Place {
    fn new(under_way: &Rc<UnderWay>) -> Place {
        under_way.count.set(under_way.count.get() + 1);
        Place(Rc::clone(under_way))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        if let Some(waiting) = self.0.waiting.take() {
            waiting.wake();
        }
    }
}
