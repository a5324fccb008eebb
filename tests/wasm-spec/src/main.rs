//! Compiles the suite for its template, and writes the image.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use compose::Template;
use image_check::Image;
use wasm_spec::{LeftOut, Suite, sources};
use wasm_translate::Bounds;

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

    /// How the modules keep to linear memory: `guarded` or `checked`
    #[arg(long, value_name = "BOUNDS", value_parser = bounds)]
    bounds: Bounds,

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

fn bounds(name: &str) -> Result<Bounds, String> {
    Bounds::named(name).ok_or_else(|| "write `guarded` or `checked`".into())
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let shown = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    let template = std::fs::read(&arguments.template).map_err(|error| shown(&arguments.template, &error))?;
    let template = Template::parse(&template).map_err(|error| error.to_string())?;
    let mut sources = sources();
    sources.retain(|source| source.name.contains(&arguments.only));
    let suite = Suite::of(&sources, &template.imports, arguments.bounds);
    if !suite.failures.is_empty() {
        let line = |failure: &wasm_spec::Failure| format!("{}.wast:{}: {}", failure.file, failure.line, failure.why);
        return Err(suite.failures.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    if arguments.only.is_empty() {
        hold_left_out(&suite)?;
    }
    let script = wasm_spec_script::write(&suite.files);
    let bundle = wasm_translate::bundle(&suite.modules, &script).map_err(|error| error.to_string())?;
    let image = compose::compose(&template, &bundle).map_err(|error| error.to_string())?;
    Image::check(&image).map_err(|error| format!("the image is refused: {error}"))?;
    std::fs::write(&arguments.out, image).map_err(|error| shown(&arguments.out, &error))
}

/// Holds what is left out to the list of it, or writes the list if `UPDATE_GOLDEN` is set.
fn hold_left_out(suite: &Suite) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("left-out.txt");
    let line = |left_out: &LeftOut| format!("{}.wast:{}: {}\n", left_out.file, left_out.line, left_out.why);
    let found: String = suite.left_out.iter().map(line).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if std::fs::read_to_string(&path).unwrap_or_default() == found {
        return Ok(());
    }
    Err(format!("{} is not what is left out; UPDATE_GOLDEN=1 writes it:\n{found}", path.display()))
}
