//! The checks of `plain!` use the language's own names, even if the caller shadows them.

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
