//! Gives a worker jobs, and answers its questions meanwhile.

use sip::executor;

use crate::{help, job};

sip::startup!("lender/manifest.toml");

/// Number of jobs.
const JOBS: u64 = 100;

/// Gives the jobs one after the other; the status is 0 if each was done.
pub fn main(startup: Startup) -> i32 {
    match executor::block_on(give(startup.worker)) {
        Ok(Some(())) => 0,
        Ok(None) | Err(_) => 1,
    }
}

async fn give(mut worker: job::Imp<job::states::Ready>) -> Option<()> {
    let (mut lent, answering) = help::new_channel().ok()?;
    drop(executor::spawn(answer(answering)));
    for _ in 0..JOBS {
        let job::ImpReadyAfterPrepare::Prepared { next } = worker.prepare().receive_async().await else { return None };
        let job::ImpRunning::Finished { help, next, .. } = next.begin(lent).receive_async().await else { return None };
        (lent, worker) = (help, next);
    }
    Some(())
}

async fn answer(mut asked: help::Exp<help::states::Ready>) {
    while let help::ExpReady::Question { number, next } = asked.receive_async().await {
        asked = next.answer(number.wrapping_add(1));
    }
}
