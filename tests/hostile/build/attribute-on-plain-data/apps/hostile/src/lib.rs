//! A hostile program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};

use sip::exheap::{ExBlock, ExBox, ExVec};

sip::startup!();

pub struct Anything(AtomicU64);

impl Deref for Anything {
    type Target = u64;
    fn deref(&self) -> &u64 {
        &0
    }
}

#[derive(Clone, Copy)]
pub struct Forged {
    pub target: &'static Anything,
}

sip::plain! { "Forged{ulong}" #[cfg(any())] pub struct Forged { pub target: u64 } }

fn poke(carrier: &mut ExVec<u8>, address: u64) -> Option<()> {
    carrier.attach(ExBox::new(address).ok()?).ok()?;
    let block: ExBlock = carrier.detach().ok()??;
    let forged = block.into_vec::<Forged>().ok()?;
    forged.first()?.target.0.store(1, Ordering::Relaxed);
    Some(())
}

/// Writes where it likes.
pub fn main(_: Startup) -> i32 {
    ExVec::new(8).ok().and_then(|mut carrier| poke(&mut carrier, 0x1000)).map_or(1, |()| 0)
}
