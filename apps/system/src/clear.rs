//! Clears the terminal.

use stdio::Output;

sip::startup!("clear/manifest.toml");

/// Sends a form feed, on which the console starts a page at the top of an empty screen.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    output.write(b"\x0c").map_or(1, |()| output.finish_with(0))
}
