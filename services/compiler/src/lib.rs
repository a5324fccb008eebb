//! The compiler: composes a WebAssembly module and a template's image, for its parent.
//!
//! Each process of it serves one client, its parent, which sets its deadline and ends it. Its result is a claim: who
//! installs it has the code proven and the template's part compared. It can have registers allocated by a child
//! ([`extension`]), and then works on the next function with a second thread ([`parts`]). Neighbours:
//! `wasm-translate` compiles, `compose` writes the image; the host tool's compiler is the same two calls. Deliberately not
//! here: caches, signatures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod extension;
mod parts;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::compiler::ExpReady;
use sip::exheap::ExVec;
use sip::window::Window;
use sip::{Status, thread};
use wasm_translate::Bounds;

use crate::extension::{Extension, Wanted};

/// Memory that is kept for the next function: each grows tables of the same sizes.
const KEPT_BYTES: usize = 16 << 20;
/// Maximum number of threads: an extension has as many clients.
const MAX_THREADS: usize = 2;

sip::startup!();

/// Compiles what the parent sends, until it closes the channel.
pub fn main(startup: Startup) -> i32 {
    sip::allocator::keep_pages(KEPT_BYTES);
    let wanted = Wanted { allocator: startup.allocator, checker: startup.checker, limit_ms: startup.answer_ms };
    let threads = threads(&wanted, startup.threads);
    let extension = wanted.started(threads);
    let bounds = bounds(&startup.bounds);
    let mut client = startup.client;
    loop {
        client = match client.receive() {
            ExpReady::Compile { template, module, next } => {
                let image = match &extension {
                    Ok(extension) => image(&template, module, (bounds, threads), extension).and_then(block),
                    Err(reason) => Err(reason.clone()),
                };
                match image {
                    Ok(image) => next.compiled(image),
                    Err(reason) => match ExVec::from_slice(reason.as_bytes()) {
                        Ok(reason) => next.refused(reason),
                        Err(_) => return 1,
                    },
                }
            }
            ExpReady::ChannelClosed(_) => return 0,
        };
    }
}

/// While a child allocates a function, another thread has the next one. Alone, threads would compete for the heap.
fn threads(wanted: &Wanted, parameter: i64) -> usize {
    let named = usize::try_from(parameter).ok().filter(|threads| *threads > 0);
    match wanted.allocator.as_str() {
        "" => 1,
        _ => named.unwrap_or_else(thread::processor_count).min(MAX_THREADS),
    }
}

fn image(
    template: &[u8],
    module: ExVec<u8>,
    (bounds, threads): (Bounds, usize),
    extension: &Extension,
) -> Result<Vec<u8>, String> {
    let template = compose::Template::parse(template).map_err(|error| error.to_string())?;
    let translated = parts::translate(module, &template.imports, bounds, threads, extension)?;
    compose::compose(&template, &translated).map_err(|error| error.to_string())
}

/// What is wanted, but checked where this machine cannot run code that is guarded.
fn bounds(wanted: &str) -> Bounds {
    match Window::reserve(0) {
        _ if wanted == "checked" => Bounds::Checked,
        Err(Status::NotFound) => Bounds::Checked,
        _ => Bounds::Guarded,
    }
}

fn block(image: Vec<u8>) -> Result<ExVec<u8>, String> {
    ExVec::from_slice(&image).map_err(|status| format!("its image of {} bytes: {}", image.len(), status.text()))
}
