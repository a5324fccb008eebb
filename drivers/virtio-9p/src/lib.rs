//! Driver of a host folder over virtio-9p, served by crate `folder-server`.
//!
//! Key type: [`channel::Channel`] (the requests, without clients). Neighbours: `sip-virtio` (the device),
//! `folder-server` (the clients), `host-folder` (the same on the hosted machine). Deliberately not here: the protocol.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod channel;

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;

use folder_server::{Exchanged, Mount, Transport};
use sip::device::Declared;
use sip::exheap::ExVec;
use sip::hardware::DmaBlock;
use sip_virtio::{Running, System};

use channel::Channel;

sip::startup!();

type Core = Channel<System, DmaBlock<ExVec<u8>>>;

/// The transport to the device.
struct Virtio9p {
    system: System,
    running: Arc<Running<Core>>,
}

/// Serves the folder until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    folder_server::run(startup.clients, startup.namespace, || open(&startup.folder))
}

fn open(folder: &Declared<System>) -> Result<Mount, String> {
    let (system, running) = Running::start(folder, Core::start)?;
    let name = running.with(|core| String::from(core.name()));
    Ok(Mount { name, transport: Rc::new(Virtio9p { system, running }) })
}

impl Transport for Virtio9p {
    fn exchange(&self, block: ExVec<u8>, request_bytes: usize) -> Pin<Box<dyn Future<Output = Exchanged> + '_>> {
        Box::pin(async move {
            let memory = match self.system.pin(block) {
                Ok(memory) => memory,
                Err((block, _)) => return Exchanged { block: Some(block), answer: None },
            };
            let mut waiting = Some(memory);
            let begin = |core: &mut Core| {
                core.send(waiting.take()?, request_bytes).map_err(|memory| waiting = Some(memory)).ok()
            };
            let key = self.running.until(begin).await;
            let (memory, answer_bytes) = self.running.until(|core| core.take(key)).await;
            let end = request_bytes.saturating_add(answer_bytes);
            Exchanged { block: Some(memory.end()), answer: Some(request_bytes..end) }
        })
    }
}
