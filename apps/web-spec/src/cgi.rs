//! A request that a process of its own answers.
//!
//! The process is this program once more, as a child. It gets the request's own channel, so that it answers the web
//! server itself, and ends when it has.

use ::web_application::{Answered, Exchange, Gone, Reply};
use client::access::AccessError;
use contracts::web_application::{self as plug, Imp, states};
use sip::Deadline;
use sip::executor::sleep_until;
use sip::process::{Child, create};

use crate::State;
use crate::files::status_of;

/// Slots and parameters of this program's own manifest.
const APPLICATION: usize = 0;
const NAMESPACE: usize = 1;
const OPTIONS: usize = 0;

/// How often a child is looked at that has not ended yet, at first and at most.
const LOOK_MS: (u64, u64) = (1, 50);

/// Has the request answered by a new process.
pub async fn answer(exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    let (child, channel) = match start(state).await {
        Ok(started) => started,
        Err(error) => return exchange.reply(Reply::error(status_of(error), error)).await,
    };
    let answered = exchange
        .by_hand(async |head, exchange| {
            // Whether the child takes it or ends: the channel of the request went with the message, and its end tells
            // the server.
            let served = channel.serve(head, exchange).receive_async().await;
            // Closed, it tells the child that there is nothing more to do.
            drop(served);
        })
        .await;
    let mut pause_ms = LOOK_MS.0;
    while child.wait_until(Deadline::PASSED).is_err() {
        sleep_until(Deadline::after_ms(pause_ms)).await;
        pause_ms = (pause_ms * 2).min(LOOK_MS.1);
    }
    answered
}

async fn start(state: &State) -> Result<(Child, Imp<states::Ready>), AccessError> {
    let child = create("web-spec").map_err(|error| error.status)?;
    let (importer, exporter) = plug::new_channel()?;
    let mut child = child.parameter(OPTIONS, &state.options_of_child)?.endpoint(APPLICATION, exporter)?;
    if state.has_names {
        child = child.endpoint(NAMESPACE, state.files.open_folder("/").await?)?;
    }
    let child = child.start()?;
    match importer.receive_async().await {
        plug::ImpStart::Ready { next } => Ok((child, next)),
        plug::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}
