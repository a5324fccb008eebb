//! A service with a contract of its own: echoes received text.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use knock_answer_contract::knock_answer::{Exp, ExpReady, states};

sip::startup!();

/// Serves the clients that bind to `/service/answer`.
pub fn main(startup: Startup) -> i32 {
    let clients = startup.clients.ready();
    match sip::executor::block_on(provider::accept(clients, serve)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

async fn serve(client: Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::Knock { number, text, next } => next.answer(number, text),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}
