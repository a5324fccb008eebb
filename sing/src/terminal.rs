//! Whether to use colours: only on a terminal, and never when the user set NO_COLOR.

use std::io::IsTerminal;

/// Whether coloured text may be written to this stream.
fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// What the contract language is told.
pub fn contract_colours(stream: &impl IsTerminal) -> lang::Colours {
    if has_colours(stream) { lang::Colours::Always } else { lang::Colours::Never }
}

/// What the manifest reader is told.
pub fn manifest_colours(stream: &impl IsTerminal) -> manifest::Colours {
    if has_colours(stream) { manifest::Colours::Always } else { manifest::Colours::Never }
}
