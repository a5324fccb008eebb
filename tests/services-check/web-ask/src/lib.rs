//! Sends requests to a web application as a web server does, without a network, and prints the responses and how they
//! ended.
//!
//! All requests go to one child process, whose input is closed after the last response.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access;
use client::namespace::Namespace;
use contracts::http_exchange::{self, Exp, ExpAnswering, ExpReady};
use contracts::web_application::{self, Imp, states};
use sip::exheap::ExVec;
use sip::process::{Child, StopReason};
use sip::{Deadline, Status};
use stdio::{Output, report};
use web_host::Places;

sip::startup!();

type Failed = access::AccessError;

/// Requests each target in sequence.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let asking = Asking {
        method: startup.method,
        header: startup.header,
        body: startup.body.into_bytes(),
        most: startup.most.unsigned_abs() as usize,
        time_ns: startup.time.as_nanos() as u64,
    };
    let mut namespace = Namespace::new(startup.namespace);
    let (child, mut channel) = match start(&mut namespace, &startup.program, &startup.options) {
        Ok(started) => started,
        Err(error) => return report::path_error(&startup.program, &error),
    };
    for target in &startup.targets {
        let Some(open) = channel.take() else { break };
        let (text, next) = asking.ask(open, target);
        channel = next;
        if output.write(text.as_bytes()).is_err() {
            return 1;
        }
    }
    let was_closed = channel.is_none();
    drop(channel);
    if child.wait_until(Deadline::after_ms(500)).is_err() {
        // It may have been stopped midway.
        let _ = child.stop(StopReason::Requested);
    }
    let end = child.wait().map_or_else(|status| status.text().to_string(), |end| end.to_string());
    let how = if was_closed { "by itself: " } else { "" };
    output.write(format!("== {how}{end}\n").as_bytes()).map_or(1, |()| output.finish_with(0))
}

fn start(
    namespace: &mut Namespace,
    program: &str,
    options: &str,
) -> Result<(Child, Option<Imp<states::Ready>>), Failed> {
    let child = sip::process::create(program).map_err(|error| {
        report::error(format_args!("{error}"));
        error.status
    })?;
    let places = Places::find(program)?.ok_or(Status::NotFound)?;
    let (importer, exporter) = web_application::new_channel()?;
    let root = match places.wants_root() {
        true => Some(namespace.open_directory("/")?.into_endpoint().ok_or(Status::Closed)?),
        false => None,
    };
    ready(places.give(child, exporter, root, options)?.start()?, importer)
}

fn ready(child: Child, channel: Imp<states::Start>) -> Result<(Child, Option<Imp<states::Ready>>), Failed> {
    match channel.receive_by(Deadline::after_ms(2_000)) {
        Ok(web_application::ImpStart::Ready { next }) => Ok((child, Some(next))),
        Ok(web_application::ImpStart::ChannelClosed(_)) => Ok((child, None)),
        Err(_) => Err(Status::TimedOut.into()),
    }
}

/// Parameters common to all requests.
struct Asking {
    method: String,
    header: String,
    body: Vec<u8>,
    most: usize,
    time_ns: u64,
}

/// The result of a request.
#[derive(Default)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    end: &'static str,
}

impl Asking {
    /// Sends a request; returns the response as text, and the channel if the application is still there.
    fn ask(&self, channel: Imp<states::Ready>, target: &str) -> (String, Option<Imp<states::Ready>>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut head = format!("{}\n{path}\n{query}\n[::1]:4711\n", self.method);
        if !self.header.is_empty() {
            head += &format!("{}\n", self.header);
        }
        if !self.body.is_empty() {
            head += &format!("content-length: {}\n", self.body.len());
        }
        let made = ExVec::from_slice(head.as_bytes()).and_then(|head| Ok((head, http_exchange::new_channel()?)));
        let (head, (importer, exporter)) = match made {
            Ok(made) => made,
            Err(status) => return (format!("{target}: {}\n", status.text()), None),
        };
        let deadline = Deadline::after_ns(self.time_ns);
        let taking = channel.serve(head, importer);
        let mut answer = Answer::default();
        // Before it is known whether the request was taken: an application may answer it first, and wait for that.
        answer.end = self.hear(exporter, deadline, &mut answer).err().unwrap_or("whole");
        let channel = match taking.receive_by(deadline) {
            Ok(web_application::ImpReadyAfterServe::Taken { next }) => Some(next),
            Ok(web_application::ImpReadyAfterServe::ChannelClosed(_)) | Err(_) => None,
        };
        let Answer { status, head, body, end } = answer;
        let body = String::from_utf8_lossy(&body).into_owned();
        (format!("== {target}: {status}, {end}\n{head}\n{body}\n"), channel)
    }

    /// Receives the response. The error names the stage reached.
    fn hear(
        &self,
        exchange: Exp<http_exchange::states::Ready>,
        deadline: Deadline,
        answer: &mut Answer,
    ) -> Result<(), &'static str> {
        let mut exchange = exchange;
        let mut sent = 0_usize;
        let mut answering = loop {
            match exchange.receive_by(deadline).map_err(|_| "no answer in time")? {
                ExpReady::ReadBody { most, next } => {
                    let piece = &self.body[sent..self.body.len().min(sent.saturating_add(most as usize))];
                    sent += piece.len();
                    exchange = match ExVec::from_slice(piece) {
                        Ok(data) if !piece.is_empty() => next.body(data, piece.len() as u32),
                        Ok(_) => next.end_of_body(),
                        Err(_) => next.body_failed(),
                    };
                }
                ExpReady::Reply { status, head, body, count, next } => {
                    answer.begin(status, &head);
                    let Some(bytes) = body.get(..count as usize) else {
                        drop(next.failed());
                        return Err("more bytes than there are");
                    };
                    answer.body.extend_from_slice(bytes);
                    drop(next.done());
                    return Ok(());
                }
                ExpReady::Begin { status, head, next } => {
                    answer.begin(status, &head);
                    break next.done();
                }
                ExpReady::ChannelClosed(_) => return Err("closed without an answer"),
            }
        };
        loop {
            match answering.receive_by(deadline).map_err(|_| "not whole in time")? {
                ExpAnswering::Write { data, count, next } => {
                    answer.body.extend_from_slice(&data[..data.len().min(count as usize)]);
                    if answer.body.len() > self.most {
                        drop(next.failed());
                        answer.body.truncate(100);
                        return Err("without end");
                    }
                    answering = next.done();
                }
                ExpAnswering::End { next } => {
                    drop(next.done());
                    return Ok(());
                }
                ExpAnswering::ChannelClosed(_) => return Err("cut off"),
            }
        }
    }
}

impl Answer {
    fn begin(&mut self, status: u16, head: &[u8]) {
        self.status = status;
        self.head = String::from_utf8_lossy(head).into_owned();
    }
}
