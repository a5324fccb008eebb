//! Colour support: only on a terminal, and never if the user has set NO_COLOR.

use std::io::IsTerminal;

use diagnostics::Colours;

/// Returns whether coloured text may be written to this stream.
pub fn colours(stream: &impl IsTerminal) -> Colours {
    let wanted = stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted { Colours::Always } else { Colours::Never }
}
