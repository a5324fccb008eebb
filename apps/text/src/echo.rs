//! Prints its arguments.

use stdio::Output;

sip::startup!("echo/manifest.toml");

/// Prints the words, followed by a line end.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut text = startup.words.join(" ");
    if !startup.no_newline {
        text.push('\n');
    }
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}
