//! A server of the contract KnockAnswer in ordinary Rust: one thread, which waits for its clients and the next of them.
#![forbid(unsafe_code)]

#[rustfmt::skip]
mod knock_answer;
#[rustfmt::skip]
mod service_provider;

use std::process::ExitCode;

use knock_answer::knock_answer::{Exp, ExpReady, states};
use service_provider::service_provider::{self as provider, ConnectError, ExpReady as Request};
use sing_guest::Deadline;
use sing_guest::channel::AnyEndpoint;
use sing_guest::select::{MAX_THINGS, Waitable, wait_any};

type Client = Exp<states::Ready>;
type Provider = provider::Exp<provider::states::Ready>;

fn main() -> ExitCode {
    let Some(start) = sing_guest::endpoint::<provider::Exp<provider::states::Start>>(0) else {
        eprintln!("a system manifest starts this program: it serves the path that it is given");
        return ExitCode::FAILURE;
    };
    let mut requests = start.ready();
    let mut clients: Vec<Client> = Vec::new();
    loop {
        match ready(&requests, &clients) {
            Some(0) => match connect(requests, &mut clients) {
                Some(next) => requests = next,
                None => return ExitCode::SUCCESS,
            },
            Some(place) => {
                let client = clients.swap_remove(place - 1);
                clients.extend(answer(client));
            }
            None => return ExitCode::FAILURE,
        }
    }
}

/// Waits for the first that has something to receive: 0 is the provider's end, clients follow.
fn ready(requests: &Provider, clients: &[Client]) -> Option<usize> {
    let mut everyone: Vec<&dyn Waitable> = vec![requests];
    everyone.extend(clients.iter().map(|client| client as &dyn Waitable));
    wait_any(&everyone, Deadline::NEVER)
}

/// Takes a client; `None` if the name was taken out, and no more come.
fn connect(requests: Provider, clients: &mut Vec<Client>) -> Option<Provider> {
    match requests.receive() {
        Request::Connect { path, rest, endpoint, next, .. } => {
            let is_below = (rest as usize) < path.len();
            Some(match accepted(endpoint, is_below, clients.len()) {
                Ok(client) => {
                    clients.push(client);
                    next.ack()
                }
                Err((error, endpoint)) => next.nack(error, endpoint),
            })
        }
        Request::ChannelClosed(_) => None,
    }
}

/// Opens the conversation with a client, if there is room and it speaks the contract.
fn accepted(endpoint: AnyEndpoint, is_below: bool, clients: usize) -> Result<Client, (ConnectError, AnyEndpoint)> {
    if is_below {
        return Err((ConnectError::NotFound, endpoint));
    }
    if clients + 1 == MAX_THINGS {
        return Err((ConnectError::Busy, endpoint));
    }
    let client = endpoint.downcast::<Exp<states::Start>>();
    client.map(Exp::success).map_err(|endpoint| (ConnectError::WrongContract, endpoint))
}

/// Answers the client's request; `None` if it has gone.
fn answer(client: Client) -> Option<Client> {
    match client.receive() {
        ExpReady::Knock { number, text, next } => Some(next.answer(number, text)),
        ExpReady::ChannelClosed(_) => None,
    }
}
