//! Compiles a WebAssembly module for a template, and writes the image. A program of its own, so that the host tool does
//! not take the code generator with it.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use compose::Template;
use image_check::Image;
use wasm_translate::Bounds;

/// Compiles a WebAssembly module into an image of a template.
#[derive(Debug, Parser)]
#[command(name = "sing-wasm")]
struct Arguments {
    /// The template's image
    #[arg(long, value_name = "FILE")]
    template: PathBuf,

    /// The module, in the binary format
    #[arg(long, value_name = "FILE")]
    module: PathBuf,

    /// How code keeps to linear memory: `guarded`, by reserved addresses, or `checked`, on every machine
    #[arg(long, value_name = "BOUNDS", default_value = "guarded", value_parser = bounds)]
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

fn run(arguments: &Arguments) -> Result<(), String> {
    let template = read(&arguments.template)?;
    let template = Template::parse(&template).map_err(|error| error.to_string())?;
    let module = read(&arguments.module)?;
    let shown = arguments.module.display();
    let mut progress = Progress { is_shown: std::io::stderr().is_terminal(), percent: 0 };
    let translated = wasm_translate::translate(&module, &template.imports, arguments.bounds, &mut |done, all| {
        progress.show(done, all);
    });
    progress.end();
    let translated = translated.map_err(|error| format!("{shown}: {error}"))?;
    let image = compose::compose(&template, &translated).map_err(|error| format!("{shown}: {error}"))?;
    let checked = Image::check(&image).map_err(|error| format!("{shown}: the image made of it is refused: {error}"))?;
    let added = compose::added(&template, &checked).ok_or_else(|| format!("{shown}: the image has no place for it"))?;
    native_verifier::verify(&added).map_err(|error| {
        format!("{shown}: the code made of it is not proven safe: {error}; report it with the module")
    })?;
    std::fs::write(&arguments.out, image).map_err(|error| format!("{}: {error}", arguments.out.display()))
}

fn bounds(name: &str) -> Result<Bounds, String> {
    Bounds::named(name).ok_or_else(|| "write `guarded` or `checked`".into())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A line of progress, on a terminal.
struct Progress {
    is_shown: bool,
    percent: usize,
}

impl Progress {
    fn show(&mut self, done: usize, all: usize) {
        let percent = done * 100 / all.max(1);
        if self.is_shown && percent != self.percent {
            self.percent = percent;
            eprint!("\r   Compiling {done} of {all} functions");
            // A terminal that is gone does not matter here.
            let _ = std::io::stderr().flush();
        }
    }

    fn end(&self) {
        if self.is_shown && self.percent > 0 {
            eprint!("\r\x1b[K");
        }
    }
}
