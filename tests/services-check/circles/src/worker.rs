//! Does jobs, and asks whoever gave them.

use crate::{help, job};

sip::startup!("worker/manifest.toml");

/// Serves `/service/worker`.
pub fn main(startup: Startup) -> i32 {
    let serving = provider::accept(startup.clients.ready(), serve);
    i32::from(sip::executor::block_on(serving).is_err())
}

async fn serve(client: job::Exp<job::states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            job::ExpReady::Prepare { next } => next.prepared(),
            job::ExpReady::Begin { help, next } => match help.question(1).receive() {
                help::ImpReadyAfterQuestion::Answer { number, next: help } => next.finished(help, number),
                help::ImpReadyAfterQuestion::ChannelClosed(_) => return,
            },
            job::ExpReady::ChannelClosed(_) => return,
        };
    }
}
