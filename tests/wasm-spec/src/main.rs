//! Compiles the suite for its template, and writes the image.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use compose::Template;
use image_check::Image;
use wasm_spec::{Suite, sources};

/// Compiles WebAssembly's test suite into an image of its template.
#[derive(Debug, Parser)]
#[command(name = "wasm-spec")]
struct Arguments {
    /// The template's image
    #[arg(long, value_name = "FILE")]
    template: PathBuf,

    /// Only files whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Where the image goes
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let shown = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    let template = std::fs::read(&arguments.template).map_err(|error| shown(&arguments.template, &error))?;
    let template = Template::parse(&template).map_err(|error| error.to_string())?;
    let mut sources = sources();
    sources.retain(|source| source.name.contains(&arguments.only));
    let suite = Suite::of(&sources, &template.imports);
    if !suite.failures.is_empty() {
        let line = |failure: &wasm_spec::Failure| format!("{}.wast:{}: {}", failure.file, failure.line, failure.why);
        return Err(suite.failures.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    let script = wasm_spec_script::write(&suite.files);
    let bundle = wasm_translate::bundle(&suite.modules, &script).map_err(|error| error.to_string())?;
    println!(
        "{} modules, {} bytes of code, {} of constants, {} of script, {} of record",
        suite.modules.len(),
        bundle.text.len(),
        bundle.constants.len(),
        script.len(),
        bundle.record.len()
    );
    let image = compose::compose(&template, &bundle).map_err(|error| error.to_string())?;
    Image::check(&image).map_err(|error| format!("the image is refused: {error}"))?;
    std::fs::write(&arguments.out, image).map_err(|error| shown(&arguments.out, &error))
}
