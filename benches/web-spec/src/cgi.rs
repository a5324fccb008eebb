//! A request answered by a separate process.
//!
//! The process is another instance of this program, started as a child. It gets the channel of the request, so that it
//! answers the web server directly, and ends afterwards.

use ::web_application::{Answered, Exchange, Gone, Reply};
use client::access::AccessError;
use contracts::web_application::{self as plug, Imp, states};
use sip::Deadline;
use sip::executor::sleep_until;
use sip::process::{Child, create};

use crate::State;
use crate::files::status_of;

/// Indices of slots and parameters in this program's own manifest.
const APPLICATION: usize = 0;
const NAMESPACE: usize = 1;
const OPTIONS: usize = 0;

/// Initial and maximum interval at which a child is polled for its end, in milliseconds.
const LOOK_MS: (u64, u64) = (1, 50);

/// Starts a process that answers the request.
pub async fn answer(exchange: Exchange, state: &State) -> Result<Answered, Gone> {
    let (child, channel) = match start(state).await {
        Ok(started) => started,
        Err(error) => return exchange.reply(Reply::error(status_of(error), error)).await,
    };
    let answered = exchange
        .with_channel(async |head, exchange| {
            // Whether the child accepts or ends does not matter: the channel of the request went with the message, and
            // its closure notifies the server.
            let served = channel.serve(head, exchange).receive_async().await;
            // Closing it signals the end of requests to the child.
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
