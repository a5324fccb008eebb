//! `plain!` vouches for the structure that it defines; here that is removed, and another of the same name has a reference.

use std::ops::Deref;
use std::sync::atomic::AtomicU64;

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

fn main() {}
