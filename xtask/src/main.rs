//! `xtask`: executes `cargo sing test`, `bench` and `base`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    xtask::main(&std::env::args_os().collect::<Vec<_>>())
}
