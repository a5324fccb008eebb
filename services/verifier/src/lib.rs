//! The verifier: proves of an image that it is a template with code added that keeps to its instance, for its parent.
//!
//! Each process of it serves one client, its parent, which sets its deadline and ends it. Neighbours: `native-verifier` has
//! the proof, `compose` takes the added segments out of the image; the kernel compares the template's part again.
//! Deliberately not here: whether the package may be installed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};

use contracts::verifier::ExpReady;
use image_check::Image;
use sha2::{Digest, Sha256};
use sip::exheap::ExVec;

sip::startup!();

/// Proves what the parent sends, until it closes the channel.
pub fn main(startup: Startup) -> i32 {
    let mut client = startup.client;
    loop {
        client = match client.receive() {
            ExpReady::Prove { template, package, image, next } => {
                let proven = prove(&template, &image);
                let digest = digest([&template, &package, &image]);
                let (text, is_proven) = match &proven {
                    Ok(()) => (&digest[..], true),
                    Err(reason) => (reason.as_bytes(), false),
                };
                match (ExVec::from_slice(text), is_proven) {
                    (Ok(digest), true) => next.proven(digest),
                    (Ok(reason), false) => next.refused(reason),
                    (Err(_), _) => return 1,
                }
            }
            ExpReady::ChannelClosed(_) => return 0,
        };
    }
}

/// The SHA-256 of parts and their lengths.
fn digest(parts: [&[u8]; 3]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn prove(template: &[u8], image: &[u8]) -> Result<(), String> {
    let template = compose::Template::parse(template).map_err(|error| error.to_string())?;
    let image = Image::check(image).map_err(|error| format!("the compiled image is refused: {error}"))?;
    let added = compose::added(&template, &image);
    let added = added.ok_or("the compiled image is not the template with data and code added")?;
    match native_verifier::verify(&added) {
        Ok(_) => Ok(()),
        Err(violation) => Err(format!("the compiled code is not proven safe: {violation}")),
    }
}
