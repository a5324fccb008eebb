//! Applications: child processes that answer the requests for a path.
//!
//! A task per application submits requests and starts the child if it does not run. If it crashes, its pending requests
//! are answered with 502; if one times out, it is stopped and the request answered with 504. The next request restarts
//! it, unless it failed many times in a row: then requests are refused for a while. Deliberately not here: the protocol
//! of a request's own channel, which is in [`crate::exchange`].

use alloc::collections::VecDeque;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use contracts::http_exchange;
use contracts::web_application::{self, ImpReadyAfterServe, ImpStart};
use sip::exheap::ExVec;
use sip::process::{self, Child, StopReason};
use sip::{Deadline, executor};
use stdio::report;
use task_sync::Notify;
use web_host::Places;

use crate::Server;
use crate::limited::limited;

/// Timeout for a program to report ready, in milliseconds.
const START_MS: u64 = 2000;
/// Consecutive exits without a response after which restarts are delayed.
const FAILURES_FOR_PAUSE: u32 = 8;
const FIRST_PAUSE_MS: u64 = 100;
const MAX_PAUSE_MS: u64 = 5000;

type Endpoint = web_application::Imp<web_application::states::Ready>;

/// State of a submitted or queued request.
#[derive(Default)]
pub(crate) struct Progress {
    /// Number of the child that it was sent to; 0 for none yet.
    pub(crate) child: Cell<u64>,
    /// Whether the child has accepted it.
    pub(crate) is_taken: Cell<bool>,
    /// When it was accepted, in nanoseconds of the monotonic clock.
    pub(crate) taken_ns: Cell<u64>,
    /// The request was abandoned.
    has_ended: Cell<bool>,
}

struct Waiting {
    head: ExVec<u8>,
    exchange: http_exchange::Imp<http_exchange::states::Ready>,
    progress: Rc<Progress>,
}

/// Why a request was not queued.
pub(crate) enum Refusal {
    /// The program keeps failing; retried after this many seconds.
    Failing(u64),
    /// The queue is full, or there is no memory.
    Busy,
}

/// A program that answers requests for a path and all below it.
pub(crate) struct Application {
    prefix: String,
    program: String,
    options: String,
    waiting: RefCell<VecDeque<Waiting>>,
    signal: Notify,
    child: RefCell<Option<Rc<Child>>>,
    /// Number of the current or last child.
    number: Cell<u64>,
    /// That child was stopped because of a timeout.
    was_stopped: Cell<bool>,
    /// Accepted requests without a response.
    pending: Cell<usize>,
    /// Requests refused because the queue was full.
    refused: Cell<u64>,
    has_answered: Cell<bool>,
    failures: Cell<u32>,
    paused_until: Cell<Deadline>,
}

impl Application {
    /// Parses `/path=program`, optionally followed by a space and options.
    pub(crate) fn parse(text: &str) -> Option<Application> {
        let (prefix, program) = text.split_once('=')?;
        let (program, options) = program.split_once(' ').unwrap_or((program, ""));
        let prefix = prefix.trim_end_matches('/');
        if !prefix.starts_with('/') && !prefix.is_empty() || program.is_empty() {
            return None;
        }
        Some(Application {
            prefix: String::from(prefix),
            program: String::from(program),
            options: String::from(options.trim()),
            waiting: RefCell::new(VecDeque::new()),
            signal: Notify::new(),
            child: RefCell::new(None),
            number: Cell::new(0),
            was_stopped: Cell::new(false),
            pending: Cell::new(0),
            refused: Cell::new(0),
            has_answered: Cell::new(false),
            failures: Cell::new(0),
            paused_until: Cell::new(Deadline::PASSED),
        })
    }

    /// Its line in the status file: path, program, state, and the numbers of starts, consecutive failures, queued and
    /// refused requests.
    pub(crate) fn describe(&self) -> String {
        let state = if !self.paused_until.get().has_passed() {
            "paused"
        } else if self.child.borrow().is_some() {
            "running"
        } else {
            "stopped"
        };
        let path = if self.prefix.is_empty() { "/" } else { &self.prefix };
        let (program, starts, failures) = (&self.program, self.number.get(), self.failures.get());
        let (waiting, refused) = (self.waiting.borrow().len(), self.refused.get());
        format!(
            "application {path} {program} {state} starts {starts} failures {failures} waiting {waiting} \
             refused {refused}\n"
        )
    }

    /// Number of components of its path; the deepest match answers.
    pub(crate) fn depth(&self) -> usize {
        self.prefix.len()
    }

    /// The rest of a decoded path below its own; `None` if it does not serve that path.
    pub(crate) fn rest_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        match path.strip_prefix(&*self.prefix)? {
            "" => Some("/"),
            rest => rest.starts_with('/').then_some(rest),
        }
    }

    /// Queues a request unless `max_waiting` are queued; returns the server's end of its channel.
    pub(crate) fn submit(
        &self,
        head: &[u8],
        progress: &Rc<Progress>,
        max_waiting: usize,
    ) -> Result<http_exchange::Exp<http_exchange::states::Ready>, Refusal> {
        if !self.paused_until.get().has_passed() {
            let left_ns = self.paused_until.get().as_ns().saturating_sub(sip::time::monotonic());
            return Err(Refusal::Failing(left_ns.div_ceil(1_000_000_000).max(1)));
        }
        if self.waiting.borrow().len() >= max_waiting {
            self.refused.set(self.refused.get() + 1);
            return Err(Refusal::Busy);
        }
        let head = ExVec::from_slice(head).map_err(|_| Refusal::Busy)?;
        let (importer, exporter) = http_exchange::new_channel().map_err(|_| Refusal::Busy)?;
        self.waiting.borrow_mut().push_back(Waiting { head, exchange: importer, progress: progress.clone() });
        self.signal.notify_one();
        Ok(exporter)
    }

    /// Records a complete response.
    pub(crate) fn note_answer(&self) {
        self.has_answered.set(true);
        self.failures.set(0);
    }

    /// Records that a request was abandoned or answered.
    pub(crate) fn note_end(&self, progress: &Progress) {
        progress.has_ended.set(true);
        if progress.is_taken.get() {
            self.pending.set(self.pending.get() - 1);
        }
    }

    fn note_taken(&self, progress: &Progress) {
        if !progress.has_ended.get() {
            progress.is_taken.set(true);
            progress.taken_ns.set(sip::time::monotonic_coarse());
            self.pending.set(self.pending.get() + 1);
        }
    }

    /// Whether the request is only queued behind others, each of which has its own time limit.
    pub(crate) fn is_busy_with_others(&self, progress: &Progress) -> bool {
        !progress.is_taken.get() && self.pending.get() > 0
    }

    /// Handles a request's timeout: stops the child that has it or delays it.
    pub(crate) fn stop(&self, progress: &Progress) {
        let number = progress.child.get();
        if (number == 0 || number == self.number.get())
            && let Some(child) = self.child.borrow_mut().take()
        {
            self.was_stopped.set(true);
            // It may have ended already.
            let _ = child.stop(StopReason::Requested);
            report::error(format_args!("{} timed out and was stopped", self.program));
        }
    }

    /// Whether the child that had a request was stopped because of a timeout.
    pub(crate) fn was_stopped(&self, progress: &Progress) -> bool {
        progress.child.get() == self.number.get() && self.was_stopped.get()
    }

    fn pause_if_failing(&self) {
        if self.has_answered.get() {
            return;
        }
        let failures = self.failures.get() + 1;
        self.failures.set(failures);
        if failures >= FAILURES_FOR_PAUSE {
            let doublings = (failures - FAILURES_FOR_PAUSE).min(16);
            let pause_ms = (FIRST_PAUSE_MS << doublings).min(MAX_PAUSE_MS);
            self.paused_until.set(Deadline::after_ms(pause_ms));
        }
    }
}

/// Submits requests to an application, for the life of the process.
pub(crate) async fn run(server: Rc<Server>, index: usize) {
    let Some(application) = server.applications.get(index) else { return };
    loop {
        while application.waiting.borrow().is_empty() {
            application.signal.notified().await;
        }
        application.has_answered.set(false);
        match start(&server, application).await {
            Ok((child, endpoint)) => {
                application.number.set(application.number.get() + 1);
                application.was_stopped.set(false);
                *application.child.borrow_mut() = Some(child.clone());
                hand_over(application, endpoint).await;
                application.child.borrow_mut().take();
                end(application, &child).await;
            }
            Err(reason) => {
                report::error(format_args!("{} cannot be started: {reason}", application.program));
                // Closes their channels, which reports them as not accepted.
                application.waiting.borrow_mut().clear();
            }
        }
        application.pause_if_failing();
    }
}

/// Submits requests until the child ends.
async fn hand_over(application: &Application, mut endpoint: Endpoint) {
    loop {
        let is_running = || application.child.borrow().as_ref().is_some_and(|child| is_alive(child));
        while application.waiting.borrow().is_empty() {
            application.signal.notified().await;
        }
        if !is_running() {
            return;
        }
        let Some(Waiting { head, exchange, progress }) = application.waiting.borrow_mut().pop_front() else {
            continue;
        };
        if progress.has_ended.get() {
            continue;
        }
        progress.child.set(application.number.get());
        endpoint = match endpoint.serve(head, exchange).receive_async().await {
            ImpReadyAfterServe::Taken { next } => next,
            ImpReadyAfterServe::ChannelClosed(_) => return,
        };
        application.note_taken(&progress);
    }
}

fn is_alive(child: &Child) -> bool {
    child.wait_until(Deadline::PASSED).is_err()
}

async fn start(server: &Server, application: &Application) -> Result<(Rc<Child>, Endpoint), String> {
    let said = |status: sip::Status| String::from(status.text());
    let (importer, exporter) = web_application::new_channel().map_err(said)?;
    let child = invoked(&application.program)?;
    let places = Places::find(&application.program).map_err(said)?;
    let places = places.ok_or("it is no web application: it takes no `WebApplication`")?;
    let root = match places.wants_root() {
        true => Some(server.store.open_folder("/").await.map_err(|_| String::from("there is no namespace"))?),
        false => None,
    };
    let child = places.give(child, exporter, root, &application.options).and_then(Child::start);
    let child = Rc::new(child.map_err(said)?);
    match limited(Deadline::after_ms(START_MS), importer.receive_async()).await {
        Some(ImpStart::Ready { next }) => Ok((child, next)),
        ended => {
            end(application, &child).await;
            Err(String::from(if ended.is_some() { "it ended before it was ready" } else { "it was not ready in time" }))
        }
    }
}

/// A child with the principal of this server invoking it, so that it does not get the program's own rights.
fn invoked(program: &str) -> Result<Child, String> {
    let child = process::create(program).map_err(|error| error.reason)?;
    child.invoke().map_err(|status| String::from(status.text()))
}

/// Stops a child that no longer serves, and reports why.
async fn end(application: &Application, child: &Child) {
    // Report its own exit if it has ended by itself.
    let mut ended = child.wait_until(Deadline::PASSED);
    if ended.is_err() {
        executor::sleep_until(Deadline::after_ms(1)).await;
        ended = child.wait_until(Deadline::PASSED);
    }
    match ended {
        Ok(epitaph) if !application.was_stopped.get() => {
            report::error(format_args!("{} ended: {epitaph}", application.program));
        }
        Ok(_) => {}
        Err(_) => {
            let _ = child.stop(StopReason::Requested);
        }
    }
}

/// Parses the configured applications, the most specific first.
pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Application>, &str> {
    let mut applications = Vec::with_capacity(texts.len());
    for text in texts {
        applications.push(Application::parse(text).ok_or(text.as_str())?);
    }
    applications.sort_by_key(|application| core::cmp::Reverse(application.depth()));
    Ok(applications)
}
