//! The command `sing` as cargo starts it: `cargo sing run` is `cargo-sing sing run`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "sing") {
        words.remove(1);
    }
    sing::main(words)
}
