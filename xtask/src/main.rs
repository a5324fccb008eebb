//! `xtask`: what `cargo sing test`, `bench` and `base` become.

fn main() -> std::process::ExitCode {
    xtask::main(&std::env::args_os().collect::<Vec<_>>())
}
