//! The checks of `plain!` are made with the language's own names, whatever they mean where it is called.

extern crate self as core;

pub mod mem {
    pub const fn size_of<T>() -> usize {
        0
    }
}

#[allow(unused_macros)]
macro_rules! assert {
    ($($any:tt)*) => {};
}

#[allow(unused_macros)]
macro_rules! panic {
    ($($any:tt)*) => {};
}

sip::plain! { "Padded{byte,ulong}" pub struct Padded { pub first: u8, pub second: u64 } }

fn main() {}
