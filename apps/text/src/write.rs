//! Writes text or standard input to a file.

use client::access::AccessError;
use client::file_writer::{Existing, FileWriter};
use client::namespace::{Namespace, block};
use stdio::{Input, report};

sip::startup!("write/manifest.toml");

/// Writes the words or, without any, standard input.
pub fn main(startup: Startup) -> i32 {
    let mut text = startup.text.join(" ");
    let has_words = !startup.text.is_empty();
    if has_words && !startup.no_newline {
        text.push('\n');
    }
    let input = match (has_words, startup.input) {
        (true, _) => None,
        (false, Some(input)) => Some(Input::new(input)),
        (false, None) => {
            report::error(format_args!(
                "no text is given and standard input is not connected; usage: write PATH TEXT..."
            ));
            return 2;
        }
    };
    let asked = &startup.path;
    let full = path::absolute(&startup.working_folder, asked);
    let mut namespace = Namespace::new(startup.namespace);
    let existing = if startup.append { Existing::Append } else { Existing::Replace };
    let written = FileWriter::open(&mut namespace, &full, existing).and_then(|mut writer| match input {
        None => {
            let text = block(&text)?;
            let bytes = text.len();
            writer.write(text, bytes)?;
            Ok(0)
        }
        Some(input) => write_input(input, &mut writer),
    });
    written.unwrap_or_else(|error| report::path_error(asked, &error))
}

fn write_input(mut input: Input, writer: &mut FileWriter) -> Result<i32, AccessError> {
    loop {
        match input.block() {
            Ok(Some(block)) => {
                let bytes = block.len();
                writer.write(block, bytes)?;
            }
            Ok(None) => return Ok(0),
            Err(broken) => {
                report::error(format_args!("standard input ended early: {broken}"));
                return Ok(1);
            }
        }
    }
}
