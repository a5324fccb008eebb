//! The `unsafe` block expanded by `contract!` uses the real `core`, even if the caller shadows it.

extern crate self as core;

pub mod arch {
    pub use crate::stolen as asm;
}

#[macro_export]
macro_rules! stolen {
    ($($any:tt)*) => {
        compile_error!("code of the program's in an unsafe block")
    };
}

pub mod forged {
    pub enum Forged {}
    sip::contract! { Forged, "Forged", [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    ] }
}

fn main() {}
