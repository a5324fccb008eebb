//! A hostile program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use stdio::Output;

sip::startup!();

mod second {
    pub mod talk {
        pub struct Imp<S>(S);
        pub mod states {
            pub struct Ready<const N: usize>;
        }
    }

    sip::startup!("second.toml");
}

/// Says something.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    output.write(b"hello\n").map_or(1, |()| output.finish_with(0))
}
