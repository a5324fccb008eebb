//! The compiler: composes a WebAssembly module and a template's image, for its parent.
//!
//! Each process of it serves one client, its parent, which sets its deadline and ends it. Its result is a claim: who
//! installs it has the code proven and the template's part compared. Neighbours: `wasm-translate` compiles, `compose`
//! writes the image; the host tool's compiler is the same two calls. Deliberately not here: caches, signatures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::compiler::ExpReady;
use sip::Status;
use sip::exheap::ExVec;
use sip::window::Window;
use wasm_translate::Bounds;

/// Memory that is kept for the next function: each grows tables of the same sizes.
const KEPT_BYTES: usize = 16 << 20;

sip::startup!();

/// Compiles what the parent sends, until it closes the channel.
pub fn main(startup: Startup) -> i32 {
    sip::allocator::keep_pages(KEPT_BYTES);
    let mut client = startup.client;
    loop {
        client = match client.receive() {
            ExpReady::Compile { template, module, next } => match image(&template, &module).and_then(block) {
                Ok(image) => next.compiled(image),
                Err(reason) => match ExVec::from_slice(reason.as_bytes()) {
                    Ok(reason) => next.refused(reason),
                    Err(_) => return 1,
                },
            },
            ExpReady::ChannelClosed(_) => return 0,
        };
    }
}

fn image(template: &[u8], module: &[u8]) -> Result<Vec<u8>, String> {
    let template = compose::Template::parse(template).map_err(|error| error.to_string())?;
    let translated = wasm_translate::translate(module, &template.imports, bounds(), &mut |_, _| ());
    let translated = translated.map_err(|error| error.to_string())?;
    compose::compose(&template, &translated).map_err(|error| error.to_string())
}

/// What this machine can run that is faster.
fn bounds() -> Bounds {
    match Window::reserve() {
        Err(Status::NotFound) => Bounds::Checked,
        _ => Bounds::Guarded,
    }
}

fn block(image: Vec<u8>) -> Result<ExVec<u8>, String> {
    ExVec::from_slice(&image).map_err(|status| format!("its image of {} bytes: {}", image.len(), status.text()))
}
