//! Driver of a virtio entropy source: the `Entropy` contract for many clients.
//!
//! Key type: [`rng::Rng`] (the requests, without channels). Neighbours: `sip-virtio` (the device). The device does DMA
//! directly on a client's block. Deliberately not here: a generator; the device's bytes are passed on unchanged.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod rng;

use alloc::rc::Rc;
use alloc::sync::Arc;

use contracts::entropy::{self, EntropyError, ExpReady, states};
use contracts::service_provider::StartError;
use sip::exheap::{ExVec, Lent};
use sip::hardware::DmaBlock;
use sip_virtio::{Running, System};
use stdio::report;

use rng::Rng;

sip::startup!();

type Block = Lent<ExVec<u8>>;
type Core = Rng<System, DmaBlock<Block>>;

struct Source {
    system: System,
    running: Arc<Running<Core>>,
}

/// Serves random bytes until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let source = match Running::start(&startup.source, Core::start) {
        Ok((system, running)) => Rc::new(Source { system, running }),
        Err(explanation) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it.
                Ok(block) => drop(startup.clients.not_ready(StartError::Missing, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    let serving = provider::accept(startup.clients.ready(), move |client: entropy::Exp<states::Start>| {
        serve(Rc::clone(&source), client.success())
    });
    i32::from(sip::executor::block_on(serving).is_err())
}

/// Serves one client until it closes its end.
async fn serve(source: Rc<Source>, mut client: entropy::Exp<states::Ready>) {
    loop {
        client = match client.receive_async().await {
            ExpReady::Fill { data, next } => match source.fill(data).await {
                Ok(data) => next.filled(data),
                Err((data, error)) => next.not_filled(data, error),
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

impl Source {
    /// Fills a client's block, in as many requests as the device needs.
    async fn fill(&self, data: Block) -> Result<Block, (Block, EntropyError)> {
        let bytes = data.len();
        if bytes == 0 {
            return Ok(data);
        }
        let mut block = self.system.pin(data).map_err(|(data, _)| (data, EntropyError::Exhausted))?;
        let mut filled = 0;
        while filled < bytes {
            let mut waiting = Some(block);
            let begin = |core: &mut Core| match core.fill(waiting.take()?, filled, bytes - filled) {
                Ok(key) => Some(key),
                Err(memory) => {
                    waiting = Some(memory);
                    None
                }
            };
            let key = self.running.until(begin).await;
            let (memory, count) = self.running.until(|core| core.take(key)).await;
            block = memory;
            filled += count;
        }
        Ok(block.end())
    }
}
