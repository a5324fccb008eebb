//! Prints the diagnostics of contract files, and their Rust code if there are no errors.

use lang::{Colours, SourceFile};

fn main() -> std::process::ExitCode {
    let mut files = Vec::new();
    for path in std::env::args().skip(1) {
        match std::fs::read_to_string(&path) {
            Ok(text) => files.push(SourceFile::new(path, text)),
            Err(error) => {
                eprintln!("{path}: {error}");
                return std::process::ExitCode::FAILURE;
            }
        }
    }
    let compiled = lang::compile(&files);
    eprint!("{}", compiled.render(Colours::Never));
    let Some(unit) = &compiled.unit else { return std::process::ExitCode::FAILURE };
    print!("{}", lang::emit_rust(unit));
    std::process::ExitCode::SUCCESS
}
