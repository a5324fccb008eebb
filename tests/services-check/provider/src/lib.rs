//! A provider for tests: replies to knocks, and fails as its parameter or a knock requests.
//!
//! A knock's text may be a command: the reply to `where` is the rest of the client's path, `exit` ends the process
//! with the knock's number as status, `panic` panics. Deliberately not here: any check; the runner checks the effects
//! on clients.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;

use client::namespace::block;
use contracts::service_provider::{self, ConnectError, ExpReady, StartError};
use knock_answer_contract::knock_answer::{self, states};
use sip::Deadline;

sip::startup!();

type Clients = service_provider::Exp<service_provider::states::Ready>;

/// Performs the act named by the parameter `act`.
pub fn main(startup: Startup) -> i32 {
    let _held = startup.held;
    match startup.act.as_str() {
        "serve" => sip::executor::block_on(accept(startup.clients.ready())).map_or(1, |()| 0),
        "fail" => {
            let _clients = startup.clients.ready();
            1
        }
        "refuse" => {
            let Ok(explanation) = block("it was told to refuse") else { return 1 };
            let _ended = startup.clients.not_ready(StartError::Damaged, explanation);
            0
        }
        act => take_one_client(startup.clients.ready(), act == "die-with-client"),
    }
}

/// Accepts a client without replying, and then exits or waits.
fn take_one_client(clients: Clients, dies: bool) -> i32 {
    match clients.receive() {
        ExpReady::Connect { endpoint: _endpoint, next: _next, .. } if dies => panic!("as it was told to"),
        ExpReady::Connect { endpoint: _endpoint, next: _next, .. } => {
            sip::thread::sleep(Deadline::NEVER);
            0
        }
        ExpReady::ChannelClosed(_) => 0,
    }
}

async fn accept(mut clients: Clients) {
    loop {
        clients = match clients.receive_async().await {
            ExpReady::Connect { path, rest, endpoint, next, .. } => {
                match endpoint.downcast::<knock_answer::Exp<states::Start>>() {
                    Ok(client) => {
                        let rest = path.get(rest as usize..).unwrap_or_default();
                        sip::executor::spawn(serve(client, String::from_utf8_lossy(rest).into_owned()));
                        next.ack()
                    }
                    Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
                }
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

async fn serve(client: knock_answer::Exp<states::Start>, rest: String) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            knock_answer::ExpReady::Knock { number, text, next } => match &*text {
                b"exit" => sip::process::exit(number as i32),
                b"panic" => panic!("as it was told to"),
                b"where" => {
                    let Ok(answer) = block(&rest) else { return };
                    next.answer(number, answer)
                }
                _ => next.answer(number, text),
            },
            knock_answer::ExpReady::ChannelClosed(_) => return,
        };
    }
}
